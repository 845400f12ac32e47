"""``claude-wire check`` counts kinds of messages, finds unknown fields, and prints only safe names."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from each import each

pytest.importorskip("click")
pytest.importorskip("rich")

from hypothesis import given, settings
from hypothesis import strategies as st

from claude_wire import Decoder, InvalidLine, decode
from claude_wire.support.text import NAME_CHARS, one_line, printable
from claude_wire_kit.events.names import message_name
from claude_wire_kit.survey.check import MAX_FINDINGS, Seen, Summary, Survey
from claude_wire_kit.survey.fields import Finding, found_in
from cli_lines import line
from long_tests import LONG
from recordings import load, names

USER: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": "hi"}, "parent_tool_use_id": None}
ASSISTANT: dict[str, Any] = {"type": "assistant", "message": {"role": "assistant", "content": []}}
HOOK: dict[str, Any] = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "transcript_path": "t",
    "cwd": "/",
    "tool_name": "Bash",
    "tool_input": {},
    "tool_use_id": "u",
}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks)}}


def event(event: dict[str, Any]) -> dict[str, Any]:
    return {"type": "stream_event", "event": event}


def delta(delta: dict[str, Any]) -> dict[str, Any]:
    return event({"type": "content_block_delta", "index": 0, "delta": delta})


def request(request: dict[str, Any]) -> dict[str, Any]:
    return {"type": "control_request", "request_id": "r", "request": request}


def hook(hook: dict[str, Any]) -> dict[str, Any]:
    return request({"subtype": "hook_callback", "callback_id": "c", "input": hook})


# --- the walk ---------------------------------------------------------------------------------------------------------


def found(message: dict[str, Any]) -> list[Finding]:
    return [found.finding for found in found_in(message, decode(line(message)))]


def unknown_field(path: str) -> Finding:
    return Finding("field", path.rpartition(".")[2], path, "unknown field")


FIELDS: dict[str, dict[str, Any]] = {
    "user.zzz": {**USER, "zzz": 1},
    "user.message.zzz": {**USER, "message": {"role": "user", "content": "hi", "zzz": 1}},
    "user.message.content[].tool_result.zzz": {
        **USER,
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "zzz": 1}]},
    },
    # a union in a union: a block in the content of a block
    "user.message.content[].tool_result.content[].text.zzz": {
        **USER,
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "u", "content": [{"type": "text", "text": "", "zzz": 1}]}
            ],
        },
    },
    "assistant.message.content[].text.foo": assistant({"type": "text", "text": "a", "foo": 1}),
    "assistant.message.content[].text.citations[].char_location.zzz": assistant(
        {
            "type": "text",
            "text": "a",
            "citations": [
                {
                    "type": "char_location",
                    "cited_text": "a",
                    "document_index": 0,
                    "start_char_index": 0,
                    "end_char_index": 1,
                    "zzz": 1,
                }
            ],
        }
    ),
    "assistant.message.usage.zzz": {
        "type": "assistant",
        "message": {"content": [], "usage": {"input_tokens": 1, "output_tokens": 1, "zzz": {"a": 1}}},
    },
    "stream_event.event.content_block_delta.delta.text_delta.zzz": delta({"type": "text_delta", "text": "a", "zzz": 1}),
    "stream_event.event.message_stop.zzz": event({"type": "message_stop", "zzz": 1}),
    "control_request.request.can_use_tool.zzz": request(
        {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "zzz": 1}
    ),
    "control_request.request.hook_callback.input.PreToolUse.zzz": hook({**HOOK, "zzz": 1}),
    "control_response.response.success.zzz": {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "r", "zzz": 1},
    },
    "control_response.response.success.pending_permission_requests[].control_request.zzz": {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "r",
            "pending_permission_requests": [{**request({"subtype": "interrupt"}), "zzz": 1}],
        },
    },
    "result.zzz": {"type": "result", "subtype": "success", "zzz": 1},
    "result.modelUsage{}.zzz": {
        "type": "result",
        "subtype": "success",
        "modelUsage": {"a model": {"inputTokens": 1, "outputTokens": 1, "zzz": 1}},
    },
    "system.init.zzz": {"type": "system", "subtype": "init", "zzz": 1},
    "system.init.mcp_servers[].zzz": {
        "type": "system",
        "subtype": "init",
        "mcp_servers": [{"name": "a", "status": "b", "zzz": 1}],
    },
    "PermissionReply.zzz": {"allow": True, "zzz": 1},
}


@pytest.mark.parametrize("path", FIELDS)
def test_unknown_field_is_found_by_its_path(path: str) -> None:
    assert found(FIELDS[path]) == [unknown_field(path)]


@pytest.mark.parametrize("path", FIELDS)
def test_without_that_field_nothing_is_found(path: str) -> None:
    field = path.rpartition(".")[2]
    text = json.dumps(FIELDS[path], separators=(",", ":"))
    without = json.loads(text, object_hook=lambda value: {key: value[key] for key in value if key != field})
    assert without != FIELDS[path]
    assert found(without) == []


def test_renamed_fields_are_known_by_their_name_on_the_wire() -> None:
    assert found({**ASSISTANT, "model": "m"}) == []
    assert found({**ASSISTANT, "model_": "m"}) == [unknown_field("assistant.model_")]


@pytest.mark.parametrize(
    "message",
    [
        assistant({"type": "tool_use", "id": "i", "name": "n", "input": {"zzz": {"type": "zzz"}}}),
        {"type": "result", "subtype": "success", "subagent_stats": {"zzz": 1}, "structured_output": {"type": "zzz"}},
        {"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": {"zzz": 1}}},
        {**USER, "tool_use_result": {"zzz": [{"type": "zzz"}]}},
    ],
    ids=["tool input", "open objects", "payload of an answer", "tool result"],
)
def test_fields_that_are_open_by_their_type_hold_nothing_unknown(message: dict[str, Any]) -> None:
    assert found(message) == []


KINDS: list[tuple[Finding, dict[str, Any]]] = [
    (Finding("type", "zzz", "zzz", "unknown type"), {"type": "zzz", "subtype": "a"}),
    (Finding("message", "", "", "no type"), {"a": 1}),
    (Finding("subtype", "zzz", "system", "unknown subtype"), {"type": "system", "subtype": "zzz"}),
    (Finding("subtype", "zzz", "result", "unknown subtype"), {"type": "result", "subtype": "zzz"}),
    (Finding("message", "assistant", "assistant", "missing 'message'"), {"type": "assistant"}),
    (
        Finding("message", "result", "result", "expected a string, got a number at $.errors[]"),
        {"type": "result", "subtype": "success", "errors": ["a", "b", 3]},
    ),
    (Finding("block", "zzz", "assistant.message.content[]", "unknown type"), assistant({"type": "zzz"})),
    (Finding("block", "", "assistant.message.content[]", "no type"), assistant({"a": 1})),
    (
        Finding("block", "text", "assistant.message.content[]", "expected a string, got a number at $.text"),
        assistant({"type": "text", "text": 1}),
    ),
    (Finding("event", "zzz", "stream_event.event", "unknown type"), event({"type": "zzz"})),
    (Finding("delta", "zzz", "stream_event.event.content_block_delta.delta", "unknown type"), delta({"type": "zzz"})),
    (Finding("request", "zzz", "control_request.request", "unknown subtype"), request({"subtype": "zzz"})),
    (
        Finding("hook event", "Zzz", "control_request.request.hook_callback.input", "unknown hook_event_name"),
        hook({**HOOK, "hook_event_name": "Zzz"}),
    ),
    (
        Finding("object", "zzz", "assistant.message.content[].text.citations[]", "unknown type"),
        assistant({"type": "text", "text": "", "citations": [{"type": "zzz"}]}),
    ),
]


@pytest.mark.parametrize(("finding", "message"), KINDS, ids=[f"{f.what} {f.reason}" for f, _ in KINDS])
def test_unknown_kind_is_found_where_it_stands(finding: Finding, message: dict[str, Any]) -> None:
    assert found(message) == [finding]


def test_what_is_unknown_beside_an_unknown_block_is_found_too() -> None:
    message = assistant({"type": "zzz", "aaa": 1}, {"type": "text", "text": "a", "foo": 1})
    assert found({**message, "bar": 1}) == [
        unknown_field("assistant.bar"),
        Finding("block", "zzz", "assistant.message.content[]", "unknown type"),
        unknown_field("assistant.message.content[].text.foo"),
    ]


def test_names_in_findings_are_printable_and_short() -> None:
    name = "\x1b[31m\u202e\ud83d" + "a" * 1000
    [field] = found({**USER, name: 1})
    [block] = found(assistant({"type": name}))
    for finding in (field, block):
        assert finding.name.startswith(r"\x1b[31m\u202e\ud83daaa")
        assert len(finding.name) <= NAME_CHARS
        assert finding.name.isprintable()
        assert finding.path.isprintable()


# --- foreign text -----------------------------------------------------------------------------------------------------


@given(st.text(), st.integers(1, 100))
def test_one_line_is_one_short_printable_line(text: str, most: int) -> None:
    shown = one_line(text, most)
    assert len(shown) <= most
    assert shown.isprintable()


@given(st.text(st.characters(codec="ascii"), max_size=NAME_CHARS))
def test_short_printable_text_is_shown_as_it_is(text: str) -> None:
    assert (one_line(text) == text) == text.isprintable()


def test_printable_keeps_line_feeds_and_tabs_only() -> None:
    assert printable("a\n\tb\r\x07\x9b\u2028ü😀") == "a\n\tb\\r\\x07\\x9b\\u2028ü😀"


# --- the survey -------------------------------------------------------------------------------------------------------

#: Streams whose lines are hard to count.
STREAMS = {
    "empty": b"",
    "blank lines": b'\n \r\n{"type":"a"}\n\n\t\n{}\n\n',
    "unterminated": line(USER) + line(USER)[:-1],
    "cut": line(USER) + line(USER)[:-5],
    "ends in blanks": line(USER) + b" \t",
    "CR LF": line(USER).replace(b"\n", b"\r\n") * 2 + b"x\r\n",
    "BOM": b"\xef\xbb\xbf" + line(USER) + b"x\n",
    "BOM before what is invalid": b"\xef\xbb\xbfx\n" + line(USER),
    "BOM before a blank line": b"\xef\xbb\xbf\n" + line(USER),
    "BOM twice, BOM later": b"\xef\xbb\xbf\xef\xbb\xbf{}\n\xef\xbb\xbf" + line(USER),
    "not UTF-8": b'{"type":"\xff"}\n' + line(USER),
    "no objects": b'[]\n1\n"a"\nnull\n' + line(USER),
    "duplicate type": b'{"type":"user","type":"result"}\n' + line(USER),
    "two objects on a line": b'{"type":"a"}{"type":"b"}\n' + line(USER),
    "lone surrogate": line({**USER, "\ud83d": 1}) + line(assistant({"type": "text", "text": "\ud83d", "foo": 1})),
    "long": line({**USER, "zzz": "a" * 300}) + b"x\n" + line({**USER, "zzz": "a" * 200}) + b"y",
    "long and last": line(USER) + b"{" + b"a" * 300,
}
LIMIT = 150


def survey(chunks: list[bytes]) -> tuple[Summary, list[InvalidLine]]:
    invalid: list[InvalidLine] = []
    taken = Survey("a file", invalid.append, LIMIT)
    for chunk in chunks:
        taken.feed(chunk)
    return taken.close(), invalid


def decoded(data: bytes) -> list[Any]:
    decoder = Decoder(max_line_bytes=LIMIT)
    return decoder.feed(data) + decoder.close()


@pytest.mark.parametrize("name", STREAMS)
def test_survey_counts_what_the_decoder_returns(name: str) -> None:
    data = STREAMS[name]
    summary, invalid = survey([data])
    expected = decoded(data)
    assert invalid == [message for message in expected if isinstance(message, InvalidLine)]
    assert summary.invalid == len(invalid)
    assert summary.messages == len(expected) - len(invalid)
    assert summary.kinds.total() == summary.messages
    assert summary.lines == len(expected)
    assert summary.bytes == len(data)


@pytest.mark.parametrize("name", STREAMS)
def test_survey_is_the_same_at_every_cut(name: str) -> None:
    data = STREAMS[name]
    whole = survey([data])
    assert survey([data[at : at + 1] for at in range(len(data))]) == whole
    for at in range(len(data)):
        assert survey([data[:at], data[at:]]) == whole


@settings(max_examples=100 if LONG else 40, deadline=None)
@given(st.lists(st.sampled_from([*STREAMS.values(), b"\n", b"x\n"]), max_size=6), st.lists(st.integers(0, 2000)))
def test_survey_agrees_with_the_decoder_on_any_mixture(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    summary, invalid = survey([data[a:b] for a, b in itertools.pairwise(edges)])
    expected = decoded(data)
    assert invalid == [message for message in expected if isinstance(message, InvalidLine)]
    assert summary.lines == len(expected)


def test_line_number_of_a_finding_counts_blank_invalid_and_long_lines() -> None:
    data = b"\n\nx\n" + line({"type": "a", "b": "c" * LIMIT}) + b"\r\n" + line({**USER, "zzz": 1}) + line(USER)
    summary, _ = survey([data + line({**USER, "zzz": 2})])
    assert summary.findings == {unknown_field("user.zzz"): Seen(2, "a file", 6)}


def test_unknown_field_is_found_in_a_line_with_lone_surrogates() -> None:
    summary, _ = survey([STREAMS["lone surrogate"]])
    assert list(summary.findings) == [
        unknown_field(r"user.\ud83d"),
        unknown_field("assistant.message.content[].text.foo"),
    ]


def test_number_of_different_findings_is_bounded() -> None:
    data = b"".join(line({**USER, f"field_{number}": 1}) for number in range(MAX_FINDINGS + 5))
    summary, _ = survey([data, data])
    assert len(summary.findings) == MAX_FINDINGS
    assert all(seen.times == 2 for seen in summary.findings.values())
    assert summary.more == 10
    assert summary.messages == 2 * (MAX_FINDINGS + 5)


def test_summaries_add_up() -> None:
    total = Summary()
    for source in ("one", "two"):
        part = Survey(source, lambda line: None)
        part.feed(line({**USER, "zzz": 1}) + b"x\n" + line({"type": source}))
        total.add(part.close())
    assert (total.messages, total.invalid, total.lines) == (4, 2, 6)
    assert total.kinds == {"user": 2, "unknown": 2}
    assert total.findings == {
        unknown_field("user.zzz"): Seen(2, "one", 1),
        Finding("type", "one", "one", "unknown type"): Seen(1, "one", 3),
        Finding("type", "two", "two", "unknown type"): Seen(1, "two", 3),
    }


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("user", USER),
        ("assistant", ASSISTANT),
        ("system/init", {"type": "system", "subtype": "init"}),
        ("result/success", {"type": "result", "subtype": "success"}),
        ("result/unknown", {"type": "result", "subtype": "zzz"}),
        ("stream_event/message_stop", event({"type": "message_stop"})),
        ("stream_event/unknown", event({"type": "zzz"})),
        ("stream_event/content_block_delta/text_delta", delta({"type": "text_delta", "text": ""})),
        ("stream_event/content_block_delta/unknown", delta({"type": "zzz"})),
        ("control_request/interrupt", request({"subtype": "interrupt"})),
        ("control_request/unknown", request({"subtype": "zzz"})),
        ("control_request/hook_callback/PreToolUse", hook(HOOK)),
        ("control_request/hook_callback/unknown", hook({"hook_event_name": "zzz"})),
        (
            "control_response/error",
            {"type": "control_response", "response": {"subtype": "error", "request_id": "r", "error": ""}},
        ),
        ("PermissionReply", {"allow": True}),
        ("unknown", {"type": "zzz"}),
    ],
)
def test_name_has_the_type_and_what_else_tells_a_message_apart(expected: str, message: dict[str, Any]) -> None:
    assert message_name(decode(line(message))) == expected


@each("name", names(), str)
def test_recording_holds_what_the_decoder_finds(name: str) -> None:
    recording = load(name)
    for data in (recording.stdout, recording.stdin):
        decoder = Decoder()
        expected = [*decoder.feed(data), *decoder.close()]
        invalid: list[InvalidLine] = []
        taken = Survey(name, invalid.append)
        taken.feed(data)
        summary = taken.close()
        assert summary.lines == len(expected)
        assert invalid == [message for message in expected if isinstance(message, InvalidLine)]
        # The survey misses nothing that the decoder counts as unknown. The decoder does not count unknown fields and
        # result subtypes.
        kinds = [finding for finding in summary.findings if finding.what != "field" and finding.path != "result"]
        assert bool(kinds) == bool(decoder.stats.unknown)
