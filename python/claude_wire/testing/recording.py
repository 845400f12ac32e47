"""A recorded session: the CLI's input and output lines in order, when each line was written, and the exit code.

The code that reads the files is in the package ``player``, because the player runs without the rest of the library.
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


class Step(NamedTuple):
    """One line of a recorded session."""

    seconds: float
    """Seconds since the start of the CLI; 0.0 if no times were recorded."""
    direction: str
    """``in``: the host wrote the line to the CLI's standard input. ``out``: the CLI wrote it to its standard output."""
    data: bytes
    """The line with its line feed. The line feed is missing if the stream ended in the middle of the line."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A recorded session, from :meth:`load` or :meth:`from_files`.

    A recording has these files. Only ``stdout.ndjson`` is required:

    =======================  ======================================================================================
    ``stdout.ndjson``        the CLI's output, byte for byte
    ``stdin.ndjson``         the input from the host; missing if the prompt was an argument
    ``order.jsonl``          ``[seconds, "in" or "out", bytes without the last line feed]``, for each line of both, or
                             for several lines that were read or written together
    ``stdout.reads.jsonl``   ``[seconds, bytes]`` for each read of the CLI's standard output
    ``cmd.json``             ``{"argv": [...]}``, the CLI's command line
    ``exit.json``            ``{"rc": 0}``, the CLI's exit code, as in :mod:`subprocess`
    ``stderr.txt``           the CLI's standard error
    =======================  ======================================================================================

    Without ``order.jsonl``, the order is guessed from the protocol: a request comes before its answer, and the second
    prompt after the first result.

    Attributes:
        name: the recording's name. :meth:`load` uses the folder's name.
        files: file name -> content.
        path: absolute path of the folder or file; None if the recording is not on disk.
    """

    name: str
    files: Mapping[str, bytes] = field(repr=False)
    path: str | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a recording: a folder with the files above, or a single file with the standard output.

        Each file may be compressed, with ``.gz`` or ``.xz`` at the end of its name.

        Raises:
            OSError: a file cannot be read, or the folder has no ``stdout.ndjson``.
            ValueError: a compressed file is damaged, or the compressed files unpack to more than 256 MiB in all.
        """
        location = os.path.abspath(path)
        return cls(os.path.basename(location), _files.read_files(location), location)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], name: str = "recording") -> Recording:
        """Create a recording from file contents, for example from an archive.

        Raises:
            ValueError: ``stdout.ndjson`` is missing.
        """
        if "stdout.ndjson" not in files:
            raise ValueError("a recording needs a stdout.ndjson")
        return cls(name, {file: bytes(data) for file, data in files.items() if file in _files.FILES})

    def save(self, folder: str | os.PathLike[str]) -> Recording:
        """Write the files into ``folder``, which is created if it is missing. Return the recording with this path.

        Only the owner can read the files, because recordings contain prompts. Symbolic links are not followed.

        Raises:
            OSError: a file cannot be written, or a link, a pipe or a device is in its place.
        """
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for name, data in self.files.items():
            write_private(os.path.join(folder, name), data, 0o600)
        location = os.path.abspath(folder)
        return Recording(self.name, self.files, location)

    @property
    def stdout(self) -> bytes:
        """The CLI's whole output."""
        return self.files["stdout.ndjson"]

    @property
    def stdin(self) -> bytes:
        """The whole input from the host; empty if the prompt was an argument."""
        return self.files.get("stdin.ndjson", b"")

    @property
    def stderr(self) -> bytes:
        """The CLI's standard error."""
        return self.files.get("stderr.txt", b"")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every line of both streams, in the order in which they were written.

        Raises:
            ValueError: a file of the recording is damaged.
        """
        steps = _steps.steps_of(self.files)
        return tuple(Step(step.seconds, "in" if step.is_input else "out", step.data) for step in steps)

    @cached_property
    def reads(self) -> tuple[bytes, ...]:
        """The standard output, with one item for each recorded read, or a single item if reads were not recorded.

        Raises:
            ValueError: ``stdout.reads.jsonl`` is damaged.
        """
        sizes = [size for _, size in _steps.reads_of(self.files)]
        stream = io.BytesIO(self.stdout)
        pieces = [stream.read(size) for size in sizes] + [stream.read()]
        return tuple(piece for piece in pieces if piece)

    @cached_property
    def argv(self) -> tuple[str, ...]:
        """The recorded CLI's arguments, without the program name; empty if they were not recorded."""
        return tuple(_files.flags_of(self.files))

    @cached_property
    def exit_code(self) -> int:
        """The CLI's exit code; minus the signal number if a signal killed the CLI; 0 if it was not recorded."""
        return _files.exit_code_of(self.files)


def write_private(path: str | os.PathLike[str], data: bytes, mode: int) -> None:
    """Write a file with this mode. Overwrite an existing file, but never follow a symbolic link.

    Raises:
        OSError: the file cannot be written, or a link, a pipe or a device is in its place.
    """
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EEXIST, "the path is not a regular file, but a link or something else", os.fspath(path))
    # Another process may put a link or a pipe there after this check. open() must not follow it or wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags, mode), "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EEXIST, "the path is not a regular file, but a link or something else", os.fspath(path))
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.truncate()
        file.write(data)
