"""Tasks without a task group, on asyncio and trio, for work that outlives the call that starts it.

The object that creates a :class:`Task` owns the task, must keep a reference to it, and cancels it if it does not end.
When an asyncio loop is gone, its tasks are garbage collected with their owners, and nothing is logged.

=======================================  ===========================================================================
the task's function                      effect
=======================================  ===========================================================================
returns, or :meth:`Task.cancel` ends it  nothing
is cancelled because its loop ends       nothing: ``asyncio.run`` and trio cancel the tasks that are still running
is closed because its loop is gone       nothing; an ``Exception`` other than ``RuntimeError`` is logged as below
raises an ``Exception``                  logged as an error, with its type in the message
raises ``KeyboardInterrupt`` or          asyncio: propagates to the event loop, as from any task, and ends the loop.
``SystemExit``                           trio: logged, and the program continues, because a system task that raises
                                         would end trio with ``TrioInternalError``
raises another ``BaseException``         logged as an error
=======================================  ===========================================================================
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anyio import Event, get_cancelled_exc_class

from claude_wire.support.waiting import cancel_scope, closing_coroutine, move_on_after, running_trio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

_current: contextvars.ContextVar[Task | None] = contextvars.ContextVar("claude_wire_task", default=None)


class EventLoopRef:
    """A weak reference to the running event loop, for objects that may outlive their loop.

    Raises:
        RuntimeError: no event loop is running.
    """

    __slots__ = ("_loop", "_pid", "_token")

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop: Any = None
        self._token: Any = None
        if running_trio():
            import trio

            self._token = trio.lowlevel.current_trio_token()
        else:
            import asyncio

            self._loop = weakref.ref(asyncio.get_running_loop())

    @property
    def foreign(self) -> bool:
        """True in a forked child, which must not use its parent's loop."""
        return os.getpid() != self._pid

    @property
    def gone(self) -> bool:
        """True if the loop will never run again."""
        if self._loop is None:
            return not self.call_soon(lambda: None)
        loop = self._loop()
        return loop is None or loop.is_closed()

    def runs_here(self) -> bool:
        try:
            if running_trio():
                import trio

                return self._token is trio.lowlevel.current_trio_token()
            import asyncio

            return self._loop is not None and self._loop() is asyncio.get_running_loop()
        except RuntimeError:
            return False

    def call_soon(self, function: Callable[[], object]) -> bool:
        """Make the loop call a function soon. Any thread may call this.

        Returns:
            False if the loop is not running, so it will not call the function.
        """
        try:
            if self._loop is None:
                self._token.run_sync_soon(function)
            else:
                loop = self._loop()
                if loop is None or not loop.is_running():
                    return False
                loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop just ended
            return False
        return True

    async def can_wait(self) -> bool:
        """Return True if the caller may await. False while its coroutine is being closed, because no task runs it."""
        try:
            EventLoopRef()
        except RuntimeError:
            return False
        if not closing_coroutine():
            return True
        if not self.runs_here():
            return False
        if self._loop is not None:
            # An asynchronous generator that is being closed may await, but a garbage collected task's coroutine may
            # not: it ends at this sleep. Otherwise it would enter a cancel scope, which anyio would attribute to
            # whichever task is running.
            import asyncio

            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return True


def set_event(event: Event) -> None:
    """Set an event, even if a waiting task's loop is closed."""
    with suppress(RuntimeError):  # the loop is closed
        event.set()


def cancelled_by_nobody() -> bool:
    """Return True if the caller caught the cancellation of a future that it awaited, not of its own task.

    This only happens on asyncio, and only Python 3.11 and later can detect it. On Python 3.10 the result is False.
    """
    if running_trio():
        return False
    import asyncio

    task = asyncio.current_task()
    return getattr(task, "cancelling", lambda: 1)() == 0


def current_task() -> Task | None:
    """Return the :class:`Task` that runs the caller, directly or in another task that it started; else None."""
    return _current.get()


class Task:
    """Runs ``function()`` in a task without a task group, with the caller's context variables.

    Keep a reference to the object, because asyncio garbage collects a task without one. Call its methods in its event
    loop's thread, from any task.

    Args:
        function: runs in the task.
        name: name for logs and debuggers. None: the function's name.
        then: called with the task when it ends. If the loop starts tasks eagerly, this may happen before the
            constructor returns.

    Raises:
        RuntimeError: no event loop is running, or trio's loop is about to end and does not accept new system tasks.
    """

    __slots__ = ("_asyncio_task", "_cancelled", "_done", "_event", "_holds", "_on_trio", "_scope", "_then", "name")

    def __init__(
        self,
        function: Callable[[], Coroutine[Any, Any, None]],
        name: str | None = None,
        then: Callable[[Task], object] | None = None,
    ) -> None:
        self.name: str = getattr(function, "__qualname__", type(function).__name__) if name is None else name
        self._then = then
        self._on_trio = running_trio()
        self._scope = cancel_scope(on_trio=self._on_trio)
        self._done = False
        # The number of cancelled_later() blocks that are open.
        self._holds = 0
        # True after cancel() was called.
        self._cancelled = False
        # The only strong reference to the asyncio task; the loop has only a weak one. None on trio, and after the end.
        self._asyncio_task: Any = None
        # Set when the task ends; None before the first wait().
        self._event: Event | None = None
        self._start(function)

    def __repr__(self) -> str:
        return f"<Task {self.name!r}, {'ended' if self.done else 'running'}>"

    @property
    def done(self) -> bool:
        """True if the task ended. A cancelled task may still run for a while."""
        return self._done

    def cancel(self) -> None:
        """Cancel the task with an anyio cancel scope, which interrupts every await except within a shield.

        A task that has not started yet then never calls its function. If the task already ended, this does nothing. A
        task within :meth:`cancelled_later` is cancelled at the end of that block. The call does not wait.
        """
        self._cancelled = True
        if not self._holds:
            self._scope.cancel()

    def interrupt(self) -> None:
        """Cancel the task with ``asyncio.Task.cancel()``, so its cleanup may await. On trio, see :meth:`cancel`."""
        if self._asyncio_task is None:
            self.cancel()
        elif not self._done:
            self._asyncio_task.cancel()

    @contextlib.contextmanager
    def cancelled_later(self) -> Generator[None, None, None]:
        """Return a context manager that delays :meth:`cancel` until its end. Other cancellations still interrupt it."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._cancelled:
                self.cancel()

    def abandon(self) -> None:
        """Close the task's coroutine. Call this only if its loop is not running."""
        if self._asyncio_task is not None and not self._done:
            with suppress(RuntimeError, ValueError):  # the function ignores GeneratorExit or is running
                self._asyncio_task.get_coro().close()
            self._end()  # _run() also calls it, but not if the task never started

    async def wait(self) -> None:
        """Wait until the task ends. Never raise its exception. Cancelling the wait does not cancel the task."""
        if not self._done:
            if self._event is None:
                self._event = Event()
            await self._event.wait()

    def _start(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._on_trio:
            import trio

            passed = GeneratorExit, trio.Cancelled
            context = contextvars.copy_context()
            trio.lowlevel.spawn_system_task(self._run, function, passed, name=self.name, context=context)
            return
        import asyncio

        loop = asyncio.get_running_loop()
        run = self._run(function, (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit))
        task: Any = loop.create_task(run, name=self.name)
        if not self._done:  # an eager task may have ended already
            self._asyncio_task = task
        # asyncio would log a task that is garbage collected while it is waiting. Here this is not an error, because the
        # task's loop is gone.
        try:
            task._log_destroy_pending = False
        except AttributeError:  # a task factory may return another type of task
            pass

        def ended(task: asyncio.Task[None]) -> None:
            self._asyncio_task = None
            self._end()  # if the loop cancelled the task before its first step, _run() has not called _end()
            if not task.cancelled():
                task.exception()  # marks the exception as seen; the loop raised it, so asyncio must not log it

        task.add_done_callback(ended)

    async def _run(
        self, function: Callable[[], Coroutine[Any, Any, None]], passed: tuple[type[BaseException], ...]
    ) -> None:
        try:
            _current.set(self)
            with self._scope:
                if not self._scope.cancel_called:
                    await function()
        except passed:
            raise
        except BaseException as error:
            if not (isinstance(error, RuntimeError) and self._is_closed()):
                self._log(error)
        finally:
            self._end()

    def _end(self) -> None:
        if not self._done:
            self._done = True
            if self._event is not None:
                set_event(self._event)
            then, self._then = self._then, None  # break a reference cycle: `then` may refer to this task
            if then is not None:
                try:
                    then(self)
                except RuntimeError:
                    if not self._is_closed():
                        raise

    def _is_closed(self) -> bool:
        """True if the coroutine is being closed because its task was garbage collected."""
        if self._asyncio_task is None:
            return False
        import asyncio

        try:
            return self._asyncio_task.get_loop() is not asyncio.get_running_loop()
        except RuntimeError:
            return True

    def _log(self, error: BaseException) -> None:
        left: BaseException | None = error
        if split := getattr(error, "split", None):  # an exception group, which may also hold cancellations
            left = split(get_cancelled_exc_class())[1]
        if left is not None:
            logging.getLogger("claude_wire").error(
                "the task %s raised %s", self.name, type(left).__name__, exc_info=left
            )


class Tasks:
    """A group of tasks in one event loop. Their owner cancels them together."""

    def __init__(self) -> None:
        self._tasks: set[Task] = set()
        self._home: EventLoopRef | None = None
        self._closed = False
        self._context = contextvars.copy_context()

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def current(self) -> Task | None:
        """:func:`current_task` if it is one of these tasks and has not ended yet; else None."""
        task = current_task()
        return task if task in self._tasks else None

    def remember_context(self) -> None:
        """From now on, start tasks with the caller's context variables.

        Otherwise a task would inherit them from whichever task happens to read the request.
        """
        self._context = contextvars.copy_context()

    def start(
        self, function: Callable[[], Coroutine[Any, Any, None]], name: str, then: Callable[[], object] | None = None
    ) -> Task:
        """Run ``function()`` in a new task. Call ``then`` when the task ends, even if it never started.

        Raises:
            RuntimeError: no event loop is running, or not the one that runs the first task.
        """
        if self._home is None:
            self._home = EventLoopRef()
        elif not self._home.runs_here():
            raise RuntimeError("a task cannot be started outside of its event loop")

        def ended(task: Task) -> None:
            self._tasks.discard(task)
            if then is not None:
                then()

        task = self._context.copy().run(Task, function, name, ended)
        if not task.done:
            self._tasks.add(task)
        if self._closed:
            task.cancel()
        return task

    def cancel(self) -> None:
        """Cancel all tasks, including tasks that are started later."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    def abandon(self) -> None:
        """Close all tasks' coroutines, to release their references. Call this only if their loop is not running."""
        self._closed = True
        for task in list(self._tasks):
            task.abandon()

    async def wait(self, seconds: float) -> None:
        """Wait for at most ``seconds`` until all tasks except the caller's end. Log tasks that are still running."""
        others = self._tasks - {current_task()}
        with move_on_after(seconds):
            for task in others:
                await task.wait()
        left = [task.name for task in others if not task.done]
        if left:
            names = ", ".join(sorted(set(left)))
            logging.getLogger("claude_wire").warning(
                "%d tasks did not end in %g seconds: %s", len(left), seconds, names
            )
