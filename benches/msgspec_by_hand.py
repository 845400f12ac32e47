"""Our message classes as plain msgspec Structs, as an application that uses msgspec directly would write them.

They are built from our classes, with the same fields and the same nested unions, but without our optimisations: the
garbage collector tracks them, which is msgspec's default. All ``system`` messages are one Struct with the fields of all
subtypes, and all ``result`` messages another.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Any, Union, get_args, get_origin

import msgspec

from claude_wire.messages.base import Wire, wire_fields
from claude_wire.messages.registry import ResultSubtype, SystemSubtype, TypedMessage

_building: set[type[Wire]] = set()


def _hint(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Wire):
        return _struct(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_hint(argument) for argument in args)]
    if origin in (list, dict):
        return origin[tuple(_hint(argument) for argument in args)]
    return hint


def _struct(cls: type[Wire]) -> Any:
    if cls in _building:
        return cls.__name__  # a forward reference, which msgspec looks up in this module
    if cls.__name__ not in globals():
        _building.add(cls)
        config = cls.__struct_config__
        fields = [_field(field, _hint(field.type)) for field in wire_fields(cls)]
        globals()[cls.__name__] = _defined(cls.__name__, fields, config.tag_field, config.tag)
        _building.discard(cls)
    return globals()[cls.__name__]


def _field(field: msgspec.structs.FieldInfo, hint: Any) -> tuple[str, Any, Any]:
    given: dict[str, Any] = {"name": field.encode_name}
    if field.default is not msgspec.NODEFAULT:
        given["default"] = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        given["default_factory"] = field.default_factory
    return field.name, hint, msgspec.field(**given)


def _defined(name: str, fields: list[tuple[str, Any, Any]], tag_field: str | None, tag: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, fields, module=__name__, kw_only=True, tag_field=tag_field, tag=tag)


def _wide(name: str, tag: str, classes: Any) -> type[msgspec.Struct]:
    """Merge several Structs into one with all their fields. A field's type is Any if the Structs disagree."""
    hints: dict[str, Any] = {}
    for cls in get_args(classes):
        for field in wire_fields(cls):
            hint = _hint(field.type)
            hints[field.encode_name] = hint if hints.get(field.encode_name, hint) == hint else Any
    del hints["subtype"]
    fields = [("subtype", str, msgspec.field())]
    fields += [(key, Union[hint, None], msgspec.field(name=key, default=None)) for key, hint in hints.items()]
    return _defined(name, fields, "type", tag)


@cache
def decoder() -> msgspec.json.Decoder[Any]:
    """Return a decoder for lines of all known types."""
    members = [_struct(cls) for cls in get_args(TypedMessage)]
    members += [_wide("SystemMessage_", "system", SystemSubtype), _wide("ResultMessage_", "result", ResultSubtype)]
    return msgspec.json.Decoder(Union[tuple(members)])
