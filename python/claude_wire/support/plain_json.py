"""Decode JSON objects strictly: refuse objects that two JSON readers may understand differently."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

#: If ``": `` occurs in this many bytes at the beginning of a line, the line's encoder writes spaces after colons.
COMPACT_BYTES = 32


def plain_object(line: bytes) -> dict[str, Any]:
    """Decode a line, with or without its line feed, to a JSON object.

    Raises:
        ValueError: the line is not a JSON object, is nested too deeply, or repeats a key in an object. One reader might
            use a repeated key's first value, and another reader its last value.
    """
    if b'": ' not in line[:COMPACT_BYTES]:
        # Fast path: most lines come from an encoder without spaces. If encoding the decoded object gives the same
        # bytes, the line has no duplicate key.
        try:
            fields: Any = msgspec.json.decode(line)
            written = msgspec.json.encode(fields)
            if len(line) - len(written) in (0, 1) and line.startswith(written) and isinstance(fields, dict):
                return cast("dict[str, Any]", fields)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # the slow path accepts more lines, and its error explains what is wrong
    try:
        fields = json.loads(line.decode(), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("it is not an object")
    return cast("dict[str, Any]", fields)


def fields_of(value: object) -> dict[str, Any]:
    """Return a JSON object itself, or an empty object for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: object) -> list[Any]:
    """Return a JSON array itself, or an empty array for any other value."""
    return cast("Any", value) if isinstance(value, list) else []


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has a key twice")
    return fields
