"""Run the real CLI to test what a `Session` does differently from the client of claude-agent-sdk, or in addition."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from calculator import Calculator
from children import children_of
from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ElicitationRequest,
    ElicitationResponse,
    HandleError,
    HookCallbackRequest,
    HookMatcher,
    InitMessage,
    MaxBudgetError,
    ProcessInputError,
    RateLimitError,
    ResultMessage,
    Session,
    StreamEvent,
    TurnError,
    UserMessage,
    open_process,
    open_session,
)
from claude_wire.errors import (
    ApiError,
    AuthenticationError,
    ExecutionError,
    MaxTurnsError,
    PromptAnsweredError,
    SessionNotFoundError,
    StructuredOutputError,
    TurnCancelledError,
)
from claude_wire.messages import (
    ListPermissionRulesRequest,
    McpStatusRequest,
    PermissionResult,
    TaskNotificationOrigin,
)
from places import CLI, Place
from scripts import REPORT, SCHEMA, SESSION_ID, UUIDS
from through_sdk import DEADLINE, FEW_RETRIES
from through_session import Talk

BACKENDS = ("asyncio", "trio")


def within_deadline(main: Callable[[], Awaitable[None]], backend: str = "asyncio") -> None:
    async def bounded() -> None:
        with anyio.fail_after(DEADLINE):
            await main()

    anyio.run(bounded, backend=backend)


def children() -> set[int]:
    """Return the ids of the child processes of this process."""
    return children_of(os.getpid())


# --- what the CLI reads in the text of a prompt

SECRET = "the harbour freezes in May"


def test_the_cli_acts_on_the_text_of_a_prompt(place: Place) -> None:
    assert place.api is not None
    (place.work / "secret.txt").write_text(SECRET)

    async def main() -> None:
        async with Talk(place).session() as session:
            assert (await session.ask("@secret.txt [[simple]]")).result == "Hello, world."
            assert "cost" in (await session.ask("/cost")).result

    within_deadline(main)
    [asked] = place.api.asked("simple")
    assert SECRET in json.dumps(asked.body)


def test_verbatim_prompts_read_no_file_and_run_no_command(place: Place) -> None:
    assert place.api is not None
    (place.work / "secret.txt").write_text(SECRET)

    async def main() -> None:
        async with Talk(place).session(host={"verbatim_prompts": True}) as session:
            assert (await session.ask("@secret.txt [[simple]]")).result == "Hello, world."
            assert (await session.ask("/cost [[simple]]")).result == "Hello, world."

    within_deadline(main)
    requests = json.dumps([request.body for request in place.api.requests])
    assert "@secret.txt [[simple]]" in requests
    assert "/cost [[simple]]" in requests
    assert SECRET not in requests


# --- ask: the result, or the error that it stands for


def test_ask_returns_the_result_of_each_turn(place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session(json_schema=SCHEMA) as session:
            first = await session.ask("[[structured]]")
            assert first.structured_output == {"name": "Ada", "age": 36}
            with pytest.raises(StructuredOutputError, match="no structured_output") as caught:
                await session.ask("[[unstructured]]")
            assert (caught.value.result.result, caught.value.result.ok) == ("In plain words.", True)

    within_deadline(main)


@pytest.mark.parametrize(
    ("script", "kind", "status"),
    [
        ("error_400", ApiError, 400),
        ("error_401", AuthenticationError, 401),
        ("limited", RateLimitError, 429),
        ("error_500", ApiError, 500),
        ("error_529", RateLimitError, 529),
    ],
)
def test_ask_raises_the_error_of_the_api_and_the_session_goes_on(
    script: str, kind: type[ApiError], status: int, place: Place
) -> None:
    async def main() -> None:
        async with Talk(place).session(env=FEW_RETRIES) as session:
            with pytest.raises(kind) as caught:
                await session.ask(f"[[{script}]]")
            assert type(caught.value) is kind
            assert caught.value.status == status
            assert (caught.value.result.subtype, caught.value.result.is_error) == ("success", True)
            assert (await session.ask("[[simple]]")).result == "Hello, world."

    within_deadline(main)


LIMITS: dict[str, tuple[str, dict[str, Any], type[TurnError]]] = {
    "turns": ("endless", {"max_turns": 2, "allowed_tools": ["Bash"]}, MaxTurnsError),
    "budget": ("endless", {"max_budget_usd": 0.0001, "allowed_tools": ["Bash"]}, MaxBudgetError),
    "structure": ("never_fits", {"json_schema": SCHEMA}, StructuredOutputError),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_ask_raises_when_a_limit_is_reached(limit: str, place: Place) -> None:
    script, options, kind = LIMITS[limit]

    async def main() -> None:
        async with Talk(place).session(**options) as session:
            with pytest.raises(kind) as caught:
                await session.ask(f"[[{script}]]")
            assert caught.value.result.is_error

    within_deadline(main)


def test_ask_raises_when_the_turn_is_interrupted(place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session(allowed_tools=["Bash"]) as session, anyio.create_task_group() as tasks:

            async def interrupt() -> None:
                await place.file("begun")
                await session.interrupt()

            tasks.start_soon(interrupt)
            with pytest.raises(TurnCancelledError) as caught:
                await session.ask("[[long_bash]]")
            assert caught.value.result.subtype == "error_during_execution"

    within_deadline(main)


def test_callers_of_ask_take_turns(place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session() as session:
            answers: dict[str, str | None] = {}

            async def ask(script: str) -> None:
                answers[script] = (await session.ask(f"[[{script}]]")).result

            async with anyio.create_task_group() as tasks:
                for script in ("simple", "again", "slow"):
                    tasks.start_soon(ask, script)
            assert answers == {"simple": "Hello, world.", "again": "Hello again.", "slow": "Slowly."}

    within_deadline(main)


@pytest.mark.parametrize("replays", [False, True])
def test_a_prompt_that_a_resumed_session_had_ends_at_once(replays: bool, place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session(session_id=SESSION_ID) as session:
            await session.ask(UserMessage.of("[[simple]]", uuid=UUIDS[0]))
        async with Talk(place).session(resume=SESSION_ID, replay_user_messages=replays) as session:
            with pytest.raises(PromptAnsweredError):
                await session.ask(UserMessage.of("[[simple]]", uuid=UUIDS[0]))
            assert (await session.ask("[[again]]")).result == "Hello again."
        async with Talk(place).session(resume=SESSION_ID, replay_user_messages=replays) as session:
            await session.query("[[simple]]", uuid=UUIDS[0])
            run = [message async for message in session.receive_run()]
            assert not any(isinstance(message, ResultMessage) for message in run)
            assert any(isinstance(message, UserMessage) and message.isReplay for message in run) == replays

    within_deadline(main)


@pytest.mark.parametrize("uuids", [(UUIDS[0], None), (None, None), (None, UUIDS[1]), UUIDS[:2]], ids=str)
def test_a_run_has_the_answer_to_a_prompt_that_was_sent_before_the_last_result_was_taken(
    uuids: tuple[str | None, str | None], place: Place
) -> None:
    async def main() -> None:
        ended = anyio.Event()

        def received(data: bytes) -> None:
            if b'"idle"' in data:
                ended.set()

        async with Talk(place).session(host={"on_received": received}) as session:
            await session.query(UserMessage.of("[[simple]]", uuid=uuids[0]))
            await ended.wait()
            await session.query(UserMessage.of("[[again]]", uuid=uuids[1]))
            results = [one.result async for one in session.receive_run() if isinstance(one, ResultMessage)]
            assert results == ["Hello, world.", "Hello again."]

    within_deadline(main)


def test_prompts_without_a_uuid_that_the_cli_merges_end_the_run(place: Place) -> None:
    async def main() -> None:
        assert place.api is not None
        async with Talk(place).session() as session:
            for script in ("held", "simple", "again"):
                await session.query(UserMessage.of(f"[[{script}]]"))
            await place.asked("held")
            place.api.open("held")
            results = [one.result async for one in session.receive_run() if isinstance(one, ResultMessage)]
            assert len(results) == 2
            assert (await session.ask("[[simple]]")).result == "Hello, world."

    within_deadline(main)


@pytest.mark.parametrize("how", ["the block", "aclose() in another task", "cancellation"])
@pytest.mark.parametrize("script", ["stall", "long_bash"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_leaving_in_the_middle_of_a_turn_interrupts_it_and_needs_no_signal(
    backend: str, script: str, how: str, place: Place
) -> None:
    async def main() -> None:
        host = {"grace": 30.0}
        session = Talk(place).session(host=host, include_partial_messages=True, allowed_tools=["Bash"])
        async with anyio.create_task_group() as tasks, session:
            await session.query(f"[[{script}]]")
            if script == "long_bash":
                await place.file("begun")
            async for message in session:
                if isinstance(message, StreamEvent):
                    break
            if how == "cancellation":
                tasks.cancel_scope.cancel()
            elif how == "aclose() in another task":
                async with anyio.create_task_group() as others:
                    others.start_soon(session.aclose)
        assert session.process is not None
        # The exit code would be 143 if the session had to send SIGTERM at the end of its grace period.
        assert session.process.returncode in (0, 1)

    within_deadline(main, backend)


def test_an_interrupt_within_a_permission_callback_returns(place: Place) -> None:
    async def main() -> None:
        calls: list[str] = []
        session: Session

        async def decide(request: CanUseToolRequest) -> PermissionResult:
            calls.append(f"asked for {request.tool_name}")
            await session.interrupt()
            calls.append("interrupted")
            try:
                await anyio.sleep_forever()
            finally:
                calls.append("cancelled")

        async with Talk(place).session(host={"can_use_tool": decide}) as session:
            with pytest.raises(TurnError) as caught:
                await session.ask("[[permission_open]]")
            assert caught.value.result.terminal_reason == "aborted_tools"
            assert calls == ["asked for Bash", "interrupted", "cancelled"]
            assert (await session.ask("[[simple]]")).result == "Hello, world."

    within_deadline(main)


def test_a_session_that_cannot_be_resumed_does_not_begin(place: Place) -> None:
    async def main() -> None:
        with pytest.raises(ExecutionError) as caught:
            async with Talk(place).session(resume=UUIDS[0]):
                pytest.fail("there is no such session")
        assert UUIDS[0] in str(caught.value.result.errors)
        assert "No conversation found" in str(caught.value)

    within_deadline(main)


# --- the host is called whether or not it iterates


@pytest.mark.parametrize("backend", BACKENDS)
def test_permission_is_asked_while_nobody_iterates_and_nothing_is_lost(backend: str, place: Place) -> None:
    talk = Talk(place)

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append(request.tool_name)
        return request.deny("Not today") if "refused" in str(request.input) else request.allow()

    async def main() -> None:
        async with talk.session(host={"can_use_tool": ask}) as session:
            await session.query("[[permission]]")
            await place.file("changed.txt")
            assert talk.calls == ["Bash", "Bash", "Write"]
            await talk.turn(session)
        assert [type(message) for message in talk.messages].count(InitMessage) == 1
        results = [block.is_error for message in talk.messages for block in getattr(message, "tool_results", [])]
        assert results == [False, True, None]
        assert isinstance(talk.messages[-1], ResultMessage)
        assert talk.messages[-1].result == "All three asked."

    within_deadline(main, backend)


def test_messages_and_answers_come_while_a_question_is_open(place: Place) -> None:
    talk = Talk(place)
    decided = anyio.Event()

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        await decided.wait()
        return request.allow()

    async def main() -> None:
        async with talk.session(host={"can_use_tool": ask}) as session:
            await session.query("[[permission_raises]]")
            async for message in session.receive_response():
                talk.messages.append(message)
                if getattr(message, "tool_uses", []):
                    # The CLI has already asked for permission, or is about to.
                    assert (await session.request(McpStatusRequest())).mcpServers == []
                    assert not (place.work / "refused").exists()
                    decided.set()
        assert (place.work / "refused").exists()

    within_deadline(main)


@pytest.mark.parametrize("iterating", [True, False])
def test_a_request_is_answered_in_mid_stream(iterating: bool, place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session(include_partial_messages=True) as session:
            await session.query("[[stall]]")
            if iterating:
                async for message in session:
                    if isinstance(message, StreamEvent) and message.text_delta == "two ":
                        break
            else:
                await place.asked("stall")
            assert (await session.request(McpStatusRequest())).mcpServers == []
            await session.interrupt()
            *_, result = [message async for message in session.receive_response()]
            assert isinstance(result, ResultMessage)
            assert result.subtype == "error_during_execution"

    within_deadline(main)


def test_hooks_serve_a_subagent_that_outlives_the_turn(place: Place) -> None:
    called: list[tuple[str, int]] = []
    results = 0

    async def note(request: HookCallbackRequest) -> None:
        called.append((request.input.to_dict()["hook_event_name"], results))

    async def main() -> None:
        nonlocal results
        assert place.api is not None
        events = ("PreToolUse", "SubagentStop", "Stop")
        hooks = {event: [HookMatcher(note)] for event in events}
        async with Talk(place).session(host={"hooks": hooks}, allowed_tools=["Bash"]) as session:
            await session.query("[[background_agent]]")
            async for message in session.receive_run():
                if isinstance(message, ResultMessage):
                    results += 1
                    place.api.open("scout")
            await session.end_input()
            assert [message async for message in session if isinstance(message, ResultMessage)] == []
        # The first turn calls Agent and stops. The subagent runs its command and stops. Then a second turn runs.
        assert [event for event, after in called if after == 0] == ["PreToolUse", "Stop"]
        assert [event for event, after in called if after == 1] == ["PreToolUse", "SubagentStop", "Stop"]
        assert results == 2
        assert len(place.api.asked("scout")) == 2
        assert REPORT in str(place.api.asked("background_agent")[-1].body["messages"])

    within_deadline(main)


@pytest.mark.parametrize("states", ["1", "0"], ids=["states", "no states"])
def test_a_run_holds_the_turn_of_each_subagent_when_several_end_at_once(place: Place, states: str) -> None:
    results: list[ResultMessage] = []

    async def main() -> None:
        assert place.api is not None
        async with Talk(place).session(env={"CLAUDE_CODE_SDK_READS_SESSION_STATE": states}) as session:
            await session.query("[[background_agents]]")
            async for message in session.receive_run():
                if isinstance(message, ResultMessage):
                    results.append(message)
                    place.api.open("envoy")
            await session.end_input()
            assert [message async for message in session if isinstance(message, ResultMessage)] == []
        assert [isinstance(result.origin, TaskNotificationOrigin) for result in results] == [False, True, True, True]

    within_deadline(main)


def test_a_hook_that_overruns_its_time_never_lets_the_tool_run(place: Place) -> None:
    async def overrun(request: HookCallbackRequest) -> None:
        await anyio.sleep_forever()

    async def main() -> None:
        hooks = {"PreToolUse": [HookMatcher(overrun, timeout=0.2)]}
        # Bash is allowed, so the command would run if a hook that times out were ignored.
        async with Talk(place).session(host={"hooks": hooks}, allowed_tools=["Bash"]) as session:
            assert (await session.ask("[[hooks_overrun]]")).result == "All refused."
        assert [path.name for path in place.work.iterdir()] == ["notes.txt"]

    within_deadline(main)


# --- MCP


def test_an_mcp_server_asks_the_cli_while_it_is_called_and_is_closed(place: Place) -> None:
    talk = Talk(place)
    server = Calculator(talk.calls)

    async def main() -> None:
        async with talk.session(host={"mcp_servers": {"calc": server}}, allowed_tools=["mcp__calc__ask"]) as session:
            assert (await session.ask("[[mcp_asks]]")).result == "Asked."
            [status] = (await session.request(McpStatusRequest())).mcpServers
            assert (status.name, status.status) == ("calc", "connected")
            assert not server.closed
        assert talk.calls == [("ask", {})]
        assert server.closed
        assert place.api is not None
        assert "Method not found" in str(place.api.asked("mcp_asks")[-1].body["messages"])

    within_deadline(main)


def test_mcp_servers_in_this_process_come_and_go_in_mid_session(place: Place) -> None:
    talk = Talk(place)
    first, second = Calculator([]), Calculator(talk.calls)

    async def main() -> None:
        async with talk.session(host={"mcp_servers": {"first": first}}, allowed_tools=["mcp__calc__ask"]) as session:
            answer = await session.set_mcp_servers({"calc": second})
            assert (answer.added, answer.removed, answer.errors) == (["calc"], ["first"], {})
            while not first.closed:
                await anyio.lowlevel.checkpoint()
            assert (await session.ask("[[mcp_asks]]")).result == "Asked."
            assert talk.calls == [("ask", {})]
            assert (await session.set_mcp_servers({})).removed == ["calc"]
            assert (await session.request(McpStatusRequest())).mcpServers == []
        assert second.closed

    within_deadline(main)


def test_the_flags_of_the_typescript_sdk_are_taken(place: Place, tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "debug.txt"
        options = ClaudeOptions(
            cli_path=CLI,
            project_config_root=place.work,
            managed_settings={"permissions": {"deny": ["WebFetch"]}},
            permission_prompts="none",
            debug=True,
            debug_file=log,
        )
        async with open_session(options, cwd=place.work, env=place.environment) as session:
            rules = await session.request(ListPermissionRulesRequest())
            assert "WebFetch" in str(rules.to_dict())
        assert log.exists()

    within_deadline(main)


async def accept(request: ElicitationRequest) -> ElicitationResponse:
    assert (request.mcp_server_name, request.message) == ("asker", "Who is there?")
    assert request.requested_schema is not None
    return ElicitationResponse(action="accept", content={"name": "Ada"})


async def fail(request: ElicitationRequest) -> ElicitationResponse:
    raise RuntimeError("Nobody is there")


ELICITATIONS = {
    "accepted": ({"on_elicitation": accept}, {"action": "accept", "content": {"name": "Ada"}}),
    "nobody to ask": ({}, {"action": "decline"}),
    "raises": ({"on_elicitation": fail}, {"action": "cancel"}),
}


@pytest.mark.parametrize("case", ELICITATIONS)
def test_a_server_of_the_cli_asks_the_user(case: str, place: Place) -> None:
    host, expected = ELICITATIONS[case]
    server = {"type": "stdio", "command": sys.executable, "args": [str(Path(__file__).parent / "eliciting_server.py")]}
    options = {"mcp_config": {"mcpServers": {"asker": server}}, "allowed_tools": ["mcp__asker__who"]}
    talk = Talk(place)

    async def main() -> None:
        async with talk.session(host=host, **options) as session:
            await session.query("[[mcp_elicits]]")
            await talk.turn(session)
        [result] = [block for one in talk.messages for block in getattr(one, "tool_results", [])]
        assert json.loads(result.content[0].text) == expected

    within_deadline(main)


# --- what is queued, and how it ends


def test_an_interrupt_says_what_is_still_queued_and_takes_it_back_if_told_to(place: Place) -> None:
    async def main() -> None:
        assert place.api is not None
        async with Talk(place).session() as session:
            await session.query("[[stall]]", uuid=UUIDS[0])
            await place.asked("stall")
            await session.query("[[held]]", uuid=UUIDS[1])
            assert (await session.interrupt()).still_queued == [UUIDS[1]]
            await place.asked("held")
            await session.query("[[simple]]", uuid=UUIDS[2])
            answer = await session.interrupt(cancel_queued=True)
            assert (answer.still_queued, answer.cancelled) == ([], [UUIDS[2]])
            subtypes = [one.subtype async for one in session.receive_run() if isinstance(one, ResultMessage)]
            assert subtypes == ["error_during_execution"] * 2
        assert place.api.asked("simple") == []

    within_deadline(main)


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaving_in_the_middle_of_a_turn_withdraws_callbacks_and_ends_the_cli(backend: str, place: Place) -> None:
    talk = Talk(place)

    async def main() -> None:
        asked = anyio.Event()

        async def ask(request: CanUseToolRequest) -> PermissionResult:
            asked.set()
            try:
                await anyio.sleep_forever()
            finally:
                talk.calls.append("withdrawn")

        async with talk.session(host={"can_use_tool": ask, "grace": 1.0}) as session:
            await session.query("[[permission]]")
            await asked.wait()
            assert len(children()) == 1
        assert children() == set()
        assert talk.calls == ["withdrawn"]
        assert not (place.work / "allowed").exists()
        with pytest.raises(HandleError):
            await session.query("[[again]]")

    within_deadline(main, backend)


def test_a_session_over_a_process_leaves_it_to_its_owner(place: Place) -> None:
    async def main() -> None:
        argv = ClaudeOptions(cli_path=CLI, system_prompt="").argv()
        async with open_process(argv, cwd=place.work, env=place.environment) as process:
            async with Session(process) as session:
                assert session.info is None
                info = await session.initialize()
                assert session.info is info
                assert (await session.ask("[[simple]]")).result == "Hello, world."
            assert process.returncode is None
            await process.end_input()
            assert await process.wait() == 0

    within_deadline(main)


def test_after_the_end_of_the_input_nothing_can_be_asked(place: Place) -> None:
    async def main() -> None:
        async with Talk(place).session() as session:
            await session.end_input()
            with pytest.raises(ProcessInputError):
                await session.query("[[simple]]")
            assert [message async for message in session if isinstance(message, ResultMessage)] == []

    within_deadline(main)


# --- what does not fit in an argument, and what is gone


@pytest.mark.parametrize("option", ["system_prompt", "append_system_prompt"])
def test_a_system_prompt_of_200_kb_reaches_the_api(option: str, place: Place) -> None:
    text = "long words " * 20_000

    async def main() -> None:
        options = ClaudeOptions(cli_path=CLI, **{option: text})
        async with open_session(options, cwd=place.work, env=place.environment) as session:
            assert (await session.ask("[[simple]]")).result == "Hello, world."

    within_deadline(main)
    assert place.api is not None
    assert any(text.strip() in json.dumps(request.body.get("system", "")) for request in place.api.requests)


def test_settings_servers_and_agents_of_200_kb_are_taken(place: Place) -> None:
    options = ClaudeOptions(
        cli_path=CLI,
        system_prompt="",
        settings={"env": {"LONG": "x" * 100_000}, "cleanupPeriodDays": 30, "outputStyle": "y" * 100_000},
        mcp_config={"mcpServers": {"gone": {"command": "/bin/true", "env": {"LONG": "x" * 200_000}}}},
        agents={"reviewer": {"description": "Reviews " + "z" * 200_000, "prompt": "Review."}},
    )

    async def main() -> None:
        async with open_session(options, cwd=place.work, env=place.environment) as session:
            assert session.info is not None
            assert "reviewer" in [agent.name for agent in session.info.agents or ()]
            status = await session.request(McpStatusRequest())
            assert [server.name for server in status.mcpServers] == ["gone"]

    within_deadline(main)


def test_a_stale_session_id_raises_before_a_process_is_started_where_the_folder_is_known(place: Place) -> None:
    async def main() -> None:
        before = children()
        session = Talk(place).session(resume=SESSION_ID)
        with pytest.raises(SessionNotFoundError) as caught:
            async with session:
                raise AssertionError
        assert caught.value.folder == str(place.home / ".claude" / "projects")
        assert session.process is not None
        with pytest.raises(HandleError):
            _ = session.process.pid
        assert children() == before

    within_deadline(main)


def test_a_stale_session_id_of_a_cli_behind_a_script_is_the_same_error(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "claude"
    script.write_text(f'#!/bin/sh\nexec {CLI} "$@"\n')
    script.chmod(0o755)

    async def main() -> None:
        options = ClaudeOptions(cli_path=script, system_prompt="", resume=SESSION_ID)
        with pytest.raises(SessionNotFoundError, match="No conversation found with session ID") as caught:
            async with open_session(options, cwd=place.work, env=place.environment):
                raise AssertionError
        assert caught.value.folder == str(place.home / ".claude" / "projects")
        assert caught.value.result.is_error

    within_deadline(main)
