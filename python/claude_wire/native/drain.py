"""Drains: they keep a pipe from filling up while its reader is busy.

Why: the Claude Code CLI exits 2 seconds after it has finished even if its pipe is still full, and the unwritten output
is lost. A :class:`Drain` is read like a non-blocking descriptor, directly from the system. But bytes that its reader
has left unread for 10 to 20 ms are moved into memory by a thread of the native library, up to a budget for the whole
process. This thread does not need Python: it works even while a callback blocks the event loop, or C code keeps the
interpreter's lock. See ``rust/src/drain``.

Costs (CPython 3.11, Linux 6.18, two cores, one run): ``read()`` of a line of 285 bytes that is in the pipe
1.0 µs, of which 0.3 are the call into the library; ``os.read`` 0.5. With 100 idle pipes the thread does not run; with
one that gets a line every millisecond, which its reader reads at once, it takes 0.4% of a core. A child that writes
40 MB in lines of 285 bytes to a pipe of 64 KiB that nobody reads gets 55 MB/s.
"""

from __future__ import annotations

import atexit
import os
import struct
import weakref
from contextlib import suppress
from typing import Any

from claude_wire.native.library import checked, ffi, lib
from claude_wire.native.library import error as library_error
from claude_wire.native.overflow import (
    CHUNK_BYTES,
    DEFAULTS,
    DrainOptions,
    DrainStats,
    check_fd,
    warn_of_pause,
)
from claude_wire.support.errors import HandleError

#: Reads up to this size return bytes. A view would take hardly less time, and occupies a scratch buffer until the next
#: read.
COPY_BYTES = 16 * 1024

#: At most this many scratch buffers are kept for reuse. More are made while more are lent.
MAX_IDLE_SCRATCHES = 16

#: At interpreter exit, the rescuer thread gets this many milliseconds to end.
STOP_MILLISECONDS = 1000


#: The C struct CwDrainStats. Its fields are those of :class:`DrainStats`.
_STATS = struct.Struct("@10Q")
_MODES = {"pause": lib.CW_OVERFLOW_PAUSE, "spill": lib.CW_OVERFLOW_SPILL, "error": lib.CW_OVERFLOW_ERROR}
_END = lib.CW_DRAIN_END
_PAUSED = lib.CW_DRAIN_PAUSED
_WATCHED = lib.CW_DRAIN_WATCHED
_read = lib.cw_drain_read

#: Memory to read into, as (pointer, buffer). A user takes a pair out of the list and so owns it: neither another thread
#: nor a callback that reads another drain gets the same pair.
_scratches: list[tuple[Any, Any]] = []


def _put_back(scratch: tuple[Any, Any]) -> None:
    if len(_scratches) < MAX_IDLE_SCRATCHES:
        _scratches.append(scratch)


class Drain:
    """Reads a pipe, socket or terminal, and empties it into memory while its reader is busy.

    The drain reads a duplicate of ``fd``, so the caller may close ``fd``. Until the drain is closed, the descriptor is
    non-blocking for every program that shares it; nobody else should read it. A drain takes two descriptors, with
    ``watch()`` too, and one more while bytes are in a file. All drains of a process share one thread with two
    descriptors, and one more for every 50 drains.

    A drain belongs to one thread at a time and to the process that made it. It is closed when it is garbage collected.

    Args:
        fd: the number of a descriptor that can be read.
        options: for unread bytes. With ``keep_last``, :meth:`tail` returns them.

    Raises:
        OSError: EPERM (PermissionError) if ``fd`` is a regular file, which is never waited for; EBADF if it is closed,
            or the end of a pipe that is written to; EMFILE if the process has no descriptor left. Nothing is left over.
        HandleError: by any method, after :meth:`close`, in a forked child, or when two threads use it at once.
        NotImplementedError: this system is not Linux.
    """

    __slots__ = ("__weakref__", "_final_stats", "_finalize", "_handle", "_keep_last", "_lent", "_warned", "watched")

    #: True after :meth:`read` has noticed that the descriptor given to :meth:`watch` is readable.
    watched: bool

    def __init__(self, fd: int, options: DrainOptions = DEFAULTS) -> None:
        check_fd(fd)
        mode, limit, directory = _MODES[options.overflow], 0, b""
        if options.keep_last is not None:
            mode, limit = lib.CW_OVERFLOW_KEEP_LAST, options.keep_last
        elif options.overflow == "spill":
            import tempfile  # takes longer to import than everything else in this package

            limit, directory = min(options.spill_limit, 2**64 - 1), b"/tmp"
            with suppress(FileNotFoundError):  # gettempdir() writes to the disk, which may be full now
                directory = os.fsencode(tempfile.gettempdir())
        handle = ffi.new("uint64_t *")
        checked(lib.cw_drain_new(fd, mode, limit, directory, len(directory), handle))
        self._handle: int = handle[0]
        self._finalize = weakref.finalize(self, lib.cw_drain_free, self._handle)
        self._keep_last = options.keep_last
        # The view that the last read returned, and its scratch buffer. Empty if that read returned bytes.
        self._lent: list[tuple[memoryview, tuple[Any, Any]]] = []
        # True if the user was warned of a pause. With "error", the exception is the warning.
        self._warned = options.overflow == "error"
        self._final_stats: DrainStats | None = None
        self.watched = False

    def read(self) -> bytes | memoryview | None:
        """Return the next bytes of the stream, at most :data:`CHUNK_BYTES`.

        Returns ``b""`` at the end of the stream, each time. Returns None if there is nothing now: wait until
        :meth:`fileno` is readable. A memoryview is valid until the next call, which releases it; up to 16 KiB are
        returned as bytes.

        Raises:
            OSError: reading failed. Each further call raises it, too.
            ByteBudgetError: with ``overflow="error"``, once for each time that the drain was paused. Nothing is lost,
                and the next call goes on.
        """
        if self._lent:
            self._take_back()
        try:
            memory, whole = scratch = _scratches.pop()
        except IndexError:
            memory = ffi.new("uint8_t[]", CHUNK_BYTES)
            whole = ffi.buffer(memory)
            scratch = memory, whole
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
                warn_of_pause()
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
        except IndexError:  # another thread has taken the last one
            return
        try:
            view.release()
        except BufferError:
            return  # somebody still uses the view: leave the memory to them
        _put_back(scratch)

    def fileno(self) -> int:
        """A descriptor to poll. It becomes readable when :meth:`read` has something to return.

        A wake-up may be false: then :meth:`read` returns None. The number stays the same until the drain is closed.
        """
        return checked(lib.cw_drain_fileno(self._handle))

    def watch(self, fd: int) -> None:
        """Make :meth:`fileno` readable also when ``fd`` is, once; for example a descriptor of ``os.pidfd_open``.

        :meth:`read` then gives None, and :attr:`watched` becomes true. ``fd`` must stay open until then.

        Raises:
            OSError: ``fd`` cannot be waited for, or EBUSY: another one is watched.
        """
        check_fd(fd)
        checked(lib.cw_drain_watch(self._handle, fd))
        self.watched = False

    def discard(self) -> None:
        """Drop the queue, and from now on all new bytes, so that the writer never has to wait.

        :meth:`read` then returns None, and ``b""`` at the end of the stream.
        """
        checked(lib.cw_drain_discard(self._handle))

    def tail(self) -> bytes:
        """Return the last ``keep_last`` bytes of the stream so far, including bytes that are still in the pipe.

        Raises:
            ValueError: the drain was made without ``keep_last``.
        """
        if self._keep_last is None:
            raise ValueError("this drain was made without keep_last")
        memory, written = ffi.new("uint8_t[]", self._keep_last), ffi.new("uint64_t *")
        checked(lib.cw_drain_tail(self._handle, memory, self._keep_last, written))
        return bytes(ffi.buffer(memory, written[0]))

    @property
    def stats(self) -> DrainStats:
        """Counts so far. They can also be read after the drain was closed."""
        if self._final_stats is not None:
            return self._final_stats
        out = ffi.new("CwDrainStats *")
        checked(lib.cw_drain_stats(self._handle, out))
        *counts, paused = _STATS.unpack(ffi.buffer(out))
        return DrainStats._make((*counts, bool(paused)))

    def close(self) -> None:
        """Close the descriptors and drop the queue. A second call does nothing."""
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


# Stop the rescuer thread before the interpreter and the process end.
atexit.register(lib.cw_drain_stop, STOP_MILLISECONDS)
