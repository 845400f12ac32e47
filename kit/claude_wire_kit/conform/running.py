"""Run a host in a scenario, and check what it did."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from claude_wire.testing import Recording
from claude_wire_kit.conform.evidence import Evidence
from claude_wire_kit.conform.rules import Rule
from claude_wire_kit.conform.scenarios import Scenario

#: The environment variables with the path of the host's CLI, and with its task.
CLI, TASK = "CLAUDE_WIRE_CONFORM_CLI", "CLAUDE_WIRE_CONFORM_TASK"
#: How many seconds the agent may keep running after its host has exited.
LAST_SECONDS = 5.0
#: How many bytes to keep from the end of the host's standard error.
STDERR_BYTES = 4000

#: All verdicts, the worst first. "no longer fails" means that the host keeps a rule that it is expected to break.
VERDICTS = ("fail", "no longer fails", "known fault", "by design", "pass")
#: The first word of the reason for breaking a rule, if it is a known fault of the host and not intended.
FAULT = "fault:"

#: The rules that a host is expected to break, with the reasons: scenario -> rule -> reason.
Expected = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Finding:
    """Whether the host kept a rule in a scenario."""

    rule: Rule
    #: What is wrong. None if the host kept the rule.
    wrong: str | None
    #: Why the host is expected to break the rule. None if it is expected to keep it.
    reason: str | None

    @property
    def verdict(self) -> str:
        """One of :data:`VERDICTS`."""
        if self.wrong is None:
            return "pass" if self.reason is None else "no longer fails"
        if self.reason is None:
            return "fail"
        return "known fault" if self.reason.startswith(FAULT) else "by design"


@dataclass(frozen=True)
class Outcome:
    """A scenario, with the evidence and the finding for each rule."""

    scenario: Scenario
    seen: Evidence
    findings: list[Finding]

    @property
    def verdict(self) -> str:
        """The worst verdict of the rules."""
        verdicts = {finding.verdict for finding in self.findings}
        return next(one for one in VERDICTS if one in verdicts)

    @property
    def ok(self) -> bool:
        """True if the host broke exactly the rules that it is expected to break."""
        return self.verdict not in ("fail", "no longer fails")


class Runner:
    """Runs a host in scenarios. Several threads may use it at the same time.

    Args:
        command: the command that starts the host. In it, ``{cli}`` is replaced by the path of the agent, and
            ``{task}`` by the task as JSON.
        limit: the host is killed after this many seconds.
        expected: the rules that the host is expected to break.
        keep: a folder for the agent's recordings. Each is stored in a subfolder with the name of the scenario.
    """

    def __init__(
        self, command: Sequence[str], limit: float = 60.0, expected: Expected | None = None, keep: str | None = None
    ) -> None:
        self._command = command
        self._limit = limit
        self._expected = expected or {}
        self._keep = keep
        self._running: set[subprocess.Popen[bytes]] = set()
        self._killed = False

    def run(self, scenario: Scenario) -> Outcome:
        """Run the host in one scenario.

        Raises:
            OSError: the command cannot be started.
        """
        with tempfile.TemporaryDirectory(prefix="claude-wire-conform-") as folder:
            seen = self._seen(scenario, Path(folder))
            if self._keep is not None and seen.recording is not None:
                seen.recording.save(os.path.join(self._keep, scenario.name))
        # If the host did not start the agent, check only the first rule: the host starts the agent.
        rules = scenario.rules if seen.recording is not None else scenario.rules[:1]
        reasons = self._expected.get(scenario.name, {})
        return Outcome(scenario, seen, [Finding(rule, rule.check(seen), reasons.get(rule.name)) for rule in rules])

    def kill(self) -> None:
        """Kill all running hosts, the processes that they started, and hosts that another thread is starting."""
        self._killed = True
        for host in [*self._running]:
            with suppress(ProcessLookupError):
                os.killpg(host.pid, signal.SIGKILL)

    def _seen(self, scenario: Scenario, folder: Path) -> Evidence:
        record, cli = folder / "recording", folder / "claude"
        record.mkdir()
        alarm = str(round(self._limit + LAST_SECONDS) + 1)
        program = [sys.executable, "-I", "-m", "claude_wire_kit.conform.agent", scenario.name, str(record), alarm]
        cli.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n')
        cli.chmod(0o700)
        task = scenario.task_as_json()
        if "resume" in scenario.task:
            _store_session(folder / "config", scenario.task["resume"])
        env = {**os.environ, CLI: str(cli), TASK: task, "CLAUDE_CONFIG_DIR": str(folder / "config")}
        argv = [part.replace("{cli}", str(cli)).replace("{task}", task) for part in self._command]
        began = monotonic()
        with open(folder / "stderr", "w+b") as stderr:
            stdout, code = self._run(argv, env, stderr.fileno())
            seconds = monotonic() - began
            stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - STDERR_BYTES))
            last = stderr.read().decode(errors="replace")
        _end(record, LAST_SECONDS if code is not None else 0.0)
        recording = Recording.load(record) if (record / "stdout.ndjson").exists() else None
        return Evidence(stdout, code, seconds, self._limit, recording, last)

    def _run(self, argv: Sequence[str], env: Mapping[str, str], stderr: int) -> tuple[bytes, int | None]:
        """Run the host. Return what it printed, and its exit code, which is None if it was killed at the time limit."""
        nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
        host = subprocess.Popen(argv, env=env, stdin=nothing, stdout=pipe, stderr=stderr, start_new_session=True)
        self._running.add(host)
        if self._killed:
            self.kill()
        try:
            return host.communicate(timeout=self._limit)[0], host.returncode
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(host.pid, signal.SIGKILL)
            return host.communicate()[0], None
        finally:
            self._running.discard(host)


def _store_session(config: Path, id: str) -> None:
    """Write a session to disk, because a host may check that it exists before starting the CLI to resume it."""
    session = config / "projects" / "-work" / f"{id}.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"type": "summary", "summary": "A session.", "leafUuid": id}) + "\n")


def _end(record: Path, seconds: float) -> None:
    """Wait until the agent exits. Kill it if it is still running after ``seconds``."""
    command, ended = record / "cmd.json", record / "exit.json"
    if not command.exists():
        return
    deadline = monotonic() + seconds
    pid = json.loads(command.read_bytes())["pid"]
    while not ended.exists() and monotonic() < deadline and _is_alive(pid):
        sleep(0.02)
    if not ended.exists():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
