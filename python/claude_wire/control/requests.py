"""The half of the control protocol that asks: requests that we send, and the answers to them.

Knows the envelopes of control messages, and which answer belongs to which request; not what is asked, nor where lines
come from and go to. It does not mind which side of the protocol it is on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anyio import Event

from claude_wire.codec.encoder import encode
from claude_wire.control.sending import Send, send_quietly
from claude_wire.errors import (
    ProcessError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
)
from claude_wire.errors.base import initialize_hint
from claude_wire.io.tasks import Tasks
from claude_wire.messages import ControlCancelRequest, ControlError, ControlRequest, ControlResponse, ControlSuccess
from claude_wire.support.waiting import move_on_after

__all__ = ["Requests"]

_log = logging.getLogger("claude_wire")


class _Question:
    """A request that waits for its answer."""

    __slots__ = ("answer", "error", "event", "subtype")

    def __init__(self, subtype: str, event: Event) -> None:
        self.subtype = subtype
        self.event = event
        self.answer: ControlResponse | None = None
        self.error: RequestError | None = None


class Requests:
    """Our requests: each has an id of its own and gets one answer, an error, or none in its time.

    Args:
        encode: makes the line of an envelope, or nothing if the other side is not told. What it raises, the asker gets.
    """

    def __init__(self, send: Send, tasks: Tasks, encode: Callable[[Any], bytes] = encode) -> None:
        self._send = send
        self._tasks = tasks
        self._encode = encode
        # Ids must be unique among all that this side has open; another session may use the same transport later.
        self._prefix = os.urandom(6).hex()
        self._count = 0
        self._open: dict[str, _Question] = {}
        # Why nothing can be asked any more, once that is so.
        self._ended: tuple[str, BaseException | None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether any answer is waited for."""
        return bool(self._open)

    async def ask(
        self, request: Any, subtype: str, seconds: float | None, asked: Callable[[], object] | None = None
    ) -> ControlSuccess:
        """Send the request and wait for its answer; ``asked`` is called when it has been sent.

        Args:
            seconds: to wait for the answer; None for as long as it takes.

        Raises:
            RequestRefusedError: the answer is an error.
            RequestTimeoutError: it did not come in time. The request is withdrawn then, as it is when the caller is
                cancelled.
            SessionEndedError: it will not come any more.
        """
        if self._ended is not None:
            raise _ended_error(subtype, *self._ended)
        request_id, line = self._new(request)
        question = self._open[request_id] = _Question(subtype, Event())
        try:
            with move_on_after(seconds):
                if line:
                    await self._send(line)
                    _log.debug("request %s sent: %s", request_id, subtype)
                if asked is not None:
                    asked()
                await question.event.wait()
        except Exception:  # nothing was sent
            question.event.set()
            raise
        finally:
            del self._open[request_id]
            if not question.event.is_set():
                self._withdraw(request_id)
        if question.error is not None:
            raise question.error
        if question.answer is None:
            _log.debug("request %s timed out: %s", request_id, subtype)
            raise RequestTimeoutError(subtype, seconds or 0.0)
        answer = question.answer.response
        if isinstance(answer, ControlSuccess):
            _log.debug("request %s succeeded: %s", request_id, subtype)
            return answer
        _log.debug("request %s was refused: %s", request_id, subtype)
        if isinstance(answer, ControlError):
            raise RequestRefusedError(subtype, answer.error, answer.error_code)
        raise RequestRefusedError(subtype, "the answer is neither a success nor an error")

    def line(self, request: Any) -> bytes:
        """The line of a request whose answer says nothing."""
        return self._new(request)[1]

    def resolve(self, response: ControlResponse) -> None:
        """Give an answer to whoever waits for it. One that nobody waits for any more is dropped."""
        request_id = response.request_id  # a string, as all ids of ours are
        question = self._open.get(request_id) if isinstance(request_id, str) else None
        if question is not None and not question.event.is_set():
            question.answer = response
            question.event.set()

    def refuse(self, request_id: str, reason: str) -> None:
        """A request goes nowhere, so its answer will not come: whoever waits for it is told why."""
        question = self._open.get(request_id)
        if question is not None and not question.event.is_set():
            question.error = RequestRefusedError(question.subtype, reason)
            question.event.set()

    def fail(self, problem: str, cause: BaseException | None = None) -> None:
        """No answer will come any more, and no request is sent: it fails for all who wait, and for all who come."""
        if self._ended is None:
            self._ended = problem, cause
        self.fail_waiting(*self._ended)

    def withdraw_waiting(self) -> list[bytes]:
        """Nobody who waits now gets an answer. Returns the lines that tell the other side, for the caller to send."""
        lines = [self._encode(ControlCancelRequest(request_id)) for request_id in self._open]
        self.fail_waiting("the request was withdrawn", None)
        return [line for line in lines if line]

    def fail_waiting(self, problem: str, cause: BaseException | None) -> None:
        """Nobody who waits now gets an answer."""
        for question in self._open.values():
            if not question.event.is_set():
                question.error = _ended_error(question.subtype, problem, cause)
                question.event.set()

    def _new(self, request: Any) -> tuple[str, bytes]:
        self._count += 1
        request_id = f"{self._prefix}-{self._count}"
        return request_id, self._encode(ControlRequest(request_id, request))

    def _withdraw(self, request_id: str) -> None:
        if self._ended is not None:
            return

        line = self._encode(ControlCancelRequest(request_id))
        if not line:
            return

        async def withdraw() -> None:
            await send_quietly(self._send, line)

        with suppress(RuntimeError):  # the loop has ended, and the caller's coroutine is closed
            self._tasks.start(withdraw, "claude-wire-withdrawal")


def _ended_error(subtype: str, problem: str, cause: BaseException | None) -> SessionEndedError:
    failed = isinstance(cause, ProcessError) and cause.returncode
    why = f"{problem}: {cause}" if failed else problem + initialize_hint(subtype)
    error = SessionEndedError(subtype, why)
    error.__cause__ = cause
    return error
