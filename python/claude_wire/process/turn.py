"""Whether a process is in the middle of a turn, by what it has written and what it was sent.

Knows what messages, typed or plain, say of turns; not where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

import msgspec

from claude_wire.messages import (
    AssistantMessage,
    CommandLifecycleMessage,
    InitMessage,
    ResultMessage,
    StreamEvent,
    UserMessage,
)
from claude_wire.messages.union import RESULT_BY_SUBTYPE
from claude_wire.native.block import split_lines
from claude_wire.support.ids import Ids

__all__ = ["Turn"]

#: What may end a turn, or the wait for one.
_ENDING = frozenset([CommandLifecycleMessage, ResultMessage, *RESULT_BY_SUBTYPE.values()])
#: States of ``command_lifecycle`` behind which no turn for the prompt is to come. A prompt that the resumed session had
#: already is ``completed``, too.
_SETTLED = frozenset(("completed", "cancelled", "discarded", "refused"))
_OPENING = (AssistantMessage, InitMessage, StreamEvent, UserMessage)


class _Sent(msgspec.Struct):
    """The fields of a sent line that are looked at."""

    type: Any = None
    uuid: Any = None
    # A prompt in JSON-RPC has these.
    method: Any = None
    id: Any = None


_decode_sent = msgspec.json.Decoder(_Sent).decode


class Turn:
    """Whether the process is in the middle of a turn, by what it has written, and its last result.

    Among the recorded sessions of the CLI, those and only those that were cut end with an open turn by this rule.
    """

    __slots__ = ("_asked", "_asked_unnamed", "_uuids", "last_result", "open")

    def __init__(self) -> None:
        self.open: bool = False
        # The prompts whose turn has not begun: the uuids, and whether there are prompts without a uuid.
        self._asked = Ids()
        self._asked_unnamed = False
        # The uuids of the last prompts. The CLI starts no turn for a second prompt with the same uuid.
        self._uuids = Ids()
        self.last_result: Any = None

    @property
    def asked(self) -> list[str]:
        """The uuids of the prompts without a result, the oldest first."""
        return self._asked.strings()

    def unfinished(self) -> str:
        """Where the output would end if it ended now, in words; nothing if that is between turns."""
        if self.open:
            return "in the middle of a turn"
        return "before the turn that was asked for" if self._asked or self._asked_unnamed else ""

    def sent(self, lines: bytes) -> None:
        """Note the prompts among lines that the host has written."""
        for line in split_lines(lines):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the process answers such a line
                sent = _decode_sent(line)
                if sent.type != "user" and sent.method != "run":
                    continue
                uuid = sent.uuid if sent.type == "user" else sent.id
                if isinstance(uuid, str) and uuid:  # an empty uuid counts as none
                    if uuid in self._uuids:
                        continue
                    self._uuids.add(uuid)
                    self._asked.add(uuid)
                else:
                    self._asked_unnamed = True

    def see(self, batch: Iterable[Any]) -> None:
        # Most batches lie within a turn and end nothing. Their types tell that.
        types = set(map(type, batch))
        if self.open and types.isdisjoint(_ENDING) and not any(issubclass(cls, dict) for cls in types):
            return
        for message in batch:
            if isinstance(message, ResultMessage):
                self._result(message, message.user_message_uuids)
            elif isinstance(message, CommandLifecycleMessage):
                self._lifecycle(message.command_uuid, message.state)
            elif isinstance(message, _OPENING):
                if getattr(message, "parent_tool_use_id", None) is None and not getattr(message, "isReplay", None):
                    self._begin()
            elif isinstance(message, dict):
                self._plain(cast("dict[str, Any]", message))

    def _plain(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "result":
            self._result(message, message.get("user_message_uuids"))
        elif kind == "command_lifecycle":
            self._lifecycle(message.get("command_uuid"), message.get("state"))
        else:
            opening = kind in ("assistant", "stream_event", "user") or (
                kind == "system" and message.get("subtype") == "init"
            )
            if opening and message.get("parent_tool_use_id") is None and not message.get("isReplay"):
                self._begin()

    def _begin(self) -> None:
        self.open = True
        self._asked_unnamed = False

    def _lifecycle(self, uuid: Any, state: Any) -> None:
        if isinstance(uuid, str) and isinstance(state, str) and state in _SETTLED:
            self._asked.discard(uuid)

    def _result(self, message: Any, uuids: Any) -> None:
        self.open = self._asked_unnamed = False
        self.last_result = message
        if isinstance(uuids, list) and uuids:
            for named in uuids:  # pyright: ignore[reportUnknownVariableType]  # any JSON
                if isinstance(named, str):
                    self._asked.discard(named)
        else:  # a result that names no prompt is for all prompts that were merged
            self._asked = Ids()
