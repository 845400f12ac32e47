"""The half of the control protocol that answers: requests of the other side, and our answers to them.

Knows the envelopes of control messages, and which answer belongs to which request; not what is asked, nor where lines
come from and go to. It does not mind which side of the protocol it is on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import Event, get_cancelled_exc_class, sleep
from msgspec import UNSET

from claude_wire.codec.encoder import encode
from claude_wire.control.sending import Send, send_quietly
from claude_wire.errors import EncodeError
from claude_wire.io.tasks import Task, Tasks, cancelled_by_nobody
from claude_wire.messages import ControlRequest, ControlResponse, UnknownRequest
from claude_wire.support.ids import Ids, Key, key_of

if TYPE_CHECKING:
    from types import TracebackType

    from claude_wire.messages.base import Wire
    from claude_wire.messages.control.envelopes import RequestId

__all__ = ["Answers", "Followed", "Handler", "NoAnswer", "Refusal", "WrongAnswer", "raised_outside"]

#: Why a request is unknown whose subtype no table lists.
UNKNOWN_SUBTYPE = "unknown subtype"
#: The most requests that wait for their answers at a time. A session stops reading long before that. But one line may
#: bring any number of requests: the answer to ``initialize`` lists those that were open before.
MAX_OPEN = 8192

#: The packages whose frames a traceback in a log begins without.
_OURS = frozenset(f"claude_wire.{name}" for name in ("agent", "control", "integrations", "io", "session"))

_log = logging.getLogger("claude_wire")


class Handler(NamedTuple):
    """How one request is answered."""

    #: From the body of the request to the payload of its answer, or to a :class:`Followed`.
    function: Callable[[Any], Awaitable[Wire | dict[str, Any] | Followed]]
    #: The seconds that it may take; None for as long as it takes.
    seconds: float | None
    #: Gives the name in logs: the callback, and what it is asked about.
    name: Callable[[], str]


class Followed(NamedTuple):
    """What a handler returns that has something to do behind its answer."""

    payload: Wire | dict[str, Any] | None
    #: Called when the answer has been sent.
    then: Callable[[], object]


class NoAnswer(Exception):
    """Raised by a handler whose request is to stay unanswered."""


class Refusal(Exception):
    """Raised by a handler whose request fails by no fault of ours; its text is the error answer.

    Args:
        code: the ``error_code`` of the answer.
    """

    def __init__(self, problem: str, code: str | None = None) -> None:
        super().__init__(problem)
        self.code: str | None = code


class WrongAnswer(TypeError):
    """Raised by a handler whose callback returned no answer. The text says what it returned, and what to return."""


class _Inquiry:
    """A request that is not answered yet, its size in bytes, and the tasks that belong to it.

    A request without an id has an answer without an id, as the CLI gives it. It cannot be withdrawn, nor recognised
    when it comes again.
    """

    __slots__ = ("callback", "id", "key", "size", "timer")

    def __init__(self, request_id: RequestId) -> None:
        self.id = request_id
        self.key: Key | _Inquiry = self if request_id is None or request_id is UNSET else key_of(request_id)
        self.callback: Task | None = None
        self.timer: Task | None = None
        self.size = 0


class Answers:
    """The requests of the other side: each is answered once, by a handler that runs in a task of its own.

    Handlers begin in the order of their requests, up to where each first waits. One that raises, or overruns its time,
    is an error answer. A request that is withdrawn cancels its handler and has no answer.

    Args:
        find: gives the handler for what a request asks for, or None if there is none.
        encode: makes the line of an answer. What it raises for a success is an error answer.
        remembers: whether a request with the id of one that was answered is the same, delivered again. Otherwise it is
            another one.
    """

    def __init__(
        self,
        find: Callable[[object], Handler | None],
        send: Send,
        tasks: Tasks,
        encode: Callable[[Any], bytes] = encode,
        *,
        remembers: bool = True,
    ) -> None:
        self._find = find
        self._remembers = remembers
        self._send = send
        self._tasks = tasks
        self._encode = encode
        # By their keys; those without an id by themselves.
        self._open: dict[Key | _Inquiry, _Inquiry] = {}
        # Requests whose handlers have not begun, in order, and what each waits for that has come before its turn. trio
        # runs new tasks in any order.
        self._turns: dict[_Inquiry, Event | None] = {}
        # The last ones that are answered, or withdrawn: a second delivery is not answered again.
        self._settled = Ids()
        self._told_of_most = False
        #: Bytes of the requests whose tasks have not ended, and of the answers that wait to be written, as JSON.
        self.waiting_bytes: int = 0

    def take(self, request: ControlRequest) -> None:
        """Answer a request, unless it is or was being answered, or too many are."""
        # Nobody knows the size of one line of a decoded block. Encoding takes 0.4 µs for 200 bytes, 3 µs for 10,000.
        try:
            inquiry = self._begin(request.request_id, lambda: len(encode(request)))
        except EncodeError:  # as deeply nested as could just be decoded
            self.refuse(request.request_id, "this control request is nested too deeply")
            return
        if inquiry is None:
            return
        body = request.request
        handler = self._find(body)
        if handler is None:
            if isinstance(body, UnknownRequest) and body.reason != UNKNOWN_SUBTYPE:
                self._refuse(inquiry, f"this control request cannot be read: {body.reason}")
                return
            subtype = body.type if isinstance(body, UnknownRequest) else body.__struct_config__.tag
            # The words of claude-agent-sdk, and the code of the TypeScript one.
            problem = f"Unsupported control request subtype: {subtype}"
            self._refuse(inquiry, problem, "unsupported_request")
            return
        function, seconds, name = handler
        _log.debug("request %s received: %s", inquiry.id, type(body).__name__)
        if seconds is not None:
            inquiry.timer = self._tasks.start(lambda: self._overrun(inquiry, seconds, name), "claude-wire-timer")
        self._turns[inquiry] = None

        def ended() -> None:
            if inquiry in self._turns:
                passed()
            self.waiting_bytes -= inquiry.size

        def passed() -> None:
            """The handler has begun, or never will: the next one may begin."""
            self._turns.pop(inquiry, None)
            following = next(iter(self._turns.values()), None)
            if following is not None:
                following.set()

        async def run() -> None:
            if next(iter(self._turns)) is not inquiry:
                turn = self._turns[inquiry] = Event()
                await turn.wait()
            passed()
            await self._run(inquiry, function, body, name)

        inquiry.callback = self._tasks.start(run, "claude-wire-callback", ended)

    def refuse(self, request_id: RequestId, problem: str) -> None:
        """Answer a request that cannot be read with an error."""
        inquiry = self._begin(request_id, lambda: len(request_id) if isinstance(request_id, str) else 0)
        if inquiry is not None:
            self._refuse(inquiry, problem)

    def withdraw(self, request_id: RequestId) -> None:
        """The other side no longer wants an answer."""
        if request_id is None or request_id is UNSET:
            return
        inquiry = self._open.get(key_of(request_id))
        if inquiry is not None:
            self._drop(inquiry)

    def drop(self) -> None:
        """Somebody else answers what is open."""
        for inquiry in list(self._open.values()):
            self._drop(inquiry)

    def _drop(self, inquiry: _Inquiry) -> None:
        self._end(inquiry)
        for task in (inquiry.callback, inquiry.timer):
            if task is not None:
                task.cancel()

    async def _run(
        self, inquiry: _Inquiry, function: Callable[[Any], Awaitable[Any]], body: Any, name: Callable[[], str]
    ) -> None:
        then: Callable[[], object] | None = None
        try:
            payload = await function(body)
            if isinstance(payload, Followed):
                payload, then = payload
            line = self._encode(ControlResponse.success(inquiry.id, payload))
        except NoAnswer:
            if self._end(inquiry) and inquiry.timer is not None:
                inquiry.timer.cancel()
            return
        except asyncio.CancelledError:
            if not self._is_open(inquiry) or not cancelled_by_nobody():
                raise
            # What the callback waited for was cancelled. The other side waits for an answer all the same.
            line = self._failure(inquiry.id, "the callback was cancelled")
        except Exception as error:
            line, then = self.failure(inquiry.id, error, name), None
        except (GeneratorExit, get_cancelled_exc_class()):  # trio's, whose loop ends
            raise
        except BaseException as error:
            # Out of here nobody can answer any more. What becomes of it is said in _tasks.
            if self._is_open(inquiry):
                line = self._failure(inquiry.id, type(error).__name__)
                self._tasks.start(lambda: self._answer(inquiry, line), "claude-wire-answer")
            raise
        if self._is_open(inquiry) and inquiry.timer is not None:
            inquiry.timer.cancel()
        await self._answer(inquiry, line, then)

    async def _overrun(self, inquiry: _Inquiry, seconds: float, name: Callable[[], str]) -> None:
        await sleep(seconds)
        if self._is_open(inquiry) and inquiry.callback is not None:
            problem = f"{name()} took longer than {seconds:g} seconds"
            _log.warning("%s", problem)
            line = self._failure(inquiry.id, problem)
            inquiry.callback.cancel()
            await self._answer(inquiry, line)

    def _begin(self, request_id: RequestId, size: Callable[[], int]) -> _Inquiry | None:
        inquiry = _Inquiry(request_id)
        if inquiry.key in self._open or self._settled.has_key(inquiry.key):
            return None
        if len(self._open) >= MAX_OPEN:
            if not self._told_of_most:
                self._told_of_most = True
                _log.warning("requests above %d that wait at a time are not answered", MAX_OPEN)
            return None
        inquiry.size = size()
        self._open[inquiry.key] = inquiry
        self.waiting_bytes += inquiry.size
        return inquiry

    def _is_open(self, inquiry: _Inquiry) -> bool:
        return self._open.get(inquiry.key) is inquiry

    def _refuse(self, inquiry: _Inquiry, problem: str, code: str | None = None) -> None:
        line = self._failure(inquiry.id, problem, code)

        def ended() -> None:
            self.waiting_bytes -= inquiry.size

        self._tasks.start(lambda: self._answer(inquiry, line), "claude-wire-refusal", ended)

    def _end(self, inquiry: _Inquiry) -> bool:
        """The request is answered, or withdrawn. Returns false if it was one of them before."""
        if not self._is_open(inquiry):
            return False
        del self._open[inquiry.key]
        if self._remembers and not isinstance(inquiry.key, _Inquiry):
            self._settled.add_key(inquiry.key)
        return True

    def failure(self, request_id: RequestId, error: Exception, name: Callable[[], str]) -> bytes:
        """The error answer for what a handler has raised. The log gets it, too, unless it is a refusal."""
        if isinstance(error, Refusal):
            return self._failure(request_id, str(error), error.code)
        if isinstance(error, WrongAnswer):
            _log.warning("%s", error)
        else:
            _log.warning("%s raised %s", name(), type(error).__name__, exc_info=raised_outside(error))
        return self._failure(request_id, _text(error))

    def _failure(self, request_id: RequestId, problem: str, code: str | None = None) -> bytes:
        return self._encode(ControlResponse.failure(request_id, problem, error_code=code))

    async def _answer(self, inquiry: _Inquiry, line: bytes, then: Callable[[], object] | None = None) -> None:
        """Send the answer, and do what follows it, unless there was one or none is wanted any more."""
        if self._end(inquiry):
            self.waiting_bytes += len(line)
            try:
                if line:
                    await send_quietly(self._send, line)
                    _log.debug("request %s answered", inquiry.id)
            finally:
                self.waiting_bytes -= len(line)
            if then is not None:
                then()


def raised_outside(error: Exception) -> tuple[type[Exception], Exception, TracebackType | None]:
    """An exception for a log, with its traceback from where it leaves this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_globals.get("__package__") in _OURS:
        traceback = traceback.tb_next
    return type(error), error, traceback


def _text(error: Exception) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__
