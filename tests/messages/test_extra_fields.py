"""Objects of every class, at every depth, keep keys without a field and write them again."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import functools
import json
import math
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordings
from claude_wire import Decoder, EncodeError, Encoder, TextBlock, UnknownMessage, decode, encode
from claude_wire.codec.encoder import encode_value
from claude_wire.errors import InvalidLineError
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
    UnknownObject,
)
from claude_wire.messages.base import EXTRA_KEY, Wire
from claude_wire.messages.tolerant import Findings, Misfit, build
from claude_wire.messages.vocabulary import Family
from each import each
from examples import CLASSES, full, is_struct
from feeding import fed
from long_tests import LONG
from same_json import differences

every_class = each("cls", CLASSES)

#: Keys that no class declares: a new key, and the two names under which Python and msgspec store such keys.
KEYS = ("of_tomorrow", "extra", EXTRA_KEY)
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
    """Yield the path of every JSON object in a value, and the object that it was decoded to."""
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


def typed_at(value: Any, path: Path) -> Any:
    """Return the part of a message at a path of wire keys."""
    for step in path:
        if isinstance(value, Wire):
            step = {f.encode_name: f.name for f in msgspec.structs.fields(value)}[str(step)]
            value = getattr(value, step)
        else:
            value = value[step]
    return value


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


@every_class
def test_a_key_without_a_field_is_kept_where_it_stood(cls: type[Wire]) -> None:
    plain = full(cls, 2)
    expected = built(plain, cls).to_dict()
    places = list(objects(plain, built(plain, cls)))
    assert places[0][0] == ()
    for index, (path, holder) in enumerate(places):
        # Try every key in the outermost object, and one key in each nested object.
        for key in KEYS if path == () else [KEYS[index % len(KEYS)]]:
            if key in at(plain, path):
                continue
            given, wanted = copy.deepcopy(plain), copy.deepcopy(expected)
            value = VALUE
            if not isinstance(holder, Wire):  # a map; its values may need a certain type
                value = next(iter(at(plain, path).values()), VALUE)
            at(given, path)[key] = at(wanted, path)[key] = value
            for way in ways(cls):
                message = way(given, cls)
                assert type(message) is cls
                if isinstance(holder, Wire):
                    assert typed_at(message, path).extra == {key: value}, path
                assert message.to_dict() == wanted, (path, key)
                assert json.loads(encode(message)) == wanted
                assert json.loads(Encoder().encode_lines([KeepAlive(), message]).splitlines()[1]) == wanted


@every_class
def test_without_such_a_key_nothing_is_kept(cls: type[Wire]) -> None:
    message = built(full(cls, 2), cls)
    assert all(part.extra is None for _, part in objects(full(cls, 2), message) if isinstance(part, Wire))


def unions(cls: type[Wire]) -> Iterator[tuple[str, str]]:
    """Yield each field that may hold one of several classes, and the key that selects the class."""
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


def test_extra_is_written_after_the_fields_and_never_instead_of_one() -> None:
    message = TextBlock("a", extra={"text": "b", "type": "c", "of_tomorrow": None})
    wanted = b'{"type":"text","text":"a","of_tomorrow":null}'
    assert encode(message) == wanted + b"\n"
    assert message.to_dict() == json.loads(wanted)
    assert encode_value([message]) == b"[" + wanted + b"]"


def test_what_msgspec_itself_does_with_extra_is_as_documented() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `of_tomorrow`"):
        msgspec.json.decode(b'{"type":"text","text":"a","of_tomorrow":1}', type=TextBlock)
    assert msgspec.json.encode(TextBlock("a", extra={"b": 1})) == b'{"type":"text","text":"a","(extra)":{"b":1}}'


def test_messages_with_other_extra_differ() -> None:
    assert TextBlock("a", extra={"b": 1}) == TextBlock("a", extra={"b": 1})
    assert TextBlock("a", extra={"b": 1}) != TextBlock("a", extra={"b": 2})
    assert TextBlock("a") != TextBlock("a", extra={"b": 1})


@pytest.mark.parametrize(
    ("line", "list_of"),
    [
        (b'{"type":"keep_alive","new":{"a":[1]}}\n', lambda message: message.extra["new"]["a"]),
        (
            b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
            b'"text":"a","new":[1]}},"session_id":"s","uuid":"%d"}\n',
            lambda message: message.event.delta.extra["new"],
        ),
        (
            b'{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"}]},"uuid":"%d"}\n',
            lambda message: message.content,
        ),
        (b'{"type":"user","message":{"role":"user","content":"a"},"new":[1]}\n', lambda message: message.extra["new"]),
    ],
)
def test_messages_of_equal_lines_share_nothing_that_can_change(
    line: bytes, list_of: Callable[[Any], list[Any]]
) -> None:
    lines = [line % index if b"%d" in line else line for index in range(18)]
    messages = [message for three in range(0, 18, 3) for message in Decoder().feed(b"".join(lines[three : three + 3]))]
    first = list_of(messages[0])[0]
    for index, message in enumerate(messages):
        list_of(message).append(index)
    assert [list_of(message) for message in messages] == [[first, index] for index in range(18)]
    again = Decoder().feed(b"".join(lines))
    assert [list_of(message) for message in again] == [[first]] * 18


@each("name", recordings.names(), str)
def test_a_recording_with_a_new_key_in_each_object_comes_back(name: str) -> None:
    plain: list[Any] = []
    for line in recordings.load(name).stdout.splitlines():
        with suppress(InvalidLineError):  # some recordings end in the middle of a line
            message = decode(line)
            plain.append(with_new_keys(json.loads(line), message))
    stream = b"".join(json.dumps(value).encode() + b"\n" for value in plain)
    for kind in ("whole", "line by line"):
        chunks = [stream] if kind == "whole" else stream.splitlines(keepends=True)
        messages = fed(Decoder(), chunks)
        for value, message in zip(plain, messages, strict=True):
            assert not isinstance(message, UnknownMessage) or message.reason == "unknown type"
            assert differences(message, value, json.loads(encode(message))) == []


def with_new_keys(plain: Any, typed: Any) -> Any:
    """Add a new key to each object. ``typed`` is the decoded message, which distinguishes objects from maps."""
    if isinstance(plain, list):
        return [with_new_keys(item, part) for item, part in zip(plain, typed, strict=True)]
    if not isinstance(plain, dict):
        return plain
    if not isinstance(typed, Wire):  # the values of a map may need a certain type
        made = {key: with_new_keys(item, typed[key]) for key, item in plain.items()}
        return made | {"of_tomorrow": next(iter(made.values()), VALUE)}
    names = dict(zip(typed.__struct_encode_fields__, typed.__struct_fields__, strict=True))
    made = {
        key: with_new_keys(item, getattr(typed, names[key])) if key in names else item for key, item in plain.items()
    }
    return made | {"of_tomorrow": VALUE}


def test_a_class_of_a_family_must_leave_the_place_for_extra_free() -> None:
    class Log(Family, frozen=True): ...

    class Entry(Log, tag="entry", frozen=True):
        extra: int = 0  # type: ignore[assignment]  # the mistake under test

    with pytest.raises(TypeError, match="Entry has a field 'extra'"):
        Decoder(Log)


@pytest.mark.parametrize("option", [{"forbid_unknown_fields": False}, {"array_like": True}])
@pytest.mark.parametrize("of_part", [False, True])
def test_a_class_of_a_family_must_be_able_to_keep_extra(option: dict[str, bool], of_part: bool) -> None:
    class Log(Family, frozen=True): ...

    part = msgspec.defstruct("Part", [("a", int, 0)], bases=(Wire,), frozen=True, **(option if of_part else {}))
    fields = [("parts", dict[str, list[part]] | None, None)]  # type: ignore[valid-type]  # a class created at run time
    msgspec.defstruct("Entry", fields, bases=(Log,), tag="entry", frozen=True, **({} if of_part else option))
    with pytest.raises(TypeError, match=f"{'Part' if of_part else 'Entry'} has {next(iter(option))}="):
        Decoder(Log)


def test_a_class_that_writes_its_defaults_writes_no_empty_extra() -> None:
    class Log(Family, frozen=True): ...

    class Entry(Log, tag="entry", frozen=True, omit_defaults=False):
        text: str = ""

    for line in (b'{"type":"entry","text":""}\n', b'{"type":"entry","text":"","new":[{"(extra)":{}}]}\n'):
        for message in Decoder(Log).feed(line * 3):
            assert isinstance(message, Entry)
            assert encode(message) == line
            assert Encoder().encode_lines([message]) == line
            assert message.to_dict() == json.loads(line)


# --- Values that a program stores in ``extra`` ------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Plain(msgspec.Struct):
    """A Struct that is not a message class."""

    inner: Any


@dataclasses.dataclass
class Data:
    inner: Any


BLOCK = TextBlock("a", extra={"b": 1})


@pytest.mark.parametrize(
    ("extra", "written"),
    [
        ({EXTRA_KEY: {"a": 1}, "b": "\ud83d"}, b'"(extra)":{"a":1},"b":"\\ud83d"'),
        ({"a": TextBlock("\ud83d", extra={EXTRA_KEY: {}})}, b'"a":{"type":"text","text":"\\ud83d","(extra)":{}}'),
        ({"\ud83d": 2**70}, b'"\\ud83d":1180591620717411303424'),
        ({"": None}, b'"":null'),
        ({1: 2, 2.5: 3}, b'"1":2,"2.5":3'),
        ({Colour.RED: [BLOCK]}, b'"red":[{"type":"text","text":"a","b":1}]'),
        ({datetime.date(2020, 1, 2): Colour.RED}, b'"2020-01-02":"red"'),
        ({"a": msgspec.Raw(b"[ 1 ]")}, b'"a":[ 1 ]'),
        ({"a": (BLOCK,)}, b'"a":[{"type":"text","text":"a","b":1}]'),
        ({"a": {TextBlock("c")}}, b'"a":[{"type":"text","text":"c"}]'),
        ({"a": Plain(BLOCK)}, b'"a":{"inner":{"type":"text","text":"a","b":1}}'),
        ({"a": Data([BLOCK])}, b'"a":{"inner":[{"type":"text","text":"a","b":1}]}'),
        ({"a": math.nan, "b": "\u2028"}, b'"a":null,"b":"\\u2028"'),
        ({"type": "other", "a": UnknownMessage({EXTRA_KEY: {}})}, b'"a":{"(extra)":{}}'),
    ],
)
def test_extra_of_a_program_is_written_as_a_dict_with_it_is(extra: dict[Any, Any], written: bytes) -> None:
    message, line = TextBlock("x", extra=extra), b'{"type":"text","text":"x",' + written + b"}\n"
    assert encode(message) == line
    assert Encoder().encode_lines([message, message]) == line * 2
    assert encode_value([message]) == b"[" + line[:-1] + b"]"
    assert encode({"type": "text", "text": "x", **{k: v for k, v in extra.items() if k != "type"}}) == line


@pytest.mark.parametrize("value", [object(), 1j, msgspec.UNSET, {(1,): 2}, {None: 1}])
def test_extra_that_json_cannot_express_is_refused(value: Any) -> None:
    extra = value if isinstance(value, dict) else {"a": value}
    for encoded in (encode, encode_value, lambda message: Encoder().encode_lines([message])):
        with pytest.raises(EncodeError, match="no JSON for this message: TypeError"):
            encoded(TextBlock("x", extra=extra))


def test_extra_may_be_nested_as_deeply_as_a_dict() -> None:
    deep: Any = []
    for _ in range(sys.getrecursionlimit() // 2):
        deep = [deep]
    message = TextBlock("x", extra={"a": deep})
    assert encode(message) == encode({"type": "text", "text": "x", "a": deep})
    assert message.to_dict()["a"] == deep


def test_a_message_with_extra_can_be_pickled_copied_and_replaced() -> None:
    message = TextBlock("x", extra={"a": [1]})
    for other in (pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)):
        assert other == message
        assert encode(other) == encode(message)
    assert copy.deepcopy(message).extra["a"] is not message.extra["a"]  # type: ignore[index]  # it has one
    assert encode(msgspec.structs.replace(message, text="y")) == b'{"type":"text","text":"y","a":[1]}\n'
    assert repr(message) == "TextBlock(text='x', extra={'a': [1]})"
    assert hash(TextBlock("x")) == hash(TextBlock("x"))


# --- Permission requests in the dialect that sends them as system messages
# ----------------------------------------------


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
    assert message == PermissionReply(True, {"command": "ls -a"}, extra={"why": "\ud83d"})
    assert encode(message) == line + b"\n"
    assert encode(PermissionReply(True)) == b'{"allow":true}\n'


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
            assert isinstance(message, UnknownMessage)  # its content may be a string or a list, not an object
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


# --- If a line lacks a key, encoding its message does not add the key -------------------------------------------------


#: Longer lines have the same keys as shorter ones, only more often.
MAX_BYTES = 8_000


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all JSON objects_in in a value, outermost first."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from objects_in(part)


def rewritten(line: str) -> list[str]:
    """Return the differences between a line and the encoding of its message."""
    message = decode(line)
    return differences(message, json.loads(line), json.loads(encode(message)))


@functools.cache
def recorded_lines() -> list[str]:
    """Return one recorded line of each shape, among the lines that are encoded unchanged."""
    shapes: dict[str, str] = {}
    for name in recordings.names():
        recording = recordings.load(name)
        for raw in (recording.stdout + b"\n" + recording.stdin).split(b"\n"):
            if len(raw) > MAX_BYTES or b"NaN" in raw or b"[[[" in raw:
                continue
            try:
                line = raw.decode()
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                shapes.setdefault(str([value.get("type"), *map(sorted, objects_in(value))]), line)
    return [line for line in shapes.values() if not rewritten(line)]


@settings(max_examples=400 if LONG else 100, deadline=None)
@given(st.data())
def test_a_recorded_message_without_some_keys_comes_back_as_it_was(data: st.DataObject) -> None:
    value = json.loads(data.draw(st.sampled_from(recorded_lines())))
    for _ in range(data.draw(st.integers(1, 3))):
        filled = [part for part in objects_in(value) if part]
        if filled:
            part = data.draw(st.sampled_from(filled))
            del part[data.draw(st.sampled_from(sorted(part)))]
    assert rewritten(json.dumps(value)) == []


@each("cls", CLASSES)
def test_a_part_without_its_tag_comes_back_without_it(cls: type[Wire]) -> None:
    count = len(list(objects_in(full(cls, 2))))
    for index in range(1, count):
        value = full(cls, 2)
        part = list(objects_in(value))[index]
        for tag in ("type", "subtype", "kind", "behavior"):
            if tag in part:
                removed = part.pop(tag)
                for message in read(value, cls):
                    assert differences(message, value, msgspec.to_builtins(message)) == [], (index, tag)
                part[tag] = removed


def read(value: Any, cls: type[Wire]) -> Iterator[Any]:
    """Yield the value as read by msgspec and by the tolerant reader, if they accept it."""
    try:
        yield msgspec.json.decode(json.dumps(value), type=cls)
    except msgspec.ValidationError:
        pass
    try:
        yield build(value, cls, Findings())
    except Misfit:
        pass


def test_a_cache_mark_of_another_kind_leaves_its_block_known() -> None:
    for mark in ({"ttl": "5m"}, {"type": "", "ttl": "5m"}, {"type": "of_tomorrow"}):
        block = {"type": "text", "text": "a", "cache_control": mark}
        line = json.dumps({"type": "assistant", "message": {"content": [block]}})
        message: Any = decode(line)
        assert message.text == "a"
        assert message.content[0].cache_control == UnknownObject(mark)
        assert rewritten(line) == []
