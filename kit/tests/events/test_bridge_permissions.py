"""Each permission question gets one answer, from a program that reads the stream or from a session."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

import recordings
from async_backends import every_backend
from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    Message,
    PermissionResultDeny,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    decode,
    encode,
)
from claude_wire.errors import AnswerError
from claude_wire.messages import (
    ApiMessage,
    ControlCancelRequest,
    ControlSuccess,
    MessageParam,
    PermissionReply,
    ResultSuccess,
)
from claude_wire_kit.events import Bridge, Operation, PermissionCancelled, PermissionRequest, Questions, UiEvent
from session_peer import Peer, opened, stays_unanswered

SUGGESTIONS = [
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "npm run *"}, {"toolName": "Read"}],
        "behavior": "allow",
        "destination": "localSettings",
    },
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
    {"type": "addDirectories", "directories": ["/a", "/b"], "destination": "session"},
    {"type": "sing", "song": "x"},
]


def asked(id: Any = "r1", **fields: Any) -> Message:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, **fields}
    message = {"type": "control_request", "request": request}
    return decode(json.dumps(message if id is ... else {**message, "request_id": id}).encode())


def answered(reply: Any) -> Any:
    assert isinstance(reply, ControlResponse)
    return json.loads(encode(reply))["response"]


def test_an_option_changes_the_permissions() -> None:
    for option in range(5):
        ui = Bridge()
        [event] = ui.add(asked(permission_suggestions=SUGGESTIONS, description="List\x1b[31m"))
        assert event.to_dict() == {
            "type": "permission_request",
            "requestId": "r1",
            "tool": "Bash",
            "description": "List\\x1b[31m",
            "input": {"command": "ls"},
            "options": [
                "allow once",
                "allow Bash(npm run *), Read (localSettings)",
                "switch to permission mode acceptEdits (session)",
                "work in /a, /b (session)",
                '{"type": "sing", "song": "x"}',
            ],
        }
        response = answered(ui.answer("r1", allow=True, option=option))
        updates = {"updatedPermissions": [SUGGESTIONS[option - 1]]} if option else {}
        assert response == {
            "subtype": "success",
            "request_id": "r1",
            "response": {"behavior": "allow", "updatedInput": {"command": "ls"}, **updates},
        }


def test_rules_that_the_cli_does_not_offer_are_no_option() -> None:
    ui = Bridge()
    [event] = ui.add(asked(permission_suggestions=SUGGESTIONS, suppress_always_allow_rule=True))
    assert isinstance(event, PermissionRequest)
    assert event.options[1] == "switch to permission mode acceptEdits (session)"
    assert answered(ui.answer("r1", True, 1))["response"]["updatedPermissions"] == [SUGGESTIONS[1]]


def test_a_question_is_answered_once_and_an_unknown_one_never() -> None:
    ui = Bridge()
    ui.add(asked())
    with pytest.raises(AnswerError) as unknown:
        ui.answer("r2", allow=True)
    assert not unknown.value.settled
    for wrong in (1, -1, 10**9):
        with pytest.raises(ValueError, match="option must be"):
            ui.answer("r1", allow=True, option=wrong)
    with pytest.raises(TypeError, match="option must be an int"):
        ui.answer("r1", allow=True, option="1")
    assert answered(ui.answer("r1", allow=False))["response"]["behavior"] == "deny"
    for _ in range(2):
        with pytest.raises(AnswerError, match="is settled") as settled:
            ui.answer("r1", allow=True)
        assert settled.value.settled
    assert ui.add(asked()) == []  # the same question a second time


@pytest.mark.parametrize("id", ["r1", 5, 2.5, 0, "x" * 500])
def test_an_answer_has_the_id_as_it_came(id: Any) -> None:
    ui = Bridge()
    [event] = ui.add(asked(id))
    assert isinstance(event, PermissionRequest)
    assert event.requestId == id or len(str(event.requestId)) == 64
    assert answered(ui.answer(event.requestId, allow=True))["request_id"] == id


@pytest.mark.parametrize("id", [None, ...])
def test_a_question_without_an_id_gets_one(id: Any) -> None:
    ui = Bridge()
    ids = [event.requestId for _ in range(2) for event in ui.add(asked(id)) if isinstance(event, PermissionRequest)]
    assert ids == ["permission-1", "permission-2"]
    response = answered(ui.answer("permission-2", allow=True))
    assert response.get("request_id") is None
    assert ("request_id" in response) == (id is None)


def test_an_id_that_is_made_is_none_of_the_other_side() -> None:
    ui = Bridge()
    ui.add(asked("permission-1"))
    ui.add(asked("permission-2"))
    ui.answer("permission-2", allow=True)
    [event] = ui.add(asked(...))
    assert isinstance(event, PermissionRequest)
    assert event.requestId == "permission-3"


def test_a_question_without_a_request_is_answered_by_a_bare_reply() -> None:
    ui = Bridge()
    ask = b'{"type":"system","subtype":"permission_request","name":"Bash","args":{"command":"rm x"}%s}'
    [first] = ui.add(decode(ask % b',"uuid":"u1","session_id":"s"'))
    [second] = ui.add(decode(ask % b""))
    assert isinstance(first, PermissionRequest)
    assert (first.requestId, first.tool, first.input) == ("u1", "Bash", {"command": "rm x"})
    assert ui.answer("u1", allow=False) == PermissionReply(allow=False)
    assert isinstance(second, PermissionRequest)
    # Only the end of its turn withdraws such a question.
    [cancelled, _] = ui.add(ResultSuccess(session_id="s"))
    assert cancelled == PermissionCancelled(requestId=second.requestId, reason="withdrawn", conversationId="s")
    with pytest.raises(AnswerError):
        ui.answer(second.requestId, allow=True)


def called(id: str, session: str) -> AssistantMessage:
    content: list[Any] = [ToolUseBlock(id, "Bash", {"command": "ls"})]
    return AssistantMessage(message=ApiMessage(content=content), session_id=session)


def test_a_question_belongs_to_the_conversation_of_its_call() -> None:
    ui = Bridge()
    ui.add(called("t1", "a"))
    ui.add(called("t2", "b"))
    events = [*ui.add(asked("r1", tool_use_id="t1")), *ui.add(asked("r2", tool_use_id="t9")), *ui.add(asked("r3"))]
    assert [event.conversationId for event in events] == ["a", "b", "b"]
    ui.add(called("t1", "b"))  # the same id, so the later call counts
    ui.add(called("t3", "a"))
    [event] = ui.add(asked("r4", tool_use_id="t1"))
    assert event.conversationId == "b"


def test_a_question_for_an_unknown_call_belongs_to_the_latest_conversation() -> None:
    ui = Bridge()
    for session in (None, "s"):
        ui.add(AssistantMessage.of("Hi", session_id=session))
    [event] = ui.add(asked(tool_use_id="nobody's"))
    assert event.conversationId == "s"


@pytest.mark.parametrize(("id", "call"), [("t1", "t1"), (5, None)])
def test_a_page_with_details_is_told_which_call_a_question_without_a_request_is_about(id: Any, call: Any) -> None:
    ui = Bridge(details=True)
    line = {"type": "system", "subtype": "permission_request", "tool_name": "Bash", "tool_use_id": id}
    [event] = [event for event in ui.add(decode(json.dumps(line).encode())) if isinstance(event, PermissionRequest)]
    assert event.callId == call


def test_the_end_of_a_turn_leaves_the_questions_that_the_cli_withdraws_itself() -> None:
    ui = Bridge()
    ui.add(called("t1", "s"))
    ui.add(asked())
    assert not any(isinstance(event, PermissionCancelled) for event in ui.add(ResultSuccess(session_id="s")))
    ui.answer("r1", allow=True)


def test_a_result_settles_the_question_for_its_own_call_alone() -> None:
    ui = Bridge()
    for id in ("t1", "t2"):
        ui.add(called(id, "s"))
        ui.add(asked(f"for {id}", tool_use_id=id))
    events = [event for event in ui.add(result("t2", "s")) if isinstance(event, PermissionCancelled)]
    assert [event.requestId for event in events] == ["for t2"]


def result(id: str, session: str, is_error: bool = False, decision: str | None = None) -> UserMessage:
    return UserMessage(
        message=MessageParam("user", [ToolResultBlock(id, "x", is_error)]),
        session_id=session,
        tool_result_meta=[{"id": id, "permission_decision": {"decision": decision}}] if decision else None,
    )


@pytest.mark.parametrize(
    ("message", "reason", "allowed"),
    [
        (ControlCancelRequest("r1"), "withdrawn", None),
        (ControlResponse.success("r1", {"behavior": "allow"}), "answered", True),
        (ControlResponse.success("r1", {"behavior": "deny", "message": "no"}), "answered", False),
        (ControlResponse.success("r1", {"behavior": "perhaps"}), "answered", None),
        (ControlResponse.failure("r1", "no"), "answered", None),
        (result("t1", "s"), "answered", True),
        (result("t1", "s", is_error=True), "answered", None),
        (result("t1", "s", is_error=True, decision="accept"), "answered", True),
        (result("t1", "s", is_error=True, decision="reject"), "answered", False),
        (result("t1", "s", is_error=True, decision="cancelled"), "answered", None),
    ],
)
def test_a_question_is_settled_elsewhere(message: Message, reason: Any, allowed: bool | None) -> None:
    ui = Bridge()
    ui.add(called("t1", "s"))
    ui.add(asked(tool_use_id="t1"))
    events = [event for event in ui.add(message) if isinstance(event, PermissionCancelled)]
    assert events == [PermissionCancelled(requestId="r1", reason=reason, allowed=allowed, conversationId="s")]
    assert ui.add(message) == []
    with pytest.raises(AnswerError, match="is settled"):
        ui.answer("r1", allow=True)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("05_perm_allow_deny", [True, False, True]),
        ("05_perm_badresp", [False, False, False]),
        ("05_perm_cancel", [None]),
        ("05_perm_eof", [False]),
        ("07_mcp_viainit", [True, True]),
    ],
)
def test_the_cli_says_how_a_question_was_answered(name: str, allowed: list[bool | None]) -> None:
    """The output of the CLI shows the decision, although it has no answers. A tool may be allowed and then fail."""
    ui = Bridge()
    events = [event for message in Decoder().feed(recordings.load(name).stdout) for event in ui.add(message)]
    assert [event.allowed for event in events if isinstance(event, PermissionCancelled)] == allowed


def test_a_call_that_was_not_allowed_ends_as_denied() -> None:
    for answer in (None, ControlResponse.success("r1", {"behavior": "deny", "message": "no"})):
        ui = Bridge()
        ui.add(called("t1", "s"))
        ui.add(asked(tool_use_id="t1"))
        if answer is None:
            ui.answer("r1", allow=False)
        else:
            ui.add(answer)
        [event] = ui.add(result("t1", "s", is_error=True))
        assert isinstance(event, Operation)
        assert event.state == "denied"


def test_a_call_that_was_not_allowed_without_a_request_ends_as_denied_too() -> None:
    ui = Bridge()
    ui.add(called("t1", "s"))
    asks = {"type": "system", "subtype": "permission_request", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}
    [event] = ui.add(decode(json.dumps(asks).encode()))
    assert isinstance(event, PermissionRequest)
    assert ui.answer(event.requestId, allow=False) == PermissionReply(allow=False)
    refused = {"type": "tool_result", "tool_use_id": "t1", "result": "no", "is_error": True}
    [end] = ui.add(decode(json.dumps(refused).encode()))
    assert isinstance(end, Operation)
    assert end.state == "denied"


def test_questions_that_wait_at_initialize_are_asked_once() -> None:
    request = asked("r1")
    assert isinstance(request, ControlRequest)
    answer = ControlResponse(ControlSuccess(request_id="init", pending_permission_requests=[request, request]))
    ui = Bridge()
    assert len(ui.add(answer)) == 1
    assert ui.add(request) == []


def test_the_end_of_the_stream_withdraws_a_question() -> None:
    ui = Bridge()
    ui.add(asked("r1"))
    assert ui.end() == [PermissionCancelled(requestId="r1", reason="withdrawn")]


# --- with a session ---------------------------------------------------------------------------------------------------


@every_backend
@pytest.mark.parametrize("plain", [True, False])
async def test_a_session_asks_the_front_end(plain: bool) -> None:
    ui = Bridge()
    sent: list[UiEvent] = []

    def send(event: UiEvent) -> None:
        sent.append(event)

    async def send_later(event: UiEvent) -> None:
        await anyio.lowlevel.checkpoint()
        sent.append(event)

    questions = Questions(ui, send if plain else send_later)
    async with opened(can_use_tool=questions.ask) as (peer, _):
        peer.say(peer.permission("a"), peer.permission("b", permission_suggestions=SUGGESTIONS))
        await stays_unanswered(peer, "a", "b")
        requests = [event for event in sent if isinstance(event, PermissionRequest)]
        first, second = sorted(requests, key=lambda request: len(request.options))
        ui.answer(second.requestId, allow=True, option=2)
        response = (await peer.answer_to("b"))["response"]
        assert response["updatedPermissions"] == [SUGGESTIONS[1]]
        assert response["toolUseID"] == "use-b"
        ui.answer(first.requestId, allow=False, message="not now")
        assert (await peer.answer_to("a"))["response"] == {
            "behavior": "deny",
            "message": "not now",
            "toolUseID": "use-a",
        }
        assert len(sent) == 2


@every_backend
async def test_a_question_that_the_cli_withdraws_is_cancelled_at_the_front_end() -> None:
    ui = Bridge()
    sent: list[UiEvent] = []

    async def send(event: UiEvent) -> None:
        await anyio.lowlevel.checkpoint()
        sent.append(event)

    async with opened(can_use_tool=Questions(ui, send).ask) as (peer, _):
        peer.say(peer.permission("a"))
        await stays_unanswered(peer, "a")
        peer.say(peer.cancel("a"))
        await stays_unanswered(peer, "a")
    [request, cancelled] = sent
    assert isinstance(request, PermissionRequest)
    assert cancelled == PermissionCancelled(requestId=request.requestId, reason="withdrawn")
    with pytest.raises(AnswerError, match="is settled"):
        ui.answer(request.requestId, allow=True)


@every_backend
async def test_a_question_that_cannot_be_sent_is_withdrawn_and_refused() -> None:
    ui = Bridge()

    def send(event: UiEvent) -> None:
        raise ConnectionError

    async with opened(can_use_tool=Questions(ui, send).ask) as (peer, _):
        peer.say(peer.permission("a"))
        assert (await peer.answer_to("a"))["subtype"] == "error"
    assert "0 permission questions" in repr(ui)


@every_backend
async def test_a_question_that_the_bridge_gives_up_is_denied() -> None:
    ui = Bridge()
    sent: list[UiEvent] = []

    async with opened(can_use_tool=Questions(ui, sent.append).ask) as (peer, _):
        peer.say(peer.permission("a"))
        await stays_unanswered(peer, "a")
        assert len(ui.end()) == 1
        assert (await peer.answer_to("a"))["response"]["behavior"] == "deny"


@every_backend
async def test_a_question_outside_of_a_session_is_answered_too() -> None:
    ui = Bridge()

    def send(event: UiEvent) -> None:
        assert isinstance(event, PermissionRequest)
        ui.answer(event.requestId, allow=False)

    request = CanUseToolRequest(tool_name="Bash", input={})
    assert isinstance(await Questions(ui, send).ask(request), PermissionResultDeny)


async def test_a_question_whose_coroutine_is_closed_is_withdrawn_without_sending() -> None:
    ui = Bridge()
    sent: list[UiEvent] = []

    async def send(event: UiEvent) -> None:
        sent.append(event)

    asking = Questions(ui, send).ask(CanUseToolRequest(tool_name="Bash", input={}))
    asking.send(None)
    [event] = sent
    assert isinstance(event, PermissionRequest)
    asking.close()
    assert sent == [event]
    with pytest.raises(AnswerError):
        ui.answer(event.requestId, allow=True)


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="Questions takes a Bridge"):
        Questions(print, Bridge())
    with pytest.raises(TypeError, match="send must be a function"):
        Questions(Bridge(), 5)
    assert Peer


# --- A bridge makes permission questions from tool uses in a one-way stream. The messages are from document [004] -----


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
