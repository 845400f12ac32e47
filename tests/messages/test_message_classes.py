"""Every message class uses little memory, is public and has a docstring, even if no protocol table describes it."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from typing import get_args

import msgspec

from claude_wire import messages
from claude_wire.messages.base import MessageBase, Wire
from each import each
from protocol_tables import ALL_CLASSES, CLASSES, StructType, parts_of


def test_every_class_of_the_tables_is_among_all_classes() -> None:
    assert set(CLASSES) <= set(ALL_CLASSES)
    assert not [name for name, times in Counter(cls.__name__ for cls in ALL_CLASSES).items() if times > 1]


@each("cls", ALL_CLASSES)
def test_no_field_can_hold_memory_that_is_not_its_own(cls: StructType) -> None:
    for field in msgspec.structs.fields(cls):
        assert not {msgspec.Raw, memoryview, bytes, bytearray} & set(parts_of(field.type)), field.name


@each("cls", ALL_CLASSES)
def test_every_class_is_immutable_and_left_out_of_garbage_collection(cls: StructType) -> None:
    config = cls.__struct_config__
    assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True)
    assert config.forbid_unknown_fields  # so msgspec reports a key without a field
    assert not config.array_like


def test_no_base_has_annotations_that_are_evaluated_again_for_each_subclass() -> None:
    # msgspec evaluates string annotations when it creates a decoder. That would delay a program's first message.
    bases = (Wire, MessageBase, messages.ControlRequestBody)
    evaluated = [cls.__name__ for cls in bases for hint in inspect.get_annotations(cls).values() if type(hint) is str]
    assert evaluated == []


PUBLIC = sorted(set(messages.__all__))


def _is_class(value: object) -> bool:
    return isinstance(value, type) and type(value) is not types.GenericAlias  # Python 3.10 treats it as a class


@each("name", [name for name in PUBLIC if _is_class(getattr(messages, name))], str)
def test_every_public_class_says_what_it_is(name: str) -> None:
    cls = getattr(messages, name)
    assert (vars(cls).get("__doc__") or "").strip().endswith((".", "::", '"', "`"))


def _leaves(cls: StructType) -> set[StructType]:
    """Return the subclasses of a class in the package that have no subclasses themselves."""
    children = [child for child in cls.__subclasses__() if child.__module__.startswith("claude_wire.messages.")]
    return set().union(*map(_leaves, children)) if children else {cls}


def test_every_message_class_is_in_the_union_of_messages() -> None:
    assert {*get_args(messages.Message)} == {*_leaves(MessageBase), messages.ResultMessage, messages.UnknownMessage}


def test_every_request_class_is_in_the_union_of_requests() -> None:
    assert {*get_args(messages.ControlRequestPayload)} == _leaves(messages.ControlRequestBody)


def test_every_class_of_the_tables_is_public() -> None:
    assert {cls.__name__ for cls in CLASSES} <= set(PUBLIC)


def test_no_name_is_public_twice() -> None:
    assert len(PUBLIC) == len(messages.__all__)
