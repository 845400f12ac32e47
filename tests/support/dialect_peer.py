"""An agent of any dialect at the other end of a session. It writes exactly the lines that a test passes."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.lowlevel

from async_backends import DEADLINE
from claude_wire import MessageStream, Session
from session_peer import Output

__all__ = ["LinePeer"]


class LinePeer:
    """A fake agent. It never answers on its own."""

    def __init__(self) -> None:
        self.output = Output()
        #: The chunks that the session sent: one or more lines each.
        self.sent: list[bytes] = []
        self._changed = anyio.Event()

    def session(self, **arguments: Any) -> Session:
        return Session(MessageStream(self.output), self.send, **arguments)

    async def send(self, line: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        self.sent.append(line)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def say(self, *frames: dict[str, Any] | str, size: int | None = None) -> None:
        """Write frames as compact JSON, one per line, in one chunk or in chunks of ``size`` bytes."""
        lines = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in frames]
        data = "".join(line + "\n" for line in lines).encode()
        for at in range(0, len(data), size or len(data)):
            self.output.write(data[at : at + (size or len(data))])

    async def got(self, count: int) -> list[dict[str, Any]]:
        """Wait until the session has sent ``count`` lines, and return all lines as objects."""
        with anyio.fail_after(DEADLINE):
            while len(lines := b"".join(self.sent).splitlines()) < count:
                await self._changed.wait()
        return [json.loads(line) for line in lines]
