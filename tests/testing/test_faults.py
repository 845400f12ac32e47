"""Faults of processes and pipes. Each test is named after one fault and checks what the library does.

No fault may hang the host, lose a line that the child wrote, or leave a process or descriptor behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import claude_wire.process.child
from async_backends import ASYNCIO, BACKENDS, TRIO, Backend, every_backend
from children import Host, linux_only, nothing_left, python, wait_until
from claude_wire import (
    Decoder,
    InvalidLine,
    Process,
    ProcessError,
    ProcessInputError,
    UnfinishedTurnError,
    open_process,
)

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]

KIB, MIB = 1024, 1024 * 1024


def plain(argv: list[str], **options: Any) -> Process[Any]:
    return open_process(argv, Decoder(dict), **options)


async def everything(process: Process[Any]) -> list[Any]:
    return [message async for message in process]


async def collect(process: Process[Any], got: list[Any]) -> None:
    async for message in process:
        got.append(message)


# --- the output -------------------------------------------------------------------------------------------------------


@every_backend
async def test_killed_in_the_middle_of_a_line() -> None:
    code = """
say(type="system", subtype="init")
for n in range(1000): say(type="stream_event", n=n)
os.write(1, b'{"type":"stream_event","n":10')
os.kill(os.getpid(), signal.SIGKILL)
"""

    async with plain(python(code)) as process:
        got: list[Any] = []
        with pytest.raises(UnfinishedTurnError, match="in the middle of a line") as raised:
            await collect(process, got)
    assert raised.value.returncode == -signal.SIGKILL
    assert raised.value.signal == signal.SIGKILL
    assert [message["n"] for message in got[1:-1]] == list(range(1000))
    cut = got[-1]
    assert isinstance(cut, InvalidLine)
    assert cut.reason.startswith("truncated")
    assert cut.raw == b'{"type":"stream_event","n":10'


@every_backend
@pytest.mark.parametrize("megabytes", [0, 5])
async def test_exits_without_reading_its_input(megabytes: int) -> None:
    async with plain(python("os.write(2, b'no such flag'); sys.exit(1)")) as process:
        line = {"type": "user", "text": "x" * megabytes * MIB}
        if megabytes:
            with pytest.raises(ProcessInputError):
                await process.send(line)
        else:  # a short line may fit into the pipe before the child ends
            with contextlib.suppress(ProcessInputError):
                await process.send(line)
        with pytest.raises(ProcessError) as raised:
            await everything(process)
        assert raised.value.returncode == 1
        assert raised.value.stderr_tail == b"no such flag"


@every_backend
@pytest.mark.parametrize("in_turn", [False, True])
async def test_closes_its_output_and_lives_on(in_turn: bool) -> None:
    code = """
if sys.argv[1] == "True": say(type="assistant")
os.write(2, b"still here")
os.close(1)
while os.read(0, 65536): pass
"""

    async with plain(python(code, in_turn), grace=0.2) as process:
        got: list[Any] = []
        if in_turn:
            with pytest.raises(UnfinishedTurnError, match="still runs") as raised:
                await collect(process, got)
            assert raised.value.returncode is None
            assert raised.value.signal is None
            assert raised.value.stderr_tail == b"still here"
        else:
            await collect(process, got)
        assert process.returncode is None
        assert got == [{"type": "assistant"}] * in_turn
        with pytest.raises(StopAsyncIteration):
            await process.__anext__()
        await process.send({"type": "x"})
        await process.end_input()
        assert await process.wait() == 0


@pytest.mark.parametrize("backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
async def test_a_line_of_100_mb(backend: Backend) -> None:
    size = 100_000_000
    code = f"""
say(n=1)
view = memoryview(b'{{"text":"' + b"0123456789" * {size // 10} + b'"}}\\n')
while view:
    view = view[os.write(1, view):]
say(n=2)
"""

    async with plain(python(code)) as process:
        assert await process.__anext__() == {"n": 1}
        text = (await process.__anext__())["text"]
        assert len(text) == size
        assert hashlib.sha256(text.encode()).digest() == hashlib.sha256(b"0123456789" * (size // 10)).digest()
        del text
        assert await everything(process) == [{"n": 2}]


@every_backend
async def test_one_byte_at_a_time() -> None:
    text = '{"type":"a","text":"h\u00e9llo \u2028 \U0001f600 \\ud83d"}\n\n{"type":"b"}\r\n{"type":"c"}'

    code = f"""
for byte in {text!r}.encode():
    os.write(1, bytes([byte]))
    time.sleep(0.001)
"""
    async with plain(python(code)) as process:
        assert await everything(process) == [
            {"type": "a", "text": "h\u00e9llo \u2028 \U0001f600 \ud83d"},
            {"type": "b"},
            {"type": "c"},
        ]
        assert process.stats.bytes == len(text.encode())


@every_backend
async def test_garbage_between_the_lines() -> None:
    garbage = [b"DEBUG: starting", b"\xff\xfe\x00", b"[1]", b"{" * 100, b'{"a":1}{"b":2}', b"null"]

    code = f"""
for n, line in enumerate({garbage!r}):
    say(n=n)
    os.write(1, line + b"\\n")
say(type="result")
"""
    async with plain(python(code)) as process:
        got = await everything(process)
    assert [message for message in got if isinstance(message, dict)] == [
        *({"n": n} for n in range(len(garbage))),
        {"type": "result"},
    ]
    assert [message.raw for message in got if isinstance(message, InvalidLine)] == garbage


@every_backend
async def test_never_writes() -> None:
    async with plain(python("os.read(0, 1)"), grace=30.0) as process:
        for _ in range(3):
            with anyio.move_on_after(0.05) as scope:
                await process.__anext__()
            assert scope.cancelled_caught
        assert process.returncode is None
        await process.end_input()
        assert await everything(process) == []
    assert process.returncode == 0


# --- the standard error -----------------------------------------------------------------------------------------------

FLOOD = """
line = b"e" * 999 + b"\\n"
block = line * 1000
for _ in range(int(sys.argv[1])):
    view = memoryview(block)
    while view:
        view = view[os.write(2, view):]
os.write(2, b"the end\\n")
say(type="result")
"""


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@every_backend
@pytest.mark.parametrize("callback", [False, True], ids=["kept", "called back"])
@pytest.mark.parametrize("iterating", [False, True], ids=["waiting", "iterating"])
async def test_floods_its_standard_error(callback: bool, iterating: bool) -> None:
    megabytes = 40 if callback or iterating else 100

    lines = 0

    def count(line: str) -> None:
        nonlocal lines
        lines += len(line) == 999

    before = resident()
    async with plain(python(FLOOD, megabytes), stderr=count if callback else None) as process:
        if not iterating:
            assert await process.wait() == 0
        assert await everything(process) == [{"type": "result"}]
        assert resident() - before < 64 * MIB
        assert process.stderr_tail == ((b"e" * 999 + b"\n") * 70 + b"the end\n")[-64 * KIB :]
        assert lines == (1000 * megabytes if callback else 0)


@every_backend
async def test_floods_its_standard_error_while_the_loop_is_blocked() -> None:
    """The library drains stderr in a thread, so the child can end although the event loop is blocked."""
    async with plain(python(FLOOD, 50)) as process:
        with open(f"/proc/{process.pid}/stat") as stat:

            def state() -> str:
                stat.seek(0)
                return stat.read().rpartition(")")[2].split()[0]

            wait_until(lambda: state() == "Z")  # it sleeps in this thread, so it blocks the event loop
        assert process.stderr_tail.endswith(b"the end\n")
        assert await everything(process) == [{"type": "result"}]


# --- signals, and others who hold a pipe ------------------------------------------------------------------------------


@every_backend
async def test_ignores_every_signal_that_can_be_ignored() -> None:
    code = """
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
say(type="ready")
while True:
    say(type="chatter")
    time.sleep(0.001)
"""

    async with plain(python(code), grace=0.1) as process:
        await process.__anext__()
    assert process.returncode == -signal.SIGKILL


#: A program that leaves a child process behind. The child holds the given descriptors open until it is killed.
GRANDCHILD = """
keep = [int(fd) for fd in sys.argv[1:]]
os.setpgid(0, 0)
ready, write = os.pipe()
if os.fork() == 0:
    os.close(ready)
    for fd in {0, 1, 2} - set(keep):
        os.close(fd)
    os.write(write, b"x")
    signal.alarm(100)
    while True: signal.pause()
os.close(write)
os.read(ready, 1)
for n in range(3000):
    say(n=n, text="x" * 100)
os.write(2, b"one\\ntwo\\n")
sys.exit(9)
"""


@contextlib.asynccontextmanager
async def group_killed(process: Process[Any]) -> Any:
    """On exit, kill the process group, including processes that outlived the CLI."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@every_backend
@pytest.mark.parametrize(
    ("keep", "callback"),
    [([0], False), ([1], False), ([2], False), ([2], True), ([0, 1, 2], True)],
    ids=["input", "output", "error", "error called back", "all called back"],
)
async def test_another_process_holds_its_pipes(keep: list[int], callback: bool) -> None:
    """The output ends when the CLI ends, although another process holds its pipes, and no output is lost."""
    lines: list[str] = []
    process = plain(python(GRANDCHILD, *keep), stderr=lines.append if callback else None)
    async with group_killed(process):
        # The host keeps no descriptor of the CLI open, although the grandchild still runs.
        with nothing_left():
            async with process:
                got: list[Any] = []
                with pytest.raises(ProcessError, match="code 9") as raised:
                    await collect(process, got)
                assert [message["n"] for message in got] == list(range(3000))
                assert raised.value.stderr_tail == b"one\ntwo\n"
                assert lines == (["one", "two"] if callback else [])
                with pytest.raises(ProcessInputError):
                    await process.send({"type": "x"})
            assert process.returncode == 9
            del raised
            for _ in range(5):
                await anyio.sleep(0)


@every_backend
async def test_another_process_holds_its_pipes_and_nobody_has_iterated() -> None:
    async with plain(python(GRANDCHILD, 0, 1, 2)) as process, group_killed(process):
        assert await process.wait() == 9
        got: list[Any] = []
        with pytest.raises(ProcessError):
            await collect(process, got)
        assert [message["n"] for message in got] == list(range(3000))


# --- interrupted and incomplete system calls --------------------------------------------------------------------------

SMALL_ECHO = """
import fcntl
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 4096)
while data := os.read(0, 700):
    while data:
        data = data[os.write(1, data):]
"""


async def echo_through(process: Process[Any], lines: int) -> None:
    """Send lines of many lengths, and check that the child echoes them unchanged."""
    expected = [{"n": n, "text": "x" * (n * 37 % 9000)} for n in range(lines)]

    async def send() -> None:
        for message in expected:
            await process.send(message)
        await process.end_input()

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        assert await everything(process) == expected


@every_backend
async def test_pipes_that_take_and_give_little_at_a_time() -> None:
    """Sending one line takes many partial writes, and many writes that would block."""
    async with plain(python(SMALL_ECHO)) as process:
        await echo_through(process, 1000)


@every_backend
async def test_signals_that_interrupt_reading_and_writing() -> None:
    caught = 0

    def handler(number: int, frame: object) -> None:
        nonlocal caught
        caught += 1

    async with plain(python(SMALL_ECHO)) as process:
        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
        try:
            await echo_through(process, 600)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert caught > 10


# --- Faults of the host itself: it runs out of file descriptors, or it forks ------------------------------------------


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
