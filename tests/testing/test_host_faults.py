"""Faults of the host itself: it runs out of file descriptors, or it forks.

No fault may hang, or leave a process or descriptor behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import claude_wire.process.child
from async_backends import ASYNCIO, BACKENDS, TRIO, Backend, every_backend
from children import Host, linux_only, nothing_left, python
from claude_wire import Decoder, Process, open_process

pytestmark = linux_only


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with nothing_left():
        yield


def plain(argv: list[str], **options: Any) -> Process[Any]:
    return open_process(argv, Decoder(dict), **options)


# --- no descriptors left ----------------------------------------------------------------------------------------------

EXHAUSTED = """
import anyio, errno, gc, resource, sys
from claude_wire import Decoder, open_process
backend, child, stderr = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
OPTIONS = {"stderr": {"kept": None, "called back": lambda line: None, "inherit": "inherit"}[stderr], "grace": 2.0}

def held():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try: found[fd] = os.readlink("/proc/self/fd/" + fd)
        except OSError: pass
    return found

def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        try: found += open(f"/proc/self/task/{task}/children").read().split()
        except OSError: pass
    return found

def left_over(before):
    # The drain's thread ends, and closes what it has, a moment after the last drain.
    until = time.monotonic() + 60.0
    while True:
        more = sorted(set(held().items()) - set(before.items()))
        if not more or time.monotonic() > until:
            return more
        time.sleep(0.001)

async def attempt():
    async with open_process(child, Decoder(dict), **OPTIONS) as process:
        await process.send({"n": 1})
        await process.end_input()
        got = [message async for message in process]
        assert got == [{"n": 1}] * 300, len(got)
    return process.returncode

async def main():
    assert await attempt() == 0
    await anyio.sleep(0.05)
    gc.collect()
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    for left in range(20):
        before = held()
        fill = []
        while True:
            try: fill.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: break
        for _ in range(left):
            os.close(fill.pop())
        outcome = more = None
        try:
            outcome = await attempt()
        except OSError as error:
            outcome = errno.errorcode[error.errno]
            # While the exception is there.
            for fd in fill: os.close(fd)
            fill = []
            more = left_over(before)
        for fd in fill: os.close(fd)
        more = left_over(before) if more is None else more
        say(left=left, outcome=outcome, more=more, children=children())
        assert await attempt() == 0

anyio.run(main, backend=backend)
"""


@pytest.mark.skipif(
    sys.version_info < (3, 11, 4),
    reason="subprocess.Popen itself leaves its first pipes open there if it can make no more",
)
@pytest.mark.parametrize("backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
@pytest.mark.parametrize("stderr", ["kept", "called back", "inherit"])
def test_no_descriptors_left_when_it_is_spawned(backend: Backend, stderr: str) -> None:
    """With 0 to 19 free descriptors, starting a process works, or raises EMFILE and leaves nothing behind."""
    import json

    child = python("line = sys.stdin.buffer.readline()\nfor _ in range(300): sys.stdout.buffer.write(line)")
    with Host(EXHAUSTED, backend.name, json.dumps(child), stderr) as host:
        outcomes = []
        for left in range(20):
            said = host.says()
            assert said["left"] == left
            assert said["more"] == []
            assert said["children"] == []
            outcomes.append(said["outcome"])
        assert host.ends() == 0, host.errors.decode()
        assert outcomes[0] == "EMFILE"
        assert outcomes[-1] == 0
        assert set(outcomes) == {"EMFILE", 0}


@every_backend
@pytest.mark.parametrize("callback", [False, True], ids=["kept", "called back"])
@pytest.mark.parametrize("failing", [1, 2])
async def test_a_drain_that_cannot_be_made_ends_the_process_at_once(
    callback: bool, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = claude_wire.process.child.open_pipe

    def fail(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(24, "Too many open files")
        return real(*args, **options)

    monkeypatch.setattr("claude_wire.process.child.open_pipe", fail)

    process = plain(python("signal.pause()"), stderr=(lambda line: None) if callback else None)
    with nothing_left():
        with pytest.raises(OSError, match="Too many open files") as raised:
            await process.__aenter__()
        assert calls == failing
    # nothing_left() ran while the exception and the frames of its traceback were still alive.
    assert raised.value.__traceback__ is not None
    await process.aclose()


# --- hosts that fork --------------------------------------------------------------------------------------------------

FORKED = """
import anyio, gc, multiprocessing, warnings
from claude_wire import Decoder, open_process
warnings.simplefilter("ignore")  # newer Pythons say that a process with threads should not fork
backend, child, how = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]

async def refused(what, step):
    try:
        await step()
    except Exception as error:
        return type(error).__name__
    return f"{what} was not refused"

async def in_child(process, stream):
    if how == "use":
        say(pid=os.getpid(), outcome=[
            await refused("send", lambda: process.send({"n": "from the child"})),
            await refused("send_bytes", lambda: process.send_bytes(b'{"n":"from the child"}\\n')),
            await refused("iterate", stream.__anext__),
            await refused("batches", stream.batches().__anext__),
            await refused("wait", process.wait),
            await refused("end_input", process.end_input),
        ])
    if how == "close":
        await process.aclose()
        say(pid=os.getpid(), outcome=[])
    if how == "collect":
        return
    os._exit(0)

def target():
    gc.collect()
    say(pid=os.getpid(), outcome=[])

class Left(Exception): pass

async def main():
    process = open_process(child, Decoder(dict), grace=30.0)
    try:
        async with process:
            await process.send({"n": 0})
            assert await process.__anext__() == {"n": 0}
            # Where the stream waits in the loop while the fork happens.
            with anyio.move_on_after(0.05):
                await process.__anext__()
            if how == "multiprocessing":
                other = multiprocessing.get_context("fork").Process(target=target)
                other.start()
                other.join()
                assert other.exitcode == 0
            else:
                pid = os.fork()
                if pid == 0:
                    if how == "leave":
                        raise Left
                    await in_child(process, process)
                    del process
                    gc.collect()
                    say(pid=os.getpid(), outcome=[])
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            # As if nothing had been.
            async def send():
                for n in range(1, 500):
                    await process.send({"n": n})
                await process.end_input()
            async with anyio.create_task_group() as group:
                group.start_soon(send)
                got = [message["n"] async for message in process]
            assert got == list(range(1, 500)), got[:10]
            assert process.returncode == 0
    except Left:
        say(pid=os.getpid(), outcome=[])
        os._exit(0)
    say(pid=os.getpid(), outcome=["the parent is done"])

anyio.run(main, backend="trio" if backend == "trio" else "asyncio",
          backend_options={"use_uvloop": True} if backend == "uvloop" else {})
"""


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
@pytest.mark.parametrize("how", ["use", "close", "leave", "collect", "multiprocessing"])
def test_a_host_that_forks_while_it_runs(backend: Backend, how: str) -> None:
    """The forked child can neither use nor end the CLI, and the parent is not affected."""
    import json

    child = python("for line in sys.stdin.buffer: os.write(1, line)")
    with Host(FORKED, backend.id, json.dumps(child), how) as host:
        said = host.says()
        assert said["pid"] != host.popen.pid
        if how == "use":
            assert said["outcome"] == ["HandleError"] * 6
        said = host.says()
        assert said == {"pid": host.popen.pid, "outcome": ["the parent is done"]}
        assert host.ends() == 0
        assert b"Error" not in host.errors, host.errors.decode()


FORKED_SESSION = """
import anyio, gc, warnings
from claude_wire import open_session
warnings.simplefilter("ignore")  # newer Pythons say that a process with threads should not fork
backend, child, how = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]

class Left(Exception): pass

async def main():
    session = open_session(child, grace=30.0)
    try:
        async with session:
            await session.query("first")
            await session.__anext__()  # a turn is under way, which closing would interrupt
            pid = os.fork()
            if pid == 0:
                if how == "leave":
                    raise Left
                await session.aclose()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            await session.query("second")
            async for message in session.receive_response():
                pass
            say(result=message.result)
            await session.end_input()
            assert await session.process.wait() == 0
    except Left:
        os._exit(0)

anyio.run(main, backend="trio" if backend == "trio" else "asyncio",
          backend_options={"use_uvloop": True} if backend == "uvloop" else {})
"""


@pytest.mark.parametrize("backend", BACKENDS, ids=[backend.id for backend in BACKENDS])
@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_forked_child_that_closes_a_session_says_nothing_to_its_cli(backend: Backend, how: str) -> None:
    """The child sends the CLI no interrupt and does not close its input. The parent's session continues."""
    import json

    child = python(
        """
asked = []
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message["type"] == "control_request":
        asked.append(message["request"]["subtype"])
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        say(type="control_response", response=response)
    elif "first" in line.decode():
        say(type="assistant", message={"role": "assistant", "content": []})
    else:
        say(type="result", subtype="success", is_error=False, result=",".join(asked))
"""
    )
    with Host(FORKED_SESSION, backend.id, json.dumps(child), how) as host:
        assert host.says() == {"result": "initialize"}
        assert host.ends() == 0, host.errors.decode()
        assert b"Error" not in host.errors, host.errors.decode()


@every_backend
def test_a_forked_process_does_not_hold_the_input(backend: Backend) -> None:
    """The CLI sees the end of its input, although a child forked from the host still runs."""

    async def main() -> None:
        async with plain(python("say(a=1)\nwhile os.read(0, 65536): pass"), grace=30.0) as process:
            await process.__anext__()
            ready, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(write)
                os.read(ready, 1)  # returns when the parent closes its end or exits
                os._exit(0)
            os.close(ready)
        assert process.returncode == 0
        os.close(write)
        assert os.waitpid(pid, 0)[1] == 0

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        backend.run(main)
