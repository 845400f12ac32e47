"""The hosts of examples/conform, held against the scenarios: real SDKs, a session, and a host in another language."""

from __future__ import annotations

from pathlib import Path

import pytest

import conform_hosts
from conform_hosts import Host
from conform_tables import EXAMPLES


@pytest.mark.parametrize("host", conform_hosts.hosts(), ids=lambda host: host.name)
def test_a_host_breaks_only_the_rules_that_the_page_lists(host: Host) -> None:
    outcomes = conform_hosts.run(host)
    wrong = [
        (one.scenario.name, finding.rule.name, finding.verdict, finding.wrong, one.seen.stderr_lines[-3:])
        for one in outcomes
        for finding in one.findings
        if finding.verdict in ("fail", "no longer fails")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("file", "most"), [("agent_sdk.py", 60), ("session.py", 60), ("typescript.mjs", 60), ("rust/src/main.rs", 150)]
)
def test_a_host_is_short(file: str, most: int) -> None:
    lines = Path(EXAMPLES, file).read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith("//")]
    assert len(code) <= most
