"""A session with an agent of each dialect: prompts, questions, interrupts and the end of a run."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
import pytest

from claude_wire import (
    CanUseToolRequest,
    Decoder,
    HookMatcher,
    InvalidLine,
    MaxBudgetError,
    MessageStream,
    ResultMessage,
    Session,
    UserMessage,
    open_process,
)
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, STREAM_JSON_2_1_7, Dialect
from claude_wire.errors import DialectError, ExecutionError, TurnCancelledError
from claude_wire.messages import (
    InitializeRequest,
    InjectedMessage,
    InterruptedMessage,
    McpStatusRequest,
    PermissionResult,
    QueuedMessage,
    SetModelRequest,
    StatusMessage,
    SystemErrorMessage,
)
from dialect_peer import LinePeer
from session_peer import Output, queued_bytes

pytestmark = pytest.mark.anyio

ASSISTANT = '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}],"model":"m"}}'
RESULT = '{"type":"result","subtype":"success","duration_ms":5,"is_error":false,"num_turns":0,"result":"Hi"}'
CANCELLED = '{"type":"result","subtype":"cancelled","duration_ms":5,"is_error":false,"num_turns":0,"session_id":"s"}'


def response(request_id: Any, frame: str) -> str:
    return f'{{"jsonrpc":"2.0","id":"{request_id}","result":{frame}}}'


async def both(*functions: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Run functions concurrently. Return their results in order."""
    found: list[Any] = [None] * len(functions)

    async def one(index: int) -> None:
        found[index] = await functions[index]()

    async with anyio.create_task_group() as group:
        for index in range(len(functions)):
            group.start_soon(one, index)
    return found


# --- miriad


async def test_miriad_has_no_initialize_and_a_prompt_gets_its_result() -> None:
    peer = LinePeer()
    async with peer.session(dialect=MIRIAD) as session:
        info = await session.initialize()
        assert info.commands is None
        assert peer.sent == []

        async def answer() -> None:
            assert await peer.got(1) == [{"type": "user", "message": {"role": "user", "content": "Hello"}}]
            peer.say(ASSISTANT, RESULT)

        result, _ = await both(lambda: session.ask("Hello"), answer)
    assert result.result == "Hi"


async def test_miriad_answers_interrupt_and_status_while_nobody_iterates() -> None:
    peer = LinePeer()
    async with peer.session(dialect=MIRIAD) as session:
        await session.query("a", session_id="s")

        async def answer() -> None:
            await peer.got(2)
            peer.say('{"type":"system","subtype":"status","running":true,"session_id":"s","queued_messages":1}')
            assert (await peer.got(3))[1:] == [
                {"type": "control", "action": "status"},
                {"type": "control", "action": "interrupt"},
            ]
            peer.say('{"type":"system","subtype":"interrupted","session_id":"s"}', CANCELLED)

        async def ask() -> StatusMessage:
            status = await session.status()
            await session.interrupt()
            return status

        _, status = await both(answer, ask)
        assert (status.running, status.session_id, status.queued_messages) == (True, "s", 1)
        received = [message async for message in session.receive_run()]
    # The status answered only the request, and the interruption arrived as one message.
    assert [type(message) for message in received][:1] == [InterruptedMessage]
    assert len(received) == 2
    assert received[1].cancelled


async def test_an_interrupt_of_nothing_is_done_in_miriad() -> None:
    peer = LinePeer()
    async with peer.session(dialect=MIRIAD) as session:

        async def answer() -> None:
            await peer.got(1)
            peer.say('{"type":"system","subtype":"error","message":"No turn is currently running"}')

        await both(session.interrupt, answer)
        peer.say('{"type":"system","subtype":"error","message":"Something went wrong"}')
        message = await session.__anext__()
    assert isinstance(message, SystemErrorMessage)
    assert message.message == "Something went wrong"


async def test_a_run_of_miriad_ends_when_each_prompt_was_injected_or_has_its_result() -> None:
    peer = LinePeer()
    async with peer.session(dialect=MIRIAD) as session:
        for text in "abcd":
            await session.query(text)
        peer.say(
            '{"type":"system","subtype":"queued","position":1}',
            '{"type":"system","subtype":"queued","position":2}',
            '{"type":"system","subtype":"injected","message_count":2,"content_length":4}',
            RESULT,
            '{"type":"system","subtype":"error","message":"a line of another writer"}',
            RESULT,
        )
        received = [message async for message in session.receive_run()]
    kinds = [QueuedMessage, QueuedMessage, InjectedMessage, ResultMessage, SystemErrorMessage, ResultMessage]
    assert len(received) == len(kinds)
    assert all(isinstance(message, kind) for message, kind in zip(received, kinds, strict=True))


async def test_asked_in_turn_each_prompt_of_miriad_gets_its_own_result() -> None:
    peer = LinePeer()
    async with peer.session(dialect=MIRIAD) as session:
        await session.query("before")

        async def answer() -> None:
            await peer.got(2)
            peer.say(RESULT.replace('"Hi"', '"first"'), RESULT.replace('"Hi"', '"second"'))

        result, _ = await both(lambda: session.ask("a"), answer)
    assert result.result == "second"


# --- classic


@pytest.mark.parametrize("iterates", [True, False])
async def test_classic_questions_are_answered_bare_and_in_their_order(iterates: bool) -> None:
    peer = LinePeer()
    asked: list[CanUseToolRequest] = []
    first = anyio.Event()

    async def decide(request: CanUseToolRequest) -> Any:
        asked.append(request)
        if request.tool_name == "Slow":
            await first.wait()
            return request.allow()
        first.set()
        return request.deny("no")

    async with peer.session(dialect=CLASSIC, can_use_tool=decide) as session:
        await session.query("go")
        peer.say(
            '{"type":"system","subtype":"permission_request","tool_name":"Slow","input":{"a":1},"tool_use_id":"t1"}',
            '{"type":"system","subtype":"permission_request","name":"Bash","args":{"command":"rm"}}',
        )

        async def answered() -> list[dict[str, Any]]:
            await peer.got(3)
            peer.say('{"type":"tool_result","tool_use_id":"t1","result":{"type":"text","text":"out"}}', RESULT)
            return []

        if iterates:
            received, _ = await both(lambda: take(session), answered)
        else:
            await answered()
            received = await take(session)
    assert b"".join(peer.sent[1:]) == b'{"allow":true}\n{"allow":false}\n'
    assert [(one.tool_name, one.input, one.tool_use_id) for one in asked] == [
        ("Slow", {"a": 1}, "t1"),
        ("Bash", {"command": "rm"}, None),
    ]
    assert isinstance(received[0], UserMessage)
    assert received[0].tool_results[0].tool_use_id == "t1"
    assert isinstance(received[1], ResultMessage)


async def take(session: Session) -> list[Any]:
    return [message async for message in session.receive_run()]


@pytest.mark.parametrize("answer", ["changed", "raises", "wrong"])
async def test_what_classic_cannot_say_of_a_permission_is_a_refusal(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    peer = LinePeer()

    def decide(request: CanUseToolRequest) -> Any:
        if answer == "raises":
            raise ValueError("no")
        return request.allow({"other": 1}) if answer == "changed" else 5

    async with peer.session(dialect=CLASSIC, can_use_tool=decide):
        peer.say('{"type":"system","subtype":"permission_request","tool_name":"Bash","input":{}}')
        assert await peer.got(1) == [{"allow": False}]
    said = {"changed": "DialectError", "raises": "ValueError", "wrong": "returned int"}
    assert said[answer] in caplog.text


async def test_classic_results_with_a_code_are_their_errors() -> None:
    peer = LinePeer()
    failed = '{"type":"result","subtype":"error","error":{"message":"Budget exceeded","code":"budget_exceeded"}}'
    async with peer.session(dialect=CLASSIC) as session:

        async def answer() -> None:
            await peer.got(1)
            peer.say('{"type":"system","subtype":"init","session_id":"s"}', failed)

        async def ask() -> None:
            with pytest.raises(MaxBudgetError):
                await session.ask("a")

        await both(ask, answer)


# --- json-rpc


async def test_json_rpc_results_name_their_run() -> None:
    peer = LinePeer()
    async with peer.session(dialect=JSON_RPC) as session:
        assert (await session.initialize()).commands is None
        await session.query("a", uuid="one", session_id="s")

        async def answer() -> None:
            lines = await peer.got(2)
            params = {"prompt": "a", "session_id": "s"}
            assert lines[0] == {"jsonrpc": "2.0", "id": "one", "method": "run", "params": params}
            busy = {"code": -32001, "message": "busy", "data": {"currentRequestId": "one"}}
            peer.say({"jsonrpc": "2.0", "id": lines[1]["id"], "error": busy})
            peer.say(response("one", ASSISTANT), response("one", RESULT))

        async def ask() -> None:
            with pytest.raises(ExecutionError) as caught:
                await session.ask("b", until="turn")
            assert caught.value.result.error is not None
            assert caught.value.result.error.code == "-32001"

        await both(ask, answer)
        received = await take(session)
    assert [type(message).__name__ for message in received] == ["AssistantMessage", "ResultSuccess"]
    assert received[1].user_message_uuids == ["one"]


async def test_json_rpc_cancel_and_status_have_answers_of_their_own() -> None:
    peer = LinePeer()
    async with peer.session(dialect=JSON_RPC) as session:

        async def answer() -> None:
            run, status = (await peer.got(2))[:2]
            running = {"type": "system", "subtype": "status", "running": True, "session_id": "s"}
            peer.say({"jsonrpc": "2.0", "id": status["id"], "result": running})
            cancel = (await peer.got(3))[2]
            assert (status["method"], cancel["method"]) == ("status", "cancel")
            assert "params" not in cancel
            stopped = '{"type":"system","subtype":"status","running":false}'
            peer.say(response(run["id"], CANCELLED), response(cancel["id"], stopped))

        async def ask() -> None:
            with pytest.raises(TurnCancelledError):
                await session.ask("a")

        async def interrupt() -> None:
            await peer.got(1)
            assert (await session.status()).running is True
            await session.interrupt()

        await both(ask, interrupt, answer)

        async def refuse() -> None:
            cancel = (await peer.got(4))[3]
            peer.say({"jsonrpc": "2.0", "id": cancel["id"], "error": {"code": -32002, "message": "none"}})

        await both(session.interrupt, refuse)


async def test_json_rpc_takes_notifications_and_errors_that_belong_to_nothing() -> None:
    peer = LinePeer()
    async with peer.session(dialect=JSON_RPC) as session:
        peer.say(
            f'{{"jsonrpc":"2.0","method":"message","params":{ASSISTANT}}}',
            '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
            '{"jsonrpc":"2.0","id":1,"result":5}',
            ASSISTANT,
            "nonsense",
        )
        received = [type(await session.__anext__()).__name__ for _ in range(5)]
    expected = ["AssistantMessage", "SystemErrorMessage", "UnknownMessage", "AssistantMessage", "InvalidLine"]
    assert received == expected


# --- cut anywhere


@pytest.mark.parametrize("size", [1, 7, 50, None])
@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC], ids=str)
async def test_what_concerns_a_request_is_found_however_the_lines_are_cut(
    dialect: Dialect, away: bool, size: int | None
) -> None:
    peer = LinePeer()
    decide = (lambda request: request.allow()) if dialect is CLASSIC else None
    async with peer.session(dialect=dialect, can_use_tool=decide) as session:
        await session.query("go", uuid="run")
        assistant, result = ASSISTANT, RESULT
        if dialect is CLASSIC:
            concerns = ['{"type":"system","subtype":"permission_request","tool_name":"B","input":{}}'] * 3
        elif dialect is MIRIAD:
            concerns = ['{"type":"system","subtype":"\\u0069nterrupted"}']
        else:
            assistant, result = response("run", ASSISTANT), response("run", RESULT)
            concerns = []

        async def answer() -> None:
            lines = (await peer.got(1))[0:]
            said = concerns
            if dialect is not CLASSIC:
                lines = await peer.got(2)
            if dialect is JSON_RPC:
                stopped = {"type": "system", "subtype": "status", "running": False}
                said = [json.dumps({"jsonrpc": "2.0", "id": lines[1]["id"], "result": stopped})]
            peer.say(assistant, *said, assistant, result, size=size)

        async def act() -> None:
            if dialect is CLASSIC:
                await peer.got(4)
            else:
                await session.interrupt()

        if away:
            await both(act, answer)
            received = await take(session)
        else:
            _, received, _ = await both(act, lambda: take(session), answer)
    if dialect is CLASSIC:
        assert peer.sent[1:] == [b'{"allow":true}\n'] * 3
    kinds = [type(message).__name__ for message in received]
    middle = ["InterruptedMessage"] if dialect is MIRIAD else []
    assert kinds == ["AssistantMessage", *middle, "AssistantMessage", "ResultSuccess"]


# --- auto


@pytest.mark.parametrize(
    ("frame", "dialect"),
    [
        ('{"type":"system","subtype":"queued","position":1}', MIRIAD),
        ('{"type":"system","subtype":"error","message":"m"}', MIRIAD),
        ('{"type":"system","subtype":"permission_request","tool_name":"Bash","input":{}}', CLASSIC),
        ('{"type":"tool_result","tool_use_id":"t","result":"x"}', CLASSIC),
        (response("x", ASSISTANT), JSON_RPC),
        ('{"type":"control_request","request_id":"1","request":{"subtype":"nonsense"}}', STREAM_JSON),
        ('{"type":"command_lifecycle","command_uuid":"u","state":"queued"}', STREAM_JSON),
    ],
)
async def test_auto_decides_on_the_first_line_that_tells(frame: str, dialect: Dialect) -> None:
    peer = LinePeer()
    async with peer.session(dialect="auto", can_use_tool=lambda request: request.allow()) as session:
        await session.query("a", uuid="u")
        peer.say(ASSISTANT, frame, RESULT)
        with anyio.fail_after(60):
            if dialect in (MIRIAD, JSON_RPC):
                with pytest.raises(DialectError, match=f"{dialect.name} has no permission requests"):
                    await session.__anext__()
            while not isinstance(await session.__anext__(), ResultMessage):  # the error loses no message
                pass
        assert session._connection.dialect is dialect
        asks = {CLASSIC: True, STREAM_JSON: None}.get(dialect, False)
        assert [guard.confirmed for guard in session.guards] == [asks]
        if dialect is CLASSIC and "permission" in frame:
            assert (await peer.got(2))[1] == {"allow": True}
        if dialect is MIRIAD:
            await both(session.interrupt, lambda: interrupted(peer))


async def test_auto_warns_of_a_guard_that_is_never_asked_while_nobody_iterates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = LinePeer()
    async with peer.session(dialect="auto", can_use_tool=lambda request: request.allow()) as session:
        await session.query("a")
        peer.say('{"type":"system","subtype":"interrupted"}', RESULT)
        with anyio.fail_after(60):
            while [guard.confirmed for guard in session.guards] != [False]:
                await anyio.sleep(0.001)
            assert "the dialect miriad has no permission requests: can_use_tool is never asked" in caplog.text
            with pytest.raises(DialectError, match="miriad has no permission requests"):
                await session.ask("b")


@pytest.mark.parametrize("asks", [True, False])
async def test_auto_finds_that_a_command_line_of_stream_json_never_asks(asks: bool) -> None:
    """AUTO then raises the same error as an explicit STREAM_JSON. If the agent asks nevertheless, the host answers."""
    asked = {"type": "control_request", "request_id": "1", "request": {"subtype": "can_use_tool", "tool_name": "Bash"}}
    asked["request"] |= {"input": {}, "tool_use_id": "t"}  # type: ignore[operator]
    began = {"type": "command_lifecycle", "command_uuid": "u", "state": "started"}
    lines = [json.dumps(line) for line in ([asked, began] if asks else [began])]
    program = f"import sys; print(*{[*lines, RESULT]!r}, sep='\\n', flush=True); sys.stdin.read()"
    async with (
        open_process([sys.executable, "-c", program]) as process,
        Session(process, can_use_tool=lambda request: request.allow(), dialect="auto") as session,
    ):
        assert [guard.confirmed for guard in session.guards] == [None]
        with anyio.fail_after(60):
            if not asks:
                with pytest.raises(ValueError, match="never asked without the arguments '--permission-prompt-tool'"):
                    await session.__anext__()
            while not isinstance(await session.__anext__(), ResultMessage):
                pass
        assert [guard.confirmed for guard in session.guards] == [asks]


async def interrupted(peer: LinePeer) -> None:
    assert (await peer.got(2))[1] == {"type": "control", "action": "interrupt"}
    peer.say('{"type":"system","subtype":"interrupted","session_id":"s"}')


# --- what a dialect cannot say


async def hook(request: Any) -> None: ...


@pytest.mark.parametrize("dialect", [MIRIAD, JSON_RPC, AUTO])
async def test_callbacks_that_a_dialect_never_calls_are_refused(dialect: Dialect) -> None:
    peer = LinePeer()
    with pytest.raises(DialectError, match=f"{dialect.name} has no initialize, so hooks would never be called"):
        peer.session(dialect=dialect, hooks={"pre-tool-use": [HookMatcher(hook)]})
    if dialect in (MIRIAD, JSON_RPC):
        with pytest.raises(DialectError, match="can_use_tool is never asked"):
            peer.session(dialect=dialect, can_use_tool=lambda request: request.allow())


@pytest.mark.parametrize("dialect", [CLASSIC, MIRIAD, JSON_RPC])
async def test_requests_that_a_dialect_lacks_are_refused_and_nothing_is_sent(dialect: Dialect) -> None:
    peer = LinePeer()
    async with peer.session(dialect=dialect) as session:
        for request in (McpStatusRequest(), SetModelRequest(model="m")):
            subtype = type(request).__struct_config__.tag
            with pytest.raises(DialectError, match=f"the dialect {dialect.name} has no request {subtype}"):
                await session.request(request)
        with pytest.raises(DialectError, match="has no initialize"):
            await session.initialize(InitializeRequest())
        with pytest.raises(DialectError, match="cancel_queued"):
            await session.interrupt(cancel_queued=True)
        with pytest.raises(DialectError, match="has no priority for a prompt"):
            await session.query(msgspec.structs.replace(UserMessage.of("a"), priority="now"))
        assert peer.sent == []
        assert session._reading.run.over


async def test_classic_interrupts_a_process_only() -> None:
    async with LinePeer().session(dialect=CLASSIC) as session:
        with pytest.raises(DialectError, match="interrupts by SIGINT, and this session has no process"):
            await session.interrupt()


@pytest.mark.parametrize("dialect", [STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, AUTO])
async def test_only_some_dialects_have_a_status(dialect: Dialect) -> None:
    async with LinePeer().session(dialect=dialect) as session:
        with pytest.raises(DialectError, match="has no status request"):
            await session.status()


async def test_deltas_are_merged_in_stream_json_only() -> None:
    stream = MessageStream(Output(), Decoder(coalesce=True))
    with pytest.raises(DialectError, match="takes no decoder with coalesce="):
        async with Session(stream, print, dialect=MIRIAD):
            pytest.fail("it was entered")
    async with Session(MessageStream(Output(), Decoder(coalesce=True)), print, dialect=STREAM_JSON_2_1_7):
        pass


# --- A session that reads lines of other dialects ahead translates each once, and keeps line numbers and offsets ------


STATUS = '{"type":"system","subtype":"status","running":true}'
SHORT_RESULT = '{"type":"result","subtype":"success","result":"Hi"}'


def spoken(text: str) -> str:
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "assistant", "message": {"role": "assistant", "content": content, "model": "m"}})


def seen(messages: list[Any]) -> list[Any]:
    """Return the text of each message; for an invalid line its number, offset and bytes."""
    return [
        (one.line_number, one.offset, one.raw)
        if isinstance(one, InvalidLine)
        else one.result
        if isinstance(one, ResultMessage)
        else one.message.content[0].text
        for one in messages
    ]


@pytest.mark.parametrize("collects", [False, True])
async def test_invalid_lines_keep_their_places(collects: bool) -> None:
    gc.collect()  # sessions of earlier tests may still hold messages
    peer, before, collected = LinePeer(), queued_bytes(), []
    decoder = Decoder(on_invalid=collected.append) if collects else Decoder()
    async with Session(MessageStream(peer.output, decoder), peer.send, dialect=JSON_RPC) as session:
        await session.query("go", uuid="run")
        first, last = response("run", spoken("a")), response("run", SHORT_RESULT)

        async def answer() -> None:
            status = (await peer.got(2))[1]
            peer.say(first, "nonsense", "", response(status["id"], STATUS), "[]", last)

        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            assert (await session.status()).running
        assert queued_bytes() - before > 5 * (len(first) + len(last))  # the lines now wait in the queue as messages
        received = [message async for message in session.receive_response()]
        assert queued_bytes() == before
    bad = collected if collects else [one for one in received if isinstance(one, InvalidLine)]
    assert [(one.line_number, one.raw) for one in bad] == [(2, b"nonsense"), (5, b"[]")]
    assert bad[0].offset == len(first) + 1
    expected = ["a", *([] if collects else seen(bad)), "Hi"]
    assert seen(received) == expected


@pytest.mark.parametrize("between", [0, 1, 2])
@pytest.mark.parametrize(("one", "other"), [(CLASSIC, CLASSIC), (AUTO, CLASSIC), (AUTO, AUTO)], ids=str)
async def test_the_next_session_is_asked_nothing_again(one: Dialect, other: Dialect, between: int) -> None:
    peer, asked = LinePeer(), []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    question = '{"type":"system","subtype":"permission_request","tool_name":"%s","input":{}}'
    tool = '{"type":"tool_result","tool_use_id":"t","result":"out"}'
    stream = MessageStream(peer.output)
    async with stream:
        async with Session(stream, peer.send, dialect=one, can_use_tool=decide):
            peer.say(spoken("a"), question % "First", spoken("b"), tool)
            await peer.got(1)
        received = [await stream.__anext__() for _ in range(between)]
        assert seen(received[:1]) == ["a"][:between]
        async with Session(stream, peer.send, dialect=other, can_use_tool=decide) as session:
            peer.say(question % "Second", SHORT_RESULT)
            await peer.got(2)
            rest = [message async for message in session.receive_response()]
    assert asked == ["First", "Second"]
    assert peer.sent == [b'{"allow":true}\n'] * 2
    assert rest[-2].tool_results[0].tool_use_id == "t"
    assert seen([*rest[:-2], rest[-1]]) == [*(["a", "b"] if between == 0 else ["b"]), "Hi"]


async def test_a_session_in_stream_json_goes_on_where_auto_has_stopped() -> None:
    peer, asked = LinePeer(), []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    def question(name: str) -> dict[str, Any]:
        body = {"subtype": "can_use_tool", "tool_name": name, "input": {}, "tool_use_id": name}
        return {"type": "control_request", "request_id": name, "request": body}

    async with MessageStream(peer.output) as stream:
        async with Session(stream, peer.send, dialect=AUTO, can_use_tool=decide):
            peer.say(spoken("a"), question("First"), spoken("b"))
            await peer.got(1)
        async with Session(stream, peer.send, dialect=STREAM_JSON, can_use_tool=decide) as session:
            peer.say(question("Second"), SHORT_RESULT)
            await peer.got(2)
            received = [message async for message in session.receive_response()]
    assert asked == ["First", "Second"]
    assert seen(received) == ["a", "b", "Hi"]
