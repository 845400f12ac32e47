"""Write to the player's standard output and standard error."""

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

#: Capacity of a pipe on Linux, in bytes. Most hosts read this many bytes in one call.
BLOCK_BYTES = 64 * 1024


class Output:
    """Writes to standard output.

    Args:
        writes: the size of each write: ``lines``, ``blocks`` of 64 KiB, or ``bytes``.
        gone: called if the host has closed the pipe.

    Attributes:
        patience: seconds until SIGALRM if the host does not read; None for no alarm.
    """

    def __init__(self, writes: str, gone: Callable[[], NoReturn]) -> None:
        self._piece_bytes = {"lines": sys.maxsize, "blocks": BLOCK_BYTES, "bytes": 1}[writes]
        self._held = bytearray() if writes == "blocks" else None
        self._gone = gone
        self.patience: float | None = None

    def write(self, data: bytes) -> None:
        """Write a line. With ``blocks``, keep it until a block is full."""
        if self._held is None:
            self._write(data)
            return
        self._held += data
        whole = len(self._held) - len(self._held) % BLOCK_BYTES
        if whole:
            self._write(bytes(self._held[:whole]))
            del self._held[:whole]

    def flush(self) -> None:
        """Write the part of a block that ``write`` kept."""
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
            except BlockingIOError:  # another process that shares the pipe made it non-blocking
                import select

                select.select([], [STDOUT], [])
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    write_all(STDERR, f"Error: the output cannot be written: {error.strerror}\n".encode())
                    os._exit(2)
                self._gone()  # the host closed the pipe, or started the player without one


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes to a descriptor. Ignore errors, because the reader may have closed its end."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass
