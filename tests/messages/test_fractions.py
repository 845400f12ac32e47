"""Fields for numbers that may be fractions accept fractions. All other numbers are counts, positions or names."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

import claude_wire.messages
from claude_wire import decode, encode
from claude_wire.errors import PayloadError
from claude_wire.messages import Message, RateLimitEvent, Unknown
from claude_wire.messages.base import Wire, wire_fields
from claude_wire_kit.events import Bridge, events
from drift.whole import WHOLE
from protocol_tables import REQUESTS, answer_hint

WARNING = (
    b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","surpassedThreshold":%s,'
    b'"unifiedWindows":{"five_hour":{"utilization":0.92,"resetsAt":1795545263,"surpassedThreshold":%s}}}}'
)


def classes() -> set[type[Wire]]:
    """Return the Structs of all messages, of their parts, and of the events for a page."""
    modules = [each.name for each in pkgutil.walk_packages(claude_wire.messages.__path__, "claude_wire.messages.")]
    return {
        value
        for name in [*modules, events.__name__]
        for _, value in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if issubclass(value, Wire) and value.__module__ == name
    }


def parts(hint: Any) -> list[Any]:
    return [hint, *(inner for part in get_args(hint) for inner in parts(part))]


def is_whole(hint: Any) -> bool:
    return int in parts(hint) and float not in parts(hint)


@pytest.mark.parametrize("written", [b"0.9", b"1"])
def test_a_rate_limit_warning_is_a_notice_at_any_threshold(written: bytes) -> None:
    line = WARNING % (written, written)
    message = decode(line)
    assert isinstance(message, RateLimitEvent)
    assert b'"surpassedThreshold":' + written + b"," in encode(message)
    assert Bridge().add(message)


@pytest.mark.parametrize("number", [0.5, 2])
def test_memory_and_times_may_be_fractions(number: float) -> None:
    names = [f"process_{kind}_mib_{at}" for kind in ("rss", "anon") for at in ("turn_start", "result")]
    result = {"type": "result", "subtype": "success", **dict.fromkeys([*names, "process_peak_rss_mib"], number)}
    goal = {"condition": "c", "iterations": 1, "set_at": number, "tokens_at_start": 1}
    for line in (result, {"type": "active_goal", "value": goal}):
        message = decode(json.dumps(line))
        assert not unknown_in(message)
        assert without_nulls(json.loads(encode(message))) == line


def test_a_number_of_a_message_that_cannot_be_a_fraction_is_listed_with_its_reason() -> None:
    found = {field.encode_name for cls in classes() for field in wire_fields(cls) if is_whole(field.type)}
    listed = [name for names in WHOLE.values() for name in names]
    assert sorted(found) == sorted(listed)


# --- values with one fraction
# ------------------------------------------------------------------------------------------


def least(hint: Any) -> Any:
    """Return the smallest JSON value of this type."""
    if get_origin(hint) in (Union, UnionType):
        return None if type(None) in get_args(hint) else least(get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, Wire):
        key, tag = hint.__struct_config__.tag_field, hint.__struct_config__.tag
        needed = {field.encode_name: least(field.type) for field in wire_fields(hint) if field.required}
        return {**({key: tag} if key else {}), **needed}
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    return {str: "s", int: 1, bool: True, list: [], dict: {}, Any: {}}[get_origin(hint) or hint]


def halves(hint: Any, seen: set[tuple[type, str]]) -> Iterator[tuple[str, Any]]:
    """Yield values of this type with 0.5 in one ``int`` field, once for each such field, and the path to it."""
    origin = get_origin(hint)
    if hint is int:
        yield "", 0.5
    elif origin in (Union, UnionType) and float not in get_args(hint):
        for part in get_args(hint):
            yield from halves(part, seen)
    elif origin is list:
        yield from ((f"[]{path}", [value]) for path, value in halves(get_args(hint)[0], seen))
    elif origin is dict:
        yield from ((f"{{}}{path}", {"k": value}) for path, value in halves(get_args(hint)[1], seen))
    elif isinstance(hint, type) and issubclass(hint, Wire):
        for field in wire_fields(hint):
            if (hint, field.name) not in seen:
                seen.add((hint, field.name))
                for path, value in halves(field.type, seen):
                    yield f" {hint.__name__}.{field.name}{path}", {**least(hint), field.encode_name: value}


def unknown_in(value: Any) -> list[Unknown]:
    if isinstance(value, Unknown):
        return [value]
    if isinstance(value, Wire):
        value = [getattr(value, field.name) for field in wire_fields(type(value))]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [found for part in inner for found in unknown_in(part)]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def test_a_fraction_in_place_of_a_count_is_an_unknown_value_and_nothing_is_lost() -> None:
    tried: set[str] = set()
    for path, line in halves(Message, set()):
        tried.add(path.rpartition(".")[2])
        message = decode(json.dumps(line))
        assert [each.reason for each in unknown_in(message)], path
        assert without_nulls(json.loads(encode(message))) == without_nulls(line), path
    assert {"num_turns", "exit_code", "document_index"} <= tried


def test_a_fraction_in_place_of_a_count_in_an_answer_is_an_error_with_the_payload() -> None:
    tried: set[str] = set()
    for subtype, request in REQUESTS.items():
        for path, payload in halves(answer_hint(subtype), set()):
            tried.add(path.rpartition(".")[2])
            with pytest.raises(PayloadError, match=r"expected a whole number, got a fraction at \$") as error:
                request.parse_answer(payload)
            assert error.value.payload == payload, path
    assert {"pid", "insertions", "totalTokens"} <= tried
