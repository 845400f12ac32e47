"""``claude-wire run`` runs the CLI, asks its questions, interrupts it, and records the session."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if os.name != "posix":
    pytest.skip("scripts that stand in for the CLI, and pseudo-terminals of POSIX", allow_module_level=True)


from claude_wire import ResultMessage
from claude_wire.session.open import STATE_VARIABLE
from claude_wire.testing import ExitAtOnce, Fault, FloodStderr, Kill, Recording, Replay, Silence, Stall
from claude_wire_kit.commands.app import cli
from claude_wire_kit.terminal.record import ENVIRONMENT, GROWING, Recorder
from recordings import load
from screens import PATIENCE, AtTerminal, terminal_environment
from shown import RUNNER, decoded, in_order

COMMAND = [sys.executable, "-m", "claude_wire_kit", "run"]
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def stand_in(tmp_path: Path, name: str, *faults: Fault, **files: bytes) -> str:
    recording = Recording.from_files({**load(name).files, **files})
    return Replay(recording, faults=faults).script(tmp_path / "claude")


class Done(NamedTuple):
    returncode: int
    stdout: bytes
    stderr: bytes


def run(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
    """Call the command within this process, without a terminal."""
    done = RUNNER.invoke(cli, ["run", *arguments], input=stdin, env=env)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout_bytes, done.stderr_bytes)


def at_terminal(*arguments: str) -> AtTerminal:
    return AtTerminal([*COMMAND, *arguments], terminal_environment(NO_COLOR="1"))


# --- without a terminal -----------------------------------------------------------------------------------------------


def test_session_is_shown_and_the_exit_code_tells_the_outcome(tmp_path: Path) -> None:
    done = run("--cli", stand_in(tmp_path, "15_subagent_partial"), "--", "hello")
    assert done.returncode == 0, done.stderr
    in_order(
        done.stdout.decode(),
        "> hello\n* claude-opus-5-5 in ",
        "\nspawning\n+ Agent",
        "| + Bash",
        "\nparent done\n= ok, $0.001120",
        "and $0.001120 in all, exit code 0\n",
    )
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_nobody_to_ask_is_no(tmp_path: Path) -> None:
    record = tmp_path / "r"
    done = run("--cli", stand_in(tmp_path, "05_perm_allow_deny"), "--record", str(record), "--", "hello")
    assert done.stdout.count(b"? denied: No user is available to grant permission.\n") == 3
    answers = [json.loads(line)["response"] for line in Recording.load(record).stdin.splitlines()[2:]]
    assert [answer["response"]["behavior"] for answer in answers] == ["deny"] * 3


@pytest.mark.parametrize("name", ["09_err400", "09_max_turns_bidi", "09_no_key"])
def test_failed_turn_is_1(tmp_path: Path, name: str) -> None:
    done = run("--cli", stand_in(tmp_path, name), "--", "hello")
    assert done.returncode == 1
    failed = [message for message in decoded(load(name).stdout) if isinstance(message, ResultMessage)]
    assert done.stdout.count(b"= not ok (") == len(failed) > 0
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["09_err400", "09_max_turns_bidi", "09_no_key"])
def test_failed_turn_is_1_though_the_cli_ends_with_0(tmp_path: Path, name: str) -> None:
    done = run("--cli", stand_in(tmp_path, name, **{"exit.json": b'{"rc": 0}'}), "--", "hello")
    assert b"= not ok (" in done.stdout
    assert b"! the process" not in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("faults", "said"),
    [([Kill(5000)], "! "), ([ExitAtOnce(3)], "! the process exited with code 3"), ([Kill(0)], "! ")],
    ids=str,
)
def test_cli_that_ends_too_early_is_1(tmp_path: Path, faults: list[Fault], said: str) -> None:
    done = run("--cli", stand_in(tmp_path, "15_subagent_partial", *faults), "--", "hello")
    assert done.returncode == 1
    assert said in done.stdout.decode()
    assert b"Traceback" not in done.stdout + done.stderr


def own_cli(tmp_path: Path, *program: str) -> str:
    """Write a fake CLI that reads ``initialize`` and then runs these lines of Python, which may call `write`."""
    path = tmp_path / "own"
    beginning = (
        f"#!{sys.executable}",
        "import json, os, sys",
        "def write(**message): print(json.dumps(message), flush=True)",
        "request_id = json.loads(sys.stdin.readline())['request_id']",
        "answer = {'subtype': 'success', 'request_id': request_id, 'response': {}}",
    )
    path.write_text("\n".join([*beginning, *program]))
    path.chmod(0o700)
    return str(path)


def test_what_a_cli_says_that_takes_no_prompt_is_shown(tmp_path: Path) -> None:
    path = own_cli(
        tmp_path,
        "os.close(0)",
        "write(type='control_response', response=answer)",
        "write(type='result', subtype='success', is_error=True, api_error_status=400, result='Not today.')",
    )
    done = run("--cli", path, "--", "hello")
    assert (done.returncode, done.stderr) == (1, b"")
    in_order(done.stdout.decode(), "> hello\n", "Not today.\n= not ok (api_error)\n", "exit code 1\n")


def test_what_a_cli_says_when_its_input_has_ended_is_shown(tmp_path: Path) -> None:
    path = own_cli(
        tmp_path,
        "write(type='control_response', response=answer)",
        "sys.stdin.readline()",
        "write(type='result', subtype='success', is_error=False)",
        "assert not sys.stdin.readline()",
        "write(type='system', subtype='informational', level='info', content='Goodbye.')",
    )
    done = run("--cli", path, "--", "hello")
    assert (done.returncode, done.stderr) == (0, b"")
    in_order(done.stdout.decode(), "> hello\n", "= ok\n", "* Goodbye.\n", "exit code 0\n")


def test_standard_error_of_the_cli_is_shown_and_recorded(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "15_subagent_partial", **{"stderr.txt": b"one\x1b[2J\ntwo\n"})
    done = run("--cli", path, "--record", str(tmp_path / "r"), "--", "hello")
    assert b"! stderr: one\\x1b[2J\n! stderr: two\n" in done.stdout
    assert Recording.load(tmp_path / "r").stderr == b"one\x1b[2J\ntwo\n"


def test_flags_of_the_cli(tmp_path: Path) -> None:
    record = tmp_path / "r"
    options = ["--model", "m", "--permission-mode", "plan", "--max-turns", "3", "--no-partial", "--resume", "x"]
    options += ["--allowed-tools", "Read", "--allowed-tools", "Bash(ls *)", "--disallowed-tools", "Write"]
    path = stand_in(tmp_path, "15_subagent_partial")
    run("--cli", path, *options, "--cwd", str(tmp_path), "--record", str(record), "--", "p", "--effort", "high")
    command = json.loads((record / "cmd.json").read_bytes())
    assert command["cwd"] == str(tmp_path)
    argv = command["argv"]
    assert argv[0] == path
    assert argv[-2:] == ["--effort", "high"]
    assert "--include-partial-messages" not in argv
    assert "--resume=x" in argv
    pairs = list(itertools.pairwise(argv))
    for pair in (
        ("--model", "m"),
        ("--permission-mode", "plan"),
        ("--max-turns", "3"),
        ("--allowedTools", "Read,Bash(ls *)"),
        ("--disallowedTools", "Write"),
        ("--permission-prompt-tool", "stdio"),
        ("--input-format", "stream-json"),
    ):
        assert pair in pairs


def test_prompt_from_standard_input(tmp_path: Path) -> None:
    record = tmp_path / "r"
    done = run("--cli", stand_in(tmp_path, "09_err400"), "--record", str(record), "-", stdin=b"from a pipe\n")
    assert b"> from a pipe\n" in done.stdout
    prompt = json.loads(Recording.load(record).stdin.splitlines()[1])
    assert prompt["message"] == {"role": "user", "content": "from a pipe\n"}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--", ""], ["--nonsense", "--", "p"], ["--max-turns", "0", "--", "p"], ["--cli", "nowhere", "--", "p"],
     ["--cwd", "nowhere", "--", "p"], ["--model", "a\0b", "--", "p"], ["-"]],
    ids=repr,
)  # fmt: skip
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    done = RUNNER.invoke(cli, ["run", *arguments], input=b"")
    assert done.exit_code == 2
    assert done.stdout == ""


def test_prompt_that_is_no_text_is_2() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(
        [*COMMAND, "-"], input=b"a\xff", capture_output=True, timeout=PATIENCE, check=False, env=environment
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"Error: the prompt is not utf-8: invalid start byte at byte 1\n"


def test_no_cli_is_2(tmp_path: Path) -> None:
    program = "import claude_wire.process.find_cli as o, claude_wire_kit.commands as c; o._candidates = list; c.main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "--", "p"], capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"Error: no Claude Code CLI was found in PATH, ")
    assert done.stderr.endswith(b"; or set its path: --cli\n")


def test_reader_that_goes_away_ends_it_and_the_cli(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "15_subagent_partial", Stall(PATIENCE, before_line=10))
    record = tmp_path / "r"
    reading, writing = os.pipe()
    os.close(reading)
    command = [*COMMAND, "--cli", path, "--record", str(record), "--", "p"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        assert process.wait(PATIENCE) == -signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert json.loads((record / "exit.json").read_bytes())["rc"] is not None


def test_reader_that_goes_away_before_a_question_ends_it_without_a_word(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    os.mkfifo(gone)
    question = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
    path = own_cli(
        tmp_path,
        "write(type='control_response', response=answer)",
        "sys.stdin.readline()",
        "message = {'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 't', 'name': 'Bash', 'input': {}}]}",
        "write(type='assistant', message=message)",
        f"open({os.fspath(gone)!r}).read()",
        f"write(type='control_request', request_id='q', request={question})",
        "sys.stdin.read()",
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "--cli", path, "--", "p"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while process.stdout.readline() != b"+ Bash\n":
            pass
        process.stdout.close()
        gone.write_bytes(b"")
        try:
            assert process.wait(PATIENCE) == -signal.SIGPIPE
        finally:
            process.kill()
        assert process.stderr.read() == b""


@FULL
@pytest.mark.parametrize("faults", [[], [FloodStderr(1000)]], ids=str)
def test_output_that_cannot_be_written_ends_it_and_the_cli_with_2(tmp_path: Path, faults: list[Fault]) -> None:
    path = stand_in(tmp_path, "05_perm_allow_deny", *faults)
    command = [*COMMAND, "--cli", path, "--record", str(tmp_path / "r"), "--", "p"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"Error: the output cannot be written: No space left on device\n"
    assert json.loads((tmp_path / "r" / "exit.json").read_bytes())["rc"] is not None


def test_ctrl_c_that_ends_the_reader_too_ends_it_without_a_word(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "02_long_partial", Stall(PATIENCE, before_line=20))
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "--cli", path, "--", "p"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while not process.stdout.readline().startswith(b"* claude-opus"):
            pass
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == -signal.SIGPIPE
        assert process.stderr.read() == b""


def test_cli_that_cannot_be_started_is_1(tmp_path: Path) -> None:
    path = tmp_path / "claude"
    path.write_text("#!/nowhere/to/be/found\n")
    path.chmod(0o700)
    done = run("--cli", str(path), "--record", str(tmp_path / "r"), "--", "p")
    assert (done.returncode, done.stderr) == (1, b"")
    problem = f"! '{path}' cannot be run: the interpreter in its first line does not exist\n"
    assert done.stdout.startswith(problem.encode())
    assert not (tmp_path / "r" / "exit.json").exists()


# --- at a terminal ----------------------------------------------------------------------------------------------------


def test_questions_are_asked_and_answered(tmp_path: Path) -> None:
    record = tmp_path / "r"
    with at_terminal("--cli", stand_in(tmp_path, "05_perm_allow_deny"), "--record", str(record), "--", "p") as host:
        host.type_when("allow? [", "what\n")
        host.type_when("allow? [", "2\n", times=2)
        host.type_when("allow? [", "n not today\n", times=3)
        host.type_when("allow? [", "y\n", times=4)
        shown, code = host.end()
    assert code == 0
    in_order(
        shown,
        "+ Bash touch a.txt",
        "? may Bash run?\n",
        "    1: yes, and allow Bash(",
        "    2: yes, and work in ",
        "    3: yes, and switch to permission mode acceptEdits",
        "allow? [y, n, n REASON, 1, 2, 3] what\n",
        "allow? [y, n, n REASON, 1, 2, 3] 2\n",
        "? allowed\n    and work in ",
        "? denied: not today\n",
        "? may Write run?\n    c.txt\n    file_path: /",
        "? allowed\n",
        "finished\n",
        "= ok, ",
    )
    requests = [json.loads(line) for line in load("05_perm_allow_deny").stdout.splitlines() if b"can_use_tool" in line]
    asked = [request["request"] for request in requests if request["type"] == "control_request"]
    answers = [json.loads(line)["response"]["response"] for line in Recording.load(record).stdin.splitlines()[2:]]
    assert [answer["behavior"] for answer in answers] == ["allow", "deny", "allow"]
    assert answers[0]["updatedInput"] == asked[0]["input"]
    assert answers[0]["updatedPermissions"] == [asked[0]["permission_suggestions"][1]]
    assert answers[1]["message"] == "not today"
    assert "updatedPermissions" not in answers[2]


def test_question_comes_behind_its_call_and_waits_no_longer(tmp_path: Path) -> None:
    patient = (
        f"import claude_wire_kit.terminal.asking as a; a.SECONDS_TO_SHOW = {2 * PATIENCE}; "
        "import claude_wire_kit.commands as c; c.main()"
    )
    command = [sys.executable, "-c", patient, "run", "--cli", stand_in(tmp_path, "05_perm_allow_deny"), "--", "p"]
    with AtTerminal(command, terminal_environment(NO_COLOR="1")) as host:
        for times in (1, 2, 3):
            host.type_when("allow? [", "n\n", times)
        shown, _ = host.end()
    in_order(shown, *("+ Bash", "? may Bash", "? denied") * 2, "+ Write", "? may Write", "? denied")


def test_end_of_the_input_is_no(tmp_path: Path) -> None:
    with at_terminal("--cli", stand_in(tmp_path, "05_perm_allow_deny"), "--", "p") as host:
        for times in (1, 2, 3):
            host.type_when("allow? [", "\x04", times)
        shown, code = host.end()
    assert (shown.count("? denied: The user gave no answer."), code) == (3, 0)


def test_ctrl_c_interrupts_once_and_ends_on_the_second(tmp_path: Path) -> None:
    record = tmp_path / "r"
    path = stand_in(tmp_path, "02_long_partial", Stall(PATIENCE, before_line=20))
    with at_terminal("--cli", path, "--record", str(record), "--", "p") as host:
        host.type_when("* claude-opus", "\x03")
        host.type_when("! interrupted; Ctrl-C once more ends the CLI", "\x03")
        shown, code = host.end()
    assert code == 130
    assert "Traceback" not in shown
    sent = [json.loads(line) for line in Recording.load(record).stdin.splitlines()]
    assert [message.get("request", {}).get("subtype") for message in sent] == [
        "initialize",
        None,
        "interrupt",
        "interrupt",  # sent on leaving the session, because the turn still runs
    ]
    assert json.loads((record / "exit.json").read_bytes())["rc"] is not None
    assert host.screen.shown.count(b"\x1b[?25l") == host.screen.shown.count(b"\x1b[?25h")


def test_interrupted_turn_ends_with_its_result_and_130(tmp_path: Path) -> None:
    with at_terminal("--cli", stand_in(tmp_path, "08_interrupt_nopartial"), "--", "p") as host:
        host.type_when("* claude-opus", "\x03")
        shown, code = host.end()
    assert code == 130
    in_order(shown, "! interrupted", "= not ok (aborted_", "exit code 130")


def test_ctrl_c_before_the_session_has_begun_ends_it(tmp_path: Path) -> None:
    with at_terminal("--cli", stand_in(tmp_path, "02_long_partial", Silence(PATIENCE)), "--", "p") as host:
        host.type_when("waiting for the CLI", "\x03")
        shown, code = host.end()
    assert code == 130
    assert "Traceback" not in shown


def test_sigterm_ends_it_and_the_cli(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "02_long_partial", Stall(PATIENCE, before_line=20))
    with at_terminal("--cli", path, "--", "p") as host:
        host.until("* claude-opus")
        host.process.terminate()
        shown, code = host.end()
    assert code == 143
    assert "Traceback" not in shown


# --- recordings -------------------------------------------------------------------------------------------------------


def test_recording_is_read_back_and_played(tmp_path: Path) -> None:
    record = tmp_path / "r"
    original = load("15_subagent_partial")
    run("--cli", stand_in(tmp_path, "15_subagent_partial"), "--record", str(record), "--", "hello")
    recording = Recording.load(record)
    lines = original.stdout.splitlines(keepends=True)
    # The replay answers initialize by itself. Everything else that it writes is the recorded output.
    assert [line for line in recording.stdout.splitlines(keepends=True) if b"control_response" not in line] == lines
    assert b"".join(recording.reads) == recording.stdout
    assert b"".join(step.data for step in recording.steps if step.direction == "out") == recording.stdout
    assert b"".join(step.data for step in recording.steps if step.direction == "in") == recording.stdin
    seconds = [step.seconds for step in recording.steps]
    assert seconds == sorted(seconds)
    assert [step.direction for step in recording.steps][:2] == ["in", "out"]
    assert recording.exit_code == 0
    again = run("--cli", Replay(recording).script(tmp_path / "again"), "--record", str(tmp_path / "s"), "--", "hello")
    assert again.returncode == 0
    shown = RUNNER.invoke(cli, ["view", str(record)]).stdout
    assert again.stdout.decode().startswith(shown)


def test_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    record = tmp_path / "deep" / "r"
    environment = {**os.environ, "ANTHROPIC_API_KEY": "secret", "LANG": "C.UTF-8", STATE_VARIABLE: "0"}
    path = tmp_path / "wrapper"
    path.write_text(f'#!/bin/sh\nenv >{tmp_path}/env\nexec {stand_in(tmp_path, "09_err400")} "$@"\n')
    path.chmod(0o700)
    run("--cli", str(path), "--record", str(record), "--", "hello", env=environment)
    assert stat.S_IMODE(record.stat().st_mode) == 0o700
    files = sorted(path.name for path in record.iterdir())
    assert files == [
        *("cmd.json", "exit.json", "order.jsonl", "stderr.txt", "stdin.ndjson", "stdout.ndjson"),
        "stdout.reads.jsonl",
    ]
    for path in record.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"secret" not in path.read_bytes()
    known = json.loads((record / "cmd.json").read_bytes())["env"]
    assert {"LANG", STATE_VARIABLE} <= set(known) <= set(ENVIRONMENT)
    given = dict(row.partition("=")[::2] for row in (tmp_path / "env").read_text().splitlines())
    assert known == {name: given[name] for name in known}
    assert json.loads((record / "exit.json").read_bytes())["rc"] == 1


def test_folder_that_is_there_is_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Recorder(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    record = tmp_path / "r"
    record.mkdir()
    (record / "stdout.ndjson").write_bytes(b"mine")
    for target in (record, record / "stdout.ndjson"):
        done = run("--cli", stand_in(tmp_path, "09_err400"), "--record", str(target), "--", "hello")
        assert done.returncode == 2
        assert done.stdout == b""
    assert [path.name for path in record.iterdir()] == ["stdout.ndjson"]
    assert (record / "stdout.ndjson").read_bytes() == b"mine"


@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_recorder_takes_bytes_as_they_come(tmp_path: Path, size: int) -> None:
    data = b'{"a":1}\n\n\xff\xfe\r\n{"type":"keep_alive"}\nunfinished'
    with closing(Recorder(tmp_path / "r")) as recorder:
        recorder.started(["claude"], "/", {})
        for at in range(0, len(data), size):
            recorder.received(data[at : at + size])
        recorder.sent(b'{"b":1}\n')
        recorder.ended(-9)
    recording = Recording.load(tmp_path / "r")
    assert recording.stdout == data
    assert recording.stdin == b'{"b":1}\n'
    assert b"".join(recording.reads) == data
    assert len(recording.reads) == -(-len(data) // size)
    assert [step.data for step in recording.steps if step.direction == "out"] == io.BytesIO(data).readlines()
    order = [json.loads(row)[1:] for row in recording.files["order.jsonl"].splitlines()]
    assert order == [*(["out", len(part)] for part in data.split(b"\n")[:-1]), ["in", 7]]
    assert recording.exit_code == -9


def test_a_recording_ends_at_its_bound(tmp_path: Path) -> None:
    with closing(Recorder(tmp_path / "r", 1000)) as recorder:
        for _ in range(9):
            recorder.received(b"x" * 299 + b"\n")
    assert Recording.load(tmp_path / "r").stdout == (b"x" * 299 + b"\n") * 3
    assert recorder.error is not None


def test_what_was_recorded_is_there_before_the_end(tmp_path: Path) -> None:
    with closing(Recorder(tmp_path / "r")) as recorder:
        recorder.started(["claude"], "/", {})
        recorder.received(b"x\n")
        recorder.sent(b"y\n")
        recorder.stderr("z")
        recording = Recording.load(tmp_path / "r")
    assert (recording.stdout, recording.stdin, recording.stderr) == (b"x\n", b"y\n", b"z\n")
    assert [step.direction for step in recording.steps] == ["out", "in"]


@FULL
@pytest.mark.parametrize("full", ["stdout.ndjson", "stdin.ndjson", "order.jsonl", "stdout.reads.jsonl", "stderr.txt"])
def test_full_disk_ends_the_recording_and_not_the_session(tmp_path: Path, full: str) -> None:
    """After a failed write the recording stops, so it has the beginning of the session without gaps."""
    with closing(Recorder(tmp_path / "r")) as recorder:
        recorder._files[full].close()
        recorder._files[full] = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - the recorder closes it
        for _ in range(2):
            recorder.received(b"x\n")
            recorder.sent(b"y\n")
            recorder.stderr("z")
            recorder.received(b"x\n")
        recorder.ended(0)
    assert recorder.error is not None
    assert recorder.error.errno == 28
    written = {name: (tmp_path / "r" / name).read_bytes().count(b"\n") for name in GROWING if name != full}
    before = {
        "stdout.ndjson": {},
        "stdout.reads.jsonl": {"stdout.ndjson": 1},
        "order.jsonl": {"stdout.ndjson": 1, "stdout.reads.jsonl": 1},
        "stdin.ndjson": {"stdout.ndjson": 1, "stdout.reads.jsonl": 1, "order.jsonl": 1},
        "stderr.txt": {"stdout.ndjson": 1, "stdout.reads.jsonl": 1, "order.jsonl": 2, "stdin.ndjson": 1},
    }
    assert written == {**dict.fromkeys(written, 0), **before[full]}


def test_recording_that_is_not_whole_is_told_and_the_session_goes_on(tmp_path: Path) -> None:
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    record = tmp_path / "r"
    arguments = ["--record", str(record), "--cli", stand_in(tmp_path, "15_subagent_partial")]
    done = subprocess.run(
        [*itertools.chain([sys.executable, "-c", limited], COMMAND[1:], arguments, ["--", "hello"])],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    assert b"\nparent done\n= ok" in done.stdout
    assert done.stderr == b"claude-wire: the recording is incomplete: File too large\n"
    assert (record / "stdout.ndjson").stat().st_size == 2000
