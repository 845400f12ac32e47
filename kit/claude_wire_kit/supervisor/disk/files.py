"""Files that only their owner can read, in a folder that only its owner can change.

Knows paths, modes and symbolic links; not what the files mean.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat


def private_folder(path: str) -> str:
    """Make a folder of mode 0700 if there is none, and return its path.

    Raises:
        OSError: it cannot be made; or there is a symbolic link, another user's folder, or one that others may change.
    """
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, "in its place is a link, or something else that is no folder", path) from None
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "the folder belongs to another user", path) from None
        if found.st_mode & 0o022:
            raise OSError(errno.EPERM, "other users may change the folder: chmod 700 it", path) from None
    return path


def open_private(path: str, flags: int) -> int:
    """Open a file of mode 0600, which is made if ``flags`` have ``O_CREAT``, and return its descriptor.

    Raises:
        OSError: it cannot be opened, or there is a symbolic link, a pipe or a device.
    """
    # A pipe is opened without waiting for its other end, and then refused.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EEXIST, "in its place is something else that is no file", path)
    return descriptor


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it.

    Raises:
        OSError: something cannot be removed, or there is no folder. A pipe in its place is not opened: that would wait.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(errno.ENOTDIR, "in its place is something else that is no folder", path)
    shutil.rmtree(path)


def write_whole(path: str, data: bytes) -> None:
    """Replace a file by ``data``: who reads it finds the old file or the new one, also after a crash.

    Raises:
        OSError: it cannot be written. The old file is there then.
    """
    beside = f"{path}.new"
    descriptor = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
