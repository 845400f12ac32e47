"""Show the result of ``check`` as text for people, or as JSON for programs.

Both contain nothing from the lines except the names of types and fields, which are safe to print, and the reasons why
something is unknown or invalid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from claude_wire import PROTOCOL_VERSION
from claude_wire.messages import InvalidLine
from claude_wire_kit.survey.check import MAX_FINDINGS, Seen, Summary
from claude_wire_kit.survey.fields import Finding


def invalid_as_text(line: InvalidLine) -> str:
    return f"  line {line.line_number}, byte {line.offset}: {line.reason}"


def summary_as_text(summary: Summary, *, name_sources: bool = False) -> Iterator[str]:
    """Yield the lines of the text. With ``name_sources``, the lines name the first file with each finding."""
    yield (
        f"  {counted(summary.lines, 'line')}, {counted(summary.bytes, 'byte')}: "
        f"{counted(summary.messages, 'message')}, {summary.invalid:,} invalid"
    )
    width = max((len(f"{count:,}") for count in summary.kinds.values()), default=0)
    for kind, count in sorted(summary.kinds.items()):
        yield f"    {count:>{width},}  {kind}"
    if summary.findings:
        yield f"  not known to this version, which describes the protocol of CLI {PROTOCOL_VERSION}:"
    for finding, seen in _sorted(summary):
        where = f"{seen.source}, line {seen.line_number}" if name_sources else f"line {seen.line_number}"
        yield f"    {seen.times:,} x {_finding_as_text(finding)} (first in {where})"
    if summary.more:
        yield f"    {summary.more:,} x others, beyond the first {MAX_FINDINGS:,} that differ"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun: "1 line", "1,000 lines". The plural is by default the noun with an "s"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _sorted(summary: Summary) -> list[tuple[Finding, Seen]]:
    """Return the findings sorted by what they are, with fields at the end, and then by path."""
    return sorted(
        summary.findings.items(), key=lambda item: (item[0].what == "field", item[0].what, item[0].path, item[0])
    )


def _finding_as_text(finding: Finding) -> str:
    what, name, path, reason = finding
    if what == "field":
        return f"field {path}"
    named = f'{what} "{name}"' if name else f"{what} without a name"
    place = "" if what in ("type", "message") else f" at {path}"
    # The heading already says that it is unknown.
    return f"{named}{place}" if reason.startswith("unknown ") else f"{named}{place}: {reason}"


def invalid_as_json(line: InvalidLine) -> dict[str, Any]:
    return {
        "line": line.line_number,
        "offset": line.offset,
        "length": line.length,
        "kind": line.kind,
        "reason": line.reason,
    }


def summary_as_json(summary: Summary, *, name_sources: bool = False) -> dict[str, Any]:
    """Return the summary for ``--json``, as documented in docs/how-to/command-line.md.

    The caller adds the name of the stream and its invalid lines.
    """
    return {
        "bytes": summary.bytes,
        "lines": summary.lines,
        "messages": summary.messages,
        "invalid": summary.invalid,
        "kinds": dict(sorted(summary.kinds.items())),
        "unknown": [
            {
                **finding._asdict(),
                "count": seen.times,
                "first_line": seen.line_number,
                **({"first_path": seen.source} if name_sources else {}),
            }
            for finding, seen in _sorted(summary)
        ],
        "unknown_not_listed": summary.more,
    }
