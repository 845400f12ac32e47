"""Tasks that belong to no task group, since they live from one call to another, on asyncio and trio.

Knows event loops; not what tasks do. Whoever makes a :class:`Task` owns it and keeps it: the task ends by itself,
or its owner cancels it. If a loop of asyncio is gone, the task is collected with its owner, and nothing is logged.

=======================================  ===========================================================================
what the function of a task does         what becomes of it
=======================================  ===========================================================================
returns, or is cancelled by its task     nothing
is cancelled because its loop ends       nothing: ``asyncio.run`` cancels all tasks, and trio its system tasks
is closed, since its loop is gone        nothing; an ``Exception`` other than ``RuntimeError`` is logged as below
raises an ``Exception``                  logged as an error, with its type in the message
raises ``KeyboardInterrupt`` or          asyncio: leaves through the event loop, as out of any task, and ends it.
``SystemExit``                           trio: logged, and the program goes on. Nothing can raise it in trio's main
                                         task, and a system task that raises ends trio with ``TrioInternalError``
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

__all__ = ["EventLoopRef", "Task", "Tasks", "cancelled_by_nobody", "current_task", "set_event"]

_current: contextvars.ContextVar[Task | None] = contextvars.ContextVar("claude_wire_task", default=None)


class EventLoopRef:
    """The event loop in which this was made. Tells objects that may outlive their loop whether it still runs.

    Raises:
        RuntimeError: no event loop runs.
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
        """Whether this is the copy in a forked child. The loop is the parent's, and nothing of it may be touched."""
        return os.getpid() != self._pid

    @property
    def gone(self) -> bool:
        """Whether nothing will ever run in it again."""
        if self._loop is None:
            return not self.call_soon(lambda: None)
        loop = self._loop()
        return loop is None or loop.is_closed()

    def runs_here(self) -> bool:
        """Whether the caller runs in it."""
        try:
            if running_trio():
                import trio

                return self._token is trio.lowlevel.current_trio_token()
            import asyncio

            return self._loop is not None and self._loop() is asyncio.get_running_loop()
        except RuntimeError:
            return False

    def call_soon(self, function: Callable[[], object]) -> bool:
        """Have the loop call a function. May be called from any thread.

        Returns:
            False if the loop does not run, and so does not call the function.
        """
        try:
            if self._loop is None:
                self._token.run_sync_soon(function)
            else:
                loop = self._loop()
                if loop is None or not loop.is_running():
                    return False
                loop.call_soon_threadsafe(function)
        except RuntimeError:  # it has just ended
            return False
        return True

    async def can_wait(self) -> bool:
        """Whether the caller may wait. One whose coroutine is being closed may not: no task runs it any more."""
        try:
            EventLoopRef()
        except RuntimeError:
            return False
        if not closing_coroutine():
            return True
        if not self.runs_here():
            return False
        if self._loop is not None:
            # An asynchronous generator that is closed may wait. A task that was collected may not: its coroutine ends
            # here, before it enters a cancel scope, which anyio would take for one of the task that is running.
            import asyncio

            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return True


def set_event(event: Event) -> None:
    """Set an event, also if the loop of a task that waits for it is gone."""
    with suppress(RuntimeError):  # the loop is closed
        event.set()


def cancelled_by_nobody() -> bool:
    """Whether a cancellation that was just caught is not the catching task's: what it waited for was cancelled.

    This happens on asyncio only, which can tell since Python 3.11.
    """
    if running_trio():
        return False
    import asyncio

    task = asyncio.current_task()
    return getattr(task, "cancelling", lambda: 1)() == 0


def current_task() -> Task | None:
    """The task that the caller runs in, or that has started the one that it runs in. None if there is neither."""
    return _current.get()


class Task:
    """Runs ``function()`` in a task that belongs to no task group, in the context variables of the caller.

    Keep it: asyncio collects a task that nobody keeps. Its methods are for the thread of its event loop, and may be
    called by any task in there.

    Args:
        function: what the task does.
        name: what it is called, in logs and by debuggers; the name of the function if not given.
        then: is called with the task when it has ended. That is before this returns if tasks of the loop begin at once.

    Raises:
        RuntimeError: no event loop runs, or (trio) it is about to end and takes no more system tasks.
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
        # The number of blocks of cancelled_later() that it is in.
        self._holds = 0
        # True once cancel() was called.
        self._cancelled = False
        # Kept here because the loop does not keep it.
        self._asyncio_task: Any = None
        # Set at its end, once somebody waits for that.
        self._event: Event | None = None
        self._start(function)

    def __repr__(self) -> str:
        return f"<Task {self.name!r}, {'ended' if self.done else 'running'}>"

    @property
    def done(self) -> bool:
        """Whether it has ended. A task that was cancelled may run on for a while."""
        return self._done

    def cancel(self) -> None:
        """Cancel it, by an anyio cancel scope: it is interrupted wherever it waits, unless a shield is there.

        A task that has not begun never calls its function. A task that has ended stays as it is. A task within
        :meth:`cancelled_later` is cancelled at the end of that block. This does not wait.
        """
        self._cancelled = True
        if not self._holds:
            self._scope.cancel()

    def interrupt(self) -> None:
        """Cancel it as its runtime does: on asyncio once, so that its cleanup may wait; on trio as :meth:`cancel`."""
        if self._asyncio_task is None:
            self.cancel()
        elif not self._done:
            self._asyncio_task.cancel()

    @contextlib.contextmanager
    def cancelled_later(self) -> Generator[None, None, None]:
        """Put off :meth:`cancel` until the block is left. Other cancellations reach into the block."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if self._cancelled:
                self.cancel()

    def abandon(self) -> None:
        """Close its coroutine where it waits. For a task whose loop does not run."""
        if self._asyncio_task is not None and not self._done:
            with suppress(RuntimeError, ValueError):  # its function ignores GeneratorExit; or it runs just now
                self._asyncio_task.get_coro().close()
            self._end()  # _run() has not, if it had not begun

    async def wait(self) -> None:
        """Wait until it has ended. Never raises what the task raised; cancelling this does not cancel the task."""
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
        if not self._done:  # at once, as eager tasks do
            self._asyncio_task = task
        # asyncio would log a task that is collected while it waits. Here that means that its loop is gone.
        try:
            task._log_destroy_pending = False
        except AttributeError:  # a task factory may make other tasks
            pass

        def ended(task: asyncio.Task[None]) -> None:
            self._asyncio_task = None
            self._end()  # _run() has not, if the loop cancelled the task before its first step
            if not task.cancelled():
                task.exception()  # now asyncio does not log it: the loop has raised it

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
            then, self._then = self._then, None  # it may refer to this task
            if then is not None:
                try:
                    then(self)
                except RuntimeError:
                    if not self._is_closed():
                        raise

    def _is_closed(self) -> bool:
        """Whether its coroutine is being closed, because the task was collected, and not run by the task."""
        if self._asyncio_task is None:
            return False
        import asyncio

        try:
            return self._asyncio_task.get_loop() is not asyncio.get_running_loop()
        except RuntimeError:
            return True

    def _log(self, error: BaseException) -> None:
        left: BaseException | None = error
        if split := getattr(error, "split", None):  # a group; trio makes one of a task group's cancellations, too
            left = split(get_cancelled_exc_class())[1]
        if left is not None:
            logging.getLogger("claude_wire").error(
                "the task %s raised %s", self.name, type(left).__name__, exc_info=left
            )


class Tasks:
    """Tasks of one event loop that end with their owner."""

    def __init__(self) -> None:
        self._tasks: set[Task] = set()
        self._home: EventLoopRef | None = None
        self._closed = False
        self._context = contextvars.copy_context()

    def __len__(self) -> int:
        """How many have not ended."""
        return len(self._tasks)

    @property
    def current(self) -> Task | None:
        """The one of these tasks that the caller runs in, as :func:`current_task` tells; None if it has ended."""
        task = current_task()
        return task if task in self._tasks else None

    def remember_context(self) -> None:
        """From now on, start tasks with the context variables of the caller of this.

        Which task happens to read a request, and starts a task for it, is chance.
        """
        self._context = contextvars.copy_context()

    def start(
        self, function: Callable[[], Coroutine[Any, Any, None]], name: str, then: Callable[[], object] | None = None
    ) -> Task:
        """Run ``function()`` in a task of its own. ``then`` is called when the task has ended, even if it never began.

        Raises:
            RuntimeError: no event loop runs, or another one than that of the first task.
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
        """Cancel all, and each that is started from now on."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    def abandon(self) -> None:
        """Close the coroutines of all tasks, to release what they hold. For tasks whose loop does not run."""
        self._closed = True
        for task in list(self._tasks):
            task.abandon()

    async def wait(self, seconds: float) -> None:
        """Wait for at most so many seconds until all have ended, except the caller's."""
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
