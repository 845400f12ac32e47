"""Write to the pipes to the host, which are named by their descriptors."""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

STDIN, STDOUT, STDERR = 0, 1, 2

#: Size of a pipe on Linux, in bytes. Most hosts read so many bytes in one call.
BLOCK_BYTES = 64 * 1024


class Output:
    """Writes to standard output in pieces of the requested size. Calls ``gone`` if the host has closed the pipe."""

    def __init__(self, writes: str, gone: Callable[[], NoReturn]) -> None:
        self._piece_bytes = {"lines": sys.maxsize, "blocks": BLOCK_BYTES, "bytes": 1}[writes]
        self._held = bytearray() if writes == "blocks" else None
        self._gone = gone
        self.patience: float | None = None

    def write(self, data: bytes) -> None:
        """Write a line. With ``blocks``, hold it until a block is full."""
        if self._held is None:
            self._write(data)
            return
        self._held += data
        whole = len(self._held) - len(self._held) % BLOCK_BYTES
        if whole:
            self._write(bytes(self._held[:whole]))
            del self._held[:whole]

    def flush(self) -> None:
        """Write the lines that are held."""
        if self._held:
            self._write(bytes(self._held))
            self._held.clear()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                if self.patience is not None:
                    signal.setitimer(signal.ITIMER_REAL, self.patience, self.patience)
                view = view[os.write(STDOUT, view[: self._piece_bytes]) :]
                if self.patience is not None:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except BlockingIOError:  # another process that shares the pipe has made it non-blocking
                import select

                select.select([], [STDOUT], [])
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    write_all(STDERR, f"Error: the output cannot be written: {error.strerror}\n".encode())
                    os._exit(2)
                self._gone()  # the host has closed the pipe, or there was no pipe


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor, and ignore errors: the reader may have closed it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass
