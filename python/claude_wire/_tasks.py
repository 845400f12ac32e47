"""Tasks that belong to no task group, since they live from one call to another, on asyncio and trio.

Knows the event loops, and nothing of what its tasks do. Whoever spawns a task owns it: it ends by itself, or its owner
cancels it.

=======================================  ===========================================================================
what the function of a task does         what becomes of it
=======================================  ===========================================================================
returns, or is cancelled by its task     nothing
is cancelled because its loop ends       nothing: ``asyncio.run`` cancels all tasks, and trio its system tasks
raises an ``Exception``                  logged as an error, with its type in the message
raises ``KeyboardInterrupt`` or          asyncio: leaves through the event loop, as out of any task, and ends it.
``SystemExit``                           trio: logged, and the program goes on. Nothing can raise it in trio's main
                                         task, and a system task that raises ends trio with ``TrioInternalError``
raises another ``BaseException``         logged as an error
=======================================  ===========================================================================
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import contextvars
import logging
import sys
from typing import TYPE_CHECKING, Any

from anyio import CancelScope, Event, get_cancelled_exc_class, move_on_after

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["Task", "Tasks", "cancelled_by_nobody", "current_task", "running_trio", "spawn"]

_current: contextvars.ContextVar[Task | None] = contextvars.ContextVar("claude_wire_task", default=None)

#: Keeps asyncio's tasks alive, which the loop does not.
_asyncio_tasks: set[Any] = set()


def running_trio() -> bool:
    """Whether the caller runs in trio rather than in asyncio."""
    if "trio" not in sys.modules:
        return False
    import sniffio

    return sniffio.current_async_library() == "trio"


def cancelled_by_nobody() -> bool:
    """Whether a cancellation that has just been caught is none of the catching task: what it waited for was cancelled.

    Only asyncio has such a thing, and can tell since Python 3.11.
    """
    if running_trio():
        return False
    import asyncio

    task = asyncio.current_task()
    return getattr(task, "cancelling", lambda: 1)() == 0


def current_task() -> Task | None:
    """The task that the caller runs in, or that has begun the one that it runs in; None if it is none of these."""
    return _current.get()


class Task:
    """A task that belongs to no task group, as :func:`spawn` makes it.

    Its methods are for the thread of its event loop, and may be called by any task in there.
    """

    __slots__ = ("_cancelled", "_done", "_event", "_holds", "_name", "_scope", "_then")

    def __init__(self, name: str | None, then: Callable[[Task], object] | None) -> None:
        self._name = name
        self._then = then
        self._scope = CancelScope()
        self._done = False
        # How many blocks put off its cancellation; whether it is to be cancelled behind them.
        self._holds = 0
        self._cancelled = False
        # What those who wait for the end wait for.
        self._event: Event | None = None

    def __repr__(self) -> str:
        return f"<Task {self._name!r}, {'ended' if self.done else 'running'}>"

    @property
    def done(self) -> bool:
        """Whether it has ended. A task that was cancelled may run on for a while."""
        return self._done

    def cancel(self) -> None:
        """Cancel it, by an anyio cancel scope: it is interrupted wherever it waits, unless a shield is there.

        A task that has not begun never calls its function. This does not wait; a task that has ended does not mind. A
        task within :meth:`cancelled_later` is cancelled at the end of that block.
        """
        self._cancelled = True
        if not self._holds:
            self._scope.cancel()

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

    async def wait(self) -> None:
        """Wait until it has ended. Never raises what the task raised; cancelling this does not cancel the task."""
        if not self._done:
            if self._event is None:
                self._event = Event()
            await self._event.wait()

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
            self._log(error)
        finally:
            self._end()

    def _end(self) -> None:
        if not self._done:
            self._done = True
            if self._event is not None:
                self._event.set()
            if self._then is not None:
                self._then(self)

    def _log(self, error: BaseException) -> None:
        left: BaseException | None = error
        if split := getattr(error, "split", None):  # a group, which trio makes of the cancellations of a task group too
            left = split(get_cancelled_exc_class())[1]
        if left is not None:
            logging.getLogger("claude_wire").error(
                "the task %s raised %s", self._name, type(left).__name__, exc_info=left
            )


def spawn(
    function: Callable[[], Coroutine[Any, Any, None]],
    *,
    name: str | None = None,
    then: Callable[[Task], object] | None = None,
) -> Task:
    """Run ``function()`` in a task of its own, in the context variables of the caller.

    Args:
        function: what the task does.
        name: what it is called, in logs and by debuggers.
        then: is called with the task when it has ended. That is before this returns if tasks of the loop begin at once.

    Raises:
        RuntimeError: no event loop runs, or (trio) it is about to end and takes no more system tasks.
    """
    if name is None:
        name = getattr(function, "__qualname__", type(function).__name__)
    task = Task(name, then)
    if running_trio():
        import trio

        trio.lowlevel.spawn_system_task(
            task._run, function, (GeneratorExit, trio.Cancelled), name=name, context=contextvars.copy_context()
        )
        return task
    import asyncio

    passed = (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt, SystemExit)
    asyncio_task = asyncio.get_running_loop().create_task(task._run(function, passed), name=name)
    _asyncio_tasks.add(asyncio_task)

    def ended(asyncio_task: asyncio.Task[None]) -> None:
        _asyncio_tasks.discard(asyncio_task)
        task._end()  # one that the loop cancelled before its first step has not said so
        if not asyncio_task.cancelled():
            asyncio_task.exception()  # the loop has raised it, so nobody needs to be told that nobody took it

    asyncio_task.add_done_callback(ended)
    return task


class Tasks:
    """Tasks that end with their owner."""

    def __init__(self) -> None:
        self._tasks: set[Task] = set()
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
        """From now on tasks have the context variables of the caller of this, not of who starts them.

        Which task comes to read a request is chance.
        """
        self._context = contextvars.copy_context()

    def start(
        self, function: Callable[[], Coroutine[Any, Any, None]], name: str, then: Callable[[], object] | None = None
    ) -> Task:
        """Run ``function()`` in a task of its own. ``then`` is called when that has ended, even if it never began."""

        def ended(task: Task) -> None:
            self._tasks.discard(task)
            if then is not None:
                then()

        task = self._context.copy().run(lambda: spawn(function, name=name, then=ended))
        if not task.done:
            self._tasks.add(task)
        if self._closed:
            task.cancel()
        return task

    def cancel(self) -> None:
        """Cancel all, and those that are still started."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()

    async def wait(self, seconds: float) -> None:
        """Wait until all have ended but the caller's; those that have not by then are left to themselves."""
        others = self._tasks - {current_task()}
        with move_on_after(seconds):
            for task in others:
                await task.wait()
        left = sum(not task.done for task in others)
        if left:
            logging.getLogger("claude_wire").warning("%d tasks did not end when they were cancelled", left)
