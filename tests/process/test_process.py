"""Processes: how they are started, failures to start, and what they write to their standard error."""

from __future__ import annotations

import logging
import os
import stat
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from async_backends import Backend, backend_of, every_backend
from children import exists, held, in_own_process, linux_only, python
from claude_wire import ClaudeOptions, HandleError, InitMessage, ProcessError, ProcessInputError, open_process
from claude_wire.messages import KeepAlive, ResultSuccess
from claude_wire.process.stderr import StderrLines
from plain_processes import INIT, PROMPT, RESULT, SECRET, everything, plain
from virtual_time import VirtualBackend, every_virtual_backend

pytestmark = [linux_only, pytest.mark.usefixtures("nothing_is_left")]


KIB = 1024


# --- how it is started ------------------------------------------------------------------------------------------------


@every_backend
async def test_each_argument_arrives_as_it_is(tmp_path: Path) -> None:
    arguments = ["", "two words", "'\"", "$HOME", "a\nb", "\N{SNOWMAN}", "--flag=1", "*"]

    argv = python("say(argv=sys.argv[1:])", *arguments)
    async with plain([Path(argv[0]), *argv[1:], tmp_path]) as process:
        assert await everything(process) == [{"argv": [*arguments, str(tmp_path)]}]


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
async def test_it_runs_in_the_directory_that_was_given(tmp_path: Path, as_path: bool) -> None:
    argv = python("say(cwd=os.getcwd())")
    async with plain(argv, cwd=tmp_path if as_path else str(tmp_path)) as process:
        assert await everything(process) == [{"cwd": str(tmp_path.resolve())}]
    async with plain(argv) as process:
        assert await everything(process) == [{"cwd": os.getcwd()}]


def environment_of_child(**options: Any) -> dict[str, str]:
    """The environment of a child, read without Python in the child, because Python adds variables."""
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
    for name in ("COLUMNS", "LINES"):  # the readline library, if loaded, sets them outside of os.environ
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
async def test_its_three_streams_are_pipes_of_its_own_and_it_inherits_nothing_else() -> None:
    code = """
found = {}
for fd in os.listdir('/proc/self/fd'):
    try: found[fd] = os.stat(int(fd)).st_mode
    except OSError: pass  # that of the listing
say(fds=found)
"""

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


@every_backend
async def test_messages_are_typed_unless_the_decoder_says_otherwise() -> None:
    argv = python("say(type='system', subtype='init'); say(type='result', subtype='success')")
    async with open_process(argv) as process:
        assert [type(message) for message in await everything(process)] == [InitMessage, ResultSuccess]
        assert process.stats.messages == 2
        assert isinstance(process.last_result, ResultSuccess)
    async with plain(argv) as process:
        assert await everything(process) == [INIT, RESULT]
        assert process.last_result == RESULT


@every_backend
async def test_batches_give_what_single_steps_give() -> None:
    async with plain(python("for n in range(5000): say(n=n)")) as process:
        batches = [batch async for batch in process.batches()]
    assert all(batches)
    assert [message["n"] for batch in batches for message in batch] == list(range(5000))


@every_backend
async def test_it_has_a_pid_and_no_returncode_while_it_runs() -> None:
    async with plain(python("say(pid=os.getpid()); os.read(0, 1); sys.exit(3)")) as process:
        async for message in process:
            assert message == {"pid": process.pid}
            break
        assert process.returncode is None
    assert process.returncode == 3
    assert not exists(process.pid)


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
        # Check while the exception and the objects in its traceback still exist.
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
async def test_one_that_has_ended_holds_nothing_though_it_is_still_there() -> None:
    async with plain(python("os.read(0, 1)"), grace=30.0) as process:
        before = held()
    after = held()
    assert process.returncode == 0
    gone = {name for number, name in before.descriptors.items() if number not in after.descriptors}
    assert not [name for name in after.descriptors.values() if "pidfd" in name]
    assert len([name for name in gone if name.startswith("pipe:")]) == 3
    assert process.pid not in after.children


@every_backend
async def test_it_can_be_entered_only_once() -> None:
    process = plain(python("os.read(0, 1)"), grace=30.0)
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


@every_backend
async def test_one_that_was_not_entered_refuses_everything_but_closing() -> None:
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


@every_backend
async def test_after_its_end_it_answers_questions_and_takes_nothing() -> None:
    code = "say(type='result', subtype='success'); os.write(2, b'on stderr'); os.read(0, 1)"
    async with plain(python(code), grace=30.0) as process:
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


# --- its standard error -----------------------------------------------------------------------------------------------


@every_backend
async def test_the_last_64_kib_of_stderr_are_kept() -> None:
    written = b"".join(b"%07d\n" % n for n in range(40_000))
    code = """
data = b"".join(b"%07d\\n" % n for n in range(40_000))
while data:
    data = data[os.write(2, data):]
say(type="written")
os.read(0, 1)
"""

    async with plain(python(code)) as process:
        assert await process.__anext__() == {"type": "written"}
        assert process.stderr_tail == written[-64 * KIB :]
        assert process.stderr_tail == written[-64 * KIB :]
    assert process.stderr_tail == written[-64 * KIB :]


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
async def test_the_callback_gets_each_line_of_stderr(written: bytes, lines: list[str]) -> None:
    got: list[str] = []
    code = f"os.write(2, {written!r}); sys.exit(1)"
    async with plain(python(code), stderr=got.append) as process:
        with pytest.raises(ProcessError) as raised:
            await everything(process)
        # The standard error is complete when the exception is raised.
        assert got == lines
        assert raised.value.stderr_tail == written[-64 * KIB :]
    assert got == lines
    assert process.stderr_tail == written[-64 * KIB :]


@every_backend
async def test_the_callback_gets_lines_that_come_byte_by_byte() -> None:
    got: list[str] = []
    code = """
for byte in "first\\n\u00e9\u00e8\\nlast".encode():
    os.write(2, bytes([byte]))
    time.sleep(0.001)
"""
    async with plain(python(code), stderr=got.append) as process:
        await everything(process)
    assert got == ["first", "\u00e9\u00e8", "last"]


@every_backend
async def test_a_line_of_stderr_that_does_not_end_comes_in_pieces() -> None:
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
async def test_the_callback_is_called_while_nobody_iterates() -> None:
    called = anyio.Event()
    code = "os.write(2, b'line\\n'); os.read(0, 1)"
    async with plain(python(code), stderr=lambda _: called.set()):
        await called.wait()


@every_backend
@pytest.mark.parametrize("end", [b"\n", b""], ids=["lines", "one line"])
async def test_the_last_64_kib_of_stderr_are_kept_beside_a_callback(end: bytes) -> None:
    code = """
end = sys.argv[1].encode()
data = b"".join(b"%07d" % n + end for n in range(100_000))
while data:
    data = data[os.write(2, data):]
"""
    written = b"".join(b"%07d" % n + end for n in range(100_000))

    got: list[str] = []
    async with plain(python(code, end.decode()), stderr=got.append) as process:
        assert await everything(process) == []
        assert process.stderr_tail == written[-64 * KIB :]
    assert process.stderr_tail == written[-64 * KIB :]
    assert "".join(got) == written.decode().replace("\n", "")


@every_backend
async def test_the_callback_is_not_called_after_the_end() -> None:
    got: list[str] = []
    async with plain(python("os.write(2, b'line\\nunfinished'); os.read(0, 1)"), stderr=got.append) as process:
        while not process.stderr_tail:
            await anyio.sleep(0.001)
    before = list(got)
    for _ in range(20):
        await anyio.sleep(0)
    assert got == before == ["line", "unfinished"]


# --- StderrLines: how it splits a standard error into lines, and how long it waits for the end, in virtual time -------


class Chunks:
    """A source that returns a line every ``every`` seconds, and then ends or stays silent."""

    def __init__(self, lines: int, every: float, *, ends: bool = True) -> None:
        self.left = lines
        self._every = every
        self._ends = ends

    async def receive(self) -> bytes:
        await anyio.sleep(self._every)
        if self.left:
            self.left -= 1
            return b"line\n"
        if not self._ends:
            await anyio.sleep_forever()
        return b""


def waited(virtual: VirtualBackend, chunks: Chunks) -> tuple[int, float]:
    """Wait for at most one second. Return the number of lines and the seconds that passed."""

    async def main() -> tuple[int, float]:
        got: list[str] = []
        lines = StderrLines(cast("Any", chunks), got.append)
        begun = anyio.current_time()
        await lines.wait(1.0)
        passed = anyio.current_time() - begun
        lines._task.cancel()
        return len(got), round(passed, 3)

    return virtual.run(main)


@every_virtual_backend
def test_the_end_is_waited_for_as_long_as_bytes_come(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(5, every=0.75)) == (5, 4.5)


@every_virtual_backend
def test_it_is_not_waited_for_when_nothing_comes(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(2, every=0.75, ends=False)) == (2, 3.0)


@every_virtual_backend
def test_it_is_not_waited_for_without_end_though_bytes_come(virtual: VirtualBackend) -> None:
    assert waited(virtual, Chunks(1000, every=0.75)) == (13, 10.0)
