"""``claude_wire.testing``: a child process that replays a recording in place of the CLI."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import recordings
from claude_wire import PROTOCOL_VERSION
from claude_wire.testing import (
    CloseStdout,
    CutOutput,
    ExitAtOnce,
    Fault,
    FloodStderr,
    GarbageLine,
    GiveUp,
    HoldStdout,
    IgnoreTerm,
    Kill,
    Recording,
    Replay,
    Silence,
    Stall,
    WriteFirst,
    faults,
)
from replayed import (
    ASKING,
    DEADLINE,
    ONE_SHOT,
    PRINT,
    QUIET,
    RESULT,
    STREAM,
    Child,
    line,
    parsed,
    recording,
    request,
    response,
    run,
    running,
    said,
    session,
    user,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")


# --- playing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", recordings.names())
def test_every_recording_is_played_byte_for_byte(name: str, script: Any) -> None:
    original = recordings.load(name)
    done = run(script(recording(name)), original.stdin)
    assert done.stdout == original.stdout
    assert done.stderr == b""
    assert done.returncode == json.loads(original.files.get("exit.json", b"{}")).get("rc", 0)


def test_empty_input_plays_all_without_waiting(script: Any) -> None:
    assert run(script(ASKING)).stdout == ASKING.stdout


class LiveHost:
    """A host that sends the recorded input, but with new request ids."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def send(self, child: Child, data: bytes) -> None:
        message = parsed(data)
        if message.get("type") == "control_request" and "request_id" in message:
            recorded = message["request_id"]
            self._ids[recorded] = f"live-{len(self._ids)}-é"
            message["request_id"] = self._ids[recorded]
            data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the recorded CLI had also exited before this input
            child.send(data)
            if not data.endswith(b"\n"):
                child.end()

    def expect(self, data: bytes) -> bytes:
        for recorded, live in self._ids.items():
            data = data.replace(json.dumps(recorded).encode(), json.dumps(live).encode())
        return data


@pytest.mark.parametrize("name", [name for name in recordings.names() if recordings.load(name).stdin])
def test_host_with_other_ids_in_step_with_every_recorded_session(name: str, script: Any) -> None:
    played, host = recording(name), LiveHost()
    cut = b""  # the torn last line of some recordings, which is only readable at the end of the output
    with running(script(played)) as child:
        for step in played.steps:
            if step.direction == "in":
                host.send(child, step.data)
            elif step.data.endswith(b"\n"):
                assert child.receive_line() == host.expect(step.data)
            else:
                cut = step.data
        rest, stderr, code = child.finish()
    assert rest == cut
    assert stderr == b"" or code == 1
    assert code == played.exit_code


def test_each_recorded_input_is_waited_for(script: Any) -> None:
    with running(script(ASKING)) as child:
        for step in ASKING.steps:
            if step.direction == "in":
                assert child.is_quiet()
                child.send(step.data)
            else:
                assert child.receive_line() == step.data
        assert child.finish() == (b"", b"", 0)


def test_keep_alive_and_what_the_cli_ignores_count_for_nothing(script: Any) -> None:
    with running(script(ASKING)) as child:
        child.send(b"\n" + line(type="keep_alive") + b"[1]\n" + response("nobody") + line(type="news"))
        assert child.is_quiet()
        child.send(request("r1", "initialize"))
        assert child.receive_line() == ASKING.steps[1].data


def test_input_may_come_in_any_pieces_and_without_its_last_line_feed(script: Any) -> None:
    with running(script(ASKING)) as child:
        for byte in ASKING.stdin.removesuffix(b"\n"):
            child.send(bytes([byte]))
        assert child.finish() == (ASKING.stdout, b"", 0)


def test_input_is_read_while_nobody_reads_the_output(script: Any) -> None:
    output = [("out", said("x" * 1000))] * 1000
    with running(script(session(("in", user("one")), *output))) as child:
        child.send(user("one"))
        assert child.receive_line() == output[0][1]
        child.send(line(type="keep_alive", filler="y" * 1_000_000))  # far more than a pipe holds
        assert child.finish()[0] == b"".join(data for _, data in output[1:])


# --- hosts that differ from the recorded one --------------------------------------------------------------------------


def test_request_that_was_not_recorded_is_answered_with_a_success(script: Any) -> None:
    with running(script(session(("in", user("one")), ("out", RESULT)))) as child:
        child.send(request("live", "set_model", model="m"))
        assert json.loads(child.receive_line()) == json.loads(response("live"))
        child.send(request("other", "initialize"))
        answer = json.loads(child.receive_line())
        assert answer["response"]["request_id"] == "other"
        assert answer["response"]["response"]["commands"] == []
        child.send(user("anything"))
        assert child.receive_line() == RESULT
        assert child.finish() == (b"", b"", 0)


def test_request_at_another_place_gets_its_recorded_answer_once(script: Any) -> None:
    played = session(
        ("in", user("one")),
        ("out", RESULT),
        ("in", request("r7", "mcp_status")),
        ("out", response("r7", servers=["recorded"])),
        ("in", user("two")),
        ("out", RESULT),
    )
    with running(script(played)) as child:
        child.send(request("early", "mcp_status"))
        assert child.receive_line() == response("early", servers=["recorded"])
        child.send(user("one"))
        assert child.receive_line() == RESULT
        child.send(user("two"))
        assert child.receive_line() == RESULT
        child.send(request("late", "mcp_status"))  # after the last recorded step, too
        assert child.receive_line() == response("late", servers=["recorded"])
        assert child.finish() == (b"", b"", 0)


def test_request_that_the_live_host_does_not_make_is_not_waited_for_nor_answered(script: Any) -> None:
    with running(script(ASKING)) as child:
        child.send(user("one"))
        assert child.receive_line() == ASKING.steps[3].data


def test_id_is_changed_wherever_the_answer_has_it_first_and_nothing_else(script: Any) -> None:
    played = session(
        ("in", request("r1", "ask")),
        ("out", line(type="system", subtype="control_request_progress", request_id="r1", status="going")),
        ("out", line(type="control_response", response={"request_id": "r1", "subtype": "success", "response": {}})),
    )
    with running(script(played)) as child:
        child.send(request('a "quoted" id', "ask"))
        assert json.loads(child.receive_line())["request_id"] == 'a "quoted" id'
        assert json.loads(child.receive_line())["response"]["request_id"] == 'a "quoted" id'


@pytest.mark.parametrize(
    "odd", [b'{"request_id":"r1","cut', b'["request_id"]\n', b'["request_id",' + b"[" * 100_000 + b"\n"]
)
def test_line_that_is_no_message_is_played_as_it_is(odd: bytes, script: Any) -> None:
    played = session(("in", request("r1", "ask")), ("out", response("r1")), ("out", odd))
    with running(script(played)) as child:
        child.send(request("live", "ask"))
        assert child.receive_line() == response("live")
        assert child.finish() == (odd, b"", 0)


def test_responses_may_come_in_another_order(script: Any) -> None:
    played = session(
        ("out", request("a", "can_use_tool")),
        ("out", request("b", "can_use_tool")),
        ("in", response("a")),
        ("out", said("a is there")),
        ("in", response("b")),
        ("out", RESULT),
    )
    with running(script(played)) as child:
        assert [child.receive_line(), child.receive_line()] == [played.steps[0].data, played.steps[1].data]
        child.send(response("b"))
        assert child.is_quiet()
        child.send(response("a"))
        assert [child.receive_line(), child.receive_line()] == [said("a is there"), RESULT]


def test_input_that_is_not_json_ends_it_as_it_ends_the_cli(script: Any) -> None:
    for bad in (b"garbage\n", b'{"type":"user","cost":NaN}\n', b"\0\n"):
        done = run(script(ASKING), bad + user("one"))
        assert done.returncode == 1
        assert done.stdout == b""
        assert done.stderr.startswith(b"Error parsing streaming input line")


# --- how it is started ------------------------------------------------------------------------------------------------


def test_one_shot_recording_waits_for_nothing(script: Any) -> None:
    with running(script(ONE_SHOT)) as child:
        assert child.rest() == ONE_SHOT.stdout
        assert child.process.wait(DEADLINE) == 3


@pytest.mark.parametrize("flags", [STREAM, ["--input-format=stream-json"]])
def test_one_shot_recording_waits_for_a_prompt_and_the_end_of_a_host_that_streams(
    flags: list[str], script: Any
) -> None:
    with running(script(ONE_SHOT, *flags)) as child:
        child.send(request("live", "initialize"))
        assert json.loads(child.receive_line())["response"]["request_id"] == "live"
        assert child.is_quiet()
        child.send(user("hi"))
        for step in ONE_SHOT.steps:
            assert child.receive_line() == step.data
        assert child.is_quiet()
        assert child.process.poll() is None
        assert child.finish() == (b"", b"", 3)


def test_host_that_gives_its_prompt_as_an_argument_is_not_waited_for(script: Any) -> None:
    with running(script(ASKING, *PRINT)) as child:
        assert child.rest() == ASKING.stdout
        assert child.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("flags", [["--permission-prompt-tool", "stdio"], ["--verbose"]])
def test_flags_that_say_nothing_of_the_input_change_nothing(flags: list[str], script: Any) -> None:
    with running(script(ASKING, *flags)) as child:
        assert child.is_quiet()
    assert run(script(ASKING, *flags), ASKING.stdin).stdout == ASKING.stdout
    assert run(script(ONE_SHOT, *flags)).stdout == ONE_SHOT.stdout


def test_without_wait_it_waits_for_nothing(script: Any) -> None:
    with running(script(ASKING, *STREAM, wait=False)) as child:
        assert child.rest() == ASKING.stdout
        assert child.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("flag", ["-v", "--version"])
def test_version_is_the_recorded_one(flag: str, script: Any) -> None:
    done = run(script(recording("01_simple_bidi_init"), flag))
    assert (done.stdout, done.returncode) == (b"2.1.330 (Claude Code)\n", 0)
    other = session(("out", line(type="system", subtype="init", claude_code_version="9.8.7")))
    assert run(script(other, flag)).stdout == b"9.8.7 (Claude Code)\n"
    without = session(("out", RESULT))
    assert run(script(without, flag)).stdout == f"{PROTOCOL_VERSION} (Claude Code)\n".encode()


def test_recorded_standard_error_and_exit_code(script: Any) -> None:
    done = run(script(session(("out", RESULT), stderr_txt=b"oh\n", exit_json=b'{"rc": 1}')))
    assert (done.stdout, done.stderr, done.returncode) == (RESULT, b"oh\n", 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_recorded_death_by_signal(number: int, script: Any) -> None:
    done = run(script(session(("out", RESULT), exit_json=json.dumps({"rc": -number}).encode())))
    assert (done.stdout, done.stderr, done.returncode) == (RESULT, b"", -number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signals_end_it_as_they_end_the_cli(number: int, code: int, script: Any) -> None:
    with running(script(ASKING)) as child:
        child.send(request("r1", "initialize"))
        child.receive_line()
        child.process.send_signal(number)
        assert child.process.wait(DEADLINE) == code
        assert child.process.stderr is not None
        assert child.process.stderr.read() == b""


def test_signal_ends_it_while_nobody_reads(script: Any) -> None:
    with running(script(session(*[("out", said("x" * 1000))] * 1000))) as child:
        child.receive_line()
        child.process.terminate()
        assert child.process.wait(DEADLINE) == 143


def test_reader_that_goes_away_ends_it_without_a_word(script: Any) -> None:
    with running(script(session(*[("out", said("x" * 1000))] * 1000, exit_json=b'{"rc": 5}'))) as child:
        child.receive_line()
        assert child.process.stdout is not None
        assert child.process.stderr is not None
        child.process.stdout.close()
        assert child.process.wait(DEADLINE) == 5
        assert child.process.stderr.read() == b""


def test_pipe_that_somebody_made_non_blocking(script: Any) -> None:
    played = session(*[("out", said("x" * 1000))] * 1000)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with running(script(played), stdout=write) as child, open(read, "rb") as stream:
        os.close(write)
        assert stream.read() == played.stdout
        assert child.process.wait(DEADLINE) == 0


# --- speed and writes -------------------------------------------------------------------------------------------------


def test_full_speed_takes_no_recorded_time(script: Any) -> None:
    played = session(("out", said("a")), ("out", said("b")), times=[1000.0, 2000.0])
    assert run(script(played)).stdout == played.stdout


def test_scaled_time_is_kept(script: Any) -> None:
    argv = script(session(("out", said("a")), ("out", said("b")), times=[0.0, 3000.0]), speed=10_000.0)
    began = time.monotonic()
    assert run(argv).stdout == said("a") + said("b")
    assert time.monotonic() - began >= 0.3


def test_time_goes_on_from_the_input(script: Any) -> None:
    played = session(("in", user("one")), ("out", said("a")), times=[5000.0, 5000.3])
    with running(script(played, speed=1.0)) as child:
        began = time.monotonic()
        child.send(user("one"))
        assert child.receive_line() == said("a")
        assert time.monotonic() - began >= 0.3 - 1e-6  # tolerance for rounding of floats


def test_requests_are_answered_while_the_time_passes(script: Any) -> None:
    played = session(("in", user("one")), ("out", said("a")), times=[0.0, 3600.0])
    with running(script(played, speed=1.0)) as child:
        child.send(user("one") + request("live", "interrupt"))
        assert json.loads(child.receive_line())["response"]["request_id"] == "live"


def written(argv: list[str]) -> list[bytes]:
    """Return the writes of a child, one item for each write call."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, running(argv, stdout=theirs) as child:
        theirs.close()
        ours.settimeout(DEADLINE)
        writes = list(iter(lambda: ours.recv(1 << 20), b""))
        child.end()
        assert child.process.wait(DEADLINE) == 0
    return writes


def test_one_write_a_line(script: Any) -> None:
    played = recording("04_tools_bypass_partial")
    assert written(script(played)) == played.stdout.splitlines(keepends=True)


def test_writes_of_blocks(script: Any) -> None:
    played = recording("02_long_partial")
    writes = written(script(played, writes="blocks"))
    assert b"".join(writes) == played.stdout
    assert {len(data) for data in writes[:-1]} == {65536}


def test_writes_of_bytes(script: Any) -> None:
    played = recording("03_think_partial")
    writes = written(script(played, writes="bytes"))
    assert b"".join(writes) == played.stdout
    assert {len(data) for data in writes} == {1}


def test_block_is_not_held_back_from_a_host_that_is_waited_for(script: Any) -> None:
    with running(script(ASKING, writes="blocks")) as child:
        for step in ASKING.steps:
            if step.direction == "in":
                child.send(step.data)
            else:
                assert child.receive_line() == step.data


# --- commands and scripts ---------------------------------------------------------------------------------------------


def test_script_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = Replay(ONE_SHOT).script(tmp_path / "claude")
    assert path == str(tmp_path / "claude")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_files_that_are_written_over_are_for_their_owner_alone(tmp_path: Path) -> None:
    for name in "claude", "stdout.ndjson":
        (tmp_path / name).write_bytes(b"what was there" * 1000)
        (tmp_path / name).chmod(0o644)
    ONE_SHOT.save(tmp_path)
    assert (tmp_path / "stdout.ndjson").read_bytes() == ONE_SHOT.stdout
    assert stat.S_IMODE((tmp_path / "stdout.ndjson").stat().st_mode) == 0o600
    assert run([Replay(ONE_SHOT).script(tmp_path / "claude")]).stdout == ONE_SHOT.stdout
    assert stat.S_IMODE((tmp_path / "claude").stat().st_mode) == 0o700


def test_script_is_whole_in_itself(tmp_path: Path) -> None:
    saved = ASKING.save(tmp_path / "saved")
    path = Replay(saved).script(tmp_path / "a script's name")
    for file in (tmp_path / "saved").iterdir():
        file.unlink()
    done = subprocess.run([path], input=b"", capture_output=True, timeout=DEADLINE, check=True, env={}, cwd="/")
    assert done.stdout == ASKING.stdout


def test_script_is_a_recording_too(tmp_path: Path) -> None:
    path = Replay(ASKING).script(tmp_path / "claude")
    assert Recording.load(path).files == ASKING.files


def test_interpreter_with_a_long_path_with_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("it's long " * 10) / ("and longer " * 10)
    folder.mkdir(parents=True)
    interpreter = folder / "python"
    interpreter.symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(interpreter))
    done = run([Replay(ONE_SHOT).script(tmp_path / "claude")])
    assert (done.stdout, done.stderr, done.returncode) == (ONE_SHOT.stdout, b"", 3)


def test_command_plays_what_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ASKING.save(tmp_path / "saved")
    monkeypatch.chdir(tmp_path)
    argv = Replay("saved", writes="blocks").argv()
    monkeypatch.chdir("/")
    assert run(argv, ASKING.stdin).stdout == ASKING.stdout
    assert run([*argv, *PRINT]).stdout == ASKING.stdout


def test_command_needs_a_recording_on_disk() -> None:
    with pytest.raises(ValueError, match="save"):
        Replay(ASKING).argv()


def test_recording_that_is_gone_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    argv = Replay(ASKING.save(tmp_path / "saved")).argv()
    (tmp_path / "saved" / "stdout.ndjson").unlink()
    done = run(argv)
    assert done.returncode == 2
    assert done.stderr.startswith(b"claude-wire replay: ")
    assert len(done.stderr.splitlines()) == 1


def test_player_needs_nothing_of_the_package_and_pytest_is_needed_by_the_fixture_alone() -> None:
    program = (
        "import sys, os.path\n"
        "import claude_wire.testing as testing\n"
        "assert 'pytest' not in sys.modules\n"
        "print(os.path.dirname(testing.__file__))\n"
    )
    folder = run([sys.executable, "-c", program]).stdout.decode().strip()
    program = (
        f"import sys; sys.path.append({folder!r}); import player.program\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('claude_wire', 'typing', 'msgspec')])\n"
    )
    assert run([sys.executable, "-IS", "-c", program]).stdout == b"[]\n"


def test_the_hooks_of_the_live_host_are_called_by_its_own_ids(script: Any) -> None:
    def initialize(identity: str, *ids: str) -> bytes:
        hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": list(ids)}]}
        return request(identity, "initialize", hooks=hooks)

    recorded = session(
        ("in", initialize("i1", "hook_0", "hook_1")),
        ("out", response("i1")),
        ("out", request("c1", "hook_callback", callback_id="hook_1", input={"hook_1": "hook_1"})),
        ("in", response("c1")),
        ("out", RESULT),
    )
    done = run(script(recorded), initialize("i2", "first", "second") + response("c1"))
    (call,) = [one for one in map(parsed, done.stdout.splitlines()) if one["type"] == "control_request"]
    assert call["request"] == {"subtype": "hook_callback", "callback_id": "second", "input": {"hook_1": "hook_1"}}


# --- ``claude_wire.testing``: faults that a test injects into a child process that replays a recording ----------------


# --- faults -----------------------------------------------------------------------------------------------------------

LONG = recording("02_long_partial")


@pytest.mark.parametrize("at_byte", [0, 1, 5000, len(LONG.stdout)])
@pytest.mark.parametrize("writes", ["lines", "blocks"])
def test_cut_output(at_byte: int, writes: str, script: Any) -> None:
    done = run(script(LONG, writes=writes, faults=[CutOutput(at_byte, exit_code=4)]))
    assert (done.stdout, done.stderr, done.returncode) == (LONG.stdout[:at_byte], b"", 4)


@pytest.mark.parametrize("at_byte", [0, 5000])
@pytest.mark.parametrize("writes", ["lines", "blocks", "bytes"])
def test_kill(at_byte: int, writes: str, script: Any) -> None:
    done = run(script(LONG, writes=writes, faults=[Kill(at_byte)]))
    assert done.stdout == LONG.stdout[:at_byte]
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("place", "before"),
    [({"at_byte": len(said("a")) + 10}, said("a") + said("b")[:10]), ({"before_line": 2}, said("a"))],
)
def test_stall(place: dict[str, int], before: bytes, script: Any) -> None:
    with running(script(ONE_SHOT, faults=[Stall(60.0, **place)])) as child:
        data = b""
        while len(data) < len(before):
            assert child.process.stdout is not None
            data += os.read(child.process.stdout.fileno(), 1000)
        assert data == before
        assert child.is_quiet()
    began = time.monotonic()
    assert run(script(ONE_SHOT, faults=[Stall(0.3, **place)])).stdout == ONE_SHOT.stdout
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("before_line", [1, 2, 4])
def test_garbage_line(before_line: int, script: Any) -> None:
    lines = ONE_SHOT.stdout.splitlines(keepends=True)
    lines.insert(before_line - 1, b"\xff\x00{\n")
    assert run(script(ONE_SHOT, faults=[GarbageLine(before_line, b"\xff\x00{")])).stdout == b"".join(lines)


def asked() -> bytes:
    """Return the output of ``ASKING`` before it waits for an answer: its first three lines."""
    return b"".join(ASKING.stdout.splitlines(keepends=True)[:3])


@pytest.mark.parametrize(
    ("fault", "code"), [(CutOutput(len(asked()), 4), 4), (Kill(len(asked())), -signal.SIGKILL)], ids=["cut", "kill"]
)
def test_what_happens_after_a_byte_does_not_wait_for_the_input_before_the_next(
    fault: Fault, code: int, script: Any
) -> None:
    with running(script(ASKING, *STREAM, faults=[fault])) as child:
        child.send(request("r1", "initialize") + user("one"))
        assert child.rest() == asked()
        assert child.process.wait(DEADLINE) == code


@pytest.mark.parametrize(
    ("fault", "first"), [(GarbageLine(4, b"odd"), b"odd\n"), (CutOutput(0), b"")], ids=["garbage", "cut"]
)
def test_what_happens_before_a_line_waits_for_the_input_before_it(fault: Fault, first: bytes, script: Any) -> None:
    with running(script(ASKING, *STREAM, faults=[fault])) as child:
        if first:
            child.send(request("r1", "initialize") + user("one"))
            for line_before in asked().splitlines(keepends=True):
                assert child.receive_line() == line_before
        assert child.is_quiet()
        child.send(response("cli-1") if first else request("r1", "initialize"))
        assert child.receive_line() == first


@pytest.mark.parametrize(("place", "answers"), [({"before_line": 4}, True), ({"at_byte": len(asked())}, False)])
def test_stall_before_a_line_begins_behind_the_input_before_it(
    place: dict[str, int], answers: bool, script: Any
) -> None:
    with running(script(ASKING, *STREAM, faults=[Stall(60.0, **place)])) as child:
        child.send(request("r1", "initialize") + user("one"))
        for line_before in asked().splitlines(keepends=True):
            assert child.receive_line() == line_before
        child.send(request("r2", "interrupt"))
        assert (child.receive_line() == response("r2")) if answers else child.is_quiet()
        child.send(response("cli-1"))
        assert child.is_quiet()


def test_several_faults_at_one_place_happen_in_their_order(script: Any) -> None:
    ordered = [GarbageLine(2, b"one"), GarbageLine(2, b"two"), Kill(len(said("a")))]
    assert run(script(ONE_SHOT, faults=ordered)).stdout == said("a") + b"one\ntwo\n"


def test_faults_are_placed_by_the_recording_whatever_else_is_written(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[Kill(len(said("a")) + 3)])) as child:
        child.send(request("live", "initialize") + user("hi"))
        child.receive_line()
        assert child.rest() == said("a") + said("b")[:3]


def test_flood_of_stderr_is_all_written_before_anything_else(script: Any) -> None:
    with running(script(ONE_SHOT, faults=[FloodStderr(1_000_000)])) as child:
        assert child.is_quiet()
        assert child.process.stderr is not None
        flood = child.process.stderr.read(1_000_000)
        while len(flood) < 1_000_000:
            flood += child.process.stderr.read(1_000_000 - len(flood))
        assert child.rest() == ONE_SHOT.stdout
        assert child.process.stderr.read() == b""
    assert max(map(len, flood.splitlines())) < 100


def test_ignore_term_and_the_end_of_input(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[IgnoreTerm()])) as child:
        child.send(user("hi"))
        for step in ONE_SHOT.steps:
            assert child.receive_line() == step.data
        child.end()
        child.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET)
        child.process.kill()
        assert child.process.wait(DEADLINE) == -signal.SIGKILL


def test_ignore_term_ends_some_time(script: Any) -> None:
    assert run(script(ONE_SHOT, faults=[IgnoreTerm(0.01)])).returncode == 3


@pytest.mark.parametrize(("more", "stdout", "code"), [([], ONE_SHOT.stdout, 3), ([Kill(0)], b"", -signal.SIGKILL)])
def test_hold_stdout(more: list[Fault], stdout: bytes, code: int, script: Any) -> None:
    with running(script(ONE_SHOT, faults=[HoldStdout(60.0), *more]), start_new_session=True) as child:
        assert child.process.wait(DEADLINE) == code
        received = b""
        while len(received) < len(stdout):
            received += child.receive_line()
        assert child.is_quiet()  # the child still runs, but writes nothing more
        os.killpg(child.process.pid, signal.SIGKILL)
        assert received + child.rest() == stdout
    began = time.monotonic()
    assert run(script(ONE_SHOT, faults=[HoldStdout(0.5), *more])).stdout == stdout
    assert time.monotonic() - began >= 0.5


def test_close_stdout_and_live_on(script: Any) -> None:
    with running(script(ONE_SHOT, *STREAM, faults=[CloseStdout(60.0)])) as child:
        child.send(user("hi"))
        assert child.rest() == ONE_SHOT.stdout
        child.end()
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET)
        child.process.terminate()
        assert child.process.wait(DEADLINE) == 143


def test_exit_at_once(script: Any) -> None:
    with running(script(ASKING, faults=[ExitAtOnce(7)])) as child:
        assert child.rest() == b""
        assert child.process.wait(DEADLINE) == 7


@pytest.mark.parametrize("size", [22, 100, 300_000])
def test_write_first(size: int, script: Any) -> None:
    with running(script(ASKING, faults=[WriteFirst(size)])) as child:
        first = b""
        while len(first) < size:
            data = child.receive_line()
            assert json.loads(data) == {"type": "keep_alive"}
            first += data
        assert len(first) == size
        assert child.is_quiet()
        child.send(ASKING.stdin)
        assert child.finish() == (ASKING.stdout, b"", 0)


def test_write_first_reads_nothing_meanwhile(script: Any) -> None:
    with running(script(ASKING, faults=[WriteFirst(300_000)])) as child:
        assert child.process.stdin is not None
        os.set_blocking(child.process.stdin.fileno(), False)
        sent = 0
        deadline = time.monotonic() + DEADLINE
        with contextlib.suppress(BlockingIOError):
            while time.monotonic() < deadline:
                sent += os.write(child.process.stdin.fileno(), b"\n" * 4096)
        assert not select.select([], [child.process.stdin], [], QUIET)[1]
        assert sent <= 1 << 20  # at most the capacity of the pipe


@pytest.mark.parametrize("flags", [STREAM, PRINT])
def test_silence(flags: list[str], script: Any) -> None:
    with running(script(ASKING, *flags, faults=[Silence(60.0), GarbageLine(1)])) as child:
        child.send(ASKING.stdin)
        assert child.is_quiet()
        assert child.process.poll() is None
        if flags == STREAM:
            assert child.finish() == (b"", b"", 0)


def test_silence_means_no_answer_to_requests_either(script: Any) -> None:
    """The child answers neither recorded requests nor unknown ones, which otherwise get a success."""
    with running(script(ASKING, *STREAM, faults=[Silence(60.0)])) as child:
        child.send(
            request("live-1", "interrupt") + request("live-2", "initialize") + request("live-3", "never_recorded")
        )
        child.send(user("one") + request("live-4", "initialize"))
        assert child.finish() == (b"", b"", 0)  # the child has read all lines when it ends


def test_silence_of_a_one_shot_run_ends_some_time(script: Any) -> None:
    assert run(script(ONE_SHOT, *PRINT, faults=[Silence(0.01)])).stdout == b""


def test_give_up_leaves_what_the_cli_would_leave(script: Any) -> None:
    with running(script(LONG, faults=[GiveUp(0.1)])) as child:
        assert child.process.wait(DEADLINE) == 0
        out = child.rest()
    assert 0 < len(out) < len(LONG.stdout)
    assert LONG.stdout.startswith(out)


def test_give_up_waits_for_a_host_that_has_not_ended_its_input(script: Any) -> None:
    with running(script(LONG, *STREAM, faults=[GiveUp(0.05)])) as child:
        child.send(user("hi"))
        with pytest.raises(subprocess.TimeoutExpired):
            child.process.wait(QUIET * 2)
        child.end()
        assert child.process.wait(DEADLINE) == 0
        assert len(child.rest()) < len(LONG.stdout)


def test_give_up_needs_nobody_who_is_slow_but_reads(script: Any) -> None:
    assert run(script(LONG, faults=[GiveUp(5.0)])).stdout == LONG.stdout


@pytest.mark.parametrize(
    "fault",
    [
        Kill(len(ONE_SHOT.stdout) + 1),
        Kill(-1),
        CutOutput(10**9),
        GarbageLine(0),
        GarbageLine(5),
        Stall(1, before_line=9),
    ],
    ids=str,
)
def test_fault_that_would_never_happen_is_refused(fault: Fault) -> None:
    with pytest.raises(ValueError, match="beyond"):
        Replay(ONE_SHOT, faults=[fault])


def test_wrong_arguments_are_refused() -> None:
    for make in (
        lambda: Stall(1.0),
        lambda: Stall(1.0, at_byte=1, before_line=1),
        lambda: WriteFirst(21),
        lambda: Stall(-1.0, at_byte=0),
        lambda: Silence(float("nan")),
        lambda: IgnoreTerm(float("inf")),
        lambda: HoldStdout(-1.0),
        lambda: CloseStdout(-1.0),
        lambda: FloodStderr(-1),
        lambda: GiveUp(0),
        lambda: CutOutput(0, exit_code=256),
        lambda: ExitAtOnce(-9),
        lambda: Replay(ONE_SHOT, speed=0),
        lambda: Replay(ONE_SHOT, speed=float("inf")),
        lambda: Replay(ONE_SHOT, writes="words"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - each case has a different message
            make()


@pytest.mark.parametrize("fault", ["kill", Silence, None])
def test_what_is_no_fault_is_refused(fault: Any) -> None:
    with pytest.raises(TypeError, match="is not a fault"):
        Replay(ONE_SHOT, faults=[fault])


def test_every_fault_is_exported_and_in_the_union() -> None:
    names = {name for name in faults.__all__ if name != "Fault"}
    assert names == {fault.__name__ for fault in Fault.__args__}
    assert names <= set(globals())
