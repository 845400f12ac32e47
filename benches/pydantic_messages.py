"""Our message classes as pydantic models, with the same fields and the same discriminated unions.

They are built from our classes, so both validate the same protocol. As in our classes, ``type`` and then ``subtype``
identify the class of ``system`` and ``result`` lines.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, create_model

from claude_wire.messages.base import Wire, wire_fields
from claude_wire.messages.registry import ResultSubtype, SystemSubtype, TypedMessage

_models: dict[type[Wire], type[BaseModel]] = {}


def _hint(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Wire):
        return _model(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        structs = [a for a in args if isinstance(a, type) and issubclass(a, Wire)]
        others = [_hint(a) for a in args if a not in structs and a is not msgspec.UnsetType]
        if len(structs) > 1:
            tag_field = structs[0].__struct_config__.tag_field
            assert tag_field is not None
            union = Annotated[Union[tuple(_model(s) for s in structs)], Field(discriminator=tag_field)]
            return Union[(union, *others)] if others else union
        return Union[(*[_model(s) for s in structs], *others)]
    if origin in (list, dict):
        return origin[tuple(_hint(a) for a in args)]
    return hint


def _model(cls: type[Wire]) -> Any:
    if cls in _models:
        return _models[cls]
    if cls in _building:
        return cls.__name__  # a forward reference, resolved by model_rebuild
    _building.add(cls)
    config = cls.__struct_config__
    fields: dict[str, Any] = {}
    if config.tag_field is not None:
        fields[config.tag_field] = (Literal[config.tag], config.tag)
    for f in wire_fields(cls):
        default = ... if f.required else None
        name = f"{f.name}_" if f.name in ("copy", "json", "schema") else f.name.lstrip("_")
        hint = _hint(f.type)
        fields[name] = (hint if f.required else Union[hint, None], Field(default, alias=f.encode_name))
    model = create_model(cls.__name__, __config__=ConfigDict(protected_namespaces=()), **fields)
    _models[cls] = model
    return model


_building: set[type[Wire]] = set()


def _discriminate(value: Any) -> str | None:
    return value.get("subtype") if isinstance(value, dict) else value.subtype


def _by_subtype(union: Any) -> Any:
    tagged = []
    for cls in get_args(union):
        subtype = get_args({f.name: f for f in wire_fields(cls)}["subtype"].type)[0]
        tagged.append(Annotated[_model(cls), Tag(subtype)])
    return Annotated[Union[tuple(tagged)], Discriminator(_discriminate)]


@cache
def adapter() -> TypeAdapter[Any]:
    """Return the validator for a line."""
    members = [Annotated[_model(cls), Tag(cls.__struct_config__.tag)] for cls in get_args(TypedMessage)]
    members.append(Annotated[_by_subtype(SystemSubtype), Tag("system")])
    members.append(Annotated[_by_subtype(ResultSubtype), Tag("result")])
    namespace = {model.__name__: model for model in _models.values()}
    for model in _models.values():
        model.model_rebuild(_types_namespace=namespace)
    return TypeAdapter(
        Annotated[Union[tuple(members)], Discriminator(lambda v: v.get("type") if isinstance(v, dict) else v.type)]
    )
