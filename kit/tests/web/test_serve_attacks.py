"""The service repels each attack that docs/web.md lists."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import InvalidStatus

from claude_wire_kit.web import Config
from claude_wire_kit.web.access import HEADERS, Access, Rate, load_token
from claude_wire_kit.web.feed import Feed
from claude_wire_kit.web.server import BoundedProtocol, BoundedWebSocket
from served import TOKEN, Served, agent_profile, served


async def log_in(browser: httpx.AsyncClient) -> httpx.Response:
    return await browser.post("/login", json={"token": TOKEN})


def every_path(id: str) -> list[tuple[str, str]]:
    return [
        ("GET", "/sessions"),
        ("POST", "/sessions"),
        ("POST", f"/sessions/{id}/prompts"),
        ("POST", f"/sessions/{id}/answers"),
        ("POST", f"/sessions/{id}/interrupt"),
        ("POST", f"/sessions/{id}/resume"),
        ("GET", f"/sessions/{id}/events"),
        ("GET", "/nothing"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": b"Bearer \xff"},
        {"Cookie": "claude_wire_0=1.2"},
        {"Cookie": f"token={TOKEN}"},
    ],
)
async def test_wrong_and_missing_token(tmp_path: Path, given: dict[str, str]) -> None:
    async with served(tmp_path) as service:
        id = await service.create()
        async with httpx.AsyncClient(base_url=service.url, headers=given, trust_env=False, verify=False) as client:
            for method, path in every_path(id):
                refused = await client.request(method, path, params={"token": TOKEN})
                assert (refused.status_code, refused.json()["error"]) == (401, "token"), path
        with pytest.raises(InvalidStatus) as error:
            await connect_websocket(f"ws://127.0.0.1:{service.port}/sessions/{id}/events", proxy=None)
        assert error.value.response.status_code == 401


async def test_a_wrong_token_gets_no_cookie(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.browser() as browser:
        refused = await browser.post("/login", json={"token": "wrong"})
        assert (refused.status_code, refused.json()["error"]) == (401, "token")
        assert "set-cookie" not in refused.headers
        assert (await browser.get("/sessions")).status_code == 401


async def test_the_cookie_is_for_our_page_only_and_is_not_the_token(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.browser() as browser:
        given = (await log_in(browser)).headers["set-cookie"]
        assert TOKEN not in given
        assert {"httponly", "path=/", "samesite=strict"} <= {part.strip().lower() for part in given.split(";")}
        assert (await browser.get("/sessions")).status_code == 200
        assert (await browser.post("/sessions", json={"profile": "agent"})).status_code == 201


async def test_the_cookie_of_a_page_with_tls_is_sent_over_tls_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        service.config = Config(profiles=service.config.profiles, origins=["https://work.example"])
        await service.stop()
        await service.start()
        for origin, is_secure in ((service.url, False), ("https://work.example", True)):
            async with service.browser(Origin=origin) as browser:
                given = (await log_in(browser)).headers["set-cookie"]
                assert ("secure" in [part.strip().lower() for part in given.split(";")]) == is_secure


async def test_a_cookie_is_valid_after_a_restart_and_not_for_ever(tmp_path: Path) -> None:
    now = 1000.0
    access = Access(TOKEN, 1, clock=lambda: now)
    cookie = access.cookie()
    again = Access(TOKEN, 1, clock=lambda: now + 29 * 86400)
    assert again.is_cookie(cookie)
    assert not Access(TOKEN, 1, clock=lambda: now + 31 * 86400).is_cookie(cookie)
    assert not Access("another" * 6, 1, clock=lambda: now).is_cookie(cookie)
    until, _, signed = cookie.partition(".")
    for forged in ("", ".", cookie[:-1], f"{int(until) + 1}.{signed}", f"{until}.", f"{until}.\u00e9", f"{'9' * 30}.x"):
        assert not access.is_cookie(forged), forged


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1"])
async def test_foreign_origin(tmp_path: Path, origin: str | None) -> None:
    async with served(tmp_path) as service, service.browser() as browser:
        await log_in(browser)
        id = await service.create()
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        del browser.headers["origin"]
        headers = {} if origin is None else {"Origin": origin}
        for method, path in every_path(id):
            if method == "POST":
                refused = await browser.post(path, json={"profile": "agent"}, headers=headers)
                assert (refused.status_code, refused.json()["error"]) == (403, "origin"), path
        assert (await browser.post("/login", json={"token": TOKEN}, headers=headers)).status_code == 403
        with pytest.raises(InvalidStatus) as error:
            await connect_websocket(
                f"ws://127.0.0.1:{service.port}/sessions/{id}/events",
                additional_headers={"Cookie": cookie},
                origin=origin,
                proxy=None,
            )
        assert error.value.response.status_code == 403
        async with service.client() as client:
            assert len((await client.get("/sessions")).json()["sessions"]) == 1


async def test_a_page_of_our_own_may_open_a_websocket(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.browser() as browser:
        await log_in(browser)
        id = await service.create({"lines": 1})
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        url = f"ws://127.0.0.1:{service.port}/sessions/{id}/events"
        async with connect_websocket(url, additional_headers={"Cookie": cookie}, origin=service.url, proxy=None) as one:
            while "turn_complete" not in str(await asyncio.wait_for(one.recv(), 30)):
                pass
            await one.send("a client says nothing")
            await asyncio.wait_for(one.wait_closed(), 30)
            assert one.close_code == 1008


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_page_on_this_machine_reads_nothing_by_the_cookie(tmp_path: Path, site: str) -> None:
    async with served(tmp_path) as service, service.browser() as browser:
        await log_in(browser)
        refused = await browser.get("/sessions", headers={"Sec-Fetch-Site": site})
        assert (refused.status_code, refused.json()["error"]) == (403, "origin")
        assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "a b", "127.0.0.2"])
async def test_foreign_host(tmp_path: Path, host: str) -> None:
    async with served(tmp_path) as service, service.client(Host=host) as client:
        for path in ("/sessions", "/login"):
            assert (await client.get(path)).status_code == 400


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "work.example"])
async def test_our_own_hosts(tmp_path: Path, host: str) -> None:
    async with served(tmp_path) as service, service.client(Host=host.format(port=service.port)) as client:
        assert (await client.get("/sessions")).status_code == 200


async def fails(request: object) -> Response:
    raise RuntimeError("on purpose")


async def test_framed_page_and_each_reply_says_how_browsers_are_to_protect_it(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.client() as client:
        id = await service.create({"exit": 0})
        service.server._app.add_route("/fails", fails)
        replies = [
            await client.get("/sessions"),
            await client.get("/nothing"),
            await client.put("/sessions"),
            await client.get("/sessions", headers={"Host": "evil.example"}),
            await client.get("/sessions", headers={"Authorization": ""}),
            await client.post("/login", json={}),
            await client.post("/sessions", content=b"x" * 2_000_000),
            await client.get("/fails"),
        ]
        async with client.stream("GET", f"/sessions/{id}/events") as streamed:
            replies.append(streamed)
        assert [reply.status_code for reply in replies] == [200, 404, 405, 400, 401, 400, 413, 500, 200]
        for reply in replies:
            for name, value in HEADERS.items():
                assert reply.headers[name] == value, (reply.request.url, reply.status_code)
        assert "frame-ancestors 'none'" in HEADERS["content-security-policy"]
        with pytest.raises(InvalidStatus) as error:
            await connect_websocket(f"ws://127.0.0.1:{service.port}/sessions/{id}/events", proxy=None)
        assert error.value.response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "id", ["..", "%2e%2e", "..%2f..%2fetc", "%2e%2e%2f", "a%00b", ".", "x" * 5000, "%F0%9F%92%A9", "*", "sessions"]
)
async def test_path_traversal_in_ids(tmp_path: Path, id: str) -> None:
    bodies: dict[str, dict[str, Any]] = {"prompts": {"text": "a"}, "answers": {"requestId": "a", "allow": True}}
    async with served(tmp_path) as service, service.client() as client:
        await service.create()
        for method, path in every_path(id)[2:7]:
            body = bodies.get(path.rpartition("/")[2], {})
            refused = await client.request(method, path, json=body if method == "POST" else None)
            assert refused.status_code in (404, 405), (path, refused.status_code)
        raw = await client.get(f"/sessions/{id}/events?raw=1")
        assert raw.status_code == 404


async def test_path_traversal_in_folders(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (tmp_path / "root-of-another").mkdir()
    (root / "file").write_text("")
    (root / "out").symlink_to(tmp_path)
    (root / "in").symlink_to(root / "inside")
    async with served(tmp_path, rooted=agent_profile(root)) as service, service.client() as client:
        for folder in (
            "..",
            "../root-of-another",
            "inside/../..",
            "/",
            "/etc",
            os.fspath(tmp_path),
            os.fspath(tmp_path / "root-of-another"),
            "out",
            "out/state",
            "file",
            "missing",
            "a\0b",
            "~",
        ):
            refused = await client.post("/sessions", json={"profile": "rooted", "folder": folder})
            assert (refused.status_code, refused.json()["error"]) == (403, "folder"), folder
        for folder, means in (("", root), ("inside", root / "inside"), ("in", root / "inside"), ("out/root", root)):
            made = await client.post("/sessions", json={"profile": "rooted", "folder": folder})
            assert (made.status_code, made.json()["cwd"]) == (201, os.fspath(means)), made.text


@pytest.mark.parametrize("profile", ["", "missing", "../agent", "__proto__"])
async def test_a_profile_that_is_not_there(tmp_path: Path, profile: str) -> None:
    async with served(tmp_path) as service, service.client() as client:
        refused = await client.post("/sessions", json={"profile": profile})
        assert (refused.status_code, refused.json()["error"]) == (404, "profile")


@pytest.mark.parametrize(
    "more",
    [{"argv": ["sh"]}, {"env": {}}, {"permission_mode": "default"}, {"options": {"permission_mode": "default"}}],
    ids=str,
)
async def test_a_client_chooses_nothing_that_its_profile_does_not_offer(
    tmp_path: Path, more: dict[str, object]
) -> None:
    async with served(tmp_path) as service, service.client() as client:
        refused = await client.post("/sessions", json={"profile": "agent", **more})
        assert refused.status_code == (403 if "options" in more else 400)
        assert (await client.get("/sessions")).json()["sessions"] == []


async def test_headers_of_1_mb(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        for head in (b"X: " + b"x" * 1_000_000, b"X: y\r\n" * 170_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writer.write(b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
            try:
                reply = await asyncio.wait_for(reader.read(), 30)
            except ConnectionError:  # the service closed the connection early
                reply = b""
            assert reply == b"" or reply.startswith(b"HTTP/1.1 400 ")
            writer.close()
        async with service.client() as client:
            assert (await client.get("/sessions")).status_code == 200


class Impatient(BoundedProtocol):
    head_seconds = 0.2


@asynccontextmanager
async def connected(service: Served, sent: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    """Connect and send these bytes before the service runs again, so that they are there when it accepts."""
    client = socket.create_connection(("127.0.0.1", service.port))
    client.sendall(sent)
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        yield reader
    finally:
        writer.close()


async def at_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
async def test_slow_loris(tmp_path: Path, sent: bytes) -> None:
    async with served(tmp_path, protocol=Impatient) as service, connected(service, sent) as reader:
        assert await at_end(reader) == b""


async def test_slow_loris_behind_a_request_that_was_whole(tmp_path: Path) -> None:
    request = b"GET /sessions HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with served(tmp_path, protocol=Impatient) as service, connected(service, request + b"GET /s") as reader:
        assert (await at_end(reader)).startswith(b"HTTP/1.1 401 ")


async def test_a_request_whose_body_comes_slowly_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_wire_kit.web.app.BODY_SECONDS", 0.2)
    head = f"POST /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n{{"
    async with served(tmp_path) as service, connected(service, head.encode()) as reader:
        assert (await at_end(reader)).startswith(b"HTTP/1.1 408 ")


UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
)


def request_for_events(id: str, upgrade: str) -> bytes:
    head = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{upgrade}\r\n"
    return f"GET /sessions/{id}/events HTTP/1.1\r\n{head}".encode()


async def test_a_websocket_is_not_taken_for_a_slow_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.2)
        async with connected(service, request_for_events(id, UPGRADE)) as events:
            async with connected(service) as later:
                assert await at_end(later) == b""  # cut off, because it sends no HTTP head
            monkeypatch.undo()
            async with service.client() as client:
                await client.post(f"/sessions/{id}/prompts", json={"text": '{"lines": 1, "more": "news"}'})
            await asyncio.wait_for(events.readuntil(b"news"), 30)


@pytest.mark.parametrize("upgrade", ["", UPGRADE], ids=["SSE", "WebSocket"])
async def test_a_client_that_reads_nothing_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upgrade: str
) -> None:
    for protocol in (BoundedProtocol, BoundedWebSocket):
        monkeypatch.setattr(protocol, "stalled_seconds", 0.2)
    async with served(tmp_path) as service:
        id = await service.create({"lines": 600, "pad": "x" * 20_000})  # more than the sockets' buffers hold
        feeds = service.server._app.state.service._feeds
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", service.port))
            client.sendall(request_for_events(id, upgrade))
            while not feeds:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(has_users(feeds[0], 0), 30)
        async with service.client() as other:
            assert (await other.get("/sessions")).status_code == 200


async def has_users(feed: Feed, count: int) -> None:
    while feed.users != count:
        await asyncio.sleep(0.01)


async def test_a_thousand_idle_connections(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle: list[asyncio.StreamWriter] = []
    try:
        async with served(tmp_path) as service:
            for _ in range(1000):
                _, writer = await asyncio.open_connection("127.0.0.1", service.port)
                idle.append(writer)
            id = await service.create({"lines": 1})
            async with service.events(id) as events:
                await events.until("turn_complete")
            for writer in idle:
                writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_more_connections_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "most_connections", 20)
    async with served(tmp_path) as service:
        pairs = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(50)]
        for reader, _ in pairs[20:]:
            assert await at_end(reader) == b""
        connections = service.server.server_state.connections
        assert len(connections) == 20
        for _, writer in pairs:
            writer.close()
        while connections:
            await asyncio.sleep(0.01)
        async with service.client() as client:
            assert (await client.get("/sessions")).status_code == 200


async def test_more_acts_than_a_second_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    rate = Rate(lambda: now)
    assert sum(rate.passes() for _ in range(100)) == 60
    now = 1.0
    assert sum(rate.passes() for _ in range(100)) == 20
    monkeypatch.setattr("claude_wire_kit.web.access.RATE", 0.0)
    async with served(tmp_path) as service, service.client() as client:
        replies = [(await client.post("/sessions", json={"profile": "missing"})) for _ in range(61)]
        assert [reply.status_code for reply in replies] == [404] * 60 + [429]
        assert replies[-1].headers["retry-after"] == "1"
        assert (await client.get("/sessions")).status_code == 200


def test_the_token_is_in_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "token")
    token = load_token(path)
    assert len(token) == 43
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert load_token(path) == token
    (tmp_path / "empty").write_text("")
    (tmp_path / "empty").chmod(0o600)
    with pytest.raises(ValueError, match="has no token"):
        load_token(os.fspath(tmp_path / "empty"))
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match=r".*"):
        load_token(os.fspath(tmp_path / "link"))
