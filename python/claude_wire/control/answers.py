"""Answer the other side's control requests.

Both sides use this module: a host, whose callbacks answer the CLI, and an agent, which answers its host.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import Event as Signal
from anyio import get_cancelled_exc_class, sleep

from claude_wire.control.sending import Send, send_quietly
from claude_wire.messages import ControlResponse, UnknownRequest
from claude_wire.protocol.questions import Event, Question, Questions
from claude_wire.streams.tasks import Task, Tasks, cancelled_by_nobody

if TYPE_CHECKING:
    from types import TracebackType

    from claude_wire.messages.base import Wire
    from claude_wire.messages.control.envelopes import RequestId

#: Maximum number of tasks of a session or agent. At this number, the session or agent stops reading until some tasks
#: finish. Each handler is one task (two, if it has a timeout), and so is each answer that is being sent. The limit
#: protects memory if the other side sends endless requests or does not read the answers.
MAX_TASKS = 4096
#: A session or agent also stops reading when its waiting requests and answers reach this size, in bytes of JSON.
MAX_WAITING_BYTES = 64 * 1024 * 1024
#: The ``reason`` of an UnknownRequest whose subtype this version does not know.
UNKNOWN_SUBTYPE = "unknown subtype"
#: Packages whose frames are removed from the beginning of a logged traceback.
_OURS = frozenset(f"claude_wire.{name}" for name in ("agent", "control", "integrations", "streams", "session"))

_log = logging.getLogger("claude_wire")


class Handler(NamedTuple):
    """Answers one kind of request."""

    #: Takes the request's body, and returns the answer's payload or a :class:`Followed`.
    function: Callable[[Any], Awaitable[Wire | dict[str, Any] | Followed]]
    #: Timeout in seconds; None for no limit.
    seconds: float | None
    #: Returns the name of the callback and its subject for logs, such as ``can_use_tool for Bash``.
    name: Callable[[], str]


class Followed(NamedTuple):
    """A handler returns this to do something after its answer was sent."""

    payload: Wire | dict[str, Any] | None
    #: Called after the answer is sent.
    then: Callable[[], object]


class NoAnswer(Exception):
    """A handler raises this to leave its request unanswered."""


class Refusal(Exception):
    """A handler raises this to refuse a request without a log entry. The text becomes the error in the answer.

    Args:
        code: the answer's ``error_code``; None for no code.
    """

    def __init__(self, problem: str, code: str | None = None) -> None:
        super().__init__(problem)
        self.code: str | None = code


class WrongAnswer(TypeError):
    """A handler raises this if its callback returned an invalid value. The text says what to return instead."""


class _Inquiry:
    """The tasks for one question: the handler, and a timer if the handler has a timeout."""

    __slots__ = ("callback", "question", "timer")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.callback: Task | None = None
        self.timer: Task | None = None


class Answers:
    """Answers each request from the other side once, by running a handler in a separate task.

    Handlers start in the order of their requests: each one runs until its first wait before the next one starts. If a
    handler raises or times out, the answer is an error. If a request is withdrawn, its handler is cancelled, and no
    answer is sent.

    Args:
        questions: tracks whether each request is open, answered or withdrawn.
        find: returns the handler for a request's body, or None if there is no handler.
        encode: returns the line for an answer. If it raises for a success, the other side gets an error instead.
    """

    def __init__(
        self,
        questions: Questions,
        find: Callable[[object], Handler | None],
        send: Send,
        tasks: Tasks,
        encode: Callable[[Any], bytes],
    ) -> None:
        self._questions = questions
        self._find = find
        self._send = send
        self._tasks = tasks
        self._encode = encode
        # The questions whose handlers are running.
        self._running: dict[Question, _Inquiry] = {}
        # Requests whose handlers did not start yet, in order. trio starts new tasks in any order, so a task that starts
        # too early puts a signal here and waits for it.
        self._turns: dict[_Inquiry, Signal | None] = {}
        #: Total size in bytes of the requests whose handlers are running, and of the answers that are being sent.
        self.waiting_bytes: int = 0

    def is_full(self) -> bool:
        """True while so many handlers and answers are waiting that the owner must not read more requests."""
        return len(self._tasks) >= MAX_TASKS or self.waiting_bytes >= MAX_WAITING_BYTES

    def answer(self, question: Question) -> None:
        """Answer a question that was just opened."""
        self.waiting_bytes += question.size
        if question.problem:
            self._refuse(question, question.problem)
            return
        body = question.body
        handler = self._find(body)
        if handler is None:
            if isinstance(body, UnknownRequest) and body.reason != UNKNOWN_SUBTYPE:
                self._refuse(question, f"this control request cannot be read: {body.reason}")
                return
            subtype = body.type if isinstance(body, UnknownRequest) else body.__struct_config__.tag
            # The same text as in claude-agent-sdk, and the same error code as in the TypeScript SDK.
            problem = f"Unsupported control request subtype: {subtype}"
            self._refuse(question, problem, "unsupported_request")
            return
        function, seconds, name = handler
        inquiry = self._running[question] = _Inquiry(question)
        _log.debug("request %s received: %s", question.id, type(body).__name__)
        if seconds is not None:
            inquiry.timer = self._tasks.start(lambda: self._overrun(inquiry, seconds, name), "claude-wire-timer")
        self._turns[inquiry] = None

        def ended() -> None:
            if inquiry in self._turns:
                passed()
            self._running.pop(question, None)
            self.waiting_bytes -= question.size

        def passed() -> None:
            """Let the next handler start."""
            self._turns.pop(inquiry, None)
            following = next(iter(self._turns.values()), None)
            if following is not None:
                following.set()

        async def run() -> None:
            if next(iter(self._turns)) is not inquiry:
                turn = self._turns[inquiry] = Signal()
                await turn.wait()
            passed()
            await self._run(inquiry, function, body, name)

        inquiry.callback = self._tasks.start(run, "claude-wire-callback", ended)

    def withdrawn(self, question: Question) -> None:
        """Cancel the handler of a question that the other side withdrew."""
        inquiry = self._running.get(question)
        for task in () if inquiry is None else (inquiry.callback, inquiry.timer):
            if task is not None:
                task.cancel()

    def drop(self) -> None:
        """Cancel all open questions' handlers without sending answers, because another session will answer."""
        for question in self._questions.open:
            self._questions.settle(question, Event.WITHDRAW)
            self.withdrawn(question)

    async def _run(
        self, inquiry: _Inquiry, function: Callable[[Any], Awaitable[Any]], body: Any, name: Callable[[], str]
    ) -> None:
        question = inquiry.question
        then: Callable[[], object] | None = None
        try:
            payload = await function(body)
            if isinstance(payload, Followed):
                payload, then = payload
            line = self._encode(ControlResponse.success(question.id, payload))
        except NoAnswer:
            if self._questions.settle(question, Event.ANSWER) and inquiry.timer is not None:
                inquiry.timer.cancel()
            return
        except asyncio.CancelledError:
            if not question.is_open or not cancelled_by_nobody():
                raise
            # This task was not cancelled, but a future that the callback awaited was. The other side is still waiting.
            line = self._failure(question.id, "the callback was cancelled")
        except Exception as error:
            line, then = self.failure(question.id, error, name), None
        except (GeneratorExit, get_cancelled_exc_class()):  # trio cancels the task because the event loop is ending
            raise
        except BaseException as error:
            # KeyboardInterrupt or SystemExit: send the answer in another task, and let the exception end the loop (see
            # streams/tasks.py).
            if question.is_open:
                line = self._failure(question.id, type(error).__name__)
                self._tasks.start(lambda: self._answer(question, line), "claude-wire-answer")
            raise
        if question.is_open and inquiry.timer is not None:
            inquiry.timer.cancel()
        await self._answer(question, line, then)

    async def _overrun(self, inquiry: _Inquiry, seconds: float, name: Callable[[], str]) -> None:
        await sleep(seconds)
        question = inquiry.question
        if question.is_open and inquiry.callback is not None:
            problem = f"{name()} took longer than {seconds:g} seconds"
            _log.warning("%s", problem)
            line = self._failure(question.id, problem)
            inquiry.callback.cancel()
            await self._answer(question, line)

    def _refuse(self, question: Question, problem: str, code: str | None = None) -> None:
        line = self._failure(question.id, problem, code)

        def ended() -> None:
            self.waiting_bytes -= question.size

        self._tasks.start(lambda: self._answer(question, line), "claude-wire-refusal", ended)

    def failure(self, request_id: RequestId, error: Exception, name: Callable[[], str]) -> bytes:
        """Return the error answer's line for an exception that a handler raised. Unless it is a Refusal, log it."""
        if isinstance(error, Refusal):
            return self._failure(request_id, str(error), error.code)
        if isinstance(error, WrongAnswer):
            _log.warning("%s", error)
        else:
            _log.warning("%s raised %s", name(), type(error).__name__, exc_info=raised_outside(error))
        return self._failure(request_id, _text(error))

    def _failure(self, request_id: RequestId, problem: str, code: str | None = None) -> bytes:
        return self._encode(ControlResponse.failure(request_id, problem, error_code=code))

    async def _answer(self, question: Question, line: bytes, then: Callable[[], object] | None = None) -> None:
        """Send the answer and call ``then``. If the question is already answered or withdrawn, do nothing."""
        if self._questions.settle(question, Event.ANSWER):
            self.waiting_bytes += len(line)
            try:
                if line:
                    await send_quietly(self._send, line)
                    _log.debug("request %s answered", question.id)
            finally:
                self.waiting_bytes -= len(line)
            if then is not None:
                then()


def raised_outside(error: Exception) -> tuple[type[Exception], Exception, TracebackType | None]:
    """Return a value for ``exc_info=`` whose traceback begins at the first frame outside this package."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_globals.get("__package__") in _OURS:
        traceback = traceback.tb_next
    return type(error), error, traceback


def _text(error: Exception) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__
