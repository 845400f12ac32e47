"""The verdict of ``Decoder`` and of the schemas in ``protocol`` on a line: valid, unknown, misfit or invalid."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from jsonschema import Draft202012Validator, ValidationError, validators

from claude_wire import Decoder
from claude_wire.messages import InvalidLine, Unknown
from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import (
    UnknownBlock,
    UnknownDelta,
    UnknownEvent,
    UnknownHookInput,
    UnknownMessage,
    UnknownObject,
    UnknownRequest,
)
from claude_wire.transcripts.records.base import Record
from folders import ROOT

__all__ = [
    "FOLDER",
    "Part",
    "Verdict",
    "closed",
    "decoded",
    "load",
    "parts_in",
    "schema_verdict",
    "validator",
    "verdict_of",
]

Verdict: TypeAlias = Literal["valid", "unknown", "misfit", "invalid"]

FOLDER = ROOT / "protocol"
_PARTS: dict[type[Unknown], str] = {
    UnknownMessage: "line",
    UnknownBlock: "block",
    UnknownEvent: "event",
    UnknownDelta: "delta",
    UnknownRequest: "request",
    UnknownHookInput: "hook_input",
    UnknownObject: "object",
}


class Part(NamedTuple):
    """An unknown part of a message: its name, the JSON pointer to it, and whether its tag is known (a misfit)."""

    part: str
    at: str
    misfit: bool


@functools.cache
def load(name: str) -> Any:
    """Load a JSON file of the ``protocol`` folder."""
    return json.loads((FOLDER / name).read_text("utf-8"))


# --- the decoder ------------------------------------------------------------------------------------------------------


def decoded(schema: str, data: bytes, **options: Any) -> tuple[list[Any], Decoder[Any]]:
    """Decode a stream. Return its messages, and the decoder with its counts."""
    decoder: Decoder[Any] = Decoder(Record, **options) if schema == "records" else Decoder(**options)
    return [*decoder.feed(data), *decoder.close()], decoder


def parts_in(value: Any, at: str = "") -> Iterator[Part]:
    """Yield the unknown parts of a message in the order of its fields."""
    if isinstance(value, Unknown):
        yield Part(_PARTS[type(value)], at, not value.reason.startswith(("unknown ", "no ")))
    elif isinstance(value, Wire):
        for field in msgspec.structs.fields(type(value)):
            yield from parts_in(getattr(value, field.name), f"{at}/{field.encode_name}")
    elif isinstance(value, (list, dict)):
        for step, item in enumerate(value) if isinstance(value, list) else value.items():
            yield from parts_in(item, f"{at}/{step}")


def verdict_of(message: Any) -> Verdict:
    """Return the decoder's verdict on a line."""
    if isinstance(message, InvalidLine):
        return "invalid"
    parts = list(parts_in(message))
    return "misfit" if any(part.misfit for part in parts) else "unknown" if parts else "valid"


# --- the schemas ------------------------------------------------------------------------------------------------------


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema in its closed form, which rejects unknown parts, as the README of ``protocol`` explains."""
    return {**schema, "$defs": {n: not n.startswith("AnyOther") and s for n, s in schema["$defs"].items()}}


def _any_of(validator: Any, choices: list[Any], value: Any, schema: Any) -> Iterator[ValidationError]:
    """Check ``anyOf`` without collecting an error per choice, which takes most of the time."""
    if not any(validator.evolve(schema=choice).is_valid(value) for choice in choices):
        yield ValidationError("none of the choices")


_Fast: Any = validators.extend(Draft202012Validator, {"anyOf": _any_of})


@functools.cache
def validator(schema: str, *, open_sets: bool = True, definition: str = "", stock: bool = False) -> Any:
    """Return the validator of a schema or of one of its definitions. ``stock`` selects jsonschema's own, slower one."""
    content = load(f"{schema}.schema.json")
    content = content if open_sets else closed(content)
    if definition:
        content = {"$schema": content["$schema"], "$ref": f"#/$defs/{definition}", "$defs": content["$defs"]}
    return (Draft202012Validator if stock else _Fast)(content)


_seen: dict[Any, Verdict] = {}


def schema_verdict(schema: str, value: Any) -> Verdict:
    """Return a schema's verdict on the object of a line.

    The schemas check only types, keys and tags, so all lines of one shape share a verdict.
    """
    shape = schema, _shape(value)
    if shape not in _seen:
        is_known = validator(schema, open_sets=False).is_valid(value)
        _seen[shape] = "valid" if is_known else "unknown" if validator(schema).is_valid(value) else "misfit"
    return _seen[shape]


@functools.cache
def _tag_fields() -> frozenset[str]:
    """Return the keys whose string values a schema checks."""
    found: set[str] = set()
    todo: list[Any] = [load(f"{name}.schema.json") for name in ("output", "input", "records")]
    while todo:
        node = todo.pop()
        todo += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        if isinstance(node, dict) and isinstance(properties := node.get("properties"), dict):
            found |= {key for key, value in properties.items() if isinstance(value, dict) and value.keys() & _COMPARED}
    return frozenset(found)


#: The JSON Schema keywords that compare a value with constants.
_COMPARED = {"const", "enum", "not"}


def _shape(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return tuple((name, _shape(item, name)) for name, item in value.items())
    if isinstance(value, list):
        return ("list", *dict.fromkeys(map(_shape, value)))
    if isinstance(value, str):
        return "text", value if key in _tag_fields() else ""
    return "number", value % 1 == 0 if isinstance(value, float) else type(value).__name__
