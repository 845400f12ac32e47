"""Open files in the CLI's folder safely: opening never waits for a FIFO, and reading has a limit."""

from __future__ import annotations

import os
import stat
from typing import IO


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading. Refuse a FIFO, which may never get a writer, and a device, which may never end.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
    """
    return open(path, "rb", opener=_open)


def read_small(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the whole content of a small file.

    Raises:
        OSError: the file cannot be read, is not a regular file, or has more than ``most_bytes``.
    """
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"the file has more than {most_bytes:,} bytes")
    return data


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK, opening a FIFO waits for its writer.
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(file).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # for a directory, open() raises IsADirectoryError
        os.close(file)
        raise OSError("not a regular file")
    return file
