"""Run a host through a scenario, and judge what it did."""

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

#: Environment variables of a host: the path of its CLI, and what it is asked to do.
CLI, TASK = "CLAUDE_WIRE_CONFORM_CLI", "CLAUDE_WIRE_CONFORM_TASK"
#: Seconds for which the agent may go on after its host has ended.
LAST_SECONDS = 5.0
#: Bytes of the host's standard error that are kept.
STDERR_BYTES = 4000

#: Verdicts, the worst first. "no longer fails" is an exception that is out of date.
VERDICTS = ("fail", "no longer fails", "known fault", "by design", "pass")
#: The first word of a reason that is no intention of the host's authors.
FAULT = "fault:"

#: Scenario -> rule -> why a host does not keep it.
Expected = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Finding:
    """A rule after a scenario."""

    rule: Rule
    #: What is wrong; None if the rule holds.
    wrong: str | None
    #: Why the host does not keep the rule by design; None if it is not known to.
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
    """A scenario that a host has run through."""

    scenario: Scenario
    seen: Evidence
    findings: list[Finding]

    @property
    def verdict(self) -> str:
        """The worst verdict of its rules."""
        verdicts = {finding.verdict for finding in self.findings}
        return next(one for one in VERDICTS if one in verdicts)

    @property
    def ok(self) -> bool:
        """True unless a rule is broken that should hold, or an exception is out of date."""
        return self.verdict not in ("fail", "no longer fails")


class Runner:
    """Runs one host through scenarios, perhaps in several threads.

    Args:
        command: the host. ``{cli}`` and ``{task}`` in it stand for the agent's path and for the task as JSON.
        limit: seconds after which the host is killed.
        expected: rules that the host does not keep by design.
        keep: a folder for the recordings of the agent: each gets a folder with the scenario's name.
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
        """Run the host through one scenario.

        Raises:
            OSError: the command cannot be started.
        """
        with tempfile.TemporaryDirectory(prefix="claude-wire-conform-") as folder:
            seen = self._seen(scenario, Path(folder))
            if self._keep is not None and seen.recording is not None:
                seen.recording.save(os.path.join(self._keep, scenario.name))
        return Outcome(scenario, seen, judge(scenario, seen, self._expected.get(scenario.name, {})))

    def kill(self) -> None:
        """Kill the hosts that run now, with what they have started, and those that are just being started."""
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
        """Run the host. Returns what it printed, and its exit code, or None if it was killed at the time limit."""
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
    """Write a session to disk: a host may look for it before it starts its CLI."""
    session = config / "projects" / "-work" / f"{id}.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(json.dumps({"type": "summary", "summary": "A session.", "leafUuid": id}) + "\n")


def judge(scenario: Scenario, seen: Evidence, reasons: Mapping[str, str]) -> list[Finding]:
    """Hold what a host did against the rules. Where it has not started the agent, no other rule is looked at."""
    rules = scenario.rules if seen.recording is not None else scenario.rules[:1]
    return [Finding(rule, rule.check(seen), reasons.get(rule.name)) for rule in rules]


def _end(record: Path, seconds: float) -> None:
    """Wait for the end of the agent, and kill it if it goes on without its host."""
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
