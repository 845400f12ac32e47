"""Format a supervisor's sessions as a table or as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

import msgspec

from claude_wire.support import one_line
from claude_wire_kit.commands.shared.json_output import time_as_json
from claude_wire_kit.supervisor.frames import Life, SessionInfo
from claude_wire_kit.terminal.columns import cell_count, fitted, shortened, terminal_width

HEADINGS = ("ID", "STATE", "AGE", "LINES", "SIZE", "CLIENTS", "NAME", "DIRECTORY")
GAP = "  "
#: The width of a session's name, and of the table if the output is not a terminal.
NAME_COLUMNS, PLAIN_COLUMNS = 14, 80


def is_over(session: SessionInfo) -> bool:
    """Return True if the session's CLI has exited, by itself or with its supervisor."""
    return session.life in (Life.ENDED, Life.LOST)


def session_as_json(session: SessionInfo) -> dict[str, Any]:
    """Return a session for ``supervisor ps --json``: its frame, with ``started`` instead of ``type`` and ``began``.

        {"supervisor": {"pid": int, "package": str, "version": int},
         "sessions": [{"id": str, "name": str or null, "life": str, "cwd": PATH, "epoch": int,
           "line": int, "pid": int or null, "cli_session_id": str or null, "started": TIME,
           "clients": int, "driver": bool, "bytes": int}, ...]}

    ``life`` is one of starting, idle, running, asking, ended, lost.
    """
    fields: dict[str, Any] = msgspec.to_builtins(session)
    del fields["type"]
    fields["started"] = time_as_json(datetime.fromtimestamp(fields.pop("began"), timezone.utc))
    return fields


def rows(sessions: Iterable[SessionInfo]) -> list[str]:
    """Return the rows of the table, the headings first. A long directory is cut at its beginning."""
    now = time.time()
    cells = [HEADINGS, *(_cells(session, now) for session in sessions)]
    widths = [max(map(cell_count, column)) for column in list(zip(*cells, strict=True))[:-1]]
    left = (terminal_width() or PLAIN_COLUMNS) - sum(widths) - len(GAP) * len(widths)
    lines: list[str] = []
    for row in cells:
        padded = [cell + " " * (width - cell_count(cell)) for cell, width in zip(row, widths, strict=False)]
        lines.append(GAP.join([*padded, fitted(row[-1], max(left, 1), keep_end=True)]).rstrip())
    return lines


def _cells(session: SessionInfo, now: float) -> tuple[str, ...]:
    others = session.clients - session.driver
    clients = "driver" + (f"+{others}" if others else "") if session.driver else str(others or "-")
    return (
        session.id,
        session.life.value,
        _age(now - session.began),
        _short(session.line),
        _short(session.bytes),
        clients,
        fitted(one_line(session.name or "-"), NAME_COLUMNS),
        one_line(session.cwd, 1000),
    )


def _age(seconds: float) -> str:
    for unit, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= unit:
            return f"{seconds / unit:.0f}{letter}"
    return f"{max(seconds, 0):.0f}s"


def _short(number: int) -> str:
    if number >= 10**6:
        return shortened(number)
    return f"{number / 1000:.0f}k" if number >= 10**4 else str(number)
