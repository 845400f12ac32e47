"""Plans from which the native reader makes instances of the message classes.

A class's plan lists its keys. For each key it has the position of the value in an instance, the types of the value, and
the value for an absent key: ``num_turns`` is an ``int``, is in word 5 of an instance, and is required. To find the
positions, the planner makes an instance with a different float in each field and searches the words of the instance for
them. An unusual class, such as one with a ``__post_init__``, gets no plan: msgspec decodes its lines.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo, fields

from claude_wire.messages.base import EXTRA_KEY, Wire, constant
from claude_wire.messages.unknown import UnknownMessage, unknown_class
from claude_wire.messages.vocabulary import Vocabulary

#: Bits for the types of a value, as in rust/src/typed/plan.rs.
NULL, BOOL, INT, FLOAT, TEXT, LIST, DICT, RECORD, WORD, ANY = (1 << bit for bit in range(10))
#: The index of the kind that allows any value.
ANYTHING = 0
#: The number of bytes in a word, and of words in a header. An instance has a header, and then a word for each field.
WORD_BYTES, HEADER_WORDS = 8, 2

_SCALARS: dict[Any, int] = {type(None): NULL, bool: BOOL, int: INT, float: FLOAT, str: TEXT, msgspec.UnsetType: 0}
#: The code of the functions that :func:`constant` makes: their results never change.
_CONSTANT = cast("Any", constant(None)).default_factory.__code__


class Unplannable(Exception):
    """The native reader cannot make instances of a class."""


class Plans:
    """Creates the plans of a vocabulary's classes, one by one.

    Args:
        change_plan: adds to the reader's plan, see rust/src/ffi/python/plan.rs. Returns False if the reader is in use.
        slots_of: returns the indexes of the words of an instance that refer to the given objects.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        change_plan: Callable[[tuple[Any, ...]], bool],
        slots_of: Callable[[tuple[Any, ...]], list[int]],
    ) -> None:
        self._change_plan = change_plan
        self._slots_of = slots_of
        self._classes: dict[type[Wire], int] = {}
        self._by_id: list[type[Wire]] = []
        self._planned: set[int] = set()
        self._kinds: dict[Any, int] = {}
        self._new_kinds: list[tuple[Any, ...] | None] = []
        self._kind_count = 1
        tops: list[tuple[bytes, bytes | None, int]] = [
            (tag.encode(), None, self._class(cls)) for tag, cls in vocabulary.by_type.items()
        ]
        for tag, classes in vocabulary.by_subtype.items():
            tops += [(tag.encode(), name.encode(), self._class(cls)) for name, cls in classes.items()]
        # The classes of lines have the first numbers.
        self._line_classes = len(self._by_id)
        open_types = tuple(tag.encode() for tag in vocabulary.others)
        self._change((), tuple(tops), open_types, (UnknownMessage, "unknown type", "unknown subtype"))

    def plan(self, id: int) -> bool:
        """Create a plan for the class with this number, unless it has one. Returns False if the reader is in use."""
        if id in self._planned:
            return True
        cls = self._by_id[id]
        kinds = len(self._new_kinds)
        try:
            shape: tuple[Any, ...] | None = self._shape(cls)
        except BaseException as error:
            # Ctrl-C may have interrupted the planning of a kind: remove the kinds that this call has added.
            del self._new_kinds[kinds:]
            self._kinds = {hint: kind for hint, kind in self._kinds.items() if kind < self._kind_count + kinds}
            if not isinstance(error, Unplannable):
                raise
            shape = None
        if not self._change(((id, shape),)):
            return False
        self._planned.add(id)
        return True

    def _change(
        self,
        shapes: tuple[Any, ...],
        tops: tuple[Any, ...] = (),
        open_types: tuple[bytes, ...] = (),
        unknown: tuple[Any, ...] | None = None,
    ) -> bool:
        kinds = tuple(self._new_kinds)
        if not self._change_plan((len(self._by_id), self._kind_count, kinds, shapes, tops, open_types, unknown)):
            return False
        # Use one statement, because Ctrl-C can interrupt between two statements.
        self._new_kinds, self._kind_count = [], self._kind_count + len(kinds)
        return True

    def _class(self, cls: type[Wire]) -> int:
        if cls not in self._classes:
            # Keep this order: if Ctrl-C interrupts between the two lines, no two classes get the same number.
            self._by_id.append(cls)
            self._classes[cls] = len(self._by_id) - 1
        return self._classes[cls]

    def _shape(self, cls: type[Wire]) -> tuple[Any, ...]:
        """Return the class, an instance's size in words, the tag, the fields (tag last), and the ``extra`` slot."""
        config, infos = cls.__struct_config__, fields(cls)
        unusual = config.gc or config.array_like or config.weakref or config.dict
        if unusual or config.cache_hash or hasattr(cls, "__post_init__"):
            raise Unplannable
        # Messages share values, so the class must be frozen. The reader compares only tags that are strings.
        if not config.frozen or not isinstance(config.tag, str | None):
            raise Unplannable
        # The reader chooses the class of a line by its type, and does not read the type again.
        if self._class(cls) < self._line_classes and config.tag_field != "type":
            raise Unplannable
        words = cls.__basicsize__ // WORD_BYTES
        slots = slots_of_fields(cls, self._slots_of)
        if sorted(slots) != list(range(HEADER_WORDS, words)):
            raise Unplannable
        rows: list[tuple[Any, ...]] = [
            (info.encode_name.encode(), self._kind(info.type), slot, _defaults(info))
            for info, slot in zip(infos, slots, strict=True)
            if info.encode_name != EXTRA_KEY
        ]
        extra = next((slot for info, slot in zip(infos, slots, strict=True) if info.encode_name == EXTRA_KEY), None)
        if config.tag_field is not None:
            rows.append((config.tag_field.encode(), None, 0, ()))
        return cls, words, (config.tag or "").encode(), tuple(rows), extra

    def _kind(self, hint: Any) -> int:
        """Return the number of the kind for a type annotation, and make the kind if it is new."""
        if hint is Any:
            return ANYTHING
        if hint not in self._kinds:
            # Assign the number first: a type may contain itself.
            self._kinds[hint] = self._kind_count + len(self._new_kinds)
            place = len(self._new_kinds)
            self._new_kinds.append(None)
            self._new_kinds[place] = self._kind_of(hint)
        return self._kinds[hint]

    def _kind_of(self, hint: Any) -> tuple[Any, ...]:
        members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        may_be, item = 0, ANYTHING
        structs: list[type[Wire]] = []
        words: tuple[tuple[bytes, str], ...] = ()
        for member in members:
            origin = get_origin(member)
            if member in _SCALARS:
                may_be |= _SCALARS[member]
            elif member is Any:
                may_be |= ANY
            elif list in (member, origin):
                may_be |= LIST
                item = self._kind(get_args(member)[0]) if get_args(member) else ANYTHING
            elif dict in (member, origin) and (get_args(member) or (str,))[0] in (str, Any):
                may_be |= DICT
                item = self._kind(get_args(member)[1]) if get_args(member) else ANYTHING
            elif origin is Literal and all(type(word) is str for word in get_args(member)):
                may_be |= WORD
                words = tuple((word.encode(), sys.intern(word)) for word in get_args(member))
            elif isinstance(member, type) and issubclass(member, Wire):
                may_be |= RECORD
                structs.append(member)
            else:
                raise Unplannable
        if may_be & LIST and may_be & DICT:
            raise Unplannable  # a kind has only one kind of items
        tag_field = (structs[0].__struct_config__.tag_field or "") if structs else ""
        tagged = tuple((self._class(cls), str(cls.__struct_config__.tag or "").encode()) for cls in structs)
        unknown = (unknown_class(structs), f"unknown {tag_field}") if len(structs) > 1 else None
        return may_be, item, tagged, tag_field.encode(), words, unknown


def slots_of_fields(cls: type[Wire], slots_of: Callable[[tuple[Any, ...]], list[int]]) -> list[int]:
    """Return the index of each field's word in an instance. The class must have no ``__post_init__``."""
    # Create new floats, because no other word of the instance refers to them.
    probes: tuple[Any, ...] = tuple(float(number) + 0.5 for number in range(len(cls.__struct_fields__)))
    instance = cls(**dict(zip(cls.__struct_fields__, probes, strict=True)))
    slots = slots_of((instance, cls.__basicsize__ // WORD_BYTES, probes))
    if min(slots, default=HEADER_WORDS) < HEADER_WORDS:
        raise Unplannable
    return slots


def _defaults(info: FieldInfo) -> tuple[Any, ...]:
    """Return a tuple with a field's value for an absent key. The tuple is empty if the key is required."""
    if info.default is not msgspec.NODEFAULT:
        default = info.default
    elif getattr(info.default_factory, "__code__", None) is _CONSTANT:
        default = info.default_factory()
    elif info.default_factory is not msgspec.NODEFAULT:
        raise Unplannable  # the factory may return a different value each time
    else:
        return ()
    if default is not None and default is not msgspec.UNSET and type(default) not in (str, int, bool, float):
        raise Unplannable
    return (default,)
