"""Turn message classes into a JSON Schema with a definition for each class and for each union of classes.

If an object with a known tag has a value of a wrong type, the schema rejects the whole line. (``Decoder`` keeps such an
object as a dict.) The last member of each union is named ``AnyOther…`` and accepts objects with an unknown tag. Replace
these members by ``false`` to accept only known tags. Every object may have keys that its class does not know.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

from claude_wire.messages.base import NoOther, Wire, wire_fields
from protocol.source import docstring, field_notes

__all__ = ["DIALECT", "UNKNOWN", "Definitions", "Schema", "structs_in", "subtype_of"]

Schema: TypeAlias = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: The beginning of the names of definitions for objects with unknown tags.
UNKNOWN = "AnyOther"

_SCALARS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def subtype_of(cls: type[Wire]) -> str | None:
    """Return the class's ``subtype`` if it is a constant, such as ``init``; None otherwise."""
    hints = [field.type for field in wire_fields(cls) if field.encode_name == "subtype"]
    return str(get_args(hints[0])[0]) if hints and get_origin(hints[0]) is Literal else None


def structs_in(hint: Any) -> list[type[Wire]]:
    """Return the message classes of a type hint: the class itself, or those in a union."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return [cls for cls in members if isinstance(cls, type) and issubclass(cls, Wire)]


def is_required(field: msgspec.structs.FieldInfo) -> bool:
    """Return True if a received object must have this key. UNSET marks keys that only the constructor requires."""
    return field.required and msgspec.UnsetType not in get_args(field.type)


class Definitions:
    """The definitions of one schema. Referring to a class adds its definition.

    Args:
        unions: the classes of a union -> its name.
        takes: returns False for a class that this schema omits, because only the other side sends it.
    """

    def __init__(self, unions: dict[frozenset[type], str], takes: Callable[[type[Wire]], bool]) -> None:
        self.schemas: dict[str, Schema] = {}
        self.classes: dict[str, type[Wire]] = {}
        self._unions = unions
        self._takes = takes

    def ref(self, cls: type[Wire]) -> Schema:
        """Return a reference to the definition of a class, and add the definition if it is missing."""
        name = cls.__name__
        if name not in self.schemas:
            self.schemas[name] = {}  # reserve the name, because the class may refer to itself
            self.classes[name] = cls
            self.schemas[name] = self._of_class(cls)
        return {"$ref": f"#/$defs/{name}"}

    def define(self, name: str, schema: Schema) -> Schema:
        """Add a definition, and return a reference to it."""
        self.schemas[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def of(self, hint: Any) -> Schema:
        """Return the schema of a type hint."""
        members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if Any in members:
            return {}
        structs = structs_in(hint)
        plain: Schema = {"type": []}
        for member in members:
            if member in structs or member is msgspec.UnsetType:
                continue
            origin = get_origin(member) or member
            if origin is Literal:
                return {"const": get_args(member)[0]}
            if origin is list:
                plain["type"].append("array")
                plain |= self._inner("items", get_args(member)[:1])
            elif origin is dict:
                plain["type"].append("object")
                plain |= self._inner("additionalProperties", get_args(member)[1:])
            else:
                plain["type"].append(_SCALARS[member])
        if {"integer", "number"} <= set(plain["type"]):
            plain["type"].remove("integer")
        choices = self._of_structs(structs) if structs else []
        if plain["type"]:
            plain["type"] = plain["type"][0] if len(plain["type"]) == 1 else plain["type"]
            choices.append(plain)
        return choices[0] if len(choices) == 1 else {"anyOf": choices}

    def _inner(self, keyword: str, hint: tuple[Any, ...]) -> Schema:
        schema = self.of(hint[0]) if hint else {}
        return {keyword: schema} if schema else {}

    def _of_structs(self, structs: list[type[Wire]]) -> list[Schema]:
        if len(structs) == 1:
            return [self.ref(structs[0])]
        name = self._unions.get(frozenset(structs))
        known = [cls for cls in structs if cls is not NoOther and self._takes(cls)]
        if name is None and len(known) == 1:
            return [self.ref(known[0]), self._unknown(known[0].__name__, known)]
        if name is None:
            raise ValueError(f"a union without a name: {structs}")
        if name not in self.schemas:
            self.schemas[name] = {}
            choices = [self.ref(cls) for cls in known]
            self.schemas[name] = {"anyOf": [*choices, self._unknown(name, known)]}
        return [{"$ref": f"#/$defs/{name}"}]

    def _unknown(self, name: str, known: list[type[Wire]]) -> Schema:
        tag_field = str(known[0].__struct_config__.tag_field)
        tags = [cls.__struct_config__.tag for cls in known]
        description = f"An object without `{tag_field}`, or whose `{tag_field}` this version does not know."
        return self.define(
            UNKNOWN + name, {"description": description, "type": "object", "properties": other_than(tag_field, tags)}
        )

    def _of_class(self, cls: type[Wire]) -> Schema:
        notes = field_notes(cls)
        config = cls.__struct_config__
        properties: dict[str, Any] = {}
        required: list[str] = []
        if config.tag_field is not None and isinstance(config.tag, str):
            properties[config.tag_field] = {"const": config.tag}
            required.append(config.tag_field)
        for field in wire_fields(cls):
            schema = self.of(field.type)
            if field.name in notes:
                note = notes[field.name]
                described = {"description": note.description} if note.description else {}
                examples = {"examples": list(note.words)} if note.words else {}
                schema = {**described, **schema, **examples}
            properties[field.encode_name] = schema
            if is_required(field) or (field.encode_name == "subtype" and "const" in schema):
                required.append(field.encode_name)
        described = {"description": docstring(cls)} if docstring(cls) else {}
        return {**described, "type": "object", "properties": properties, **({"required": required} if required else {})}


def other_than(tag_field: str, tags: Iterable[Any]) -> Schema:
    """Return the ``properties`` of a schema that accepts every tag except these."""
    return {tag_field: {"not": {"enum": list(tags)}}}
