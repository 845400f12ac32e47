#!/usr/bin/env -S claude-wire agent
"""An agent that wraps another agent. It passes on the inner agent's messages, and allows only some of its tools.

Environment variables: INNER_AGENT is the inner agent's path (default: the Claude Code CLI). ALLOWED lists the tools
that the inner agent may use if the host also allows them.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from anyio import CancelScope

from claude_wire import (
    AssistantMessage,
    CanUseToolRequest,
    ClaudeOptions,
    ResultMessage,
    StreamEvent,
    ToolUseBlock,
    UserMessage,
    open_session,
)
from claude_wire.agent import Agent, AgentSession, Turn
from claude_wire.messages import PermissionResult

ALLOWED = os.environ.get("ALLOWED", "Read,Glob,Grep").split(",")


@asynccontextmanager
async def inner_session(session: AgentSession) -> AsyncIterator[None]:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        if request.tool_name not in ALLOWED:
            return request.deny(f"{request.tool_name} may not be used here")
        use = ToolUseBlock(id=request.tool_use_id or "", name=request.tool_name, input=request.input)
        decision = await session.state["turn"].allowed(use)
        return request.allow(updated_input=decision.input) if decision.ok else request.deny(decision.message)

    wanted = session.options
    options = ClaudeOptions(
        cli_path=os.environ.get("INNER_AGENT"),
        model=wanted.model,
        include_partial_messages=wanted.include_partial_messages,
    )
    async with open_session(options, can_use_tool=ask) as inner:
        session.state["inner"] = inner
        yield


async def answer(turn: Turn) -> ResultMessage | None:
    turn.session.state["turn"] = turn
    inner = turn.session.state["inner"]
    ids = {"session_id": turn.session.id}
    await inner.query(turn.prompt.content)
    try:
        async for message in inner.receive_run():
            if isinstance(message, ResultMessage):
                return msgspec.structs.replace(
                    message, uuid=None, user_message_uuid=None, user_message_uuids=None, **ids
                )
            if isinstance(message, (AssistantMessage, StreamEvent, UserMessage)):
                await turn.emit(msgspec.structs.replace(message, **ids))
    except BaseException:
        with CancelScope(shield=True):  # our turn was interrupted, so interrupt the inner turn
            await inner.interrupt()
            async for _ in inner.receive_run():
                pass
        raise
    return None


agent = Agent(answer, lifespan=inner_session)
