"""Build example JSON for every message class from the types of its fields."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from claude_wire import messages
from claude_wire.messages.base import Wire, wire_fields

__all__ = ["CLASSES", "example", "full", "is_struct", "minimal"]


def is_struct(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Wire)


#: Every public Struct of the package.
CLASSES: list[type[Wire]] = [getattr(messages, name) for name in messages.__all__ if is_struct(getattr(messages, name))]


def example(hint: Any, depth: int = 0) -> Any:
    """Return a JSON value of this type, never null.

    Structs have all fields while ``depth`` is above zero, then only the required ones.
    """
    if hint is Any:
        return {"any": ["thing", None]}
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        members = [member for member in get_args(hint) if member not in (type(None), msgspec.UnsetType)]
        return example(members[0], depth)
    if origin is Literal:
        return get_args(hint)[0]
    if origin is list or hint is list:
        return [example(get_args(hint)[0] if get_args(hint) else Any, depth)]
    if origin is dict or hint is dict:
        return {"key": example(get_args(hint)[1] if get_args(hint) else Any, depth)}
    if is_struct(hint):
        return full(hint, depth - 1) if depth > 0 else minimal(hint)
    return {str: "words", int: 3, float: 1.5, bool: True}[hint]


def _object(cls: type[Wire], everything: bool, depth: int) -> dict[str, Any]:
    config = cls.__struct_config__
    value: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
    for field in wire_fields(cls):
        # A constant field has a default, but the wire always contains it.
        if everything or field.required or get_origin(field.type) is Literal:
            value[field.encode_name] = example(field.type, depth)
    return value


def minimal(cls: type[Wire]) -> dict[str, Any]:
    """Return a JSON object with only the tags and the required fields of a class."""
    return _object(cls, everything=False, depth=0)


def full(cls: type[Wire], depth: int = 0) -> dict[str, Any]:
    """Return a JSON object with all fields of a class, and of nested classes down to ``depth``."""
    return _object(cls, everything=True, depth=depth)
