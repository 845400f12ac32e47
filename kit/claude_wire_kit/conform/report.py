"""Write what ``claude-wire conform`` prints: a few lines for each scenario, a table, or one JSON object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from claude_wire import PROTOCOL_VERSION
from claude_wire_kit.conform.evidence import Object
from claude_wire_kit.conform.running import Outcome


def in_words(outcome: Outcome) -> list[str]:
    """Describe a scenario: what the host was asked to do, what it did, and which rules it broke."""
    lines = [
        f"{outcome.scenario.name}: {outcome.verdict}",
        f"  agent: {outcome.scenario.does}",
        f"  asked: {outcome.scenario.asks()}",
        f"  host:  {outcome.seen.summary()}, after {outcome.seen.seconds:.1f} s",
    ]
    for finding in outcome.findings:
        if finding.verdict != "pass":
            lines.append(f"  {finding.verdict}: {finding.rule.name}: {finding.rule.says}")
        if finding.wrong is not None:
            lines.append(f"    found: {finding.wrong}")
        if finding.reason is not None:
            lines.append(f"    known: {finding.reason}")
    if not outcome.ok:
        lines += [f"  stderr: {line}" for line in outcome.seen.stderr_lines[-3:]]
    return lines


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a table with a row for each scenario, and a line that counts the verdicts."""
    width = max(len(name) for name in ("scenario", *(outcome.scenario.name for outcome in outcomes)))
    lines = [f"{'scenario':{width}}  {'verdict':14}  broken rules"]
    for outcome in outcomes:
        broken = ", ".join(finding.rule.name for finding in outcome.findings if finding.verdict != "pass")
        lines.append(f"{outcome.scenario.name:{width}}  {outcome.verdict:14}  {broken}".rstrip())
    counts = Counter(outcome.verdict for outcome in outcomes)
    return [*lines, ", ".join(f"{count} {verdict}" for verdict, count in counts.items())]


def report_as_json(command: Sequence[str], outcomes: Iterable[Outcome]) -> Object:
    """Return the object that ``conform --json`` prints.

        {"command": [str, ...], "protocol": str, "ok": bool, "scenarios": [SCENARIO, ...]}
        SCENARIO: {"name": str, "verdict": VERDICT, "ok": bool, "agent": str, "asked": str,
          "host": str, "seconds": number, "rules": [RULE, ...]}
        RULE: {"name": str, "says": str, "verdict": VERDICT, "found": str or null,
          "known": str or null}
        VERDICT: "pass", "fail", "by design", "known fault" or "no longer fails"

    ``agent``, ``asked`` and ``host`` say in words what the agent does, what the host was asked to do, and what it did.
    ``found`` is what is wrong, ``known`` the reason in the file of ``--expect``.
    """
    scenarios = [_outcome_as_json(outcome) for outcome in outcomes]
    return {
        "command": list(command),
        "protocol": PROTOCOL_VERSION,
        "ok": all(outcome["ok"] for outcome in scenarios),
        "scenarios": scenarios,
    }


def _outcome_as_json(outcome: Outcome) -> Object:
    return {
        "name": outcome.scenario.name,
        "verdict": outcome.verdict,
        "ok": outcome.ok,
        "agent": outcome.scenario.does,
        "asked": outcome.scenario.asks(),
        "host": outcome.seen.summary(),
        "seconds": round(outcome.seen.seconds, 2),
        "rules": [
            {
                "name": finding.rule.name,
                "says": finding.rule.says,
                "verdict": finding.verdict,
                "found": finding.wrong,
                "known": finding.reason,
            }
            for finding in outcome.findings
        ],
    }
