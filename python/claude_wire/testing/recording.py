"""A recorded session: what went over the CLI's streams, in which order and when, and how it ended.

Knows files; not what lines mean, nor how a recording is played. What reads them is in ``player``, which needs it where
this package is not imported.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from claude_wire.testing.player import files as _files
from claude_wire.testing.player import steps as _steps

__all__ = ["Recording", "Step"]


class Step(NamedTuple):
    """One line of a session."""

    #: Since the CLI was started; 0.0 where no times were recorded.
    seconds: float
    #: ``in``: the host wrote it to the CLI's standard input. ``out``: the CLI wrote it to its standard output.
    direction: str
    #: The line, with its line feed unless the stream ended before one.
    data: bytes


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded session, from :meth:`load` or :meth:`from_files`.

    The files of a recording; only the first must be there:

    =======================  ======================================================================================
    ``stdout.ndjson``        what the CLI wrote, byte for byte
    ``stdin.ndjson``         what the host wrote; missing where the prompt was an argument
    ``order.jsonl``          ``[seconds, "in" or "out", bytes without the line feed]`` for each line of both, or for
                             lines that came at once, with the line feeds between them
    ``stdout.reads.jsonl``   ``[seconds, bytes]`` for each read of the CLI's standard output
    ``cmd.json``             ``{"argv": [...]}``, how the CLI was started
    ``exit.json``            ``{"rc": 0}``, its exit code, as :mod:`subprocess` has it
    ``stderr.txt``           what it wrote to its standard error
    =======================  ======================================================================================

    Without ``order.jsonl`` the order is what the protocol makes likely: a request before its answer, the second prompt
    after the first result.

    Attributes:
        name: what it is called, such as the name of its folder.
        files: the bytes of each file, by its name.
        path: where it was loaded from, or None.
    """

    name: str
    files: Mapping[str, bytes] = field(repr=False)
    path: str | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a recording: a folder with the files above, or one file that is the standard output alone.

        Each file may be compressed, with ``.gz`` or ``.xz`` at the end of its name.

        Raises:
            OSError: it cannot be read, or the folder has no ``stdout.ndjson``.
            ValueError: a compressed file is damaged, or all together unpack to more than 256 MiB.
        """
        location = os.path.abspath(path)
        return cls(os.path.basename(location), _files.read_files(location), location)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], name: str = "recording") -> Recording:
        """Make a recording of the contents of its files, out of an archive, say.

        Raises:
            ValueError: ``stdout.ndjson`` is missing.
        """
        if "stdout.ndjson" not in files:
            raise ValueError("a recording has a stdout.ndjson")
        return cls(name, {file: bytes(data) for file, data in files.items() if file in _files.FILES})

    def save(self, folder: str | os.PathLike[str]) -> Recording:
        """Write the files into ``folder``, which is made if need be, and return the recording that is there.

        They can be read by their owner alone: recordings have prompts in them. A symbolic link in the place of a file
        is not followed.

        Raises:
            OSError: it cannot be written, or there is something else than a file in the place of one.
        """
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name, data in self.files.items():
            write_private(os.path.join(folder, name), data, 0o600)
        location = os.path.abspath(folder)
        return Recording(self.name, self.files, location)

    @property
    def stdout(self) -> bytes:
        """What the CLI wrote, all of it."""
        return self.files["stdout.ndjson"]

    @property
    def stdin(self) -> bytes:
        """What the host wrote, all of it; empty where the prompt was an argument."""
        return self.files.get("stdin.ndjson", b"")

    @property
    def stderr(self) -> bytes:
        """What the CLI wrote to its standard error."""
        return self.files.get("stderr.txt", b"")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every line of both streams, in the order in which they went.

        Raises:
            ValueError: a file of the recording is not what it should be.
        """
        steps = _steps.steps_of(self.files)
        return tuple(Step(step.seconds, "in" if step.is_input else "out", step.data) for step in steps)

    @cached_property
    def reads(self) -> tuple[bytes, ...]:
        """The standard output in the pieces in which it was read; in one piece where that was not recorded.

        Raises:
            ValueError: ``stdout.reads.jsonl`` is not what it should be.
        """
        sizes = [size for _, size in _steps.reads_of(self.files)]
        stream = io.BytesIO(self.stdout)
        pieces = [stream.read(size) for size in sizes] + [stream.read()]
        return tuple(piece for piece in pieces if piece)

    @cached_property
    def argv(self) -> tuple[str, ...]:
        """The flags that the CLI was started with, without its own name; empty if they were not recorded."""
        return tuple(_files.flags_of(self.files))

    @cached_property
    def exit_code(self) -> int:
        """The CLI's exit code, minus the number of a signal that ended it; 0 if it was not recorded."""
        return _files.exit_code_of(self.files)


def write_private(path: str | os.PathLike[str], data: bytes, mode: int) -> None:
    """Write a file of this mode, also if there was one of another, and through no symbolic link.

    Raises:
        OSError: it cannot be written, or there is a link, a pipe or a device.
    """
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EEXIST, "in its place is a link, or something else that is no file", os.fspath(path))
    # What is put there after that look is not followed, nor waited for.
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags, mode), "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EEXIST, "in its place is a link, or something else that is no file", os.fspath(path))
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.truncate()
        file.write(data)
