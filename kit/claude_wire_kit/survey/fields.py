"""Find what no class knows, by walking over a JSON object and the message made from it, side by side.

Typed decoding ignores unknown fields of known kinds, and makes ``Unknown…`` values of unknown kinds. This module finds
both: it compares the keys of each object with the fields of the Struct made from it. The *value* leads the walk, so in
a union it is clear which Struct to compare with. The walk stops at fields that are open by their type (``Any``,
``dict[str, Any]``, the ``input`` of a tool), and at ``Unknown…`` values, which are kept whole anyway.

A path names every step in the terms of the wire::

    user.zzz                                    a field of the message
    assistant.message.content[].text.zzz        of a text block: [] is an item of a list, and a kind follows its place
    stream_event.event.content_block_delta.delta.text_delta.zzz
    result.modelUsage{}.zzz                     {} is a value of an object whose keys are free
    system.init.zzz                             ``system`` has a class for each subtype

Names come from the input. They are made safe to print and cut to 80 characters, so no finding is large or dangerous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast, get_args

import msgspec

from claude_wire import messages
from claude_wire.messages import Message, Wire, wire_fields
from claude_wire.support import one_line
from claude_wire.transcripts import Record, SystemRecord
from claude_wire_kit.events.names import tag

_WHAT: dict[type[messages.Unknown], str] = {
    messages.UnknownMessage: "message",
    messages.UnknownBlock: "block",
    messages.UnknownEvent: "event",
    messages.UnknownDelta: "delta",
    messages.UnknownRequest: "request",
    messages.UnknownHookInput: "hook event",
}

#: The index of a list item in the reason of an unknown value. It is removed, so that all items have the same reason.
INDEX = re.compile(r"\[\d+\]")


class Finding(NamedTuple):
    """One unknown thing. Equal findings of several lines are the same thing."""

    #: ``field``, ``type``, ``subtype``, ``block``, ``event``, ``delta``, ``request``, ``hook event``, ``object`` (a
    #: smaller part), or ``message`` for a line whose type is known but whose fields do not fit.
    what: str
    #: Its name on the wire: that of the field, or the value of the tag. Empty if there is no tag.
    name: str
    #: The path to it. The last step of an unknown field's path is its own name.
    path: str
    #: ``unknown field``, ``unknown type`` (or subtype, …), or how a known kind does not fit.
    reason: str


class Found(NamedTuple):
    """A finding with its value."""

    finding: Finding
    #: The value of the unknown field, or the unknown object.
    value: Any
    #: The class of the object with the unknown field. None for findings other than fields.
    owner: type[Wire] | None
    #: The object with the unknown field, and the field's unescaped name. For other findings, the value itself.
    holder: dict[str, Any]
    key: str = ""


def found_in(plain: dict[str, Any], message: Message | Record) -> Iterator[Found]:
    """Yield what ``message`` does not know of ``plain``, the JSON object of the same line.

    The same thing may come repeatedly.
    """
    if isinstance(message, messages.UnknownMessage):
        yield Found(_unknown_message(message), plain, None, plain)
        return
    if type(message) is messages.ResultMessage:  # the class for all subtypes that have no class of their own
        finding = Finding("subtype", one_line(message.subtype or ""), "result", "unknown subtype")
        yield Found(finding, plain, None, plain)
    yield from _in_struct(plain, message, _root(message))


def _root(message: Wire) -> str:
    if isinstance(message, (messages.SystemMessage, SystemRecord)):
        return f"system.{message.subtype}"
    return tag(message) or type(message).__name__


def _unknown_message(message: messages.UnknownMessage) -> Finding:
    kind = one_line(message.type or "")
    if message.reason == "unknown type":
        return Finding("type", kind, kind, message.reason)
    if message.reason == "unknown subtype":
        return Finding("subtype", one_line(message.subtype or ""), kind, message.reason)
    return Finding("message", kind, kind, INDEX.sub("[]", message.reason))


class _Shape(NamedTuple):
    """The parts of a Struct's definition that the walk needs."""

    #: Every key that the Struct's JSON object may have.
    keys: frozenset[str]
    #: The fields that may contain another Struct, as (key, attribute).
    parts: tuple[tuple[str, str], ...]


@cache
def _shape(cls: type[Wire]) -> _Shape:
    fields = wire_fields(cls)
    keys = {field.encode_name for field in fields}
    tag_field = cls.__struct_config__.tag_field
    if tag_field is not None:
        keys.add(tag_field)
    return _Shape(
        frozenset(keys), tuple((field.encode_name, field.name) for field in fields if _may_hold_struct(field.type))
    )


def _may_hold_struct(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Wire):
        return True
    return any(_may_hold_struct(inner) for inner in get_args(hint))


def _in_struct(plain: dict[str, Any], struct: Wire, path: str) -> Iterator[Found]:
    shape = _shape(type(struct))
    if not plain.keys() <= shape.keys:
        for key in plain:
            if key not in shape.keys:
                name = one_line(key)
                finding = Finding("field", name, f"{path}.{name}", "unknown field")
                yield Found(finding, plain[key], type(struct), plain, key)
    for key, attribute in shape.parts:
        part = getattr(struct, attribute)
        if part is not None and part is not msgspec.UNSET:
            yield from found_in_value(plain[key], part, f"{path}.{key}")


def found_in_value(plain: Any, value: Any, path: str) -> Iterator[Found]:
    """Yield what is unknown in a JSON value. ``value`` is the same, typed."""
    if isinstance(value, Wire):
        name = tag(value)
        yield from _in_struct(plain, value, f"{path}.{name}" if name else path)
    elif isinstance(value, messages.Unknown):
        what, name = _WHAT.get(type(value), "object"), one_line(value.type or "")
        yield Found(Finding(what, name, path, INDEX.sub("[]", value.reason)), plain, None, plain)
    elif isinstance(value, list):
        for plain_item, item in zip(plain, cast("list[object]", value), strict=True):
            yield from found_in_value(plain_item, item, f"{path}[]")
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from found_in_value(plain[key], item, f"{path}{{}}")
