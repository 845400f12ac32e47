"""Each text block becomes one event. Its deltas are partial events with the id of the block that replaces them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import AssistantMessage, decode
from claude_wire.messages import ResultSuccess
from claude_wire_kit.events import Bridge, ClaudeResponse


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
