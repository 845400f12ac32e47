"""The actor of a node, tested without Ray. It starts or finds a supervisor, and relays between it and clients."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from claude_wire_kit.fleet import node as module
from claude_wire_kit.fleet.node import CHUNK_BYTES, Node
from claude_wire_kit.supervisor.attach import connect
from folders import ROOT
from pages import kept
from supervisors import SECONDS, agent, hosting

KIB = 1024
#: KiB that an actor buffers besides the items of a relay: asyncio pauses above 128 KiB, and reads 256 KiB at a time.
HELD_KIB = 384


@asynccontextmanager
async def node_of(folder: Path) -> AsyncIterator[Node]:
    """An actor that ends with the ``async with`` block."""
    node = Node(os.fspath(folder), "n1")
    try:
        yield node
    finally:
        node._looking.cancel()
        if node._supervisor is not None:
            assert node._supervisor.stdin is not None
            node._supervisor.stdin.close()
            await asyncio.to_thread(node._supervisor.wait, SECONDS)
            assert node._supervisor.stdout is not None
            node._supervisor.stdout.close()


async def line(items: Any) -> Any:
    """Return the next line of a relay, decoded."""
    data = b""
    while not data.endswith(b"\n"):
        data += await asyncio.wait_for(anext(items), SECONDS) or b""
    return json.loads(data)


async def test_a_supervisor_that_the_actor_has_started_ends_with_its_pipe(tmp_path: Path) -> None:
    async with node_of(tmp_path / "h") as node:
        items = node.relay("c1", "n1", 0)
        assert await anext(items) == b""
        assert await node.write("c1", b'{"list":{}}\n')
        pid = (await line(items))["pid"]
        assert node._supervisor is not None
        assert node._supervisor.pid == pid
        spec = {"argv": agent(), "cwd": os.fspath(tmp_path), "env": dict(os.environ)}
        await node.write("c1", json.dumps({"create": spec, "detach": True}).encode() + b"\n")
        cli = os.pidfd_open((await line(items))["pid"])
        await items.aclose()
        assert await node.write("c1", b"") is None
        assert node._supervisor.stdin is not None
        node._supervisor.stdin.close()
        assert await asyncio.to_thread(node._supervisor.wait, SECONDS) == 0
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(cli, ended.set)
        await asyncio.wait_for(ended.wait(), SECONDS)
        asyncio.get_running_loop().remove_reader(cli)
        os.close(cli)


async def test_a_supervisor_that_is_there_is_used_and_a_second_one_does_not_start(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor, node_of(supervisor.path) as node:
        for client in "c1", "c2":
            items = node.relay(client, "n1", 0)
            assert await anext(items) == b""
            await node.write(client, b'{"list":{}}\n')
            assert (await line(items))["pid"] == os.getpid()
            await items.aclose()
        assert node._supervisor is None
        program = [sys.executable, "-m", module.__name__, os.fspath(supervisor.path)]
        done = await asyncio.to_thread(subprocess.run, program, capture_output=True, timeout=SECONDS, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert (await connect(supervisor.path).list()).pid == os.getpid()


async def test_what_cannot_be_started_is_told_as_the_supervisor_would(tmp_path: Path) -> None:
    async with node_of(tmp_path / ("x" * 120)) as node:
        items = node.relay("c1", "n1", 0)
        refused = await line(items)
        assert (refused["type"], refused["error"]) == ("supervisor_error", "absent")
        assert [item async for item in items] == []


async def test_a_client_that_takes_nothing_has_the_actor_read_no_more(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor, node_of(supervisor.path) as node:
        driver, answer = await supervisor.create()
        items = node.relay("c1", "n1", 0)
        assert await anext(items) == b""
        await node.write("c1", json.dumps({"attach": answer["id"]}).encode() + b"\n")
        assert (await line_of_many(items))["type"] == "supervisor_attached"
        driver.prompt("p1", lines=4000, more="x" * 1000)
        await driver.until("result")
        (connection,) = [one for one in supervisor.supervisor._connections if one.state.value == "behind"]
        read = 0
        while read < 4_000_000:
            data = await asyncio.wait_for(anext(items), SECONDS)
            assert data is not None
            assert len(data) <= CHUNK_BYTES
            read += len(data)
        await items.aclose()
        assert connection.managed is not None


async def line_of_many(items: Any) -> Any:
    """Return the first line of a relay's next item, decoded."""
    return json.loads((await asyncio.wait_for(anext(items), SECONDS)).partition(b"\n")[0])


@asynccontextmanager
async def deaf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Node, Any, socket.socket]]:
    """Yield an actor, one of its relays, and the supervisor's end of the relay, which the test reads and writes."""
    folder.mkdir()
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.05)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(folder / "socket"))
        listener.listen()
        async with node_of(folder) as node:

            async def serves() -> None:
                """Start no supervisor, because the test plays it."""

            monkeypatch.setattr(node, "_serve", serves)
            items = node.relay("c1", "n1", 0)
            assert await anext(items) == b""
            with listener.accept()[0] as end:
                end.setblocking(False)
                yield node, items, end
            await items.aclose()


async def test_what_a_client_sends_waits_with_it_while_the_supervisor_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with deaf(tmp_path / "h", monkeypatch) as (node, _, end):
        sent = 0
        while await node.write("c1", b"x" * CHUNK_BYTES):
            sent += CHUNK_BYTES
            assert sent < 4_000_000
        held = node._clients["c1"][1].transport.get_write_buffer_size()
        assert CHUNK_BYTES < held <= 64 * KIB + 64 * KIB
        for _ in range(5):
            assert await node.write("c1", b"") is False
        while not await node.write("c1", b""):
            with suppress(BlockingIOError):
                end.recv(CHUNK_BYTES)


async def test_an_actor_holds_little_of_what_no_client_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with deaf(tmp_path / "h", monkeypatch) as (node, items, end):
        reader = node._clients["c1"][1]._protocol._stream_reader  # type: ignore[attr-defined]
        silence = 0
        while silence < 5:
            try:
                end.send(b"x" * CHUNK_BYTES)
                silence = 0
            except BlockingIOError:
                silence += 1
                await asyncio.sleep(0.01)
        assert CHUNK_BYTES < len(reader._buffer) <= HELD_KIB * KIB
        assert len(await anext(items)) <= CHUNK_BYTES


def test_the_page_of_a_fleet_says_its_bounds() -> None:
    page = "\n".join(kept("how-to/fleet.md"))
    client = (ROOT / "kit/claude_wire_kit/fleet/client.py").read_text(encoding="utf-8")
    items, losses = (re.findall(rf"^{name} = (\d+)$", client, re.M)[0] for name in ("MAX_ITEMS", "MAX_UNTOLD"))
    chunk = CHUNK_BYTES // KIB
    for said in (
        f"take it | {items} items of at most {chunk} KiB, and {HELD_KIB} KiB before them |",
        f"has not taken | {chunk} KiB, and 64 KiB before them | the client waits |",
        f"has not reported | {losses} |",
    ):
        assert said in page, said


async def test_a_relay_ends_with_the_node_of_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    living = {"n1", "n2"}
    monkeypatch.setattr(module, "_living", lambda: living)
    async with hosting(tmp_path / "h") as supervisor, node_of(supervisor.path) as node:
        relays = {client: node.relay(f"client of {client}", client, 0) for client in ("n1", "n2")}
        for items in relays.values():
            assert await anext(items) == b""
        living.remove("n2")
        assert {item async for item in relays["n2"]} <= {b""}
        assert await node.write("client of n2", b"") is None
        assert await node.write("client of n1", b"")
        await relays["n1"].aclose()


async def test_as_much_memory_stays_reserved_as_clis_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def release(group: int) -> None:
        released.append(group)
        loop.call_soon_threadsafe(done.set)

    reserved = iter([1, 2, None])
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(module, "_living", lambda: {"n1"})
    monkeypatch.setattr(module, "_release", release)
    monkeypatch.setattr(Node, "_reserve", lambda self, memory: next(reserved))
    async with hosting(tmp_path / "h") as supervisor, node_of(supervisor.path) as node:
        items = node.relay("c1", "n1", 7)
        assert await anext(items) == b""
        command = {"create": supervisor.spec(), "detach": True}
        await node.write("c1", json.dumps(command).encode() + b"\n")
        session = (await line(items))["id"]
        await items.aclose()
        never = node.relay("c2", "n1", 7)  # a client that leaves before the answer to its command
        assert await anext(never) == b""
        await never.aclose()
        await asyncio.wait_for(done.wait(), SECONDS)
        assert (node._reserved, released) == ([1], [2])
        done.clear()
        await connect(supervisor.path).stop(session)
        await asyncio.wait_for(done.wait(), SECONDS)
        assert released == [2, 1]
        assert [item async for item in node.relay("c3", "n1", 7)] == [None]


async def test_memory_that_is_reserved_for_a_client_that_has_gone_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on, released = threading.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def reserve(self: Node, memory: int) -> str:
        begun.set()
        goes_on.wait(SECONDS)
        return f"{memory} bytes"

    def release(group: str) -> None:
        assert group == "7 bytes"
        loop.call_soon_threadsafe(released.set)

    monkeypatch.setattr(Node, "_reserve", reserve)
    monkeypatch.setattr(module, "_release", release)
    async with node_of(tmp_path / "h") as node:
        items = node.relay("c1", "n1", 7)
        first = asyncio.ensure_future(anext(items))
        await asyncio.to_thread(begun.wait, SECONDS)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        goes_on.set()
        await asyncio.wait_for(released.wait(), SECONDS)
        assert node._reserved == []


async def test_a_supervisor_whose_client_has_gone_while_it_started_is_not_started_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process would replace the first one. The first one would then end, because its pipe closes."""
    begun, goes_on = threading.Event(), threading.Event()
    steps: list[str] = []

    def start(self: Node) -> None:
        steps.append("begins")
        begun.set()
        goes_on.wait(SECONDS)
        steps.append("ends")

    monkeypatch.setattr(Node, "_start", start)
    async with node_of(tmp_path / "h") as node:
        first, second = (asyncio.ensure_future(anext(node.relay(client, "n1", 0))) for client in ("c1", "c2"))
        await asyncio.to_thread(begun.wait, SECONDS)
        first.cancel()
        await asyncio.sleep(0)
        assert not second.done()
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert json.loads(await asyncio.wait_for(second, SECONDS) or b"")["error"] == "absent"
    assert steps == ["begins", "ends"] * 2
