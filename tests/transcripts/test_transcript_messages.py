"""A transcript yields the messages of the session's output stream."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import claude_wire.transcripts as t
from claude_wire import Accumulator, Decoder, encode
from claude_wire import messages as m
from claude_wire_kit.events import Bridge
from claude_wire_kit.events.events import Operation
from sessions import outputs, scenarios, transcripts, unpack

#: Fields that only the stream has.
STREAM_ALONE = {"tool_use_meta", "user_message_uuid", "user_message_uuids", "session_id"}
#: Only a transcript says that a prompt was merged into a turn. Only the stream describes the subagent of a skill.
STREAM_ALONE |= {"isReplay", "priority", "task_description"}
OF_THE_ANSWER = {
    "usage",
    "stop_reason",
    "stop_details",
    "context_management",
    "container",
    "diagnostics",
    "stop_sequence",
}

#: An informational message that the CLI does not save to disk.
NOT_KEPT = "Auto mode can't check actions in this session."

COMPARED = (m.AssistantMessage, m.CompactBoundaryMessage, m.InformationalMessage, m.ModelFallbackMessage, m.UserMessage)


def plain(message: Any) -> dict[str, Any]:
    said: dict[str, Any] = message.to_dict()
    if "message" in said:
        kept = {key: value for key, value in said["message"].items() if key not in OF_THE_ANSWER}
        if isinstance(kept["content"], str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        if kept.get("model") == "<synthetic>":
            kept = {"content": kept["content"]}
        said["message"] = kept
    return {key: value for key, value in said.items() if key not in STREAM_ALONE}


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name not in ("no_persistence", "torn_resumed")])
def test_the_messages_of_a_transcript_are_those_of_its_streams(scenario: str, tmp_path: Path) -> None:
    made: dict[str | None, m.Message] = {}
    for path in unpack(scenario, tmp_path).glob("*/*.jsonl"):
        transcript = t.Transcript.load(path)
        leaves = [uuid for uuid in transcript.tree.nodes if uuid not in transcript.tree.children]
        for leaf in [*leaves, None]:
            made |= {getattr(message, "uuid", None): message for message in t.messages(transcript, leaf)}
    compared = 0
    for output in outputs(scenario):
        decoder = Decoder()
        for message in [*decoder.feed(output), *decoder.close()]:
            if isinstance(message, m.InformationalMessage) and message.content.startswith(NOT_KEPT):
                assert message.uuid not in made
                continue
            if isinstance(message, COMPARED):
                assert plain(made[message.uuid]) == plain(message)
                compared += 1
    assert compared


def test_a_retry_says_what_the_stream_says() -> None:
    for scenario in ("retry_429_529", "fallback_model", "stream_cut"):
        (data,) = transcripts(scenario).values()
        told = [
            each
            for each in t.messages(t.Transcript(Decoder(t.Record).feed(data)))
            if isinstance(each, m.ApiRetryMessage)
        ]
        shown = [
            each
            for output in outputs(scenario)
            for each in Decoder().feed(output)
            if isinstance(each, m.ApiRetryMessage)
        ]
        assert [(e.attempt, e.max_retries, e.retry_delay_ms, e.error_status, e.error) for e in told] == [
            (e.attempt, e.max_retries, e.retry_delay_ms, e.error_status, e.error) for e in shown
        ]


def test_what_subagents_said_comes_after_the_call_of_each(tmp_path: Path) -> None:
    (path,) = unpack("subagent_nested", tmp_path).glob("*/*.jsonl")
    transcript = t.Transcript.load(path)
    speakers: list[str | None] = []
    for message in t.messages(transcript):
        if isinstance(message, (m.AssistantMessage, m.UserMessage)) and speakers[-1:] != [message.parent_tool_use_id]:
            speakers.append(message.parent_tool_use_id)
    outer, inner = sorted(transcript.subagents, key=lambda id: transcript.subagents[id].meta.spawnDepth or 0)
    assert speakers == [None, outer, inner, outer, None]
    alone = list(t.messages(transcript, subagents=False))
    assert all(getattr(message, "parent_tool_use_id", None) is None for message in alone)
    # Reading also ends if subagents refer to each other, and if a subagent's file is missing.
    for agent in transcript.subagents.values():
        agent.path.write_bytes(path.read_bytes())
    assert len(list(t.messages(t.Transcript.load(path)))) > len(alone)
    agent.path.unlink()
    assert list(t.messages(t.Transcript.load(path)))


def test_an_accumulator_and_a_bridge_take_them(tmp_path: Path) -> None:
    (path,) = unpack("tools", tmp_path).glob("*/*.jsonl")
    accumulator, bridge = Accumulator(), Bridge()
    events: list[Any] = []
    for message in t.messages(t.Transcript.load(path)):
        accumulator.add(message)
        events += bridge.add(message)
    operations = [event for event in events if isinstance(event, Operation)]
    assert [event.state for event in operations].count("started") * 2 == len(operations) > 10


def test_reading_tells_a_transcript_from_a_stream() -> None:
    (data,) = transcripts("plain").values()
    with t.read(io.BytesIO(data)) as reader:
        assert reader.dialect == "transcript"
        assert len([each for each in reader if isinstance(each, t.Record)]) == data.count(b"\n")
    (output,) = outputs("plain")
    with t.read(io.BytesIO(output)) as stream:
        assert stream.dialect == "stream"
        assert [type(each) for each in stream] == [type(each) for each in Decoder().feed(output)]


@pytest.mark.parametrize(
    ("lines", "dialect"),
    [
        ([{"type": "user", "message": {"role": "user", "content": "x"}}], "stream"),
        ([{"type": "user", "uuid": "u", "parentUuid": None}], "transcript"),
        ([{"type": "of-tomorrow"}, {"type": "of-tomorrow", "uuid": "u", "parentUuid": None}], "transcript"),
        ([{"type": "of-tomorrow"}, {"type": "mode", "mode": "normal"}], "transcript"),
        ([{"type": "of-tomorrow"}] * 100, "stream"),
        ([], "stream"),
    ],
)
def test_a_line_is_a_record_by_its_envelope_or_by_a_type_that_only_records_have(lines: list[Any], dialect: str) -> None:
    data = b"".join(map(encode, lines))
    for chunk in (data, b"\xef\xbb\xbf\n" + data, b'{"torn\n' + data):
        reader = t.read(io.BytesIO(chunk))
        assert reader.dialect == dialect
        assert len([each for each in reader if not isinstance(each, m.InvalidLine)]) == len(lines)
