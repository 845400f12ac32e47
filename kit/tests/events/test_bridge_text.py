"""Texts and prompts as events: each appears once, and deltas come under the id of their text."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recordings
from claude_wire import AssistantMessage, Decoder, Message, decode
from claude_wire.messages import ResultSuccess, UserMessage
from claude_wire_kit.events import Activity, Bridge, ClaudeResponse, Part, UserPrompt


def event(event: dict[str, Any], **more: Any) -> Any:
    return decode(json.dumps({"type": "stream_event", "event": event, "session_id": "s", **more}).encode())


def start(id: str | None = "m") -> Any:
    return event({"type": "message_start", "message": {"content": [], **({} if id is None else {"id": id})}})


def delta(text: str, index: int = 0, **more: Any) -> Any:
    return event({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}, **more)


def whole(*texts: str, id: str | None = "m") -> Any:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"content": content, **({} if id is None else {"id": id})}
    return decode(json.dumps({"type": "assistant", "message": message, "session_id": "s"}).encode())


def told(ui: Bridge, *messages: Any) -> list[tuple[str, str | None, bool | None]]:
    events = [one for message in messages for one in ui.add(message)]
    return [(one.content, one.id, one.partial) for one in events if isinstance(one, ClaudeResponse)]


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_blank_text_is_no_event(text: str) -> None:
    assert Bridge().add(AssistantMessage.of(text, session_id="s")) == []


def test_each_block_of_a_message_is_an_event() -> None:
    assert told(Bridge(), whole("a", "", "b")) == [("a", None, None), ("b", None, None)]


def test_deltas_are_passed_over_unless_they_are_asked_for() -> None:
    assert told(Bridge(), start(), delta("a"), whole("a")) == [("a", None, None)]


def test_deltas_and_the_block_have_one_id() -> None:
    messages = [start(), delta("a"), delta(" "), delta("b"), whole("a b"), delta("c", 1), whole("c")]
    assert told(Bridge(partial=True), *messages) == [
        ("a", "m.0", True),
        (" ", "m.0", True),
        ("b", "m.0", True),
        ("a b", "m.0", None),
        ("c", "m.1", True),
        ("c", "m.1", None),
    ]


def test_the_characters_of_a_streaming_input_are_counted_for_each_block() -> None:
    ui = Bridge(partial=True, details=True)
    counts = []
    for index, pieces in enumerate([['{"a":', "1}"], ["{}"]]):
        block = {"type": "tool_use", "id": f"t{index}", "name": "Bash", "input": {}}
        ui.add(event({"type": "content_block_start", "index": index, "content_block": block}))
        for piece in pieces:
            piece_delta = {"type": "input_json_delta", "partial_json": piece}
            [activity] = ui.add(event({"type": "content_block_delta", "index": index, "delta": piece_delta}))
            assert isinstance(activity, Activity)
            counts.append(activity.detail)
    assert counts == ["5 characters", "7 characters", "2 characters"]


def test_a_block_that_begins_blank_is_told_from_its_first_word_on() -> None:
    assert told(Bridge(partial=True), start(), delta(""), delta("\n"), delta("a"), delta(""), whole("\na")) == [
        ("a", "m.0", True),
        ("\na", "m.0", None),
    ]


def test_a_block_without_deltas_has_no_id() -> None:
    assert told(Bridge(partial=True), start(), delta("\n"), whole("x")) == [("x", None, None)]


def test_a_block_of_another_message_does_not_replace_what_was_streamed() -> None:
    ui = Bridge(partial=True)
    assert told(ui, start(), delta("a"), whole("x", id="other")) == [("a", "m.0", True), ("x", None, None)]
    assert told(ui, whole("a")) == [("a", "m.0", None)]


@pytest.mark.parametrize("end", [start("n"), ResultSuccess(session_id="s")])
def test_what_was_streamed_and_broken_off_is_replaced_by_nothing_later(end: Any) -> None:
    assert told(Bridge(partial=True), start(), delta("a"), end, whole("b", id=None)) == [
        ("a", "m.0", True),
        ("b", None, None),
    ]


def test_messages_without_ids_are_told_apart() -> None:
    messages = [start(None), delta("a"), whole("a", id=None), start(None), delta("b"), whole("b", id=None)]
    assert [id for _, id, _ in told(Bridge(partial=True), *messages)] == ["message-1.0"] * 2 + ["message-2.0"] * 2


def test_the_deltas_of_a_subagent_are_passed_over() -> None:
    assert told(Bridge(partial=True), start(), delta("a", parent_tool_use_id="p")) == []


def test_the_blocks_that_wait_are_bounded() -> None:
    ui = Bridge(partial=True)
    ui.add(start())
    for index in range(200):
        ui.add(delta("a", index))
    [(_, id, _)] = told(ui, whole("a"))
    assert id == "m.136"


# --- Each prompt that the CLI repeats becomes one event. Other user messages do not -----------------------------------


def repeated(content: Any, uuid: str | None = "u1", **fields: Any) -> Message:
    """Return a prompt in the form in which the CLI repeats it."""
    message = {"type": "user", "message": {"role": "user", "content": content}, "session_id": "s", "isReplay": True}
    return decode(json.dumps({**message, **({"uuid": uuid} if uuid else {}), **fields}).encode())


def prompts(name: str) -> list[tuple[str, str | None]]:
    ui = Bridge(partial=True, prompts=True)
    events = [event for message in Decoder().feed(recordings.load(name).stdout) for event in ui.add(message)]
    return [(event.content, event.id) for event in events if isinstance(event, UserPrompt)]


def test_a_prompt_is_an_event_with_the_uuid_it_was_sent_with() -> None:
    [event] = Bridge(project=lambda conversation: "p", prompts=True).add(repeated("Good morning"))
    assert event.to_dict() == {
        "type": "user_prompt",
        "content": "Good morning",
        "id": "u1",
        "conversationId": "s",
        "projectId": "p",
    }


def test_the_cli_repeats_a_prompt_each_time_that_it_is_sent_and_it_is_told_once() -> None:
    assert [content for content, _ in prompts("12_multi_replay")] == ["first", "second", "third"]
    ids = [id for _, id in prompts("12_multi_replay")]
    assert len(set(ids)) == 3


@pytest.mark.parametrize("name", ["08_control", "16_compact", "17_sdk_client_full"])
def test_what_commands_of_the_cli_print_is_no_prompt(name: str) -> None:
    assert b'"isReplay":true' in recordings.load(name).stdout
    assert prompts(name) == []


def test_a_front_end_that_asks_for_no_prompts_gets_none() -> None:
    assert Bridge().add(repeated("Good morning")) == []


def test_two_prompts_without_a_uuid_are_two() -> None:
    ui = Bridge(prompts=True)
    events = ui.add(repeated("again", None)) + ui.add(repeated("again", None))
    assert events == [UserPrompt(content="again", conversationId="s")] * 2


@pytest.mark.parametrize("details", [False, True])
def test_prompts_that_waited_and_are_answered_together_are_shown_once(details: bool) -> None:
    """The CLI repeats the last one with the texts of all. A text of an earlier turn is not removed."""
    ui = Bridge(prompts=True, details=details)
    texts = ["first", "first\nsecond", "first\nsecond\n\nthird\nline"]
    found = [ui.add(repeated(text, str(number))) for number, text in enumerate(texts)]
    assert [event.content for [event] in found if isinstance(event, UserPrompt)] == ["first", "second", "\nthird\nline"]
    if details:
        assert [event.parts for [event] in found if isinstance(event, UserPrompt)][1] == [Part(text="second")]
    ui.add(decode(b'{"type":"result","subtype":"success","is_error":false,"session_id":"s"}'))
    [event] = ui.add(repeated("first\nsecond", "u"))
    assert isinstance(event, UserPrompt)
    assert event.content == "first\nsecond"


def test_a_prompt_that_was_sent_is_shown_once_if_the_cli_joins_it_with_others() -> None:
    ui = Bridge(details=True)
    sent = [event for text in ("first", "second") for event in ui.sent(UserMessage.of(text))]
    assert [event.content for event in sent if isinstance(event, UserPrompt)] == ["first", "second"]
    assert ui.add(repeated("first", "u1")) + ui.add(repeated("first\nsecond", "u2")) == []


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "x"}


@pytest.mark.parametrize(
    ("content", "text", "attachments"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", None),
        ([{"type": "text", "text": "What is this?"}, IMAGE, IMAGE], "What is this?", 2),
        ([IMAGE], "", 1),
    ],
)
def test_the_blocks_of_a_prompt(content: Any, text: str, attachments: int | None) -> None:
    assert Bridge(prompts=True).add(repeated(content)) == [
        UserPrompt(content=text, id="u1", attachments=attachments, conversationId="s")
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"content": " \n"},
        {"content": []},
        {"content": [RESULT]},
        {"content": "a", "isReplay": None},
        {"content": "a", "isSynthetic": True},
        {"content": "<local-command-stderr>a</local-command-stderr>"},
    ],
)
def test_what_is_no_prompt_of_a_person(fields: dict[str, Any]) -> None:
    assert Bridge(prompts=True).add(repeated(**fields)) == []


@pytest.mark.parametrize(
    ("content", "fields", "origin", "during"),
    [
        ("Good morning", {}, None, None),
        ("Good morning", {"priority": "now"}, None, None),
        ("Good morning", {"priority": "next"}, None, True),
        ("Good morning", {"isSynthetic": True}, "cli", None),
        ("<local-command-stderr>a</local-command-stderr>", {}, "cli", None),
        ("[Request interrupted by user for tool use]", {}, "interruption", None),
    ],
)
def test_a_page_is_told_where_a_prompt_comes_from(
    content: str, fields: dict[str, Any], origin: str | None, during: bool | None
) -> None:
    [prompt] = Bridge(details=True).add(repeated(content, isReplay=None, timestamp="2026-11-27", **fields))
    assert isinstance(prompt, UserPrompt)
    assert (prompt.origin, prompt.duringTurn, prompt.at) == (origin, during, "2026-11-27")


def test_the_prompt_of_a_subagent_is_none_of_a_person() -> None:
    events = Bridge(prompts=True).add(repeated("Look for it", parent_tool_use_id="t1"))
    assert not any(isinstance(event, UserPrompt) for event in events)


def test_the_last_event_of_its_line_is_the_prompt() -> None:
    """The older kinds of events thus keep their positions among the events of a line."""
    ui = Bridge(prompts=True)
    ui.add(decode(b'{"type":"assistant","session_id":"s","message":{"content":[{"type":"tool_use","id":"t",'
                  b'"name":"Bash","input":{}}]}}'))  # fmt: skip
    events = ui.add(repeated([RESULT, {"type": "text", "text": "Go on"}]))
    assert [event.to_dict()["type"] for event in events] == ["operation", "user_prompt"]
