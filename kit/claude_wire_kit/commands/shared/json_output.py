"""The output of ``--json``, one object on one line, in ASCII; and of ``--csv``, with the same keys and values."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click

from claude_wire.support import fields_of, items_of, prose


def print_json(value: dict[str, Any]) -> None:
    r"""Print an object. A lone surrogate in text becomes U+FFFD, because many JSON parsers refuse it.

    The value of a ``path`` is not changed. If the path is not UTF-8, it has surrogates from ``\udc80`` to ``\udcff``.
    Python can open the file with this path.
    """
    click.echo(json.dumps(_with_whole_pairs(value)))


def print_csv(keys: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Print a line with the keys, then one for each row. None is an empty cell, and a bool is written as in JSON.

    Invisible characters are escaped as in the other texts of the commands, because the output may be a terminal.
    """
    import csv

    table = csv.DictWriter(sys.stdout, keys, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({key: _cell(value) for key, value in row.items()})


def _cell(value: object) -> object:
    if isinstance(value, str):
        return prose(_with_whole_pairs(value))
    return json.dumps(value) if isinstance(value, bool) else value


def time_as_json(time: datetime | None) -> str | None:
    """Return a UTC time in the format of all commands: ``2026-01-02T03:04:05.678000+00:00``."""
    return None if time is None else time.isoformat(timespec="microseconds")


def _with_whole_pairs(value: object) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if fields := fields_of(value):
        return {_with_whole_pairs(key): it if key == "path" else _with_whole_pairs(it) for key, it in fields.items()}
    if items := items_of(value):
        return [_with_whole_pairs(item) for item in items]
    return value
