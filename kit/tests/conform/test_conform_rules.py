"""A host that keeps every rule passes every scenario; for each rule, a host that breaks it fails this rule alone."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from claude_wire_kit.conform.rules import Rule
from claude_wire_kit.conform.running import Outcome, Runner
from claude_wire_kit.conform.scenarios import SCENARIOS
from each import each

HOSTS = Path(__file__).with_name("hosts.py")
#: ``-S`` skips the installed packages, so that a host starts in a tenth of the time.
COMMAND = [sys.executable, "-S", str(HOSTS)]


def imported_hosts() -> ModuleType:
    """Import ``hosts.py`` with an empty task, because the module reads its task at import."""
    spec = importlib.util.spec_from_file_location("conform_hosts", HOSTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_WIRE_CONFORM_TASK", '{"acts": []}')
        patch.setenv("CLAUDE_WIRE_CONFORM_CLI", os.devnull)
        spec.loader.exec_module(module)
    return module


BAD: dict[str, tuple[str, str]] = {kind.__name__: where for kind, where in imported_hosts().BAD.items()}


def broken(outcome: Outcome) -> list[str]:
    return [finding.rule.name for finding in outcome.findings if finding.wrong is not None]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_host_that_keeps_every_rule_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if SCENARIOS[name].lingers:
        monkeypatch.setenv("PATIENCE", "1")
    outcome = Runner(COMMAND).run(SCENARIOS[name])
    assert [(finding.rule.name, finding.wrong) for finding in outcome.findings if finding.wrong] == []
    assert (outcome.verdict, len(outcome.findings)) == ("pass", len(SCENARIOS[name].rules))


@pytest.mark.parametrize("host", BAD)
def test_a_host_that_breaks_a_rule_fails_this_rule_alone(host: str) -> None:
    scenario, rule = BAD[host]
    outcome = Runner([*COMMAND, host]).run(SCENARIOS[scenario])
    assert (outcome.verdict, broken(outcome)) == ("fail", [rule])


def test_each_rule_has_a_host_that_breaks_it() -> None:
    names = {rule.name for scenario in SCENARIOS.values() for rule in scenario.rules}
    assert names - {rule for _, rule in BAD.values()} == set()


@each("name", SCENARIOS, str)
def test_the_rules_of_a_scenario_have_names_of_their_own(name: str) -> None:
    rules: list[Rule] = list(SCENARIOS[name].rules)
    assert len({rule.name for rule in rules}) == len(rules)
