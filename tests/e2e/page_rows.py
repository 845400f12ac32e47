"""Turn the journal of a session and the elements of a page into rows of the same form, to compare them.

A row is a list: its kind, then the fields that identify it. The rows are ``["text", content]``, ``["tool", id, title,
state]``, ``["question", id, tool, outcome]``, ``["prompt", text]``, ``["notice", text]`` and ``["turn", ok]``. Each
text, tool call or question has one row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browsing import read_markdown
from claude_wire.codec.decoder import Decoder
from claude_wire.messages import ControlResponse
from claude_wire.testing import Recording
from claude_wire_kit.events import (
    Bridge,
    ClaudeResponse,
    Notice,
    Operation,
    PermissionCancelled,
    PermissionRequest,
    TurnComplete,
    UiEvent,
)
from claude_wire_kit.events.notices import FOR_ALL
from claude_wire_kit.supervisor.frames import INITIALIZE_ID

__all__ = ["ROWS", "Row", "journal_rows", "journaled"]

Row = list[Any]

#: JavaScript that returns the rows of the elements of a page, in the order of the page.
ROWS = """() => {
  const text = (one, selector) => {
    const found = one.querySelector(selector)?.cloneNode(true);
    for (const more of found?.querySelectorAll(".more, .hint") ?? []) more.remove();
    return found?.textContent ?? null;
  };
  const of = {
    response: (one) => ["text", text(one, ".body").trim().split(/\\s+/).join(" ")],
    operation: (one) => ["tool", one.dataset.id, text(one, ".row > .name"), one.dataset.state],
    question: (one) => ["question", one.dataset.id, text(one, ".tool"), one.dataset.outcome ?? "open"],
    prompt: (one) => ["prompt", text(one, ".body")],
    notice: (one) => ["notice", text(one, ".body")],
    turn: (one) => ["turn", one.dataset.ok === "true"],
  };
  const all = [...document.querySelectorAll("[data-kind]")].filter((one) => one.dataset.kind in of);
  return all.map((one) => of[one.dataset.kind](one));
}"""


def journaled(state: Path, session: str) -> list[tuple[str, bytes]]:
    """Read the journal of a session from the disk. Return pairs of a direction, ``in`` or ``out``, and a line."""
    found: list[tuple[str, bytes]] = []
    for part in sorted((state / "sessions" / session / "parts").iterdir()):
        steps = Recording.load(part).steps
        # The supervisor may still be writing the last line of a file.
        found += [(step.direction, step.data) for step in steps if step.data.endswith(b"\n")]
    return found


def journal_rows(lines: list[tuple[str, bytes]], *, partial: bool = True) -> list[Row]:
    """Return the rows that a page must show for the lines of a journal, computed with a separate Bridge.

    Args:
        lines: the lines that :func:`journaled` returns.
        partial: whether an unfinished text has a row.
    """
    ui = Bridge(partial=partial, details=True)
    decoder: Decoder[Any] = Decoder()
    rows: dict[object, Row] = {}
    for direction, line in lines:
        if direction == "in":
            _sent(json.loads(line), rows)
            continue
        for event in _events(ui, decoder, line):
            if isinstance(event, ClaudeResponse) and event.agentId is None:
                row = rows.setdefault(("text", event.id or len(rows)), ["text", ""])
                row[1] = row[1] + event.content if event.partial else event.content
            elif isinstance(event, Operation):
                rows.setdefault(("tool", event.id), ["tool", event.id, event.title, ""])[3] = event.state
            elif isinstance(event, PermissionRequest):
                rows["question", event.requestId] = ["question", str(event.requestId), event.tool, "open"]
            elif isinstance(event, PermissionCancelled):
                row = rows["question", event.requestId]
                row[3] = event.reason if row[3] == "open" else row[3]
            elif isinstance(event, Notice) and event.kind in FOR_ALL:
                rows[len(rows)] = ["notice", event.text]
            elif isinstance(event, TurnComplete):
                rows[len(rows)] = ["turn", event.ok]
    for row in rows.values():
        if row[0] == "text":
            row[1] = read_markdown(row[1])
    return [row for row in rows.values() if row != ["text", ""]]


def _events(ui: Bridge, decoder: Decoder[Any], line: bytes) -> Iterator[UiEvent]:
    for message in decoder.feed(line):
        if isinstance(message, ControlResponse) and message.request_id == INITIALIZE_ID:
            yield from ui.end()  # a new CLI process has started, so end what the previous one left open
        yield from ui.add(message)


def _sent(message: Any, rows: dict[object, Row]) -> None:
    """Add the row for a prompt sent to the CLI, or set the outcome of the question that a sent line answers."""
    if message["type"] == "user":
        rows["prompt", message["uuid"]] = ["prompt", message["message"]["content"]]
    elif message["type"] == "control_response":
        answer = message["response"]
        row = rows.get(("question", answer["request_id"]))
        if row is not None:
            row[3] = "allowed" if answer["response"]["behavior"] == "allow" else "denied"
