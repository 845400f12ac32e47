"""``open_agent`` lets the author of an agent test it without a process."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from async_backends import DEADLINE
from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ClaudeOptions,
    HookMatcher,
    ResultMessage,
    StreamEvent,
    UserDialogCancelled,
    UserDialogCompleted,
)
from claude_wire.agent import Agent, Turn
from claude_wire.errors import ExecutionError, TurnCancelledError
from claude_wire.messages import RequestUserDialogRequest
from claude_wire.testing import open_agent

pytestmark = pytest.mark.anyio


async def echo(turn: Turn) -> None:
    await turn.stream("You said: ")
    await turn.stream(turn.text)


async def test_the_function_of_an_agent_answers_a_session() -> None:
    with anyio.fail_after(DEADLINE):
        async with open_agent(echo) as session:
            for text in ("one", "two"):
                result = await session.ask(text)
                assert result.result == f"You said: {text}"


async def test_flags_and_callbacks_are_those_of_a_host() -> None:
    asked: list[Any] = []

    async def tool(turn: Turn) -> None:
        outcome = await turn.run_tool("Bash", {"command": "ls"}, lambda given: given["command"])
        await turn.say(str(outcome.content))

    async def ask(request: CanUseToolRequest) -> Any:
        asked.append(request.tool_name)
        return request.allow(updated_input={"command": "pwd"})

    async def hook(call: Any) -> None:
        asked.append("hook")

    options = ClaudeOptions(include_partial_messages=True, model="mine")
    with anyio.fail_after(DEADLINE):
        async with open_agent(
            Agent(tool), options, can_use_tool=ask, hooks={"PreToolUse": [HookMatcher(hook)]}
        ) as session:
            await session.query("go")
            messages = [message async for message in session.receive_run()]
    assert asked == ["hook", "Bash"]
    assert [message.text for message in messages if isinstance(message, AssistantMessage) and message.text] == ["pwd"]
    assert {message.message.model for message in messages if isinstance(message, AssistantMessage)} == {"mine"}
    assert any(isinstance(message, StreamEvent) for message in messages)


async def test_errors_come_as_from_a_process(capfd: pytest.CaptureFixture[str]) -> None:
    async def fail(turn: Turn) -> None:
        raise LookupError("nothing")

    async with open_agent(fail) as session:
        with pytest.raises(ExecutionError, match="LookupError: nothing"):
            await session.ask("hi")
    assert "raise LookupError" in capfd.readouterr().err


async def test_a_turn_that_is_under_way_at_the_end_is_interrupted() -> None:
    ended: list[str] = []

    async def forever(turn: Turn) -> None:
        try:
            await turn.say("working")
            await anyio.sleep_forever()
        finally:
            ended.append(turn.text)

    with anyio.fail_after(DEADLINE):
        async with open_agent(forever) as session:
            await session.query("a")
            async for message in session:
                if isinstance(message, AssistantMessage):
                    break
        assert ended == ["a"]
        async with open_agent(forever) as session:
            await session.query("b")
            async for message in session:
                if isinstance(message, AssistantMessage):
                    await session.interrupt()
                    break
            [result] = [message async for message in session.receive_run() if isinstance(message, ResultMessage)]
            with pytest.raises(TurnCancelledError):
                result.raise_for_error()
        assert ended == ["a", "b"]


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_agent(echo):
            1 / 0  # noqa: B018 - the division must raise


async def test_what_the_lifespan_raises_comes_out() -> None:
    @asynccontextmanager
    async def broken(session: Any) -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    with pytest.raises(LookupError, match="no database"):
        async with open_agent(Agent(echo, lifespan=broken)):
            pass

    @asynccontextmanager
    async def breaks(session: Any) -> AsyncIterator[None]:
        yield
        raise LookupError("at the end")

    with pytest.raises(LookupError, match="at the end"):
        async with open_agent(Agent(echo, lifespan=breaks)) as session:
            await session.ask("hi")


async def test_options_are_no_dict() -> None:
    with pytest.raises(TypeError, match=r"open_agent takes ClaudeOptions\(model=...\), not dict"):
        async with open_agent(echo, {"model": "mine"}):
            pytest.fail("it was entered")


async def test_all_arguments_of_a_session_are_accepted() -> None:
    sent: list[bytes] = []
    with anyio.fail_after(DEADLINE):
        async with open_agent(echo, on_sent=sent.append) as session:
            await session.ask("hi")
    assert b'"initialize"' in sent[0]
    with pytest.raises(TypeError, match="cwd"):
        async with open_agent(echo, cwd="/"):  # type: ignore[call-arg]
            pytest.fail("it was entered")


def test_a_wrong_argument_leaves_no_stream_open(recwarn: pytest.WarningsRecorder) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="hooks"):
            async with open_agent(lambda turn: "x", hooks={"PreToolUse": 5}):  # type: ignore[dict-item]
                pass

    anyio.run(main)
    gc.collect()
    assert not [each for each in recwarn if each.category is ResourceWarning]


async def test_a_dialog_of_an_agent_is_shown_by_the_host_or_cancelled() -> None:
    asked: list[tuple[str, dict[str, Any], str | None]] = []
    found: list[Any] = []

    def choose(request: RequestUserDialogRequest) -> UserDialogCompleted:
        asked.append((request.dialog_kind, request.payload, request.tool_use_id))
        return UserDialogCompleted(result={"choice": 1})

    def fail(request: RequestUserDialogRequest) -> UserDialogCompleted:
        raise ValueError("no screen")

    async def answer(turn: Turn) -> None:
        use = await turn.use_tool("Bash", {})
        found.append(await turn.show_dialog("choice", {"title": "Which?"}, use=use))
        asked.append(("use", {}, use.id))
        found.extend([await turn.show_dialog(kind, {}) for kind in ("broken", "unlisted")])

    with anyio.fail_after(DEADLINE):
        async with open_agent(answer, dialogs={"choice": choose, "broken": fail}) as session:
            await session.ask("go")
    assert found == [UserDialogCompleted(result={"choice": 1}), UserDialogCancelled(), UserDialogCancelled()]
    assert asked == [("choice", {"title": "Which?"}, asked[1][2]), ("use", {}, asked[1][2])]
