"""Every line of a transcript becomes a typed record, and encodes to the same JSON."""

from __future__ import annotations

import inspect
import json
from typing import Any, get_args

import msgspec
import pytest

import claude_wire.transcripts as t
from claude_wire import Decoder, InvalidLineError, encode
from claude_wire.codec import DecoderStats
from claude_wire.messages import InvalidLine, UnknownMessage, UnknownObject
from claude_wire.messages.base import Wire
from claude_wire.messages.vocabulary import Family, vocabulary_of
from claude_wire.transcripts.records import attachments, base, conversation, state, system
from each import each
from feeding import cut, fed
from sessions import scenarios, transcripts

ENVELOPE = {"uuid": "u", "parentUuid": None, "sessionId": "s", "timestamp": "2026-11-22T19:58:18.566Z"}

TASK = {"taskId": "a", "taskType": "local_agent", "description": "d", "status": "running"}

#: Records that do not occur in the recorded sessions; older versions and the interactive mode write them.
OTHERS: list[dict[str, Any]] = [
    {"type": "tag", "tag": "mine", "sessionId": "s"},
    {"type": "ai-title", "aiTitle": "A title", "sessionId": "s"},
    {"type": "summary", "summary": "A title", "leafUuid": "u"},
    {
        "type": "pr-link",
        "sessionId": "s",
        "prNumber": 1,
        "prUrl": "https://x/1",
        "prRepository": "a/b",
        "timestamp": "t",
    },
    {"type": "file-history-snapshot", "messageId": "u", "snapshot": {"files": {}}, "isSnapshotUpdate": False},
    {
        "type": "file-history-delta",
        "messageId": "u",
        "snapshotMessageId": "u",
        "trackingPath": "a.py",
        "backup": {"version": 1},
        "timestamp": "t",
    },
    {"type": "progress", **ENVELOPE, "data": {"type": "hook_progress"}, "toolUseID": "a", "parentToolUseID": "b"},
    {"type": "attachment", **ENVELOPE, "attachment": {"type": "max_turns_reached", "maxTurns": 3, "turnCount": 3}},
    {"type": "attachment", **ENVELOPE, "attachment": {"type": "unknown_command_fallback", "commandName": "x"}},
    {"type": "attachment", **ENVELOPE, "attachment": {"type": "structured_output", "data": [1], "toolUseID": "a"}},
    {"type": "attachment", **ENVELOPE, "attachment": {"type": "budget_usd", "used": 0.5, "total": 2, "remaining": 1.5}},
    *(
        {"type": "attachment", **ENVELOPE, "attachment": {"type": "task_status", **TASK, **others}}
        for others in (
            {"deltaSummary": "half done", "outputFilePath": "/tmp/a.output", "canContinueAgent": True},
            {"deltaSummary": None, "shell": {"command": "sleep 9", "kind": "bash", "toolUseId": "a"}},
        )
    ),
    {
        "type": "user",
        **ENVELOPE,
        "message": {"role": "user", "content": "x"},
        "permissionDecision": {"decision": "accept", "source": "config", "reasonType": "rule", "ruleSource": "cliArg"},
    },
]


def decoded(data: bytes) -> tuple[list[Any], DecoderStats]:
    decoder = Decoder(t.Record)
    lines = [*decoder.feed(data), *decoder.close()]
    return lines, decoder.stats


def test_the_recorded_sessions_and_the_others_have_every_record_and_every_attachment() -> None:
    records = [line for name in scenarios() for data in transcripts(name).values() for line in decoded(data)[0]]
    records += [line for other in OTHERS for line in decoded(encode(other))[0]]
    seen = set(map(type, records))
    vocabulary = vocabulary_of(t.Record)
    assert {*vocabulary.by_type.values(), *vocabulary.by_subtype["system"].values()} == seen - {InvalidLine}
    attachments = {type(record.attachment) for record in records if isinstance(record, t.AttachmentRecord)}
    assert attachments == set(get_args(t.Attachment))


@each("scenario", scenarios(), str)
def test_no_line_of_a_session_is_unknown_and_each_encodes_to_the_json_that_it_was(scenario: str) -> None:
    for data in transcripts(scenario).values():
        lines, stats = decoded(data)
        assert stats.unknown == 0
        whole = [line for line in data.split(b"\n") if line.strip()]
        assert len(lines) == len(whole)
        for line, record in zip(whole, lines, strict=True):
            if not isinstance(record, InvalidLine):
                assert json.loads(encode(record)) == json.loads(line)


def test_records_that_no_session_has_encode_to_the_json_that_they_were() -> None:
    for other in OTHERS:
        (record,), stats = decoded(encode(other))
        assert stats.unknown == 0
        assert json.loads(encode(record)) == other


def test_a_torn_line_costs_itself_and_tells_its_number_and_its_offset() -> None:
    (data,) = transcripts("torn_resumed").values()
    lines, stats = decoded(data)
    (torn,) = [line for line in lines if isinstance(line, InvalidLine)]
    assert stats.invalid == 1
    assert (torn.line_number, torn.kind) == (30, "not_json")
    assert data[torn.offset : torn.offset + torn.length] == torn.raw == data.split(b"\n")[29]


def test_half_an_emoji_costs_nothing() -> None:
    (data,) = transcripts("unicode_surrogates").values()
    lines, stats = decoded(data)
    assert stats.repaired > 0
    assert (stats.invalid, stats.unknown, len(lines)) == (0, 0, data.count(b"\n"))


def test_chunks_cut_anywhere_give_the_same_records() -> None:
    data = b"".join(
        line + b"\n" for line in next(iter(transcripts("plan_mode").values())).split(b"\n") if len(line) < 900
    )
    whole, _ = decoded(data)
    assert len({type(record) for record in whole}) >= 8
    for size in (1, 2, 3, 7, 64, 1000):
        assert fed(Decoder(t.Record), cut(data, size)) == whole
    for at in range(1, len(data), 97):
        assert fed(Decoder(t.Record), [data[:at], data[at:]]) == whole


@each("end", range(0, 4000, 7), str)
def test_a_file_that_ends_anywhere_loses_its_last_line_only(end: int) -> None:
    data = next(iter(transcripts("plain").values()))
    whole, _ = decoded(data[: data.rfind(b"\n", 0, end) + 1])
    lines, _ = decoded(data[:end])
    assert lines[: len(whole)] == whole
    assert len(lines) - len(whole) == bool(data[:end].rpartition(b"\n")[2])


def test_a_type_and_an_attachment_of_tomorrow_are_kept_whole() -> None:
    record = {"type": "of-tomorrow", **ENVELOPE, "new": [1]}
    attachment = {"type": "attachment", **ENVELOPE, "attachment": {"type": "of_tomorrow", "new": 1}}
    system = {"type": "system", "subtype": "of_tomorrow", **ENVELOPE}
    (first, second, third), stats = decoded(encode(record) + encode(attachment) + encode(system))
    assert isinstance(first, UnknownMessage)
    assert (first, first.reason) == (record, "unknown type")
    assert isinstance(second, t.AttachmentRecord)
    assert isinstance(second.attachment, UnknownObject)
    assert second.attachment == attachment["attachment"]
    assert isinstance(third, UnknownMessage)
    assert (third, third.reason) == (system, "unknown subtype")
    assert stats.unknown == 3


def test_only_takes_the_names_of_records() -> None:
    data = next(iter(transcripts("compact").values()))
    decoder = Decoder(t.Record, only={"cost-state", "system/compact_boundary"})
    assert [type(record) for record in decoder.feed(data)] == [t.CompactBoundaryRecord, t.CostStateRecord]
    with pytest.raises(ValueError, match="'costs-state' "):
        Decoder(t.Record, only={"costs-state"})


def test_a_line_with_two_types_is_invalid() -> None:
    with pytest.raises(InvalidLineError, match="'type' has two values"):
        Decoder(t.Record, on_invalid="raise").feed(b'{"type":"mode","mode":"a","type":"user"}\n')


def test_a_family_is_asked_for_by_its_base() -> None:
    class Empty(Family, frozen=True):
        pass

    for wrong in (t.ModeRecord, Wire, Empty, int):
        with pytest.raises(TypeError):
            Decoder(wrong)


# --- Fields of records for numbers that may be fractions accept fractions. All other numbers are counts and names -----


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
    for cls in [*CLASSES, t.SubagentMeta]:
        for field in msgspec.structs.fields(cls):
            if kind in parts(field.type):
                found.setdefault(field.encode_name, set()).add(cls.__name__)
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
