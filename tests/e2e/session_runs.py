"""The conversations of sdk_runs.py, with several turns, tasks and subagents, held through `open_session`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from claude_wire import CanUseToolRequest, ResultMessage
from claude_wire.messages import (
    BackgroundTasksRequest,
    CancelAsyncMessageRequest,
    GetTaskOutputRequest,
    PermissionResult,
    RewindFilesRequest,
    StopTaskRequest,
    TaskNotificationMessage,
    TaskStartedMessage,
)
from drift.requests import REQUESTS
from scripts import SCHEMA, SESSION_ID, UUIDS
from through_session import Talk, plain_answer

__all__ = ["CONVERSATIONS"]


def _tasks(talk: Talk) -> list[str]:
    return [message.task_id for message in talk.messages if isinstance(message, TaskStartedMessage)]


async def background_bash(talk: Talk) -> None:
    async with talk.session(allowed_tools=["Bash"]) as session:
        await talk.query(session, "[[background_bash]]")
        # A background command may run forever, so the run ends without it. The turn that its end starts still arrives.
        await talk.run(session)
        (talk.place.work / "go").touch()
        await talk.turn(session)


async def background_agent(talk: Talk) -> None:
    assert talk.place.api is not None
    async with talk.session(allowed_tools=["Bash"]) as session:
        await talk.query(session, "[[background_agent]]")
        async for message in session.receive_run():
            talk.messages.append(message)
            if isinstance(message, ResultMessage):
                talk.place.api.open("scout")


async def background_stopped(talk: Talk) -> None:
    async with talk.session(allowed_tools=["Bash"]) as session:
        await talk.query(session, "[[background_stopped]]")
        async for message in session:
            talk.messages.append(message)
            if isinstance(message, ResultMessage):
                [task] = _tasks(talk)
                await session.request(StopTaskRequest(task_id=task))
            elif isinstance(message, TaskNotificationMessage):
                return


async def sent_away(talk: Talk) -> None:
    """Send a foreground command to the background, read its output so far, and stop it."""
    async with talk.session(allowed_tools=["Bash"]) as session:
        await talk.query(session, "[[sent_away]]")
        async for message in session:
            talk.messages.append(message)
            if isinstance(message, TaskStartedMessage):
                await talk.request(session, BackgroundTasksRequest(tool_use_id=message.tool_use_id))
            elif isinstance(message, ResultMessage):
                [task] = _tasks(talk)
                await talk.place.file("begun")
                await talk.request(session, GetTaskOutputRequest(task_id=task))
                await talk.request(session, StopTaskRequest(task_id=task))
            elif isinstance(message, TaskNotificationMessage):
                return


async def taken_back(talk: Talk) -> None:
    """Cancel one of two queued prompts. Send a prompt twice: the CLI answers it once."""
    assert talk.place.api is not None
    async with talk.session() as session:
        await talk.query(session, "[[held]]", UUIDS[0])
        await talk.place.asked("held")
        await talk.query(session, "[[simple]]", UUIDS[1])
        for _ in range(2):
            await talk.query(session, "[[again]]", UUIDS[2])
        await talk.request(session, CancelAsyncMessageRequest(message_uuid=UUIDS[1]))
        talk.place.api.open("held")
        await talk.turn(session)
        await talk.turn(session)


async def rewind(talk: Talk) -> None:
    """Let the model write a file, then rewind the files: the file must be gone."""
    env = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}
    async with talk.session(permission_mode="acceptEdits", env=env) as session:
        await talk.query(session, "[[write]]", UUIDS[0])
        await talk.turn(session)
        for dry_run in (True, None):
            await talk.request(session, RewindFilesRequest(user_message_id=UUIDS[0], dry_run=dry_run))
            talk.calls.append((talk.place.work / "written.txt").exists())


async def agent(talk: Talk) -> None:
    async with talk.session(allowed_tools=["Bash"], include_partial_messages=True) as session:
        await talk.query(session, "[[agent]]")
        await talk.turn(session)


def _structured(script: str) -> Callable[[Talk], Awaitable[None]]:
    async def conversation(talk: Talk) -> None:
        await talk.ask(f"[[{script}]]", json_schema=SCHEMA)

    return conversation


async def compact(talk: Talk) -> None:
    async with talk.session() as session:
        for prompt in ("[[simple]]", "/compact [[summary]]", "[[again]]"):
            await talk.query(session, prompt)
            await talk.turn(session)


async def resume(talk: Talk) -> None:
    """Start a session, resume it, and fork it."""
    await talk.ask("[[simple]]", session_id=SESSION_ID)
    await talk.ask("[[again]]", resume=SESSION_ID)
    await talk.ask("[[again]]", resume=SESSION_ID, fork_session=True)


async def max_budget(talk: Talk) -> None:
    await talk.ask("[[endless]]", max_budget_usd=0.0001, allowed_tools=["Bash"])


async def interrupt_bash(talk: Talk) -> None:
    """Interrupt the turn while a Bash command runs."""
    async with talk.session(allowed_tools=["Bash"]) as session:
        await talk.query(session, "[[long_bash]]")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.turn, session)
            await talk.place.file("begun")
            await session.interrupt()
        await talk.query(session, "[[again]]")
        await talk.turn(session)


async def set_permission_mode(talk: Talk) -> None:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.tool_use_id))
        return request.deny("Not today")

    async with talk.session(host={"can_use_tool": ask}) as session:
        await talk.query(session, "[[write]]")
        await talk.turn(session)
        await session.set_permission_mode("acceptEdits")
        await talk.query(session, "[[write]]")
        await talk.turn(session)


async def requests(talk: Talk) -> None:
    """Send every control request that the CLI can answer without a network."""
    (talk.place.work / "below").mkdir()
    async with talk.session(model="claude-sonnet-4-5") as session:
        talk.answers.append(("initialize", plain_answer(session.info)))
        await talk.query(session, "[[simple]]")
        await talk.turn(session)
        for request in REQUESTS:
            await talk.request(session, request)


CONVERSATIONS: dict[str, Callable[[Talk], Awaitable[None]]] = {
    **{
        conversation.__name__: conversation
        for conversation in (
            background_bash,
            background_agent,
            background_stopped,
            sent_away,
            taken_back,
            rewind,
            agent,
            compact,
            resume,
            max_budget,
            interrupt_bash,
            set_permission_mode,
            requests,
        )
    },
    **{script: _structured(script) for script in ("structured", "unstructured", "never_fits")},
}
