"""Format notices, permission questions and turn ends as lines that begin with a mark such as ``!``.

The terminal prints these lines, and the HTML page shows them in boxes. The text is safe to print.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

from claude_wire.support import one_line, printable
from claude_wire_kit.events.events import Notice, NoticeKind, NoticeLevel, PermissionRequest, Tokens, TurnComplete
from claude_wire_kit.terminal.excerpts import CUT, Cut, detail, excerpt, fields

ERROR, WARNING, QUIET = "bold red", "yellow", "dim"

#: Kind of a notice -> its mark and style.
KINDS: dict[NoticeKind, tuple[str, str]] = {
    "error": ("! ", ERROR),
    "invalid_line": ("! ", ERROR),
    "retry": ("! ", WARNING),
    "auth": ("! sign-in: ", WARNING),
    "rate_limit": ("! ", WARNING),
    "warning": ("! ", WARNING),
    "info": ("* ", QUIET),
    "status": ("* ", QUIET),
    "hook": ("# ", QUIET),
    "question": ("? ", QUIET),
    "allowed": ("? ", "green"),
    "denied": ("? ", "red"),
    "host": ("< ", QUIET),
}
#: Level of a notice -> its style.
LEVELS: dict[NoticeLevel, str] = {"error": ERROR, "warning": WARNING}


class Lines(NamedTuple):
    """Lines of text, and their style."""

    text: str
    style: str = QUIET


def draw_notice(notice: Notice) -> Lines:
    """Return a notice's lines, without the text of an invalid line."""
    if notice.level == "plain":
        return Lines(printable(notice.text), "")
    if notice.kind in ("block", "cut_off"):
        return Lines(f"[{one_line(notice.text)}]" if notice.kind == "block" else f"({notice.text})")
    mark, style = KINDS[notice.kind]
    if notice.level is not None:
        style = LEVELS[notice.level]
    until = "" if notice.until is None else f", until {_time(notice.until)}"
    lines = [f"{mark}{detail(notice.text)}{until}".rstrip()]
    if notice.fields is not None:
        first, *lines[1:] = fields(notice.fields)
        lines[0] = f"{lines[0]} {first}"
    elif notice.kind == "allowed":
        lines += (notice.detail or "").splitlines()
    elif notice.detail is not None and notice.kind != "invalid_line":
        lines += excerpt(notice.detail)
    return Lines("\n    ".join(lines), style)


def _time(seconds: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def draw_question(asked: PermissionRequest) -> Lines:
    """Return a permission question's lines, without the tool's input."""
    lines = [f"? {detail(asked.question or asked.tool)}"]
    if asked.description and asked.description != asked.question:
        lines.append(detail(asked.description))
    if asked.reason:
        lines.append(f"because: {detail(asked.reason)}")
    if asked.path:
        lines.append(f"path: {detail(asked.path)}")
    return Lines("\n    ".join(lines), WARNING)


def draw_turn(turn: TurnComplete, cut: Cut = CUT) -> list[Lines]:
    """Return the lines at a turn's end: its errors, its structured output, and its statistics.

    Args:
        cut: the limits for the structured output.
    """
    drawn = [Lines("\n".join(f"! {line}" for line in excerpt(error)), ERROR) for error in turn.errors or ()]
    if turn.output is not None:
        drawn.append(Lines("\n  ".join(["= structured output:", *fields(turn.output, cut)]), "green"))
    facts = ["ok" if turn.ok else f"not ok ({one_line(turn.reason or '')})"]
    if turn.costUsd is not None and turn.sessionCostUsd is not None:
        cost, total = f"${turn.costUsd:.6f}", f"${turn.sessionCostUsd:.6f}"
        facts.append(cost if cost == total else f"{cost} of {total} in this session")
    if turn.turns is not None:
        facts.append(f"answers: {turn.turns}")
    if turn.durationMs is not None:
        facts.append(f"{turn.durationMs / 1000:.2f} s")
    if turn.denied:
        facts.append(f"denied: {turn.denied}")
    drawn.append(Lines(f"= {', '.join(facts)}", "bold green" if turn.ok else "bold red"))
    if turn.tokens is not None:
        drawn.append(Lines(f"  tokens without subagents: {draw_tokens(turn.tokens)}"))
    return drawn


def draw_tokens(used: Tokens) -> str:
    """Describe token counts in words."""
    cached = f" and {used.cached:,} from the cache" if used.cached else ""
    return f"{used.input:,} in{cached}, {used.output:,} out"
