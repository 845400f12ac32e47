"""A host that runs the tap instead of the CLI notices no difference."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from children import children_of, wait_until
from claude_wire.process.find_cli import find_cli, is_tap
from claude_wire_kit.tap import program
from claude_wire_kit.tap.program import DEPTH, MAX_DEPTH
from tapped import SECONDS, cli_of, start, tap_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tap is for POSIX")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells who sent a signal, and ends children")

CAT = "/bin/cat"
#: Random bytes, more than a pipe holds.
BYTES = random.Random(1).randbytes(3_000_000)


def finished(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes, int]:
    """Wait for a process to end. Return its output, its standard error and its exit code."""
    try:
        out, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return out, errors, process.returncode


def line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip("\n")


@pytest.fixture(params=["", "recorded"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The folder of the recording, or an empty string if the tap does not record."""
    return str(request.param and tmp_path / request.param)


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_bytes_of_any_kind_arrive_in_both_directions(folder: str) -> None:
    done = subprocess.run(tap_of(CAT, folder), input=BYTES, capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == BYTES


def test_bytes_arrive_in_a_file(tmp_path: Path, folder: str) -> None:
    (tmp_path / "out").write_bytes(b"before\n")
    with open(tmp_path / "out", "ab") as out:
        subprocess.run(tap_of(CAT, folder), input=BYTES, stdout=out, timeout=SECONDS, check=True)
    assert (tmp_path / "out").read_bytes() == b"before\n" + BYTES


def test_bytes_arrive_over_sockets_as_node_has_them(folder: str) -> None:
    ours, its = socket.socketpair()
    with ours, subprocess.Popen(tap_of(CAT, folder), stdin=subprocess.PIPE, stdout=its) as process:
        its.close()
        assert process.stdin is not None
        with process.stdin as stdin:
            writer = threading.Thread(target=lambda: (stdin.write(BYTES), stdin.close()))
            writer.start()
            came = b"".join(iter(lambda: ours.recv(65536), b""))
            writer.join()
    assert came == BYTES
    assert process.returncode == 0


def test_an_input_that_is_cut_ends_and_the_session_goes_on(folder: str) -> None:
    """The input is a socket. If the other end closes with unread data, a read raises ConnectionResetError."""
    ours, its = socket.socketpair()
    its.send(b"unread")
    script = "cat; echo end; exit 7"
    with its, start([*tap_of("/bin/sh", folder), "-c", script], stdin=its) as process, ours:
        ours.send(b"a line\n")
        assert line(process) == "a line"
        ours.close()
        assert finished(process) == (b"end\n", b"", 7)


def test_an_event_arrives_before_the_next_one_is_written(folder: str) -> None:
    with start(tap_of(CAT, folder)) as process:
        assert process.stdin is not None
        for number in range(200):
            process.stdin.write(f"{number}\n".encode())
            process.stdin.flush()
            assert line(process) == str(number)
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_a_host_that_does_not_read_holds_nobody_up(tmp_path: Path, folder: str) -> None:
    told, tells = os.pipe()
    cli = cli_of(tmp_path / "cli", f"say('x' * 20_000_000)\nos.write({tells}, b'!')\n")
    with start(tap_of(cli, folder), pass_fds=[tells]) as process:
        os.close(tells)
        assert os.read(told, 1) == b"!"  # the CLI has written everything, and the host has read nothing
        os.close(told)
        out, errors, code = finished(process)
    assert (out, errors, code) == (b"x" * 20_000_000 + b"\n", b"", 0)


def test_a_slow_host_gets_everything(tmp_path: Path, folder: str) -> None:
    cli = cli_of(tmp_path / "cli", "for number in range(40_000): say(str(number))\n")
    with start(tap_of(cli, folder)) as process:
        assert process.stdout is not None
        came = b"".join(iter(lambda: os.read(process.stdout.fileno(), 1000), b""))
        assert process.wait(SECONDS) == 0
    assert came == b"".join(b"%d\n" % number for number in range(40_000))


def test_the_standard_error_arrives(tmp_path: Path, folder: str) -> None:
    cli = cli_of(tmp_path / "cli", "os.write(2, b'\\xff not found\\n' + b'z' * 200_000)\nsys.exit(3)\n")
    assert finished(start(tap_of(cli, folder))) == (b"", b"\xff not found\n" + b"z" * 200_000, 3)


@pytest.mark.parametrize("flags", [[], ["--model", "a b", "", "-p", "--", "-x\n"], [b"\xff\xfe"], ["$HOME", "`id`"]])
def test_flags_arrive_as_they_are(tmp_path: Path, flags: list[str]) -> None:
    cli = cli_of(tmp_path / "cli", "os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))\n")
    install(tmp_path / "tap", cli)
    done = subprocess.run([tmp_path / "tap", *flags], capture_output=True, timeout=SECONDS, check=True)
    assert done.stdout == b"\0".join(map(os.fsencode, flags))


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_that_of_the_cli(tmp_path: Path, code: int, folder: str) -> None:
    assert finished(start(tap_of(cli_of(tmp_path / "cli", f"sys.exit({code})"), folder)))[2] == code


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV", "SIGUSR1", "SIGPIPE"])
def test_a_cli_that_a_signal_ends_gives_the_signal(tmp_path: Path, name: str, folder: str) -> None:
    number = getattr(signal, name)
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); say('a'); os.kill(os.getpid(), {number:d})"
    )
    if name == "SIGINT":
        code = f"signal.signal(signal.SIGINT, signal.SIG_DFL); {code}"
    if name == "SIGPIPE":
        code = f"signal.signal(signal.SIGPIPE, signal.SIG_DFL); {code}"
    out, errors, code = finished(start(tap_of(cli_of(tmp_path / "cli", code), folder)))
    assert (out, errors, code) == (b"a\n", b"", -number)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM"])
def test_signals_reach_the_cli_once(tmp_path: Path, name: str, folder: str) -> None:
    number = getattr(signal, name)
    cli = cli_of(
        tmp_path / "cli",
        f"signal.signal({number:d}, lambda *told: say(f'signal {{told[0]}}'))\n"
        "say('ready')\nwhile os.read(0, 100): pass\nsys.exit(9)\n",
    )
    with start(tap_of(cli, folder)) as process:
        assert line(process) == "ready"
        process.send_signal(number)
        assert line(process) == f"signal {number:d}"
        out, errors, code = finished(process)
    assert (out, errors, code) == (b"", b"", 9)


@linux
def test_a_tap_that_is_killed_takes_the_cli_with_it(tmp_path: Path, folder: str) -> None:
    held, its = os.pipe()
    cli = cli_of(tmp_path / "cli", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('ready')\nsignal.pause()\n")
    with start(tap_of(cli, folder), pass_fds=[its]) as process:
        os.close(its)
        assert line(process) == "ready"
        process.kill()
        assert os.read(held, 1) == b""  # the CLI held the other end, so it has ended
        os.close(held)
        process.communicate(timeout=SECONDS)


@linux
def test_ctrl_c_of_a_terminal_reaches_the_cli_once(tmp_path: Path) -> None:
    cli = cli_of(
        tmp_path / "cli",
        "signal.signal(signal.SIGINT, lambda *told: say('interrupted'))\nsay('ready')\n"
        "while (typed := os.read(0, 100)): say(typed.decode())\n",
    )
    terminal, its = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(its, termios.TIOCSCTTY)

    with start(
        tap_of(cli), stdin=its, stdout=its, stderr=its, start_new_session=True, preexec_fn=take_terminal
    ) as process:
        os.close(its)
        seen = b""
        for typed, awaited in (b"", b"ready"), (b"\x03", b"interrupted"), (b"go on\n", b"go on\r\ngo on"):
            os.write(terminal, typed)
            while awaited not in seen:
                seen += os.read(terminal, 1000)
        os.write(terminal, b"\x04")
        assert process.wait(SECONDS) == 0
    os.close(terminal)
    assert seen.count(b"interrupted") == 1


def test_a_host_that_goes_is_noticed_by_the_cli(tmp_path: Path, folder: str) -> None:
    cli = cli_of(
        tmp_path / "cli",
        "say('ready')\nwhile os.read(0, 100): pass\n"
        "try:\n    while True: say('more')\n"
        "except BrokenPipeError:\n    sys.exit(5)\n",
    )
    with start(tap_of(cli, folder)) as process:
        assert line(process) == "ready"
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.close()
        assert process.wait(SECONDS) == 5


def test_a_cli_that_closes_its_input_is_noticed_by_the_host(tmp_path: Path, folder: str) -> None:
    cli = cli_of(tmp_path / "cli", "os.close(0)\nsay('closed')\nsignal.pause()\n")
    with start(tap_of(cli, folder), bufsize=0) as process:
        assert line(process) == "closed"
        assert process.stdin is not None
        with pytest.raises(BrokenPipeError):
            process.stdin.write(BYTES)
        process.terminate()
        assert process.wait(SECONDS) == -signal.SIGTERM


def test_a_cli_that_closes_its_output_ends_it_for_the_host(tmp_path: Path, folder: str) -> None:
    cli = cli_of(tmp_path / "cli", "say('last')\nos.close(1)\nwhile os.read(0, 100): pass\nsys.exit(4)\n")
    with start(tap_of(cli, folder)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.read() == b"last\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(SECONDS) == 4


def test_what_a_cli_leaves_running_is_not_waited_for(tmp_path: Path, folder: str) -> None:
    cli = cli_of(
        tmp_path / "cli",
        "say('mine')\nif os.fork():\n    os._exit(6)\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: say('its child')\n",
    )
    out, _, code = finished(start(tap_of(cli, folder)))
    assert code == 6
    assert out.startswith(b"mine\n")


@linux
def test_a_signal_ends_a_tap_whose_cli_has_ended_and_whose_host_does_not_read(tmp_path: Path, folder: str) -> None:
    cli = cli_of(tmp_path / "cli", "say('x' * 1_000_000)\nsys.exit(3)\n")
    with start(tap_of(cli, folder)) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 1) == b"x"
        wait_until(lambda: not children_of(process.pid))
        process.terminate()
        assert process.wait(SECONDS) == 3


# --- the program ------------------------------------------------------------------------------------------------------


def command(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "claude_wire_kit", "tap", *arguments]
    return subprocess.run(run, capture_output=True, text=True, timeout=SECONDS, **options)


def install(path: Path, cli: str, *options: str) -> None:
    done = command("--cli", cli, "--install", str(path), *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path} runs {cli}\n"


def test_the_command_itself_runs_the_cli(tmp_path: Path) -> None:
    cli = cli_of(tmp_path / "cli", "say(' '.join(sys.argv[1:]))\nsys.exit(8)\n")
    done = command("--cli", cli, "--", "--model", "haiku")
    assert (done.stdout, done.stderr, done.returncode) == ("--model haiku\n", "", 8)


def test_a_tap_is_written_for_its_owner_alone_and_again_over_an_old_one(tmp_path: Path) -> None:
    install(tmp_path / "tap", CAT)
    install(tmp_path / "tap", "/bin/echo")
    assert stat.S_IMODE((tmp_path / "tap").stat().st_mode) == 0o700
    done = subprocess.run([tmp_path / "tap", "a"], capture_output=True, timeout=SECONDS, check=True)
    assert done.stdout == b"a\n"


@pytest.mark.parametrize("there", ["file", "link", "folder"])
def test_nothing_else_is_written_over(tmp_path: Path, there: str) -> None:
    path = tmp_path / "claude"
    if there == "file":
        path.write_text("the CLI")
    elif there == "link":
        install(tmp_path / "tap", CAT)
        path.symlink_to(tmp_path / "tap")
    else:
        path.mkdir()
    done = command("--cli", CAT, "--install", str(path))
    assert done.returncode == 2
    assert there != "file" or path.read_text() == "the CLI"


def test_a_tap_is_never_found_as_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "first", "second":
        (tmp_path / name).mkdir()
    install(tmp_path / "first/claude", CAT)
    cli = cli_of(tmp_path / "second/claude", "say('the CLI')\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second")
    assert is_tap(tmp_path / "first/claude")
    assert find_cli() == cli
    assert command().stdout == "the CLI\n"
    done = command("--cli", f"{tmp_path}/first/claude")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a tap: pass the path" in done.stderr


def test_a_tap_that_runs_itself_ends(tmp_path: Path) -> None:
    cli = tmp_path / "claude"
    cli.write_text(f'#!/bin/sh\nexec {shlex.join(tap_of(str(cli)))} "$@"\n')
    cli.chmod(0o755)
    done = subprocess.run([cli], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 126
    assert done.stderr == "claude-wire tap: the tap would start itself: pass the path of the CLI with --cli\n"


def test_a_cli_that_has_a_tap_of_its_own_runs(tmp_path: Path) -> None:
    install(tmp_path / "tap", CAT)
    cli = cli_of(tmp_path / "cli", f"os.execv({str(tmp_path / 'tap')!r}, ['tap'])\n")
    environment = {**os.environ, DEPTH: str(MAX_DEPTH - 2)}
    done = subprocess.run(tap_of(cli), input=b"a", capture_output=True, timeout=SECONDS, env=environment)
    assert (done.stdout, done.returncode) == (b"a", 0)


def test_a_cli_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    done = subprocess.run(tap_of(str(tmp_path / "gone")), capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 126
    assert done.stderr == f"claude-wire tap: {tmp_path / 'gone'} cannot be run: No such file or directory\n"


def test_standard_streams_that_are_closed_stay_closed(tmp_path: Path) -> None:
    cli = cli_of(tmp_path / "cli", "sys.exit(6)\n")
    run = shlex.join(tap_of(cli))
    for closed in "<&-", ">&-", "2>&-", "<&- >&- 2>&-":
        assert subprocess.run(["/bin/sh", "-c", f"exec {run} {closed}"], timeout=SECONDS).returncode == 6


@linux
def test_output_that_nobody_reads_is_kept_up_to_a_bound(tmp_path: Path) -> None:
    """Above the bound the CLI waits, as with a full pipe, and no output is lost."""
    small = tmp_path / "small.py"
    code = Path(program.__file__).read_text()
    small.write_text(re.sub(r"(?m)^QUEUE_BYTES = .*", "QUEUE_BYTES = 1_000_000", code))
    told, tells = os.pipe()
    cli = cli_of(tmp_path / "cli", f"for _ in range(100):\n    say('x' * 99_999)\n    os.write({tells}, b'!')\n")
    with start([sys.executable, "-I", str(small), cli, "", "plain"], pass_fds=[tells]) as process:
        os.close(tells)
        at_least = 1_000_000 // 100_000 - 1
        written = 0
        while written < at_least:
            written += len(os.read(told, 1))
        os.set_blocking(told, False)
        wait_until(lambda: asleep(process.pid) and asleep(*children_of(process.pid)))
        with contextlib.suppress(BlockingIOError):
            written += len(os.read(told, 1000))
        # The bound, plus the capacity of two pipes and two reads.
        assert written * 100_000 <= 1_000_000 + 2 * 1024 * 1024 + 2 * 256 * 1024
        out, _, code_of = finished(process)
    os.close(told)
    assert (out, code_of) == ((b"x" * 99_999 + b"\n") * 100, 0)


def asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
