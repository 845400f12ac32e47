"""The pipes to the host, by their numbers. Writing works even when nobody reads."""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False  # typing is slow to import, and not needed at run time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

STDIN, STDOUT, STDERR = 0, 1, 2

#: A pipe of Linux holds this many bytes, and most hosts read this many at once.
BLOCK_BYTES = 64 * 1024


class Output:
    """Writes to standard output in pieces of the requested size. Calls ``gone`` when nobody reads any more."""

    def __init__(self, writes: str, gone: Callable[[], NoReturn]) -> None:
        self._piece_bytes = {"lines": sys.maxsize, "blocks": BLOCK_BYTES, "bytes": 1}[writes]
        self._held = bytearray() if writes == "blocks" else None
        self._gone = gone
        self.patience: float | None = None

    def write(self, data: bytes) -> None:
        """Write a line, or hold it until a block is full."""
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
            except BlockingIOError:  # somebody who shares the pipe has made it non-blocking
                import select

                select.select([], [STDOUT], [])
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    write_all(STDERR, f"Error: the output cannot be written: {error.strerror}\n".encode())
                    os._exit(2)
                self._gone()  # the reader has closed the pipe, or there never was one


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor, and ignore errors: the reader may have closed it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass
