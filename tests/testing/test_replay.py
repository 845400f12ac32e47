"""``claude_wire.testing``: a child that plays a recording in place of the CLI, and what can go wrong with it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import lzma
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recordings
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
    Step,
    WriteFirst,
    faults,
)
from claude_wire.testing.player import files as _files

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals of POSIX")

#: Seconds after which a test that waits for something that never happens fails.
DEADLINE = 60.0

#: For how long nothing must come where something is waited for. A slow machine can only hide a failure by it.
QUIET = 0.2

STREAM = ["--input-format", "stream-json", "--output-format", "stream-json"]
PRINT = ["-p", "--output-format", "stream-json", "hello"]


def recording(name: str) -> Recording:
    return Recording.from_files(recordings.load(name).files, name)


def line(**message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def user(text: str) -> bytes:
    return line(type="user", message={"role": "user", "content": text})


def request(identity: str, subtype: str, **fields: Any) -> bytes:
    return line(type="control_request", request_id=identity, request={"subtype": subtype, **fields})


def response(identity: str, **payload: Any) -> bytes:
    return line(type="control_response", response={"subtype": "success", "request_id": identity, "response": payload})


def said(text: str) -> bytes:
    return line(type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]})


RESULT = line(type="result", subtype="success", is_error=False)
GZIPPED = gzip.compress(RESULT, mtime=0)  # the names of tests hold it, and all workers must agree on them


def session(*steps: tuple[str, bytes], times: list[float] | None = None, **more: bytes) -> Recording:
    """A recording of these steps, ``("in", line)`` or ``("out", line)``."""
    seconds = times or [0.0] * len(steps)
    order = [[at, way, len(data.removesuffix(b"\n"))] for at, (way, data) in zip(seconds, steps, strict=True)]
    files = {
        "stdout.ndjson": b"".join(data for way, data in steps if way == "out"),
        "order.jsonl": b"".join(json.dumps(entry).encode() + b"\n" for entry in order),
        **{name.replace("_", "."): data for name, data in more.items()},
    }
    if any(way == "in" for way, _ in steps):
        files["stdin.ndjson"] = b"".join(data for way, data in steps if way == "in")
    return Recording.from_files(files)


#: A session of two prompts, in which the CLI asks once.
ASKING = session(
    ("in", request("r1", "initialize")),
    ("out", response("r1", commands=["recorded"])),
    ("in", user("one")),
    ("out", said("first")),
    ("out", request("cli-1", "can_use_tool", tool_name="Bash")),
    ("in", response("cli-1", behavior="allow")),
    ("out", RESULT),
    ("in", user("two")),
    ("out", said("second")),
    ("out", RESULT),
)

#: A session whose prompt was an argument.
ONE_SHOT = session(("out", said("a")), ("out", said("b")), ("out", RESULT), exit_json=b'{"rc": 3}')


class Child:
    """A stand-in that runs, with pipes to it."""

    def __init__(self, argv: list[str], **options: Any) -> None:
        pipe = subprocess.PIPE
        options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "bufsize": 0, **options}
        self.process = subprocess.Popen(argv, **options)
        self._read = b""

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _wait_readable(self, seconds: float) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def receive_line(self) -> bytes:
        """The next line, or what is left at the end."""
        assert self.process.stdout is not None
        while b"\n" not in self._read:
            assert self._wait_readable(DEADLINE), "nothing comes"
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                rest, self._read = self._read, b""
                return rest
            self._read += data
        at = self._read.index(b"\n") + 1
        taken, self._read = self._read[:at], self._read[at:]
        return taken

    def is_quiet(self) -> bool:
        """Nothing has come and nothing comes."""
        return not self._read and not self._wait_readable(QUIET)

    def rest(self) -> bytes:
        """All that still comes."""
        lines = []
        while data := self.receive_line():
            lines.append(data)
        return b"".join(lines)

    def finish(self) -> tuple[bytes, bytes, int]:
        """End the input; what still comes, the standard error, the exit code."""
        self.end()
        out = self.rest()
        assert self.process.stderr is not None
        return out, self.process.stderr.read(), self.process.wait(DEADLINE)


@contextlib.contextmanager
def running(argv: list[str], **options: Any) -> Iterator[Child]:
    child = Child(argv, **options)
    with child.process:
        try:
            yield child
        finally:
            child.process.kill()


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(recording: Recording, *flags: str, **options: Any) -> list[str]:
        return [Replay(recording, **options).script(tmp_path / "claude"), *flags]

    return write


def run(argv: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=DEADLINE, check=False)


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
    """Does what a recorded host did, with ids of its own."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def send(self, child: Child, data: bytes) -> None:
        message = parsed(data)
        if message.get("type") == "control_request" and "request_id" in message:
            recorded = message["request_id"]
            self._ids[recorded] = f"live-{len(self._ids)}-é"
            message["request_id"] = self._ids[recorded]
            data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the recorded CLI was gone by then, too
            child.send(data)
            if not data.endswith(b"\n"):
                child.end()

    def expect(self, data: bytes) -> bytes:
        for recorded, live in self._ids.items():
            data = data.replace(json.dumps(recorded).encode(), json.dumps(live).encode())
        return data


def parsed(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


@pytest.mark.parametrize("name", [name for name in recordings.names() if recordings.load(name).stdin])
def test_host_with_other_ids_in_step_with_every_recorded_session(name: str, script: Any) -> None:
    played, host = recording(name), LiveHost()
    cut = b""  # the last line of some, which comes when it is known that there is no more of it
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
        child.send(request("late", "mcp_status"))  # even when all is played
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
    assert run(script(ONE_SHOT, flag)).stdout.endswith(b" (Claude Code)\n")


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
        assert time.monotonic() - began >= 0.3 - 1e-6  # what two floats may differ by


def test_requests_are_answered_while_the_time_passes(script: Any) -> None:
    played = session(("in", user("one")), ("out", said("a")), times=[0.0, 3600.0])
    with running(script(played, speed=1.0)) as child:
        child.send(user("one") + request("live", "interrupt"))
        assert json.loads(child.receive_line())["response"]["request_id"] == "live"


def written(argv: list[str]) -> list[bytes]:
    """What a child writes, one item a write."""
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
    """What ``ASKING`` has written when it waits for an answer."""
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
    ("fault", "first"),
    [(GarbageLine(4, b"odd"), b"odd\n"), (CutOutput(0), b"")],
    ids=["garbage", "cut"],
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
        assert child.is_quiet()  # and not at its end
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
        assert sent <= 1 << 20  # as much as the pipe holds


@pytest.mark.parametrize("flags", [STREAM, PRINT])
def test_silence(flags: list[str], script: Any) -> None:
    with running(script(ASKING, *flags, faults=[Silence(60.0), GarbageLine(1)])) as child:
        child.send(ASKING.stdin)
        assert child.is_quiet()
        assert child.process.poll() is None
        if flags == STREAM:
            assert child.finish() == (b"", b"", 0)


def test_silence_means_no_answer_to_requests_either(script: Any) -> None:
    """Neither to one that was recorded nor to another, which else is answered with a success."""
    with running(script(ASKING, *STREAM, faults=[Silence(60.0)])) as child:
        child.send(
            request("live-1", "interrupt") + request("live-2", "initialize") + request("live-3", "never_recorded")
        )
        child.send(user("one") + request("live-4", "initialize"))
        assert child.finish() == (b"", b"", 0)  # all lines have been looked at by then


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
        with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
            make()


@pytest.mark.parametrize("fault", ["kill", Silence, None])
def test_what_is_no_fault_is_refused(fault: Any) -> None:
    with pytest.raises(TypeError, match="is no fault"):
        Replay(ONE_SHOT, faults=[fault])


def test_every_fault_is_exported_and_in_the_union() -> None:
    names = {name for name in faults.__all__ if name != "Fault"}
    assert names == {fault.__name__ for fault in Fault.__args__}
    assert names <= set(globals())


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


# --- recordings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", recordings.names())
def test_steps_are_both_streams_whole_and_in_order(name: str) -> None:
    loaded = recording(name)
    for direction, stream in (("in", loaded.stdin), ("out", loaded.stdout)):
        lines = [step.data for step in loaded.steps if step.direction == direction]
        assert b"".join(lines) == stream
        assert all(data.count(b"\n") == 1 and data.endswith(b"\n") for data in lines[:-1])
    seconds = [step.seconds for step in loaded.steps]
    assert seconds == sorted(seconds)


def causes(steps: tuple[Step, ...]) -> Iterator[tuple[bool, bool]]:
    """For each control request whose answer is there, too: whether it comes first, by each side."""
    places: dict[tuple[str, str, str], int] = {}
    for index, step in enumerate(steps):
        message = parsed(step.data)
        if message.get("type") == "control_request":
            places[step.direction, "request", message.get("request_id", "")] = index
        elif message.get("type") == "control_response":
            places[step.direction, "response", message["response"].get("request_id", "")] = index
    for (direction, kind, identity), index in places.items():
        other = "in" if direction == "out" else "out"
        answer = places.get((other, "response", identity))
        if kind == "request" and answer is not None:
            yield direction == "in", index < answer


@pytest.mark.parametrize("name", [name for name in recordings.names() if recordings.load(name).stdin])
def test_without_a_recorded_order_causes_come_before_effects(name: str) -> None:
    files = {file: data for file, data in recordings.load(name).files.items() if file != "order.jsonl"}
    likely = Recording.from_files(files)
    assert b"".join(step.data for step in likely.steps if step.direction == "in") == likely.stdin
    assert b"".join(step.data for step in likely.steps if step.direction == "out") == likely.stdout
    assert all(first for _, first in causes(likely.steps))


def test_likely_order_is_the_recorded_one_for_a_host_that_does_one_thing_at_a_time() -> None:
    files = {name: data for name, data in ASKING.files.items() if name != "order.jsonl"}
    assert Recording.from_files(files).steps == ASKING.steps


def test_what_belongs_to_nothing_does_not_disturb_the_likely_order() -> None:
    steps = [*ASKING.steps[:7], ("", "in", request("never answered", "ask")), ("", "in", response("never asked"))]
    files = {
        "stdin.ndjson": b"".join(data for _, direction, data in [*steps, *ASKING.steps[7:]] if direction == "in"),
        "stdout.ndjson": ASKING.stdout,
    }
    likely = [step for step in Recording.from_files(files).steps if b"never" not in step.data]
    assert likely == list(ASKING.steps)


def test_times_of_reads_are_those_of_lines_without_an_order() -> None:
    reads = b"[0.5, 3]\n[1.5, 4]\n[2.5, 1]\n"
    loaded = Recording.from_files({"stdout.ndjson": b"{}\n{1}\n{", "stdout.reads.jsonl": reads})
    assert loaded.steps == ((0.5, "out", b"{}\n"), (1.5, "out", b"{1}\n"), (2.5, "out", b"{"))
    assert loaded.reads == (b"{}\n", b"{1}\n", b"{")


def test_reads_are_the_pieces_that_were_read() -> None:
    original = recordings.load("17_sdk_client_full")
    assert [len(data) for data in recording("17_sdk_client_full").reads] == original.reads


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    original = recording("05_perm_cancel")
    saved = original.save(tmp_path / "new" / "05_perm_cancel")
    loaded = Recording.load(tmp_path / "new" / "05_perm_cancel")
    assert saved.path == loaded.path == str(tmp_path / "new" / "05_perm_cancel")
    assert loaded.files == original.files
    assert (loaded.name, loaded.exit_code, loaded.argv[:2]) == ("05_perm_cancel", 1, ("-p", "--output-format"))
    assert {stat.S_IMODE(file.stat().st_mode) for file in Path(saved.path or "").iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("out.ndjson", RESULT),
        ("out.ndjson.gz", GZIPPED),
        ("out.ndjson.xz", lzma.compress(RESULT)),
        ("folder/stdout.ndjson", RESULT),
        ("folder/stdout.ndjson.gz", GZIPPED),
        ("folder/stdout.ndjson.xz", lzma.compress(RESULT)),
    ],
)
def test_files_and_folders_packed_or_not(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)
    loaded = Recording.load(tmp_path / name.partition("/")[0])
    assert (loaded.stdout, loaded.stdin, loaded.stderr, loaded.exit_code, loaded.argv) == (RESULT, b"", b"", 0, ())
    assert loaded.steps == ((0.0, "out", RESULT),)
    assert run(Replay(loaded).argv()).stdout == RESULT


@pytest.mark.parametrize("name", ["a.gz", "a.xz"])
@pytest.mark.parametrize("data", [b"", b"nonsense", GZIPPED[:-9], lzma.compress(RESULT)[:-9]])
def test_damaged_file_is_a_value_error(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    if name == "a.gz" and data == b"":
        assert Recording.load(tmp_path / name).stdout == b""  # no members are no bytes
        return
    with pytest.raises(ValueError, match="damaged"):
        Recording.load(tmp_path / name)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("name", ["stdout.ndjson.gz", "stdout.ndjson.xz"])
def test_what_unpacks_to_more_than_the_bound_is_refused(
    name: str, folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files of a folder count together, and what is not packed does not count."""
    monkeypatch.setattr(_files, "MAX_UNPACKED_BYTES", 100_000)
    packed = gzip.compress if name.endswith(".gz") else lzma.compress
    lines = b"{}\n" * 20_000
    path = tmp_path if folder else tmp_path / name
    (tmp_path / name).write_bytes(packed(lines))
    if folder:
        (tmp_path / "stderr.txt").write_bytes(bytes(200_000))
    assert Recording.load(path).stdout == lines
    (tmp_path / ("stdin.ndjson.gz" if folder else name)).write_bytes(
        gzip.compress(lines) if folder else packed(lines * 2)
    )
    with pytest.raises(_files.UnpackLimitError, match=r"may unpack to 100,000 bytes"):
        Recording.load(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_small_file_that_unpacks_to_gigabytes_takes_bounded_memory(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bomb{suffix}"
    once = bytes(1024 * 1024)
    path.write_bytes((gzip.compress(once) if suffix == ".gz" else lzma.compress(once)) * 3000)
    program = f"""if 1:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        import sys
        from claude_wire.cli import main
        sys.argv = ["claude-wire", "replay", {str(path)!r}]
        main()
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(b"is too large: the files of a recording may unpack to 268,435,456 bytes\n")


def test_an_xz_file_whose_header_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stdout.ndjson.xz"
    header = lzma.compress(b"{}\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 4096}])
    assert header[12:].startswith(b"\x02\x00\x21\x01\x00")  # block header: LZMA2 with the smallest dictionary
    block = bytearray(header[12:24])
    block[4] = 36  # 1 GiB
    block[8:12] = zlib.crc32(block[:8]).to_bytes(4, "little")
    path.write_bytes(header[:12] + bytes(block) + header[24:])
    assert lzma.decompress(path.read_bytes()) == b"{}\n"
    with pytest.raises(_files.UnpackLimitError, match="takes more than"):
        Recording.load(path)


def test_streams_behind_each_other_in_one_file_are_one(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b"a" * 200_000) + bytes(8) + lzma.compress(b"") + lzma.compress(b"b") + bytes(4))
    assert Recording.load(path).stdout == b"a" * 200_000 + b"b"
    path.write_bytes(path.read_bytes() + b"junk")
    with pytest.raises(ValueError, match="damaged"):
        Recording.load(path)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_is_no_file_is_not_written_through(kind: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    folder.mkdir()
    if kind == "link":
        victim.write_bytes(b"mine")
        victim.chmod(0o644)
    for place in (folder / "stdout.ndjson", folder / "claude"):
        if kind.endswith("link"):
            place.symlink_to(victim)
        elif kind == "pipe":
            os.mkfifo(place)
        else:
            place.mkdir()
    with pytest.raises(OSError, match="no file"):
        ONE_SHOT.save(folder)
    with pytest.raises(OSError, match="no file"):
        Replay(ONE_SHOT).script(folder / "claude")
    if kind == "link":
        assert (victim.read_bytes(), stat.S_IMODE(victim.stat().st_mode)) == (b"mine", 0o644)
    assert victim.exists() == (kind == "link")


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="open() with O_NOFOLLOW")
def test_a_link_that_comes_between_the_look_and_the_opening_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "stdout.ndjson").symlink_to(victim)
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(OSError, match="stdout") as raised:
        ONE_SHOT.save(tmp_path)
    assert (raised.value.errno, victim.exists()) == (errno.ELOOP, False)


def test_what_is_saved_again_is_private_and_has_nothing_of_before(tmp_path: Path) -> None:
    place = tmp_path / "stdout.ndjson"
    place.write_bytes(b"x" * 10**6)
    place.chmod(0o666)
    ONE_SHOT.save(tmp_path)
    assert (place.read_bytes(), stat.S_IMODE(place.stat().st_mode)) == (ONE_SHOT.stdout, 0o600)


def test_folder_without_output_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Recording.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        Replay(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"stdout\.ndjson"):
        Recording.from_files({"stdin.ndjson": b""})


def test_file_that_is_not_what_it_should_be_is_a_value_error() -> None:
    for name in ("order.jsonl", "stdout.reads.jsonl"):
        for data in (b"[1,\n", b"1\n", b"\n1\n", b"[1]", b'["a", "b"]\n', b'[1, "in", "b"]\n', b"[1, 2, 3, 4]\n"):
            loaded = Recording.from_files({"stdout.ndjson": b"", name: data})
            with pytest.raises(ValueError, match=name):
                _ = loaded.steps
            if name == "stdout.reads.jsonl":
                with pytest.raises(ValueError, match=name):
                    _ = loaded.reads
    with pytest.raises(ValueError, match="exit"):
        _ = Recording.from_files({"stdout.ndjson": b"", "exit.json": b"{"}).exit_code
    assert Recording.from_files({"stdout.ndjson": b"", "cmd.json": b'{"argv": 5}'}).argv == ()


@pytest.mark.parametrize("name", ["order.jsonl", "stdout.reads.jsonl"])
def test_a_last_row_that_was_cut_off_is_left_out(name: str) -> None:
    row = b'[1.5, "out", 9]' if name == "order.jsonl" else b"[1.5, 10]"
    stdout = b'{"a":"b"}\n' * 3
    for end in range(len(row) + 2):
        files = {"stdout.ndjson": stdout, name: row + b"\n" + (row + b"\n")[:end]}
        assert b"".join(step.data for step in Recording.from_files(files).steps) == stdout
        if name == "stdout.reads.jsonl":
            first, rest = stdout[:10], stdout[10:]
            reads = (first, rest) if end < len(row) else (first, rest[:10], rest[10:])
            assert Recording.from_files(files).reads == reads


def test_nothing_of_a_recording_is_in_its_repr() -> None:
    assert "recorded" not in repr(ASKING)
