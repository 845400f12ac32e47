"""Send a control request, wait for its answer, and withdraw the request after a timeout.

Both sides use this module: a host that asks the CLI, and an agent that asks its host.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anyio import Event

from claude_wire.control.sending import Send, send_quietly
from claude_wire.errors import (
    ProcessError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
)
from claude_wire.messages import ControlCancelRequest, ControlError, ControlSuccess
from claude_wire.protocol.requests import SentRequest, SentRequests
from claude_wire.streams.tasks import Tasks
from claude_wire.support.errors import initialize_hint
from claude_wire.support.waiting import move_on_after

_log = logging.getLogger("claude_wire")


class _Wait:
    """A caller's wait for the answer to its request."""

    __slots__ = ("error", "event", "subtype")

    def __init__(self, subtype: str, event: Event) -> None:
        self.subtype = subtype
        self.event = event
        self.error: RequestError | None = None


class Requests:
    """Sends control requests. Each request ends with an answer, an error or a timeout.

    Args:
        sent: assigns each request's id, and finds the request that an answer belongs to.
        encode: returns the line for a message. If it returns ``b""`` because the dialect has no such message, nothing
            is sent. If it raises, :meth:`ask` raises the same exception.
    """

    def __init__(self, sent: SentRequests, send: Send, tasks: Tasks, encode: Callable[[Any], bytes]) -> None:
        self._sent = sent
        self._send = send
        self._tasks = tasks
        self._encode = encode
        self._waits: dict[SentRequest, _Wait] = {}
        # fail() sets this to the reason why no more requests can be sent, and its cause, an exception. None until then.
        self._ended: tuple[str, BaseException | None] | None = None

    @property
    def waiting(self) -> bool:
        """True while a request is waiting for its answer."""
        return bool(self._waits)

    async def ask(
        self, request: Any, seconds: float | None, asked: Callable[[], object] | None = None
    ) -> ControlSuccess:
        """Send a request and wait for its answer. If the caller is cancelled, withdraw the request.

        Args:
            seconds: timeout for the answer; None: no limit.
            asked: called after the request was sent.

        Raises:
            RequestRefusedError: the answer is an error.
            RequestTimeoutError: no answer arrived in time. The request is then withdrawn.
            SessionEndedError: the session or the output ended without an answer.
        """
        subtype: str = request.__struct_config__.tag
        if self._ended is not None:
            raise _ended_error(subtype, *self._ended)
        sent, message = self._sent.begin(request)
        wait = self._waits[sent] = _Wait(subtype, Event())
        try:
            line = self._encode(message)
            with move_on_after(seconds):
                if line:
                    await self._send(line)
                    _log.debug("request %s sent: %s", sent.id, subtype)
                if asked is not None:
                    asked()
                await wait.event.wait()
        except Exception:  # nothing was sent
            wait.event.set()
            raise
        finally:
            del self._waits[sent]
            withdrawal = self._sent.end(sent)
            if not wait.event.is_set():
                self._withdraw(withdrawal)
        if wait.error is not None:
            raise wait.error
        if sent.answer is None:
            _log.debug("request %s timed out: %s", sent.id, subtype)
            raise RequestTimeoutError(subtype, seconds or 0.0)
        answer = sent.answer.response
        if isinstance(answer, ControlSuccess):
            _log.debug("request %s succeeded: %s", sent.id, subtype)
            return answer
        _log.debug("request %s was refused: %s", sent.id, subtype)
        if isinstance(answer, ControlError):
            raise RequestRefusedError(subtype, answer.error, answer.error_code)
        raise RequestRefusedError(subtype, "the answer is neither a success nor an error")

    def line(self, request: Any) -> bytes:
        """Return the line for a request whose answer is ignored."""
        return self._encode(self._sent.envelope(request))

    def answered(self, request: SentRequest) -> None:
        """Wake the caller of a request whose answer arrived."""
        wait = self._waits.get(request)
        if wait is not None:
            wait.event.set()

    def refuse(self, request_id: str, reason: str) -> None:
        """Fail a request that was not delivered. Its caller gets a :class:`~claude_wire.RequestRefusedError`."""
        sent = self._sent.find(request_id)
        wait = None if sent is None else self._waits.get(sent)
        if wait is not None and not wait.event.is_set():
            wait.error = RequestRefusedError(wait.subtype, reason)
            wait.event.set()

    def fail(self, problem: str, cause: BaseException | None = None) -> None:
        """Fail all waiting requests and all later ones, because no answer can arrive."""
        if self._ended is None:
            self._ended = problem, cause
        self.fail_waiting(*self._ended)

    def withdraw_waiting(self) -> list[bytes]:
        """Fail all waiting requests. Return the lines that withdraw them, for the caller to send."""
        lines = [self._encode(ControlCancelRequest(sent.id)) for sent in self._waits]
        self.fail_waiting("the request was withdrawn", None)
        return [line for line in lines if line]

    def fail_waiting(self, problem: str, cause: BaseException | None) -> None:
        """Fail all waiting requests. Later requests are still possible."""
        for wait in self._waits.values():
            if not wait.event.is_set():
                wait.error = _ended_error(wait.subtype, problem, cause)
                wait.event.set()

    def _withdraw(self, withdrawal: ControlCancelRequest) -> None:
        if self._ended is not None:
            return

        line = self._encode(withdrawal)
        if not line:
            return

        async def withdraw() -> None:
            await send_quietly(self._send, line)

        with suppress(RuntimeError):  # the loop ended, and this coroutine is being closed
            self._tasks.start(withdraw, "claude-wire-withdrawal")


def _ended_error(subtype: str, problem: str, cause: BaseException | None) -> SessionEndedError:
    failed = isinstance(cause, ProcessError) and cause.returncode
    why = f"{problem}: {cause}" if failed else problem + initialize_hint(subtype)
    error = SessionEndedError(subtype, why)
    error.__cause__ = cause
    return error
