"""Tests of the helper that compares messages with their JSON: it finds lost, added and changed keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import decode, encode
from same_json import differences

USER: dict[str, Any] = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "text", "text": "a", "citations": None}]},
    "parent_tool_use_id": None,
    "tool_use_result": {"null": None, "one": 1},
}


def _differences(original: dict[str, Any], encoded: dict[str, Any]) -> list[str]:
    return differences(decode(json.dumps(original)), original, encoded)


def _changed(path: tuple[Any, ...], value: Any = None, *, drop: bool = False) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(USER))
    at: Any = changed
    for step in path[:-1]:
        at = at[step]
    if drop:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return changed


def test_a_message_is_the_same_as_its_own_json() -> None:
    assert differences(decode(json.dumps(USER)), USER, json.loads(encode(decode(json.dumps(USER))))) == []


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (_changed(("message", "content", 0, "text"), "b"), "changed $.message.content[0].text"),
        (_changed(("type",), "assistant"), "changed $.type"),
        (_changed(("message", "content", 0, "type"), "image"), "changed $.message.content[0].type"),
        (_changed(("message", "role"), drop=True), "lost $.message.role"),
        (_changed(("message", "content"), []), "length $.message.content"),
        (_changed(("message", "content"), "a"), "changed $.message.content"),
        (_changed(("timestamp",), "now"), "added $.timestamp"),
        (_changed(("zzz",), None), "added $.zzz"),
        # a null and a missing key differ, in a field that distinguishes them and in free-form objects
        (_changed(("message", "content", 0, "citations"), drop=True), "lost $.message.content[0].citations"),
        (_changed(("tool_use_result", "null"), drop=True), "lost $.tool_use_result.null"),
        (_changed(("tool_use_result", "two"), None), "added $.tool_use_result.two"),
        (_changed(("tool_use_result", "one"), True), "changed $.tool_use_result.one"),
    ],
)
def test_a_difference_is_found_and_named(encoded: dict[str, Any], expected: str) -> None:
    assert _differences(USER, encoded) == [expected]


def test_a_dropped_field_that_no_class_lists_is_found() -> None:
    assert _differences({**USER, "zzz": 1}, USER) == ["lost $.zzz"]


def test_null_where_the_key_was_absent_is_found_if_they_differ() -> None:
    absent = _changed(("message", "content", 0, "citations"), drop=True)
    assert _differences(absent, USER) == ["added $.message.content[0].citations"]


@pytest.mark.parametrize("encoded", [_changed(("parent_tool_use_id",), drop=True), _changed(("timestamp",), None)])
def test_null_and_absent_are_one_in_other_fields(encoded: dict[str, Any]) -> None:
    assert _differences(USER, encoded) == []
    assert _differences(encoded, USER) == []


def test_one_and_one_point_zero_are_one_number() -> None:
    assert _differences(USER, _changed(("tool_use_result", "one"), 1.0)) == []


def test_what_is_unknown_must_come_back_exactly() -> None:
    original = {"type": "wibble", "a": [{"b": None}]}
    assert _differences(original, original) == []
    assert _differences(original, {"type": "wibble", "a": [{}]}) == ["lost $.a[0].b"]
