"""The host's side of the protocol, without I/O: each event alone, and events in any order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from claude_wire import decode
from claude_wire.messages import CancelAsyncMessageRequest, InterruptRequest, McpStatusRequest
from claude_wire.protocol import (
    CallbackWanted,
    CallbackWithdrawn,
    HostProtocol,
    MessageReceived,
    PromptFinished,
    RequestAnswered,
    RunFinished,
)
from claude_wire.protocol.questions import MAX_OPEN
from claude_wire.protocol.run import State

IDS = st.sampled_from(["a", "b", 1, 2.5])


def message(**fields: Any) -> Any:
    return decode(json.dumps(fields).encode())


def permission(id: Any) -> Any:
    return message(
        type="control_request", request_id=id, request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    )


def withdrawal(id: Any) -> Any:
    return message(type="control_cancel_request", request_id=id)


def answer(id: Any, **more: Any) -> Any:
    return message(type="control_response", response={"subtype": "success", "request_id": id, **more})


def result(*uuids: str) -> Any:
    return message(type="result", subtype="success", user_message_uuids=list(uuids))


INIT = message(type="system", subtype="init", session_id="s")


def kinds(events: list[Any]) -> list[type]:
    return [type(event) for event in events]


def test_a_question_is_wanted_once_and_answered_once() -> None:
    protocol = HostProtocol()
    [wanted] = protocol.receive(permission("q"))
    assert isinstance(wanted, CallbackWanted)
    assert wanted.question.body.tool_name == "Bash"
    assert protocol.receive(permission("q")) == []
    assert protocol.send_answer(wanted.question)
    assert not protocol.send_answer(wanted.question)
    assert protocol.receive(withdrawal("q")) == []
    assert protocol.receive(permission("q")) == []


def test_a_withdrawn_question_is_owed_no_answer() -> None:
    protocol = HostProtocol()
    [wanted] = protocol.receive(permission("q"))
    assert kinds(protocol.receive(withdrawal("q"))) == [CallbackWithdrawn]
    assert isinstance(wanted, CallbackWanted)
    assert not protocol.send_answer(wanted.question)


@pytest.mark.parametrize("id", [None, ...], ids=["null", "missing"])
def test_questions_without_an_id_are_several(id: Any) -> None:
    fields = {"type": "control_request", "request_id": id, "request": {"subtype": "can_use_tool", "tool_name": "B"}}
    if id is ...:
        del fields["request_id"]
    protocol = HostProtocol()
    for _ in range(2):
        assert kinds(protocol.receive(message(**fields))) == [CallbackWanted]
    assert len(protocol.questions) == 2


def test_a_withdrawal_without_an_id_withdraws_nothing() -> None:
    protocol = HostProtocol()
    protocol.receive(permission(None))
    protocol.receive(permission("None"))
    assert protocol.receive(withdrawal(None)) == []
    assert len(protocol.questions) == 2


def test_of_questions_that_are_too_many_the_log_tells_once(caplog: pytest.LogCaptureFixture) -> None:
    protocol = HostProtocol()
    for id in range(MAX_OPEN):
        assert protocol.receive(permission(id))
    assert not caplog.records
    for id in range(MAX_OPEN, MAX_OPEN + 3):
        assert protocol.receive(permission(id)) == []
    assert [record.getMessage() for record in caplog.records] == [
        f"{MAX_OPEN} requests are waiting for an answer; further requests are not answered"
    ]


def test_a_question_that_cannot_be_read_is_owed_an_error() -> None:
    protocol = HostProtocol()
    [wanted] = protocol.receive(message(type="control_request", request_id="q", request=7))
    assert isinstance(wanted, CallbackWanted)
    assert wanted.question.problem == "this control request cannot be read"
    assert protocol.receive(message(type="control_request", request_id=["q"], request=7)) == []
    assert protocol.questions.open_bytes == len("q")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "control_response", "response": 7},
        {"type": "control_cancel_request", "request_id": []},
        {"type": "control_of_the_future"},
    ],
)
def test_a_control_message_that_cannot_be_read_is_not_for_the_user(fields: dict[str, Any]) -> None:
    assert HostProtocol().receive(message(**fields)) == []


def test_a_request_has_one_answer() -> None:
    protocol = HostProtocol()
    request, sent = protocol.send_request(McpStatusRequest())
    assert protocol.receive(answer("another")) == []
    assert protocol.receive(answer(sent.request_id)) == [RequestAnswered(request)]
    assert protocol.receive(answer(sent.request_id)) == []


def test_the_answer_to_a_request_that_was_given_up_is_dropped() -> None:
    protocol = HostProtocol()
    request, sent = protocol.send_request(McpStatusRequest())
    assert protocol.end_request(request).request_id == sent.request_id
    assert protocol.receive(answer(sent.request_id)) == []


@pytest.mark.parametrize("kind", ["permission", "user_dialog", "elicitation"])
def test_an_answer_lists_questions_that_are_open(kind: str) -> None:
    protocol = HostProtocol()
    listed = json.loads(json.dumps({"type": "control_request", "request_id": "q", "request": {"subtype": "x"}}))
    request, sent = protocol.send_request(McpStatusRequest())
    events = protocol.receive(answer(sent.request_id, **{f"pending_{kind}_requests": [listed, listed]}))
    assert kinds(events) == [RequestAnswered, CallbackWanted]
    assert events[0] == RequestAnswered(request)


def test_a_result_ends_its_prompt_and_the_run() -> None:
    protocol = HostProtocol()
    prompt = protocol.send_prompt("p", 0.0)
    assert kinds(protocol.receive(INIT)) == [MessageReceived]
    last = result("p")
    assert protocol.receive(last) == [MessageReceived(last), PromptFinished(prompt), RunFinished()]
    assert prompt is not None
    assert prompt.result is last


def test_a_prompt_that_ends_between_messages_is_reported_with_the_next() -> None:
    protocol = HostProtocol()
    prompt = protocol.send_prompt("p", 0.0)
    protocol.run.refuse("p", "the queue is full")
    assert prompt is not None
    events = protocol.receive(message(type="anything"))
    assert events[1:] == [PromptFinished(prompt), RunFinished()]
    assert kinds(protocol.receive(message(type="anything"))) == [MessageReceived]


def test_a_run_goes_on_while_a_subagent_works() -> None:
    protocol = HostProtocol()
    protocol.send_prompt("p", 0.0)
    task = {"type": "system", "task_id": "t", "session_id": "s", "uuid": "u"}
    protocol.receive(message(**task, subtype="task_started", task_type="local_agent", description="d"))
    assert kinds(protocol.receive(result("p"))) == [MessageReceived, PromptFinished]
    protocol.receive(message(**task, subtype="task_notification", status="completed", output_file="f", summary="s"))
    protocol.receive(INIT)
    assert kinds(protocol.receive(result())) == [MessageReceived, RunFinished]


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
def test_an_answer_that_takes_a_prompt_out_of_the_queue_ends_it(how: str) -> None:
    protocol = HostProtocol()
    prompt = protocol.send_prompt("p", 0.0)
    body: Any = (
        InterruptRequest(cancel_queued=True) if how == "interrupt" else CancelAsyncMessageRequest(message_uuid="p")
    )
    request, sent = protocol.send_request(body)
    given = {"cancelled": ["p"], "still_queued": []} if how == "interrupt" else {"cancelled": True}
    events = protocol.receive(answer(sent.request_id, response=given))
    assert events == [RequestAnswered(request), PromptFinished(prompt), RunFinished()]


def test_an_emptied_queue_may_have_had_prompts_without_a_uuid() -> None:
    """The CLI lists only cancelled prompts with a uuid. A prompt sent after the interrupt was not in the queue yet."""
    protocol = HostProtocol()
    before = protocol.send_prompt(None, 0.0)
    _, sent = protocol.send_request(InterruptRequest(cancel_queued=True))
    after = protocol.send_prompt(None, 0.0)
    protocol.receive(answer(sent.request_id, response={"cancelled": [], "still_queued": []}))
    assert before is not None
    assert after is not None
    assert (before.state, after.state) == (State.UNCERTAIN, State.SENT)


def test_a_request_that_empties_no_queue_keeps_no_prompts() -> None:
    """Otherwise the request would hold as many as 4,096 prompts until its answer."""
    protocol = HostProtocol()
    protocol.send_prompt(None, 0.0)
    assert protocol.send_request(McpStatusRequest())[0].before is None


def test_a_prompt_is_owed_by_its_uuid_until_its_result() -> None:
    protocol = HostProtocol()
    for uuid in ("p", None, "q"):
        protocol.send_prompt(uuid, 0.0)
    assert protocol.run.owed == ["p", "q"]
    protocol.receive(result("p"))
    assert protocol.run.owed == ["q"]


def test_a_run_goes_on_while_the_cli_has_queued_turns() -> None:
    protocol = HostProtocol()
    protocol.send_prompt("p", 0.0)
    protocol.receive(message(type="result", subtype="success", user_message_uuids=["p"], queued_turn_count=1))
    assert not protocol.run.over
    assert kinds(protocol.receive(result())) == [MessageReceived, RunFinished]


def test_what_is_for_the_host_alone_is_no_message() -> None:
    protocol = HostProtocol()
    state = {"type": "system", "subtype": "session_state_changed", "state": "running", "sdk_host_only": True}
    assert protocol.receive(message(**state)) == []
    assert protocol.receive(message(type="keep_alive")) == []
    assert kinds(protocol.receive(message(type="anything"))) == [MessageReceived]


def test_the_end_of_the_process_ends_what_is_open() -> None:
    protocol = HostProtocol()
    protocol.receive(permission("q"))
    protocol.send_prompt("p", 0.0)
    [died] = protocol.end()
    assert died.id == "q"
    assert not protocol.send_answer(died)
    assert protocol.run.over


def test_the_next_process_of_a_session_merges_prompts_like_the_first() -> None:
    protocol = HostProtocol(merges=False)
    protocol.end()
    prompts = [protocol.send_prompt(None, 0.0), protocol.send_prompt(None, 0.0)]
    protocol.receive(message(type="result", subtype="success"))
    assert [prompt and prompt.state for prompt in prompts] == [State.ANSWERED, State.SENT]


class Machine(RuleBasedStateMachine):
    """Apply questions, answers, withdrawals, requests and ends in any order, and compare with plain dictionaries."""

    @initialize()
    def begin(self) -> None:
        self.protocol = HostProtocol()
        self.open: dict[Any, Any] = {}
        self.settled: set[Any] = set()
        self.asked: dict[Any, Any] = {}

    @rule(id=IDS)
    def asks(self, id: Any) -> None:
        events = self.protocol.receive(permission(id))
        if id in self.open or id in self.settled:
            assert events == []
        else:
            [event] = events
            assert isinstance(event, CallbackWanted)
            self.open[id] = event.question

    @rule(id=IDS)
    def withdraws(self, id: Any) -> None:
        events = self.protocol.receive(withdrawal(id))
        assert kinds(events) == ([CallbackWithdrawn] if id in self.open else [])
        if self.open.pop(id, None) is not None:
            self.settled.add(id)

    @rule(id=IDS)
    def is_answered(self, id: Any) -> None:
        question = self.protocol.questions.find(id)
        assert question is self.open.get(id)
        if question is not None:
            assert self.protocol.send_answer(question)
            assert not self.protocol.send_answer(question)
            del self.open[id]
            self.settled.add(id)

    @rule()
    def requests(self) -> None:
        request, sent = self.protocol.send_request(McpStatusRequest())
        assert sent.request_id not in self.asked
        self.asked[sent.request_id] = request

    @rule(data=st.data(), gives_up=st.booleans())
    def request_ends(self, data: st.DataObject, gives_up: bool) -> None:
        if not self.asked:
            return
        id = data.draw(st.sampled_from(list(self.asked)))
        request = self.asked.pop(id)
        if gives_up:
            self.protocol.end_request(request)
        else:
            assert self.protocol.receive(answer(id)) == [RequestAnswered(request)]
        assert self.protocol.receive(answer(id)) == []

    @rule()
    def process_ends(self) -> None:
        assert [question.id for question in self.protocol.end()] == list(self.open)
        self.settled |= self.open.keys()
        self.open.clear()

    @invariant()
    def follows_what_is_open(self) -> None:
        assert [question.id for question in self.protocol.questions.open] == list(self.open)
        assert self.protocol.questions.open_bytes == sum(question.size for question in self.open.values())


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
