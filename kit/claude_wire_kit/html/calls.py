"""Show tool calls on the page. Each call is a part that can be opened, with everything that belongs to the call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import takewhile
from typing import Any

from claude_wire_kit.events.changes import without_change
from claude_wire_kit.events.events import Operation
from claude_wire_kit.events.tools import call_name
from claude_wire_kit.html.markup import Box, clock, inline, parts_markup, rows
from claude_wire_kit.terminal.calls import call_lines
from claude_wire_kit.terminal.excerpts import Cut

#: How much of a tool's input is shown: the lines of text, the characters of a line, and the fields of an object.
INPUT: Cut = (2000, 20_000, 200)

#: Calls of subagents are shown inside the subagent's call up to this depth. Deeper ones are not nested further.
MAX_DEPTH = 8


class Call:
    """A call's boxes on the page, and its depth, which is 0 for a call in the main conversation."""

    __slots__ = ("badge", "change", "depth", "expanded", "inside", "permission", "result", "said")

    def __init__(self, place: Box, depth: int) -> None:
        self.depth: int = depth
        self.expanded: Box = place.box()
        self.badge: Box = place.box()
        self.change: Box = place.box()
        self.permission: Box = place.box()
        self.said: Box = place.box()
        self.result: Box = place.box()
        #: The box for what the call's subagent says. It is None until the subagent says something. A call at the
        #: greatest depth uses the surrounding box, because browsers cannot show any depth.
        self.inside: Box | None = place if depth >= MAX_DEPTH else None

    def subagent(self) -> Box:
        """Return the box for what the call's subagent says. If there is none yet, create one with a heading."""
        if self.inside is None:
            self.inside = self.said.box()
            level = min(3 + self.depth, 6)
            self.said.add(f"<section class=agent><h{level}>Subagent</h{level}>", self.inside, "</section>")
        return self.inside


class Calls:
    """The calls on a page by their ids, except those that did not fit on the page."""

    def __init__(self) -> None:
        #: The number of all calls, including those that did not fit on the page.
        self.count: int = 0
        self._calls: dict[str, Call] = {}

    def get(self, id: str | None) -> Call | None:
        return None if id is None else self._calls.get(id)

    def open(self, place: Box, event: Operation, *, depth: int = 0, when: datetime | None = None) -> Call:
        self.count += 1
        call, name = Call(place, depth), event.name or ""
        if event.change is not None:
            call.change.set(rows(event.change, "diff"))
            call.expanded.set(" open")
        summary, more = _called(name, {} if event.input is None else without_change(name, event.input))
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
            self._calls[event.id] = call
        return call

    def end(self, event: Operation, place: Callable[[], Box]) -> None:
        """Show the result of a call.

        Args:
            place: returns the box for the result, if its call is not on the page.
        """
        call = self._calls.get(event.id)
        if call is None:
            call = self.open(place(), Operation(id=event.id, kind="other", title="", name="Result", state="started"))
        state = "done" if event.state == "succeeded" else event.state
        if state != "done":
            call.expanded.set(" open")
        code = "" if event.exitCode is None else f", exit code {event.exitCode}"
        call.badge.set(f'<span class="badge {state}">{state}{code}</span>')
        if event.decision is not None and not call.permission:
            call.permission.add(f"<p class=quiet>{inline(event.decision)}</p>")
        if event.change is not None:
            call.change.set(rows(event.change, "diff"))
        shown = parts_markup(event.content or (), plain=True)
        call.result.set(f"<div class={'output' if state == 'done' else 'failed'}>{shown}</div>" if shown else "")

    def close(self) -> None:
        for call in self._calls.values():
            if not call.badge:
                call.badge.add("<span class=badge>no result</span>")


def _called(name: str, given: Any) -> tuple[str, str]:
    """Return two pieces of HTML: a call in one line, as a person would write it, and the rest of its input."""
    title, told, whole = call_name(name), call_lines(name, given), call_lines(name, given, INPUT)
    first, rest = (lines[0].removeprefix(title).strip() for lines in (told, whole))
    summary = f"<b>{inline(title)}</b>" + (f" <code>{inline(first, 400)}</code>" if first else "")
    # The lines after the first are the rest of the main field, which is indented further, and then the other fields.
    main = [line[6:] for line in takewhile(lambda line: line.startswith(" " * 6), whole[1:])]
    others = [line[4:] for line in whole[1 + len(main) :]]
    # The main field's first line is in the summary. Repeat it only if more lines follow it.
    more = rows([rest, *main]) if main or rest != first else ""
    return summary, more + (rows(others) if others else "")
