"""Build a message from plain Python objects, piece by piece, for lines that msgspec refuses.

msgspec refuses a whole line if one block has an unknown type. Here, the smallest part that can be unknown (a block, an
event, a delta, a request, …) becomes ``Unknown…`` and keeps its JSON object; all other parts are typed. ``1.0`` is
accepted for an ``int``, because ``1`` and ``1.0`` are the same number in JSON. This is slow, but few lines need it.
"""

# Plain JSON has no types: after isinstance(value, dict), pyright still does not know the type of the values.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from claude_wire.messages.base import NoOther, Wire, wire_fields
from claude_wire.messages.unknown import Unknown, unknown_class

__all__ = ["VALUE_NAMES", "Ambiguities", "Ambiguous", "Findings", "Misfit", "build", "from_dict"]

T = TypeVar("T")
#: A function that converts a plain value to a typed value.
Convert = Callable[[Any, "Findings"], Any]

#: ``id()`` of a dict -> the dict, and some of its keys. While the dict exists, no other object has its id.
Ambiguities = dict[int, tuple[dict[str, Any], set[str]]]


class Findings:
    """The unknown parts and ambiguous keys of one or more lines.

    Attributes:
        unknown: the created ``Unknown`` values, in order.
        ambiguous: ``id()`` of a dict -> the dict, and its keys that had two different values in the JSON text.
    """

    __slots__ = ("ambiguous", "unknown")

    def __init__(self) -> None:
        self.unknown: list[Unknown] = []
        self.ambiguous: Ambiguities = {}

    def check_tag(self, value: dict[str, Any], key: str) -> None:
        """Raise :class:`Ambiguous` if the tag ``key`` of ``value`` had two values: JSON parsers choose differently."""
        if id(value) in self.ambiguous and key in self.ambiguous[id(value)][1]:
            raise Ambiguous(key)


class Ambiguous(Exception):
    """A tag of an object has two different values; ``key`` is the tag's key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Misfit(Exception):
    """A value does not fit its type.

    Attributes:
        problem: what is wrong, such as "expected a string, got null".
        path: the value's path in the object, such as ``.message.content[0]``.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: str = ""

    def below(self, step: str) -> Misfit:
        """Add a step, such as ``.content`` or ``[0]``, at the start of the path."""
        self.path = step + self.path
        return self

    @property
    def reason(self) -> str:
        return f"{self.problem} at ${self.path}" if self.path else self.problem


def build(value: Any, cls: type[T], findings: Findings) -> T:
    """Return ``value`` as an instance of ``cls``.

    Raises:
        Misfit: the value does not fit, and no part of the value may be unknown.
        Ambiguous: a tag has two values.
    """
    hint: Any = cls  # the cache accepts only hashable values; a union of classes is also hashable
    built: T = _converter(hint)(value, findings)
    return built


def from_dict(cls: type[T], value: dict[str, Any]) -> T:
    """Build a message, or a part of a message, from its JSON object: the counterpart of :meth:`Wire.to_dict`.

    Keys without a field are kept, and parts of unknown kinds become ``Unknown…``, as in a decoded line.
    ``from_dict(InitializeRequest, {"subtype": "initialize"})``

    Raises:
        ValueError: the value does not fit the class.
    """
    try:
        return build(value, cls, Findings())
    except Misfit as misfit:
        raise ValueError(f"no {cls.__name__}: {misfit.reason}") from None


#: Expected type -> its name in error messages, as in "expected a string, got null".
_EXPECTED: dict[type, str] = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "an array",
    dict: "an object",
}
#: Type of a decoded JSON value -> its name in error messages.
VALUE_NAMES: dict[type, str] = {**_EXPECTED, int: "a number", type(None): "null"}


def _any_of(kinds: list[type]) -> str:
    """Return a union's name for an error message. Omit null, because "a string or null" does not help a reader."""
    *others, last = dict.fromkeys(_EXPECTED[kind] for kind in kinds if not (kind is int and float in kinds))
    return f"{', '.join(others)} or {last}" if others else last


def _misfit(expected: str, value: Any) -> Misfit:
    found = VALUE_NAMES.get(type(value), type(value).__name__)
    if expected == _EXPECTED[int] and type(value) is float:
        found = "a fraction"
    return Misfit(f"expected {expected}, got {found}")


@cache
def _converter(hint: Any) -> Convert:
    if hint is Any:
        return lambda value, findings: value
    if isinstance(hint, type) and issubclass(hint, Wire):
        return _struct(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint))
    if origin is Literal:
        return _literal(get_args(hint))
    if hint is list or origin is list:
        return _list(_converter(get_args(hint)[0]) if get_args(hint) else _converter(Any))
    if hint is dict or origin is dict:
        return _dict(_converter(get_args(hint)[1]) if get_args(hint) else _converter(Any))
    return _scalar(hint)


def _scalar(cls: type) -> Convert:
    def convert(value: Any, findings: Findings) -> Any:
        if type(value) is cls:
            return value
        if cls is int and type(value) is float and value.is_integer():
            return int(value)
        if cls is float and type(value) is int:
            with suppress(OverflowError):
                return float(value)
        raise _misfit(_EXPECTED[cls], value)

    return convert


def _literal(allowed: tuple[Any, ...]) -> Convert:
    def convert(value: Any, findings: Findings) -> Any:
        if value in allowed:
            # Not `value`: `encode` omits a field only if it has the default object.
            return allowed[allowed.index(value)]
        raise Misfit("unexpected value")

    return convert


def _list(item: Convert) -> Convert:
    def convert(value: Any, findings: Findings) -> Any:
        if type(value) is not list:
            raise _misfit(_EXPECTED[list], value)
        built: list[Any] = []
        for index, element in enumerate(value):
            try:
                built.append(item(element, findings))
            except Misfit as misfit:
                raise misfit.below(f"[{index}]") from None
        return built

    return convert


def _dict(item: Convert) -> Convert:
    def convert(value: Any, findings: Findings) -> Any:
        if type(value) is not dict:
            raise _misfit(_EXPECTED[dict], value)
        built: dict[str, Any] = {}
        for key, element in value.items():
            try:
                built[key] = item(element, findings)
            except Misfit as misfit:
                raise misfit.below("[...]") from None
        return built

    return convert


def _struct(cls: type[Wire]) -> Convert:
    tag_field, tag = cls.__struct_config__.tag_field, cls.__struct_config__.tag

    @cache
    def fields() -> tuple[dict[str, tuple[str, frozenset[type], Convert]], list[tuple[str, str, bool]]]:
        # Computed on first use, because a type may contain itself.
        all_fields = wire_fields(cls)
        by_key = {f.encode_name: (f.name, _as_they_are(f.type), _converter(f.type)) for f in all_fields}
        # The author of a message must pass its id, but a received message may lack the id.
        required = [(f.name, f.encode_name, msgspec.UnsetType in get_args(f.type)) for f in all_fields if f.required]
        return by_key, required

    def convert(value: Any, findings: Findings) -> Any:
        if type(value) is not dict:
            raise _misfit(_EXPECTED[dict], value)
        if tag_field is not None:
            findings.check_tag(value, tag_field)
            if value.get(tag_field, tag) != tag:  # the tag may be missing if only one class is possible
                raise Misfit(f"expected {tag_field} {tag!r}")
        by_key, required = fields()
        given: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                field = by_key.get(key)
                if field is not None:
                    name, fitting, field_of = field
                    given[name] = item if type(item) in fitting else field_of(item, findings)
                elif key != tag_field:
                    extra[key] = item
        except Misfit as misfit:
            raise misfit.below(f".{key}") from None
        for name, wire_name, may_be_absent in required:
            if name not in given:
                if may_be_absent:
                    given[name] = msgspec.UNSET
                    continue
                raise Misfit(f"missing {wire_name!r}")
        if extra:
            given["extra"] = extra
        return cls(**given)

    return convert


_SCALARS: tuple[type, ...] = (str, bool, int, float, type(None))


def _as_they_are(hint: Any) -> frozenset[type]:
    """Return the types whose values fit ``hint`` without a further check."""
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return frozenset(cls for cls in _SCALARS if cls in members)


def _types(member: Any) -> list[Any]:
    """Return the types of the JSON values that a member of a union accepts, without null."""
    if get_origin(member) is Literal:
        return [type(value) for value in get_args(member) if value is not None]
    return [get_origin(member) or member]


def _union(members: tuple[Any, ...]) -> Convert:
    nullable = type(None) in members or any(None in get_args(m) for m in members if get_origin(m) is Literal)
    structs = [m for m in members if isinstance(m, type) and issubclass(m, Wire)]
    plain = [m for m in members if m not in structs and m not in (type(None), msgspec.UnsetType)]
    by_type = {kind: _converter(m) for m in plain for kind in _types(m)}
    expected = _any_of([*by_type, dict] if structs else [*by_type])
    if int in by_type and float not in by_type:
        by_type[float] = by_type[int]
    if float in by_type and int not in by_type:
        by_type[int] = by_type[float]
    if len(plain) == 1 and not structs and not nullable:  # the union has only one type and UnsetType
        return by_type.popitem()[1]
    objects = _tagged(structs) if len(structs) > 1 else _converter(structs[0]) if structs else None

    def convert(value: Any, findings: Findings) -> Any:
        if value is None and nullable:
            return None
        member = by_type.get(type(value))
        if member is not None:
            return member(value, findings)
        if objects is not None:
            return objects(value, findings)
        raise _misfit(expected, value)

    return convert


def _tagged(structs: list[type[Wire]]) -> Convert:
    tag_field = structs[0].__struct_config__.tag_field or "type"
    by_tag = {s.__struct_config__.tag: _converter(s) for s in structs if s is not NoOther}
    fallback = unknown_class(structs)

    def convert(value: Any, findings: Findings) -> Any:
        if type(value) is not dict:
            raise _misfit(_EXPECTED[dict], value)
        findings.check_tag(value, tag_field)
        tag = value.get(tag_field)
        member = by_tag.get(tag) if isinstance(tag, str) else None
        made = len(findings.unknown)
        try:
            if member is not None:
                return member(value, findings)
            reason = f"unknown {tag_field}" if isinstance(tag, str) else f"no {tag_field}"
        except Misfit as misfit:
            reason = misfit.reason
        del findings.unknown[made:]  # the whole object is unknown, so its unknown parts do not count
        findings.unknown.append(fallback.because(value, reason))
        return findings.unknown[-1]

    return convert
