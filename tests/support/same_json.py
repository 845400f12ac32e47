"""Compare a message with its original JSON, by the rules of presence that its classes declare.

Comparing plain JSON is too strict, and ignoring every null is too lax. A field whose default is ``UNSET`` distinguishes
absent from null, so it must be written exactly as it was read. For any other field of a Struct, null and absent are
equal, and the class decides which one it writes. Plain objects (``dict``, ``Any``, ``Unknown…``) have no declared keys,
so all their keys must be written.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from claude_wire.messages.base import Wire

__all__ = ["differences"]

_ABSENT = object()


def differences(message: Any, original: Any, encoded: Any) -> list[str]:
    """List what ``encoded``, the JSON of ``message``, lacks, adds or changes against ``original``, as ``verb path``.

    The list is empty if both are the same JSON by the rules above.
    """
    found: list[str] = []
    _compare(message, original, encoded, "$", found)
    return found


def _compare(value: Any, original: Any, encoded: Any, path: str, found: list[str]) -> None:
    if isinstance(value, Wire) and isinstance(original, dict) and isinstance(encoded, dict):
        _compare_struct(value, original, encoded, path, found)
    elif isinstance(value, list) and isinstance(original, list) and isinstance(encoded, list):
        if not len(value) == len(original) == len(encoded):
            found.append(f"length {path}")
        else:
            for index, item in enumerate(value):
                _compare(item, original[index], encoded[index], f"{path}[{index}]", found)
    elif isinstance(value, dict) and isinstance(original, dict) and isinstance(encoded, dict):
        for key in original.keys() - encoded.keys():
            found.append(f"lost {path}.{key}")
        for key in encoded.keys() - original.keys():
            found.append(f"added {path}.{key}")
        for key in original.keys() & encoded.keys():
            _compare(value.get(key, _ABSENT), original[key], encoded[key], f"{path}.{key}", found)
    elif not _equal(original, encoded):
        found.append(f"changed {path}")


def _compare_struct(
    struct: Wire, original: dict[str, Any], encoded: dict[str, Any], path: str, found: list[str]
) -> None:
    fields = _fields(type(struct))
    for key in [*original, *(key for key in encoded if key not in original)]:
        at = f"{path}.{key}"
        before, after = original.get(key, _ABSENT), encoded.get(key, _ABSENT)
        field = fields.get(key)
        if field is not None and field.default is not msgspec.UNSET:
            before = _ABSENT if before is None else before
            after = _ABSENT if after is None else after
        if before is after is _ABSENT:
            continue
        if after is _ABSENT:
            found.append(f"lost {at}")
        elif before is _ABSENT:
            found.append(f"added {at}")
        else:  # the tag has no field, and no attribute holds it
            _compare(getattr(struct, field.name) if field else before, before, after, at, found)


@functools.cache
def _fields(struct: type[Wire]) -> dict[str, Any]:
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: ``1`` equals ``1.0``, but not ``true``."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
