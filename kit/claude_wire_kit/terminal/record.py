"""Record a running session in the format that :class:`claude_wire.testing.Recording` reads."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

#: The environment variables to record: they affect the CLI, and their values cannot be secrets.
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

#: The files that grow, in the order of the table in :class:`~claude_wire.testing.Recording`.
GROWING = ("stdout.ndjson", "stdin.ndjson", "order.jsonl", "stdout.reads.jsonl", "stderr.txt")

#: A chunk of at least this many bytes gets one row in ``order.jsonl`` for all its lines. For 1 GB in lines of 285
#: bytes, a row for each line took 0.9 CPU seconds, and counting the lines 0.4. Writing the lines themselves takes 0.25.
AT_ONCE_BYTES = 32 * 1024


class Recorder:
    """Records a session in a folder that only this user can read. Call :meth:`close` at the end.

    The methods do not raise write errors, such as a full disk. The first error ends the recording, and sets ``error``.

    Args:
        folder: the folder, which is created. It may exist if it is empty.
        most_bytes: maximum size in bytes of each file. At this size, the recording ends. None for no limit.

    Raises:
        FileExistsError: the folder is not empty, or it is not a folder.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], most_bytes: int | None = None) -> None:
        self._most_bytes = most_bytes
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.listdir(folder):
            raise FileExistsError(errno.EEXIST, "the folder is not empty", os.fspath(folder))
        os.chmod(folder, 0o700)
        self._folder = folder
        self._began = time.monotonic()
        #: The error that ended the recording early; None if there was none.
        self.error: OSError | None = None
        # Direction -> the number of bytes in its unfinished line.
        self._unfinished = {"in": 0, "out": 0}
        self._files: dict[str, IO[bytes]] = {}
        self._sizes: dict[str, int] = dict.fromkeys(GROWING, 0)
        try:
            for name in GROWING:
                self._files[name] = self._new(name)
        except BaseException:
            self.close()
            raise

    def started(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], at: float | None = None) -> None:
        """Record the start of the CLI. Of ``env``, record only the variables in :data:`ENVIRONMENT`.

        Args:
            at: the time, from :func:`time.monotonic`; None for now. The other methods have the same argument.
        """
        self._began = time.monotonic() if at is None else at
        known = {name: env[name] for name in ENVIRONMENT if name in env}
        self._write_whole("cmd.json", {"argv": list(argv), "env": known, "cwd": cwd})

    def received(self, chunk: bytes, at: float | None = None) -> None:
        """Record the bytes of one read from the CLI's standard output."""
        seconds = self._seconds(at)
        self._write("stdout.ndjson", chunk)
        self._write("stdout.reads.jsonl", _row(seconds, len(chunk)))
        self._write_order("out", chunk, seconds)

    def received_from(self, pipe: int, size: int, at: float | None = None) -> None:
        """Record one read by splicing ``size`` bytes from a pipe that contains exactly these bytes. Linux only."""
        seconds = self._seconds(at)
        file, begin = self._files["stdout.ndjson"], self._sizes["stdout.ndjson"]
        self._write("stdout.ndjson", b"", size)
        left = size
        try:
            while left and self.error is None:
                left -= os.splice(pipe, file.fileno(), left)
        except OSError as error:
            self.error = error
        if self.error is not None:
            return
        self._write("stdout.reads.jsonl", _row(seconds, size))
        if size < AT_ONCE_BYTES:
            self._write_order("out", os.pread(file.fileno(), size, begin), seconds)
        else:
            end = _last_line_feed(file.fileno(), begin, size)
            self._write_rows("out", [size] if end < 0 else [end, size - end - 1], seconds)

    def sent(self, chunk: bytes, at: float | None = None) -> None:
        """Record bytes written to the CLI's standard input."""
        self._write("stdin.ndjson", chunk)
        self._write_order("in", chunk, self._seconds(at))

    def stderr(self, text: str | bytes) -> None:
        """Record output from the CLI's standard error: a line as a str, without its line feed, or raw bytes."""
        if isinstance(text, str):
            text = text.encode("utf-8", "backslashreplace") + b"\n"
        self._write("stderr.txt", text)

    def ended(self, returncode: int | None) -> None:
        """Record the CLI's exit. ``returncode`` is negative if a signal killed the CLI, and None if it is not known."""
        how = "unknown" if returncode is None else "signal" if returncode < 0 else "exit"
        self._write_whole("exit.json", {"rc": returncode, "how": how, "secs": self._seconds()})

    def close(self) -> None:
        for file in self._files.values():
            try:
                file.close()
            except OSError as error:
                self.error = self.error or error

    def _seconds(self, at: float | None = None) -> float:
        return round((time.monotonic() if at is None else at) - self._began, 4)

    def _new(self, name: str) -> IO[bytes]:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        # Unbuffered: the recording has everything so far, even if this process is killed.
        return open(os.open(os.path.join(self._folder, name), flags, 0o600), "wb", buffering=0)

    def _write_whole(self, name: str, value: dict[str, Any]) -> None:
        try:
            with self._new(name) as file:
                file.write(json.dumps(value, indent=1).encode())
        except OSError as error:
            self.error = self.error or error

    def _write_order(self, direction: str, chunk: bytes, seconds: float) -> None:
        """Write a row for each complete line to ``order.jsonl``, or one row for all lines of a large chunk."""
        if len(chunk) < AT_ONCE_BYTES:
            ends = [len(part) for part in chunk.split(b"\n")]
        else:
            end = chunk.rfind(b"\n")
            ends = [len(chunk)] if end < 0 else [end, len(chunk) - end - 1]
        self._write_rows(direction, ends, seconds)

    def _write_rows(self, direction: str, ends: list[int], seconds: float) -> None:
        """Write a row to ``order.jsonl`` for each size in ``ends`` except the last, the size of the unfinished line."""
        ends[0] += self._unfinished[direction]
        self._unfinished[direction] = ends.pop()
        self._write(
            "order.jsonl", b"".join([b'[%.4f, "%s", %d]\n' % (seconds, direction.encode(), size) for size in ends])
        )

    def _write(self, name: str, data: bytes, more: int = 0) -> None:
        """Write ``data``, unless ``data`` and ``more`` other bytes would exceed the file's size limit."""
        if self.error is not None:
            return
        self._sizes[name] += len(data) + more
        try:
            if self._most_bytes is not None and self._sizes[name] > self._most_bytes:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            written = self._files[name].write(data) if data else 0
            while written < len(data):
                data = data[written:]
                written = self._files[name].write(data)
        except OSError as error:
            self.error = error


def _row(seconds: float, size: int) -> bytes:
    return b"[%.4f, %d]\n" % (seconds, size)


def _last_line_feed(file: int, begin: int, size: int) -> int:
    """Return the position of the last line feed in the ``size`` bytes of a file after ``begin``, or -1."""
    end = size
    while end:
        start = max(0, end - AT_ONCE_BYTES)
        found = os.pread(file, end - start, begin + start).rfind(b"\n")
        if found >= 0:
            return start + found
        end = start
    return -1
