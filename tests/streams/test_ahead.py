"""ReadAhead reads a source before its reader does. The reader still receives every byte, in order."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_backends import ASYNCIO, every_backend
from claude_wire.native import budget
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET, count_kept, has_room, queued_bytes
from claude_wire.native.library import lib
from claude_wire.streams import byte_budget, set_byte_budget
from claude_wire.streams.read_ahead import ReadAhead


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    gc.collect()
    before = queued_bytes()
    yield
    gc.collect()
    assert queued_bytes() == before


class Source:
    """A source that plays a list of items: it returns chunks, raises exceptions, and waits for events."""

    final = (ConnectionError,)

    def __init__(self, *items: bytes | Exception | Callable[[], anyio.Event]) -> None:
        self.items = list(items)
        self.receiving = 0
        self.closed = False

    async def receive(self) -> bytes:
        assert not self.receiving, "two tasks read the source at the same time"
        self.receiving += 1
        try:
            if not self.items:
                return b""
            if callable(self.items[0]):
                await self.items[0]().wait()
                del self.items[0]
            item = self.items.pop(0)
            if isinstance(item, Exception):
                raise item
            assert isinstance(item, bytes)
            return item
        finally:
            self.receiving -= 1

    async def aclose(self) -> None:
        self.closed = True


async def rest_of(ahead: ReadAhead) -> list[bytes]:
    received: list[bytes] = []
    while data := await ahead.receive():
        received.append(bytes(data))
    return received


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=9), st.lists(st.booleans(), max_size=20))
def test_the_reader_gets_every_byte_whoever_reads(chunks: list[bytes], first: list[bool]) -> None:
    async def main() -> None:
        seen: list[bytes] = []
        ahead = ReadAhead(Source(*chunks), seen.append)
        received: list[bytes] = []
        kept = 0
        for advances in first:
            if advances:
                data = await ahead.advance()
                kept += len(data)
            else:
                data = bytes(await ahead.receive())
                received.append(data)
                kept = max(kept - len(data), 0)
            assert queued_bytes() - before == kept
        received += await rest_of(ahead)
        assert b"".join(received) == b"".join(seen) == b"".join(chunks)
        assert await ahead.receive() == b""

    before = queued_bytes()
    ASYNCIO.run(main)


@every_backend
async def test_a_reader_waits_for_whom_reads_ahead() -> None:
    go = anyio.Event()
    ahead = ReadAhead(Source(lambda: go, b"one", b"two"), None)
    received: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ahead.advance)
        await anyio.wait_all_tasks_blocked()

        async def read() -> None:
            received.extend(await rest_of(ahead))

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert received == []
        go.set()
    assert received == [b"one", b"two"]
    assert ahead.direct == 2  # the second chunk and the end bypassed the read-ahead


@every_backend
async def test_who_reads_ahead_may_be_cancelled_while_the_reader_waits() -> None:
    never, go = anyio.Event(), anyio.Event()
    events = iter([never, go])
    ahead = ReadAhead(Source(lambda: next(events), b"one"), None)
    scope = anyio.CancelScope()
    received: list[bytes] = []

    async def advance() -> None:
        with scope:
            await ahead.advance()

    async def read() -> None:
        received.extend(await rest_of(ahead))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(advance)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert received == [b"one"]


@every_backend
async def test_an_exception_is_raised_to_both_in_its_place() -> None:
    ahead = ReadAhead(Source(b"one", OSError("text"), b"two"), None)
    assert await ahead.advance() == b"one"
    with pytest.raises(OSError, match="text"):
        await ahead.advance()
    assert await ahead.advance() == b"two"
    assert await ahead.advance() == b""
    assert await ahead.receive() == b"one"
    with pytest.raises(OSError, match="text"):
        await ahead.receive()
    assert [await ahead.receive(), await ahead.receive()] == [b"two", b""]


async def test_what_is_kept_counts_in_the_byte_budget_until_it_is_taken_forgotten_or_dropped() -> None:
    before = queued_bytes()
    source = Source(*[b"x" * 10_000] * 6)
    ahead = ReadAhead(source, None)
    for _ in range(3):
        await ahead.advance()
    assert queued_bytes() - before == 30_000
    await ahead.receive()
    assert queued_bytes() - before == 20_000
    await ahead.aclose()
    assert source.closed
    assert queued_bytes() == before
    assert await ahead.receive() == b""
    dropped = ReadAhead(Source(b"x" * 10), None)
    await dropped.advance()
    assert queued_bytes() - before == 10
    del dropped
    gc.collect()
    assert queued_bytes() == before


@pytest.mark.parametrize("has_drains", [True, False])
def test_there_is_room_until_the_budget_is_exhausted(has_drains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_drains:
        unsupported = lib.CW_ERROR_UNSUPPORTED
        calls = dict.fromkeys(("cw_budget", "cw_budget_count", "cw_budget_set"), lambda *_: unsupported)
        monkeypatch.setattr(budget, "lib", SimpleNamespace(CW_ERROR_UNSUPPORTED=unsupported, **calls))
    before = queued_bytes()
    set_byte_budget(before + 1000)
    try:
        assert has_room()
        count_kept(999)
        assert has_room()
        count_kept(1)
        assert not has_room()
        count_kept(-1)
        assert has_room()
        assert queued_bytes() == before + 999
        count_kept(-999)
    finally:
        set_byte_budget(DEFAULT_BYTE_BUDGET)
    assert byte_budget() == DEFAULT_BYTE_BUDGET


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
async def test_a_forked_child_gives_back_nothing_of_its_parent() -> None:
    ahead = ReadAhead(Source(b"x" * 10), None)
    await ahead.advance()
    child = os.fork()
    if child == 0:
        ahead.forget()
        os._exit(int(queued_bytes() != 0))
    assert os.waitpid(child, 0)[1] == 0
    ahead.forget()
