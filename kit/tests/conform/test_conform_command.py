"""``claude-wire conform`` prints its findings, sets its exit code, and leaves no process or file behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from children import heed_hangups, ignore_hangups, wait_until
from claude_wire.testing import Recording
from claude_wire_kit.commands.app import cli
from claude_wire_kit.conform.scenarios import SCENARIOS
from shown import RUNNER

HOSTS = str(Path(__file__).with_name("hosts.py"))
HOST = [sys.executable, "-S", HOSTS]


def conform(*arguments: str, host: list[str] = HOST) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "claude_wire_kit", "conform", *arguments, "--", *host]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def expectations(tmp_path: Path, content: Any) -> str:
    path = tmp_path / "expected.json"
    path.write_text(json.dumps(content))
    return str(path)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_host_that_conforms_exits_with_0() -> None:
    done = conform("--only", "prompt", "--only", "thinking")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("prompt: pass\n  agent: It sends one text.\n  asked: send 'Hello.'\n  host:  wrote ")
    assert done.stdout.endswith("\nscenario  verdict         broken rules\nprompt    pass\nthinking  pass\n2 pass\n")


def test_a_broken_rule_is_shown_and_exits_with_1() -> None:
    done = conform("--only", "prompt", host=[*HOST, "EndsWithThree"])
    assert done.returncode == 1
    assert "  fail: ends: The host ends by itself" in done.stdout
    assert "    found: exit code 3\n" in done.stdout
    assert done.stdout.endswith("prompt    fail            ends\n1 fail\n")


def test_json_has_every_rule_with_its_verdict() -> None:
    done = conform("--json", "--only", "prompt", host=[*HOST, "EndsWithThree"])
    assert done.returncode == 1
    found = json.loads(done.stdout)
    (scenario,) = found["scenarios"]
    assert (found["ok"], scenario["name"], scenario["verdict"]) == (False, "prompt", "fail")
    verdicts = {rule["name"]: rule["verdict"] for rule in scenario["rules"]}
    assert verdicts == {rule.name: "fail" if rule.name == "ends" else "pass" for rule in SCENARIOS["prompt"].rules}


def test_a_rule_that_is_broken_by_design_is_no_failure(tmp_path: Path) -> None:
    expected = expectations(tmp_path, {"prompt": {"ends": "it likes the three"}})
    done = conform("--only", "prompt", "--expect", expected, host=[*HOST, "EndsWithThree"])
    assert done.returncode == 0
    assert "    known: it likes the three\n" in done.stdout
    assert done.stdout.endswith("prompt    by design       ends\n1 by design\n")


def test_a_known_fault_is_named_as_that(tmp_path: Path) -> None:
    expected = expectations(tmp_path, {"prompt": {"ends": "fault: it cannot count"}})
    done = conform("--only", "prompt", "--expect", expected, host=[*HOST, "EndsWithThree"])
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["prompt    known fault     ends", "1 known fault"])


def test_an_expectation_that_no_longer_fails_is_reported(tmp_path: Path) -> None:
    expected = expectations(tmp_path, {"prompt": {"ends": "it likes the three"}})
    done = conform("--only", "prompt", "--expect", expected)
    assert done.returncode == 1
    assert done.stdout.endswith("prompt    no longer fails  ends\n1 no longer fails\n")


def test_an_expected_failure_does_not_hide_another(tmp_path: Path) -> None:
    expected = expectations(tmp_path, {"deltas": {"delta": "it has no deltas"}})
    done = conform("--json", "--only", "deltas", "--expect", expected, host=[*HOST, "SaysTextsTwice"])
    (scenario,) = json.loads(done.stdout)["scenarios"]
    assert (done.returncode, scenario["verdict"]) == (1, "fail")


@pytest.mark.parametrize(
    "content", [[], {"prompt": []}, {"prompt": {"nothing": "x"}}, {"x": {"text": "y"}}, {"prompt": {"text": 1}}]
)
def test_expectations_that_make_no_sense_are_refused(tmp_path: Path, content: Any) -> None:
    done = conform("--expect", expectations(tmp_path, content))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ")


def test_the_scenarios_are_listed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "claude_wire_kit", "conform", "--list"], capture_output=True, text=True, check=True
    )
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(SCENARIOS)
    assert len(SCENARIOS) >= 30


@pytest.mark.parametrize("host", [[], ["/nowhere/host"]])
def test_a_host_that_cannot_be_started_is_wrong_usage(host: list[str]) -> None:
    done = conform(host=host)
    assert (done.returncode, done.stdout) == (2, "")


def test_cli_and_task_may_be_arguments() -> None:
    script = 'CLAUDE_WIRE_CONFORM_CLI="$1" CLAUDE_WIRE_CONFORM_TASK="$2" exec "$3" -S "$4"'
    moved = ["env", "-u", "CLAUDE_WIRE_CONFORM_CLI", "-u", "CLAUDE_WIRE_CONFORM_TASK", "sh", "-c", script, "sh"]
    done = conform("--only", "prompt", host=[*moved, "{cli}", "{task}", sys.executable, HOSTS])
    assert done.returncode == 0, done.stdout


def test_a_host_that_hangs_is_killed_with_its_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep, hangs = tmp_path / "kept", tmp_path / "hangs"
    monkeypatch.setenv("HANGS", str(hangs))
    communicate = subprocess.Popen.communicate

    def communicate_until_it_hangs(host: subprocess.Popen[Any], timeout: float | None = None) -> Any:
        """Let the time limit expire as soon as the host hangs, and not before."""
        if timeout is not None:
            wait_until(hangs.exists)
            timeout = 0
        return communicate(host, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate_until_it_hangs)
    arguments = ["conform", "--only", "prompt", "--timeout", "3", "--keep", str(keep), "--", *HOST, "Hangs"]
    done = RUNNER.invoke(cli, arguments)
    assert done.exit_code == 1
    assert "    found: it was killed after 3 s\n" in done.stdout
    pid = json.loads((keep / "prompt" / "cmd.json").read_bytes())["pid"]
    while is_alive(pid):  # wait until the agent's new parent has reaped it
        time.sleep(0.05)


def test_what_is_kept_is_a_recording(tmp_path: Path) -> None:
    conform("--only", "permission_denied", "--keep", str(tmp_path))
    recording = Recording.load(tmp_path / "permission_denied")
    assert recording.exit_code == 0
    assert "--permission-prompt-tool" in recording.argv
    assert [step.direction for step in recording.steps][:3] == ["in", "out", "in"]
    assert b"".join(step.data for step in recording.steps if step.direction == "out") == recording.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_note_names_the_scenarios_without_a_recording(tmp_path: Path, options: list[str]) -> None:
    arguments = [*options, "--only", "prompt", "--only", "thinking"]
    done = conform(*arguments, "--keep", str(tmp_path / "kept"), host=["true"])
    note = "note: the host did not start the agent, so there is no recording of prompt, thinking\n"
    assert (done.returncode, done.stderr) == (1, note)
    assert conform(*arguments, host=["true"]).stderr == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_ends_host_and_agent(tmp_path: Path, number: signal.Signals, code: int) -> None:
    pids, temporary = tmp_path / "pids", tmp_path / "temporary"
    temporary.mkdir()
    host = ["sh", "-c", f'echo $$ > "{pids}"; exec sleep 100']
    command = [sys.executable, "-m", "claude_wire_kit", "conform", "--only", "prompt", "--", *host]
    nothing, environment = subprocess.DEVNULL, {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, env=environment, stdout=nothing, stderr=nothing, preexec_fn=heed_hangups)
    wait_until(lambda: pids.exists() and bool(pids.read_text().strip()))
    process.send_signal(number)
    assert process.wait(30) == code
    assert not is_alive(int(pids.read_text()))
    assert list(temporary.iterdir()) == []


def test_a_hangup_under_nohup_is_ignored() -> None:
    """The host sends SIGHUP to its parent, which runs on, and reports the host's verdict."""
    command = [sys.executable, "-m", "claude_wire_kit", "conform", "--only", "prompt", "--"]
    hosts = ["sh", "-c", 'kill -HUP $PPID; exec "$@"', "sh", *HOST]
    done = subprocess.run([*command, *hosts], capture_output=True, check=False, preexec_fn=ignore_hangups)
    assert (done.returncode, done.stderr) == (0, b"")
