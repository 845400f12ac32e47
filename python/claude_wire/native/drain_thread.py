"""A drain for systems that cannot poll a pipe: a Python thread reads the pipe ahead of its reader."""

from __future__ import annotations

import os
import selectors
import stat
import threading
import weakref
from collections import deque
from errno import EIO, EPERM
from typing import TYPE_CHECKING, cast

from claude_wire.limits import JOINED_BYTES
from claude_wire.native import budget
from claude_wire.native.library import error as library_error
from claude_wire.native.library import lib
from claude_wire.native.overflow import (
    CHUNK_BYTES,
    DEFAULTS,
    DrainOptions,
    DrainStats,
    check_fd,
    warn_of_pause,
)
from claude_wire.support.errors import ByteBudgetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO


class _Pump:
    """The thread's part of a stream. It does not refer to its :class:`ThreadDrain`, so that a dropped drain is
    collected.
    """

    def __init__(self, fd: int, options: DrainOptions) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.budget = budget.shared  # the budget of the process that made the drain
        self.options = options
        self.queue: deque[bytes] = deque()
        self.tail = bytearray()
        self.file: BinaryIO | None = None
        self.file_read = self.file_written = 0
        #: Bytes that did not fit into the file, and come after it.
        self.after = b""
        self.end: OSError | bool = False
        self.closed = self.discarding = self.paused = self.say_budget = self.spill_failed = False
        self.wakeup: Callable[[], object] | None = None
        #: True while the reader waits to be woken.
        self.waiting = True
        self.read = self.rescued = self.rescues = self.pauses = 0
        self.spilled = self.spill_errors = self.discarded = self.queued = 0

    def run(self) -> None:
        """Read ahead in the thread. It always does, because it cannot ask whether the pipe is readable."""
        try:
            while True:
                with budget.changed:
                    if not self._has_room():
                        self.paused = True
                        self.pauses += 1
                        self.say_budget |= self.options.overflow == "error"
                        self.wake()
                        budget.changed.wait_for(self._may_go_on)
                        self.paused = self.spill_failed = False
                    if self.closed:
                        return
                try:
                    data = os.read(self.fd, CHUNK_BYTES)
                except BlockingIOError:  # somebody who shares the descriptor has made it non-blocking
                    with selectors.DefaultSelector() as selector:
                        selector.register(self.fd, selectors.EVENT_READ)
                        selector.select()
                    continue
                except OSError as error:
                    # A terminal ends like this when its other side is closed.
                    self._finish(True if error.errno == EIO and self.is_terminal else error)
                    return
                if not data:
                    self._finish(True)
                    return
                with budget.changed:
                    if self.closed:
                        return
                    self._take(data)
                    self.wake()
        finally:
            os.close(self.fd)

    def ready(self) -> bool:
        return bool(self.queue or self.file or self.after or self.end or self.say_budget)

    def stop(self) -> None:
        with budget.changed:
            self.closed = True
            self.paused = False
            self.wakeup = None
            self.forget()
            budget.changed.notify_all()

    def forget(self) -> int:
        """Forget the queue. Returns its size in bytes."""
        forgotten = self.queued + self.file_written - self.file_read
        self.budget.queued -= self.queued
        self.queue.clear()
        self.tail.clear()
        self.after = b""
        self.queued = 0
        self.close_file()
        return forgotten

    def close_file(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file = None
        self.file_read = self.file_written = 0

    def _keeps_nothing(self) -> bool:
        return self.discarding or self.options.keep_last is not None

    def _has_room(self) -> bool:
        if self.closed or self._keeps_nothing():
            return True
        if self.after:
            return False
        if self.options.overflow == "spill" and not self.spill_failed:
            return self.file_written < self.options.spill_limit
        return self.budget.queued < self.budget.limit

    def _may_go_on(self) -> bool:
        if self.closed or self._keeps_nothing():
            return True
        can_spill = self.options.overflow == "spill" and not self.spill_failed
        return self.file is None and not self.after and (can_spill or self.budget.queued <= self.budget.limit // 2)

    def _take(self, data: bytes) -> None:
        self.rescued += len(data)
        if self.discarding:
            self.discarded += len(data)
        elif self.options.keep_last is not None:
            self.tail += data
            excess = max(0, len(self.tail) - self.options.keep_last)
            del self.tail[:excess]
            self.discarded += excess
        elif self.options.overflow == "spill" and (self.file is not None or self.budget.queued >= self.budget.limit):
            self._spill(data)
        else:
            self.rescues += not self.queue
            if self.queue and len(self.queue[-1]) + len(data) <= JOINED_BYTES:
                self.queue[-1] += data
            else:
                self.queue.append(data)
            self.count(len(data))

    def count(self, size: int) -> None:
        self.queued += size
        self.budget.queued += size

    def _spill(self, data: bytes) -> None:
        import tempfile

        written = 0
        try:
            # The cast is for Windows, where TemporaryFile has another type.
            file = self.file or cast("BinaryIO", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 - closed when read
            self.file = file
            file.seek(self.file_written)
            while written < len(data):
                written += file.write(data[written:])
        except OSError:
            self.spill_errors += 1
            self.spill_failed = True
        self.file_written += written
        self.spilled += written
        if not self.file_written:
            self.close_file()
        self.after = data[written:]
        self.count(len(self.after))

    def _finish(self, end: OSError | bool) -> None:
        with budget.changed:
            self.end = end
            self.wake()

    def wake(self) -> None:
        if self.waiting and self.wakeup is not None and self.ready():
            self.waiting = False
            try:
                self.wakeup()
            except Exception:
                import logging

                logging.getLogger("claude_wire").exception("the callback of set_wakeup() raised")


class ThreadDrain:
    """As :class:`Drain`, for systems where a pipe cannot be polled: a thread of its own reads it, and blocks in that.

    Instead of ``fileno()`` and ``watch()`` it has :meth:`set_wakeup`. It needs the interpreter's lock: a callback that
    blocks the event loop does not keep it from reading, C code that keeps the lock does.

    :meth:`close` returns at once, but the thread, a daemon, and its duplicate of the descriptor are gone only when the
    read in which it is ends: with the next bytes, which are lost, or the end of the stream. :meth:`tail` has no bytes
    that the thread has not read yet. A drain may overshoot the budget, or ``spill_limit``, by one read.

    The tests run it on Linux. It is meant for Windows and macOS, where it was not tested.
    """

    __slots__ = ("__weakref__", "_finalize", "_pid", "_pump", "_warned")

    def __init__(self, fd: int, options: DrainOptions = DEFAULTS) -> None:
        check_fd(fd)
        own = os.dup(fd)
        try:
            if stat.S_ISREG(os.fstat(own).st_mode):
                raise PermissionError(EPERM, os.strerror(EPERM))
            self._pump = _Pump(own, options)
            threading.Thread(target=self._pump.run, name="claude-wire-drain", daemon=True).start()
        except BaseException:
            os.close(own)
            raise
        self._pid = os.getpid()
        self._finalize = weakref.finalize(self, self._pump.stop)
        # True if the user was warned of a pause. With "error", the exception is the warning.
        self._warned = options.overflow == "error"

    def read(self) -> bytes | None:
        """Read like :meth:`Drain.read`. After None, the callback of :meth:`set_wakeup` is called when there is more."""
        pump = self._own()
        with budget.changed:
            if pump.pauses and not self._warned:
                self._warned = True
                warn_of_pause()
            if pump.say_budget:
                pump.say_budget = False
                raise ByteBudgetError(budget.shared.limit)
            data: bytes
            if pump.queue:
                data = pump.queue.popleft()
                pump.count(-len(data))
            elif pump.file is not None:
                pump.file.seek(pump.file_read)
                data = pump.file.read(min(CHUNK_BYTES, pump.file_written - pump.file_read))
                pump.file_read += len(data)
                if pump.file_read == pump.file_written:
                    pump.close_file()
            elif pump.after:
                data, pump.after = pump.after, b""
                pump.count(-len(data))
            elif pump.end:
                if isinstance(pump.end, OSError):
                    raise OSError(*pump.end.args)
                return b""
            else:
                pump.waiting = True
                return None
            pump.read += len(data)
            budget.changed.notify_all()
            return data

    @property
    def ready(self) -> bool:
        """True if :meth:`read` has data, the end or an error to report."""
        pump = self._own()
        with budget.changed:
            return pump.ready()

    @property
    def watched(self) -> bool:
        """Always False: a thread cannot watch a descriptor beside the one that it reads."""
        return False

    def set_wakeup(self, callback: Callable[[], object] | None) -> None:
        """``callback`` is called from another thread, or from this call, once :meth:`read` has something to give.

        It is called again only after a :meth:`read` that returned None. It must not block, nor use the drain.
        """
        pump = self._own()
        with budget.changed:
            pump.wakeup = callback
            pump.waiting = True
            pump.wake()

    def discard(self) -> None:
        pump = self._own()
        with budget.changed:
            pump.discarded += pump.forget()
            pump.discarding = True
            pump.say_budget = False
            budget.changed.notify_all()

    def tail(self) -> bytes:
        """Return the last ``keep_last`` bytes that the thread has read so far."""
        pump = self._own()
        if pump.options.keep_last is None:
            raise ValueError("this drain was made without keep_last")
        with budget.changed:
            return bytes(pump.tail)

    @property
    def stats(self) -> DrainStats:
        """Counts so far. They can also be read after the drain was closed. All bytes count as
        rescued for the reader.
        """
        if self._pid != os.getpid():
            raise library_error(lib.CW_ERROR_FORKED)
        pump = self._pump
        with budget.changed:
            return DrainStats(
                pump.read,
                pump.rescued,
                pump.rescues,
                pump.pauses,
                pump.spilled,
                pump.spill_errors,
                pump.discarded,
                pump.queued + len(pump.tail),
                pump.file_written - pump.file_read,
                pump.paused,
            )

    def close(self) -> None:
        """Drop the queue, and end the thread as the class describes. A second call does nothing."""
        if self._pid == os.getpid():
            self._finalize()
        else:
            self._finalize.detach()

    def _own(self) -> _Pump:
        if self._pid != os.getpid():
            raise library_error(lib.CW_ERROR_FORKED)
        if not self._finalize.alive:
            raise library_error(lib.CW_ERROR_STALE)
        return self._pump
