"""The dialect with the permission question ``system/permission_request`` and the answer ``{"allow": true}``.

Questions and answers have no ids, so an agent asks one question at a time, and a host answers in the same order.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from claude_wire.codec.encoder import encode
from claude_wire.dialects.dialect import CONTROL, Connection, Dialect
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
from claude_wire.errors import AuthenticationError, MaxBudgetError
from claude_wire.messages import (
    AssistantMessage,
    CanUseToolRequest,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InitMessage,
    InvalidLine,
    PermissionReply,
    PermissionRequestMessage,
    ResultMessage,
    SystemErrorMessage,
    UnknownMessage,
    UserMessage,
)

#: Maximum number of an agent's open questions. The host does not answer more. A correct agent asks one at a time.
MAX_OPEN = 1024
#: Replaces the id of a withdrawn question. The host still answers, and its answer must not count for the next question.
_WITHDRAWN = object()


class _Asked:
    """A permission question for a host, and the host's answer as a line; None before the answer."""

    __slots__ = ("answer", "input")

    def __init__(self, given: dict[str, Any]) -> None:
        self.input = given
        self.answer: bytes | None = None


class _Classic(Connection):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._count = 0
        # For a host: request id -> question to answer, in order.
        self._asked: dict[Any, _Asked] = {}
        # For an agent: the id of the open question (None: no question is open), and the waiting questions.
        self._open: Any = None
        self._waiting: deque[tuple[Any, bytes]] = deque()

    # --- the host's side

    def to_agent(self, message: Any) -> bytes:
        if isinstance(message, UserMessage):
            return encode(sent_prompt(self, message))
        if isinstance(message, ControlResponse):
            return self._allowed(message)
        if isinstance(message, ControlCancelRequest):
            return b""
        if isinstance(message, ControlRequest):
            raise self.cannot_ask(message)
        raise self.cannot(f"has no {type(message).__name__} of a host")

    def _allowed(self, response: ControlResponse) -> bytes:
        asked = self._asked.get(response.request_id)
        if asked is None:
            return b""
        payload = response.payload
        for name in ("updatedPermissions", "interrupt"):
            if payload.get(name):
                raise self.cannot(f"has no {name} in the answer to a permission request")
        if payload.get("updatedInput") not in (None, asked.input):
            raise self.cannot("has no updatedInput in the answer to a permission request: allow the input, or deny it")
        asked.answer = encode(PermissionReply(allow=payload.get("behavior") == "allow"))
        asked.input = {}  # free the input, which may be large, because this answer may wait for earlier ones
        lines = b""
        while self._asked and (first := next(iter(self._asked.items())))[1].answer is not None:
            lines += first[1].answer
            del self._asked[first[0]]
        return lines

    def from_agent(self, message: Any) -> list[Any]:
        if _is_question(message):  # a question that cannot be read: the agent waits for an answer, so deny the question
            message = PermissionRequestMessage()
        if not isinstance(message, PermissionRequestMessage):
            return [as_stream_json(message)]
        if len(self._asked) >= MAX_OPEN:
            return []
        name, given = message.call or ("", {})
        use = (message.extra or {}).get("tool_use_id")
        self._count += 1
        request_id = f"permission-{self._count}"
        self._asked[request_id] = _Asked(given)
        body = CanUseToolRequest(
            tool_name=name,
            input=given,
            tool_use_id=use if isinstance(use, str) else None,
        )
        return [ControlRequest(request_id, body)]

    # --- the agent's side

    def to_host(self, message: Any) -> bytes:
        if isinstance(message, ControlRequest):
            return self._question(message)
        if isinstance(message, ControlCancelRequest):
            if message.request_id == self._open:
                self._open = _WITHDRAWN
            self._waiting = deque(one for one in self._waiting if one[0] != message.request_id)
            return b""
        return b"".join(map(encode, _frames(message)))

    def _question(self, message: ControlRequest) -> bytes:
        body = message.request
        if not isinstance(body, CanUseToolRequest):
            raise self.cannot_ask(message)
        line = encode(
            without_nulls(
                type="system",
                subtype="permission_request",
                tool_name=body.tool_name,
                input=body.input,
                tool_use_id=body.tool_use_id,
            )
        )
        if self._open is not None:
            self._waiting.append((message.request_id, line))
            return b""
        self._open = message.request_id
        return line

    def from_host(self, message: Any) -> list[Any]:
        if isinstance(message, UserMessage):
            return [prompt_of(message)] if message.message.role == "user" else [message]
        if isinstance(message, CONTROL):
            return []  # this message belongs to another dialect
        if isinstance(message, PermissionReply):
            if not message.allow:
                return self._answered({"behavior": "deny", "message": "The user said no."})
            changed = {} if message.updatedInput is None else {"updatedInput": message.updatedInput}
            return self._answered({"behavior": "allow", **changed})
        if isinstance(message, UnknownMessage) and "allow" in message and "type" not in message:
            return self._answered({})  # an answer that cannot be read
        if isinstance(message, InvalidLine):
            words = f"The line is not one JSON object: {message.reason}"
            self._replies.append(encode(_error(words, "invalid_input")))
        return [message]

    def _answered(self, payload: dict[str, Any]) -> list[Any]:
        request_id, self._open = self._open, None
        if self._waiting:
            self._open, line = self._waiting.popleft()
            self._replies.append(line)
        return [] if request_id in (None, _WITHDRAWN) else [ControlResponse.success(request_id, payload)]


def _is_question(message: Any) -> bool:
    return isinstance(message, UnknownMessage) and (message.type, message.subtype) == ("system", "permission_request")


def _frames(message: Any) -> list[dict[str, Any]]:
    """Return the frames for an agent's message, or an empty list if the dialect does not have the message."""
    if isinstance(message, dict):
        return [message]
    if isinstance(message, InitMessage):
        plain = message.to_dict()
        names = ("session_id", "model", "tools", "timestamp")
        return [without_nulls(type="system", subtype="init", **{name: plain.get(name) for name in names})]
    if isinstance(message, AssistantMessage):
        content = assistant_content(message)
        return [{"type": "assistant", "message": {"role": "assistant", "content": content}}] if content else []
    if isinstance(message, UserMessage):
        return [_tool_result(block) for block in tool_results(message)]
    if isinstance(message, ResultMessage):
        return [_result(message)]
    if isinstance(message, SystemErrorMessage):
        code = message.error.code if message.error is not None else "error"
        return [_error(error_text(message), code)]
    return []


def _tool_result(block: dict[str, Any]) -> dict[str, Any]:
    content: list[Any] | str = block.get("content", "")
    result = [{"type": "text", "text": content}] if isinstance(content, str) else content
    one = result[0] if len(result) == 1 else result
    return without_nulls(
        type="tool_result", tool_use_id=block["tool_use_id"], result=one, is_error=block.get("is_error")
    )


def _result(result: ResultMessage) -> dict[str, Any]:
    subtype = "interrupted" if result.cancelled else "success" if result.ok else "error"
    return without_nulls(
        type="result",
        subtype=subtype,
        session_id=result.session_id,
        result=result.result if subtype == "success" else None,
        error=_info(result) if subtype == "error" else None,
        total_cost_usd=result.total_cost_usd,
        duration_ms=result.duration_ms,
        usage=usage_counts(result.usage),
    )


def _info(result: ResultMessage) -> dict[str, str]:
    if result.error is not None:
        code = result.error.code
    else:
        failed = result.to_error()
        code = "auth_error" if isinstance(failed, AuthenticationError) else result.subtype or ""
        code = "budget_exceeded" if isinstance(failed, MaxBudgetError) else code
    return {"message": error_text(result), "code": code}


def _error(words: str, code: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "error", "error": {"message": words, "code": code}}


#: The dialect of an early description of the Claude CLI: the agent asks one question at a time, without an id; SIGINT
#: interrupts a turn.
CLASSIC: Dialect = Dialect(
    "classic",
    _Classic,
    signals=True,
    host_hooks=True,
    busy="each",
    permission="always",
    failed_code=1,
    interrupted_code=130,
    usage_code=2,
)
