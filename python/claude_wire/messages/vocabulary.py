"""Find a line's class by its ``type`` and, if the type has several classes, its ``subtype``.

For example, ``{"type": "system", "subtype": "init"}`` gives :class:`InitMessage`. The messages of a stream are one
vocabulary (see ``union``), and the subclasses of each :class:`Family` are another.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeGuard, get_args

import msgspec

from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Findings, Misfit, build
from claude_wire.messages.unknown import UnknownMessage

__all__ = ["Family", "Vocabulary", "by_subtype", "is_family", "vocabulary_of"]


class Family(Wire, frozen=True):
    """The base class for a family of classes, for a stream whose lines are not messages of the CLI.

    Derive a class from this class, such as ``Records``, and derive a class from ``Records`` for each ``type`` of line,
    which is its tag. A class with a :func:`constant` field ``subtype`` is only for lines of this subtype.
    ``Decoder(Records)`` then decodes each line to one of the classes that have no subclasses.
    """


class Vocabulary:
    """The classes of the lines of a stream, by their tags.

    Args:
        typed: the classes for types with one class.
        subtyped: type -> subtype -> class, for types with several classes.
        others: type -> the class for all other subtypes.
    """

    def __init__(
        self,
        typed: Iterable[type[Wire]],
        subtyped: Mapping[str, Mapping[str, type[Wire]]],
        others: Mapping[str, type[Wire]] | None = None,
    ) -> None:
        self.by_type: dict[str, type[Wire]] = {str(cls.__struct_config__.tag): cls for cls in typed}
        self.by_subtype: Mapping[str, Mapping[str, type[Wire]]] = subtyped
        self.others: Mapping[str, type[Wire]] = others or {}

    @property
    def names(self) -> frozenset[str]:
        """The names of all kinds in this vocabulary, such as ``"user"``, ``"system"`` and ``"system/init"``."""
        subtypes = (f"{type}/{subtype}" for type, classes in self.by_subtype.items() for subtype in classes)
        return frozenset([*self.by_type, *self.by_subtype, *subtypes])

    def without_type(self, value: dict[str, Any]) -> type[Wire] | str:
        """Return the class for an object whose ``type`` is absent or not a string, or the reason why there is none."""
        return "no type"

    def class_of(self, value: dict[str, Any], findings: Findings) -> type[Wire] | str:
        """Return the class for a line's object, or the reason why there is none.

        Raises:
            Ambiguous: a tag has two values.
        """
        findings.check_tag(value, "type")
        tag = value.get("type")
        if not isinstance(tag, str):
            return self.without_type(value)
        subtypes = self.by_subtype.get(tag)
        if subtypes is None:
            return self.by_type.get(tag, "unknown type")
        findings.check_tag(value, "subtype")
        subtype = value.get("subtype", "" if tag in self.others else None)
        if not isinstance(subtype, str):
            return "no subtype"
        return subtypes[subtype] if subtype in subtypes else self.others.get(tag, "unknown subtype")

    def build(self, value: dict[str, Any], findings: Findings) -> Wire | UnknownMessage:
        """Build a message from a line's JSON object, or an :class:`UnknownMessage` if no class fits.

        Raises:
            Ambiguous: a tag has two values.
        """
        cls = self.class_of(value, findings)
        if isinstance(cls, str):
            reason = cls
        else:
            try:
                return build(value, cls, findings)
            except Misfit as misfit:
                reason = misfit.reason
            except RecursionError:
                reason = "nested too deeply"
        unknown = UnknownMessage.because(value, reason)
        findings.unknown = [unknown]
        return unknown


def by_subtype(classes: Iterable[type[Wire]]) -> dict[str, type[Wire]]:
    """Return subtype -> class, by the constant in the field ``subtype``. A class without this constant is omitted."""
    return {subtype: cls for cls in classes if (subtype := _subtype(cls)) is not None}


def _subtype(cls: type[Wire]) -> str | None:
    if "subtype" not in cls.__struct_fields__:
        return None
    default = cls.__struct_defaults__[cls.__struct_fields__.index("subtype") - len(cls.__struct_fields__)]
    return None if default is msgspec.NODEFAULT else str(default.factory())


def _leaves(cls: type[Wire]) -> Iterator[type[Wire]]:
    for child in (subclasses := cls.__subclasses__()):
        yield from _leaves(child)
    if not subclasses:
        yield cls


def is_family(value: object) -> TypeGuard[type[Family]]:
    """True if ``value`` is the base of a family: a direct subclass of :class:`Family`."""
    return isinstance(value, type) and Family in value.__bases__


@cache
def vocabulary_of(family: type[Family]) -> Vocabulary:
    """Return a family's vocabulary, with the subclasses that exist at the first call.

    Raises:
        TypeError: the family has no subclass; a subclass has no tag, or defines a field named ``extra``; or a subclass
            or a part of it cannot keep keys without a field.
    """
    typed: list[type[Wire]] = []
    subtyped: dict[str, dict[str, type[Wire]]] = {}
    for cls in _leaves(family):
        tag, subtype = cls.__struct_config__.tag, _subtype(cls)
        if not isinstance(tag, str) or cls is family:
            raise TypeError(f"{cls.__name__} has no type that tells it apart")
        if any("extra" in inspect.get_annotations(base) for base in cls.__mro__ if base is not Wire):
            raise TypeError(f"{cls.__name__} has a field 'extra', which keeps the keys without a field; rename it")
        _require_keeping(cls, set())
        if subtype is None:
            typed.append(cls)
        else:
            subtyped.setdefault(tag, {})[subtype] = cls
    return Vocabulary(typed, subtyped)


def _require_keeping(hint: Any, seen: set[Any]) -> None:
    """Raise TypeError if a class, or a class of its fields, cannot keep keys without a field in ``extra``."""
    if isinstance(hint, type) and issubclass(hint, Wire) and hint not in seen:
        seen.add(hint)
        config = hint.__struct_config__
        if config.array_like or not config.forbid_unknown_fields:
            option = "array_like=True" if config.array_like else "forbid_unknown_fields=False"
            raise TypeError(f"{hint.__name__} has {option}, but keys without a field are kept in 'extra'; leave it out")
        for field in msgspec.structs.fields(hint):
            _require_keeping(field.type, seen)
    for member in get_args(hint):
        _require_keeping(member, seen)
