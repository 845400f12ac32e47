"""The pipes between a host and the agent of a scenario.

:class:`Wire` records all bytes in a folder that :class:`claude_wire.testing.Recording` can load.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NoReturn

import anyio
from anyio.abc import ByteSendStream

from claude_wire.agent import Turn
from claude_wire.agent.main import take_standard_streams
from claude_wire.limits import BLOCK_BYTES
from claude_wire.support import fields_of

#: The message that :meth:`Wire.put` sends through the turn. :meth:`Wire.send` replaces it with any bytes.
_PLACE = b'{"type":"conform_place"}\n'

#: One line of the host, as JSON.
Sent = dict[str, Any]


class Wire(ByteSendStream):
    """The standard streams of the agent. :meth:`receive` yields the host's lines; :meth:`send` writes to the host.

    Args:
        folder: the folder for the recording.
        flags: the flags that the host passed to the agent.
    """

    def __init__(self, folder: str, flags: Sequence[str]) -> None:
        self._stdin, self._stdout = take_standard_streams()
        # These files are not buffered, so they are complete even if the agent is killed.
        names = ("stdin.ndjson", "stdout.ndjson", "order.jsonl")
        self._files = {name: os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600) for name in names}
        # Direction -> the number of bytes of the unfinished line.
        self._unfinished = {"in": 0, "out": 0}
        self._folder = folder
        self._began = monotonic()
        self._news = anyio.Event()
        self._raw: list[tuple[bytes, anyio.Event]] = []
        #: The lines that the host has sent, decoded. A line that is not a JSON object is ``{}``.
        self.sent: list[Sent] = []
        #: True once the host has closed the agent's input.
        self.input_ended: bool = False
        #: How many seconds the agent keeps running after the end of its input.
        self.linger: float = 0.0
        self._save("cmd.json", {"argv": ["claude", *flags], "pid": os.getpid()})
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self.exit(128 + number))

    async def receive(self) -> AsyncGenerator[bytes, None]:
        """Yield the host's lines. The last one may lack its line feed."""
        rest: list[bytes] = []
        while True:
            await anyio.wait_readable(self._stdin)
            chunk = os.read(self._stdin, BLOCK_BYTES)
            *lines, last = chunk.split(b"\n")
            if lines:
                lines[0] = b"".join([*rest, lines[0]])
                rest = []
                for line in lines:
                    self._heard(line + b"\n")
                    yield line + b"\n"
            rest.append(last)
            if not chunk:
                break
        self.input_ended = True
        if end := b"".join(rest):
            self._heard(end)
            yield end
        self._tell()

    def _heard(self, line: bytes) -> None:
        self._keep("stdin.ndjson", "in", line)
        with suppress(ValueError, RecursionError):
            self.sent.append(fields_of(json.loads(line)))
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, found: Callable[[Sent], bool], count: int = 1, seconds: float = 15.0) -> bool:
        """Wait until ``count`` lines of the host satisfy ``found``.

        Return False if this did not happen within ``seconds``, or before the end of the input.
        """
        with anyio.move_on_after(seconds):
            while sum(map(found, self.sent)) < count:
                if self.input_ended:
                    return False
                await self._news.wait()
            return True
        return False

    async def send(self, item: bytes) -> None:
        """Write one of the agent's lines."""
        if item != _PLACE:
            await self._write(item)
            return
        data, written = self._raw.pop(0)
        await self._write(data)
        written.set()

    async def put(self, turn: Turn, data: bytes = b"") -> None:
        """Write any bytes after all messages that the turn has sent. Return when the bytes are written."""
        written = anyio.Event()
        self._raw.append((data, written))
        await turn.emit({"type": "conform_place"})
        await written.wait()

    async def _write(self, data: bytes) -> None:
        os.set_blocking(self._stdout, False)
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._stdout, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdout)
        if data:
            self._keep("stdout.ndjson", "out", data)

    async def aclose(self) -> None:
        """Do nothing: the streams are closed when the process exits."""

    def exit(self, code: int) -> NoReturn:
        """Exit immediately, with this exit code."""
        sys.stderr.flush()
        self._save("exit.json", {"rc": code, "input_ended": self.input_ended})
        os._exit(code)

    def _keep(self, name: str, direction: str, data: bytes) -> None:
        os.write(self._files[name], data)
        self._unfinished[direction] += len(data)
        if data.endswith(b"\n"):
            size, self._unfinished[direction] = self._unfinished[direction] - 1, 0
            entry = json.dumps([round(monotonic() - self._began, 4), direction, size])
            os.write(self._files["order.jsonl"], f"{entry}\n".encode())

    def _save(self, name: str, value: object) -> None:
        path = os.path.join(self._folder, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(f"{path}.new", path)
