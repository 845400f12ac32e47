"""Whether a process is in the middle of a turn, by what it has written and what it was sent.

Knows what messages, typed or plain, say of turns; not where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, cast

import msgspec

from claude_wire._ids import Ids
from claude_wire.messages import AssistantMessage, InitMessage, ResultMessage, StreamEvent, UserMessage
from claude_wire.messages.message import RESULT_BY_SUBTYPE

__all__ = ["Turn"]

_RESULTS = frozenset([ResultMessage, *RESULT_BY_SUBTYPE.values()])
_OPENING = (AssistantMessage, InitMessage, StreamEvent, UserMessage)


class _Sent(msgspec.Struct):
    """What is looked at of a line that was sent."""

    type: Any = None
    uuid: Any = None


_decode_sent = msgspec.json.Decoder(_Sent).decode


class Turn:
    """Whether the process is in the middle of a turn, by what it has written, and its last result.

    Among the recorded sessions of the CLI, those and only those that were cut end with an open turn by this rule.
    """

    __slots__ = ("_asked", "_uuids", "last_result", "open")

    def __init__(self) -> None:
        # Whether a turn is open, and whether one was asked for since the last one that was seen.
        self.open = self._asked = False
        # Of the last prompts that were sent: a second one with the same starts no turn.
        self._uuids = Ids()
        self.last_result: Any = None

    def unfinished(self) -> str:
        """Where the output stands if it ends now, in words, unless it stands between turns."""
        if self.open:
            return "in the middle of a turn"
        return "before the turn that was asked for" if self._asked else ""

    def sent(self, lines: bytes) -> None:
        """Look for prompts in what the host wrote."""
        for line in lines.splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the process will say so
                sent = _decode_sent(line)
                if sent.type != "user":
                    continue
                if isinstance(sent.uuid, str):
                    if sent.uuid in self._uuids:
                        continue
                    self._uuids.add(sent.uuid)
                self._asked = True

    def see(self, batch: Iterable[Any]) -> None:
        # Most batches are within a turn and have no result: looking at their types is enough.
        types = set(map(type, batch))
        if self.open and types.isdisjoint(_RESULTS) and not any(issubclass(cls, dict) for cls in types):
            return
        for message in batch:
            if isinstance(message, ResultMessage):
                self._result(message)
            elif isinstance(message, _OPENING):
                if getattr(message, "parent_tool_use_id", None) is None and not getattr(message, "isReplay", None):
                    self._begin()
            elif isinstance(message, dict):
                self._plain(cast("dict[str, Any]", message))

    def _plain(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "result":
            self._result(message)
            return
        opening = kind in ("assistant", "stream_event", "user") or (
            kind == "system" and message.get("subtype") == "init"
        )
        if opening and message.get("parent_tool_use_id") is None and not message.get("isReplay"):
            self._begin()

    def _begin(self) -> None:
        self.open = True
        self._asked = False

    def _result(self, message: Any) -> None:
        self.open = self._asked = False
        self.last_result = message
