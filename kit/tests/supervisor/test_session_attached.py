"""A session attached to a supervisor: the line at which it resumes, the questions it answers, and its role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import (
    CanUseToolRequest,
    HandleError,
    HookCallbackRequest,
    HookMatcher,
    ProcessError,
    ProcessInputError,
    PromptError,
    RequestError,
    RequestRefusedError,
    ResultMessage,
    SessionEndedError,
    TurnError,
    UnfinishedTurnError,
    UserMessage,
)
from claude_wire.messages import PermissionResult
from claude_wire_kit.supervisor.errors import DetachedError
from claude_wire_kit.supervisor.frames import Cursor, Ended
from session_peer import INIT, RESULT, Peer, Server, allow, collect, hook_request, line, never, numbered, numbers, take
from supervisor_peer import INITIALIZED, SupervisorPeer, Wire, result

NEVER_BEFORE = Cursor("s1", 1, 0)


@every_backend
async def test_the_cursor_is_that_of_the_last_message_taken_and_the_next_session_goes_on_behind_it() -> None:
    supervisor = SupervisorPeer()
    supervisor.say(*map(numbered, range(5)))
    wire, session = supervisor.connect()
    async with session:
        assert session.cursor == NEVER_BEFORE
        assert numbers(await take(session, 2)) == [0, 1]
        assert session.cursor == Cursor("s1", 1, 2)
        supervisor.say(numbered(5))
    assert session.cursor == Cursor("s1", 1, 2)
    wire.lose()
    _, second = supervisor.connect(session.cursor)
    async with second:
        assert second.cursor == session.cursor
        assert numbers(await take(second, 4)) == [2, 3, 4, 5]
        assert second.cursor == Cursor("s1", 1, 6)


@every_backend
async def test_frames_never_reach_the_consumer_and_have_no_number_wherever_chunks_end() -> None:
    said = [line(numbered(1)), b"\n", b" \r\n", line(numbered(2)), b"nonsense\n", b"\t\n", line(numbered(3))]
    frames = [
        b'{"type":"supervisor_accepted","lines":0}\n',
        b'{"type":"supervisor_blocked","message":"full"}\n',
        b'{"type":"supervisor_of_tomorrow"}\n',
        b'{"type":"supervisor_stderr","text":"\\u00e4"}\n',
    ]
    data = said[0] + frames[0] + b"".join(said[1:4]) + frames[1] + frames[2] + said[4] + frames[3] + b"".join(said[5:])
    behind = [1, 4, 5, 7]

    for cut in range(1, len(data)):
        supervisor = SupervisorPeer()
        supervisor.journal += said[:0]
        answer = supervisor.attached()
        wire = Wire(supervisor)
        wire.output.write(data[:cut])
        wire.output.write(data[cut:])
        async with supervisor.session(wire, answer) as session:
            for expected in behind:
                await session.__anext__()
                assert session.cursor is not None
                assert session.cursor.line == expected, cut


@every_backend
async def test_a_batch_is_taken_as_a_whole_and_control_messages_before_a_message_count_with_it() -> None:
    supervisor = SupervisorPeer()
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        data = [numbered(1), Peer.permission("q"), {"type": "keep_alive"}, numbered(2), Peer.permission("r")]
        for message in data:
            supervisor.journal.append(line(message))
        wire.output.write(b"".join(map(line, data)))
        assert numbers(await take(session, 1)) == [1]
        assert session.cursor == Cursor("s1", 1, 1)
        assert numbers(await take(session, 1)) == [2]
        assert session.cursor == Cursor("s1", 1, 4)
        wire.output.write(b"".join(map(line, map(numbered, (3, 4)))))
        batches = session.batches()
        assert numbers(await batches.__anext__()) == [3, 4]
        assert session.cursor == Cursor("s1", 1, 7)
        await wire.answer_to("q")
        await wire.answer_to("r")


@every_backend
async def test_open_questions_are_answered_at_once_and_settled_ones_never() -> None:
    asked: list[str] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    supervisor = SupervisorPeer()
    supervisor.say(
        Peer.permission("settled", "A"), numbered(1), Peer.permission("open", "B"), Peer.permission("gone", "C")
    )
    del supervisor.open["settled"]
    supervisor.say(Peer.cancel("gone"), numbered(2))
    wire, session = supervisor.connect(can_use_tool=decide)
    async with session:
        await wire.answer_to("open")  # the session answers even though no task iterates
        assert numbers(await take(session, 2)) == [1, 2]
        supervisor.say(Peer.permission("new", "D"))
        await wire.answer_to("new")
        assert asked == ["B", "D"]
        assert supervisor.open == {}


@every_backend
async def test_nothing_older_is_answered_while_nobody_iterates_either() -> None:
    supervisor = SupervisorPeer(chunk=7)
    for number in range(20):
        supervisor.say(Peer.permission(f"q{number}"), numbered(number))
    supervisor.open.clear()
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        supervisor.say(Peer.permission("new"))
        await wire.answer_to("new")
        assert [message["type"] for message in wire.received] == ["control_response"]
        assert numbers(await take(session, 20)) == list(range(20))
        assert len(wire.received) == 1


@every_backend
async def test_the_answer_to_initialize_is_that_of_the_host_and_none_is_sent() -> None:
    supervisor = SupervisorPeer()
    wire, session = supervisor.connect()
    async with session:
        assert session.info is not None
        assert session.info.output_style == "default"
        with pytest.raises(HandleError, match=r"session\.info"):
            await session.initialize()
        with pytest.raises(HandleError, match="the MCP servers of the session cannot change"):
            await session.set_mcp_servers({})
        assert wire.received == []
    supervisor = SupervisorPeer()
    supervisor.initialized = None
    wire, session = supervisor.connect()
    async with session:
        assert session.info is None
        supervisor.say(INITIALIZED, numbered(1))
        await take(session, 1)
        assert session.info is not None
        assert session.info.output_style == "default"


@every_backend
async def test_hooks_that_must_block_need_a_cli_that_can_also_over_a_host() -> None:
    async def hook(request: HookCallbackRequest) -> None: ...

    supervisor = SupervisorPeer()
    supervisor.initialized = {**INITIALIZED, "response": {**INITIALIZED["response"], "response": {}}}
    _, session = supervisor.connect(hooks={"Stop": [HookMatcher(hook, on_failure="block")]})
    with pytest.raises(RequestError, match="must block"):
        async with session:
            raise AssertionError


# --- prompts and runs -------------------------------------------------------------------------------------------------


@every_backend
async def test_what_is_owed_is_waited_for_in_the_middle_of_a_turn() -> None:
    supervisor = SupervisorPeer()
    supervisor.prompts, supervisor.owed = ["p1"], ["p1"]
    supervisor.say(INIT, numbered(1), numbered(2))
    _, session = supervisor.connect(Cursor("s1", 1, 2))
    async with session:
        run = session.receive_run()
        assert numbers([await run.__anext__()]) == [2]
        supervisor.say(numbered(3), result("p1"), numbered(4))
        assert numbers([await run.__anext__()]) == [3]
        assert isinstance(await run.__anext__(), ResultMessage)
        assert [message async for message in run] == []
        assert session.cursor == Cursor("s1", 1, 5)


@every_backend
@pytest.mark.parametrize("named", [True, False])
async def test_a_result_from_before_does_not_answer_what_is_owed_now(named: bool) -> None:
    supervisor = SupervisorPeer()
    supervisor.say(INIT, result(*["old"] * named), INIT, numbered(1))
    supervisor.prompts, supervisor.owed = ["p1"], ["p1"]
    if not named:
        supervisor.journal[1] = line(RESULT)
    _, session = supervisor.connect()
    async with session:
        run = session.receive_run()
        await take(session, 4)
        supervisor.say(result("p1") if named else RESULT)
        assert isinstance(await run.__anext__(), ResultMessage)
        assert [message async for message in run] == []


@every_backend
async def test_a_run_of_what_is_over_gives_what_was_missed_and_ends() -> None:
    supervisor = SupervisorPeer()
    supervisor.say(INIT, numbered(1), RESULT, Peer.permission("q"))
    del supervisor.open["q"]
    _, session = supervisor.connect(Cursor("s1", 1, 1))
    async with session:
        assert [type(message).__name__ async for message in session.receive_run()] == ["UserMessage", "ResultSuccess"]
        assert [message async for message in session.receive_run()] == []


@every_backend
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("restarted", [True, False])
async def test_what_a_process_has_begun_that_has_died_is_not_waited_for(after: int, restarted: bool) -> None:
    supervisor = SupervisorPeer()
    started = {"type": "system", "subtype": "task_started", "task_id": "t", "task_type": "local_agent"}
    state = {"type": "system", "subtype": "session_state_changed", "state": "running"}
    supervisor.say(INITIALIZED, INIT, {**started, "uuid": "u", "session_id": "s"}, {**state, "uuid": "v"})
    if restarted:
        supervisor.say(INITIALIZED)
        supervisor.turn = False
    _, session = supervisor.connect(Cursor("s1", 1, after))
    got: list[Any] = []
    over = False

    async def run() -> None:
        nonlocal over
        await collect(session.receive_run(), got)
        over = True

    async with session, anyio.create_task_group() as group:
        group.start_soon(run)
        while len(got) < 3 or restarted > over:
            await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()
        assert over == restarted
        group.cancel_scope.cancel()


@every_backend
async def test_a_subagent_that_began_before_the_cursor_is_waited_for() -> None:
    """The supervisor reports the subagent, because the client does not read the lines before the cursor again."""
    supervisor = SupervisorPeer()
    supervisor.say(numbered(1))
    supervisor.subagents = ["a"]
    _, session = supervisor.connect(Cursor("s1", 1, 1))
    async with session:
        task = {"task_id": "a", "status": "completed", "output_file": "", "summary": "", "uuid": "u", "session_id": "s"}
        supervisor.say({"type": "system", "subtype": "task_notification", **task})
        supervisor.say(INIT, {**RESULT, "origin": {"kind": "task-notification"}})
        assert [type(message).__name__ async for message in session.receive_run()] == [
            "TaskNotificationMessage",
            "InitMessage",
            "ResultSuccess",
        ]


@every_backend
async def test_a_turn_that_nobody_has_asked_for_is_waited_for() -> None:
    supervisor = SupervisorPeer()
    supervisor.say(INIT)
    _, session = supervisor.connect(Cursor("s1", 1, 1))
    async with session:
        supervisor.say(numbered(1), RESULT)
        assert [type(message).__name__ async for message in session.receive_run()] == ["UserMessage", "ResultSuccess"]


@every_backend
async def test_ask_goes_on_working_behind_old_results() -> None:
    supervisor = SupervisorPeer()
    supervisor.say(INIT, {**RESULT, "result": "old"})
    wire, session = supervisor.connect()
    async with session, anyio.create_task_group() as group:

        async def answer() -> None:
            await wire.until(wire.prompts)
            supervisor.say(INIT, {**result(*wire.prompts()), "result": "new"})

        group.start_soon(answer)
        assert (await session.ask("hi")).result == "new"


@every_backend
async def test_a_prompt_always_has_a_uuid() -> None:
    wire, session = SupervisorPeer().connect()
    async with session:
        await session.query(UserMessage.of("hi"))
        await session.query("hi", uuid="mine")
    first, second = wire.prompts()
    assert first
    assert second == "mine"


@every_backend
async def test_a_refused_prompt_ends_its_asker_and_a_refused_request_its_own(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    wire, session = supervisor.connect()
    async with session, anyio.create_task_group() as group:

        async def refuse() -> None:
            for number in 1, 2:
                await wire.until(lambda number=number: len(wire.received) == number)
                wire.say(type="supervisor_refused", line=number, reason="the disk is full")

        group.start_soon(refuse)
        with pytest.raises(PromptError, match="not delivered: the supervisor has refused it: the disk is full"):
            await session.ask("hi")
        with pytest.raises(RequestRefusedError, match="the disk is full"):
            await session.set_model("opus")
        assert session.unacknowledged == []
    assert caplog.text.count("the disk is full") == 2


# --- roles ------------------------------------------------------------------------------------------------------------


@every_backend
async def test_a_viewer_sees_all_answers_nothing_and_sends_nothing() -> None:
    supervisor = SupervisorPeer()
    server = Server()
    supervisor.handshakes = {"s": [{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]}
    supervisor.say(Peer.permission("old"))
    wire, session = supervisor.connect(role="viewer", can_use_tool=allow, mcp_servers={"s": server})
    async with session:
        pending = {"subtype": "success", "request_id": "x", "pending_permission_requests": [Peer.permission("p")]}
        supervisor.say(Peer.permission("new"), {"type": "control_response", "response": pending}, numbered(1))
        assert numbers(await take(session, 1)) == [1]
        for sends in (
            lambda: session.query("hi"),
            lambda: session.ask("hi"),
            lambda: session.interrupt(),
            lambda: session.end_input(),
        ):
            with pytest.raises(HandleError, match="a viewer, and sends nothing: attach as a driver"):
                await sends()
        await anyio.wait_all_tasks_blocked()
        assert wire.received == []
        assert server.handled == []


@every_backend
async def test_who_is_replaced_becomes_a_viewer_and_its_callbacks_end() -> None:
    ended: list[str] = []

    async def decide(request: CanUseToolRequest) -> PermissionResult:
        try:
            return await never()
        finally:
            ended.append(request.tool_name)

    supervisor = SupervisorPeer()
    supervisor.say(Peer.permission("q", "Bash"))
    wire, session = supervisor.connect(can_use_tool=decide)
    async with session:
        await anyio.wait_all_tasks_blocked()
        wire.say(type="supervisor_driver", role="viewer", driver=True)
        supervisor.say(Peer.permission("r", "Read"), numbered(1))
        assert numbers(await take(session, 1)) == [1]
        await anyio.wait_all_tasks_blocked()
        assert ended == ["Bash"]
        with pytest.raises(HandleError, match="another client drives this session now"):
            await session.query("hi")
    assert wire.received == []


@every_backend
async def test_a_prompt_that_crossed_a_replacement_says_who_drives_now() -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    wire, session = supervisor.connect()
    async with session:
        await anyio.wait_all_tasks_blocked()
        assert session.refusal is None
        await session.query("hi")
        wire.say(type="supervisor_driver", role="viewer", driver=True)
        wire.say(type="supervisor_refused", line=1, reason="a viewer sends nothing")
        supervisor.say(numbered(1))
        await take(session, 1)
        assert session.refusal is not None
        assert session.refusal.startswith("another client drives this session now")


# --- MCP servers ------------------------------------------------------------------------------------------------------


HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "1"}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(request_id: str, message: dict[str, Any], server: str = "s") -> dict[str, Any]:
    return Peer.request(request_id, "mcp_message", server_name=server, message=message)


@every_backend
async def test_a_server_of_a_new_driver_sees_the_handshake_before_anything_else() -> None:
    supervisor = SupervisorPeer()
    supervisor.handshakes = {"s": [HELLO, READY], "of somebody else": [HELLO]}
    listed = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    supervisor.say(call("open", listed))
    server = Server()
    wire, session = supervisor.connect(mcp_servers={"s": server})
    async with session:
        supervisor.say(call("new", {**listed, "id": 8}))
        await wire.answer_to("open")
        await wire.answer_to("new")
        assert [message["method"] for message in server.handled] == [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/list",
        ]
        assert len(wire.received) == 2


@every_backend
async def test_a_handshake_that_is_open_is_not_repeated() -> None:
    supervisor = SupervisorPeer()
    supervisor.handshakes = {"s": [HELLO]}
    supervisor.say(call("open", HELLO))
    server = Server()
    wire, session = supervisor.connect(mcp_servers={"s": server})
    async with session:
        await wire.answer_to("open")
        assert [message["method"] for message in server.handled] == ["initialize"]


@every_backend
async def test_a_server_that_fails_in_its_handshake_is_asked_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    supervisor = SupervisorPeer()
    supervisor.handshakes = {"s": [{**HELLO, "method": "raise"}]}
    wire, session = supervisor.connect(mcp_servers={"s": Server()})
    async with session:
        supervisor.say(call("q", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        assert "result" in (await wire.answer_to("q"))["response"]["mcp_response"]
    assert "the MCP server s raised ValueError in its handshake" in caplog.text


@every_backend
async def test_hooks_of_another_process_answer_by_the_same_ids() -> None:
    async def guard(request: HookCallbackRequest) -> dict[str, Any]:
        return {"decision": "block"}

    supervisor = SupervisorPeer()
    supervisor.say(hook_request("h", "PreToolUse:Bash:guard"))
    wire, session = supervisor.connect(hooks={"PreToolUse": [HookMatcher(guard, matcher="Bash", name="guard")]})
    async with session:
        assert (await wire.answer_to("h"))["response"] == {"decision": "block"}


# --- A session attached to a supervisor: how it ends, and what the next session continues -----------------------------


ENDS: list[tuple[dict[str, Any], type[Exception] | None, str]] = [
    ({"exit_code": 0}, None, ""),
    ({"exit_code": 1, "stderr": "Error: no"}, ProcessError, "exited with code 1"),
    ({"exit_code": -9, "calls": ["t1", "t2"]}, ProcessError, "2 tool calls have no result, and were perhaps done"),
    ({"exit_code": None, "unfinished": "in the middle of a turn"}, UnfinishedTurnError, "ended with its supervisor"),
    ({"exit_code": 0, "unfinished": "in the middle of a turn"}, UnfinishedTurnError, "in the middle of a turn"),
    (
        {"exit_code": None, "unfinished": "while a subagent worked in the background"},
        UnfinishedTurnError,
        "output ended while a subagent worked in the background; the process ended with its supervisor",
    ),
]


@every_backend
@pytest.mark.parametrize(("ended", "error", "words"), ENDS)
@pytest.mark.parametrize("when", ["then", "before"])
async def test_the_stream_ends_as_that_of_a_process(
    ended: dict[str, Any], error: type[Exception] | None, words: str, when: str
) -> None:
    supervisor = SupervisorPeer()
    supervisor.say(numbered(1))
    if when == "before":
        supervisor.ended = Ended(**ended)
    wire, session = supervisor.connect()
    async with session:
        if when == "then":
            wire.say(type="supervisor_ended", **ended)
            supervisor.say(numbered(2))  # a line of the next process
        got: list[Any] = []
        if error is None:
            await collect(session, got)
        else:
            with pytest.raises(error, match=words) as caught:
                await collect(session, got)
            assert isinstance(caught.value, ProcessError)
            assert caught.value.returncode == ended["exit_code"]
            assert caught.value.calls == ended.get("calls", [])
            assert caught.value.stderr_tail == ended.get("stderr", "").encode()
        assert [message async for message in session] == []
        assert numbers(got) == [1]
        with pytest.raises(SessionEndedError):
            await session.set_model("x")
        with pytest.raises(ProcessInputError, match="has ended"):
            await session.query("x")
        assert wire.received == []


@every_backend
async def test_the_last_of_the_standard_error_is_kept_for_the_error() -> None:
    wire, session = SupervisorPeer().connect()
    async with session:
        for text in "first", "x" * 70_000, "last":
            wire.say(type="supervisor_stderr", text=text)
        wire.say(type="supervisor_ended", exit_code=2)
        with pytest.raises(ProcessError) as caught:
            await collect(session, [])
        assert len(caught.value.stderr_tail) == 64 * 1024
        assert caught.value.stderr_tail.endswith(b"xlast")


@every_backend
async def test_a_process_that_ends_for_a_failed_turn_raises_what_the_turn_says() -> None:
    supervisor = SupervisorPeer()
    wire, session = supervisor.connect()
    async with session:
        supervisor.say(INIT, {**RESULT, "is_error": True, "subtype": "error_max_turns"})
        wire.say(type="supervisor_ended", exit_code=1)
        with pytest.raises(TurnError, match="max_turns"):
            await collect(session, [])


@every_backend
@pytest.mark.parametrize("how", ["cut", "lost", "in the middle of a line", "of a frame", "failed"])
async def test_the_end_of_a_connection_has_the_cursor_and_what_was_not_acknowledged(how: str) -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    supervisor.say(Peer.permission("q"), numbered(1))
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await wire.answer_to("q")
        await session.query("one", uuid="p1")
        await session.query("two", uuid="p2")
        with anyio.move_on_after(0):
            await session.set_model("opus")
        wire.say(type="supervisor_accepted", lines=2)
        end: dict[str, Callable[[], object]] = {
            "cut": lambda: wire.say(type="supervisor_cut", cursor={"id": "s1", "epoch": 1, "line": 2}, message="slow"),
            "lost": lambda: None,
            "in the middle of a line": lambda: wire.write(line(numbered(2))[:-1]),
            "of a frame": lambda: wire.write(b'{"type":"supervisor_accep'),
            "failed": lambda: wire.output.write(ConnectionResetError("reset")),
        }
        end[how]()
        if how != "cut":
            wire.lose()
        got: list[Any] = []
        with pytest.raises(DetachedError, match="the session goes on there") as caught:
            await collect(session, got)
        assert numbers(got) == [1]
        assert caught.value.cursor == Cursor("s1", 1, 2) == session.cursor
        assert [b'"p2"' in sent for sent in caught.value.unacknowledged] == [True]
        assert [message async for message in session] == []
        with pytest.raises(SessionEndedError):
            await session.set_model("x")
        with pytest.raises(DetachedError) as refused:
            await session.query("x", uuid="p3")
        assert len(refused.value.unacknowledged) == (1 if how == "cut" else 2)


@every_backend
async def test_who_waits_is_told_that_the_connection_is_lost_though_nobody_iterates() -> None:
    for lose in (lambda wire: wire.lose(), lambda wire: wire.say(type="supervisor_ended", exit_code=3)):
        wire, session = SupervisorPeer().connect()
        async with session, anyio.create_task_group() as group:

            async def end(wire: Any = wire, lose: Any = lose) -> None:
                await wire.until(lambda: wire.received)
                lose(wire)

            group.start_soon(end)
            with pytest.raises(SessionEndedError):
                await session.set_model("opus")


@every_backend
async def test_what_was_not_acknowledged_is_sent_again_and_counts_once() -> None:
    supervisor = SupervisorPeer(acknowledges=False)
    supervisor.say(Peer.permission("q"))
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await wire.answer_to("q")
        await session.query("one", uuid="p1")
        lost = session.unacknowledged
        assert len(lost) == 2
    wire.lose()
    supervisor.acknowledges = True
    supervisor.prompts, supervisor.owed = [], []  # the line with the prompt has not arrived
    again, second = supervisor.connect(session.cursor)
    async with second:
        await second.send_again(lost)
        assert again.prompts() == ["p1"] == supervisor.prompts
        assert len(again.answers_to("q")) == 1
        supervisor.say(result("p1"))
        assert [type(message).__name__ async for message in second.receive_run()] == ["ResultSuccess"]
        assert second.unacknowledged == []


@every_backend
async def test_a_prompt_that_is_sent_again_has_its_result_among_the_lines_that_were_missed() -> None:
    supervisor = SupervisorPeer()
    supervisor.prompts = ["p1"]
    supervisor.say(INIT, result("p1"), numbered(1))
    wire, session = supervisor.connect()
    async with session:
        await session.send_again([line({"type": "user", "uuid": "p1", "message": {"role": "user", "content": "x"}})])
        assert len([message async for message in session.receive_run()]) == 3
        assert supervisor.prompts == wire.prompts() == ["p1"]


@every_backend
async def test_what_is_not_acknowledged_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.unacknowledged.MAX_UNACKNOWLEDGED_BYTES", 4096)

    supervisor = SupervisorPeer(acknowledges=False)
    wire, session = supervisor.connect(can_use_tool=allow)
    async with session:
        await session.query("x" * 3000, uuid="p1")
        for _ in range(2):
            with pytest.raises(HandleError, match="not acknowledged"):
                await session.query("x" * 3000, uuid="p2")
        supervisor.say(*(Peer.permission(f"q{number}") for number in range(20)))
        await wire.answer_to("q19")  # the session continues to answer, but does not keep the answers
        assert sum(map(len, session.unacknowledged)) < 4096
        wire.say(type="supervisor_accepted", lines=21)
        with anyio.fail_after(60):
            while session.unacknowledged:
                await anyio.sleep(0.001)
        await session.query("x" * 3000, uuid="p2")
    assert wire.prompts() == ["p1", "p2"]


@every_backend
async def test_the_input_of_a_managed_cli_is_ended_by_a_line() -> None:
    wire, session = SupervisorPeer().connect()
    async with session:
        await session.end_input()
    assert wire.received == [{"type": "supervisor_end_input"}]
