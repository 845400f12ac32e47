"""Drains: nobody's pipe fills up, whatever its reader does.

What this module knows: descriptors and bytes. What it must not know: lines, messages, event loops.

The Claude Code CLI exits 2 seconds after it has finished although its pipe is still full, and what it had not written
is lost. A :class:`Drain` is read like a descriptor in non-blocking mode, straight from the system and without a thread
between. But what its reader has left unread for 10 to 20 ms, a thread of the native library takes into memory, up to a
budget for the whole process. That thread needs nothing of Python: it goes on while a callback blocks the event loop,
and while C code keeps the interpreter's lock. ``rust/src/drain`` says how.

What it costs (CPython 3.11, Linux 6.18, two cores, one run): ``read()`` of a line of 285 bytes that is in the pipe
1.0 µs, of which 0.3 are the call into the library; ``os.read`` 0.5. With 100 idle pipes the thread does not run; with
one that gets a line every millisecond, which its reader reads at once, it takes 0.4% of a core. A child that writes
40 MB in lines of 285 bytes to a pipe of 64 KiB that nobody reads gets 55 MB/s.
"""

from __future__ import annotations

import atexit
import os
import selectors
import stat
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from errno import EBADF, EIO, EPERM
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from claude_wire._arguments import require_int
from claude_wire._library import error as library_error
from claude_wire._library import ffi, lib
from claude_wire.errors import ByteBudgetError, HandleError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, TypeAlias

__all__ = [
    "CHUNK_BYTES",
    "DEFAULT_BYTE_BUDGET",
    "DEFAULT_SPILL_BYTES",
    "JOINED_BYTES",
    "Drain",
    "DrainStats",
    "Overflow",
    "ThreadDrain",
    "byte_budget",
    "open_drain",
    "set_byte_budget",
]

#: Most bytes that one read gives. What a pipe of Linux holds.
CHUNK_BYTES = 64 * 1024

#: Bytes that the drains of a process may queue in memory, all together, unless it sets another limit.
DEFAULT_BYTE_BUDGET = 256 * 1024 * 1024

#: Default of the most bytes in the file of a drain with ``overflow="spill"``.
DEFAULT_SPILL_BYTES = 1024**3

#: Up to this size bytes are returned: a view takes hardly less time, and holds a scratch buffer until the next read.
COPY_BYTES = 16 * 1024

#: Chunks that wait as Python objects are joined up to this size, since each object takes 41 bytes more than its data.
JOINED_BYTES = 4096

#: Scratch buffers that wait for their next use. More are made when more are lent at once.
MOST_IDLE_SCRATCHES = 16

#: Time that the rescuer has for its end when the interpreter ends, in milliseconds.
STOP_MILLISECONDS = 1000

#: What happens when a drain has no room left in the budget:
#:
#: * ``"pause"``: it takes no more, so that the writer has to wait, until half of the budget is free.
#: * ``"spill"``: it writes to a temporary file that has no name and mode 0600; above ``spill_limit``, or if the disk is
#:   full, it pauses until the file is read.
#: * ``"error"``: as ``"pause"``, and the next ``read()`` raises :class:`ByteBudgetError`.
#:
#: A reader that reads can always do so.
Overflow: TypeAlias = Literal["pause", "spill", "error"]


class DrainStats(NamedTuple):
    """What a drain has done since it was made, and what it holds now."""

    #: Bytes that ``read()`` has returned.
    bytes_read: int
    #: Bytes that were taken on behalf of the reader, because it was away, or there is none.
    bytes_rescued: int
    #: Times that the queue was empty before that.
    rescues: int
    #: Times that the drain was paused, because the budget, the limit of its file, or the memory was exhausted.
    pauses: int
    #: Bytes that were written to a file.
    bytes_spilled: int
    #: Times that no file could be made, or not all could be written to it.
    spill_errors: int
    #: Bytes that were thrown away, after ``discard()``, or because only the last ones are kept.
    bytes_discarded: int
    #: Bytes in memory now.
    bytes_queued: int
    #: Bytes in the file now.
    bytes_in_file: int
    #: Whether it is paused now.
    paused: bool


class _Stats(Protocol):
    read: int
    rescued: int
    rescues: int
    pauses: int
    spilled: int
    spill_errors: int
    discarded: int
    queued: int
    in_file: int
    paused: int


def byte_budget() -> int:
    """Bytes that the drains of this process may queue in memory, all together."""
    return _budget.limit


def set_byte_budget(limit: int) -> None:
    """Sets :func:`byte_budget`. What is queued already stays, also above it. A forked child inherits it.

    Raises:
        TypeError: ``limit`` is not an int.
        ValueError: ``limit`` is not at least 1.
    """
    require_int("limit", limit, 1)
    status = lib.cw_budget_set(min(limit, 2**64 - 1))
    if status < 0 and status != lib.CW_ERROR_UNSUPPORTED:
        raise library_error(status)
    with _changed:
        _budget.limit = limit
        _changed.notify_all()


def count_kept(count: int) -> None:
    """Count bytes that were read ahead and are kept for the reader as queued; a negative number gives them back."""
    status = lib.cw_budget_count(count)
    if status == lib.CW_ERROR_UNSUPPORTED:
        with _changed:
            _budget.queued += count
            _changed.notify_all()
    elif status < 0:
        raise library_error(status)


def has_room() -> bool:
    """Whether more may be queued, by the budget."""
    limit, queued = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    status = lib.cw_budget(limit, queued)
    if status == lib.CW_ERROR_UNSUPPORTED:
        return _budget.queued < _budget.limit
    if status < 0:
        raise library_error(status)
    return bool(queued[0] < limit[0])


# --- Linux ------------------------------------------------------------------------------------------------------------

_END = lib.CW_DRAIN_END
_PAUSED = lib.CW_DRAIN_PAUSED
_WATCHED = lib.CW_DRAIN_WATCHED
_read = lib.cw_drain_read

_MODES = {"pause": lib.CW_OVERFLOW_PAUSE, "spill": lib.CW_OVERFLOW_SPILL, "error": lib.CW_OVERFLOW_ERROR}

#: Memory to read into, and the same as a buffer. Whoever takes one out of the list owns it, so neither another thread
#: nor a callback that reads another drain gets the same.
_scratches: list[tuple[Any, Any]] = []


def _new_scratch() -> tuple[Any, Any]:
    memory = ffi.new("uint8_t[]", CHUNK_BYTES)
    return memory, ffi.buffer(memory)


def _put_back(scratch: tuple[Any, Any]) -> None:
    if len(_scratches) < MOST_IDLE_SCRATCHES:
        _scratches.append(scratch)


class Drain:
    """Takes the bytes of a pipe, socket or terminal off the system's hands, whatever the reader does.

    It reads a duplicate of ``fd``, whose number may be closed from now on. Until it is closed the descriptor is in
    non-blocking mode, for all who share it; nobody else should read it. It costs two descriptors, with ``watch()`` too,
    and one more while bytes are in a file. As long as there are drains, a process has one thread for all of them, with
    two descriptors, and one more for every 50 drains.

    Belongs to one thread at a time and to the process that made it. When it is collected it is closed.

    Args:
        fd: the number of a descriptor that can be read.
        overflow: see :data:`Overflow`.
        spill_limit: most bytes of the file for ``overflow="spill"``, which is made in ``tempfile.gettempdir()``.
        keep_last: there is no queue, and nothing for :meth:`read`: only the last so many bytes are kept, for
            :meth:`tail`. They do not count in the budget.

    Raises:
        OSError: EPERM (PermissionError) if ``fd`` is a regular file, which is never waited for; EBADF if it is closed,
            or the end of a pipe that is written to; EMFILE if the process has no descriptor left. Nothing is left over.
        HandleError: by any method, after :meth:`close`, in a forked child, or when two threads use it at once.
        NotImplementedError: this system is not Linux.
    """

    __slots__ = ("__weakref__", "_final_stats", "_finalize", "_handle", "_keep_last", "_lent", "_warned", "watched")

    #: Whether what :meth:`watch` was given has become readable, as far as :meth:`read` has noticed.
    watched: bool

    def __init__(
        self,
        fd: int,
        *,
        overflow: Overflow = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
        keep_last: int | None = None,
    ) -> None:
        _check(fd, overflow, spill_limit, keep_last)
        mode, limit, directory = _MODES[overflow], 0, b""
        if keep_last is not None:
            mode, limit = lib.CW_OVERFLOW_KEEP_LAST, keep_last
        elif overflow == "spill":
            import tempfile  # it takes longer to import than all of this package's transport

            limit, directory = min(spill_limit, 2**64 - 1), b"/tmp"
            with suppress(FileNotFoundError):  # it writes to the disk to try it, which may be full just now
                directory = os.fsencode(tempfile.gettempdir())
        handle = ffi.new("uint64_t *")
        status = lib.cw_drain_new(fd, mode, limit, directory, len(directory), handle)
        if status < 0:
            raise library_error(status)
        self._handle: int = handle[0]
        self._finalize = weakref.finalize(self, lib.cw_drain_free, self._handle)
        self._keep_last = keep_last
        # The view that the last read returned and the scratch it is of, if it did return one.
        self._lent: list[tuple[memoryview, tuple[Any, Any]]] = []
        # Whether a pause was told of, which with "error" the exception does.
        self._warned = overflow == "error"
        self._final_stats: DrainStats | None = None
        self.watched = False

    def read(self) -> bytes | memoryview | None:
        """The next bytes of the stream, in order, at most :data:`CHUNK_BYTES`.

        ``b""`` at the end of the stream, again and again. None if there is nothing now: wait until :meth:`fileno` is
        readable. A memoryview is valid until the next call, which releases it; up to 16 KiB are returned as
        bytes.

        Raises:
            OSError: reading failed. Again and again.
            ByteBudgetError: with ``overflow="error"``, once for each time that the drain was paused. Nothing is lost,
                and the next call goes on.
        """
        if self._lent:
            self._take_back()
        try:
            scratch = _scratches.pop()
        except IndexError:
            scratch = _new_scratch()
        memory, whole = scratch
        size = _read(self._handle, memory, CHUNK_BYTES)
        if 0 < size <= COPY_BYTES:
            data: bytes = whole[:size]
            _scratches.append(scratch)
            return data
        return self._read_other(size, scratch)

    def _read_other(self, size: int, scratch: tuple[Any, Any]) -> bytes | memoryview | None:
        if size < 0:
            _put_back(scratch)
            raise library_error(size)
        if size >= _PAUSED:
            if size & _WATCHED:
                self.watched = True
            if size & _PAUSED and not self._warned:
                self._warned = True
                _warn()
            size &= _PAUSED - 1
        if size == _END or size <= COPY_BYTES:
            data: bytes | None = scratch[1][:size] if 0 < size <= COPY_BYTES else b"" if size else None
            _put_back(scratch)
            return data
        view = memoryview(scratch[1])[:size]
        self._lent.append((view, scratch))
        return view

    def _take_back(self) -> None:
        try:
            view, scratch = self._lent.pop()
        except IndexError:  # another thread has
            return
        try:
            view.release()
        except BufferError:
            return  # somebody still reads it: the memory is theirs
        _put_back(scratch)

    def fileno(self) -> int:
        """The number of a descriptor to poll for readability: it is readable when :meth:`read` has something to give.

        That may be wrong, and then :meth:`read` gives None. The number stays the same until the drain is closed.
        """
        number = lib.cw_drain_fileno(self._handle)
        if number < 0:
            raise library_error(number)
        return number

    def watch(self, fd: int) -> None:
        """Makes :meth:`fileno` readable also when ``fd`` is, once; as that of ``os.pidfd_open`` is after a process.

        :meth:`read` then gives None, and :attr:`watched` becomes true. ``fd`` must stay open until then.

        Raises:
            OSError: ``fd`` cannot be waited for, or EBUSY: another one is watched.
        """
        _check_fd(fd)
        status = lib.cw_drain_watch(self._handle, fd)
        if status < 0:
            raise library_error(status)
        self.watched = False

    def discard(self) -> None:
        """Throws away what is queued, and from now on all that comes, so that the writer never has to wait.

        :meth:`read` then gives None, and at the end of the stream ``b""``.
        """
        status = lib.cw_drain_discard(self._handle)
        if status < 0:
            raise library_error(status)

    def tail(self) -> bytes:
        """The last ``keep_last`` bytes of all that came, those included that are in the pipe now.

        Raises:
            ValueError: the drain was made without ``keep_last``.
        """
        if self._keep_last is None:
            raise ValueError("this drain was made without keep_last")
        memory, written = ffi.new("uint8_t[]", self._keep_last), ffi.new("uint64_t *")
        status = lib.cw_drain_tail(self._handle, memory, self._keep_last, written)
        if status < 0:
            raise library_error(status)
        return bytes(ffi.buffer(memory, written[0]))

    @property
    def stats(self) -> DrainStats:
        """What was done so far, also once the drain is closed."""
        if self._final_stats is not None:
            return self._final_stats
        out: _Stats = ffi.new("CwDrainStats *")
        status = lib.cw_drain_stats(self._handle, out)
        if status < 0:
            raise library_error(status)
        return DrainStats(
            out.read,
            out.rescued,
            out.rescues,
            out.pauses,
            out.spilled,
            out.spill_errors,
            out.discarded,
            out.queued,
            out.in_file,
            bool(out.paused),
        )

    def close(self) -> None:
        """Closes the descriptors and forgets what is queued. May be called again."""
        if not self._finalize.alive:
            return
        stats = None
        with suppress(HandleError):
            stats = self.stats._replace(bytes_queued=0, bytes_in_file=0, paused=False)
        status = lib.cw_drain_free(self._handle)
        if status == lib.CW_ERROR_IN_USE:
            raise library_error(status)
        self._finalize.detach()
        self._final_stats = stats
        if self._lent:
            self._take_back()


# Before the interpreter is gone, and the process with it.
atexit.register(lib.cw_drain_stop, STOP_MILLISECONDS)


# --- Everywhere -------------------------------------------------------------------------------------------------------


class _Budget:
    """What the :class:`ThreadDrain` objects of this process share."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queued = 0


_budget = _Budget(DEFAULT_BYTE_BUDGET)

#: Guards the budget and every :class:`_Pump`, and is notified when a paused one may go on.
_changed = threading.Condition()


def _in_child() -> None:
    # A thread that the child has not may hold the lock.
    global _budget, _changed
    _budget = _Budget(_budget.limit)
    _changed = threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class _Pump:
    """A stream as its thread sees it. It does not know its :class:`ThreadDrain`, so that one can be collected."""

    def __init__(self, fd: int, overflow: Overflow, spill_limit: int, keep_last: int | None) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self.budget = _budget  # that of the process which made it
        self.overflow = overflow
        self.spill_limit = spill_limit
        self.keep_last = keep_last
        self.queue: deque[bytes] = deque()
        self.tail = bytearray()
        self.file: BinaryIO | None = None
        self.file_read = self.file_written = 0
        #: What the file could not take; comes after it.
        self.after = b""
        self.end: OSError | bool = False
        self.closed = self.discarding = self.paused = self.say_budget = self.spill_failed = False
        self.wakeup: Callable[[], object] | None = None
        #: Whether the reader waits to be woken.
        self.waiting = True
        self.read = self.rescued = self.rescues = self.pauses = 0
        self.spilled = self.spill_errors = self.discarded = self.queued = 0

    def run(self) -> None:
        """The thread. It reads ahead, always: that is all a system without readiness of pipes allows."""
        try:
            while True:
                with _changed:
                    if not self._has_room():
                        self._pause()
                        self.wake()
                        _changed.wait_for(self._may_go_on)
                        self.paused = self.spill_failed = False
                    if self.closed:
                        return
                try:
                    data = os.read(self.fd, CHUNK_BYTES)
                except BlockingIOError:  # it is in non-blocking mode, for all who share it
                    with selectors.DefaultSelector() as selector:
                        selector.register(self.fd, selectors.EVENT_READ)
                        selector.select()
                    continue
                except OSError as error:
                    # A terminal ends so when its other side is closed.
                    self._finish(True if error.errno == EIO and self.is_terminal else error)
                    return
                if not data:
                    self._finish(True)
                    return
                with _changed:
                    if self.closed:
                        return
                    self._take(data)
                    self.wake()
        finally:
            os.close(self.fd)

    def ready(self) -> bool:
        return bool(self.queue or self.file or self.after or self.end or self.say_budget)

    def stop(self) -> None:
        with _changed:
            self.closed = True
            self.paused = False
            self.wakeup = None
            self.forget()
            _changed.notify_all()

    def forget(self) -> int:
        """Forgets what is queued. Returns how many bytes that was."""
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
        return self.discarding or self.keep_last is not None

    def _has_room(self) -> bool:
        if self.closed or self._keeps_nothing():
            return True
        if self.after:
            return False
        if self.overflow == "spill" and not self.spill_failed:
            return self.file_written < self.spill_limit
        return self.budget.queued < self.budget.limit

    def _may_go_on(self) -> bool:
        if self.closed or self._keeps_nothing():
            return True
        can_spill = self.overflow == "spill" and not self.spill_failed
        return self.file is None and not self.after and (can_spill or self.budget.queued <= self.budget.limit // 2)

    def _pause(self) -> None:
        self.paused = True
        self.pauses += 1
        self.say_budget |= self.overflow == "error"

    def _take(self, data: bytes) -> None:
        self.rescued += len(data)
        if self.discarding:
            self.discarded += len(data)
        elif self.keep_last is not None:
            self.tail += data
            excess = max(0, len(self.tail) - self.keep_last)
            del self.tail[:excess]
            self.discarded += excess
        elif self.overflow == "spill" and (self.file is not None or self.budget.queued >= self.budget.limit):
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
            # The cast is for Windows, where its type is another one.
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
        with _changed:
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

    It was tested on Linux, by constructing it there. It is meant for Windows and macOS, where it was not.
    """

    __slots__ = ("__weakref__", "_finalize", "_pid", "_pump", "_warned")

    def __init__(
        self,
        fd: int,
        *,
        overflow: Overflow = "pause",
        spill_limit: int = DEFAULT_SPILL_BYTES,
        keep_last: int | None = None,
    ) -> None:
        _check(fd, overflow, spill_limit, keep_last)
        own = os.dup(fd)
        try:
            if stat.S_ISREG(os.fstat(own).st_mode):
                raise PermissionError(EPERM, os.strerror(EPERM))
            self._pump = _Pump(own, overflow, spill_limit, keep_last)
            threading.Thread(target=self._pump.run, name="claude-wire-drain", daemon=True).start()
        except BaseException:
            os.close(own)
            raise
        self._pid = os.getpid()
        self._finalize = weakref.finalize(self, self._pump.stop)
        # Whether a pause was told of, which with "error" the exception does.
        self._warned = overflow == "error"

    def read(self) -> bytes | None:
        """As :meth:`Drain.read`. After None the callback of :meth:`set_wakeup` is called for the next bytes."""
        pump = self._own()
        with _changed:
            if pump.pauses and not self._warned:
                self._warned = True
                _warn()
            if pump.say_budget:
                pump.say_budget = False
                raise ByteBudgetError(_budget.limit)
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
            _changed.notify_all()
            return data

    @property
    def ready(self) -> bool:
        """Whether :meth:`read` has something to give."""
        pump = self._own()
        with _changed:
            return pump.ready()

    @property
    def watched(self) -> bool:
        """False: a thread cannot watch a descriptor beside the one that it reads."""
        return False

    def set_wakeup(self, callback: Callable[[], object] | None) -> None:
        """``callback`` is called from another thread, or from this call, once :meth:`read` has something to give.

        Again only after a :meth:`read` that gave None. It must not block, nor use the drain.
        """
        pump = self._own()
        with _changed:
            pump.wakeup = callback
            pump.waiting = True
            pump.wake()

    def discard(self) -> None:
        """As :meth:`Drain.discard`."""
        pump = self._own()
        with _changed:
            pump.discarded += pump.forget()
            pump.discarding = True
            pump.say_budget = False
            _changed.notify_all()

    def tail(self) -> bytes:
        """As :meth:`Drain.tail`, as far as the thread has read."""
        pump = self._own()
        if pump.keep_last is None:
            raise ValueError("this drain was made without keep_last")
        with _changed:
            return bytes(pump.tail)

    @property
    def stats(self) -> DrainStats:
        """What was done so far, also once the drain is closed. All bytes are read on behalf of the reader."""
        if self._pid != os.getpid():
            raise library_error(lib.CW_ERROR_FORKED)
        pump = self._pump
        with _changed:
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
        """Forgets what is queued, and ends the thread as said above. May be called again."""
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


def open_drain(
    fd: int,
    *,
    overflow: Overflow = "pause",
    spill_limit: int = DEFAULT_SPILL_BYTES,
    keep_last: int | None = None,
) -> Drain | ThreadDrain:
    """A :class:`Drain` on Linux, elsewhere a :class:`ThreadDrain`; arguments and exceptions are theirs."""
    kind = Drain if sys.platform == "linux" else ThreadDrain
    return kind(fd, overflow=overflow, spill_limit=spill_limit, keep_last=keep_last)


def _warn() -> None:
    import logging  # takes longer than all of this module

    logging.getLogger("claude_wire").warning(
        "a stream was paused: its reader was away, and the byte budget or the memory is exhausted; its writer waited"
    )


def _check(fd: int, overflow: str, spill_limit: int, keep_last: int | None) -> None:
    _check_fd(fd)
    if overflow not in _MODES:
        raise ValueError(f"overflow must be one of {', '.join(map(repr, _MODES))}")
    require_int("spill_limit", spill_limit, 1)
    if keep_last is not None:
        require_int("keep_last", keep_last, 1)
        if overflow != "pause":
            raise ValueError("a drain with keep_last has no queue that could overflow")


def _check_fd(fd: int) -> None:
    if not isinstance(fd, int):
        raise TypeError(f"fd must be an int, not {type(fd).__name__}")
    if not 0 <= fd < 2**31:
        raise OSError(EBADF, os.strerror(EBADF))
