"""The tolerant reader builds valid messages exactly as msgspec does, and keeps the parts that do not fit."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, Literal, get_args

import msgspec
import pytest

from claude_wire import AssistantMessage, TextBlock, ToolResultBlock, decode, encode
from claude_wire.messages import CacheControl, ContentBlock, Unknown, UnknownBlock, UnknownObject
from claude_wire.messages import tolerant as _tolerant
from claude_wire.messages.base import Number, Wire, wire_fields
from claude_wire.messages.tolerant import Findings, Misfit, build
from each import each
from examples import CLASSES, example, full, minimal
from protocol_tables import structs_in

every_class = each("cls", CLASSES)


def built(value: Any, cls: Any) -> tuple[Any, list[Unknown]]:
    findings = Findings()
    return build(value, cls, findings), findings.unknown


def reason(value: Any, cls: Any) -> str:
    with pytest.raises(Misfit) as caught:
        build(value, cls, Findings())
    return caught.value.reason


# --- The same as msgspec ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [minimal, full, lambda cls: full(cls, 2)], ids=["minimal", "full", "deep"])
@every_class
def test_what_fits_is_built_as_msgspec_builds_it(cls: type[Wire], make: Any) -> None:
    value = make(cls)
    message, unknown = built(value, cls)
    assert type(message) is cls
    assert message == msgspec.json.decode(json.dumps(value), type=cls)
    assert unknown == []


#: One value of each JSON type, and values between the types, such as 7.0.
VALUES = [
    None,
    True,
    0,
    7,
    7.0,
    7.5,
    -1,
    2**64,
    "",
    "text",
    [],
    ["text"],
    [None],
    {},
    {"a": 1},
    {"type": "new"},
    {"a": []},
]


@every_class
def test_what_does_not_fit_is_what_msgspec_refuses(cls: type[Wire]) -> None:
    whole = full(cls)
    for field in wire_fields(cls):
        for other in VALUES:
            if isinstance(other, dict) and other and structs_in(field.type):
                continue  # msgspec refuses unknown keys; the reader keeps them
            value = {**whole, field.encode_name: other}
            wanted = by_msgspec(value, cls)
            if wanted is None and type(other) is float:
                # 7.0 may be meant as the integer 7. msgspec refuses it, and the library converts it.
                wanted = by_msgspec({**value, field.encode_name: int(other)}, cls) if other.is_integer() else None
            found = by_building(value, cls)
            assert found == wanted, (field.name, other)
            if wanted is not None:
                # In Python 7 == 7.0 and False == 0, but they are different JSON.
                given = getattr(found, field.name), getattr(wanted, field.name)
                assert type(given[0]) is type(given[1]), (field.name, other)


def by_msgspec(value: Any, cls: type[Wire]) -> Any:
    try:
        return msgspec.json.decode(json.dumps(value), type=cls)
    except msgspec.ValidationError:
        return None


def by_building(value: Any, cls: type[Wire]) -> Any:
    """Return the message if all of its parts fit, else None."""
    try:
        message, unknown = built(value, cls)
    except Misfit:
        return None
    return None if unknown else message


@every_class
def test_a_required_field_may_not_be_missing(cls: type[Wire]) -> None:
    whole = minimal(cls)
    for field in msgspec.structs.fields(cls):
        if field.required:
            rest = {key: value for key, value in whole.items() if key != field.encode_name}
            with pytest.raises(msgspec.ValidationError):
                msgspec.json.decode(json.dumps(rest), type=cls)
            if msgspec.UnsetType in get_args(field.type):  # may be absent on the wire, but not in the constructor
                assert getattr(built(rest, cls)[0], field.name) is msgspec.UNSET
                continue
            assert reason(rest, cls) == f"missing {field.encode_name!r}"


@every_class
def test_only_an_object_is_an_instance(cls: type[Wire]) -> None:
    for value, kind in ((None, "null"), (True, "true or false"), (7, "a number"), ("", "a string"), ([], "an array")):
        assert reason(value, cls) == f"expected an object, got {kind}"


# --- One rule at a time -----------------------------------------------------------------------------------------------


class Part(Wire, frozen=True):
    text: str


class One(Wire, tag_field="type", tag="one", frozen=True):
    part: Part


class Two(Wire, tag_field="type", tag="two", rename={"from_": "from"}, frozen=True):
    from_: str
    inner: One | Two | None = None


class Whole(Wire, frozen=True):
    count: int | None = None
    number: Number | None = None
    real: float | None = None
    flag: bool | None = None
    words: list[str] | None = None
    table: dict[str, int] | None = None
    either: str | list[One | Two] | None = None
    fixed: Literal["a"] = "a"
    anything: Any = None
    parts: dict[str, Part] | None = None
    fraction: float = 0.0
    maybe: float | None = None
    word: Literal["a", "b"] | None = None
    level: Literal["first", "second"] = "first"


def test_an_integral_number_is_a_whole_number() -> None:
    whole, _ = built({"count": 7.0, "table": {"a": -0.0, "b": 1e3}}, Whole)
    assert whole == Whole(count=7, table={"a": 0, "b": 1000})
    assert [type(value) for value in (whole.count, *whole.table.values())] == [int] * 3
    assert reason({"count": 7.5}, Whole) == "expected a whole number, got a fraction at $.count"


def test_a_whole_number_may_be_a_fraction() -> None:
    whole, _ = built({"fraction": 7, "maybe": -2}, Whole)
    assert repr(whole.fraction) == "7.0"
    assert repr(whole.maybe) == "-2.0"
    with pytest.raises(Misfit):
        built({"fraction": 10**400}, Whole)


def test_a_word_of_a_choice_may_be_null_but_no_other_word() -> None:
    for value in ("a", "b", None):
        whole, _ = built({"word": value}, Whole)
        assert whole.word == value
    assert reason({"word": "c"}, Whole) == "unexpected value at $.word"
    assert reason({"word": 1}, Whole) == "expected a string, got a number at $.word"


def test_a_word_that_is_the_default_is_not_written() -> None:
    whole, _ = built({"level": "".join(["fir", "st"])}, Whole)  # an object of its own, as a parser of JSON makes it
    assert encode(whole) == b"{}\n"


def test_a_number_stays_as_it_was_written() -> None:
    for value in (7, 7.0, 7.5, 2**70):
        whole, _ = built({"number": value}, Whole)
        assert repr(whole.number) == repr(value)


def test_true_is_no_number_and_one_is_not_true() -> None:
    assert reason({"count": True}, Whole) == "expected a whole number, got true or false at $.count"
    assert reason({"number": False}, Whole) == "expected a number, got true or false at $.number"
    assert reason({"flag": 1}, Whole) == "expected true or false, got a number at $.flag"
    assert reason({"fixed": True}, Whole) == "unexpected value at $.fixed"


def test_a_reason_says_where() -> None:
    assert reason({"words": ["a", "b", 7]}, Whole) == "expected a string, got a number at $.words[2]"
    assert reason({"either": 7}, Whole) == "expected a string or an array, got a number at $.either"
    assert reason({"words": "a"}, Whole) == "expected an array, got a string at $.words"
    assert reason({"table": {"sk-secret": "a"}}, Whole) == "expected a whole number, got a string at $.table[...]"
    assert (
        reason({"parts": {"sk-secret": {"text": 7}}}, Whole) == "expected a string, got a number at $.parts[...].text"
    )
    assert reason({"type": "two", "from": 7}, Two) == "expected a string, got a number at $.from"


def test_a_tag_may_be_missing_where_only_one_class_can_stand_but_not_be_another() -> None:
    part = {"part": {"text": ""}}
    for tag in (None, "other", 7, []):
        assert by_msgspec({"type": tag, **part}, One) is None
        assert reason({"type": tag, **part}, One) == "expected type 'one'"
    assert built(part, One) == (by_msgspec(part, One), [])


def test_a_block_is_the_same_whatever_is_unknown_beside_it() -> None:
    for mark, decoded in (
        ({"type": "ephemeral", "ttl": "5m"}, CacheControl("5m")),
        ({"ttl": "5m"}, UnknownObject({"ttl": "5m"})),
    ):
        text = {"type": "text", "text": "a", "cache_control": mark}
        for beside in ({"type": "text", "text": ""}, {"type": "new"}):
            message = decode(json.dumps({"type": "assistant", "message": {"content": [text, beside]}}))
            assert isinstance(message, AssistantMessage)
            assert message.content[0] == TextBlock("a", cache_control=decoded)


def test_the_smallest_part_that_may_be_unknown_becomes_so() -> None:
    new = {"type": "new"}
    one, two = {"type": "one", "part": {"text": "a"}}, {"type": "two", "from": "b", "inner": new}
    bad = {"type": "one", "part": {"text": 7}}
    whole, unknown = built({"either": [one, two, new, bad]}, Whole)
    assert whole.either == [One(Part("a")), Two("b", UnknownObject(new)), UnknownObject(new), UnknownObject(bad)]
    assert [item.reason for item in unknown] == [
        "unknown type",
        "unknown type",
        "expected a string, got a number at $.part.text",
    ]
    assert all(item is part for item, part in zip(unknown[1:], whole.either[2:], strict=True))


def test_the_unknown_within_an_unknown_part_are_not_told_of() -> None:
    bad = {"type": "two", "from": 7, "inner": {"type": "new"}}
    worse = {"type": "two", "inner": {"type": "new"}, "from": None}
    whole, unknown = built({"either": [{"type": "two", "from": "a", "inner": bad}, worse]}, Whole)
    assert unknown == [bad, worse]
    assert type(whole.either[0].inner["inner"]) is dict


def test_what_is_any_is_passed_on_as_it_is() -> None:
    value = {"type": "one", "list": [1, {"type": "new"}]}
    whole, unknown = built({"anything": value}, Whole)
    assert whole.anything is value
    assert unknown == []


def test_the_value_is_not_changed() -> None:
    value = {"type": "assistant", "message": {"content": [{"type": "new"}, {"type": "text", "text": "a"}]}}
    before = json.dumps(value)
    built(value, AssistantMessage)
    assert json.dumps(value) == before


def test_a_type_may_contain_itself() -> None:
    value: dict[str, Any] = {"type": "text", "text": "a"}
    expected: ContentBlock = TextBlock("a")
    for _ in range(20):
        value = {"type": "tool_result", "tool_use_id": "t", "content": [value, {"type": "new"}]}
        expected = ToolResultBlock("t", [expected, UnknownBlock({"type": "new"})])
    made, unknown = built(value, ToolResultBlock)
    assert made == expected
    assert len(unknown) == 20


def test_nesting_too_deep_is_a_recursion_error_of_python() -> None:
    value: dict[str, Any] = {"type": "two", "from": "a"}
    for _ in range(sys.getrecursionlimit()):
        value = {"type": "two", "from": "a", "inner": value}
    with pytest.raises(RecursionError):
        built(value, Two)


def test_a_class_used_first_by_two_threads_at_once_is_built_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # One thread is stopped while it prepares the class's second field. Meanwhile another thread uses the class.
    class Fresh(Wire, frozen=True):
        first: str | None = None
        second: list[dict[str, bool]] | None = None
        third: str | None = None

    value = {"first": "a", "second": [{"b": True}], "third": "c"}
    look_up = _tolerant._converter
    entered, leave = threading.Event(), threading.Event()

    def stop_once(hint: Any) -> Any:
        if hint == list[dict[str, bool]] | None and not entered.is_set():
            entered.set()
            assert leave.wait(30)
        return look_up(hint)

    monkeypatch.setattr(_tolerant, "_converter", stop_once)
    whole = Fresh("a", [{"b": True}], "c")
    found: list[Any] = []
    first = threading.Thread(target=lambda: found.append(build(value, Fresh, Findings())))
    first.start()
    try:
        assert entered.wait(30)
        assert build(value, Fresh, Findings()) == whole
    finally:
        leave.set()
        first.join()
    assert found == [whole]
    assert build(value, Fresh, Findings()) == whole


def test_the_examples_exercise_every_kind_of_field() -> None:
    # The tests above would check little if the examples were empty.
    assert len(CLASSES) > 400
    values = [value for cls in CLASSES for value in full(cls).values()]
    assert {type(value) for value in values} == {str, int, bool, list, dict}
    assert example(list[ContentBlock]) == [{"type": "text", "text": "words"}]
