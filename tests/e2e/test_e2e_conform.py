"""The hosts of examples/conform, held against the scenarios: real SDKs, a session, and a host in another language."""

from __future__ import annotations

from pathlib import Path

import pytest

import conform_page
from conform_page import Host


@pytest.mark.parametrize("host", conform_page.hosts(), ids=lambda host: host.name)
def test_a_host_does_what_the_page_says(host: Host) -> None:
    outcomes = conform_page.run(host)
    wrong = [
        (one.scenario.name, finding.rule.name, finding.verdict, finding.wrong, one.seen.stderr_lines[-3:])
        for one in outcomes
        for finding in one.findings
        if finding.verdict in ("fail", "no longer fails")
    ]
    assert wrong == []
    page = conform_page.section(conform_page.PAGE.read_text(encoding="utf-8"), "table")
    assert conform_page.column(page, host) == conform_page.cells(outcomes)


@pytest.mark.parametrize(
    ("file", "most"), [("agent_sdk.py", 60), ("session.py", 60), ("typescript.mjs", 60), ("rust/src/main.rs", 150)]
)
def test_a_host_is_short(file: str, most: int) -> None:
    lines = Path(conform_page.EXAMPLES, file).read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
    assert len(code) <= most
