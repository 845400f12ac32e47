"""The web service for tests, over real sockets, with a supervisor in the test's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket

import host_agent
from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.web import Config, Profile, create_app
from claude_wire_kit.web.server import BoundedProtocol, ServiceServer, listen
from supervisors import SECONDS, RunningDaemon, hosting

__all__ = ["TOKEN", "Served", "agent_profile", "served"]

TOKEN = "t" * 43


class _Server(ServiceServer):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # pytest handles the signals in tests


class Served:
    """A running service, and functions that create clients for it."""

    def __init__(self, supervised: RunningDaemon, config: Config, protocol: type[BoundedProtocol]) -> None:
        self.supervised = supervised
        self.config = config
        self.protocol = protocol
        self.port = 0

    async def start(self) -> None:
        """Start the service. A restart uses the same port."""
        listener = listen("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        app = create_app(connect(self.supervised.path), self.config, TOKEN, port=self.port)
        self.server = _Server(app, self.protocol)
        self.task = asyncio.create_task(self.server.serve(sockets=[listener]))
        while not self.server.started and not self.task.done():
            await asyncio.sleep(0.01)
        if self.task.done():
            await self.task

    async def stop(self) -> None:
        self.server.should_exit = True
        await asyncio.wait_for(self.task, SECONDS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **headers: str) -> httpx.AsyncClient:
        """Return a client that sends the token and these headers."""
        given = {"Authorization": f"Bearer {TOKEN}", **headers}
        return httpx.AsyncClient(base_url=self.url, headers=given, timeout=SECONDS, trust_env=False, verify=False)

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """Return a client like a browser: without the token, with cookies, and with an ``Origin`` header."""
        given = {"Origin": self.url, **headers}
        return httpx.AsyncClient(base_url=self.url, headers=given, timeout=SECONDS, trust_env=False, verify=False)

    async def create(self, *prompts: dict[str, Any], profile: str = "agent") -> str:
        """Create a session, send these prompts, and wait until the agent has answered the last one."""
        async with self.client() as client:
            made = await client.post("/sessions", json={"profile": profile})
            assert made.status_code == 201, made.text
            id: str = made.json()["id"]
            for prompt in prompts:
                sent = await client.post(f"/sessions/{id}/prompts", json={"text": json.dumps(prompt)})
                assert sent.status_code == 202, sent.text
        return id

    @asynccontextmanager
    async def events(self, id: str, after: str | None = None, query: str = "") -> AsyncIterator[EventReader]:
        """Open the event stream of a session as a program does, with the token."""
        headers = {} if after is None else {"Last-Event-ID": after}
        async with self.client(**headers) as client, client.stream("GET", f"/sessions/{id}/events{query}") as reply:
            assert reply.status_code == 200, (reply.status_code, await reply.aread())
            assert reply.headers["content-type"].startswith("text/event-stream")
            yield EventReader(reply)

    @asynccontextmanager
    async def websocket(self, id: str, query: str = "") -> AsyncIterator[ClientConnection]:
        url = f"ws://127.0.0.1:{self.port}/sessions/{id}/events{query}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with connect_websocket(url, additional_headers=headers, max_size=None, proxy=None) as connection:
            yield connection


class EventReader:
    """Read a stream of Server-Sent Events event by event."""

    def __init__(self, reply: httpx.Response) -> None:
        self._bytes = reply.aiter_raw()
        self._rest = b""

    async def piece(self) -> bytes:
        """Return the bytes of the next event, with its id and name; b"" at the end."""
        return await asyncio.wait_for(self._piece(), SECONDS)

    async def _piece(self) -> bytes:
        while True:
            head, found, rest = self._rest.partition(b"\n\n")
            if found:
                self._rest = rest
                if head.startswith((b":", b"retry:")):
                    continue
                return head + found
            try:
                self._rest += await anext(self._bytes)
            except StopAsyncIteration:
                return b""

    async def until_state(self, **fields: Any) -> list[bytes]:
        """Return the events with ids before the first ``session_state`` that has these fields."""
        found = []
        while piece := await self.piece():
            name, data = named(piece)
            if name == "message":
                found.append(piece)
            elif name == "session_state" and fields.items() <= data.items():
                return found
        raise AssertionError(f"the events ended before {fields}: {found[-3:]}")

    async def until(self, type: str) -> list[bytes]:
        """Return the events with ids through the first event of this type."""
        found = []
        while piece := await self.piece():
            name, data = named(piece)
            if name == "message":
                found.append(piece)
                if data["type"] == type:
                    return found
        raise AssertionError(f"the events ended before {type}: {found[-3:]}")


def named(piece: bytes) -> tuple[str, Any]:
    """Return the name of an event and its data."""
    fields = dict(line.split(": ", 1) for line in piece.decode().strip().split("\n"))
    return fields.get("event", "message"), json.loads(fields["data"])


def id_of(piece: bytes) -> str:
    """Return the id of an event."""
    return piece.split(b"\n", 1)[0].removeprefix(b"id: ").decode()


def agent_profile(folder: Path, **more: Any) -> Profile:
    """Return a profile whose CLI is ``host_agent.py``."""
    argv = [sys.executable, "-B", host_agent.__file__, "--replay-user-messages"]
    return Profile(roots=[os.fspath(folder)], **{"argv": argv, **more})


@asynccontextmanager
async def served(
    folder: Path, *, protocol: type[BoundedProtocol] = BoundedProtocol, **profiles: Profile
) -> AsyncIterator[Served]:
    """Run a service with a new supervisor for a block."""
    config = Config(profiles={"agent": agent_profile(folder), **profiles}, hosts=["work.example"])
    async with hosting(folder / "state") as supervised:
        service = Served(supervised, config, protocol)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()
