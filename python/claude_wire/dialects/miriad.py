"""The dialect of miriad-code: ``control`` messages without ids, and prompts that are injected into a turn."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

from claude_wire.codec.encoder import encode
from claude_wire.dialects.dialect import Connection, Dialect
from claude_wire.dialects.frames import (
    as_stream_json,
    assistant_content,
    error_text,
    prompt_of,
    sent_prompt,
    tool_results,
    usage_counts,
    without_nulls,
)
from claude_wire.messages import (
    AssistantMessage,
    ConsolidationMessage,
    ControlCancelRequest,
    ControlMessage,
    ControlRequest,
    ControlResponse,
    GetStatusRequest,
    InitMessage,
    InjectedMessage,
    InterruptedMessage,
    InterruptRequest,
    InvalidLine,
    KeepAlive,
    QueuedMessage,
    ResultCancelled,
    ResultMessage,
    StatusMessage,
    SystemErrorMessage,
    UnknownMessage,
    UserMessage,
)
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.union import build_message

#: The error text of an agent for an interrupt without a turn.
NOT_RUNNING = "No turn is currently running"
#: Most characters of an unknown word of the host in an error text.
MAX_WORD_CHARS = 64


class MiriadConnection(Connection):
    """The common part of miriad-code's two dialects: the frames of a turn, and requests of the host to an agent."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        # The session id of the turn under way, or of the last one; True while a turn is under way.
        self._session_id: str | None = None
        self._running = False
        # Open requests of a host: id within the agent -> action, and id on the wire.
        self._open: dict[Any, tuple[str, Any]] = {}
        self._count = 0

    def _request(self, action: str, wire_id: Any = None) -> ControlRequest:
        self._count += 1
        own_id = f"{action}-{self._count}"
        self._open[own_id] = action, wire_id
        return ControlRequest(own_id, GetStatusRequest() if action == "status" else InterruptRequest())

    def _frames(self, message: Any) -> list[dict[str, Any]]:
        """The frames for a message of an agent. Also follows whether a turn is under way."""
        if isinstance(message, InitMessage):
            self._running, self._session_id = True, message.session_id
        elif isinstance(message, ResultMessage):
            self._running = False
        return frames_of(message)


class _Miriad(MiriadConnection):
    """The host's side follows which turn is under way.

    The document promises a ``result`` with the subtype ``cancelled`` for an interrupt. miriad-code writes
    ``interrupted`` first, and often no result at all: a turn that is aborted within a request to the model just ends.
    So the first of the two messages answers an interrupt. For the host, a turn that was ``interrupted`` ends at the
    latest after :data:`~claude_wire.dialects.dialect.SILENCE_SECONDS` without a line.
    """

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        # Action -> ids of the host's open requests. Frames have no ids; answers come in the order of requests.
        self._asked: dict[str, deque[Any]] = {"interrupt": deque(), "status": deque()}
        # The agent's `interrupted` message for the turn under way, until the turn has its result.
        self._interrupted: InterruptedMessage | None = None
        # True if missing_result() gave the last turn a result: a late result of the agent must not count for another.
        self._was_given_result = False

    # --- the host's side

    def to_agent(self, message: Any) -> bytes:
        if isinstance(message, UserMessage):
            line = encode(sent_prompt(self, message))
            self.owed += 1
            return line
        if isinstance(message, ControlCancelRequest):
            for asked in self._asked.values():
                with suppress(ValueError):  # a request of the other action
                    asked.remove(message.request_id)
            return b""
        if not isinstance(message, ControlRequest):
            raise self.cannot(f"has no {type(message).__name__} of a host")
        action = action_of(self, message)
        line = encode(ControlMessage(action=action))
        self._asked[action].append(message.request_id)
        return line

    def from_agent(self, message: Any) -> list[Any]:
        if isinstance(message, ResultMessage):
            return self._result(message)
        if isinstance(message, InterruptedMessage):
            self._interrupted = message if self.owed else None
            self._was_given_result = False
            return [message, *self._answers()]
        if isinstance(message, InjectedMessage):  # the turn goes on, with prompts that have no results of their own
            self.owed = max(self.owed - max(message.message_count, 0), min(self.owed, 1))
        elif (status := _status_of(message)) is not None:
            asked = self._asked["status"]
            return [ControlResponse.success(asked.popleft(), status_payload(status))] if asked else [message]
        elif isinstance(message, SystemErrorMessage) and message.message == NOT_RUNNING:
            return self._answers() or [message]
        return [as_stream_json(message)]

    def _result(self, result: ResultMessage) -> list[Any]:
        if self._was_given_result and result.cancelled:
            self._was_given_result = False
            return self._answers()
        before: list[Any] = []
        if self._interrupted is not None and self.owed > 1 and not result.cancelled:
            before = self.missing_result()  # this result belongs to the next turn
        self._interrupted = None
        self._was_given_result = False
        self.owed = max(self.owed - 1, 0)
        return [*before, result, *self._answers()]

    @property
    def result_may_be_missing(self) -> bool:
        return self._interrupted is not None

    def missing_result(self) -> list[Any]:
        interrupted, self._interrupted = self._interrupted, None
        if interrupted is None:
            return []
        self._was_given_result = True
        self.owed = max(self.owed - 1, 0)
        return [ResultCancelled(is_error=False, session_id=interrupted.session_id)]

    @property
    def interrupt_may_be_unanswered(self) -> bool:
        return not self.owed

    def _answers(self) -> list[Any]:
        """Answers to all interrupts so far: their turns have ended, even if the agent reports this only once."""
        asked = self._asked["interrupt"]
        answers = [ControlResponse.success(request_id, {}) for request_id in asked]
        asked.clear()
        return answers

    # --- the agent's side

    def to_host(self, message: Any) -> bytes:
        if isinstance(message, ControlRequest):
            raise self.cannot_ask(message)
        if isinstance(message, ControlResponse):
            return self._answer(message)
        return b"".join(map(encode, self._frames(message)))

    def _answer(self, response: ControlResponse) -> bytes:
        action, _ = self._open.pop(response.request_id, ("", None))
        if not action:
            return b""
        if not response.ok:
            return encode(_error(getattr(response.response, "error", "")))
        if action == "interrupt" and not self._running:  # the turn has ended meanwhile
            return encode(_error(NOT_RUNNING))
        if action == "interrupt":
            return encode(without_nulls(type="system", subtype="interrupted", session_id=self._session_id))
        return encode(_status(response.payload))

    def from_host(self, message: Any) -> list[Any]:
        if isinstance(message, UserMessage) and message.message.role == "user":
            if not self._running:  # the prompt begins a turn
                self._running, self._session_id = True, message.session_id or self._session_id
            return [prompt_of(message)]
        if isinstance(message, ControlMessage):
            if message.action == "interrupt" and self._running:
                return [self._request("interrupt")]
            if message.action == "status":
                return [self._request("status")]
            known = message.action == "interrupt"
            words = NOT_RUNNING if known else f"Unknown control action: {message.action[:MAX_WORD_CHARS]}"
            self._replies.append(encode(_error(words)))
        elif not isinstance(message, KeepAlive):
            self._replies.append(encode(_error(problem_of(message))))
        return []


def _status_of(message: Any) -> StatusMessage | None:
    """The answer to a status request in a message; None for any other message.

    The protocol document lists the fields and no subtype. miriad-code writes ``status``; a later document says
    ``status_response``.
    """
    if isinstance(message, StatusMessage):
        return None if message.running is None else message
    if isinstance(message, UnknownMessage) and message.type == "system" and isinstance(message.get("running"), bool):
        found = build_message({**message, "subtype": "status"}, Findings())
        return found if isinstance(found, StatusMessage) else None
    return None


def action_of(connection: Connection, message: ControlRequest) -> str:
    """The action that a request of a host asks for: ``status`` or ``interrupt``.

    Raises:
        DialectError: the request asks for anything else.
    """
    if isinstance(message.request, GetStatusRequest):
        return "status"
    if not isinstance(message.request, InterruptRequest):
        raise connection.cannot_ask(message)
    if message.request.cancel_queued:
        raise connection.cannot("has no cancel_queued for an interrupt: what is queued runs next")
    return "interrupt"


def problem_of(message: Any) -> str:
    """The error text for a wrong line of a host."""
    if isinstance(message, InvalidLine):
        return f"The line is not one JSON object: {message.reason}"
    if isinstance(message, UserMessage) or (isinstance(message, UnknownMessage) and message.type == "user"):
        return "A user message needs the role user and a content"
    kind = message.type if isinstance(message, UnknownMessage) else message.__struct_config__.tag
    return f"Unknown message type: {(kind or 'none')[:MAX_WORD_CHARS]}"


def status_payload(status: StatusMessage) -> dict[str, Any]:
    return without_nulls(running=status.running, session_id=status.session_id, queued_messages=status.queued_messages)


def frames_of(message: Any) -> list[dict[str, Any]]:
    """The frames for a message of an agent, without nulls and uuids; none for a message that miriad-code lacks."""
    if isinstance(message, dict):
        return [message]
    if isinstance(message, AssistantMessage):
        content = assistant_content(message)
        spoken = without_nulls(role="assistant", content=content, model=message.model)
        return [without_nulls(type="assistant", message=spoken)] if content else []
    if isinstance(message, UserMessage):
        results = tool_results(message)
        return [{"type": "system", "subtype": "tool_result", "tool_result": block} for block in results]
    if isinstance(message, ResultMessage):
        return [_result(message)]
    if isinstance(message, SystemErrorMessage):
        return [_error(error_text(message))]
    if isinstance(message, StatusMessage) and message.running is not None:
        return [_status(status_payload(message))]
    if isinstance(message, (QueuedMessage, InjectedMessage, InterruptedMessage, ConsolidationMessage)):
        left_out = ("uuid",) if isinstance(message, (QueuedMessage, InterruptedMessage)) else ("uuid", "session_id")
        return [{key: value for key, value in message.to_dict().items() if key not in left_out}]
    return []


def _result(result: ResultMessage) -> dict[str, Any]:
    subtype = "cancelled" if result.cancelled else "success" if result.ok else "error"
    return without_nulls(
        type="result",
        subtype=subtype,
        duration_ms=result.duration_ms or 0,
        is_error=subtype == "error",
        # Cycles of tool use: a plain answer has none, where the CLI counts the answer.
        num_turns=max((result.num_turns or 0) - 1, 0),
        session_id=result.session_id,
        result=error_text(result) if subtype == "error" else result.result,
        usage=usage_counts(result.usage),
    )


def _error(words: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "error", "message": words}


def _status(payload: dict[str, Any]) -> dict[str, Any]:
    fields = {name: payload.get(name) for name in ("running", "session_id", "queued_messages")}
    return without_nulls(type="system", subtype="status", **fields)


#: The dialect of miriad-code over its pipes.
MIRIAD: Dialect = Dialect("miriad", _Miriad, has_status=True, busy="inject", names_session=True)
