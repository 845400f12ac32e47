"""The tap records both directions byte for byte, readable only by the owner. A full disk does not end the session."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import resource
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, ResultMessage

from claude_wire import ClaudeOptions, open_session
from claude_wire.testing import Recording, Replay
from claude_wire_kit.tap import program
from claude_wire_kit.tap import recording as recording_module
from claude_wire_kit.terminal.record import AT_ONCE_BYTES
from recordings import load
from tapped import SECONDS, cli_of, install_tap, recorded, start, tap_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tap is for POSIX")

linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel copies pipes")

#: Recordings with prompts, questions, hooks, deltas, a large line, and bytes that are not UTF-8.
NAMES = ["04_tools_bypass_partial", "05_perm_allow_deny", "06_hooks", "10_unicode", "11_huge", "12_multi_replay"]


def witness(folder: Path, cli: str) -> str:
    """Write a script that runs the CLI and saves its input and output to separate files."""
    (folder / "seen").mkdir()
    path = folder / "witness"
    path.write_text(f'#!/bin/sh\ntee {folder}/seen/in.$$ | {cli} "$@" | tee {folder}/seen/out.$$\n')
    path.chmod(0o755)
    return str(path)


def seen(folder: Path, direction: str) -> bytes:
    return max((path.read_bytes() for path in (folder / "seen").glob(f"{direction}.*")), key=len)


# --- what is in it ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_session_is_recorded_again_byte_for_byte(tmp_path: Path, name: str) -> None:
    session = load(name)
    player = Replay(Recording.from_files(session.files), wait=False).script(tmp_path / "player")
    cli = str(tmp_path / "cli")
    Path(cli).write_text(f'#!/bin/sh\ncat > /dev/null\nexec {player} "$@"\n')  # reads all input before it plays
    os.chmod(cli, 0o700)
    with start([*tap_of(cli, tmp_path / "recorded"), "--model", "haiku"]) as process:
        out, errors = process.communicate(session.stdin, timeout=SECONDS)
    recording = recorded(tmp_path / "recorded")
    assert recording.stdout == out
    assert recording.stdin == session.stdin
    assert recording.stderr == errors
    assert recording.exit_code == process.returncode
    assert recording.argv == ("--model", "haiku")
    assert json.loads(recording.files["cmd.json"])["argv"][0] == cli
    assert b"".join(recording.reads) == out
    for direction, stream in ("out", out), ("in", session.stdin):
        steps = [step.data for step in recording.steps if step.direction == direction]
        assert steps == io.BytesIO(stream).readlines()


def test_the_python_sdk_through_it(tmp_path: Path) -> None:
    cli = Replay(Recording.from_files(load("05_perm_allow_deny").files)).script(tmp_path / "cli")
    tap = install_tap(tmp_path / "tap", witness(tmp_path, cli), tmp_path / "recorded")
    asked: list[str] = []

    async def allow(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append(name)
        return PermissionResultAllow()

    async def main() -> list[Any]:
        options = ClaudeAgentOptions(cli_path=tap, can_use_tool=allow)
        with anyio.fail_after(SECONDS):
            async with ClaudeSDKClient(options) as client:
                await client.query("Make two files.")
                return [message async for message in client.receive_response()]

    messages = anyio.run(main)
    assert isinstance(messages[-1], ResultMessage)
    assert asked
    recording = recorded(tmp_path / "recorded")
    assert recording.stdout == seen(tmp_path, "out")
    assert recording.stdin == seen(tmp_path, "in")
    sent = [json.loads(step.data)["type"] for step in recording.steps if step.direction == "in"]
    assert sent[:2] == ["control_request", "user"]
    assert "control_response" in sent


def test_a_session_of_the_library_through_it(tmp_path: Path) -> None:
    cli = Replay(Recording.from_files(load("05_perm_allow_deny").files)).script(tmp_path / "cli")
    tap = install_tap(tmp_path / "tap", witness(tmp_path, cli), tmp_path / "recorded")
    received, sent = bytearray(), bytearray()

    async def main() -> bool:
        options = ClaudeOptions(cli_path=tap, permission_prompt_tool="stdio")
        with anyio.fail_after(SECONDS):
            async with open_session(
                options, can_use_tool=lambda request: request.allow(), on_received=received.extend, on_sent=sent.extend
            ) as session:
                return (await session.ask("Make two files.")).ok

    assert anyio.run(main)
    recording = recorded(tmp_path / "recorded")
    assert recording.stdout.startswith(received)
    assert recording.stdout == seen(tmp_path, "out")
    assert recording.stdin == sent == seen(tmp_path, "in")


def test_an_answer_stands_behind_its_question(tmp_path: Path) -> None:
    with start(tap_of("/bin/cat", tmp_path / "recorded")) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(100):
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"%d\n" % number
        process.communicate(timeout=SECONDS)
    steps = recorded(tmp_path / "recorded").steps
    assert [step.direction for step in steps] == ["in", "out"] * 100
    assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)


@pytest.mark.parametrize("size", [10, 285, AT_ONCE_BYTES - 1, AT_ONCE_BYTES, 300_000])
def test_lines_that_come_at_once_are_told_apart(tmp_path: Path, size: int) -> None:
    lines = [b"%0*d\n" % (size + number % 3, number) for number in range(max(3, 400_000 // size))]
    with start(tap_of("/bin/cat", tmp_path / "recorded")) as process:
        process.communicate(b"".join(lines) + b"unfinished", timeout=SECONDS)
    steps = recorded(tmp_path / "recorded").steps
    for direction in "in", "out":
        assert [step.data for step in steps if step.direction == direction] == [*lines, b"unfinished"]


def test_each_run_has_a_folder_of_its_own_but_for_questions_about_the_version(tmp_path: Path) -> None:
    for flags in ["a"], ["-v"], ["--version"], ["b"]:
        with start([*tap_of("/bin/echo", tmp_path / "recorded"), *flags]) as process:
            process.communicate(timeout=SECONDS)
    folders = sorted((tmp_path / "recorded").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    assert [Recording.load(folder).stdout for folder in folders] == [b"a\n", b"b\n"]


def test_a_killed_tap_leaves_what_went_through_it(tmp_path: Path) -> None:
    with start(tap_of("/bin/cat", tmp_path / "recorded")) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(20):
            process.stdin.write(b"%d\n" % number)
            process.stdin.flush()
            process.stdout.readline()
        process.kill()
        process.communicate(timeout=SECONDS)
    recording = recorded(tmp_path / "recorded")
    assert recording.stdin == b"".join(b"%d\n" % number for number in range(20))
    assert recording.stdout in (recording.stdin, recording.stdin.removesuffix(b"19\n"))
    assert "exit.json" not in recording.files


# --- who can read it --------------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    with start(tap_of("/bin/cat", tmp_path / "new/recorded"), umask=0) as process:
        process.communicate(b"a\n", timeout=SECONDS)
    [folder] = (tmp_path / "new/recorded").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("there", ["link", "file", "folder that others may change"])
def test_a_folder_that_is_not_safe_is_not_used(tmp_path: Path, there: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "recorded"
    if there == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif there == "file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777)
    with start(tap_of("/bin/cat", path)) as process:
        out, errors = process.communicate(b"a\n", timeout=SECONDS)
    assert (out, process.returncode) == (b"a\n", 0)
    assert errors.startswith(b"claude-wire tap: nothing is recorded in %s: " % os.fsencode(path))
    assert errors.count(b"\n") == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- a disk that is full ----------------------------------------------------------------------------------------------


def test_a_full_disk_ends_the_recording_says_so_once_and_the_session_goes_on(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    code = "for number in range(2000): say('x' * 1000)\nwhile os.read(0, 100): pass\nsys.exit(5)\n"
    command = tap_of(cli_of(tmp_path / "cli", code), tmp_path / "recorded")
    with start(command, preexec_fn=limit) as process:
        out, errors = process.communicate(b"a\n" * 100, timeout=SECONDS)
    assert (len(out), process.returncode) == (2000 * 1001, 5)
    assert errors == b"claude-wire tap: the recording ends before the session: File too large\n"
    recording = recorded(tmp_path / "recorded")
    assert out.startswith(recording.stdout)
    assert len(recording.stdout) == 100_000


def test_a_recording_ends_at_its_bound_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_module, "FILE_BYTES", 1000)
    told: list[str] = []
    recording = recording_module.Recording(str(tmp_path / "recorded"), ["claude"], 0.0, told.append)
    for _ in range(5):
        recording.put(recording_module.STDOUT, b"x" * 399 + b"\n")
        recording.put(recording_module.STDERR, b"warning\n")
    recording.end(0)
    assert told == ["the recording ends before the session: File too large"]
    assert recorded(tmp_path / "recorded").stdout == (b"x" * 399 + b"\n") * 2


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small file system")
def test_a_file_system_without_room(tmp_path: Path) -> None:
    path = tmp_path / "recorded"
    path.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    try:
        with start(tap_of("/bin/cat", path)) as process:
            out, errors = process.communicate(b"x" * 1_000_000, timeout=SECONDS)
        assert (len(out), process.returncode) == (1_000_000, 0)
        assert errors == b"claude-wire tap: the recording ends before the session: No space left on device\n"
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_disk_that_is_full_at_the_start(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with start(tap_of("/bin/cat", tmp_path / "recorded"), preexec_fn=limit) as process:
        out, errors = process.communicate(b"a\n", timeout=SECONDS)
    assert (out, process.returncode) == (b"a\n", 0)
    assert errors.count(b"\n") == 1
    assert b"File too large" in errors


def test_a_signal_that_ends_the_cli_is_in_the_recording(tmp_path: Path) -> None:
    cli = cli_of(tmp_path / "cli", "say('ready')\nsignal.pause()\n")
    with start(tap_of(cli, tmp_path / "recorded")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait(SECONDS) == -signal.SIGTERM
    assert recorded(tmp_path / "recorded").exit_code == -signal.SIGTERM


# --- much at once -----------------------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("room", [4096, 65536, 1024 * 1024])
@pytest.mark.parametrize("line", [5, 285, 50_000, 700_000])
def test_what_the_kernel_passes_on_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, line: int
) -> None:
    """This holds for any size of the host's pipe, and if bytes that were recorded already pass through memory."""
    recording = recording_module.Recording(str(tmp_path / "recorded"), ["claude"], 0.0, pytest.fail)
    by_kernel: list[int] = []
    put_from = recording.put_from
    monkeypatch.setattr(recording, "put_from", lambda pipe, size: (by_kernel.append(size), put_from(pipe, size)))
    source, cli = os.pipe()
    host, target = os.pipe()
    pump = program.Pump(source, target, program.QUEUE_BYTES, recording)
    pump._stream = recording_module.STDOUT  # the pipe has another number than standard output
    fcntl.fcntl(target, 1031, room)
    os.set_blocking(cli, False)
    os.set_blocking(host, False)
    data = memoryview(b"".join(b"%0*d\n" % (line - 1, number) for number in range(4_000_000 // line)))
    came, at = bytearray(), 0
    turn = 0
    while pump.target >= 0:
        turn += 1
        # In most turns the pump waits for the host. In every 150th turn it moves the waiting bytes into memory.
        monkeypatch.setattr(program, "RESCUE_SECONDS", 0.0 if turn % 150 == 0 else 100.0)
        if at < len(data):
            with contextlib.suppress(BlockingIOError):
                at += os.write(cli, data[at : at + 1024 * 1024])
        elif cli >= 0:
            os.close(cli)
            cli = -1
        wanted: dict[int, int] = {}
        pump.add_wanted(wanted, now=time.monotonic())
        poller = select.poll()
        for fd, event in wanted.items():
            poller.register(fd, event)
        for fd, event in poller.poll(0):
            pump.handle_event(fd, event)
        if turn % 3:
            with contextlib.suppress(BlockingIOError):
                came += os.read(host, 300_000)
    os.set_blocking(host, True)
    came += b"".join(iter(lambda: os.read(host, 65536), b""))
    os.close(host)
    recording.end(0)
    assert by_kernel
    assert came == data
    kept = recorded(tmp_path / "recorded")
    assert kept.stdout == data
    assert b"".join(kept.reads) == data
    assert [step.data for step in kept.steps] == io.BytesIO(data).readlines()


@linux
def test_a_full_disk_ends_what_the_kernel_writes_down(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))

    cli = cli_of(tmp_path / "cli", "for number in range(20): say('x' * 999_999)\n")
    with start(tap_of(cli, tmp_path / "recorded"), preexec_fn=limit) as process:
        out, errors = process.communicate(timeout=SECONDS)
    assert (len(out), process.returncode) == (20_000_000, 0)
    assert errors == b"claude-wire tap: the recording ends before the session: File too large\n"
    assert recorded(tmp_path / "recorded").stdout == out[:3_000_000]
