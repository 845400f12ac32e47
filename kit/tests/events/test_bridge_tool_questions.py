"""A bridge makes permission questions from tool uses in a one-way stream. The messages are from document [004]."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import decode
from claude_wire.errors import AnswerError
from claude_wire.messages import Message, PermissionReply
from claude_wire_kit.events import Bridge, PermissionCancelled, PermissionRequest, UiEvent


def message(**fields: Any) -> Message:
    return decode(json.dumps({"session_id": "sess_123", **fields}).encode())


def uses(name: str, id: str = "toolu_1") -> Message:
    block = {"type": "tool_use", "id": id, "name": name, "input": {"command": "ls"}}
    return message(type="assistant", message={"content": [block]})


RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
RETURNED = message(type="user", message={"role": "user", "content": [RESULT]})
SUCCESS = message(type="result", subtype="success", is_error=False, duration_ms=1.5, num_turns=1, result="done")
REQUEST = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "toolu_1"}
ASKED = message(type="control_request", request_id="r1", request=REQUEST)
CLASSIC = message(type="system", subtype="permission_request", tool_name="Bash", input={})


def questions(events: list[UiEvent]) -> list[PermissionRequest | PermissionCancelled]:
    return [event for event in events if isinstance(event, (PermissionRequest, PermissionCancelled))]


def asking() -> tuple[Bridge, PermissionRequest]:
    ui = Bridge(permissions_from_tools=["Bash"])
    (question,) = questions(ui.add(uses("Bash")))
    assert isinstance(question, PermissionRequest)
    return ui, question


def test_a_use_of_a_named_tool_is_a_question() -> None:
    _, question = asking()
    assert (question.tool, question.input, question.options) == ("Bash", {"command": "ls"}, ["allow once"])
    assert question.conversationId == "sess_123"


def test_other_tools_and_bridges_ask_nothing() -> None:
    assert questions(Bridge(permissions_from_tools=["Write"]).add(uses("Bash"))) == []
    assert questions(Bridge().add(uses("Bash"))) == []


def test_the_answer_is_given_once_and_a_denial_marks_the_operation() -> None:
    ui, question = asking()
    assert ui.answer(question.requestId, allow=False) == PermissionReply(False)
    with pytest.raises(AnswerError):
        ui.answer(question.requestId, allow=True)
    failed = {**RESULT, "is_error": True}
    (operation,) = ui.add(message(type="user", message={"role": "user", "content": [failed]}))
    assert operation.to_dict()["state"] == "denied"


def test_a_question_ends_with_the_result_of_the_tool_and_with_the_turn() -> None:
    ui, question = asking()
    (over,) = questions(ui.add(RETURNED))
    assert isinstance(over, PermissionCancelled)
    assert (over.requestId, over.reason, over.allowed) == (question.requestId, "answered", True)
    ui, question = asking()
    (over,) = questions(ui.add(SUCCESS))
    assert (over.requestId, over.to_dict()["reason"]) == (question.requestId, "withdrawn")


@pytest.mark.parametrize("asked", [ASKED, CLASSIC])
def test_an_agent_that_asks_itself_is_asked_for_once(asked: Message) -> None:
    ui, question = asking()
    over, real = questions(ui.add(asked))
    assert (over.requestId, over.to_dict()["reason"]) == (question.requestId, "withdrawn")
    assert isinstance(real, PermissionRequest)
    assert questions(ui.add(uses("Bash", "toolu_2"))) == []


@pytest.mark.parametrize("given", ["Bash", True])
def test_tools_are_given_as_names(given: Any) -> None:
    with pytest.raises(TypeError, match="names of tools"):
        Bridge(permissions_from_tools=given)
