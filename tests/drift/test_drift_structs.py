"""The differences that `make drift` finds in recorded lines, and the Structs that it writes for them."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from claude_wire.support.text import is_seen
from claude_wire.testing import Step
from drift.requests import NO_REQUEST
from drift.structs import structs_source
from drift.wire import MAX_DRIFTS, MAX_VALUES, Comparison, Drift

Line = dict[str, Any]
NUMBERS = itertools.count()


def assistant(*blocks: Line, **more: Any) -> Line:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks)}, **more}


def event(value: Line) -> Line:
    return {"type": "stream_event", "event": value, "session_id": "s", "uuid": "u", "parent_tool_use_id": None}


def request(value: Line) -> Line:
    return {"type": "control_request", "request_id": "r", "request": value}


def hook(value: Line) -> Line:
    return request({"subtype": "hook_callback", "callback_id": "c", "input": value})


PLACE = {"session_id": "s", "transcript_path": "t", "cwd": "/"}

#: A line, the class that drift writes for it, a function that returns the new part, and the finding: what, name, path.
NEW: dict[str, tuple[Line, str, Callable[[Line], Any], tuple[str, str, str]]] = {
    "type": (
        {
            "type": "weather_report",
            "degrees": 21.5,
            "wind": {"from": "N", "speed": 3},
            "log": [{"at": 1}, {"at": None}],
        },
        "WeatherReportMessage",
        lambda line: line,
        ("type", "weather_report", "weather_report"),
    ),
    "subtype": (
        {
            "type": "system",
            "subtype": "tea-time",
            "uuid": "u",
            "session_id": "s",
            "cups": 2,
            "class": "first",
            "a-b": 1,
        },
        "TeaTimeMessage",
        lambda line: line,
        ("subtype", "tea-time", "system"),
    ),
    "result": (
        {"type": "result", "subtype": "error_bored", "is_error": True, "yawns": [1, 2.5]},
        "ErrorBoredResult",
        lambda line: line,
        ("subtype", "error_bored", "result"),
    ),
    "block": (
        assistant({"type": "hologram", "data": {"x": 1}}, {"type": "hologram", "data": "flat"}),
        "HologramBlock",
        lambda line: line["message"]["content"][0],
        ("block", "hologram", "assistant.message.content[]"),
    ),
    "event": (
        event({"type": "content_block_sing", "index": 0, "notes": ["c", "d", None]}),
        "ContentBlockSingEvent",
        lambda line: line["event"],
        ("event", "content_block_sing", "stream_event.event"),
    ),
    "delta": (
        event({"type": "content_block_delta", "index": 0, "delta": {"type": "smell_delta", "smell": "sweet"}}),
        "SmellDelta",
        lambda line: line["event"]["delta"],
        ("delta", "smell_delta", "stream_event.event.content_block_delta.delta"),
    ),
    "request": (
        request({"subtype": "borrow_umbrella", "until": None, "colour": "red", "sizes": {"a b": 1}}),
        "BorrowUmbrellaRequest",
        lambda line: line["request"],
        ("request", "borrow_umbrella", "control_request.request"),
    ),
    "hook event": (
        hook({**PLACE, "hook_event_name": "Sunrise", "colour": "pink", "seen_by": [{"name": "Ada"}]}),
        "SunriseHookInput",
        lambda line: line["request"]["input"],
        ("hook event", "Sunrise", "control_request.hook_callback.request.input"),
    ),
    "field": (
        assistant({"type": "text", "text": "x"}, zzz=[{"n": 1}, {"n": 2.5, "m": True}]),
        "NewAssistantMessage",
        lambda line: line,
        ("field", "zzz", "assistant.zzz"),
    ),
    "field of a block": (
        assistant({"type": "text", "text": "x", "language": "en"}),
        "NewTextBlock",
        lambda line: line["message"]["content"][0],
        ("field", "language", "assistant.message.content[].text.language"),
    ),
}


def compared(*lines: Line) -> list[Drift]:
    comparison = Comparison()
    comparison.session("s", [Step(0, "out", json.dumps(line).encode()) for line in lines])
    return comparison.drifts()


def module_of(drifts: Iterable[Drift], folder: Path) -> ModuleType:
    """Import the source that drift writes for these differences."""
    name = f"written_{next(NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(structs_source(drifts, "For a test."))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # msgspec looks up the module of a class in sys.modules to resolve its type hints.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        for value in list(vars(module).values()):
            if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == name:
                msgspec.json.Decoder(value)
    return module


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def roundtrip(cls: type, value: Any) -> Any:
    return json.loads(msgspec.json.encode(msgspec.json.decode(json.dumps(value), type=cls)))


@pytest.mark.parametrize("name", NEW)
def test_what_is_new_is_found_and_its_struct_takes_the_whole_value(name: str, tmp_path: Path) -> None:
    line, class_name, part, (what, named, path) = NEW[name]
    drift, *others = compared(line)
    # The new field of the unknown result is a second difference, since the common class of results lacks it, too.
    assert bool(others) == (name == "result")
    assert (drift.change, drift.finding.what, drift.finding.name) == ("new", what, named)
    if name != "hook event":
        assert drift.finding.path == path
    assert drift.where == "s, line 1"
    cls = getattr(module_of([drift], tmp_path), class_name)
    assert without_nulls(roundtrip(cls, part(line))) == without_nulls(part(line))


def test_all_that_is_new_goes_into_one_module(tmp_path: Path) -> None:
    lines = [line for line, *_ in NEW.values()]
    module = module_of(compared(*lines), tmp_path)
    for line, class_name, part, _ in NEW.values():
        assert without_nulls(roundtrip(getattr(module, class_name), part(line))) == without_nulls(part(line))


def test_types_are_those_of_all_values_seen(tmp_path: Path) -> None:
    values: list[Any] = [{"n": 1, "s": "x", "b": True, "l": [1], "o": {"k": 1}, "m": 1, "z": None, "e": []}]
    values += [{"n": 2.5, "l": ["a"], "m": "one", "free": {"a b": 1}}]
    source = structs_source(compared(*({"type": "mixed", **value} for value in values)), "For a test.")
    written = [line.strip() for line in source.splitlines() if line.endswith("= None")]
    assert written == [
        "k: int | None = None",
        "n: Number | None = None",
        "s: str | None = None",
        "b: bool | None = None",
        "l: list[int | str] | None = None",
        "o: MixedMessageO | None = None",
        "m: int | str | None = None",
        "z: Any = None",
        "e: list[Any] | None = None",
        "free: dict[str, Any] | None = None",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


#: Names of fields: any characters except those that are not printable or that JSON escapes.
NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='"\\').filter(is_seen), max_size=9)

#: Tags are ASCII, because msgspec cannot decode a non-ASCII tag if it is the only one of a union.
KINDS = st.text(st.characters(max_codepoint=127), min_size=1, max_size=90)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(kind="0", values=[{"dict": {}, "int": 1, "str": "", "list": [], "z": {}}])
@given(kind=KINDS, values=st.lists(st.dictionaries(NAMES, JSON), min_size=1))
def test_any_object_of_an_unknown_type_gives_a_struct_that_takes_it(
    kind: str, values: list[Line], tmp_path: Path
) -> None:
    lines = [{**value, "type": f"new {kind}"} for value in values]
    drifts = [drift for drift in compared(*lines) if drift.finding.what == "type"]
    [module] = [module_of(drifts, tmp_path)]
    [cls] = [
        value for name, value in vars(module).items() if name.startswith("New") and name.rstrip("_").endswith("Message")
    ]
    for line in lines:
        assert without_nulls(roundtrip(cls, line)) == without_nulls(line)


def test_no_name_of_the_wire_becomes_code(tmp_path: Path) -> None:
    evil = '"""\n__import__("os").abort()\n#'
    line = {"type": evil, evil: {evil: 1}, "to_dict": 1, "__class__": 2, "def": 3}
    module = module_of(compared(line, assistant(**{evil: evil})), tmp_path)
    [cls] = [value for name, value in vars(module).items() if name.startswith("ImportOs")]
    named = {key: value for key, value in line.items() if key != evil}
    assert roundtrip(cls, named) == named
    assert evil not in cls.__struct_encode_fields__


# --- requests and answers ---------------------------------------------------------------------------------------------


def asked(subtype: str, answer: Line) -> list[Step]:
    request_id = f"r-{subtype}"
    sent = {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype}}
    got = {"type": "control_response", "response": {"request_id": request_id, **answer}}
    return [Step(0, "in", json.dumps(sent).encode()), Step(0, "out", json.dumps(got).encode())]


def answers(*steps: list[Step]) -> list[tuple[str, str, str]]:
    comparison = Comparison()
    comparison.session("s", [step for pair in steps for step in pair])
    return [(drift.change, drift.finding.what, drift.finding.path or "") for drift in comparison.drifts()]


def refused(subtype: str, words: str) -> list[Step]:
    return asked(subtype, {"subtype": "error", "error": words})


def test_a_field_of_an_answer_is_compared_with_the_class_of_its_request() -> None:
    payload = {"mcpServers": [{"name": "calc", "status": "connected", "zzz": 1}], "top": 1}
    assert answers(asked("mcp_status", {"subtype": "success", "response": payload})) == [
        ("new", "field", "answer.mcp_status.mcpServers[].zzz"),
        ("new", "field", "answer.mcp_status.top"),
    ]


def test_an_answer_that_does_not_fit_is_found() -> None:
    wrong = asked("mcp_status", {"subtype": "success", "response": {"mcpServers": 5}})
    assert answers(wrong) == [("new", "answer", "answer.mcp_status")]


def test_a_request_is_gone_if_it_is_refused_as_one_that_no_cli_knows() -> None:
    unknown = refused(NO_REQUEST, f"what is {NO_REQUEST}?")
    gone = ("gone", "request", "control_request.request")
    assert answers(unknown, refused("mcp_status", "what is mcp_status?")) == [gone]
    assert answers(unknown, refused("mcp_status", "not now")) == []
    assert answers(refused("mcp_status", "what is mcp_status?")) == []


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_what_is_kept_has_a_bound() -> None:
    comparison = Comparison()
    for number in range(MAX_DRIFTS + 10):
        comparison.message({"type": "new_one", "n": number}, "here")
        comparison.message(assistant(**{f"field{number}": 1}), "here")
    drifts = comparison.drifts()
    assert len(drifts) == MAX_DRIFTS
    assert max(len(drift.values) for drift in drifts) == MAX_VALUES


def test_a_line_that_is_no_message_is_found() -> None:
    comparison = Comparison()
    comparison.session("s", [Step(0, "out", b"not JSON\n"), Step(0, "out", b'{"type": "keep_alive"}\n')])
    [drift] = comparison.drifts()
    assert (drift.finding.what, drift.where) == ("line", "s, line 1")
    assert "Without a Struct: line" in structs_source([drift], "t")


@pytest.mark.parametrize("extreme", ["1" * 5000, "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, "[" * 9000])
@pytest.mark.parametrize("line", ['{"type":"zzz","a":%s}', '{"type":"keep_alive","a":%s}'])
def test_extreme_values_break_nothing(line: str, extreme: str, tmp_path: Path) -> None:
    comparison = Comparison()
    comparison.session("s", [Step(0, "out", (line % extreme).encode())])
    assert len(comparison.drifts()) == 1
    module_of(comparison.drifts(), tmp_path)
