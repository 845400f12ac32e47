"""Clients that send much, leave early or read nothing: the log and the memory stay bounded, and others are served."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from claude_wire_kit.web import feed
from claude_wire_kit.web import service as service_module
from claude_wire_kit.web.access import HEADERS
from claude_wire_kit.web.server import LOG_BURST, BoundedWebSocket
from served import TOKEN, Served, id_of, served

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
LOGIN = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"
EVENTS = "GET /sessions/{id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{upgrade}\r\n"


async def reply_to(service: Served, sent: str) -> bytes:
    """Send bytes to the service. Return everything that it answers until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        writer.write(sent.encode("latin-1"))
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        "\x00garbage\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 70_000}\r\n\r\n",
        "GET / HTTP/1.1\r\n" + "X: y\r\n" * 11_000 + "Host: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        f"GET /sessions/a/events HTTP/1.1\r\nHost: localhost\r\n{UPGRADE.replace('AA==', '')}\r\n",
        f"GET /sessions/a/events HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}X: {'x' * 10_000}\r\n\r\n",
    ],
    ids=["garbage", "a long head in one piece", "many headers", "two hosts", "no key", "a long header of a WebSocket"],
)
async def test_a_request_that_is_none_is_refused_with_the_headers_of_each_reply(tmp_path: Path, sent: str) -> None:
    async with served(tmp_path) as service:
        head = (await reply_to(service, sent)).partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")
        assert head[0] == "http/1.1 400 bad request"
        for name, value in HEADERS.items():
            assert f"{name}: {value}".lower() in head


async def test_a_head_of_64_kib_passes(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        head = f"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {'x' * 60_000}\r\n\r\n"
        assert (await reply_to(service, head)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "sent",
    [
        LOGIN,
        "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        f"GET /sessions/a/events HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n",
        f"GET /sessions/a/events HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n\x81\x00",
    ],
    ids=["a body", "a part of a body", "a WebSocket", "a frame"],
)
async def test_a_client_that_leaves_early_writes_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    async with served(tmp_path) as service:
        monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writer.write(sent.encode())
            await writer.drain()
            writer.transport.abort()
            del reader
        while service.server.server_state.connections or service.server.server_state.tasks:
            await asyncio.sleep(0.01)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


@pytest.fixture
def uvicorn_log() -> Iterator[None]:
    """Restore the handlers of uvicorn's logger after the test."""
    logger = logging.getLogger("uvicorn")
    handlers, propagate = logger.handlers[:], logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagate


async def test_the_log_has_so_many_lines_of_a_flood(
    tmp_path: Path, uvicorn_log: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.web.server.LOG_RATE", 0.0)
    async with served(tmp_path) as service:
        for _ in range(LOG_BURST * 5):
            await reply_to(service, "\x00\r\n\r\n")
    said = capsys.readouterr().err
    assert said.count("Invalid HTTP request received.") == LOG_BURST


async def test_wrong_tokens_are_refused_by_their_number_and_the_right_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.web.access.RATE", 0.0)
    async with served(tmp_path) as service, service.browser() as browser:
        statuses = [(await browser.post("/login", json={"token": "wrong"})).status_code for _ in range(62)]
        assert statuses == [401] * 60 + [429] * 2
        assert (await browser.post("/login", json={"token": TOKEN})).status_code == 204
        assert (await browser.post("/sessions", json={"profile": "missing"})).status_code == 404


async def test_pings_of_a_client_that_reads_nothing_are_kept_by_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    took = asyncio.Event()
    ping = BoundedWebSocket.handle_ping

    def measured(protocol: BoundedWebSocket) -> None:
        ping(protocol)
        sizes.append(protocol.transport.get_write_buffer_size() + len(protocol._pong))
        if len(sizes) >= 40_000:
            took.set()

    monkeypatch.setattr(BoundedWebSocket, "handle_ping", measured)
    monkeypatch.setattr(BoundedWebSocket, "stalled_seconds", 3600.0)  # a busy machine may need longer than 30 s
    async with served(tmp_path) as service:
        id = await service.create()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, ("127.0.0.1", service.port))
            await loop.sock_sendall(client, EVENTS.format(id=id, token=TOKEN, upgrade=UPGRADE).encode())
            assert (await loop.sock_recv(client, 12)) == b"HTTP/1.1 101"
            flood = (b"\x89\xfd\0\0\0\0" + b"p" * 125) * 1_000
            while not took.is_set():
                await asyncio.wait_for(loop.sock_sendall(client, flood), 30)
    assert max(sizes) < 1_000_000
    assert sum(size == sizes[-1] for size in sizes) > 10_000, "it stays as it is"


async def test_who_does_not_read_older_events_keeps_nobody_from_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service cuts off such clients for others. They can reconnect and continue after their last event."""
    monkeypatch.setattr(feed, "OLDER_SECONDS", 0.1)
    async with served(tmp_path) as service:
        id = await service.create({"lines": 600, "pad": "x" * 20_000})
        whole: list[bytes] = []
        while not whole or b"turn_complete" not in whole[-1]:
            async with service.events(id, id_of(whole[-1]) if whole else None) as events:
                while (piece := await events.piece()).startswith(b"id: "):
                    whole.append(piece)
        stalled = []
        for _ in range(feed.MAX_OLDER * 2):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", service.port))
            one.sendall(EVENTS.format(id=id, token=TOKEN, upgrade="").encode())
            stalled.append(one)
        (followed,) = service.server._app.state.service._feeds
        while followed.users < len(stalled) or len(followed._older_readers._taken) < feed.MAX_OLDER:
            await asyncio.sleep(0.01)
        async with service.events(id) as events:
            assert await events.until("turn_complete") == whole
        # One of the stalled clients reads what it received. With the last id it then gets all events that followed.
        first = await asyncio.to_thread(_read_all, stalled[0])
        pieces = [piece for piece in first if piece.startswith(b"id: ")]
        assert b"event: cut" in first[-1]
        assert pieces == whole[: len(pieces)]
        async with service.events(id, id_of(pieces[-1])) as events:
            assert pieces + [await events.piece() for _ in whole[len(pieces) :]] == whole
        for one in stalled:
            one.close()


async def test_the_events_of_all_sessions_have_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service also drops events of idle sessions when other sessions need the memory."""
    monkeypatch.setattr(service_module, "MAX_KEPT_IN_ALL", 300_000)
    async with served(tmp_path) as service:
        feeds = service.server._app.state.service._feeds
        async with AsyncExitStack() as opened:
            for _ in range(6):
                id = await service.create({"lines": 100, "pad": "\u2713" * 1_000})
                await _idle(service, id)  # a reader during the turn might be slow and get cut
                reader = await opened.enter_async_context(service.events(id))
                await reader.until("turn_complete")
                assert sum(one._size for one in feeds) < 310_000
            assert len(feeds) == 6


async def _idle(service: Served, id: str) -> None:
    async with service.client() as client:
        while {one["id"]: one["life"] for one in (await client.get("/sessions")).json()["sessions"]}[id] != "idle":
            await asyncio.sleep(0.01)


def _read_all(client: socket.socket) -> list[bytes]:
    client.settimeout(30)
    data = b""
    while chunk := client.recv(1 << 20):
        data += chunk
        if data.endswith(b"0\r\n\r\n"):
            break
    body = data.partition(b"\r\n\r\n")[2]
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return [piece + b"\n\n" for piece in found.split(b"\n\n") if piece]
