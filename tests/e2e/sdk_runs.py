"""Conversations through claude-agent-sdk with several turns, background tasks, subagents or resumed sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import claude_agent_sdk
from claude_agent_sdk import ClaudeSDKClient, ResultMessage, TaskNotificationMessage, TaskStartedMessage

from claude_wire.messages import (
    BackgroundTasksRequest,
    CancelAsyncMessageRequest,
    GetTaskOutputRequest,
    RewindFilesRequest,
    StopTaskRequest,
)
from drift.requests import REQUESTS
from scripts import SCHEMA, SESSION_ID, UUIDS
from through_sdk import SDK, user

__all__ = ["CONVERSATIONS"]


async def _two_results(sdk: SDK, client: ClaudeSDKClient, between: Callable[[], Awaitable[None]]) -> None:
    """Record the messages through the second result. Call `between` after the first result."""
    results = 0
    async for message in client.receive_messages():
        sdk.seen.messages.append(message)
        if isinstance(message, ResultMessage):
            results += 1
            if results == 2:
                return
            await between()


async def background_bash(sdk: SDK) -> None:
    async def go() -> None:
        (sdk.place.work / "go").touch()

    async with sdk.client(allowed_tools=["Bash"]) as client:
        await client.query("[[background_bash]]")
        await _two_results(sdk, client, go)


async def background_agent(sdk: SDK) -> None:
    async def go() -> None:
        assert sdk.place.api is not None
        sdk.place.api.open("scout")

    async with sdk.client(allowed_tools=["Bash"]) as client:
        await client.query("[[background_agent]]")
        await _two_results(sdk, client, go)


async def background_stopped(sdk: SDK) -> None:
    async with sdk.client(allowed_tools=["Bash"]) as client:

        async def stop() -> None:
            [task] = sdk.seen.of(TaskStartedMessage)
            await client.stop_task(task.task_id)

        await client.query("[[background_stopped]]")
        await _until_stopped(sdk, client, stop)


async def _until_stopped(sdk: SDK, client: ClaudeSDKClient, stop: Callable[[], Awaitable[None]]) -> None:
    async for message in client.receive_messages():
        sdk.seen.messages.append(message)
        if isinstance(message, ResultMessage):
            await stop()
        elif isinstance(message, TaskNotificationMessage):
            return


async def sent_away(sdk: SDK) -> None:
    """Send a foreground command to the background, read its output so far, and stop it."""
    async with sdk.client(allowed_tools=["Bash"]) as client:
        await client.query("[[sent_away]]")
        async for message in client.receive_messages():
            sdk.seen.messages.append(message)
            if isinstance(message, TaskStartedMessage):
                await sdk.request(client, BackgroundTasksRequest(tool_use_id=message.tool_use_id))
            elif isinstance(message, ResultMessage):
                [task] = sdk.seen.of(TaskStartedMessage)
                await sdk.place.file("begun")
                await sdk.request(client, GetTaskOutputRequest(task_id=task.task_id))
                await sdk.request(client, StopTaskRequest(task_id=task.task_id))
            elif isinstance(message, TaskNotificationMessage):
                return


async def taken_back(sdk: SDK) -> None:
    """Cancel one of two queued prompts. Send a prompt twice: the CLI answers it once."""
    assert sdk.place.api is not None
    async with sdk.client() as client:
        await client.query(_one("[[held]]", UUIDS[0]))
        await sdk.place.asked("held")
        for uuid in (*UUIDS[1:], UUIDS[2]):
            await client.query(_one("[[simple]]" if uuid == UUIDS[1] else "[[again]]", uuid))
        await sdk.request(client, CancelAsyncMessageRequest(message_uuid=UUIDS[1]))
        sdk.place.api.open("held")
        await sdk.turn(client)
        await sdk.turn(client)


async def rewind(sdk: SDK) -> None:
    """Let the model write a file, then rewind the files: the file must be gone."""
    options = {"permission_mode": "acceptEdits", "enable_file_checkpointing": True}
    async with sdk.client(**options) as client:
        await client.query(_one("[[write]]", UUIDS[0]))
        await sdk.turn(client)
        for dry_run in (True, None):
            await sdk.request(client, RewindFilesRequest(user_message_id=UUIDS[0], dry_run=dry_run))
            sdk.seen.calls.append((sdk.place.work / "written.txt").exists())


async def _one(prompt: str, uuid: str) -> AsyncIterator[dict[str, Any]]:
    yield {**user(prompt), "uuid": uuid}


async def agent(sdk: SDK) -> None:
    async with sdk.client(allowed_tools=["Bash"], include_partial_messages=True) as client:
        await client.query("[[agent]]")
        await sdk.turn(client)


async def structured(sdk: SDK) -> None:
    await sdk.query("[[structured]]", output_format={"type": "json_schema", "schema": SCHEMA})


async def unstructured(sdk: SDK) -> None:
    await sdk.query("[[unstructured]]", output_format={"type": "json_schema", "schema": SCHEMA})


async def never_fits(sdk: SDK) -> None:
    await sdk.query("[[never_fits]]", output_format={"type": "json_schema", "schema": SCHEMA})


async def compact(sdk: SDK) -> None:
    async with sdk.client() as client:
        for prompt in ("[[simple]]", "/compact [[summary]]", "[[again]]"):
            await client.query(prompt)
            await sdk.turn(client)


async def resume(sdk: SDK) -> None:
    """Start a session, resume it, and fork it."""
    await sdk.query("[[simple]]", session_id=SESSION_ID)
    await sdk.query("[[again]]", resume=SESSION_ID)
    await sdk.query("[[again]]", resume=SESSION_ID, fork_session=True)


async def max_budget(sdk: SDK) -> None:
    await sdk.query("[[endless]]", max_budget_usd=0.0001, allowed_tools=["Bash"])


async def interrupt_bash(sdk: SDK) -> None:
    """Interrupt the turn while a Bash command runs."""
    async with sdk.client(allowed_tools=["Bash"]) as client:
        await client.query("[[long_bash]]")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sdk.turn, client)
            await sdk.place.file("begun")
            await client.interrupt()
        await client.query("[[again]]")
        await sdk.turn(client)


async def set_permission_mode(sdk: SDK) -> None:
    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, context.tool_use_id))
        return claude_agent_sdk.PermissionResultDeny(message="Not today")

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[write]]")
        await sdk.turn(client)
        await client.set_permission_mode("acceptEdits")
        await client.query("[[write]]")
        await sdk.turn(client)


async def requests(sdk: SDK) -> None:
    """Send every control request that the CLI can answer without a network."""
    (sdk.place.work / "below").mkdir()
    async with sdk.client(model="claude-sonnet-4-5") as client:
        sdk.seen.answers.append(("initialize", await client.get_server_info()))
        await client.query("[[simple]]")
        await sdk.turn(client)
        for request in REQUESTS:
            await sdk.request(client, request)


CONVERSATIONS: dict[str, Callable[[SDK], Awaitable[None]]] = {
    conversation.__name__: conversation
    for conversation in (
        background_bash,
        background_agent,
        background_stopped,
        sent_away,
        taken_back,
        rewind,
        agent,
        structured,
        unstructured,
        never_fits,
        compact,
        resume,
        max_budget,
        interrupt_bash,
        set_permission_mode,
        requests,
    )
}
