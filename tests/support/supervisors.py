"""A supervisor in the test's event loop, and clients that write its frames by hand."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import host_agent
from claude_wire_kit.supervisor.daemon import Daemon, Limits
from claude_wire_kit.supervisor.disk.folder import StateFolder

#: Seconds after which a waiting test fails.
SECONDS = 120.0


class Client:
    """A client that writes frames by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *messages: Any) -> None:
        """Send messages, one per line."""
        self.writer.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def get(self) -> Any:
        """Return the next message; None at the end."""
        line = await asyncio.wait_for(self.reader.readline(), SECONDS)
        message = json.loads(line) if line else None
        if message is not None and message.get("type") != "supervisor_attached":
            message.pop("mark", None)  # frames have a mark that differs between connections
        return message

    async def until(self, kind: str) -> list[Any]:
        """Return all messages through the first one of a type."""
        got = [await self.get()]
        while got[-1] is not None and got[-1].get("type") != kind:
            got.append(await self.get())
        assert got[-1] is not None, f"the connection ended before {kind}: {got}"
        return got

    async def ask(self, command: Any) -> Any:
        """Send a command and return its answer."""
        self.send(command)
        return await self.get()

    def prompt(self, uuid: str, content: str = "hi", **wanted: Any) -> None:
        """Send a prompt. ``wanted`` asks ``host_agent`` for something."""
        content = json.dumps(wanted) if wanted else content
        self.send({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}})

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


class RunningDaemon:
    """A supervisor in the test's event loop. After it ends, another one may use its folder."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.options = options
        self._clients = AsyncExitStack()

    async def start(self) -> None:
        self.folder = StateFolder(os.fspath(self.path))
        self.folder.take()
        self.supervisor = Daemon(self.folder, **self.options)
        ready = asyncio.Event()
        self.task = asyncio.create_task(self.supervisor.run(ready.set))
        waits = asyncio.create_task(ready.wait())
        await asyncio.wait({self.task, waits}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            waits.cancel()
            await self.task
        assert waits.done()

    async def client(self) -> Client:
        return await self._clients.enter_async_context(connected(self.path))

    def spec(self, **more: Any) -> dict[str, Any]:
        """Return the specification with which a test starts its CLI."""
        return {"argv": agent(), "cwd": os.fspath(self.path), "env": dict(os.environ), **more}

    async def create(self, **more: Any) -> tuple[Client, Any]:
        """Create a session and wait for the CLI's answer to ``initialize``.

        Return its driver and the answer to the command.
        """
        client = await self.client()
        answer = await client.ask({"create": self.spec(**more), "role": "driver"})
        assert answer["type"] == "supervisor_attached", answer
        assert (await client.get())["type"] == "control_response"
        return client, answer

    async def end(self) -> None:
        """End abruptly, as if stopped in the middle of its work."""
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=SECONDS)
        self.folder.release()
        await self._clients.aclose()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Client]:
    """Connect a client to a folder's supervisor for a block."""
    reader, writer = await asyncio.open_unix_connection(folder / "socket", limit=1 << 26)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def agent() -> list[str]:
    """Return the command line of ``host_agent.py``."""
    return [sys.executable, "-B", host_agent.__file__]


@asynccontextmanager
async def hosting(path: Path, **options: Any) -> AsyncIterator[RunningDaemon]:
    """Run a supervisor for a block."""
    host = RunningDaemon(path, **options)
    await host.start()
    try:
        yield host
    finally:
        await host.end()


def limits(**fields: Any) -> Limits:
    """Return the limits of a supervisor."""
    return Limits(**fields)
