"""A connection that detects the other side's dialect by the first line that only one dialect has.

Before that line, the connection uses stream-json. A prompt is the same in all dialects except JSON-RPC. An agent with
JSON-RPC does not answer a prompt in stream-json, so a host must name the dialect of such an agent.
"""

from __future__ import annotations

from typing import Any

from claude_wire.dialects.classic import CLASSIC
from claude_wire.dialects.dialect import CONTROL, Connection, Dialect
from claude_wire.dialects.json_rpc import JSON_RPC
from claude_wire.dialects.miriad import MIRIAD
from claude_wire.dialects.stream_json import STREAM_JSON
from claude_wire.messages import (
    CommandLifecycleMessage,
    ControlMessage,
    InitMessage,
    InjectedMessage,
    InterruptedMessage,
    PermissionReply,
    PermissionRequestMessage,
    QueuedMessage,
    ResultMessage,
    SessionStateChangedMessage,
    StatusMessage,
    StreamEvent,
    SystemErrorMessage,
    SystemToolResultMessage,
    ToolResultMessage,
    UnknownMessage,
    UserMessage,
)

#: Message class that only one dialect has -> this dialect.
_ONLY_IN: dict[type, Dialect] = {
    **dict.fromkeys((*CONTROL, CommandLifecycleMessage, SessionStateChangedMessage, StreamEvent), STREAM_JSON),
    **dict.fromkeys((ControlMessage, InjectedMessage, InterruptedMessage, QueuedMessage), MIRIAD),
    **dict.fromkeys((PermissionReply, PermissionRequestMessage, ToolResultMessage), CLASSIC),
}


class _Auto(Connection):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._decided = False
        self._now: Connection = STREAM_JSON.connect()
        # For an agent: the init message of the turn under way, which the detected dialect's connection also needs.
        self._init: InitMessage | None = None

    def _detect(self, message: Any) -> None:
        if not self._decided and (found := _dialect_of(message)) is not None:
            self._decided = True
            self.dialect = found
            self._now = found.connect()
            self._now.owed = self.owed
            if self._init is not None:
                self._now.to_host(self._init)

    def to_agent(self, message: Any) -> bytes:
        line = self._now.to_agent(message)
        if not self._decided and isinstance(message, UserMessage):
            self.owed += 1
        return line

    def from_agent(self, message: Any) -> list[Any]:
        if not self._decided and isinstance(message, ResultMessage):
            self.owed = max(self.owed - 1, 0)
        self._detect(message)
        return self._now.from_agent(message)

    @property
    def result_may_be_missing(self) -> bool:
        return self._now.result_may_be_missing

    def missing_result(self) -> list[Any]:
        return self._now.missing_result()

    @property
    def interrupt_may_be_unanswered(self) -> bool:
        return self._now.interrupt_may_be_unanswered

    def to_host(self, message: Any) -> bytes:
        if not self._decided:
            if isinstance(message, InitMessage):
                self._init = message
            elif isinstance(message, ResultMessage):
                self._init = None
        return self._now.to_host(message)

    def from_host(self, message: Any) -> list[Any]:
        self._detect(message)
        return self._now.from_host(message)

    def reply(self) -> bytes:
        return self._now.reply()


def _dialect_of(message: Any) -> Dialect | None:
    """Return the dialect if only one dialect has this kind of message, else None."""
    if isinstance(message, UnknownMessage):
        if "jsonrpc" in message:
            return JSON_RPC
        return STREAM_JSON if message.type == "control_request" else MIRIAD if message.type == "control" else None
    if isinstance(message, SystemToolResultMessage):
        return MIRIAD if message.tool_result is not None else None
    if isinstance(message, SystemErrorMessage):
        return CLASSIC if message.error is not None else MIRIAD
    if isinstance(message, StatusMessage):
        return STREAM_JSON if message.running is None else MIRIAD
    if isinstance(message, UserMessage) and message.uuid:
        return STREAM_JSON
    return _ONLY_IN.get(message.__class__)


#: Detects the other side's dialect. An agent has the permissions and exit codes of STREAM_JSON.
AUTO: Dialect = Dialect("auto", _Auto, busy="merge", permission="flag", failed_code=1)
