"""PlainPipe reads pipes on systems without drains. It loses nothing, and the writer waits for the reader."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import socket
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from async_backends import ASYNCIO, UVLOOP, Backend, every_backend
from children import linux_only, nothing_left, python
from claude_wire import Decoder, HandleError, MessageStream, ProcessError, open_process
from claude_wire import sync as blocking
from claude_wire.native.overflow import CHUNK_BYTES
from claude_wire.streams.sources import PlainPipe
from plain_processes import everything, plain
from stream_sources import RESULT, blocks, collect, numbered, until_it_waits, written

pytestmark = [linux_only, pytest.mark.usefixtures("no_descriptor_leaks", "elsewhere")]


@pytest.fixture
def elsewhere(first_stream: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a system that has neither drains nor process descriptors (pidfd)."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "pidfd_open", raising=False)


def fill(fd: int) -> bytes:
    """Write until the pipe is full. Return the bytes that it accepted."""
    os.set_blocking(fd, False)
    taken = bytearray()
    number = 0
    try:
        while True:
            taken += (line := numbered(number, number + 1))[: os.write(fd, line)]
            number += 1
    except BlockingIOError:
        return bytes(taken)


# --- the pipe ---------------------------------------------------------------------------------------------------------


def test_it_gives_what_is_there_at_most_a_chunk_and_at_last_the_end() -> None:
    readable, writable = os.pipe()
    pipe = PlainPipe(readable)
    os.close(readable)
    assert pipe.read() is None
    os.write(writable, b"some")
    assert pipe.read() == b"some"
    data = fill(writable)
    os.close(writable)
    got = b""
    while more := pipe.read():
        assert len(more) <= CHUNK_BYTES
        got += more
    assert got == data
    assert pipe.read() == more == b""
    pipe.close()
    pipe.close()
    for use in pipe.read, pipe.fileno:
        with pytest.raises(HandleError, match="closed"):
            use()


def test_sockets_and_terminals_end_as_pipes_do() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pipe = PlainPipe(ours.fileno())
        theirs.sendall(b"x")
        assert pipe.read() == b"x"
        theirs.close()
        assert pipe.read() == b""
        pipe.close()
    master, slave = os.openpty()
    pipe = PlainPipe(master)
    os.close(master)
    os.write(slave, b"a line\n")
    assert pipe.read() == b"a line\r\n"
    os.close(slave)
    assert pipe.read() == b"", "the system says EIO"
    pipe.close()


def test_what_cannot_be_read_or_is_never_waited_for_is_refused() -> None:
    readable, writable = os.pipe()
    with pytest.raises(OSError, match="Bad file descriptor"):
        PlainPipe(writable)
    os.close(readable)
    os.close(writable)
    for fd in readable, -1, 2**40:
        with pytest.raises(OSError, match="Bad file descriptor"):
            PlainPipe(fd)
    with open(os.devnull, "rb") as file, pytest.raises(PermissionError):
        PlainPipe(file.fileno())


@pytest.mark.parametrize("blocking", [True, False])
def test_the_last_of_a_pipe_gives_its_mode_back(blocking: bool) -> None:
    readable, writable = os.pipe()
    os.set_blocking(readable, blocking)
    first, second = PlainPipe(readable), PlainPipe(readable)
    first.close()
    assert second.read() is None
    del second
    gc.collect()
    assert os.get_blocking(readable) is blocking
    os.close(readable)
    os.close(writable)


def test_a_forked_child_may_not_use_it_and_changes_nothing_by_closing_it() -> None:
    readable, writable = os.pipe()
    pipe = PlainPipe(readable)
    child = os.fork()
    if child == 0:
        try:
            pipe.read()
        except HandleError:
            pipe.close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert not os.get_blocking(readable)
    pipe.close()
    os.close(readable)
    os.close(writable)


# --- streams ----------------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("size", [1, 1000, 100_000])
async def test_a_stream_gives_all_and_may_be_cancelled(size: int) -> None:
    count = 100 if size == 1 else 20_000

    found: list[Any] = []
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"), written(writable, blocks(numbered(0, count), size)):
        async with MessageStream(readable, Decoder(dict)) as stream:
            assert stream.drain_stats is None
            while len(found) < count:
                with anyio.move_on_after(0.001):
                    async for message in stream:
                        found.append(message["n"])
            assert await collect(stream) == []
    assert found == list(range(count))


@every_backend
async def test_while_nobody_reads_the_writer_waits() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"):
        async with MessageStream(readable, Decoder(dict)) as stream:
            data = fill(writable)
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            with pytest.raises(BlockingIOError):
                os.write(writable, b"x" * select.PIPE_BUF)
            os.close(writable)
            messages = await collect(stream)
    assert [message["n"] for message in messages if isinstance(message, dict)] == list(range(data.count(b"\n")))


@every_backend
async def test_closing_ends_a_wait_without_an_error() -> None:
    readable, writable = os.pipe()
    stream = MessageStream(readable)
    async with anyio.create_task_group() as group:

        async def read() -> None:
            assert await collect(stream) == []

        group.start_soon(read)
        await until_it_waits()
        await stream.aclose()
    os.close(readable)
    os.close(writable)


@every_backend
def test_a_stream_that_outlives_its_loop_is_nobodys_error(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main(readable: int) -> MessageStream[Any]:
        stream = MessageStream(readable)
        with anyio.move_on_after(0.001):
            await anext(stream)
        return stream

    readable, writable = os.pipe()
    stream = backend.run(main, readable)
    os.write(writable, RESULT)
    if backend in (ASYNCIO, UVLOOP):
        with pytest.raises(HandleError, match="event loop"):
            asyncio.run(stream.__anext__())
    del stream
    gc.collect()
    assert os.get_blocking(readable)
    os.close(readable)
    os.close(writable)
    assert not caplog.records


@every_backend
@pytest.mark.parametrize("in_a_cycle", [False, True])
async def test_a_stream_that_is_dropped_after_a_wait_is_collected(in_a_cycle: bool) -> None:
    readable, writable = os.pipe()
    stream: Any = MessageStream(readable)
    gone = weakref.ref(stream._receiver.chunks.pipe)
    assert isinstance(gone(), PlainPipe)
    os.write(writable, RESULT)
    await anext(stream)
    with anyio.move_on_after(0.001):
        await anext(stream)
    if in_a_cycle:
        stream.cycle = stream
    del stream
    gc.collect()
    await anyio.sleep(0)
    gc.collect()
    assert gone() is None
    os.close(readable)
    os.close(writable)


@every_backend
def test_a_file_is_read_as_on_every_system(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(numbered(0, 1000))

    async def main() -> None:
        with open(tmp_path / "file", "rb") as file:
            assert len(await collect(MessageStream(file))) == 1000

    backend.run(main)


@pytest.mark.parametrize("overflow", ["spill", "error"])
def test_what_needs_a_drain_is_refused_before_anything_is_opened(overflow: Any) -> None:
    with pytest.raises(NotImplementedError, match=f'overflow="{overflow}" needs Linux'):
        MessageStream(0, overflow=overflow)
    with pytest.raises(NotImplementedError, match="the writer waits"):
        open_process(["claude"], overflow=overflow)


# --- processes --------------------------------------------------------------------------------------------------------


@every_backend
def test_a_process_gives_all_of_its_output_and_the_end_of_its_errors(backend: Backend) -> None:
    """The child writes more to its standard error than a pipe holds, while no task reads its output."""
    code = """
for _ in range(16):
    os.write(2, b"y" * 65536)
for n in range(2000):
    say(n=n, text="x" * 500)
os.write(2, b"the reason")
sys.exit(3)
"""

    async def main() -> None:
        async with plain(python(code)) as process:
            messages = [await anext(process) for _ in range(2000)]
            with pytest.raises(ProcessError) as raised:
                await anext(process)
        assert [message["n"] for message in messages] == list(range(2000))
        assert process.returncode == raised.value.returncode == 3
        assert raised.value.stderr_tail == process.stderr_tail == b"y" * (64 * 1024 - 10) + b"the reason"

    with nothing_left():
        backend.run(main)


@every_backend
async def test_a_callback_gets_the_lines_of_stderr_while_nobody_iterates() -> None:
    lines: list[str] = []
    came = anyio.Event()

    def got(line: str) -> None:
        lines.append(line)
        came.set()

    async with plain(python("os.write(2, b'one\\n'); os.read(0, 1); os.write(2, b'two')"), stderr=got) as process:
        await came.wait()
        assert lines == ["one"]
        await process.end_input()
        assert await everything(process) == []
    assert lines == ["one", "two"]


@every_backend
@pytest.mark.parametrize("how", ["left", "waited for", "closed"])
def test_what_nobody_reads_does_not_keep_a_process_from_its_end(backend: Backend, how: str) -> None:
    """The library discards the output, so the child exits at the end of its input, without a signal."""
    code = """
say(type="ready")
while os.read(0, 65536):
    pass
for _ in range(64):
    os.write(1, b"x" * 65536)
    os.write(2, b"y" * 65536)
os.write(2, b"done")
"""

    async def main() -> None:
        async with open_process(python(code), Decoder(dict), grace=30.0) as process:
            assert await anext(process) == {"type": "ready"}
            async with anyio.create_task_group() as group:
                if how == "waited for":

                    async def read() -> None:
                        async for _ in process:
                            pytest.fail("nothing was written")

                    group.start_soon(read)
                    await until_it_waits()
                if how != "left":
                    await process.aclose()
        assert process.returncode == 0
        assert process.stderr_tail == b"y" * (64 * 1024 - 4) + b"done"

    with nothing_left():
        backend.run(main)


@every_backend
def test_a_process_that_is_cancelled_is_ended_and_leaves_nothing(backend: Backend) -> None:
    code = """
say(type="ready")
while True:
    os.write(1, b"x" * 65536)
"""

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with open_process(python(code), Decoder(dict), grace=0.0) as process:
                await anext(process)
                scope.cancel()
                await anyio.sleep_forever()
        assert process.returncode is not None
        assert process.returncode < 0

    with nothing_left():
        backend.run(main)


ANSWERS = """
import json
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"]})
    elif message["type"] == "user":
        say(type="system", subtype="init", session_id="s")
        for number in range(1000):
            say(type="user", message={"role": "user", "content": f"{number} " + "x" * 1000}, session_id="s")
        say(type="result", subtype="success", is_error=False, result="done", session_id="s")
"""


def test_a_blocking_session_reads_ahead_while_its_user_is_away() -> None:
    threads = threading.active_count()
    with blocking.open_session(python(ANSWERS)) as session:
        session.query("hello")
        run = session.receive_run()
        first = next(run)
        session.interrupt()  # the CLI answers after all messages
        messages = [first, *run]
    assert len(messages) == 1002
    assert threading.active_count() == threads
