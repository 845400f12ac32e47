"""What a process promises: how it is started, what it is sent, what its end means, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import signal
import stat
import threading
import time
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from async_backends import Backend, backend_of, every_backend
from children import exists, held, in_own_process, linux_only, nothing_left, python
from claude_wire import (
    ClaudeOptions,
    Decoder,
    HandleError,
    InitMessage,
    InvalidLine,
    InvalidLineError,
    KeepAlive,
    Process,
    ProcessError,
    ProcessInputError,
    ResultSuccess,
    UnfinishedTurnError,
    UserMessage,
    open_process,
)
from claude_wire.native.drain_thread import ThreadDrain, _Pump

pytestmark = linux_only

KIB = 1024
INIT = {"type": "system", "subtype": "init"}
RESULT = {"type": "result", "subtype": "success"}
PROMPT = {"type": "user", "message": {"role": "user", "content": "hello"}}
SECRET = "sk-ant-a-secret"


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    with nothing_left():
        yield


def plain(argv: list[str], **options: Any) -> Process[Any]:
    """A process whose messages are dicts."""
    return open_process(argv, Decoder(dict), **options)


async def everything(process: Process[Any]) -> list[Any]:
    return [message async for message in process]


async def collect(process: Process[Any], got: list[Any]) -> None:
    """As :func:`everything`, with what came before an error."""
    async for message in process:
        got.append(message)


# --- how it is started ------------------------------------------------------------------------------------------------


@every_backend
def test_each_argument_arrives_as_it_is(backend: Backend, tmp_path: Path) -> None:
    arguments = ["", "two words", "'\"", "$HOME", "a\nb", "\N{SNOWMAN}", "--flag=1", "*"]

    async def main() -> None:
        argv = python("say(argv=sys.argv[1:])", *arguments)
        async with plain([Path(argv[0]), *argv[1:], tmp_path]) as process:
            assert await everything(process) == [{"argv": [*arguments, str(tmp_path)]}]

    backend.run(main)


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ("claude --print", "not one string"),
        (b"claude", "not one string"),
        ([], "argv is empty"),
        ((), "argv is empty"),
        ([1], "argv must be a list of str or paths: .* int"),
        (ClaudeOptions(cli_path="claude"), r"as ClaudeOptions.argv\(\) gives it, not ClaudeOptions"),
    ],
    ids=range(6),
)
def test_arguments_that_are_no_list_are_refused(argv: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        open_process(argv)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"decoder": dict}, TypeError),
        ({"decoder": {"TOKEN": SECRET}}, TypeError),
        ({"grace": -1.0}, ValueError),
        ({"grace": float("nan")}, ValueError),
        ({"grace": None}, TypeError),
        ({"stderr": "away"}, ValueError),
        ({"overflow": "drop"}, ValueError),
        ({"spill_limit": 0}, ValueError),
        ({"spill_limit": None}, TypeError),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_before_anything_is_spawned(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        open_process(["/bin/true"], **options)
    assert SECRET not in str(raised.value)


@every_backend
@pytest.mark.parametrize("as_path", [True, False])
def test_it_runs_in_the_directory_that_was_given(backend: Backend, tmp_path: Path, as_path: bool) -> None:
    async def main() -> None:
        argv = python("say(cwd=os.getcwd())")
        async with plain(argv, cwd=tmp_path if as_path else str(tmp_path)) as process:
            assert await everything(process) == [{"cwd": str(tmp_path.resolve())}]
        async with plain(argv) as process:
            assert await everything(process) == [{"cwd": os.getcwd()}]

    backend.run(main)


def environment_of_child(**options: Any) -> dict[str, str]:
    """What the system gave the child, which a Python child would add to."""
    from async_backends import ASYNCIO

    code = "say(env=open('/proc/self/environ', 'rb').read().decode('utf-8', 'surrogateescape'))"

    async def main() -> dict[str, str]:
        async with plain(python(code), **options) as process:
            (said,) = await everything(process)
        return dict(pair.split("=", 1) for pair in said["env"].split("\0") if pair)

    return ASYNCIO.run(main)


def test_without_env_the_environment_is_that_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_WIRE_TEST", "from the host")
    monkeypatch.setenv("CLAUDECODE", "1")
    environment = environment_of_child()
    for name in ("COLUMNS", "LINES"):  # set by the readline library behind Python's back, if it is loaded
        environment.pop(name, None)
    assert environment == {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


@pytest.mark.parametrize("env", [{}, {"A": "1", "EMPTY": "", "EQUALS": "a=b"}, types.MappingProxyType({"A": "1"})])
def test_env_replaces_the_environment_and_nothing_is_added(env: Mapping[str, str]) -> None:
    assert environment_of_child(env=env) == dict(env)


def test_extra_env_is_merged_into_that_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_WIRE_TEST", "from the host")
    assert environment_of_child(extra_env={"CLAUDE_WIRE_TEST": "extra", "MORE": "1"}) == {
        **os.environ,
        "CLAUDE_WIRE_TEST": "extra",
        "MORE": "1",
    }
    assert os.environ["CLAUDE_WIRE_TEST"] == "from the host"


def test_extra_env_is_merged_into_env() -> None:
    env = {"A": "1", "B": "1"}
    assert environment_of_child(env=env, extra_env={"B": "2", "C": "2"}) == {"A": "1", "B": "2", "C": "2"}
    assert env == {"A": "1", "B": "1"}


@every_backend
def test_its_three_streams_are_pipes_of_its_own_and_it_inherits_nothing_else(backend: Backend) -> None:
    code = """
found = {}
for fd in os.listdir('/proc/self/fd'):
    try: found[fd] = os.stat(int(fd)).st_mode
    except OSError: pass  # that of the listing
say(fds=found)
"""

    async def main() -> None:
        read, write = os.pipe()
        os.set_inheritable(read, True)
        try:
            async with plain(python(code)) as process:
                (said,) = await everything(process)
        finally:
            os.close(read)
            os.close(write)
        assert sorted(said["fds"]) == ["0", "1", "2"]
        assert all(stat.S_ISFIFO(mode) for mode in said["fds"].values())

    backend.run(main)


@every_backend
def test_messages_are_typed_unless_the_decoder_says_otherwise(backend: Backend) -> None:
    async def main() -> None:
        argv = python("say(type='system', subtype='init'); say(type='result', subtype='success')")
        async with open_process(argv) as process:
            assert [type(message) for message in await everything(process)] == [InitMessage, ResultSuccess]
            assert process.stats.messages == 2
            assert isinstance(process.last_result, ResultSuccess)
        async with plain(argv) as process:
            assert await everything(process) == [INIT, RESULT]
            assert process.last_result == RESULT

    backend.run(main)


@every_backend
def test_batches_give_what_single_steps_give(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("for n in range(5000): say(n=n)")) as process:
            batches = [batch async for batch in process.batches()]
        assert all(batches)
        assert [message["n"] for batch in batches for message in batch] == list(range(5000))

    backend.run(main)


@every_backend
def test_it_has_a_pid_and_no_returncode_while_it_runs(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("say(pid=os.getpid()); os.read(0, 1); sys.exit(3)")) as process:
            async for message in process:
                assert message == {"pid": process.pid}
                break
            assert process.returncode is None
        assert process.returncode == 3
        assert not exists(process.pid)

    backend.run(main)


# --- what cannot be started -------------------------------------------------------------------------------------------


def unspawnable(tmp_path: Path) -> dict[str, tuple[type[Exception], list[str], dict[str, Any]]]:
    not_executable, no_interpreter = tmp_path / "not_executable", tmp_path / "no_interpreter"
    good = python("")
    return {
        "no such program": (FileNotFoundError, [str(tmp_path / "absent")], {}),
        "no such program on the path": (FileNotFoundError, ["no-such-program-anywhere"], {}),
        "not executable": (PermissionError, [str(not_executable)], {}),
        "a directory": (PermissionError, [str(tmp_path)], {}),
        "no such interpreter": (FileNotFoundError, [str(no_interpreter)], {}),
        "no such directory": (FileNotFoundError, good, {"cwd": tmp_path / "absent"}),
        "directory is a file": (NotADirectoryError, good, {"cwd": not_executable}),
        "a zero byte": (ValueError, [*good, "a\0b"], {}),
        "an environment that is none": (ValueError, good, {"env": {"A=B": "1"}}),
        "argument list too long": (OSError, [*good, "a" * (1 << 22)], {}),
    }


@every_backend
def test_what_cannot_be_spawned_says_why_and_leaves_nothing(backend: Backend, tmp_path: Path) -> None:
    pytest.importorskip(backend.id)
    in_own_process(spawn_what_cannot_be_spawned, backend.id, str(tmp_path))


def spawn_what_cannot_be_spawned(backend: str, folder: str) -> None:
    path = Path(folder)
    (path / "not_executable").write_bytes(b"#!/bin/sh\n")
    (path / "no_interpreter").write_bytes(b"#!/no/such/interpreter\n")
    (path / "no_interpreter").chmod(0o700)

    async def one(error: type[Exception], argv: Any, options: dict[str, Any]) -> None:
        before = held()
        process = open_process(argv, **options)
        with pytest.raises(error) as raised:
            async with process:
                pytest.fail("it was entered")
        # While the exception, and what its traceback holds, are still there.
        assert held() == before
        assert "a" * 100 not in str(raised.value)
        with pytest.raises(HandleError):
            await process.send(KeepAlive())

    for case, (error, argv, options) in unspawnable(path).items():
        try:
            backend_of(backend).run(one, error, argv, options)
        except BaseException as failure:
            raise AssertionError(case) from failure


@every_backend
def test_one_that_has_ended_holds_nothing_though_it_is_still_there(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("os.read(0, 1)")) as process:
            before = held()
        after = held()
        assert process.returncode == 0
        gone = {name for number, name in before.descriptors.items() if number not in after.descriptors}
        assert not [name for name in after.descriptors.values() if "pidfd" in name]
        assert len([name for name in gone if name.startswith("pipe:")]) == 3
        assert process.pid not in after.children

    backend.run(main)


@every_backend
def test_it_can_be_entered_only_once(backend: Backend) -> None:
    async def main() -> None:
        process = plain(python("os.read(0, 1)"))
        async with process:
            pid = process.pid
            with pytest.raises(HandleError, match="once"):
                async with process:
                    pytest.fail("it was entered twice")
            assert process.returncode is None
            assert process.pid == pid
        with pytest.raises(HandleError, match="once"):
            async with process:
                pytest.fail("it was entered again")
        assert process.returncode == 0

    backend.run(main)


@every_backend
def test_one_that_was_not_entered_refuses_everything_but_closing(backend: Backend) -> None:
    async def main() -> None:
        process = plain(python(""))
        with pytest.raises(HandleError, match="async with"):
            _ = process.pid
        with pytest.raises(HandleError, match="async with"):
            _ = process.returncode
        with pytest.raises(HandleError, match="async with"):
            _ = process.stderr_tail
        with pytest.raises(HandleError, match="async with"):
            await process.send(PROMPT)
        with pytest.raises(HandleError, match="async with"):
            await process.end_input()
        with pytest.raises(HandleError, match="async with"):
            await process.wait()
        with pytest.raises(HandleError, match="async with"):
            await process.__anext__()
        assert process.last_result is None
        await process.aclose()
        with pytest.raises(HandleError):
            async with process:
                pytest.fail("it was entered after it was closed")

    backend.run(main)


@every_backend
def test_after_its_end_it_answers_questions_and_takes_nothing(backend: Backend) -> None:
    async def main() -> None:
        code = "say(type='result', subtype='success'); os.write(2, b'on stderr'); os.read(0, 1)"
        async with plain(python(code)) as process:
            async for _ in process:
                break
        assert process.returncode == 0
        assert process.stderr_tail == b"on stderr"
        assert process.last_result == RESULT
        assert process.stats.messages == 1
        assert await process.wait() == 0
        with pytest.raises(ProcessInputError):
            await process.send(PROMPT)
        await process.end_input()
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await process.__anext__()
        await process.aclose()

    backend.run(main)


# --- its standard error -----------------------------------------------------------------------------------------------


@every_backend
def test_the_last_64_kib_of_stderr_are_kept(backend: Backend) -> None:
    written = b"".join(b"%07d\n" % n for n in range(40_000))
    code = """
data = b"".join(b"%07d\\n" % n for n in range(40_000))
while data:
    data = data[os.write(2, data):]
say(type="written")
os.read(0, 1)
"""

    async def main() -> None:
        async with plain(python(code)) as process:
            assert await process.__anext__() == {"type": "written"}
            assert process.stderr_tail == written[-64 * KIB :]
            assert process.stderr_tail == written[-64 * KIB :]
        assert process.stderr_tail == written[-64 * KIB :]

    backend.run(main)


@every_backend
def test_the_error_has_the_last_of_stderr_also_where_a_thread_reads_it(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _Pump.run

    def late(pump: _Pump) -> None:
        if pump.options.keep_last is not None:
            time.sleep(0.1)
        run(pump)

    monkeypatch.setattr(_Pump, "run", late)
    monkeypatch.setattr("claude_wire.process.child.open_drain", ThreadDrain)

    async def main() -> None:
        async with plain(python("os.write(2, b'the reason'); os._exit(3)")) as process:
            with pytest.raises(ProcessError) as raised:
                await everything(process)
        assert raised.value.stderr_tail == process.stderr_tail == b"the reason"

    backend.run(main)


@every_backend
def test_stderr_goes_to_that_of_the_host_if_asked(backend: Backend, capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with plain(python("os.write(2, b'for all to see')"), stderr="inherit") as process:
            assert await everything(process) == []
            assert process.stderr_tail == b""

    backend.run(main)
    assert capfd.readouterr().err == "for all to see"


@every_backend
@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"one\n", ["one"]),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\n\n", ["one", "", ""]),
        (b"one\ntwo", ["one", "two"]),
        (b"caf\xc3\xa9 \xff\xfe\n\xed\xa0\x80\n", ["caf\u00e9 \ufffd\ufffd", "\ufffd\ufffd\ufffd"]),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\x85\n", ["a\x0bb\x0cc\u2028d\ufffd"]),
        (b"x" * 50_000 + b"\ny\n", ["x" * 50_000, "y"]),
    ],
    ids=["nothing", "line", "lines", "crlf", "no final newline", "bad UTF-8", "other line ends", "long line"],
)
def test_the_callback_gets_each_line_of_stderr(backend: Backend, written: bytes, lines: list[str]) -> None:
    async def main() -> None:
        got: list[str] = []
        code = f"os.write(2, {written!r}); sys.exit(1)"
        async with plain(python(code), stderr=got.append) as process:
            with pytest.raises(ProcessError) as raised:
                await everything(process)
            # All of it is there when the error is.
            assert got == lines
            assert raised.value.stderr_tail == written[-64 * KIB :]
        assert got == lines
        assert process.stderr_tail == written[-64 * KIB :]

    backend.run(main)


@every_backend
def test_the_callback_gets_lines_that_come_byte_by_byte(backend: Backend) -> None:
    async def main() -> None:
        got: list[str] = []
        code = """
for byte in "first\\n\u00e9\u00e8\\nlast".encode():
    os.write(2, bytes([byte]))
    time.sleep(0.001)
"""
        async with plain(python(code), stderr=got.append) as process:
            await everything(process)
        assert got == ["first", "\u00e9\u00e8", "last"]

    backend.run(main)


@every_backend
def test_a_line_of_stderr_that_does_not_end_comes_in_pieces(backend: Backend) -> None:
    async def main() -> None:
        got: list[str] = []
        code = """
data = b"x" * 1_000_000
while data:
    data = data[os.write(2, data):]
os.write(2, b"\\nshort\\n")
"""
        async with plain(python(code), stderr=got.append) as process:
            await everything(process)
        assert "".join(got[:-1]) == "x" * 1_000_000
        assert got[-1] == "short"
        assert max(map(len, got)) <= 128 * KIB

    backend.run(main)


@every_backend
def test_a_callback_that_raises_is_logged_and_called_again(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        got: list[str] = []
        threads: set[int] = set()

        def callback(line: str) -> None:
            got.append(line)
            threads.add(threading.get_ident())
            raise RuntimeError(SECRET)

        async with plain(python(f"os.write(2, b'{SECRET}\\ntwo\\n')"), stderr=callback) as process:
            assert await everything(process) == []
        assert got == [SECRET, "two"]
        assert threads == {threading.get_ident()}

    with caplog.at_level(logging.WARNING, "claude_wire"):
        backend.run(main)
    assert [(record.name, record.levelname) for record in caplog.records] == [("claude_wire", "WARNING")] * 2
    assert SECRET not in caplog.text
    assert "RuntimeError" in caplog.text


@every_backend
def test_the_callback_is_called_while_nobody_iterates(backend: Backend) -> None:
    async def main() -> None:
        called = anyio.Event()
        code = "os.write(2, b'line\\n'); os.read(0, 1)"
        async with plain(python(code), stderr=lambda _: called.set()):
            await called.wait()

    backend.run(main)


@every_backend
@pytest.mark.parametrize("end", [b"\n", b""], ids=["lines", "one line"])
def test_the_last_64_kib_of_stderr_are_kept_beside_a_callback(backend: Backend, end: bytes) -> None:
    code = """
end = sys.argv[1].encode()
data = b"".join(b"%07d" % n + end for n in range(100_000))
while data:
    data = data[os.write(2, data):]
"""
    written = b"".join(b"%07d" % n + end for n in range(100_000))

    async def main() -> None:
        got: list[str] = []
        async with plain(python(code, end.decode()), stderr=got.append) as process:
            assert await everything(process) == []
            assert process.stderr_tail == written[-64 * KIB :]
        assert process.stderr_tail == written[-64 * KIB :]
        assert "".join(got) == written.decode().replace("\n", "")

    backend.run(main)


@every_backend
def test_the_callback_is_not_called_after_the_end(backend: Backend) -> None:
    async def main() -> None:
        got: list[str] = []
        async with plain(python("os.write(2, b'line\\nunfinished'); os.read(0, 1)"), stderr=got.append) as process:
            while not process.stderr_tail:
                await anyio.sleep(0.001)
        before = list(got)
        for _ in range(20):
            await anyio.sleep(0)
        assert got == before == ["line", "unfinished"]

    backend.run(main)


# --- sending ----------------------------------------------------------------------------------------------------------

#: Says of each line of its input whether it is JSON, its id, and its length.
ECHO = """
for line in sys.stdin.buffer:
    message = json.loads(line)
    say(type="echo", id=message.get("id"), length=len(line), kind=message.get("type"))
"""

#: Says so when its input is full, and reads it, line by line, when it gets SIGUSR1.
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
def test_a_message_is_sent_as_one_line(backend: Backend) -> None:
    sent = [
        PROMPT,
        {"type": "x", "id": 1, "text": "a\nb\u2028\ud83d"},
        KeepAlive(),
        UserMessage(message=PROMPT["message"]),
    ]

    async def main() -> None:
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

    backend.run(main)


async def ignoring_unfinished(process: Process[Any]) -> Any:
    """The messages of a child that answers prompts otherwise than by turns."""
    while True:
        try:
            message = await process.__anext__()
        except UnfinishedTurnError:
            continue
        except StopAsyncIteration:
            return
        yield message


@every_backend
def test_what_cannot_be_encoded_is_not_sent(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python(ECHO)) as process:
            with pytest.raises((TypeError, ValueError)):
                await process.send({"type": "x", "value": object()})
            await process.send({"type": "x", "id": 1})
            await process.end_input()
            assert [message["id"] for message in await everything(process)] == [1]

    backend.run(main)


@every_backend
def test_lines_of_many_tasks_never_mix(backend: Backend) -> None:
    tasks, each = 20, 40
    size = [10, 3_000, 70_000, 200_000]

    async def main() -> None:
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
        for task in range(tasks):  # those of one task in its order
            assert [n for of, n in ids if of == task] == list(range(each))

    backend.run(main)


@every_backend
@pytest.mark.parametrize("iterating", [False, True], ids=["nobody iterates", "iterating"])
def test_full_pipes_on_both_sides_are_no_deadlock(backend: Backend, iterating: bool) -> None:
    code = """
for n in range(256):
    say(type="before", text="x" * 1000)
read = 0
for line in sys.stdin.buffer:
    read += len(line)
    say(type="echo", text=line.decode())
say(type="read", bytes=read)
"""

    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_sending_without_a_pause_lets_other_tasks_run(backend: Backend) -> None:
    """The child takes all at once, so that no send has to wait for it."""

    async def main() -> None:
        async with plain(["/bin/sh", "-c", "exec cat >/dev/null"]) as process:
            sent = 0
            with anyio.CancelScope() as scope:

                async def other() -> None:
                    for _ in range(10):
                        await anyio.sleep(0)
                    scope.cancel()

                async with anyio.create_task_group() as group:
                    group.start_soon(other)
                    while sent < 200_000:  # a second or more
                        await process.send_bytes(b'{"type":"keep_alive"}\n')
                        sent += 1
            assert scope.cancelled_caught
            assert sent < 200_000

    backend.run(main)


@every_backend
def test_sending_to_one_that_has_ended_is_an_error(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("sys.exit(7)")) as process:
            assert await process.wait() == 7
            for _ in range(2):
                with pytest.raises(ProcessInputError, match="exited with code 7") as raised:
                    await process.send({"type": "x", "text": SECRET})
                assert isinstance(raised.value, BrokenPipeError)
                assert SECRET not in str(raised.value) + repr(raised.value)
            with pytest.raises(ProcessError):
                await everything(process)

    backend.run(main)


@every_backend
@pytest.mark.parametrize("how", ["killed", "exits", "closes its input"])
def test_a_send_that_waits_ends_with_an_error_when_the_process_does(backend: Backend, how: str) -> None:
    code = LATE.replace(
        ECHO, {"exits": "sys.exit(4)", "closes its input": "os.close(0); say(closed=True); signal.pause()"}.get(how, "")
    )

    async def main() -> None:
        async with plain(python(code), grace=0.01) as process:

            async def send() -> None:
                with pytest.raises(ProcessInputError) as raised:
                    await process.send({"type": "x", "text": SECRET * 100_000})
                # A process that ends closes its pipes a moment before the system tells of its end.
                reasons = {"killed": "SIGKILL", "exits": "exited with code 4"}
                assert any(text in str(raised.value) for text in ("has closed its input", reasons.get(how, "-")))
                assert SECRET not in str(raised.value) + repr(raised.value)

            async with anyio.create_task_group() as group:
                group.start_soon(send)
                assert await process.__anext__() == {"type": "full"}
                os.kill(process.pid, signal.SIGKILL if how == "killed" else signal.SIGUSR1)
            with pytest.raises(ProcessInputError):
                await process.send({"type": "x"})

    backend.run(main)


@every_backend
def test_a_send_that_waits_ends_when_the_process_does_though_another_holds_its_input(backend: Backend) -> None:
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

    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_sending_to_one_that_never_reads_fails_when_it_is_ended(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("say(type='x'); signal.pause()"), grace=0.05) as process:

            async def send() -> None:
                with pytest.raises(ProcessInputError):
                    await process.send({"type": "x", "text": "y" * 1_000_000})

            async with anyio.create_task_group() as group:
                group.start_soon(send)
                assert await process.__anext__() == {"type": "x"}
                await process.aclose()

    backend.run(main)


@every_backend
def test_a_line_whose_sender_was_cancelled_is_completed_by_the_next(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python(LATE)) as process:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(process.send, {"type": "x", "id": 1, "text": "y" * 300_000})
                    assert await process.__anext__() == {"type": "full"}
                    scope.cancel()
            os.kill(process.pid, signal.SIGUSR1)
            await process.send({"type": "x", "id": 2})
            await process.end_input()
            assert [message["id"] for message in await everything(process)] == [1, 2]

    backend.run(main)


@every_backend
def test_a_line_is_completed_also_if_the_one_who_completes_it_is_cancelled(backend: Backend) -> None:
    async def main() -> None:
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
            # Of 1 and 2 no byte was written when they were cancelled.
            assert [message["id"] for message in await everything(process)] == [0, 3]

    backend.run(main)


@every_backend
def test_a_line_whose_sender_was_cancelled_is_completed_by_the_end_of_the_input(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python(LATE)) as process:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(process.send, {"type": "x", "id": 1, "text": "y" * 300_000})
                    assert await process.__anext__() == {"type": "full"}
                    scope.cancel()
            os.kill(process.pid, signal.SIGUSR1)
            await process.end_input()
            assert [message["id"] for message in await everything(process)] == [1]

    backend.run(main)


@every_backend
def test_the_end_of_the_input_does_not_wait_for_one_that_never_reads(backend: Backend) -> None:
    """The rest of a line whose sender was cancelled is given a second, and no more."""

    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_nothing_is_sent_by_a_send_that_was_cancelled_before_its_first_byte(backend: Backend) -> None:
    full = json.dumps({"type": "x", "id": 1, "text": ""}).encode()
    full = full.replace(b'""', b'"%s"' % (b"y" * (65536 - len(full) - 1))) + b"\n"

    async def main() -> None:
        async with plain(python(LATE)) as process:
            await process.send_bytes(full)  # the pipe is full now, to the byte
            assert await process.__anext__() == {"type": "full"}
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    for n in range(3):  # one waits for the pipe, two for the first
                        group.start_soon(process.send, {"type": "cancelled", "id": n})
                    for _ in range(10):
                        await anyio.sleep(0)
                    scope.cancel()
            os.kill(process.pid, signal.SIGUSR1)
            await process.send({"type": "x", "id": 2})
            await process.end_input()
            assert [message["id"] for message in await everything(process)] == [1, 2]

    backend.run(main)


@every_backend
def test_the_input_is_ended_only_when_asked_and_only_once(backend: Backend) -> None:
    code = """
import select
say(ended=bool(select.select([0], [], [], 0.2)[0]))
say(ended=os.read(0, 1) == b"")
"""

    async def main() -> None:
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

    backend.run(main)


@every_backend
def test_the_input_of_one_that_is_gone_can_be_ended(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("")) as process:
            await process.wait()
            await process.end_input()

    backend.run(main)


# --- waiting ----------------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize(
    ("code", "returncode"),
    [("", 0), ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15)],
)
def test_waiting_gives_the_exit_code_to_all_who_wait(backend: Backend, code: str, returncode: int) -> None:
    async def main() -> None:
        async with plain(python("os.read(0, 1)\n" + code)) as process:
            got: list[int] = []

            async def wait() -> None:
                got.append(await process.wait())

            with anyio.move_on_after(0.01):
                await process.wait()
                pytest.fail("it runs")
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(wait)
                await process.end_input()
            assert got == [returncode] * 5
            assert process.returncode == await process.wait() == returncode

    backend.run(main)


@every_backend
def test_waiting_does_not_hold_up_one_that_writes_more_than_its_pipe_holds(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("for n in range(2000): say(n=n, text='x' * 500)")) as process:
            assert await process.wait() == 0
            assert [message["n"] for message in await everything(process)] == list(range(2000))

    backend.run(main)


# --- what its end means -----------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize(
    ("code", "returncode", "number", "text"),
    [
        ("sys.exit(1)", 1, None, "exited with code 1"),
        ("sys.exit(2)", 2, None, "exited with code 2"),
        ("sys.exit(255)", 255, None, "exited with code 255"),
        ("sys.exit(130)", 130, signal.SIGINT, "SIGINT"),
        ("sys.exit(143)", 143, signal.SIGTERM, "SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, signal.SIGKILL, "SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, signal.SIGTERM, "SIGTERM"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 5)", -39, signal.SIGRTMIN + 5, "39"),
    ],
)
def test_an_exit_code_that_is_not_0_is_an_error(
    backend: Backend, code: str, returncode: int, number: int | None, text: str
) -> None:
    async def main() -> None:
        said = f"""
say(type="system", subtype="init", cwd="{SECRET}")
say(type="result", subtype="success", result="{SECRET}")
os.write(2, b"{SECRET}\\n" * 9 + b"Error: no such flag\\n    at {SECRET}\\n")
{code}
"""
        async with plain(python(said, SECRET), extra_env={"SECRET": SECRET}) as process:
            got: list[Any] = []
            with pytest.raises(ProcessError) as raised:
                await collect(process, got)
            assert [message["type"] for message in got] == ["system", "result"]
            error = raised.value
            assert type(error) is ProcessError
            for same in (error, pickle.loads(pickle.dumps(error))):
                assert type(same) is ProcessError
                assert same.returncode == returncode == process.returncode
                assert same.signal == number
                assert same.stderr_tail.startswith(SECRET.encode())
                assert same.last_result == got[-1] == process.last_result
                assert text in str(same)
                assert str(same).endswith('; on its standard error: "Error: no such flag"')
                assert SECRET not in str(same) + repr(same)
            # It is said once, and then the iteration is over.
            for _ in range(2):
                with pytest.raises(StopAsyncIteration):
                    await process.__anext__()

    backend.run(main)


OPEN = "say(type='system', subtype='init'); say(type='assistant', message={'role': 'assistant', 'content': []})\n"
DONE = "say(type='result', subtype='success')\n"


@every_backend
@pytest.mark.parametrize("decoder", [None, dict], ids=["typed", "plain"])
@pytest.mark.parametrize("returncode", [0, 1, -9])
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (OPEN, "in the middle of a turn"),
        (OPEN + DONE + OPEN, "in the middle of a turn"),
        ("say(type='stream_event', event={'type': 'message_stop'})\n", "in the middle of a turn"),
        (OPEN + DONE + 'os.write(1, b\'{"type":"assis\')\n', "in the middle of a line"),
        (OPEN + 'os.write(1, b\'{"type":"assis\')\n', "in the middle of a line"),
    ],
    ids=["init", "second turn", "stream event", "line after a result", "line in a turn"],
)
def test_an_output_that_ends_early_is_an_error_whatever_the_exit_code(
    backend: Backend, code: str, text: str, returncode: int, decoder: Any
) -> None:
    async def main() -> None:
        end = f"sys.exit({returncode})" if returncode >= 0 else f"os.kill(os.getpid(), {-returncode})"
        argv = python(code + f"os.write(2, b'{SECRET}\\nerror: it broke\\n')\n" + end, SECRET)
        async with open_process(argv, Decoder(decoder) if decoder else None) as process:
            got: list[Any] = []
            with pytest.raises(UnfinishedTurnError, match=text) as raised:
                await collect(process, got)
            assert len(got) == process.stats.lines
            error = raised.value
            for same in (error, pickle.loads(pickle.dumps(error))):
                assert type(same) is UnfinishedTurnError
                assert isinstance(same, ProcessError)
                assert same.returncode == returncode
                assert same.stderr_tail.startswith(SECRET.encode())
                assert same.last_result == process.last_result
                assert text in str(same)
                assert str(same).endswith('; on its standard error: "error: it broke"') == (returncode != 0)
                assert SECRET not in str(same) + repr(same)
            assert (error.last_result is None) == (DONE not in code)
            with pytest.raises(StopAsyncIteration):
                await process.__anext__()

    backend.run(main)


@every_backend
@pytest.mark.parametrize(
    ("only", "code", "unfinished"),
    [
        ({"assistant"}, OPEN, False),
        ({"assistant"}, OPEN + DONE, False),
        ({"assistant", "result"}, OPEN, True),
        ({"assistant", "result"}, OPEN + DONE, False),
        ({"result"}, OPEN + DONE, False),
        ({"assistant"}, OPEN + 'os.write(1, b\'{"type":"assis\')\n', True),
    ],
)
def test_a_decoder_with_only_shows_as_much_of_a_turn_as_it_lets_through(
    backend: Backend, only: set[str], code: str, unfinished: bool
) -> None:
    async def main() -> None:
        async with open_process(python(code), Decoder(only=only)) as process:
            with pytest.raises(UnfinishedTurnError) if unfinished else contextlib.nullcontext():
                await everything(process)

    backend.run(main)


@every_backend
@pytest.mark.parametrize("typed", [True, False])
def test_a_prompt_to_which_nothing_came_is_an_unfinished_turn(backend: Backend, typed: bool) -> None:
    async def main() -> None:
        async with plain(python("os.read(0, 65536)")) as process:
            await process.send(UserMessage(message=PROMPT["message"]) if typed else PROMPT)
            with pytest.raises(UnfinishedTurnError, match="before the turn") as raised:
                await everything(process)
            assert raised.value.returncode == 0
            assert raised.value.last_result is None

    backend.run(main)


@every_backend
@pytest.mark.parametrize(
    "code",
    [
        "",
        "say(type='system', subtype='hook_started')",
        "say(type='control_response', response={'subtype': 'success', 'request_id': '1'})",
        DONE,
        OPEN + DONE,
        OPEN + DONE + "say(type='system', subtype='session_state_changed')",
        OPEN + DONE + "say(type='user', message={'role': 'user', 'content': 'a'}, isReplay=True)",
        OPEN + DONE + "say(type='assistant', parent_tool_use_id='t', message={'role': 'assistant', 'content': []})",
        'os.write(1, b\'{"type":"result","subtype":"success"}\')',  # a whole last line without a line feed
    ],
)
@pytest.mark.parametrize("decoder", [None, dict], ids=["typed", "plain"])
def test_an_output_that_ends_between_turns_with_exit_code_0_is_no_error(
    backend: Backend, code: str, decoder: Any
) -> None:
    async def main() -> None:
        async with open_process(python(code), Decoder(decoder) if decoder else None) as process:
            await process.end_input()
            await everything(process)
        assert process.returncode == 0

    backend.run(main)


#: Those whose reader went away or was too slow, and one whose recording was stopped.
CUT = {"17_sdk_client_full", "19_slowread_long_6"}


@pytest.mark.parametrize("decoder", [None, dict], ids=["typed", "plain"])
def test_of_the_recorded_sessions_those_that_were_cut_and_no_others_are_unfinished(
    decoder: Any, tmp_path: Path
) -> None:
    """Each is written by a child that ends as the CLI did."""
    from async_backends import ASYNCIO

    unfinished = []

    async def main() -> None:
        for name in recordings.names():
            recording = recordings.load(name)
            # Of one session the end was not recorded.
            returncode = json.loads(recording.files.get("exit.json", b'{"rc": 0}'))["rc"]
            path = tmp_path / name
            path.write_bytes(recording.stdout)
            argv = ["/bin/sh", "-c", f"cat {path}; exit {returncode}"]
            async with open_process(argv, Decoder(decoder) if decoder else None) as process:
                try:
                    async for _ in process.batches():
                        pass
                    assert returncode == 0, name
                except UnfinishedTurnError:
                    unfinished.append(name)
                except ProcessError:
                    assert returncode != 0, name
            assert process.stats.bytes == len(recording.stdout)

    ASYNCIO.run(main)
    assert len(recordings.names()) == 135
    expected = {name for name in recordings.names() if name in CUT or name.startswith("18_stdout_closed_by_reader")}
    assert set(unfinished) == expected
    assert len(expected) > 2


@every_backend
@pytest.mark.parametrize("batches", [False, True])
def test_an_error_within_the_stream_does_not_end_it(backend: Backend, batches: bool) -> None:
    code = """
say(type="a")
os.write(1, b"not JSON\\n")
say(type="b")
os.write(1, b"{cut")
sys.exit(5)
"""

    async def main() -> None:
        got: list[Any] = []
        async with open_process(python(code), Decoder(dict, on_invalid="raise")) as process:
            steps = process.batches() if batches else process
            while True:
                try:
                    step = await steps.__anext__()
                    got.extend(step if batches else [step])
                except StopAsyncIteration:
                    break
                except (InvalidLineError, ProcessError) as error:
                    got.append(type(error))
        assert got == [{"type": "a"}, InvalidLineError, {"type": "b"}, InvalidLineError, UnfinishedTurnError]

    backend.run(main)


@every_backend
def test_a_step_that_was_cancelled_loses_nothing(backend: Backend) -> None:
    async def main() -> None:
        code = "for line in sys.stdin.buffer: say(n=int(line)); say(n=-int(line))\nsys.exit(9)"
        async with plain(python(code)) as process:
            got = []
            for n in range(1, 20):
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as group:
                        group.start_soon(process.__anext__)
                        await anyio.sleep(0)
                        scope.cancel()
                await process.send_bytes(b"%d\n" % n)
                got += [(await process.__anext__())["n"], (await process.__anext__())["n"]]
            assert got == [value for n in range(1, 20) for value in (n, -n)]
            with anyio.move_on_after(0.05):
                await process.__anext__()
            await process.end_input()
            with pytest.raises(ProcessError, match="code 9"):
                await process.__anext__()

    backend.run(main)


@every_backend
def test_the_wait_for_the_exit_after_the_output_can_be_cancelled_and_resumed(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("say(a=1); os.close(1); os.read(0, 1); sys.exit(9)"), grace=30.0) as process:
            assert await process.__anext__() == {"a": 1}
            with anyio.move_on_after(0.1) as scope:
                await process.__anext__()
            assert scope.cancelled_caught
            await process.end_input()
            with pytest.raises(ProcessError, match="code 9"):
                await process.__anext__()

    backend.run(main)


@every_backend
@pytest.mark.parametrize("typed", [False, True], ids=["dicts", "typed"])
@pytest.mark.parametrize("how", ["raise", "callable"])
def test_turns_are_followed_behind_invalid_lines(backend: Backend, how: Any, typed: bool) -> None:
    """What an exception held back counts, too: that a turn began there, and that it ended."""

    def complain(line: InvalidLine) -> None:
        raise KeyError(line.line_number)

    def lines(*messages: dict[str, str] | None) -> list[str]:
        data = b"".join(b"bad\n" if message is None else json.dumps(message).encode() + b"\n" for message in messages)
        return python(f"os.write(1, {data!r})")  # one write: one chunk

    async def rest(process: Process[Any]) -> list[BaseException]:
        raised: list[BaseException] = []
        while True:
            try:
                await everything(process)
                return raised
            except (InvalidLineError, KeyError, ProcessError) as error:
                raised.append(error)

    async def main() -> None:
        bad = InvalidLineError if how == "raise" else KeyError
        make = Decoder if typed else lambda **options: Decoder(dict, **options)
        decoders = [make(on_invalid="raise" if how == "raise" else complain) for _ in range(2)]
        async with open_process(lines(INIT, None, RESULT), decoders[0]) as process:
            assert list(map(type, await rest(process))) == [bad]
            assert (process.last_result.subtype if typed else process.last_result["subtype"]) == "success"
        async with open_process(lines(None, INIT, None), decoders[1]) as process:
            assert list(map(type, await rest(process))) == [bad, bad, UnfinishedTurnError]

    backend.run(main)


@every_backend
def test_two_tasks_cannot_iterate_at_once(backend: Backend) -> None:
    async def main() -> None:
        async with plain(python("os.read(0, 1); say(a=1)")) as process:
            got: list[Any] = []

            async def iterate() -> None:
                got.extend(await everything(process))

            async with anyio.create_task_group() as group:
                group.start_soon(iterate)
                for _ in range(5):
                    await anyio.sleep(0)
                with pytest.raises(HandleError, match="another task"):
                    await process.__anext__()
                await process.end_input()
            assert got == [{"a": 1}]

    backend.run(main)


@every_backend
def test_closing_from_another_task_ends_an_iteration_without_an_error(backend: Backend) -> None:
    """What was half read is no bad line then, and that we ended it is no failure of the process."""

    async def main() -> None:
        code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
say(type="system", subtype="init")
os.write(1, b'{"type":"assis')
while True: signal.pause()
"""
        for close_output in ("", "os.close(1)\n"):
            async with plain(python(code.replace("while True", close_output + "while True")), grace=0.2) as process:
                got: list[Any] = []

                async def iterate(process: Process[Any] = process, got: list[Any] = got) -> None:
                    got.extend(await everything(process))

                assert await process.__anext__() == INIT
                async with anyio.create_task_group() as group:
                    group.start_soon(iterate)
                    await anyio.sleep(0.05)
                    await process.aclose()
                assert process.returncode in (143, -signal.SIGKILL)  # on a busy machine it may end too late by SIGTERM
            if not close_output:
                assert got == []

    backend.run(main)


@every_backend
def test_many_messages_that_are_there_already_do_not_starve_other_tasks(backend: Backend) -> None:
    """The process has ended: nothing is ever waited for."""

    async def main() -> None:
        async with plain(python("for n in range(60000): say(n=n, text='x' * 100)")) as process:
            await process.wait()
            steps = 0
            ended = False

            async def other() -> None:
                nonlocal steps
                while not ended:
                    steps += 1
                    await anyio.sleep(0)

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                await anyio.sleep(0)
                before = steps
                assert len(await everything(process)) == 60000
                ended = True
            # A step each millisecond; decoding alone takes several hundred of them less than there are.
            assert steps - before >= 10

    backend.run(main)


@every_backend
def test_lines_with_strange_types_are_neither_turns_nor_errors(backend: Backend) -> None:
    # An unhashable type, one that is no UTF-8, and one that is nested deeper than a parser goes.
    code = "import sys; sys.stdin.read(); print('{\"type\":[]}'); print('{\"type\":{}}')"

    async def main() -> None:
        async with open_process(python(code), Decoder(dict)) as process:
            await process.send_bytes(b'{"type":"\xff"}\n')
            await process.send_bytes(b'{"type":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
            await process.end_input()
            assert [message async for message in process] == [{"type": []}, {"type": {}}]

    backend.run(main)


@every_backend
def test_a_prompt_in_a_later_turn_that_is_not_answered_is_noticed(backend: Backend) -> None:
    code = f"""
sys.stdin.readline()
for line in {[json.dumps(INIT), json.dumps(RESULT)]!r}:
    print(line, flush=True)
sys.stdin.read()
"""

    async def main(*prompts: dict[str, Any]) -> list[Any]:
        raised: list[Any] = []
        async with plain(python(code)) as process:
            await process.send({"type": "user", "uuid": "a"})
            assert [(await process.__anext__())["type"] for _ in range(2)] == ["system", "result"]
            for prompt in prompts:
                await process.send(prompt)
            await process.end_input()
            try:
                await everything(process)
            except UnfinishedTurnError as error:
                raised.append(str(error))
            return raised

    async def both() -> None:
        assert await main() == []
        unanswered = "the output ended before the turn that was asked for; the process exited with code 0"
        assert await main({"type": "user", "uuid": "b"}) == [unanswered]
        # The CLI starts no turn for a prompt that it has had already.
        assert await main({"type": "user", "uuid": "a"}, {"type": "keep_alive"}) == []

    backend.run(both)


def settled(uuid: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


NAMING: dict[str, Any] = {**RESULT, "user_message_uuids": ["a"], "user_message_uuid": "a"}


#: By what they show: what the process says to two prompts, a and b, before it ends; and whether that is early.
FATES: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "a result for one of them": ([INIT, NAMING], True),
    "a result for both": ([INIT, {**NAMING, "user_message_uuids": ["a", "b"]}], False),
    "a result that names nobody": ([INIT, RESULT], False),
    "a result that names the last": ([INIT, {**RESULT, "user_message_uuid": "b"}], False),
    "one was answered before": ([settled("b", "completed"), INIT, NAMING], False),
    "one was taken out of the queue in mid-turn": ([INIT, settled("b", "cancelled"), NAMING], False),
    "one was taken out of the queue": ([INIT, NAMING, settled("b", "discarded")], False),
    "one waits": ([settled("b", "queued"), INIT, NAMING], True),
}


@every_backend
@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("typed", [True, False])
def test_an_end_before_the_turn_of_a_prompt_is_noticed_and_no_other(backend: Backend, fate: str, typed: bool) -> None:
    said, early = FATES[fate]
    code = f"""
sys.stdin.read()
for line in {[json.dumps(message) for message in said]!r}:
    print(line, flush=True)
"""

    async def main() -> None:
        async with open_process(python(code), None if typed else Decoder(dict)) as process:
            for uuid in "ab":
                await process.send({**PROMPT, "uuid": uuid})
            await process.end_input()
            with pytest.raises(UnfinishedTurnError) if early else contextlib.nullcontext():
                await everything(process)

    backend.run(main)
