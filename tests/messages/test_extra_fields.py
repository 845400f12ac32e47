"""Where a key goes that a class has no field for: at every level of every public class, decoded and written again.

The class says it: ``Wire.keeps_extra``. Where it is true the key is kept, elsewhere it is ignored and nothing else is.
Plain dicts and ``Unknown…`` values are kept whole.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, Union, get_args

import msgspec
import pytest

from claude_wire import Decoder, Encoder, TextBlock, UnknownMessage, decode, encode
from claude_wire.messages import (
    ImageBlock,
    KeepAlive,
    Message,
    PermissionReply,
    PermissionRequestMessage,
    SystemToolResultMessage,
    ToolResultMessage,
    Unknown,
    UnknownBlock,
)
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Findings, build
from each import each
from examples import CLASSES, full, is_struct

every_class = each("cls", CLASSES)

#: A key that no class has, and that of the field that holds such keys.
KEYS = ("of_tomorrow", "extra")
VALUE = {"a": [1, None, {"type": "text", "text": "é"}]}

Path = tuple[str | int, ...]


def built(value: dict[str, Any], cls: type[Wire]) -> Wire:
    return build(value, cls, Findings())


def through_decode(value: dict[str, Any], cls: type[Wire]) -> Any:
    return decode(json.dumps(value))


def through_a_block(value: dict[str, Any], cls: type[Wire]) -> Any:
    line = json.dumps(value).encode()
    _, message, _ = Decoder().feed(b'{"type":"keep_alive"}\n' + line + b'\n{"type":"keep_alive"}\n')
    return message


def ways(cls: type[Wire]) -> Iterator[Callable[[dict[str, Any], type[Wire]], Any]]:
    yield built
    if cls in get_args(Message):
        yield from (through_decode, through_a_block)


def objects(plain: Any, typed: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every JSON object of a value, by its path, with what it was decoded to."""
    if isinstance(plain, dict):
        yield path, typed
        names = {f.encode_name: f.name for f in msgspec.structs.fields(typed)} if isinstance(typed, Wire) else {}
        for key, item in plain.items():
            if not isinstance(typed, Wire):
                yield from objects(item, typed[key], (*path, key))
            elif key in names:
                yield from objects(item, getattr(typed, names[key]), (*path, key))
    elif isinstance(plain, list):
        for index, item in enumerate(plain):
            yield from objects(item, typed[index], (*path, index))


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


@every_class
def test_a_key_without_a_field_is_kept_where_the_class_says_so_and_nothing_else_is_lost(cls: type[Wire]) -> None:
    plain = full(cls, 2)
    expected = built(plain, cls).to_dict()
    places = list(objects(plain, built(plain, cls)))
    assert places[0][0] == ()
    for path, holder in places:
        for key in KEYS:
            given = copy.deepcopy(plain)
            if key in at(given, path):
                continue
            wanted = copy.deepcopy(expected)
            if not isinstance(holder, Wire):  # a map, whose values may have a type
                at(given, path)[key], at(wanted, path)[key] = (
                    next(iter(at(v, path).values()), VALUE) for v in (plain, expected)
                )
            else:
                at(given, path)[key] = VALUE
                if holder.keeps_extra:
                    at(wanted, path)[key] = VALUE
            for way in ways(cls):
                message = way(given, cls)
                assert type(message) is cls
                assert message.to_dict() == wanted, (path, key)
                assert json.loads(encode(message)) == wanted
                assert json.loads(Encoder().encode_lines([KeepAlive(), message]).splitlines()[1]) == wanted


def unions(cls: type[Wire]) -> Iterator[tuple[str, str]]:
    """The fields that hold one of several classes, each with the key that tells which."""
    for field in msgspec.structs.fields(cls):
        structs = [member for member in get_args(field.type) if is_struct(member)]
        if len(structs) > 1:
            yield field.encode_name, structs[0].__struct_config__.tag_field


@every_class
def test_an_object_of_an_unknown_kind_is_kept_whole(cls: type[Wire]) -> None:
    for name, tag in unions(cls):
        value = {tag: "of_tomorrow", "more": VALUE}
        message = built({**full(cls), name: value}, cls)
        held = at(message.to_dict(), (name,))
        assert held == value
        assert any(isinstance(getattr(message, field), Unknown) for field in message.__struct_fields__)


def test_the_classes_that_keep_more_say_so_and_have_a_place_for_it() -> None:
    keeping = {cls for cls in CLASSES if cls.keeps_extra}
    assert keeping == {cls for cls in CLASSES if "``extra``" in (cls.__doc__ or "")}
    assert keeping == {cls for cls in CLASSES if "extra" in cls.__struct_fields__}
    assert {PermissionReply, PermissionRequestMessage} <= keeping
    # msgspec encodes what is within a message; only a message itself is written with its other keys.
    assert keeping <= set(get_args(Message))
    for cls in CLASSES:
        for field in msgspec.structs.fields(cls):
            assert not keeping & set(get_args(Union[field.type, None])), field.name


# --- Permission in the dialect where it is no control request ---------------------------------------------------------


def test_a_permission_request_names_its_tool_in_either_spelling() -> None:
    line = b'{"type":"system","subtype":"permission_request","name":"Bash","args":{"command":"ls"},"id":7}'
    message = decode(line)
    assert isinstance(message, PermissionRequestMessage)
    assert (message.name, message.args, message.extra) == ("Bash", {"command": "ls"}, {"id": 7})
    assert json.loads(encode(message)) == json.loads(line)
    other = decode(line.replace(b'"name"', b'"tool_name"').replace(b'"args"', b'"input"'))
    assert isinstance(other, PermissionRequestMessage)
    assert (other.tool_name, other.input) == ("Bash", {"command": "ls"})


def test_a_permission_reply_keeps_what_is_beside_allow() -> None:
    line = b'{"allow":true,"updatedInput":{"command":"ls -a"},"why":"\\ud83d"}'
    message = decode(line)
    assert message == PermissionReply(True, {"command": "ls -a"}, {"why": "\ud83d"})
    assert encode(message) == line + b"\n"
    assert encode(PermissionReply(True)) == b'{"allow":true}\n'


def test_a_field_wins_over_a_key_of_the_same_name() -> None:
    message = PermissionReply(False, extra={"allow": True, "a": 1})
    assert message.to_dict() == {"allow": False, "a": 1}


# --- Results of tools -------------------------------------------------------------------------------------------------

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


@pytest.mark.parametrize(
    "result",
    [
        "text",
        {"type": "text", "text": "a"},
        IMAGE,
        {"type": "of_tomorrow", "x": [1]},
        {"type": "text"},
        [],
        [{"type": "text", "text": "a"}, IMAGE, {"type": "of_tomorrow"}],
    ],
)
def test_what_a_tool_returned_is_kept_whatever_it_is(result: Any) -> None:
    for value, cls in (
        ({"type": "tool_result", "tool_use_id": "t", "result": result}, ToolResultMessage),
        ({"type": "system", "subtype": "tool_result", "tool_use_id": "t", "content": result}, SystemToolResultMessage),
    ):
        message = decode(json.dumps(value))
        if cls is SystemToolResultMessage and isinstance(result, dict):
            assert isinstance(message, UnknownMessage)  # its content is a string or a list, and this one is kept whole
        else:
            assert isinstance(message, cls)
        assert json.loads(encode(message)) == value


def test_what_a_tool_returned_is_typed() -> None:
    def result(value: Any) -> Any:
        message = decode(json.dumps({"type": "tool_result", "tool_use_id": "t", "result": value}))
        assert isinstance(message, ToolResultMessage)
        return message.result

    assert result({"type": "text", "text": "a"}) == TextBlock("a")
    assert isinstance(result(IMAGE), ImageBlock)
    assert isinstance(result({"type": "of_tomorrow"}), UnknownBlock)
    assert [type(block) for block in result([{"type": "text", "text": "a"}, IMAGE])] == [TextBlock, ImageBlock]
