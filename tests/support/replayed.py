"""Small recordings, the child processes that replay them, and helpers that read the output of these children."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import select
import subprocess
from collections.abc import Iterator
from typing import Any

import recordings
from claude_wire.testing import Recording

#: Seconds after which a waiting test fails.
DEADLINE = 60.0

#: Seconds without output after which a child counts as quiet. On a slow machine this can only hide a failure.
QUIET = 0.2

STREAM = ["--input-format", "stream-json", "--output-format", "stream-json"]
PRINT = ["-p", "--output-format", "stream-json", "hello"]


def recording(name: str) -> Recording:
    return Recording.from_files(recordings.load(name).files, name)


def line(**message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def user(text: str) -> bytes:
    return line(type="user", message={"role": "user", "content": text})


def request(identity: str, subtype: str, **fields: Any) -> bytes:
    return line(type="control_request", request_id=identity, request={"subtype": subtype, **fields})


def response(identity: str, **payload: Any) -> bytes:
    return line(type="control_response", response={"subtype": "success", "request_id": identity, "response": payload})


def said(text: str) -> bytes:
    return line(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]})


RESULT = line(type="result", subtype="success", is_error=False)
GZIPPED = gzip.compress(RESULT, mtime=0)  # it is part of test ids, which must be equal in all pytest-xdist workers


def session(*steps: tuple[str, bytes], times: list[float] | None = None, **more: bytes) -> Recording:
    """Build a recording from steps: ``("in", line)`` or ``("out", line)``."""
    seconds = times or [0.0] * len(steps)
    order = [[at, way, len(data.removesuffix(b"\n"))] for at, (way, data) in zip(seconds, steps, strict=True)]
    files = {
        "stdout.ndjson": b"".join(data for way, data in steps if way == "out"),
        "order.jsonl": b"".join(json.dumps(entry).encode() + b"\n" for entry in order),
        **{name.replace("_", "."): data for name, data in more.items()},
    }
    if any(way == "in" for way, _ in steps):
        files["stdin.ndjson"] = b"".join(data for way, data in steps if way == "in")
    return Recording.from_files(files)


#: A session with two prompts, in which the CLI asks one permission question.
ASKING = session(
    ("in", request("r1", "initialize")),
    ("out", response("r1", commands=["recorded"])),
    ("in", user("one")),
    ("out", said("first")),
    ("out", request("cli-1", "can_use_tool", tool_name="Bash")),
    ("in", response("cli-1", behavior="allow")),
    ("out", RESULT),
    ("in", user("two")),
    ("out", said("second")),
    ("out", RESULT),
)

#: A session whose prompt was a command-line argument.
ONE_SHOT = session(("out", said("a")), ("out", said("b")), ("out", RESULT), exit_json=b'{"rc": 3}')


class Child:
    """A running stand-in for the CLI, with pipes to its standard streams."""

    def __init__(self, argv: list[str], **options: Any) -> None:
        pipe = subprocess.PIPE
        options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "bufsize": 0, **options}
        self.process = subprocess.Popen(argv, **options)
        self._read = b""

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _wait_readable(self, seconds: float) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def receive_line(self) -> bytes:
        """Return the next line, or the rest of the output at its end."""
        assert self.process.stdout is not None
        while b"\n" not in self._read:
            assert self._wait_readable(DEADLINE), "nothing comes"
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                rest, self._read = self._read, b""
                return rest
            self._read += data
        at = self._read.index(b"\n") + 1
        taken, self._read = self._read[:at], self._read[at:]
        return taken

    def is_quiet(self) -> bool:
        """Return whether there is no unread output, and none arrives within QUIET seconds."""
        return not self._read and not self._wait_readable(QUIET)

    def rest(self) -> bytes:
        """Read and return the remaining output."""
        lines = []
        while data := self.receive_line():
            lines.append(data)
        return b"".join(lines)

    def finish(self) -> tuple[bytes, bytes, int]:
        """Close the input. Return the remaining output, the standard error and the exit code."""
        self.end()
        out = self.rest()
        assert self.process.stderr is not None
        return out, self.process.stderr.read(), self.process.wait(DEADLINE)


@contextlib.contextmanager
def running(argv: list[str], **options: Any) -> Iterator[Child]:
    child = Child(argv, **options)
    with child.process:
        try:
            yield child
        finally:
            child.process.kill()


def run(argv: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=DEADLINE, check=False)


def parsed(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
