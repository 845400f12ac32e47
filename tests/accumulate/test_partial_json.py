"""The input of a tool call can be read while it streams and when it is complete."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire.accumulate.accumulator import Accumulator
from claude_wire.accumulate.partial_json import NotJson, read_part, read_whole
from stream_events import TOOL, block_stop, folded, inputs, json_delta, message_start, only, texts


def without_halves(value: Any) -> Any:
    written = json.dumps(value, ensure_ascii=False)
    return json.loads(written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def is_beginning(part: Any, whole: Any) -> bool:
    """Return whether ``part`` is a beginning of ``whole``: only the last item of each container may be incomplete."""
    if isinstance(whole, dict) and isinstance(part, dict):
        keys = list(part)
        return (
            keys == list(whole)[: len(keys)]
            and all(part[key] == whole[key] for key in keys[:-1])
            and (not keys or is_beginning(part[keys[-1]], whole[keys[-1]]))
        )
    if isinstance(whole, list) and isinstance(part, list):
        return (
            len(part) <= len(whole)
            and part[:-1] == whole[: len(part)][:-1]
            and (not part or is_beginning(part[-1], whole[len(part) - 1]))
        )
    if isinstance(whole, str) and isinstance(part, str):
        return whole.startswith(part)
    if isinstance(whole, bool) or whole is None:
        return part is whole
    # More digits may follow.
    return isinstance(whole, (int, float)) and isinstance(part, (int, float)) and not isinstance(part, bool)


TEXTS = [
    '{"command": "ls -la", "timeout": 120000, "run_in_background": false, "nothing": null}',
    '{"edits": [{"old": "a\\nb", "new": "\\u00e9\\ud83d\\ude00"}, {"old": "", "new": "\\\\\\""}]}',
    '{"n": [[], {}, [1, [2]], [[{"a": [null]}]]]}',
    ' { "a" : [ 1 , -2.5e-3 , 1E5 , 0 , -0.0 ] , "b" : { "c" : { "d" : "e" } } } ',
    '{"big": 123456789012345678901234567890, "small": 0.1234567890123456789}',
    '{"lone": "a\\ud83db", "low": "\\ude00", "two": "\\ud83d\\ud83d\\ude00", "\\ud83d": 1, "no": "\\\\ud83d"}',
    '{"é日": "\U0001f600", "": "", "\\u0000": "\\b\\f\\n\\r\\t\\/"}',
    '{"json": "{\\"a\\": [1, \\"\\\\u00e9\\"]}"}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_cut_of_a_json_text_reads_as_a_beginning(text: str) -> None:
    whole = json.loads(text)
    assert read_whole(text) == whole
    read = [read_part(text[:end]) for end in range(len(text) + 1)]
    assert read[0] == {}
    for part in read[:-1]:
        assert is_beginning(part, whole) or is_beginning(without_halves(part), without_halves(whole)), part
    assert without_halves(read[-1]) == without_halves(whole)
    for part, longer in itertools.pairwise(read):
        assert is_beginning(without_halves(part), without_halves(longer)), (part, longer)


@given(inputs, st.booleans(), st.data())
def test_every_cut_of_any_json_text_reads_as_a_beginning(
    value: dict[str, Any], escaped: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert read_whole(text) == value
    assert read_part(text) == value
    part = read_part(text[: data.draw(st.integers(0, len(text)))])
    assert is_beginning(without_halves(part), without_halves(value))


escapes = st.sampled_from(["\\\\", '\\"', "\\n", "\\u00e9", "\\ud83d", "\\uDE00", "ud83d", "x", "1.", "1e-"])


@given(st.lists(escapes, max_size=12).map("".join), st.sampled_from(["", '""', "1", "-1.5e-3"]))
def test_what_was_there_once_stays_there(inside: str, after: str) -> None:
    text = f'{{"a": "{inside}", "b": [{after}]}}'
    read = [without_halves(read_part(text[:end])) for end in range(len(text) + 1)]
    assert read[-1] == without_halves(json.loads(text))
    for part, longer in itertools.pairwise(read):
        assert is_beginning(part, longer), (part, longer)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" ", {}),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": "', {"a": ""}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00e', {"a": "x"}),
        ('{"a": "x\\ud83d', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude0', {"a": "x"}),
        ('{"a": "\\ud83dx\\ud83d\\', {"a": "\ufffdx"}),
        ('{"a": "\\ud83d\\\\', {"a": "\ufffd\\"}),
        ('{"a": "\\ud83d\0\0', {}),
        ('{"a": 1', {"a": 1}),
        ('{"a": 1.', {"a": 1}),
        ('{"a": 1.5', {"a": 1.5}),
        ('{"a": 1.5e', {"a": 1.5}),
        ('{"a": 1E-', {"a": 1}),
        ('{"a": 1e+', {"a": 1}),
        ('{"a": [1, 2.', {"a": [1, 2]}),
        ('{"a": "\\"", "b": 2.', {"a": '"', "b": 2}),
        ('{"a": "\\\\", "b": 2.', {"a": "\\", "b": 2}),
        ('{"a": "see 1.', {"a": "see 1."}),
        ('{"a": "\\" 1e-', {"a": '" 1e-'}),
        ('{"a": "\\\\\\" 1E', {"a": '\\" 1E'}),
        ('{"1.', {}),
        ('{"a": -', {}),
        ('{"a": tru', {}),
        ('{"a": true', {"a": True}),
        ('{"a": nul', {}),
        ('{"a": {"b": 1}', {"a": {"b": 1}}),
        ('{"a": [1, {"b": [', {"a": [1, {"b": []}]}),
        ('{"a": 1, "a": 2', {"a": 2}),
        ('{"a": NaN', {}),
        ('{"a": Infinity', {}),
        ("no JSON", {}),
        ('{"a" 1', {}),
    ],
)
def test_what_is_read_of_a_part(text: str, value: Any) -> None:
    assert read_part(text) == value


def test_input_grows_with_each_delta() -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TOOL, into=accumulator)
    seen = [only(partial).input]
    for piece in ["", '{"comm', 'and": "ec', 'ho", "n": 1', "2, ", '"x": tr', "ue}"]:
        folded(json_delta(0, piece), into=accumulator)
        seen.append(only(partial).input)
    assert seen == [
        {},
        {},
        {},
        {"command": "ec"},
        {"command": "echo", "n": 1},
        {"command": "echo", "n": 12},
        {"command": "echo", "n": 12},
        {"command": "echo", "n": 12, "x": True},
    ]


def test_input_is_read_once_for_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(text: str) -> Any:
        read.append(text)
        return read_part(text)

    monkeypatch.setattr("claude_wire.accumulate.partial_message.read_part", counting)
    accumulator = Accumulator()
    block = only(folded(message_start(), TOOL, json_delta(0, '{"a"'), into=accumulator))
    assert block.input is block.input
    folded(json_delta(0, ":"), into=accumulator)
    assert read == ['{"a"']
    assert (block.input, block.input) == ({}, {})
    assert read == ['{"a"', '{"a":']


@given(st.text() | texts | inputs.map(json.dumps))
def test_reading_a_part_never_raises(text: str) -> None:
    assert read_part(text) is not None or text == "null"
    with contextlib.suppress(NotJson):
        assert read_whole(text) == read_whole(text + " ")


def test_what_is_nested_too_deeply_to_be_read_in_part_is_read_when_it_is_whole() -> None:
    for depth, in_part in (190, True), (210, False):
        text = '{"a":1,"b":' + "[" * (depth - 1)
        assert ("a" in read_part(text)) is in_part
        assert read_whole(text + "]" * (depth - 1) + "}")["a"] == 1


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 5000 + "]" * 5000, "1" * 10_000])
def test_absurd_json_is_no_exception(text: str) -> None:
    read_part(text)
    block = only(folded(message_start(), TOOL, json_delta(0, text), block_stop(0)))
    assert block.input_error is None or "__unparsedToolInput" in block.input


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "echo',
        "{'a': 1}",
        '{"a": 1}}',
        '{"a": NaN}',
        " ",
        '{"a" 1}',
        '{"a": 01}',
        '{"a":\t"\t"}',
        "x",
        # White space that JSON does not allow.
        "\u00a0{}",
        "{}\f",
    ],
)
def test_input_that_is_no_json_is_seen_as_such(text: str) -> None:
    accumulator = Accumulator()
    partial = folded(message_start(), TOOL, json_delta(0, text), into=accumulator)
    assert only(partial).input_error is None  # more may follow
    folded(block_stop(0), into=accumulator)
    block = only(partial)
    assert block.partial_json == text
    assert block.input == {"__unparsedToolInput": {"raw": text, "len": len(text)}}
    assert block.input_error is not None
    assert block.input_error.startswith("not JSON: ")
    assert "echo" not in block.input_error


def test_raw_input_is_cut_and_measured_as_the_cli_does() -> None:
    text = '{"a": "' + "\U0001f600" * 3000
    block = only(folded(message_start(), TOOL, json_delta(0, text), block_stop(0)))
    unparsed = block.input["__unparsedToolInput"]
    assert unparsed["len"] == 7 + 6000
    assert text.startswith(unparsed["raw"][:-1])
    assert len(unparsed["raw"].encode("utf-16-le", "surrogatepass")) == 4096
    assert block.partial_json == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("", {}), ("null", {}), ("[1]", [1]), ('"x"', "x"), ("0", 0), ("false", False), ('{"a":1,"a":2}', {"a": 2})],
)
def test_whole_input_is_what_its_json_says(text: str, value: Any) -> None:
    block = only(folded(message_start(), TOOL, json_delta(0, text), block_stop(0)))
    assert (block.input, block.input_error) == (value, None)
