"""Fields of records for numbers that may be fractions accept fractions. All other numbers are counts and names."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import msgspec
import pytest

import claude_wire.transcripts as t
from claude_wire import Decoder, encode
from claude_wire.messages.base import Wire
from claude_wire.transcripts.records import attachments, base, conversation, state, system

MODULES = (attachments, base, conversation, state, system)

#: Counts, and numbers that are names. Add a new ``int`` field only if its value cannot be a fraction; measured values
#: (times, tokens, costs, shares) are a ``Number``.
WHOLE = {
    *("apiBlockIndex", "apiErrorStatus", "availableCommandCount", "exitCode", "failedHookErrorIndexes", "hookCount"),
    *("imagePasteIds", "keep", "maxRetries", "maxTurns", "prNumber", "promptIndex", "retryAttempt", "skillCount"),
    *("spawnDepth", "totalLinesAdded", "totalLinesRemoved", "turnCount", "turnIndex"),
}

CLASSES: list[type[Wire]] = [
    each
    for module in MODULES
    for _, each in inspect.getmembers(module, inspect.isclass)
    if issubclass(each, Wire) and each.__module__ == module.__name__
]


def parts(hint: Any) -> list[Any]:
    return [hint, *(inner for part in get_args(hint) for inner in parts(part))]


def numbers(kind: type) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in [*CLASSES, t.SubagentMeta]:
        for field in msgspec.structs.fields(each):
            if kind in parts(field.type):
                found.setdefault(field.encode_name, set()).add(each.__name__)
    return found


def test_a_number_that_cannot_be_a_fraction_is_a_count_or_a_name() -> None:
    assert {name for name, _ in numbers(int).items() if name not in numbers(float)} == WHOLE


@pytest.mark.parametrize("written", ["0.5", "1795377344845.123", "2"])
def test_a_measured_number_of_a_record_may_be_a_fraction(written: str) -> None:
    value = msgspec.json.decode(written)
    envelope = {"uuid": "u", "parentUuid": None, "sessionId": "s"}
    boundary = {"preTokens": value, "durationMs": value, "postTokens": value, "cumulativeDroppedTokens": value}
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "api_error", **envelope, "retryInMs": value},
        {
            "type": "system",
            "subtype": "compact_boundary",
            **envelope,
            "compactMetadata": {"trigger": "auto", **boundary},
        },
        {"type": "attachment", **envelope, "attachment": {"type": "hook_success", "durationMs": value}},
        {"type": "attachment", **envelope, "attachment": {"type": "hook_non_blocking_error", "durationMs": value}},
        {
            "type": "attachment",
            **envelope,
            "attachment": {"type": "budget_usd", "used": value, "total": value, "remaining": value},
        },
        {
            "type": "assistant",
            **envelope,
            "message": {"role": "assistant", "model": "m", "content": []},
            "thinkingDurationMs": value,
            "toolInputStreamMs": value,
        },
        {"type": "user", **envelope, "message": {"role": "user", "content": "hi"}, "sentAtMs": value},
        {"type": "cost-state", **dict.fromkeys(sorted(set(numbers(float)) & set(COSTS)), value)},
    ]
    assert {name for line in lines for name in flat(line)} >= numbers(float).keys()
    for line in lines:
        (record,) = Decoder(t.Record).feed(encode(line))
        assert isinstance(record, t.Record), record
        written_again = msgspec.json.decode(encode(record))
        assert [written_again[key] for key in line if line[key] == value] == [
            value for key in line if line[key] == value
        ]


COSTS = {field.encode_name for field in msgspec.structs.fields(t.CostStateRecord)}


def flat(line: dict[str, Any]) -> list[str]:
    return [*line, *(name for value in line.values() if isinstance(value, dict) for name in value)]
