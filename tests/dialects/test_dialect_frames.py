"""Every frame of the dialects in both directions: what one side writes, to the byte, and what the other reads."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from claude_wire import (
    AddRules,
    AssistantMessage,
    CanUseToolRequest,
    CommandLifecycleMessage,
    ContentBlock,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    DialectError,
    GetStatusRequest,
    HookCallbackRequest,
    ImageBlock,
    InitMessage,
    InjectedMessage,
    InterruptRequest,
    KeepAlive,
    MessageParam,
    PermissionResultAllow,
    PermissionResultDeny,
    QueuedMessage,
    ResultCancelled,
    ResultError,
    ResultErrorDuringExecution,
    ResultErrorMaxBudgetUsd,
    ResultSuccess,
    SessionStateChangedMessage,
    StatusMessage,
    StreamEvent,
    SystemErrorMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserMessage,
    decode,
    encode,
)
from claude_wire.dialects import (
    AUTO,
    CLASSIC,
    JSON_RPC,
    MIRIAD,
    STREAM_JSON,
    STREAM_JSON_2_1_7,
    Connection,
    Dialect,
    dialect_of,
)
from claude_wire.messages import ConsolidationMessage, InterruptedMessage, MessageStopEvent, UnknownMessage
from claude_wire.messages.conversation.results import ErrorInfo
from feeding import cut, fed
from folders import DATA

ALL = [STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD, JSON_RPC, AUTO]
OTHERS = [CLASSIC, MIRIAD, JSON_RPC]
INIT = InitMessage(session_id="S", model="m", tools=["Bash"], uuid="u")
USED = Usage(input_tokens=1, output_tokens=2)
RESULT = ResultSuccess(session_id="S", result="Hi", duration_ms=5, num_turns=1, is_error=False, usage=USED)
STOPPED = ResultErrorDuringExecution(
    session_id="S", terminal_reason="aborted_tools", is_error=True, num_turns=2, duration_ms=5
)


def read(line: str | bytes) -> Any:
    return decode(line)


def text(line: bytes) -> str:
    return line.decode().removesuffix("\n")


def user(*blocks: ContentBlock) -> UserMessage:
    return UserMessage(message=MessageParam("user", list(blocks)))


def started(dialect: Dialect) -> Connection:
    """A connection of an agent whose turn has begun."""
    connection = dialect.connect()
    prompt = '{"type":"user","message":{"role":"user","content":"a"},"session_id":"S"}'
    if dialect is JSON_RPC:
        prompt = '{"jsonrpc":"2.0","id":7,"method":"run","params":{"prompt":"a","session_id":"S"}}'
    (given,) = connection.from_host(read(prompt))
    assert (given.text, given.session_id, given.uuid) == ("a", "S", None)
    connection.to_host(INIT)
    return connection


# --- what an agent writes ---------------------------------------------------------------------------------------------

#: A message of an agent, and its frames in MIRIAD and CLASSIC; in JSON-RPC each is a response.
WRITTEN: list[tuple[Any, list[str], list[str]]] = [
    (
        AssistantMessage.of([ThinkingBlock("hm"), TextBlock("Hi"), ToolUseBlock("t", "Bash", {"a": 1})], model="m"),
        [
            '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi"},'
            '{"type":"tool_use","id":"t","name":"Bash","input":{"a":1}}],"model":"m"}}'
        ],
        [
            '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi"},'
            '{"type":"tool_use","id":"t","name":"Bash","input":{"a":1}}]}}'
        ],
    ),
    (AssistantMessage.of([ThinkingBlock("hm", "s")]), [], []),
    (
        user(ToolResultBlock("t", "out", is_error=False), ToolResultBlock("u", [TextBlock("no")], is_error=True)),
        [
            '{"type":"system","subtype":"tool_result","tool_result":'
            '{"type":"tool_result","tool_use_id":"t","content":"out"}}',
            '{"type":"system","subtype":"tool_result","tool_result":'
            '{"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"no"}],"is_error":true}}',
        ],
        [
            '{"type":"tool_result","tool_use_id":"t","result":{"type":"text","text":"out"}}',
            '{"type":"tool_result","tool_use_id":"u","result":{"type":"text","text":"no"},"is_error":true}',
        ],
    ),
    (UserMessage.of("an echo"), [], []),
    (StreamEvent(event=MessageStopEvent()), [], []),
    (CommandLifecycleMessage(command_uuid="u", state="queued"), [], []),
    (SessionStateChangedMessage(state="idle"), [], []),
    (KeepAlive(), [], []),
    (
        RESULT,
        [
            '{"type":"result","subtype":"success","duration_ms":5,"is_error":false,"num_turns":0,"session_id":"S",'
            '"result":"Hi","usage":{"input_tokens":1,"output_tokens":2}}'
        ],
        [
            '{"type":"result","subtype":"success","session_id":"S","result":"Hi","duration_ms":5,'
            '"usage":{"input_tokens":1,"output_tokens":2}}'
        ],
    ),
    (
        STOPPED,
        ['{"type":"result","subtype":"cancelled","duration_ms":5,"is_error":false,"num_turns":1,"session_id":"S"}'],
        ['{"type":"result","subtype":"interrupted","session_id":"S","duration_ms":5}'],
    ),
    (
        ResultErrorMaxBudgetUsd(is_error=True, errors=["Budget exceeded"], session_id="S", total_cost_usd=0.5),
        [
            '{"type":"result","subtype":"error","duration_ms":0,"is_error":true,"num_turns":0,"session_id":"S",'
            '"result":"Budget exceeded"}'
        ],
        [
            '{"type":"result","subtype":"error","session_id":"S",'
            '"error":{"message":"Budget exceeded","code":"budget_exceeded"},"total_cost_usd":0.5}'
        ],
    ),
    (
        ResultSuccess(is_error=True, result="Invalid API key", api_error_status=401),
        [
            '{"type":"result","subtype":"error","duration_ms":0,"is_error":true,"num_turns":0,'
            '"result":"Invalid API key"}'
        ],
        ['{"type":"result","subtype":"error","error":{"message":"Invalid API key","code":"auth_error"}}'],
    ),
    (
        SystemErrorMessage(message="wrong"),
        ['{"type":"system","subtype":"error","message":"wrong"}'],
        ['{"type":"system","subtype":"error","error":{"message":"wrong","code":"error"}}'],
    ),
    (
        QueuedMessage(session_id="S", position=1, uuid="u"),
        ['{"type":"system","subtype":"queued","session_id":"S","position":1}'],
        [],
    ),
    (
        InjectedMessage(session_id="S", message_count=2, content_length=150, uuid="u"),
        ['{"type":"system","subtype":"injected","message_count":2,"content_length":150}'],
        [],
    ),
    (
        ConsolidationMessage(entries_created=2, entries_updated=1),
        ['{"type":"system","subtype":"consolidation","entries_created":2,"entries_updated":1}'],
        [],
    ),
    (
        InterruptedMessage(session_id="S"),
        ['{"type":"system","subtype":"interrupted","session_id":"S"}'],
        [],
    ),
    ({"type": "mine", "a": None}, ['{"type":"mine","a":null}'], ['{"type":"mine","a":null}']),
]


@pytest.mark.parametrize(("message", "miriad", "classic"), WRITTEN)
def test_each_message_of_an_agent_is_its_frames(message: Any, miriad: list[str], classic: list[str]) -> None:
    assert text(started(MIRIAD).to_host(message)).splitlines() == miriad
    assert text(started(CLASSIC).to_host(message)).splitlines() == classic
    responses = [f'{{"jsonrpc":"2.0","id":7,"result":{frame}}}' for frame in miriad]
    assert text(started(JSON_RPC).to_host(message)).splitlines() == responses
    assert STREAM_JSON.connect().to_host(message) == encode(message)


def test_classic_says_at_the_beginning_what_there_is() -> None:
    assert text(CLASSIC.connect().to_host(INIT)) == (
        '{"type":"system","subtype":"init","session_id":"S","model":"m","tools":["Bash"]}'
    )
    assert MIRIAD.connect().to_host(INIT) == JSON_RPC.connect().to_host(INIT) == b""


@pytest.mark.parametrize("dialect", OTHERS)
def test_an_agent_asks_no_more_than_its_dialect_can(dialect: Dialect) -> None:
    bodies: list[Any] = [HookCallbackRequest(callback_id="h", input=UnknownMessage(a=1))]  # type: ignore[arg-type]
    if dialect is not CLASSIC:
        bodies.append(CanUseToolRequest(tool_name="Bash", input={}))
    for body in bodies:
        with pytest.raises(DialectError, match=f"{dialect.name} has no request {type(body).__struct_config__.tag}"):
            started(dialect).to_host(ControlRequest("1", body))
    # What withdraws or answers nothing is no frame.
    assert started(dialect).to_host(ControlCancelRequest("1")) == b""
    assert started(dialect).to_host(ControlResponse.success("1", {})) == b""


# --- what a host reads in it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("message", "miriad", "classic"), WRITTEN)
def test_a_host_reads_what_the_agent_said_however_it_is_cut(
    message: Any, miriad: list[str], classic: list[str]
) -> None:
    responses = [f'{{"jsonrpc":"2.0","id":"run","result":{frame}}}' for frame in miriad]
    for dialect, frames in ((MIRIAD, miriad), (CLASSIC, classic), (JSON_RPC, responses)):
        data = "".join(frame + "\n" for frame in frames).encode()
        connection = dialect.connect()
        whole = [one for line in fed(Decoder(), [data]) for one in connection.from_agent(line)]
        # Those that are frames of a tool's result are blocks of a user message again.
        for one in whole:
            assert not isinstance(one, (ControlRequest, ControlResponse))
        if isinstance(message, UserMessage) and frames:
            results = [block for one in whole for block in one.tool_results]
            assert [(block.tool_use_id, bool(block.is_error)) for block in results] == [("t", False), ("u", True)]
        elif isinstance(message, AssistantMessage) and frames:
            assert [type(one) for one in whole] == [AssistantMessage]
            assert (whole[0].text, len(whole[0].tool_uses)) == ("Hi", 1)
        for at in range(len(data)):
            connection = dialect.connect()
            cuts = fed(Decoder(), [data[:at], data[at:]])
            assert [one for line in cuts for one in connection.from_agent(line)] == whole
        connection = dialect.connect()
        assert [one for line in fed(Decoder(), cut(data, 1)) for one in connection.from_agent(line)] == whole


def test_json_rpc_names_a_result_by_its_run_and_makes_results_of_errors() -> None:
    connection = JSON_RPC.connect()
    (result,) = connection.from_agent(read(started(JSON_RPC).to_host(RESULT).replace(b'"id":7', b'"id":"run"')))
    assert result.user_message_uuids == ["run"]
    failed = '{"jsonrpc":"2.0","id":"run","error":{"code":%d,"message":"why"}}'
    (error,) = connection.from_agent(read(failed % -32603))
    assert error == ResultError(
        is_error=True, error=ErrorInfo(message="why", code="-32603"), user_message_uuids=["run"]
    )
    (cancelled,) = connection.from_agent(read(failed % -32003))
    assert cancelled == ResultCancelled(is_error=False, user_message_uuids=["run"])


@pytest.mark.parametrize("dialect", OTHERS)
def test_control_messages_are_none_of_these_dialects(dialect: Dialect) -> None:
    line = '{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}'
    (message,) = dialect.connect().from_agent(read(line))
    assert isinstance(message, UnknownMessage)
    assert message == json.loads(line)


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
        assert host.urgent(read(told))
        *others, answer = host.from_agent(read(told))
        assert answer == ControlResponse.success(request_id, payload)
        assert [type(other) for other in others] == ([] if request_id == "1" else [InterruptedMessage])
    # Nobody has asked now: what comes is for the consumer.
    for frame in (StatusMessage(running=False, session_id="S"), InterruptedMessage(session_id="S")):
        assert host.from_agent(frame) == [frame]
    # An answer that says why not is an error; the same answer again is none.
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
    assert host.from_agent(read(told)) == [read(told)]  # nobody has asked
    # A prompt begins its turn at once, though nothing was said yet.
    agent.from_host(read('{"type":"user","message":{"role":"user","content":"b"}}'))
    assert len(agent.from_host(read('{"type":"control","action":"interrupt"}'))) == 1


def test_an_answer_of_miriad_that_never_comes_holds_up_no_other() -> None:
    host = MIRIAD.connect()
    for number, body in enumerate((InterruptRequest(), InterruptRequest(), GetStatusRequest(), GetStatusRequest())):
        host.to_agent(ControlRequest(str(number), body))
    assert host.to_agent(ControlCancelRequest("2")) == b""  # it was waited for long enough
    assert host.to_agent(ControlCancelRequest("9")) == b""
    status = StatusMessage(running=False, session_id="S")
    (answer,) = host.from_agent(status)
    assert answer.request_id == "3"
    assert host.from_agent(status) == [status]
    # One turn, interrupted twice, may say so once.
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
    # However many ask, a bounded number waits.
    agent = started(JSON_RPC)
    told = [agent.from_host(read(sent))[0].request_id for _ in range(70)]
    assert [len(agent.to_host(ControlResponse.success(one, {}))) > 0 for one in told] == [False] * 64 + [True] * 6
    assert agent.to_host(STOPPED).count(b"\n") == 65
    # Answered behind the result, it waits for none.
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
    assert host.urgent(read(line))
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


def test_classic_asks_one_question_at_a_time() -> None:
    agent = CLASSIC.connect()
    assert agent.to_host(QUESTION)
    for request_id in ("r", "s", "v"):
        assert agent.to_host(ControlRequest(request_id, QUESTION.request)) == b""
    agent.to_host(ControlCancelRequest("q"))
    agent.to_host(ControlCancelRequest("s"))
    assert agent.from_host(read('{"allow":true}')) == []  # it was withdrawn
    assert text(agent.reply()) == ASKED
    (answer,) = agent.from_host(read('{"allow":true,"updatedInput":{"a":1}}'))
    assert (answer.request_id, answer.payload["updatedInput"]) == ("r", {"a": 1})
    assert text(agent.reply()) == ASKED
    (answer,) = agent.from_host(read('{"allow":"perhaps"}'))
    assert (answer.request_id, answer.payload) == ("v", {})
    assert agent.reply() == b""
    assert agent.from_host(read('{"allow":true}')) == []  # nothing was asked


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


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_prompts_have_no_nulls_and_no_uuid() -> None:
    prompt = UserMessage.of("Hello", session_id="default", uuid="u")
    plain = '{"type":"user","message":{"role":"user","content":"Hello"},"session_id":"default"}'
    assert text(MIRIAD.connect().to_agent(prompt)) == text(CLASSIC.connect().to_agent(prompt)) == plain
    assert text(JSON_RPC.connect().to_agent(prompt)) == (
        '{"jsonrpc":"2.0","id":"u","method":"run","params":{"prompt":"Hello","session_id":"default"}}'
    )
    blocks = UserMessage.of([TextBlock("Hello"), TextBlock(" you")])
    assert text(MIRIAD.connect().to_agent(blocks)) == (
        '{"type":"user","message":{"role":"user","content":'
        '[{"type":"text","text":"Hello"},{"type":"text","text":" you"}]}}'
    )
    connection = JSON_RPC.connect()
    for number in (1, 2):
        params = {"prompt": "Hello you"}
        expected = {"jsonrpc": "2.0", "id": f"run-{number}", "method": "run", "params": params}
        assert json.loads(connection.to_agent(blocks)) == expected
    assert STREAM_JSON.connect().to_agent(prompt) == AUTO.connect().to_agent(prompt) == encode(prompt)


@pytest.mark.parametrize("dialect", OTHERS)
def test_what_an_agent_would_not_read_of_a_prompt_is_refused(dialect: Dialect) -> None:
    picture = read('{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"x"}}]}}')
    assert isinstance(picture.content[0], ImageBlock)
    for message, words in (
        (picture, "has no ImageBlock for a prompt"),
        (read('{"type":"user","message":{"role":"user","content":"a"},"shouldQuery":false}'), "has no shouldQuery"),
        (read('{"type":"user","message":{"role":"user","content":"a"},"parent_tool_use_id":"t"}'), "has no parent"),
    ):
        with pytest.raises(DialectError, match=f"the dialect {dialect.name} {words}") as caught:
            dialect.connect().to_agent(message)
        assert caught.value.dialect == dialect.name


# --- the example of miriad-code ---------------------------------------------------------------------------------------


def test_the_example_of_miriad_byte_for_byte() -> None:
    document = (DATA / "documents" / "003.md").read_text(encoding="utf-8")
    lines = [line for line in document.splitlines() if line.startswith(("→ ", "← "))]
    assert len(lines) == 8
    host, agent = MIRIAD.connect(), MIRIAD.connect()
    for line in lines:
        frame = line[2:].encode() + b"\n"
        message = read(frame)
        if line.startswith("→"):
            prompt = UserMessage.of(message.text, session_id="sess_1", uuid="u")
            assert host.to_agent(prompt) == frame
            (given,) = agent.from_host(message)
            assert given == message
            agent.to_host(INIT)
            continue
        (meant,) = host.from_agent(message)
        # Within an agent the answer counts as a turn, too.
        said = (
            meant if not isinstance(meant, ResultSuccess) else meant.__replace__(num_turns=(meant.num_turns or 0) + 1)
        )
        assert agent.to_host(said) == frame


# --- what is rare -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_host_says_nothing_else(dialect: Dialect) -> None:
    with pytest.raises(DialectError, match=f"the dialect {dialect.name} has no KeepAlive of a host"):
        dialect.connect().to_agent(KeepAlive())
    assert dialect.connect().to_agent(ControlCancelRequest("1")) == b""


def test_questions_of_classic_that_are_too_many_are_not_answered() -> None:
    host = CLASSIC.connect()
    question = read(ASKED)
    given = [len(host.from_agent(question)) for _ in range(1100)]
    assert given == [1] * 1024 + [0] * 76


def test_blocks_of_tools_are_blocks_in_any_place() -> None:
    unknown = read('{"type":"user","message":{"role":"user","content":[{"type":"new","a":1}]}}').content[0]
    block = ToolResultBlock("t", [ToolUseBlock("u", "Bash", {}), ToolResultBlock("v", "x"), unknown])
    content = (
        '[{"type":"tool_use","id":"u","name":"Bash","input":{}},{"type":"tool_result","tool_use_id":"v","content":"x"},'
        '{"type":"new","a":1}]'
    )
    assert text(CLASSIC.connect().to_host(user(block))) == (
        f'{{"type":"tool_result","tool_use_id":"t","result":{content}}}'
    )
    assert text(MIRIAD.connect().to_agent(user(block))) == (
        '{"type":"user","message":{"role":"user","content":'
        f'[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]}}}}'
    )
    with pytest.raises(DialectError, match="json-rpc has no ToolResultBlock for a prompt"):
        JSON_RPC.connect().to_agent(user(block))


def test_a_flat_tool_result_is_a_block_too() -> None:
    line = '{"type":"system","subtype":"tool_result","tool_use_id":"t","content":"out","session_id":"S"}'
    (message,) = MIRIAD.connect().from_agent(read(line))
    assert message.tool_results == [ToolResultBlock("t", "out")]
    assert message.session_id == "S"
    empty = read('{"type":"system","subtype":"tool_result"}')
    assert MIRIAD.connect().from_agent(empty) == [empty]


def test_a_failed_result_with_an_error_object_keeps_it() -> None:
    failed = ResultError(is_error=True, error=ErrorInfo(message="full", code="disk_full"))
    assert json.loads(CLASSIC.connect().to_host(failed))["error"] == {"message": "full", "code": "disk_full"}
    assert json.loads(MIRIAD.connect().to_host(failed))["result"] == "full"
    told = StatusMessage(running=True, session_id="S")
    assert text(MIRIAD.connect().to_host(told)) == (
        '{"type":"system","subtype":"status","running":true,"session_id":"S"}'
    )


def test_json_rpc_says_what_failed_under_the_id_that_it_belongs_to() -> None:
    host, agent = JSON_RPC.connect(), JSON_RPC.connect()
    assert agent.from_host(KeepAlive()) == []
    assert agent.reply() == b""
    assert text(agent.to_host(SystemErrorMessage(message="wrong"))) == (
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"wrong"}}'
    )
    (asked,) = agent.from_host(read(host.to_agent(ControlRequest("1", GetStatusRequest()))))
    wrong = SystemErrorMessage(error=ErrorInfo(message="full", code="disk_full"))
    assert json.loads(agent.to_host(wrong))["error"] == {"code": -32603, "message": "full"}
    told = agent.to_host(ControlResponse.failure(asked.request_id, "no status"))
    assert json.loads(told) == {"jsonrpc": "2.0", "id": "1", "error": {"code": -32603, "message": "no status"}}
    (answer,) = host.from_agent(read(told))
    assert answer == ControlResponse.failure("1", "no status", error_code="-32603")
    assert not host.urgent(read(told))  # it was asked once
    assert not host.urgent(read('{"type":"keep_alive"}'))


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        ('{"type":"system","subtype":"tool_result","tool_result":{"type":"tool_result","tool_use_id":"t"}}', MIRIAD),
        ('{"type":"system","subtype":"tool_result","tool_use_id":"t","content":"x"}', AUTO),
        ('{"type":"system","subtype":"status","status":"compacting"}', STREAM_JSON),
        ('{"type":"system","subtype":"status","running":true}', MIRIAD),
        ('{"type":"system","subtype":"error","error":{"message":"m","code":"c"}}', CLASSIC),
        ('{"type":"result","subtype":"success"}', AUTO),
    ],
)
def test_a_host_finds_out_what_its_agent_speaks(line: str, dialect: Dialect) -> None:
    host = AUTO.connect()
    host.urgent(read(line))
    assert host.dialect is dialect
    assert all(mark in host.marks for mark in dialect.connect().marks)


def test_an_agent_answers_in_what_it_has_found_out() -> None:
    agent = AUTO.connect()
    assert agent.to_host(RESULT) == encode(RESULT)
    assert agent.from_host(read('{"type":"control","action":"interrupt"}')) == []
    assert json.loads(agent.reply())["message"] == "No turn is currently running"
    assert agent.to_host(RESULT) == MIRIAD.connect().to_host(RESULT)


# --- dialects as values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ALL)
def test_a_dialect_is_a_value(dialect: Dialect) -> None:
    assert pickle.loads(pickle.dumps(dialect)) is dialect
    assert copy.deepcopy(dialect) is dialect
    assert repr(dialect) == f"<Dialect {dialect.name}>"
    assert dialect_of(dialect) is dialect
    assert dialect.connect() is not dialect.connect()
    with pytest.raises(AttributeError):
        dialect.name = "other"  # type: ignore[misc]
    assert dialect.plain == (dialect in (STREAM_JSON, STREAM_JSON_2_1_7))


def test_only_auto_has_a_name_for_users() -> None:
    assert dialect_of("auto") is AUTO
    with pytest.raises(ValueError, match="not 'miriad'"):
        dialect_of("miriad")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        dialect_of(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"status"}', JSON_RPC),
        ('{"type":"control","action":"status"}', MIRIAD),
        ('{"type":"control"}', MIRIAD),
        ('{"allow":true}', CLASSIC),
        ('{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}', STREAM_JSON),
        ('{"type":"control_request","request_id":[]}', STREAM_JSON),
        ('{"type":"user","uuid":"u","message":{"role":"user","content":"a"}}', STREAM_JSON),
        ('{"type":"user","message":{"role":"user","content":"a"},"session_id":"s"}', AUTO),
        ('{"type":"keep_alive"}', AUTO),
    ],
)
def test_an_agent_finds_out_what_its_host_speaks(line: str, dialect: Dialect) -> None:
    agent = AUTO.connect()
    given = agent.from_host(read(line))
    assert agent.dialect is dialect
    if dialect in (STREAM_JSON, AUTO):
        assert given == [read(line)]
    # The first line that tells decides for good.
    agent.from_host(read('{"type":"control","action":"interrupt"}'))
    assert agent.dialect is (MIRIAD if dialect is AUTO else dialect)
