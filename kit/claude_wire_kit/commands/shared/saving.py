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
    """Write text to a file in UTF-8, or to standard output for ``-``.

    A file gets its name when it is complete. One that was there before stays until then, and when something fails.

    Raises:
        Failure: it cannot be written.
    """
    if path == "-":
        for part in parts:
            sys.stdout.buffer.write(part.encode())
        return
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            _write(parts, os.open(target, os.O_WRONLY))  # a pipe or a terminal cannot be replaced by a new file
            return
        folder, name = os.path.split(target)
        # A name may have 255 bytes, and the temporary name is longer than ``name``.
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
