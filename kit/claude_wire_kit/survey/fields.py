"""Find everything in a message that is unknown.

When a line is decoded, unknown fields of known kinds go to the ``extra`` of their object, and unknown kinds become
``Unknown…`` values. This module finds both, and the JSON object that each is in. It does not go into fields whose type
allows anything, such as the ``input`` of a tool, nor into ``Unknown…`` values, which have the whole object.

A path consists of names on the wire::

    user.zzz                                    zzz is a field of the message
    assistant.message.content[].text.zzz        a field of a text block; [] is any item of a list, before its kind
    stream_event.event.content_block_delta.delta.text_delta.zzz
    result.modelUsage{}.zzz                     {} is any value of an object that may have any keys
    system.init.zzz                             a field of the subtype init, because each subtype has a class

Names are from the input. They are made safe to print and cut to 80 characters, so no finding is large or dangerous.
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

#: The index of a list's item in the ``reason`` of an unknown value. It is removed, so all items of a list make the same
#: finding.
INDEX = re.compile(r"\[\d+\]")


class Finding(NamedTuple):
    """Something unknown. If several lines have it, their findings are equal."""

    #: What is unknown: ``field``, ``type``, ``subtype``, ``block``, ``event``, ``delta``, ``request``, ``hook event``,
    #: or ``object`` for another part of a message. ``message`` means that the type is known, but a field is invalid.
    what: str
    #: The name of the field, or of the unknown kind. Empty if the kind is not named.
    name: str
    #: The path to it. A field's path ends with the field's name.
    path: str
    #: ``unknown field``, ``unknown type`` (or subtype, …), or what is invalid in an object of a known kind.
    reason: str


class Found(NamedTuple):
    """A finding in one line, with its value there."""

    finding: Finding
    #: The value of the unknown field, or the unknown object.
    value: Any
    #: The class of the object that has the unknown field. None if the finding is not a field.
    owner: type[Wire] | None
    #: The JSON object that has the unknown field. If the finding is not a field, this is ``value``.
    holder: dict[str, Any]
    #: The name of the field as it is in the JSON. Empty if the finding is not a field.
    key: str = ""


def found_in(plain: dict[str, Any], message: Message | Record) -> Iterator[Found]:
    """Yield everything unknown in ``message``. ``plain`` is the JSON object of its line.

    The same finding may be yielded several times.
    """
    if isinstance(message, messages.UnknownMessage):
        yield Found(_unknown_message(message), plain, None, plain)
        return
    if type(message) is messages.ResultMessage:  # the class for all subtypes without their own class
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


@cache
def _parts(cls: type[Wire]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a class that may contain another Struct, as (key in the JSON, attribute)."""
    return tuple((field.encode_name, field.name) for field in wire_fields(cls) if _may_hold_struct(field.type))


def _may_hold_struct(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Wire):
        return True
    return any(_may_hold_struct(inner) for inner in get_args(hint))


def _in_struct(plain: dict[str, Any], struct: Wire, path: str) -> Iterator[Found]:
    for key, value in (struct.extra or {}).items():
        name = one_line(key)
        yield Found(Finding("field", name, f"{path}.{name}", "unknown field"), value, type(struct), plain, key)
    for key, attribute in _parts(type(struct)):
        part = getattr(struct, attribute)
        if part is not None and part is not msgspec.UNSET:
            yield from found_in_value(plain[key], part, f"{path}.{key}")


def found_in_value(plain: Any, value: Any, path: str) -> Iterator[Found]:
    """Yield everything unknown in ``plain``, a JSON value, from which ``value`` was decoded."""
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
