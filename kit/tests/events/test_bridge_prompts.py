"""Each prompt that the CLI repeats becomes one event. Other user messages do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recordings
from claude_wire import Decoder, Message, decode
from claude_wire_kit.events import Bridge, UserPrompt


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
