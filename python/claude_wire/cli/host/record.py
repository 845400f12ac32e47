"""Writes a session down while it runs, as the recordings that :class:`claude_wire.testing.Recording` reads.

Knows files and bytes; not what the bytes mean, nor where they come from.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

__all__ = ["ENVIRONMENT", "Recorder"]

#: The variables whose values are written down: what changes how the CLI behaves, and can be no secret.
ENVIRONMENT = (
    "CI",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
    "IS_SANDBOX",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "MAX_THINKING_TOKENS",
    "NO_COLOR",
    "TERM",
    "TZ",
)

#: Files that grow, in the order of the table of :class:`~claude_wire.testing.Recording`.
GROWING = ("stdout.ndjson", "stdin.ndjson", "order.jsonl", "stdout.reads.jsonl", "stderr.txt")


class Recorder:
    """A folder that a session is written into. Only its owner can read it, because there are prompts in it.

    Whoever makes one closes it. An error while it writes, such as a full disk, is kept in ``error``. It ends the
    recording, not the session.

    Args:
        folder: is made, unless it is there and empty.
        most_bytes: of one file, after which the recording ends; None for any number.

    Raises:
        FileExistsError: there is something in the folder, or it is none.
        OSError: it cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], most_bytes: int | None = None) -> None:
        self._most_bytes = most_bytes
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.listdir(folder):
            raise FileExistsError(errno.EEXIST, "there is something in it already", os.fspath(folder))
        os.chmod(folder, 0o700)
        self._folder = folder
        self._began = time.monotonic()
        #: Why the recording is not whole.
        self.error: OSError | None = None
        self._line_bytes = 0
        self._files: dict[str, IO[bytes]] = {}
        try:
            for name in GROWING:
                self._files[name] = self._new(name)
        except BaseException:
            self.close()
            raise

    def started(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        """Write down how the CLI is started; of its environment only :data:`ENVIRONMENT`."""
        self._began = time.monotonic()
        known = {name: env[name] for name in ENVIRONMENT if name in env}
        self._write_whole("cmd.json", {"argv": list(argv), "env": known, "cwd": cwd})

    def received(self, chunk: bytes) -> None:
        """Take what one read of the CLI's standard output gave."""
        seconds = self._seconds()
        first, *others = chunk.split(b"\n")
        ends = [len(part) for part in (first, *others)]
        ends[0] += self._line_bytes
        self._line_bytes = ends.pop()
        self._write("stdout.ndjson", chunk)
        self._write("stdout.reads.jsonl", _row(seconds, len(chunk)))
        self._write("order.jsonl", b"".join(_row(seconds, "out", size) for size in ends))

    def sent(self, line: bytes) -> None:
        """Take a line that was written to the CLI's standard input."""
        self._write("stdin.ndjson", line)
        self._write("order.jsonl", _row(self._seconds(), "in", len(line.removesuffix(b"\n"))))

    def stderr(self, line: str) -> None:
        """Take a line of the CLI's standard error."""
        self._write("stderr.txt", line.encode("utf-8", "backslashreplace") + b"\n")

    def ended(self, returncode: int | None) -> None:
        """Write down how the CLI ended, as :mod:`subprocess` has it; None if that is not known."""
        how = "unknown" if returncode is None else "signal" if returncode < 0 else "exit"
        self._write_whole("exit.json", {"rc": returncode, "how": how, "secs": self._seconds()})

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            try:
                file.close()
            except OSError as error:
                self.error = self.error or error

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 4)

    def _new(self, name: str) -> IO[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        return open(os.open(os.path.join(self._folder, name), flags, 0o600), "wb")

    def _write_whole(self, name: str, value: dict[str, Any]) -> None:
        try:
            with self._new(name) as file:
                file.write(json.dumps(value, indent=1).encode())
        except OSError as error:
            self.error = self.error or error

    def _write(self, name: str, data: bytes) -> None:
        if self.error is not None:
            return
        try:
            if self._most_bytes is not None and self._files[name].tell() + len(data) > self._most_bytes:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            self._files[name].write(data)
            self._files[name].flush()  # what was recorded is there, however this process ends
        except OSError as error:
            self.error = error


def _row(*values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"
