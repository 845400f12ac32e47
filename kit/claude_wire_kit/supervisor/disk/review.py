"""Find out from the journal what a CLI left unfinished when it or its supervisor was killed."""

from __future__ import annotations

from typing import Any

import msgspec

from claude_wire.codec import Decoder
from claude_wire.messages import (
    AssistantMessage,
    InitMessage,
    ResultMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_wire.support import LONGEST_ID, short_id
from claude_wire_kit.supervisor.disk.journal import Journal
from claude_wire_kit.supervisor.frames import Ended
from claude_wire_kit.supervisor.ledger import MARKS, Ledger

#: Maximum number of unanswered tool calls to report for one turn. The review reports the newest.
MAX_CALLS = 1024


def review(journal: Journal, line: int) -> tuple[Ended, str | None]:
    """Find out what a CLI's exit interrupted. Read a journal's output at or after ``line``, and the input in the same
    parts.

    Returns the frame for the clients, without an exit code, and the last session id in the output.

    Raises:
        OSError: a file cannot be read.
        LookupError: the journal does not have this line.
    """
    ledger = Ledger()
    calls: dict[str, None] = {}
    cli_session_id: str | None = None
    for is_input, block in journal.in_order(line):
        for message in (_inputs if is_input else _outputs).feed(block):
            if is_input:
                ledger.written(message)
                continue
            ledger.received(message)
            if isinstance(message, AssistantMessage):
                _called(message, calls)
            elif isinstance(message, UserMessage):
                _returned(message, calls)
            elif isinstance(message, ResultMessage):
                calls.clear()
            elif isinstance(message, InitMessage) and len(message.session_id or "") <= LONGEST_ID:
                cli_session_id = message.session_id
    ended = msgspec.structs.replace(ledger.process_ended(), calls=[short_id(id) for id in calls])
    return ended, cli_session_id


def prompts_of(journal: Journal) -> list[str]:
    """Return the uuids of the prompts in a journal.

    Raises:
        OSError: a file cannot be read.
    """
    return [
        message.uuid
        for block in journal.inputs()
        for message in _inputs.feed(block)
        if isinstance(message, UserMessage) and message.uuid
    ]


#: The input and output of a journal end with a whole line, so these decoders keep no state between two journals.
_outputs: Decoder[Any] = Decoder(only=(*MARKS, "assistant", "user"), on_invalid="return")
_inputs: Decoder[Any] = Decoder(only=("user", "control_response"), on_invalid="return")


def _called(message: AssistantMessage, calls: dict[str, None]) -> None:
    for block in message.message.content:
        if isinstance(block, ToolUseBlock):
            calls[block.id] = None
            if len(calls) > MAX_CALLS:
                del calls[next(iter(calls))]


def _returned(message: UserMessage, calls: dict[str, None]) -> None:
    content = message.message.content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, ToolResultBlock):
            calls.pop(block.tool_use_id, None)
