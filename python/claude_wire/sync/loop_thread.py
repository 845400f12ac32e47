"""A thread that runs an event loop for code without async."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextvars
import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

from claude_wire.errors import HandleError
from claude_wire.support.waiting import running_trio

R = TypeVar("R")

#: Total seconds that the interpreter waits at exit for all unclosed threads.
LAST_SECONDS = 5.0
#: Maximum seconds for which a waiting thread may miss a signal.
SIGNAL_SECONDS = 0.5


class LoopThread:
    """Keeps an asynchronous context manager open in a separate thread, and calls functions in its event loop.

    The thread ends when :meth:`close` or :meth:`stop` is called, at interpreter exit, or when a task in the loop raises
    KeyboardInterrupt or SystemExit. In the last case, :meth:`close` raises this exception.

    Args:
        opened: the session. :meth:`start` enters it, and the thread leaves it before the thread ends.
    """

    def __init__(self, opened: AbstractAsyncContextManager[object]) -> None:
        self._opened = opened
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        # This future is done when entering the context manager has succeeded or failed.
        self._entered: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._stopping = False
        self._cancelled = False
        self._ended = False
        # The calls that other threads are waiting for.
        self._calls: set[concurrent.futures.Future[Any]] = set()
        # The exception that ended the loop. None after :meth:`stop`.
        self._error: BaseException | None = None
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name="claude-wire-session", daemon=True)

    def start(self) -> None:
        """Start the thread, and wait until the context manager is entered.

        Raises:
            HandleError: the thread was started before, an event loop runs in the calling thread, or another thread
                closed this object.
            Exception: any exception raised by entering the context manager.
        """
        self._require_here()
        if self._stopping or self._thread.ident is not None:
            raise HandleError("a session can be entered only once; open another one")
        try:
            self._thread.start()
            _wait(self._entered)
            self._entered.result()
        except BaseException:
            self._error = None
            self.close()
            raise

    def call(self, function: Callable[..., Coroutine[Any, Any, R]], *args: Any, **kwargs: Any) -> R:
        """Run ``function(...)`` in the loop, wait for it, and return its result. Any thread may call this.

        KeyboardInterrupt in the waiting thread cancels the function.

        Raises:
            HandleError: the thread is not running, the caller runs in an event loop, or this is a forked child.
        """
        self._require_here()
        if self._loop is None or not self._entered.done():
            raise HandleError("the session is not open; use it in its block: with open_session(...) as session")
        coroutine = function(*args, **kwargs)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:  # the loop is closed
            coroutine.close()
            raise self._closed() from self._error
        self._calls.add(future)
        try:
            if self._ended:  # the loop may have ended before it got the call
                future.cancel()
            _wait(future)
            return future.result()
        except concurrent.futures.CancelledError:
            raise self._closed() from self._error
        except BaseException:
            future.cancel()
            raise
        finally:
            self._calls.discard(future)
            del future  # break a reference cycle: exception -> traceback -> this frame -> future -> exception

    def close(self) -> None:
        """Leave the context manager, and wait until the thread ends. Any thread may call this, any number of times.

        In a forked child, which does not have the thread, this does nothing.

        Raises:
            Exception: any exception raised by leaving the context manager.
        """
        if os.getpid() != self._pid:
            return
        if threading.current_thread() is self._thread:
            raise self._in_callback()
        self.stop()
        with suppress(RuntimeError):  # the thread was not started
            self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def stop(self) -> None:
        """Tell the thread to end, without waiting. Any thread may call this at any time."""
        self._stopping = True
        if self._loop is not None and os.getpid() == self._pid:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def join(self, seconds: float) -> None:
        """Wait until the thread ends, for at most ``seconds``."""
        self._thread.join(seconds)

    def _cancel(self) -> None:
        # Cancel only once, because a second cancellation would interrupt the cleanup after the first.
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    def _run(self) -> None:
        _running.add(self)
        try:
            asyncio.run(self._main())
        except BaseException as error:
            stopped = isinstance(error, asyncio.CancelledError)
            if not self._entered.done():
                self._entered.set_exception(self._closed() if stopped else error)
            elif not stopped:
                self._error = error
        finally:
            self._ended = True
            for future in list(self._calls):
                future.cancel()
            _running.discard(self)

    async def _main(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._stopping:  # stop() was called before the loop ran
            raise asyncio.CancelledError
        async with self._opened:
            self._entered.set_result(None)
            await asyncio.Event().wait()

    def _require_here(self) -> None:
        """Raise HandleError if the caller must not wait for the thread."""
        if os.getpid() != self._pid:
            raise HandleError("a session belongs to the process that opened it, and this is a forked child")
        if threading.current_thread() is self._thread:
            raise self._in_callback()
        try:
            if not running_trio():
                asyncio.get_running_loop()
        except RuntimeError:
            return
        raise HandleError(
            "an event loop runs in this thread, and would stand still; use the async API: await claude_wire.ask(...), "
            "or async with claude_wire.open_session(...)"
        )

    def _in_callback(self) -> HandleError:
        return HandleError(
            "a callback runs in the event loop of the session, which cannot wait for itself; make it async, and "
            "await the method of session.session, the async session"
        )

    def _closed(self) -> HandleError:
        return HandleError("the session is closed; open another one")


def _wait(future: concurrent.futures.Future[Any]) -> None:
    """Wait until a future is done.

    Python handles a signal in the main thread, between two bytecodes. A signal that another thread receives, or that
    arrives after the last bytecode before the wait, does not end the wait. So this function waits again and again.

    Raises:
        CancelledError: the future was cancelled.
    """
    while True:
        with suppress(concurrent.futures.TimeoutError):
            future.exception(SIGNAL_SECONDS)
            return


#: All running threads.
_running: set[LoopThread] = set()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


@atexit.register
def _stop_all() -> None:
    """At interpreter exit, end the threads that were not closed."""
    threads = list(_running)
    for thread in threads:
        thread.stop()
    deadline = time.monotonic() + LAST_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
