"""Make the three schemas: for the output of the CLI, for its input, and for the records of a transcript."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import claude_wire.messages
import claude_wire.transcripts.records
from claude_wire import PROTOCOL_VERSION
from claude_wire.messages import ControlRequestBody, ControlRequestPayload, PermissionReply
from claude_wire.messages.base import MessageBase, Wire
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import Vocabulary, vocabulary_of
from claude_wire.transcripts.records.base import Record
from protocol.schema import DIALECT, UNKNOWN, Definitions, Schema, other_than, structs_in

__all__ = ["NAMES", "SENDERS", "Name", "Sides", "answer_classes", "answered", "schemas", "unions"]

Name: TypeAlias = Literal["output", "input", "records"]
NAMES: tuple[Name, ...] = get_args(Name)

_TITLES: dict[Name, str] = {
    "output": "A line of the CLI's output",
    "input": "A line of the CLI's input",
    "records": "A line of a transcript",
}
#: The side that writes the lines of a schema.
SENDERS: dict[Name, str] = {"output": "agent", "input": "host", "records": "agent"}


@dataclass
class Sides:
    """One schema, its definitions and its classes."""

    name: Name
    definitions: Definitions
    schema: Schema
    #: Kind -> the class of such a line.
    lines: dict[str, type[Wire]] = field(default_factory=lambda: dict[str, type[Wire]]())


@cache
def unions() -> dict[frozenset[type[Wire]], str]:
    """Return the classes of a union -> its name, for all unions of message classes."""
    found: dict[frozenset[type[Wire]], str] = {}
    for package in (claude_wire.messages, claude_wire.transcripts.records):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                structs = structs_in(value)
                if len(structs) > 1 and not name.startswith(("_", "Or")):
                    found.setdefault(frozenset(structs), name)
    return found


def answered(name: Name) -> list[type[ControlRequestBody[Any]]]:
    """Return the control requests whose answers are in this schema: those that the other side sends."""
    if name == "records":
        return []
    return [cls for cls in get_args(ControlRequestPayload) if cls.sent_by != SENDERS[name]]


def schemas() -> dict[Name, Sides]:
    """Return all three schemas."""
    return {name: _schema(name, MESSAGES if name != "records" else vocabulary_of(Record)) for name in NAMES}


def _schema(name: Name, vocabulary: Vocabulary) -> Sides:
    def takes(cls: type[Wire]) -> bool:
        if issubclass(cls, (MessageBase, ControlRequestBody)):
            return cls.sent_by in (SENDERS[name], "both")
        return True

    definitions = Definitions(unions(), takes)
    lines = {kind: cls for kind, cls in _lines(vocabulary) if takes(cls)}
    choices = _choices(name, vocabulary, lines, definitions)
    for request in answered(name):
        for cls in answer_classes(request):  # nothing else refers to them: an answer does not name its request
            definitions.ref(cls)
    schema = {
        "$schema": DIALECT,
        "$id": f"urn:claude-wire:protocol:{PROTOCOL_VERSION}:{name}",
        "title": _TITLES[name],
        "description": f"Of CLI {PROTOCOL_VERSION}. Made by `make protocol`.",
        "anyOf": choices,
        "$defs": dict(sorted(definitions.schemas.items())),
    }
    return Sides(name, definitions, schema, lines)


def _lines(vocabulary: Vocabulary) -> Iterator[tuple[str, type[Wire]]]:
    """Yield the kind and the class of each line, the most frequent first."""
    yield from vocabulary.by_type.items()
    for type_, classes in vocabulary.by_subtype.items():
        for subtype, cls in classes.items():
            yield f"{type_}/{subtype}", cls
    yield from vocabulary.others.items()


def _choices(
    name: Name, vocabulary: Vocabulary, lines: Mapping[str, type[Wire]], definitions: Definitions
) -> list[Schema]:
    """Return the alternatives for a line: types with one class, types with subtypes, and any other type."""
    line = "Record" if name == "records" else "Message"
    typed = {kind: cls for kind, cls in lines.items() if "/" not in kind and kind not in vocabulary.by_subtype}
    subtyped = sorted({kind.partition("/")[0] for kind in lines if "/" in kind})
    choices = [definitions.ref(cls) for cls in typed.values()]
    for tag in subtyped:
        choices.append(_subtyped(tag, line, vocabulary, definitions))
    other: Schema = {
        "description": "A line whose `type` this version does not know, or that has none.",
        "type": "object",
        "properties": other_than("type", sorted([*typed, *subtyped])),
    }
    if name == "input":
        choices.append(definitions.ref(PermissionReply))
        reply = definitions.schemas[PermissionReply.__name__]
        reply["properties"] = {"type": False, **reply["properties"]}
        other["anyOf"] = [{"required": ["type"]}, {"not": {"required": ["allow"]}}]
    return [*choices, definitions.define(UNKNOWN + line, other)]


def _subtyped(tag: str, line: str, vocabulary: Vocabulary, definitions: Definitions) -> Schema:
    """Define all lines of one type. Their ``subtype`` identifies the class."""
    known = sorted(vocabulary.by_subtype[tag])
    choices = [definitions.ref(cls) for cls in vocabulary.by_subtype[tag].values()]
    if tag in vocabulary.others:  # a class for all other subtypes that are strings
        choices.append(definitions.ref(vocabulary.others[tag]))
        definitions.schemas[vocabulary.others[tag].__name__]["properties"]["subtype"] |= {"not": {"enum": known}}
        other: Schema = {"properties": {"subtype": {"not": {"type": "string"}}}, "required": ["subtype"]}
    else:
        other = {"properties": other_than("subtype", known)}
    name = f"{tag.title()}{line}"
    other = {"description": f"A line of type `{tag}` whose `subtype` this version does not know.", **other}
    choices.append(definitions.define(UNKNOWN + name, other))
    whole = {"type": "object", "properties": {"type": {"const": tag}}, "required": ["type"], "anyOf": choices}
    return definitions.define(f"Any{name}", whole)


def answer_classes(request: type[ControlRequestBody[Any]]) -> list[type[Wire]]:
    """Return the classes that the payload of an answer may have; an empty list if it is a plain object."""
    return structs_in(request.answer_type())
