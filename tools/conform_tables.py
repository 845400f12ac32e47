"""Describe the scenarios of ``claude-wire conform``, and which rules hosts break, for the page how-to/conform.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from claude_wire_kit.conform.rules import Rule
from claude_wire_kit.conform.scenarios import SCENARIOS

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "conform"
#: Host -> the file that lists which rules it breaks, and why. The other hosts follow all rules.
EXPECTED = {
    "claude-agent-sdk": EXAMPLES / "agent_sdk.json",
    "TypeScript SDK": EXAMPLES / "typescript.json",
    "Rust, no SDK": EXAMPLES / "rust.json",
}


def scenarios() -> str:
    """Return the list of scenarios in Markdown: rules that several scenarios share, then a row for each scenario."""
    counts = Counter((rule.name, rule.says) for scenario in SCENARIOS.values() for rule in scenario.rules)
    shared = {name: says for (name, says), count in reversed(counts.most_common()) if count > 1}
    everywhere = {name: says for name, says in shared.items() if counts[name, says] > len(SCENARIOS) // 2}
    lines = ["Every scenario has these rules, unless its row has another rule of the same name:", ""]
    lines += [f"- `{name}`: {says}" for name, says in everywhere.items()]
    lines += ["", "Several scenarios share these rules. Their rows have only the name of such a rule:", ""]
    lines += [f"- `{name}`: {says}" for name, says in shared.items() if name not in everywhere]
    lines += ["", "| scenario | the agent | rules |", "|---|---|---|"]
    for scenario in SCENARIOS.values():
        rules = [_in_short(rule, shared) for rule in scenario.rules if not _continues(rule, everywhere)]
        lines.append(f"| `{scenario.name}` | {scenario.does} | {'<br>'.join(rules)} |")
    return "\n".join(lines)


def _continues(rule: Rule, everywhere: Mapping[str, str]) -> bool:
    """Return True if the rule is one of ``everywhere``, or is such a rule with the task's flags added."""
    return rule.name in everywhere and rule.says.startswith(everywhere[rule.name].removesuffix("."))


def _in_short(rule: Rule, shared: Mapping[str, str]) -> str:
    """Return a rule's name, followed by the rule's text if it differs from the shared text."""
    return f"`{rule.name}`" if rule.says == shared.get(rule.name) else f"`{rule.name}`: {rule.says}"


def exceptions() -> str:
    """Return a table with the rules that hosts break. Scenarios that a host fails for the same reason share a row."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for host, path in EXPECTED.items():
        for scenario, reasons in json.loads(path.read_text(encoding="utf-8")).items():
            for reason in dict.fromkeys(reasons.values()):
                rules = ", ".join(f"`{rule}`" for rule in reasons if reasons[rule] == reason)
                found.setdefault((host, rules, reason), []).append(f"`{scenario}`")
    lines = ["| host | scenario | verdict | broken rules |", "|---|---|---|---|"]
    for (host, rules, reason), of in found.items():
        verdict = "known fault" if reason.startswith("fault: ") else "by design"
        lines.append(f"| {host} | {', '.join(of)} | {verdict} | {rules}: {reason.removeprefix('fault: ')} |")
    return "\n".join(lines)
