"""JSON objects that every reader reads alike. Knows JSON; not what it says."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

__all__ = ["plain_object"]

#: Bytes of a line in which an encoder that writes spaces has written one.
COMPACT_BYTES = 32


def plain_object(line: bytes) -> dict[str, Any]:
    """The object that a line is, with or without its line feed.

    Raises:
        ValueError: it is none; it is nested too deeply; or an object in it has a key twice, of which each reader may
            take another one.
    """
    if b'": ' not in line[:COMPACT_BYTES]:
        # Most lines come from an encoder like ours. What comes out as it went in has lost no key.
        try:
            fields: Any = msgspec.json.decode(line)
            written = msgspec.json.encode(fields)
            if len(line) - len(written) in (0, 1) and line.startswith(written) and isinstance(fields, dict):
                return cast("dict[str, Any]", fields)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass  # the other reader says what is wrong, and takes what this one does not
    try:
        fields = json.loads(line.decode(), object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("it is no object")
    return cast("dict[str, Any]", fields)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object in it has a key twice")
    return fields
