"""Write a page to standard output, or to a file that appears only when it is complete."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.sources import display_name


def save(parts: Iterable[str], path: str) -> None:
    """Write text in UTF-8 to a file, or to standard output for ``-``.

    Writes to a temporary file, which replaces ``path`` when it is complete. After an error, ``path`` is unchanged.

    Raises:
        Failure: the file cannot be written.
    """
    if path == "-":
        for part in parts:
            sys.stdout.buffer.write(part.encode())
        return
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            _write(parts, os.open(target, os.O_WRONLY))  # do not replace a pipe or a terminal
            return
        folder, name = os.path.split(target)
        # Cut the name, because the temporary name is longer, and a name may have at most 255 bytes.
        unfinished = os.path.join(folder, f"{name[:40]}.{secrets.token_hex(4)}")
        try:
            _write(parts, os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.replace(unfinished, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
    except OSError as error:
        raise Failure(f"{display_name(path)} cannot be written: {error.strerror or error}") from error


def _write(parts: Iterable[str], descriptor: int) -> None:
    with open(descriptor, "wb") as file:
        for part in parts:
            file.write(part.encode())
