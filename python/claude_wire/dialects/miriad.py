"""The dialect of miriad-code, with ``control`` messages without ids. Prompts are injected into the current turn."""

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

#: An agent's error text for an interrupt while no turn is under way.
NOT_RUNNING = "No turn is currently running"
#: An error text shows at most this many characters of an unknown action or type.
MAX_WORD_CHARS = 64


class MiriadConnection(Connection):
    """The base class for both dialects of miriad-code: a turn's frames, and the host's requests to an agent."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        # The session id of the turn under way, or of the last turn; None before the first turn.
        self._session_id: str | None = None
        # True while a turn is under way.
        self._running = False
        # For an agent: id of an open request within the agent -> its action, and its id on the wire (None: no id).
        self._open: dict[Any, tuple[str, Any]] = {}
        self._count = 0

    def _request(self, action: str, wire_id: Any = None) -> ControlRequest:
        self._count += 1
        own_id = f"{action}-{self._count}"
        self._open[own_id] = action, wire_id
        return ControlRequest(own_id, GetStatusRequest() if action == "status" else InterruptRequest())

    def _frames(self, message: Any) -> list[dict[str, Any]]:
        """Return the frames for an agent's message, and note when a turn begins and ends."""
        if isinstance(message, InitMessage):
            self._running, self._session_id = True, message.session_id
        elif isinstance(message, ResultMessage):
            self._running = False
        return frames_of(message)


class _Miriad(MiriadConnection):
    """A connection with miriad-code. For a host, the connection also tracks which turn is under way.

    According to miriad-code's protocol document, an interrupted turn ends with the ``result`` ``cancelled``. In fact,
    miriad-code writes ``interrupted`` first, and no result if it aborted a request to the model. Therefore the first of
    the two messages answers the host's interrupt. If no result follows ``interrupted``, the host treats the turn as
    ended after :data:`~claude_wire.dialects.dialect.SILENCE_SECONDS` without a line.
    """

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        # Action -> ids of the host's open requests. Frames have no ids, so the answers are in the order of requests.
        self._asked: dict[str, deque[Any]] = {"interrupt": deque(), "status": deque()}
        # The agent's `interrupted` message for the turn under way; None before it arrives and after the result.
        self._interrupted: InterruptedMessage | None = None
        # True if missing_result() has made the result of the last turn. A late result of the agent is then dropped.
        self._was_given_result = False

    # --- the host's side

    def to_agent(self, message: Any) -> bytes:
        if isinstance(message, UserMessage):
            line = encode(sent_prompt(self, message))
            self.owed += 1
            return line
        if isinstance(message, ControlCancelRequest):
            for asked in self._asked.values():
                with suppress(ValueError):  # the request has the other action
                    asked.remove(message.request_id)
            return b""
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
        if isinstance(message, InjectedMessage):  # the injected prompts get no separate results
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
        """Answer all open interrupts, because the turn ended, even if the agent reports only one interrupt."""
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
        if action == "interrupt" and not self._running:  # the turn ended in the meantime
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
    """Return the answer to a status request, or None for any other message.

    The protocol document defines the fields, but no subtype. miriad-code writes ``status``; a later document says
    ``status_response``.
    """
    if isinstance(message, StatusMessage):
        return None if message.running is None else message
    if isinstance(message, UnknownMessage) and message.type == "system" and isinstance(message.get("running"), bool):
        found = build_message({**message, "subtype": "status"}, Findings())
        return found if isinstance(found, StatusMessage) else None
    return None


def action_of(connection: Connection, message: Any) -> str:
    """Return the action that a host's request asks for: ``status`` or ``interrupt``.

    Raises:
        DialectError: the message is not a request, or the dialect has no such request.
    """
    if not isinstance(message, ControlRequest):
        raise connection.cannot(f"has no {type(message).__name__} of a host")
    if isinstance(message.request, GetStatusRequest):
        return "status"
    if not isinstance(message.request, InterruptRequest):
        raise connection.cannot_ask(message)
    if message.request.cancel_queued:
        raise connection.cannot("has no cancel_queued for an interrupt: what is queued runs next")
    return "interrupt"


def problem_of(message: Any) -> str:
    """Return the error text for a wrong line from a host."""
    if isinstance(message, InvalidLine):
        return f"The line is not one JSON object: {message.reason}"
    if isinstance(message, UserMessage) or (isinstance(message, UnknownMessage) and message.type == "user"):
        return "A user message needs the role user and a content"
    kind = message.type if isinstance(message, UnknownMessage) else message.__struct_config__.tag
    return f"Unknown message type: {(kind or 'none')[:MAX_WORD_CHARS]}"


def status_payload(status: StatusMessage) -> dict[str, Any]:
    """Return the payload of the answer to a status request."""
    return without_nulls(running=status.running, session_id=status.session_id, queued_messages=status.queued_messages)


def frames_of(message: Any) -> list[dict[str, Any]]:
    """Return the frames for an agent's message, without nulls and uuids. Empty if the dialect has no such frame."""
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
        # miriad-code counts cycles of tool use: a plain answer counts 0. The CLI counts 1.
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
