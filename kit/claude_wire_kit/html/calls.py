"""Calls of tools: each a part of the page that opens, with all that belongs to the call in it.

Knows calls, their results, and boxes of markup; not who calls.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import takewhile
from typing import Any

from claude_wire.messages import ToolResultBlock
from claude_wire.support import fields_of
from claude_wire_kit.events.changes import asked_change, done_change, without_change
from claude_wire_kit.html.blocks import content_markup
from claude_wire_kit.html.markup import Box, clock, inline, rows
from claude_wire_kit.terminal.calls import call_lines, call_name
from claude_wire_kit.terminal.excerpts import Cut

__all__ = ["INPUT", "Call", "Calls"]

#: How much of a tool's input is shown: lines of a text, characters of a line, members of an object.
INPUT: Cut = (2000, 20_000, 200)

#: Subagents of subagents stand in each other up to this depth; what is deeper stands beside the last.
MAX_DEPTH = 8

#: How calls end that did not go well, by ``non_execution_kind``.
DENIALS = {"interrupted": "interrupted", "user-rejected": "denied", "permission-rule": "denied"}

#: Who decides about a call, by ``source``.
DECIDERS = {"config": "the settings", "hook": "a hook"}


class Call:
    """The places of a call on the page, and how deep it is: 0 for one of the main conversation."""

    __slots__ = ("badge", "change", "depth", "expanded", "inside", "permission", "result", "said")

    def __init__(self, place: Box, depth: int) -> None:
        self.depth: int = depth
        self.expanded: Box = place.box()
        self.badge: Box = place.box()
        self.change: Box = place.box()
        self.permission: Box = place.box()
        self.said: Box = place.box()
        self.result: Box = place.box()
        #: Where what its subagent says is added; None until then. Browsers give up on what is nested too deeply.
        self.inside: Box | None = place if depth >= MAX_DEPTH else None

    def subagent(self) -> Box:
        """The place for what its subagent says, which gets a heading first."""
        if self.inside is None:
            self.inside = self.said.box()
            level = min(3 + self.depth, 6)
            self.said.add(f"<section class=agent><h{level}>Subagent</h{level}>", self.inside, "</section>")
        return self.inside


class Calls:
    """The calls of a page, by their ids. A call that found no room on the page is not kept."""

    def __init__(self) -> None:
        #: Also those that were not kept.
        self.count: int = 0
        self._calls: dict[str, Call] = {}

    def get(self, id: str | None) -> Call | None:
        """The call of this id."""
        return None if id is None else self._calls.get(id)

    def open(
        self, place: Box, id: str, name: str, given: Any = None, *, depth: int = 0, when: datetime | None = None
    ) -> Call:
        """Show a call."""
        self.count += 1
        call = Call(place, depth)
        change = asked_change(name, given)
        if change:
            call.change.set(rows(change, "diff"))
            call.expanded.set(" open")
        summary, more = _called(name, {} if given is None else without_change(name, given))
        shown = place.add(
            "<details class=call",
            call.expanded,
            f"><summary>{summary} {clock(when)} ",
            call.badge,
            f"</summary><div class=body>{more}",
            call.change,
            call.permission,
            call.said,
            call.result,
            "</div></details>",
        )
        if shown:
            self._calls[id] = call
        return call

    def end(self, result: ToolResultBlock, place: Callable[[], Box], output: Any = None, meta: Any = None) -> str:
        """Show the result of a call, and return how the call ended: done, failed, denied or interrupted.

        Args:
            place: where a result stands whose call was not seen.
            output: the tool's structured output, which has the change of a file.
            meta: what was decided about the call.
        """
        call = self._calls.get(result.tool_use_id) or self.open(place(), result.tool_use_id, "Result")
        about = fields_of(meta)
        denial = about.get("non_execution_kind")
        state = DENIALS.get(denial, "failed") if isinstance(denial, str) else "failed" if result.is_error else "done"
        if state != "done":
            call.expanded.set(" open")
        call.badge.set(f'<span class="badge {state}">{state}</span>')
        decided = fields_of(about.get("permission_decision"))
        if decided and not call.permission:
            call.permission.add(f"<p class=quiet>{_decision(decided)}</p>")
        patch = done_change(output)
        if patch:
            call.change.set(rows(patch, "diff"))
        shown = content_markup(result.content or (), plain=True)
        call.result.set(f"<div class={'output' if state == 'done' else 'failed'}>{shown}</div>" if shown else "")
        return state

    def close(self) -> None:
        """Say of each call that it has no result, unless it has."""
        for call in self._calls.values():
            if not call.badge:
                call.badge.add("<span class=badge>no result</span>")


def _called(name: str, given: Any) -> tuple[str, str]:
    """A call as people write it, on one line, and what else it is given."""
    title, told, whole = call_name(name), call_lines(name, given), call_lines(name, given, INPUT)
    first, rest = (lines[0].removeprefix(title).strip() for lines in (told, whole))
    summary = f"<b>{inline(title)}</b>" + (f" <code>{inline(first, 400)}</code>" if first else "")
    # What a call is mostly about comes first, and its further lines are further in than the other members.
    main = [line[6:] for line in takewhile(lambda line: line.startswith(" " * 6), whole[1:])]
    others = [line[4:] for line in whole[1 + len(main) :]]
    # The summary's line is repeated only where it is the beginning of more.
    more = rows([rest, *main]) if main or rest != first else ""
    return summary, more + (rows(others) if others else "")


def _decision(decided: dict[str, Any]) -> str:
    verb = {"accept": "Allowed", "reject": "Denied"}.get(str(decided.get("decision")), "Decided")
    source = str(decided.get("source") or "")
    by = DECIDERS.get(source) or ("the user" if source.startswith("user") else source)
    return f"{verb} by {inline(by)}" if by else verb
