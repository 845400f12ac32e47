"""Files that anybody may have put into the CLI's folder: opened without waiting, and read up to a limit.

Knows files; not what is in them.
"""

from __future__ import annotations

import os
import stat
from typing import IO

__all__ = ["open_regular", "read_small"]


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading. A FIFO may never have a writer, and a device may never end.

    Raises:
        OSError: the file cannot be opened, or is no regular file.
    """
    return open(path, "rb", opener=_open)


def read_small(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """The whole of a small file.

    Raises:
        OSError: the file cannot be read, is no regular file, or has more than ``most_bytes``.
    """
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"the file has more than {most_bytes:,} bytes")
    return data


def _open(path: str, flags: int) -> int:
    # Opening a FIFO waits for its writer unless told not to.
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(file).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # open() says of a directory what it is
        os.close(file)
        raise OSError("not a regular file")
    return file
