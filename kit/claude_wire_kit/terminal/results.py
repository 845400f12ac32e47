"""How a turn ended, and what it has cost. Knows results; not where the lines go. All text is safe to print."""

from __future__ import annotations

from claude_wire import messages
from claude_wire.support import one_line
from claude_wire_kit.events.names import why_failed
from claude_wire_kit.terminal.excerpts import CUT, Cut, detail, excerpt, fields
from claude_wire_kit.terminal.notices import ERROR, QUIET, Notice
from claude_wire_kit.usage.meter import Totals

__all__ = ["result_notices", "token_counts"]


def result_notices(result: messages.ResultMessage, turn: Totals | None, cut: Cut = CUT) -> list[Notice]:
    """The errors of a result, its structured output, and its facts, but not its text.

    Args:
        turn: what the turn has used; None if that is not known.
        cut: how much of the structured output is shown.
    """
    told = [Notice("\n".join(f"! {line}" for line in excerpt(error)), ERROR) for error in result.errors or ()]
    if result.error is not None:
        told.append(Notice(f"! {detail(result.error.message)}", ERROR))
    if result.structured_output is not None:
        lines = fields(result.structured_output, cut)
        told.append(Notice("\n  ".join(["= structured output:", *lines]), "green"))
    facts = ["ok" if result.ok else f"not ok ({one_line(why_failed(result))})", *_cost(result, turn)]
    if result.num_turns is not None:
        facts.append(f"turns: {result.num_turns}")
    if result.duration_ms is not None:
        facts.append(f"{result.duration_ms / 1000:.2f} s")
    if result.permission_denials:
        facts.append(f"denied: {len(result.permission_denials)}")
    told.append(Notice(f"= {', '.join(facts)}", "bold green" if result.ok else "bold red"))
    used = result.usage
    if used is not None:
        told.append(Notice(f"  tokens without subagents: {token_counts(used)}", QUIET))
    return told


def token_counts(used: messages.Usage) -> str:
    """How many tokens came in, how many of these out of the cache, and how many went out."""
    cached = f" and {used.cache_read_input_tokens:,} from the cache" if used.cache_read_input_tokens else ""
    return f"{used.input_tokens or 0:,} in{cached}, {used.output_tokens or 0:,} out"


def _cost(result: messages.ResultMessage, turn: Totals | None) -> list[str]:
    """What the turn has cost, and the session so far where that is more; nothing for a result without a cost."""
    total = result.total_cost_usd
    if turn is None or total is None:
        return []
    cost = f"${turn.cost_usd:.6f}"
    return [cost] if cost == f"${total:.6f}" else [f"{cost} of ${total:.6f} in this session"]
