"""The dialect of JSON-RPC 2.0 with a request ``run``, which gets a response for each message of the turn.

The last response has the ``result`` message, or is an error. This module does not use a library for JSON-RPC, because
libraries expect one response to a request.
"""

# Plain JSON has no types: after isinstance(value, dict), pyright still does not know the type of the values.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import msgspec

from claude_wire.codec.encoder import encode
from claude_wire.dialects.dialect import Dialect
from claude_wire.dialects.frames import as_stream_json, error_text, require_prompt, without_nulls
from claude_wire.dialects.miriad import MiriadConnection, action_of, status_payload
from claude_wire.messages import (
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InvalidLine,
    KeepAlive,
    MessageParam,
    ResultCancelled,
    ResultError,
    ResultMessage,
    StatusMessage,
    SystemErrorMessage,
    TextBlock,
    UnknownMessage,
    UserMessage,
)
from claude_wire.messages.conversation.results import ErrorInfo
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.union import build_message

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
BUSY = -32001
NOT_RUNNING = -32002
CANCELLED = -32003
#: Maximum number of answers to ``cancel`` waiting for the run's result. Further answers are written before the result.
MAX_HELD = 64
#: Action -> JSON-RPC method of a host's request.
_METHODS = {"interrupt": "cancel", "status": "status"}


class _JsonRpc(MiriadConnection):
    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        # For a host: id of an open request -> the request's action, and the number of prompts that had no uuid.
        self._asked: dict[Any, str] = {}
        self._unnamed = 0
        # For an agent: the id of the run under way (None: no run), and the answers that are waiting for its result.
        self._run: Any = None
        self._held: list[bytes] = []

    # --- the host's side

    def to_agent(self, message: Any) -> bytes:
        if isinstance(message, UserMessage):
            return self._run_line(message)
        if isinstance(message, ControlCancelRequest):
            return b""
        action = action_of(self, message)
        line = encode({"jsonrpc": "2.0", "id": message.request_id, "method": _METHODS[action]})
        self._asked[message.request_id] = action
        return line

    def _run_line(self, prompt: UserMessage) -> bytes:
        require_prompt(self, prompt, TextBlock)
        params = without_nulls(prompt=prompt.text, session_id=prompt.session_id or None)
        run_id = prompt.uuid
        if not run_id:
            self._unnamed += 1
            run_id = f"run-{self._unnamed}"
        return encode({"jsonrpc": "2.0", "id": run_id, "method": "run", "params": params})

    def from_agent(self, message: Any) -> list[Any]:
        if not isinstance(message, UnknownMessage) or "jsonrpc" not in message:
            return [as_stream_json(message)]
        given, failed = message.get("result"), message.get("error")
        if message.get("method") == "message":
            given = message.get("params")
        elif "method" not in message and _is_id(message.get("id")) and message["id"] in self._asked:
            return [self._answered(message["id"], given, failed)]
        named = [message["id"]] if isinstance(message.get("id"), str) else None
        if isinstance(failed, dict):
            return [_failure(message, failed, named)]
        if not isinstance(given, dict):
            return [message]
        meant = as_stream_json(build_message(given, Findings()))
        if named and isinstance(meant, ResultMessage) and meant.user_message_uuids is None:
            meant = msgspec.structs.replace(meant, user_message_uuids=named)
        return [meant]

    def _answered(self, request_id: Any, given: Any, failed: Any) -> ControlResponse:
        action = self._asked.pop(request_id)
        if isinstance(failed, dict):
            code, words = failed.get("code"), failed.get("message")
            if action == "interrupt" and code == NOT_RUNNING:
                return ControlResponse.success(request_id, {})
            return ControlResponse.failure(request_id, words if isinstance(words, str) else "", error_code=str(code))
        status = build_message(given, Findings()) if isinstance(given, dict) else None
        payload = status_payload(status) if action == "status" and isinstance(status, StatusMessage) else {}
        return ControlResponse.success(request_id, payload)

    # --- the agent's side

    def to_host(self, message: Any) -> bytes:
        if isinstance(message, ControlRequest):
            raise self.cannot_ask(message)
        if isinstance(message, ControlResponse):
            return self._answer(message)
        if isinstance(message, SystemErrorMessage) and self._run is None:
            return _error_line(None, INTERNAL_ERROR, error_text(message))
        run = self._run
        lines = b"".join(_response(run, frame) for frame in self._frames(message)) if run is not None else b""
        if isinstance(message, ResultMessage):
            self._run = None
            lines += b"".join(self._held)
            self._held.clear()
        return lines

    def _answer(self, response: ControlResponse) -> bytes:
        action, request_id = self._open.pop(response.request_id, ("", None))
        if not action:
            return b""
        if not response.ok:
            return _error_line(request_id, INTERNAL_ERROR, getattr(response.response, "error", ""))
        status = {"type": "system", "subtype": "status"}
        if action == "status":
            running = bool(response.payload.get("running"))
            return _response(request_id, {**status, "running": running, **without_nulls(session_id=self._session_id)})
        line = _response(request_id, {**status, "running": False})
        if self._run is None or len(self._held) >= MAX_HELD:
            return line
        self._held.append(line)
        return b""

    def from_host(self, message: Any) -> list[Any]:
        if isinstance(message, KeepAlive):
            return []
        if isinstance(message, InvalidLine):
            return self._refuse(None, PARSE_ERROR, f"Parse error: {message.reason}")
        if not isinstance(message, UnknownMessage) or message.get("jsonrpc") != "2.0":
            return self._refuse(None, INVALID_REQUEST, "Invalid request: jsonrpc must be 2.0")
        request_id, method, params = message.get("id"), message.get("method"), message.get("params")
        if not _is_id(request_id) or not isinstance(method, str):
            return self._refuse(None, INVALID_REQUEST, "Invalid request: it needs an id and a method")
        if method == "run":
            return self._begin(request_id, params if isinstance(params, dict) else {})
        if method == "status":
            return [self._request("status", request_id)]
        if method != "cancel":
            return self._refuse(request_id, METHOD_NOT_FOUND, f"Method not found: {method[:64]}")
        if self._run is None:
            return self._refuse(request_id, NOT_RUNNING, "No run is in progress")
        return [self._request("interrupt", request_id)]

    def _begin(self, request_id: Any, params: dict[str, Any]) -> list[Any]:
        prompt, session_id = params.get("prompt"), params.get("session_id")
        if not isinstance(prompt, str) or not isinstance(session_id, (str, type(None))):
            return self._refuse(request_id, INVALID_PARAMS, "Invalid params: prompt must be a string")
        if self._run is not None:
            data = {"currentRequestId": self._run}
            return self._refuse(request_id, BUSY, "A run is already in progress", data)
        self._run = request_id
        return [UserMessage(message=MessageParam("user", prompt), session_id=session_id or None)]

    def _refuse(self, request_id: Any, code: int, words: str, data: Any = None) -> list[Any]:
        self._replies.append(_error_line(request_id, code, words, data))
        return []


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _response(request_id: Any, frame: dict[str, Any]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": frame})


def _error_line(request_id: Any, code: int, words: str, data: Any = None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": without_nulls(code=code, message=words, data=data)})


def _failure(message: UnknownMessage, failed: dict[str, Any], named: list[str] | None) -> Any:
    """Return the message for an error response to a run, or for an error response without an id."""
    code, words = failed.get("code"), failed.get("message")
    info = ErrorInfo(message=words if isinstance(words, str) else "", code=str(code))
    if message.get("id") is None:
        return SystemErrorMessage(message=info.message, error=info)
    if code == CANCELLED:
        return ResultCancelled(is_error=False, user_message_uuids=named)
    return ResultError(is_error=True, error=info, user_message_uuids=named)


#: The older interface of miriad-code.
JSON_RPC: Dialect = Dialect("json-rpc", _JsonRpc, has_status=True, busy="refuse", names_session=True)
