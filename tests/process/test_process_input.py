"""Processes: the lines that are sent to them arrive complete and in order."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import anyio
import pytest

from async_backends import DEADLINE, every_backend
from children import linux_only, python
from claude_wire import Process, ProcessError, ProcessInputError, UnfinishedTurnError, UserMessage
from claude_wire.messages import KeepAlive
from plain_processes import PROMPT, SECRET, everything, plain

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]


# --- sending ----------------------------------------------------------------------------------------------------------


#: A program that reports for each line of its input whether it is JSON, its id, and its length.
ECHO = """
for line in sys.stdin.buffer:
    message = json.loads(line)
    say(type="echo", id=message.get("id"), length=len(line), kind=message.get("type"))
"""


#: A program that reports when its input pipe is full, and starts to read the lines when it gets SIGUSR1.
LATE = (
    """
import array, fcntl, termios
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
waiting = array.array("i", [0])
while waiting[0] < 65536:
    fcntl.ioctl(0, termios.FIONREAD, waiting)
    time.sleep(0.001)
say(type="full")
signal.sigwait([signal.SIGUSR1])
"""
    + ECHO
)


@every_backend
async def test_a_message_is_sent_as_one_line() -> None:
    sent = [
        PROMPT,
        {"type": "x", "id": 1, "text": "a\nb\u2028\ud83d"},
        KeepAlive(),
        UserMessage(message=PROMPT["message"]),
    ]

    code = """
for line in sys.stdin.buffer:
    say(raw=line.decode())
"""
    async with plain(python(code)) as process:
        for message in sent:
            await process.send(message)
        await process.send_bytes(b'{"type":"by hand"}\n{"type":"two"}\n')
        await process.end_input()
        got = [message["raw"] async for message in ignoring_unfinished(process)]
    assert all(raw.endswith("\n") for raw in got)
    values = [json.loads(raw) for raw in got]
    assert values[:2] == sent[:2]
    assert values[2]["type"] == "keep_alive"
    assert values[3]["message"] == PROMPT["message"]
    assert values[4:] == [{"type": "by hand"}, {"type": "two"}]


async def ignoring_unfinished(process: Process[Any]) -> Any:
    """Yield all messages and ignore UnfinishedTurnError, for a child that does not answer prompts with turns."""
    while True:
        try:
            message = await process.__anext__()
        except UnfinishedTurnError:
            continue
        except StopAsyncIteration:
            return
        yield message


@every_backend
async def test_what_cannot_be_encoded_is_not_sent() -> None:
    async with plain(python(ECHO)) as process:
        with pytest.raises((TypeError, ValueError)):
            await process.send({"type": "x", "value": object()})
        await process.send({"type": "x", "id": 1})
        await process.end_input()
        assert [message["id"] for message in await everything(process)] == [1]


@every_backend
async def test_lines_of_many_tasks_never_mix() -> None:
    tasks, each = 20, 40
    size = [10, 3_000, 70_000, 200_000]

    async with plain(python(ECHO)) as process:

        async def send(task: int) -> None:
            for n in range(each):
                await process.send({"type": "x", "id": [task, n], "text": chr(97 + task) * size[(task + n) % 4]})

        async def send_all() -> None:
            async with anyio.create_task_group() as group:
                for task in range(tasks):
                    group.start_soon(send, task)
            await process.end_input()

        async with anyio.create_task_group() as group:
            group.start_soon(send_all)
            ids = [message["id"] async for message in process]
    assert sorted(ids) == [[task, n] for task in range(tasks) for n in range(each)]
    for task in range(tasks):  # the lines of each task must be in order
        assert [n for of, n in ids if of == task] == list(range(each))


@every_backend
@pytest.mark.parametrize("iterating", [False, True], ids=["nobody iterates", "iterating"])
async def test_full_pipes_on_both_sides_are_no_deadlock(iterating: bool) -> None:
    code = """
for n in range(256):
    say(type="before", text="x" * 1000)
read = 0
for line in sys.stdin.buffer:
    read += len(line)
    say(type="echo", text=line.decode())
say(type="read", bytes=read)
"""

    line = json.dumps({"type": "x", "text": "y" * 50_000}).encode() + b"\n"
    got: list[Any] = []

    async with plain(python(code)) as process:

        async def send() -> None:
            for _ in range(100):
                await process.send_bytes(line)
            await process.end_input()

        if iterating:
            async with anyio.create_task_group() as group:
                group.start_soon(send)
                got = await everything(process)
        else:
            await send()
            got = await everything(process)
    assert [message["type"] for message in got] == ["before"] * 256 + ["echo"] * 100 + ["read"]
    assert got[-1]["bytes"] == 100 * len(line) > 5_000_000
    assert all(message["text"].encode() == line for message in got[256:-1])


@every_backend
async def test_sending_without_a_pause_lets_other_tasks_run() -> None:
    """The child reads so fast that no send ever waits for it."""
    async with plain(["/bin/sh", "-c", "exec cat >/dev/null"]) as process:
        sent = 0
        with anyio.CancelScope() as scope:

            async def other() -> None:
                for _ in range(10):
                    await anyio.sleep(0)
                scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                while sent < 200_000:  # this takes a second or more
                    await process.send_bytes(b'{"type":"keep_alive"}\n')
                    sent += 1
        assert scope.cancelled_caught
        assert sent < 200_000


@every_backend
async def test_sending_to_one_that_has_ended_is_an_error() -> None:
    async with plain(python("sys.exit(7)")) as process:
        assert await process.wait() == 7
        for _ in range(2):
            with pytest.raises(ProcessInputError, match="exited with code 7") as raised:
                await process.send({"type": "x", "text": SECRET})
            assert isinstance(raised.value, BrokenPipeError)
            assert SECRET not in str(raised.value) + repr(raised.value)
        with pytest.raises(ProcessError):
            await everything(process)


@every_backend
@pytest.mark.parametrize("how", ["killed", "exits", "closes its input"])
async def test_a_send_that_waits_ends_with_an_error_when_the_process_does(how: str) -> None:
    code = LATE.replace(
        ECHO, {"exits": "sys.exit(4)", "closes its input": "os.close(0); say(closed=True); signal.pause()"}.get(how, "")
    )

    async with plain(python(code), grace=0.01) as process:

        async def send() -> None:
            with pytest.raises(ProcessInputError) as raised:
                await process.send({"type": "x", "text": SECRET * 100_000})
            # A process that ends closes its pipes a moment before the system reports its exit.
            reasons = {"killed": "SIGKILL", "exits": "exited with code 4"}
            assert any(text in str(raised.value) for text in ("has closed its input", reasons.get(how, "-")))
            assert SECRET not in str(raised.value) + repr(raised.value)

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            assert await process.__anext__() == {"type": "full"}
            os.kill(process.pid, signal.SIGKILL if how == "killed" else signal.SIGUSR1)
        with pytest.raises(ProcessInputError):
            await process.send({"type": "x"})


@every_backend
async def test_a_send_that_waits_ends_when_the_process_does_though_another_holds_its_input() -> None:
    code = LATE.replace(
        ECHO,
        """
if os.fork() == 0:
    for fd in (1, 2):
        os.close(fd)
    signal.alarm(60)
    signal.sigwait([signal.SIGUSR2])
    os._exit(0)
sys.exit(4)
""",
    )

    async with plain(python("os.setpgid(0, 0)\n" + code)) as process:
        try:

            async def send() -> None:
                with pytest.raises(ProcessInputError, match="exited with code 4"):
                    await process.send({"type": "x", "text": "y" * 1_000_000})

            async with anyio.create_task_group() as group:
                group.start_soon(send)
                assert await process.__anext__() == {"type": "full"}
                os.kill(process.pid, signal.SIGUSR1)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@every_backend
async def test_sending_to_one_that_never_reads_fails_when_it_is_ended() -> None:
    async with plain(python("say(type='x'); signal.pause()"), grace=0.05) as process:

        async def send() -> None:
            with pytest.raises(ProcessInputError):
                await process.send({"type": "x", "text": "y" * 1_000_000})

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            assert await process.__anext__() == {"type": "x"}
            await process.aclose()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of the input wait longer than a second, because a child on a busy machine may read late."""
    monkeypatch.setattr("claude_wire.process.stdin.LAST_SECONDS", DEADLINE)


async def cancel_a_sender(process: Process[Any]) -> None:
    """Send a line that is longer than the pipe's buffer, and cancel the sender in the middle of it."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(process.send, {"type": "x", "id": 1, "text": "y" * 300_000})
            assert await process.__anext__() == {"type": "full"}
            scope.cancel()


@every_backend
async def test_a_line_whose_sender_was_cancelled_is_completed_by_the_next() -> None:
    async with plain(python(LATE)) as process:
        await cancel_a_sender(process)
        os.kill(process.pid, signal.SIGUSR1)
        await process.send({"type": "x", "id": 2})
        await process.end_input()
        assert [message["id"] for message in await everything(process)] == [1, 2]


@every_backend
async def test_a_line_is_completed_also_if_the_one_who_completes_it_is_cancelled() -> None:
    async with plain(python(LATE)) as process:
        for n in range(3):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(process.send, {"type": "x", "id": n, "text": "y" * 300_000})
                    if n == 0:
                        assert await process.__anext__() == {"type": "full"}
                    else:
                        for _ in range(10):
                            await anyio.sleep(0)
                    scope.cancel()
        os.kill(process.pid, signal.SIGUSR1)
        await process.send({"type": "x", "id": 3})
        await process.end_input()
        # The senders of 1 and 2 were cancelled before they wrote a byte.
        assert [message["id"] for message in await everything(process)] == [0, 3]


@every_backend
@pytest.mark.usefixtures("patient")
async def test_a_line_whose_sender_was_cancelled_is_completed_by_the_end_of_the_input() -> None:
    async with plain(python(LATE)) as process:
        await cancel_a_sender(process)
        os.kill(process.pid, signal.SIGUSR1)
        await process.end_input()
        assert [message["id"] for message in await everything(process)] == [1]


@every_backend
@pytest.mark.usefixtures("patient")
async def test_an_end_of_the_input_that_is_cancelled_leaves_the_rest_of_the_line_to_the_next() -> None:
    async with plain(python(LATE)) as process:
        await cancel_a_sender(process)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(process.end_input)
                await anyio.wait_all_tasks_blocked()  # the child does not read yet, so end_input waits for room
                scope.cancel()
        os.kill(process.pid, signal.SIGUSR1)
        await process.end_input()
        assert [message["id"] for message in await everything(process)] == [1]


@every_backend
async def test_the_end_of_the_input_does_not_wait_for_one_that_never_reads() -> None:
    """The process waits at most a second to write the rest of a line whose sender was cancelled."""
    async with plain(python("say(a=1); signal.pause()"), grace=0.0) as process:
        await process.__anext__()
        async with anyio.create_task_group() as group:
            group.start_soon(process.send_bytes, b'{"text":"%s"}\n' % (b"x" * 1_000_000))
            await anyio.wait_all_tasks_blocked()  # the pipe is full
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            await process.end_input()
        with pytest.raises(ProcessInputError, match="ended"):
            await process.send({})


@every_backend
async def test_nothing_is_sent_by_a_send_that_was_cancelled_before_its_first_byte() -> None:
    full = json.dumps({"type": "x", "id": 1, "text": ""}).encode()
    full = full.replace(b'""', b'"%s"' % (b"y" * (65536 - len(full) - 1))) + b"\n"

    async with plain(python(LATE)) as process:
        await process.send_bytes(full)  # these bytes fill the pipe exactly
        assert await process.__anext__() == {"type": "full"}
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                for n in range(3):  # the first waits for the pipe, the others wait for the first
                    group.start_soon(process.send, {"type": "cancelled", "id": n})
                for _ in range(10):
                    await anyio.sleep(0)
                scope.cancel()
        os.kill(process.pid, signal.SIGUSR1)
        await process.send({"type": "x", "id": 2})
        await process.end_input()
        assert [message["id"] for message in await everything(process)] == [1, 2]


@every_backend
async def test_the_input_is_ended_only_when_asked_and_only_once() -> None:
    code = """
import select
say(ended=bool(select.select([0], [], [], 0.2)[0]))
say(ended=os.read(0, 1) == b"")
"""

    async with plain(python(code)) as process:
        assert await process.__anext__() == {"ended": False}
        for _ in range(3):
            await process.end_input()
        assert await everything(process) == [{"ended": True}]
        await process.end_input()
        with pytest.raises(ProcessInputError, match="ended"):
            await process.send(KeepAlive())
        with pytest.raises(ProcessInputError, match="ended"):
            await process.send_bytes(b"{}\n")


@every_backend
async def test_the_input_of_one_that_is_gone_can_be_ended() -> None:
    async with plain(python("")) as process:
        await process.wait()
        await process.end_input()
