"""Compute the kind of a line from its parsed JSON, to check ``peek``, which reads only the structure of the line."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any

from claude_wire.codec import peek_lines

__all__ = ["NONE", "checked_kind", "is_blank", "is_wanted", "kind_by_json", "value_by_json"]

NONE: tuple[str | None, ...] = (None, None, None)


def is_blank(line: bytes) -> bool:
    return not line.strip(b" \t\r")


def is_wanted(kind: tuple[str | None, ...], names: Iterable[str]) -> bool:
    """Whether ``only=names`` lets a line of this kind through: one of the names fits, or the kind is unclear."""
    return kind[0] is None or any(kind[: len(parts)] == parts for parts in (tuple(name.split("/")) for name in names))


def value_by_json(line: bytes, **options: Any) -> Any:
    """Parse a line with Python's parser. Raise ValueError if the line is not strict JSON in UTF-8."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(line.decode(), parse_constant=refuse, **options)


def kind_by_json(line: bytes) -> tuple[str | None, ...] | None:
    """Return the kind of a JSON object; None if the line is not an object or repeats a key."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    try:
        message = value_by_json(line, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    event, request, response = (_object(message, key) for key in ("event", "request", "response"))
    delta, content_block = _object(event, "delta"), _object(event, "content_block")
    all_tags = [message.get("subtype"), request.get("subtype"), response.get("subtype")]
    all_tags += [part.get("type") for part in (message, event, delta, content_block)]
    if any(isinstance(tag, str) and not _is_text(tag) for tag in all_tags):
        return NONE
    type_ = _tag(message, "type")
    if type_ is None:
        return NONE
    if type_ == "stream_event":
        detail = _tag(delta, "type")
        return type_, _tag(event, "type"), _tag(content_block, "type") if detail is None else detail
    owner = {"control_request": request, "control_response": response}.get(type_, message)
    return type_, _tag(owner, "subtype"), None


def _object(of: dict[str, Any], key: str) -> dict[str, Any]:
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def _tag(of: dict[str, Any], key: str) -> str | None:
    value = of.get(key)
    return value if isinstance(value, str) else None


def _is_text(tag: str) -> bool:
    """Return whether a string has no lone surrogate."""
    return tag.encode("utf-8", "replace").decode() == tag


@functools.lru_cache(maxsize=50_000)
def checked_kind(line: bytes) -> tuple[str | None, ...]:
    """Return the kind that ``peek_lines`` finds, and check that it agrees with the line's JSON."""
    (_, *kinds) = peek_lines(b"\n" + line)
    kind = kinds[0] if kinds else NONE
    by_json = kind_by_json(line)
    assert by_json is None or kind == by_json, line
    return kind
