"""The output of ``--json``: one object on one line, in ASCII."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from claude_wire.support import fields_of, items_of


def print_json(value: dict[str, Any]) -> None:
    r"""Print an object. A lone surrogate in text becomes U+FFFD, because many JSON parsers refuse it.

    The value of a ``path`` is not changed. If the path is not UTF-8, it has surrogates from ``\udc80`` to ``\udcff``.
    Python can open the file with this path.
    """
    click.echo(json.dumps(_with_whole_pairs(value)))


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
