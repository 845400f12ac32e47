"""If a line lacks a key, encoding its message does not add the key."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

import recordings
from claude_wire import decode, encode
from claude_wire.messages import UnknownObject
from claude_wire.messages.base import Wire
from claude_wire.messages.tolerant import Findings, Misfit, build
from each import each
from examples import CLASSES, full
from long_tests import LONG
from same_json import differences

#: Longer lines have the same keys as shorter ones, only more often.
MAX_BYTES = 8_000


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all JSON objects in a value, outermost first."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from objects(part)


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
                shapes.setdefault(str([value.get("type"), *map(sorted, objects(value))]), line)
    return [line for line in shapes.values() if not rewritten(line)]


@settings(max_examples=400 if LONG else 100, deadline=None)
@given(st.data())
def test_a_recorded_message_without_some_keys_comes_back_as_it_was(data: st.DataObject) -> None:
    value = json.loads(data.draw(st.sampled_from(recorded_lines())))
    for _ in range(data.draw(st.integers(1, 3))):
        filled = [part for part in objects(value) if part]
        if filled:
            part = data.draw(st.sampled_from(filled))
            del part[data.draw(st.sampled_from(sorted(part)))]
    assert rewritten(json.dumps(value)) == []


@each("cls", CLASSES)
def test_a_part_without_its_tag_comes_back_without_it(cls: type[Wire]) -> None:
    count = len(list(objects(full(cls, 2))))
    for index in range(1, count):
        value = full(cls, 2)
        part = list(objects(value))[index]
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
