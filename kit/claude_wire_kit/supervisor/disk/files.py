"""Create and open files and folders that only their owner can use. All functions refuse symbolic links."""

from __future__ import annotations

import errno
import os
import shutil
import stat


def private_folder(path: str) -> str:
    """Create a folder of mode 0700 if it is missing, and return its path.

    Raises:
        OSError: the folder cannot be created, is a symbolic link, belongs to another user, or others may write to it.
    """
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, "the path is not a folder, but a link or something else", path) from None
        if found.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "the folder belongs to another user", path) from None
        if found.st_mode & 0o022:
            raise OSError(errno.EPERM, "other users may change the folder: chmod 700 it", path) from None
    return path


def open_private(path: str, flags: int) -> int:
    """Open a file of mode 0600, and return its descriptor. With ``O_CREAT`` in ``flags``, create it if it is missing.

    Also an opener for :func:`open`: ``open(path, "rb", opener=open_private)``.

    Raises:
        OSError: the file cannot be opened, or is a symbolic link, a pipe or a device.
    """
    # Without O_NONBLOCK, opening a pipe would block until its other end is opened.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EEXIST, "the path is not a regular file", path)
    return descriptor


def remove_tree(path: str) -> None:
    """Remove a folder and everything in it.

    Raises:
        OSError: something cannot be removed, or ``path`` is not a folder.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(errno.ENOTDIR, "the path is not a folder", path)
    shutil.rmtree(path)


def write_whole(path: str, data: bytes) -> None:
    """Replace a file atomically. Readers find the whole old file or the whole new one, even after a crash.

    Raises:
        OSError: the file cannot be written. The old file stays.
    """
    beside = f"{path}.new"
    with open(beside, "wb", opener=open_private) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
