"""Read the state tables of docs/supervisor.md, so a test can check the code against the page."""

from __future__ import annotations

import re

from folders import ROOT

__all__ = ["DRIVERS", "LIVES", "QUESTIONS"]

PAGE = (ROOT / "docs" / "supervisor.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table in a section, without the header."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section[section.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[2:]]


def one_of(cell: str, meanings: dict[str, str]) -> str | None:
    """Return the meaning of the only pattern that matches a cell; None for an empty cell."""
    if not cell:
        return None
    (found,) = (meaning for pattern, meaning in meanings.items() if re.match(pattern, cell))
    return found


def _lives() -> dict[str, set[str]]:
    rows = table("A session's life")
    return {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2])) for row in rows}


def _questions() -> dict[str, dict[str, str | None]]:
    meanings = {
        r"(.*: )?answered$": "answered",
        r"withdrawn$": "withdrawn",
        r"died\b": "died",
        r"it is acknowledged, and not written$": "not written",
    }
    events = ("answer", "withdraw", "end")
    return {
        state: {event: one_of(cell, meanings) for event, cell in zip(events, cells, strict=True)}
        for states, *cells in table("A question")
        for state in states.partition(":")[0].split(", ")
    }


def _drivers() -> dict[bool, dict[str, str | None]]:
    meanings = {
        r"it drives$": "driver",
        r"it drives\. The old driver gets `supervisor_driver` and is a viewer$": "replaces",
        r"it is refused: error `driver`$": "refused",
        r"nobody drives, and viewers get `supervisor_driver`$": "nobody",
    }
    events = ("ask", "take", "leave")
    return {
        who == "somebody drives": {event: one_of(cell, meanings) for event, cell in zip(events, cells, strict=True)}
        for who, *cells in table("The driver")
    }


#: ``life`` of a session -> its possible next values.
LIVES = _lives()
#: State of a question and event -> its next state; None if nothing changes, ``"not written"`` if the answer comes too
#: late.
QUESTIONS = _questions()
#: Whether the session has a driver, and an event -> the outcome for the client that asks: ``driver``, ``refused``,
#: ``replaces``, or ``nobody`` if the session has no driver afterwards.
DRIVERS = _drivers()
