"""Requests and questions in each dialect: their frames, their answers and their order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import (
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    PermissionResultAllow,
    PermissionResultDeny,
    UserMessage,
)
from claude_wire.dialects import CLASSIC, JSON_RPC, MIRIAD
from claude_wire.errors import DialectError
from claude_wire.messages import (
    AddRules,
    ControlCancelRequest,
    GetStatusRequest,
    InjectedMessage,
    InterruptedMessage,
    InterruptRequest,
    ResultCancelled,
    StatusMessage,
)
from dialect_lines import RESULT, STOPPED, read, started, text
from feeding import fed

# --- requests of a host, and their answers ----------------------------------------------------------------------------


def test_miriad_interrupts_and_tells_its_status() -> None:
    host, agent = MIRIAD.connect(), started(MIRIAD)
    for request_id, body, line in (
        ("1", GetStatusRequest(), '{"type":"control","action":"status"}'),
        ("2", InterruptRequest(), '{"type":"control","action":"interrupt"}'),
    ):
        sent = host.to_agent(ControlRequest(request_id, body))
        assert text(sent) == line
        (asked,) = agent.from_host(read(sent))
        assert asked.request == body
        payload = {"running": True, "session_id": "S", "queued_messages": 2} if request_id == "1" else {}
        told = agent.to_host(ControlResponse.success(asked.request_id, payload))
        assert text(told) == (
            '{"type":"system","subtype":"status","running":true,"session_id":"S","queued_messages":2}'
            if request_id == "1"
            else '{"type":"system","subtype":"interrupted","session_id":"S"}'
        )
        *others, answer = host.from_agent(read(told))
        assert answer == ControlResponse.success(request_id, payload)
        assert [type(other) for other in others] == ([] if request_id == "1" else [InterruptedMessage])
    # No request is open now, so the host passes both frames to the consumer.
    for frame in (StatusMessage(running=False, session_id="S"), InterruptedMessage(session_id="S")):
        assert host.from_agent(frame) == [frame]
    # An error frame answers the open request. A second, equal frame answers nothing.
    (asked,) = agent.from_host(read('{"type":"control","action":"status"}'))
    failure = ControlResponse.failure(asked.request_id, "no status")
    assert text(agent.to_host(failure)) == '{"type":"system","subtype":"error","message":"no status"}'
    assert agent.to_host(failure) == b""


def test_miriad_has_nothing_to_interrupt_between_turns() -> None:
    agent, host = started(MIRIAD), MIRIAD.connect()
    agent.to_host(RESULT)
    assert agent.from_host(read(host.to_agent(ControlRequest("1", InterruptRequest())))) == []
    told = agent.reply()
    assert text(told) == '{"type":"system","subtype":"error","message":"No turn is currently running"}'
    assert agent.reply() == b""
    assert host.from_agent(read(told)) == [ControlResponse.success("1", {})]
    assert host.from_agent(read(told)) == [read(told)]  # no request is open
    late = InterruptedMessage(session_id="S")
    assert host.from_agent(late) == [late]
    assert not host.result_may_be_missing
    # A prompt starts its turn immediately, before the agent writes anything.
    agent.from_host(read('{"type":"user","message":{"role":"user","content":"b"}}'))
    assert len(agent.from_host(read('{"type":"control","action":"interrupt"}'))) == 1


def test_miriad_names_the_session_of_the_last_prompt_that_has_one() -> None:
    agent = MIRIAD.connect()
    for session in (',"session_id":"S"', ""):
        agent.from_host(read(f'{{"type":"user","message":{{"role":"user","content":"a"}}{session}}}'))
        (asked,) = agent.from_host(read('{"type":"control","action":"interrupt"}'))
        told = agent.to_host(ControlResponse.success(asked.request_id))
        assert text(told) == '{"type":"system","subtype":"interrupted","session_id":"S"}'
        agent.to_host(STOPPED)


@pytest.mark.parametrize(
    ("count", "own_result"), [(-1, True), (0, True), (1, False), (5, False)], ids=["fewer", "none", "all", "more"]
)
def test_a_prompt_of_miriad_has_a_result_of_its_own_unless_it_was_injected(count: int, own_result: bool) -> None:
    """After an interrupt, one result ends the second prompt's turn, or the turn of both if the agent merged them."""
    host = MIRIAD.connect()
    for prompt in ("a", "b"):
        host.to_agent(UserMessage.of(prompt))
    injected = InjectedMessage(message_count=count, content_length=1)
    assert host.from_agent(injected) == [injected]
    host.from_agent(InterruptedMessage(session_id="S"))
    assert host.result_may_be_missing
    missing = [ResultCancelled(is_error=False, session_id="S")] if own_result else []
    assert host.from_agent(RESULT) == [*missing, RESULT]
    assert host.interrupt_may_be_unanswered  # no turn runs, so the agent may not answer an interrupt


def test_an_answer_of_miriad_that_never_comes_holds_up_no_other() -> None:
    host = MIRIAD.connect()
    for number, body in enumerate((InterruptRequest(), InterruptRequest(), GetStatusRequest(), GetStatusRequest())):
        host.to_agent(ControlRequest(str(number), body))
    assert host.to_agent(ControlCancelRequest("2")) == b""  # the host gave up waiting for request 2
    assert host.to_agent(ControlCancelRequest("9")) == b""
    status = StatusMessage(running=False, session_id="S")
    (answer,) = host.from_agent(status)
    assert answer.request_id == "3"
    assert host.from_agent(status) == [status]
    # The agent may write one InterruptedMessage for two interrupts of the same turn. It answers both.
    said = InterruptedMessage(session_id="S")
    assert [getattr(one, "request_id", None) for one in host.from_agent(said)] == [None, "0", "1"]
    assert host.from_agent(said) == [said]


def test_json_rpc_cancels_behind_the_result_of_the_run_and_tells_its_status() -> None:
    host, agent = JSON_RPC.connect(), started(JSON_RPC)
    sent = host.to_agent(ControlRequest("1", GetStatusRequest()))
    assert text(sent) == '{"jsonrpc":"2.0","id":"1","method":"status"}'
    (asked,) = agent.from_host(read(sent))
    told = agent.to_host(ControlResponse.success(asked.request_id, {"running": True, "session_id": "S"}))
    assert text(told) == (
        '{"jsonrpc":"2.0","id":"1","result":{"type":"system","subtype":"status","running":true,"session_id":"S"}}'
    )
    assert host.from_agent(read(told)) == [ControlResponse.success("1", {"running": True, "session_id": "S"})]
    sent = host.to_agent(ControlRequest("2", InterruptRequest()))
    assert text(sent) == '{"jsonrpc":"2.0","id":"2","method":"cancel"}'
    (asked,) = agent.from_host(read(sent))
    assert agent.to_host(ControlResponse.success(asked.request_id, {"still_queued": []})) == b""
    result, status = agent.to_host(STOPPED).splitlines()
    assert json.loads(result)["id"] == 7
    assert json.loads(result)["result"]["subtype"] == "cancelled"
    assert status.decode() == (
        '{"jsonrpc":"2.0","id":"2","result":{"type":"system","subtype":"status","running":false}}'
    )
    assert host.from_agent(read(status)) == [ControlResponse.success("2", {})]
    # The agent keeps a bounded number of open requests, even if the host sends more.
    agent = started(JSON_RPC)
    told = [agent.from_host(read(sent))[0].request_id for _ in range(70)]
    assert [len(agent.to_host(ControlResponse.success(one, {}))) > 0 for one in told] == [False] * 64 + [True] * 6
    assert agent.to_host(STOPPED).count(b"\n") == 65
    agent.from_host(read('{"jsonrpc":"2.0","id":8,"method":"run","params":{"prompt":"b"}}'))
    assert agent.to_host(RESULT).count(b"\n") == 1  # the waiting requests are answered only once
    # An answer that follows the result does not wait for another result.
    agent = started(JSON_RPC)
    (asked,) = agent.from_host(read(sent))
    agent.to_host(RESULT)
    assert agent.to_host(ControlResponse.success(asked.request_id, {})) == status + b"\n"


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        ("nonsense", -32700, None),
        ("{}", -32600, None),
        ('{"type":"user","message":{"role":"user","content":"a"}}', -32600, None),
        ('{"jsonrpc":"1.0","id":1,"method":"run"}', -32600, None),
        ('{"jsonrpc":"2.0","method":"run"}', -32600, None),
        ('{"jsonrpc":"2.0","id":{},"method":"run"}', -32600, None),
        ('{"jsonrpc":"2.0","id":true,"method":"run"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1,"method":"walk"}', -32601, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"run"}', -32602, 1),
        ('{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":5}}', -32602, "x"),
        ('{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":"","session_id":5}}', -32602, "x"),
        ('{"jsonrpc":"2.0","id":2,"method":"cancel"}', -32002, 2),
    ],
)
def test_json_rpc_refuses_by_code(line: str, code: int, request_id: Any) -> None:
    agent = JSON_RPC.connect()
    for message in fed(Decoder(), [line.encode() + b"\n"]):
        assert agent.from_host(message) == []
    error = json.loads(agent.reply())
    assert (error["jsonrpc"], error["id"], error["error"]["code"]) == ("2.0", request_id, code)
    assert error["error"]["message"]


def test_json_rpc_runs_one_at_a_time() -> None:
    agent = started(JSON_RPC)
    run = '{"jsonrpc":"2.0","id":8,"method":"run","params":{"prompt":"b"}}'
    assert agent.from_host(read(run)) == []
    assert json.loads(agent.reply()) == {
        "jsonrpc": "2.0",
        "id": 8,
        "error": {"code": -32001, "message": "A run is already in progress", "data": {"currentRequestId": 7}},
    }
    agent.to_host(RESULT)
    assert len(agent.from_host(read(run))) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "The line is not one JSON object"),
        ("[1]", "The line is not one JSON object"),
        ("{}", "Unknown message type: none"),
        ('{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}', "Unknown message type"),
        ('{"type":"control","action":"dance"}', "Unknown control action: dance"),
        ('{"type":"user","message":{"role":"assistant","content":"a"}}', "A user message needs the role user"),
        ('{"type":"user","message":{"role":"user","content":5}}', "A user message needs the role user"),
    ],
)
def test_a_bad_line_is_told_to_a_host_of_miriad(line: str, words: str) -> None:
    agent = MIRIAD.connect()
    for message in fed(Decoder(), [line.encode() + b"\n"]):
        assert agent.from_host(message) == []
    error = json.loads(agent.reply())
    assert (error["type"], error["subtype"]) == ("system", "error")
    assert error["message"].startswith(words)


# --- permission in CLASSIC --------------------------------------------------------------------------------------------

QUESTION = ControlRequest("q", CanUseToolRequest(tool_name="Bash", input={"command": "ls"}, tool_use_id="t"))
ASKED = '{"type":"system","subtype":"permission_request","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}'


def test_classic_asks_by_a_system_message() -> None:
    agent, host = CLASSIC.connect(), CLASSIC.connect()
    line = agent.to_host(QUESTION)
    assert text(line) == ASKED
    (asked,) = host.from_agent(read(line))
    assert asked.request == CanUseToolRequest(tool_name="Bash", input={"command": "ls"}, tool_use_id="t")
    told = host.to_agent(ControlResponse.success(asked.request_id, asked.request.allow()))
    assert told == b'{"allow":true}\n'
    (answer,) = agent.from_host(read(told))
    assert answer.request_id == "q"
    assert isinstance(answer.payload_as(CanUseToolRequest), PermissionResultAllow)
    (older,) = host.from_agent(read('{"type":"system","subtype":"permission_request","name":"Bash","args":{"a":1}}'))
    assert (older.request.tool_name, older.request.input) == ("Bash", {"a": 1})
    told = host.to_agent(ControlResponse.failure(older.request_id, "why"))
    assert told == b'{"allow":false}\n'
    agent.to_host(QUESTION)
    (answer,) = agent.from_host(read(told))
    assert isinstance(answer.payload_as(CanUseToolRequest), PermissionResultDeny)


def test_classic_drops_the_id_of_a_tool_use_that_is_not_a_string() -> None:
    (asked,) = CLASSIC.connect().from_agent(read(ASKED.replace('"t"', "7")))
    assert asked.request == CanUseToolRequest(tool_name="Bash", input={"command": "ls"})


def test_classic_asks_one_question_at_a_time() -> None:
    agent = CLASSIC.connect()
    assert agent.to_host(QUESTION)
    for request_id in ("r", "s", "v"):
        assert agent.to_host(ControlRequest(request_id, QUESTION.request)) == b""
    agent.to_host(ControlCancelRequest("q"))
    agent.to_host(ControlCancelRequest("s"))
    assert agent.from_host(read('{"allow":true}')) == []  # the agent cancelled the question
    assert text(agent.reply()) == ASKED
    (answer,) = agent.from_host(read('{"allow":true,"updatedInput":{"a":1}}'))
    assert (answer.request_id, answer.payload["updatedInput"]) == ("r", {"a": 1})
    assert text(agent.reply()) == ASKED
    (answer,) = agent.from_host(read('{"allow":"perhaps"}'))
    assert (answer.request_id, answer.payload) == ("v", {})
    assert agent.reply() == b""
    assert agent.from_host(read('{"allow":true}')) == []  # no question is open


def test_answers_of_classic_are_in_the_order_of_the_questions() -> None:
    host = CLASSIC.connect()
    first, second = (host.from_agent(read(ASKED))[0].request_id for _ in range(2))
    assert host.to_agent(ControlResponse.success(second, {"behavior": "deny", "message": "no"})) == b""
    assert host.to_agent(ControlResponse.success(first, {"behavior": "allow"})) == b'{"allow":true}\n{"allow":false}\n'
    assert host.to_agent(ControlResponse.success(first, {"behavior": "allow"})) == b""


@pytest.mark.parametrize(
    "answer",
    [
        PermissionResultAllow(updatedInput={"other": 1}),
        PermissionResultAllow(updatedPermissions=[AddRules(rules=[], behavior="allow", destination="session")]),
        PermissionResultDeny("no", interrupt=True),
    ],
)
def test_classic_has_no_words_for_more_than_yes_and_no(answer: Any) -> None:
    host = CLASSIC.connect()
    (asked,) = host.from_agent(read(ASKED))
    with pytest.raises(DialectError, match="permission request"):
        host.to_agent(ControlResponse.success(asked.request_id, answer))
    assert host.to_agent(ControlResponse.success(asked.request_id, asked.request.deny("why"))) == b'{"allow":false}\n'


def test_a_line_that_ends_an_agent_of_classic_is_told_first() -> None:
    agent = CLASSIC.connect()
    (message,) = fed(Decoder(), [b"nonsense\n"])
    assert agent.from_host(message) == [message]
    error = json.loads(agent.reply())
    assert error["error"]["code"] == "invalid_input"
    assert agent.reply() == b""


def test_questions_of_classic_that_are_too_many_are_not_answered() -> None:
    host = CLASSIC.connect()
    question = read(ASKED)
    given = [len(host.from_agent(question)) for _ in range(1100)]
    assert given == [1] * 1024 + [0] * 76
