"""Every frame of the dialects in both directions: the exact bytes that one side writes, and what the other reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    Decoder,
    HookCallbackRequest,
    StreamEvent,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    encode,
)
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, Dialect
from claude_wire.errors import DialectError
from claude_wire.messages import (
    CommandLifecycleMessage,
    ConsolidationMessage,
    ControlCancelRequest,
    GetStatusRequest,
    ImageBlock,
    InjectedMessage,
    InterruptedMessage,
    KeepAlive,
    MessageStopEvent,
    QueuedMessage,
    ResultCancelled,
    ResultError,
    ResultErrorDuringExecution,
    ResultErrorMaxBudgetUsd,
    ResultSuccess,
    SessionStateChangedMessage,
    StatusMessage,
    SystemErrorMessage,
    UnknownMessage,
)
from claude_wire.messages.conversation.results import ErrorInfo
from dialect_lines import INIT, OTHERS, RESULT, STOPPED, read, started, text, user
from feeding import cut, fed
from folders import DATA

# --- what an agent writes ---------------------------------------------------------------------------------------------

#: A message of an agent, its frames in MIRIAD and in CLASSIC. JSON_RPC wraps each MIRIAD frame in a response.
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
        ResultErrorDuringExecution(is_error=True, errors=["No"]),
        ['{"type":"result","subtype":"error","duration_ms":0,"is_error":true,"num_turns":0,"result":"No"}'],
        ['{"type":"result","subtype":"error","error":{"message":"No","code":"error_during_execution"}}'],
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
    (InterruptedMessage(session_id="S"), ['{"type":"system","subtype":"interrupted","session_id":"S"}'], []),
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


def test_an_agent_of_json_rpc_says_nothing_outside_of_a_run() -> None:
    assert JSON_RPC.connect().to_host(AssistantMessage.of("Hi")) == b""


@pytest.mark.parametrize("dialect", OTHERS)
def test_an_agent_asks_no_more_than_its_dialect_can(dialect: Dialect) -> None:
    bodies: list[Any] = [HookCallbackRequest(callback_id="h", input=UnknownMessage(a=1))]
    if dialect is not CLASSIC:
        bodies.append(CanUseToolRequest(tool_name="Bash", input={}))
    for body in bodies:
        with pytest.raises(DialectError, match=f"{dialect.name} has no request {type(body).__struct_config__.tag}"):
            started(dialect).to_host(ControlRequest("1", body))
    # These dialects have no frame for a cancel, and none for an answer to an unknown request.
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
        # The host turns frames of tool results back into blocks of a user message.
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
    names = '{"jsonrpc":"2.0","id":"run","result":{"type":"result","subtype":"success","user_message_uuids":["p"]}}'
    (result,) = connection.from_agent(read(names))
    assert result.user_message_uuids == ["p"]


@pytest.mark.parametrize("dialect", OTHERS)
def test_control_messages_are_none_of_these_dialects(dialect: Dialect) -> None:
    line = '{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}'
    (message,) = dialect.connect().from_agent(read(line))
    assert isinstance(message, UnknownMessage)
    assert message == json.loads(line)


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
        # The agent counts the answer itself as a turn, so num_turns is higher by one.
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


def test_blocks_of_tools_are_blocks_in_any_place() -> None:
    unknown = read('{"type":"user","message":{"role":"user","content":[{"type":"new","a":1}]}}').content[0]
    plain: Any = {"type": "plain"}
    block = ToolResultBlock("t", [ToolUseBlock("u", "Bash", {}), ToolResultBlock("v", "x"), unknown, plain])
    content = (
        '[{"type":"tool_use","id":"u","name":"Bash","input":{}},{"type":"tool_result","tool_use_id":"v","content":"x"},'
        '{"type":"new","a":1},{"type":"plain"}]'
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


@pytest.mark.parametrize("words", [None, 7, ["no"]])
def test_an_error_of_json_rpc_has_no_words_if_they_are_no_string(words: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": "run", "error": {"code": -32603, "message": words}})
    (failed,) = JSON_RPC.connect().from_agent(read(line))
    assert failed.error == ErrorInfo(message="", code="-32603")


def test_a_tool_result_of_classic_failed_if_the_block_in_it_failed() -> None:
    block = '{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}'
    line = f'{{"type":"tool_result","tool_use_id":"t","result":{block}}}'
    (message,) = CLASSIC.connect().from_agent(read(line))
    assert [one.is_error for one in message.tool_results] == [True]


def test_a_failed_result_without_a_text_says_its_subtype() -> None:
    failed = ResultErrorDuringExecution(is_error=True, session_id="S")
    assert json.loads(MIRIAD.connect().to_host(failed))["result"] == "error_during_execution"


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
    (again,) = host.from_agent(read(told))
    assert isinstance(again, ResultError)  # no request is open any more, so the host reads a result
