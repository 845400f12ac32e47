"""Drains: a drain empties a pipe while its reader is busy, because a full pipe blocks the writer.

The Claude Code CLI exits 2 seconds after it has finished, even if its pipe is full, and then its unwritten output is
lost. :meth:`Drain.read` reads the pipe like ``os.read`` on a non-blocking descriptor. If bytes stay unread for 10 to
20 ms, a native thread, the *rescuer*, reads them into memory. A budget limits this memory for the whole process. The
rescuer never runs Python code: it also reads while a callback blocks the event loop, or while C code holds the
interpreter's lock. See ``rust/src/drain``.

Costs (CPython 3.11, Linux 6.18, two cores, one run): ``read()`` of a line of 285 bytes takes 1.0 µs, and 0.3 µs of that
is the native call; ``os.read`` takes 0.5 µs. With 100 idle pipes the rescuer does not run. If a pipe gets a line every
millisecond, and its reader reads each line immediately, the rescuer takes 0.4% of a core. A child that writes 40 MB in
lines of 285 bytes to an unread pipe writes 55 MB/s.
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

#: Up to this size, read() returns bytes. A view would save little time, and occupy a scratch buffer.
COPY_BYTES = 16 * 1024

#: Maximum number of scratch buffers to keep for reuse.
MAX_IDLE_SCRATCHES = 16

#: How many milliseconds the interpreter waits at exit for the rescuer thread to end.
STOP_MILLISECONDS = 1000


#: The layout of the C struct CwDrainStats, which has the fields of :class:`DrainStats`.
_STATS = struct.Struct("@10Q")
_MODES = {"pause": lib.CW_OVERFLOW_PAUSE, "spill": lib.CW_OVERFLOW_SPILL, "error": lib.CW_OVERFLOW_ERROR}
_END = lib.CW_DRAIN_END
_PAUSED = lib.CW_DRAIN_PAUSED
_WATCHED = lib.CW_DRAIN_WATCHED
_read = lib.cw_drain_read

#: Free scratch buffers to read into, as (pointer, buffer). read() removes a pair from the list, so another thread, or a
#: callback that reads another drain, cannot get the same pair.
_scratches: list[tuple[Any, Any]] = []


def _put_back(scratch: tuple[Any, Any]) -> None:
    if len(_scratches) < MAX_IDLE_SCRATCHES:
        _scratches.append(scratch)


class Drain:
    """Reads a pipe, socket or terminal, and empties it into memory while its reader is busy.

    The drain reads a duplicate of ``fd``, so the caller may close ``fd``. Until the drain is closed, the descriptor is
    non-blocking for every program that shares it, and only the drain should read it. A drain needs two descriptors
    (also with ``watch()``), and one more while bytes are in a file. All drains of a process share one thread, which
    needs two descriptors, and one more for every 50 drains.

    Only one thread at a time may use a drain, and only the process that created it. The garbage collector closes it.

    Args:
        fd: a readable descriptor.
        options: what to do with unread bytes.

    Raises:
        OSError: EPERM (PermissionError) if ``fd`` is a regular file; EBADF if it is closed or is a pipe's write end;
            EMFILE if the process has no free descriptor. The constructor then leaves nothing open.
        HandleError: in any method, after :meth:`close`, in a forked child, or if two threads use the drain at the same
            time.
        NotImplementedError: this system is not Linux.
    """

    __slots__ = ("__weakref__", "_final_stats", "_finalize", "_handle", "_keep_last", "_lent", "_warned", "watched")

    #: True after :meth:`read` found that the descriptor passed to :meth:`watch` is readable.
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
        # The view that the last read() returned, and its scratch buffer. Empty if read() returned bytes.
        self._lent: list[tuple[memoryview, tuple[Any, Any]]] = []
        # True after the log has warned of a pause. With "error", an exception warns instead.
        self._warned = options.overflow == "error"
        self._final_stats: DrainStats | None = None
        self.watched = False

    def read(self) -> bytes | memoryview | None:
        """Return the next bytes of the stream, at most :data:`CHUNK_BYTES`.

        Returns None if no byte has arrived: wait until :meth:`fileno` is readable. Returns ``b""`` at the end of the
        stream, and in every later call. More than 16 KiB are returned as a memoryview, which the next call releases.

        Raises:
            OSError: reading failed. Every later call also raises this error.
            ByteBudgetError: the drain paused, with ``overflow="error"``; raised once for each pause. No byte is lost,
                and the next call continues.
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
        except IndexError:  # another thread took the view
            return
        try:
            view.release()
        except BufferError:
            return  # the caller still uses the view, and keeps the memory alive
        _put_back(scratch)

    def fileno(self) -> int:
        """Return a descriptor to poll, always the same. It is readable when :meth:`read` can return bytes.

        It may be readable even if there is nothing to read: :meth:`read` then returns None.
        """
        return checked(lib.cw_drain_fileno(self._handle))

    def watch(self, fd: int) -> None:
        """Make :meth:`fileno` readable, once, when ``fd`` is readable; for example a descriptor of ``os.pidfd_open``.

        :meth:`read` then returns None, and :attr:`watched` is true. ``fd`` must stay open until then.

        Raises:
            OSError: the system cannot poll ``fd``; or EBUSY: the drain already watches a descriptor.
        """
        check_fd(fd)
        checked(lib.cw_drain_watch(self._handle, fd))
        self.watched = False

    def discard(self) -> None:
        """Drop all bytes in memory, and from now on all new bytes. The writer then never waits.

        :meth:`read` then returns None, and ``b""`` at the end of the stream.
        """
        checked(lib.cw_drain_discard(self._handle))

    def tail(self) -> bytes:
        """Return the last ``keep_last`` bytes of the stream so far, including bytes that are still in the pipe.

        Raises:
            ValueError: the drain was created without ``keep_last``.
        """
        if self._keep_last is None:
            raise ValueError("this drain was created without keep_last")
        memory, written = ffi.new("uint8_t[]", self._keep_last), ffi.new("uint64_t *")
        checked(lib.cw_drain_tail(self._handle, memory, self._keep_last, written))
        return bytes(ffi.buffer(memory, written[0]))

    @property
    def stats(self) -> DrainStats:
        """The counts so far, available even after :meth:`close`."""
        if self._final_stats is not None:
            return self._final_stats
        out = ffi.new("CwDrainStats *")
        checked(lib.cw_drain_stats(self._handle, out))
        *counts, paused = _STATS.unpack(ffi.buffer(out))
        return DrainStats._make((*counts, bool(paused)))

    def close(self) -> None:
        """Close the descriptors, and drop unread bytes. A second call does nothing."""
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


# Stop the rescuer thread before the interpreter and the process exit.
atexit.register(lib.cw_drain_stop, STOP_MILLISECONDS)
