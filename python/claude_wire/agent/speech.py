"""Write a turn's frames: the model's messages and blocks, tool uses and tool results.

The model's messages consist of blocks, and each finished block is one ``assistant`` line. With
``--include-partial-messages``, stream events surround these lines::

    message_start
        content_block_start, content_block_delta..., assistant, content_block_stop      for each block
    message_delta, message_stop

A message ends when a tool's result is written, when the host is asked whether a tool may be used, and at the end of the
turn. The next block then begins a new message.
"""

from __future__ import annotations

from typing import Any

import msgspec

from claude_wire.agent.protocol import AgentProtocol
from claude_wire.agent.session import TurnRecord
from claude_wire.codec.encoder import encode, encode_value
from claude_wire.messages import (
    ApiMessage,
    AssistantMessage,
    ContentBlock,
    MessageParam,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserMessage,
)

#: What the model reads after the user refused or interrupted a tool use. (CLI 2.1.331.)
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)
INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_FOR_TOOL = "[Request interrupted by user for tool use]"
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


class Speech:
    """Writes the frames of one turn, or of one subagent in a turn.

    Args:
        parent: the id of the tool use that runs the subagent; None for the turn itself.
    """

    def __init__(self, protocol: AgentProtocol, turn: TurnRecord, parent: str | None = None) -> None:
        self._protocol = protocol
        self._turn = turn
        self._parent = parent
        self._partial = protocol.session.options.include_partial_messages
        # `_id`: the open message's id; None if no message is open. `_index`: the index of its next block. `_uses_tool`:
        # whether one of its blocks is a tool use.
        self._id: str | None = None
        self._index = 0
        self._uses_tool = False
        # The open block: its kind ("text" or "thinking"; None if no block is open), its pieces, and the constant parts
        # of its delta lines.
        self._kind: str | None = None
        self._pieces: list[str] = []
        self._head = self._middle = self._tail = b""
        # Token counts of the open message, or of the next message if no message is open. The API defines the keys.
        self._usage: dict[str, Any] = dict(_NO_USAGE)
        #: How many messages the model wrote so far.
        self.messages: int = 0
        #: The model's last text; empty before the first text.
        self.last_text: str = ""
        #: Tool uses that have no result yet.
        self.open_uses: dict[str, ToolUseBlock] = {}

    # --- blocks

    def add(self, piece: str, kind: str = "text") -> None:
        """Add a piece to the open block of this kind, or begin a block."""
        if self._kind != kind:
            self.finish_block()
            self._begin_message()
            self._kind = kind
            if self._partial:
                empty = TextBlock("") if kind == "text" else ThinkingBlock("", "")
                self._event({"type": "content_block_start", "index": self._index, "content_block": empty})
                self._make_frame(f"{kind}_delta", kind)
        self._pieces.append(piece)
        if self._partial:
            protocol = self._protocol
            if self._head:
                protocol.uuid_count += 1
                # Joining constant parts takes 0.6 of the time of encoding Structs. Together with the write, it takes
                # 0.3 of the time of uuid4, json.dumps and print (benches/test_agent.py).
                text, number = encode_value(piece), protocol.uuid_count
                protocol.write(b"%b%b%b%012x%b" % (self._head, text, self._middle, number, self._tail))
            else:
                self._delta(**{"type": f"{kind}_delta", kind: piece})

    def finish_block(self, signature: str = "") -> None:
        """Finish the open block, if any, and write the whole block."""
        if self._kind is None:
            return
        text = "".join(self._pieces)
        if self._kind == "text":
            self.last_text = text
            block: ContentBlock = TextBlock(text)
        else:
            block = ThinkingBlock(text, signature)
            if self._partial and signature:
                self._delta(type="signature_delta", signature=signature)
        self._kind = None
        self._pieces = []
        self._say(block)
        self._stop_block()

    def block(self, block: ContentBlock) -> None:
        self.finish_block()
        self._begin_message()
        if self._partial:
            begun = msgspec.structs.replace(block, input={}) if isinstance(block, ToolUseBlock) else block
            self._event({"type": "content_block_start", "index": self._index, "content_block": begun})
            if isinstance(block, ToolUseBlock):
                self._delta(type="input_json_delta", partial_json=encode_value(block.input).decode())
        if isinstance(block, ToolUseBlock):
            self.open_uses[block.id] = block
            self._uses_tool = True
        self._say(block)
        self._stop_block()

    def close_message(self) -> None:
        self.finish_block()
        if self._id is not None:
            self._end_message("tool_use" if self._uses_tool else "end_turn")

    def add_usage(self, counts: dict[str, int]) -> None:
        """Add to the token counts of the open message, or of the next message if no message is open."""
        for name, count in counts.items():
            if count or name in self._usage:
                self._usage[name] = self._usage.get(name, 0) + count

    # --- tools

    def tool_result(
        self, use_id: str, content: str | list[ContentBlock], is_error: bool, structured: Any, *, is_denied: bool
    ) -> None:
        self.close_message()
        self.open_uses.pop(use_id, None)
        block = ToolResultBlock(tool_use_id=use_id, content=content, is_error=is_error)
        # A front end that connects later learns from `meta` that the user refused the tool.
        meta = [{"id": use_id, "permission_decision": {"decision": "reject"}}] if is_denied else None
        self._user([block], structured, meta)

    # --- the end of a turn that was stopped

    def abort(self, *, by_user: bool) -> str:
        """Write the unfinished text, and a note about the interrupt. Return the result's ``terminal_reason``.

        In dialects other than stream-json, this writes nothing, because only the result reports the interrupt there.
        """
        if not self._protocol.plain:
            return "aborted_tools" if self.open_uses else "aborted_streaming"
        cut_off = self._kind is not None
        if cut_off and self._pieces and self._kind == "text":
            self._say(TextBlock("".join(self._pieces)), aborted=True)
        self._kind = None
        self._pieces = []
        in_tool = bool(self.open_uses)
        for use_id in list(self.open_uses):
            del self.open_uses[use_id]
            block = ToolResultBlock(tool_use_id=use_id, content=REJECTED, is_error=True)
            self._user([block], "User rejected tool use")
        if by_user:
            self._user([TextBlock(INTERRUPTED_FOR_TOOL if in_tool else INTERRUPTED)])
        if self._id is not None:
            if cut_off:
                self._stop_block()
            self._end_message(None)
        return "aborted_tools" if in_tool else "aborted_streaming"

    # --- frames

    def _begin_message(self) -> None:
        if self._id is not None:
            return
        self.messages += 1
        self._id = f"msg_{self._protocol.new_uuid().replace('-', '')}"
        self._index = 0
        self._uses_tool = False
        if self._partial:
            self._event({"type": "message_start", "message": self._api([])})

    def _end_message(self, reason: str | None) -> None:
        if self._partial:
            delta = {"stop_reason": reason, "stop_sequence": None}
            self._event({"type": "message_delta", "delta": delta, "usage": self._usage})
            self._event({"type": "message_stop"})
        self._id = None
        self._usage = dict(_NO_USAGE)

    def _stop_block(self) -> None:
        if self._partial:
            self._event({"type": "content_block_stop", "index": self._index})
        self._index += 1

    def _api(self, content: list[ContentBlock]) -> ApiMessage:
        return ApiMessage(
            id=self._id,
            type="message",
            role="assistant",
            model=self._protocol.session.model,
            content=content,
            usage=Usage(**self._usage),
        )

    def _say(self, block: ContentBlock, aborted: bool | None = None) -> None:
        message = AssistantMessage(
            message=self._api([block]),
            parent_tool_use_id=self._parent,
            session_id=self._turn.session_id,
            uuid=self._protocol.new_uuid(),
            aborted=aborted,
        )
        self._protocol.send(message)

    def _user(self, content: list[ContentBlock], structured: Any = None, meta: Any = None) -> None:
        message = UserMessage(
            message=MessageParam("user", content),
            parent_tool_use_id=self._parent,
            session_id=self._turn.session_id,
            uuid=self._protocol.new_uuid(),
            tool_use_result=structured,
            tool_result_meta=meta,
        )
        self._protocol.send(message)

    def _event(self, event: dict[str, Any]) -> None:
        self._protocol.send(self._wrapped(event, self._protocol.new_uuid()))

    def _delta(self, **delta: str) -> None:
        self._event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _wrapped(self, event: Any, uuid: str) -> StreamEvent:
        return StreamEvent(
            event=event,
            session_id=self._turn.session_id,
            parent_tool_use_id=self._parent,
            uuid=uuid,
            api_message_id=self._id,
        )

    def _make_frame(self, kind: str, field: str) -> None:
        """Prepare the constant parts of a block's delta lines, for stream-json."""
        if self._protocol.plain:
            event = {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, field: "\0"}}
            head = self._protocol.uuid_head
            line = encode(self._wrapped(event, f"{head}\1"))
            self._head, _, rest = line.partition(b'"\\u0000"')
            self._middle, _, self._tail = rest.rpartition(b"\\u0001")
