"""Connect a host and an agent in one process, to test the agent without starting a program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import ByteSendStream, ObjectSendStream

from claude_wire.agent import Agent, AgentOptions
from claude_wire.agent.agent import service_of
from claude_wire.messages import InitializeRequest
from claude_wire.process.options import ClaudeOptions
from claude_wire.session.open import STATE_VARIABLE, CallbackArguments
from claude_wire.session.session import Session
from claude_wire.streams.message_stream import MessageStream
from claude_wire.streams.tasks import Tasks
from claude_wire.support.arguments import nearest, type_of
from claude_wire.support.text import one_line
from claude_wire.support.waiting import cancel_scope

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: How many lines each direction can queue.
MAX_LINES = 64
#: How many seconds to wait for the agent to end.
LAST_SECONDS = 5.0


@asynccontextmanager
async def open_agent(
    agent: Agent | Callable[..., Any],
    options: ClaudeOptions | None = None,
    *,
    initialize: InitializeRequest | None = None,
    **arguments: Unpack[CallbackArguments],
) -> AsyncGenerator[Session, None]:
    """Serve an agent in memory, with a session as its host: ``async with open_agent(answer) as session``.

    ::

        async def test_my_agent():
            async with open_agent(answer) as session:
                result = await session.ask("hi")
                assert result.result == "You said: hi"

    Entering the block sends ``initialize`` and waits for the answer. Leaving the block ends the agent.

    Args:
        agent: an :class:`~claude_wire.agent.Agent`, or the function that answers prompts.
        options: the agent's flags; ``cli_path`` is ignored.

    All other arguments are the same as for :func:`~claude_wire.open_session`, such as ``can_use_tool``, ``hooks`` and
    ``mcp_servers``.

    Raises:
        Exception: an exception of the agent's ``lifespan``.
    """
    for name in arguments:
        if name not in CallbackArguments.__annotations__:
            hint = nearest(name, CallbackArguments.__annotations__)
            raise TypeError(f"open_agent has no argument {one_line(name)!r}{hint}")
    if not isinstance(agent, Agent) and not callable(agent):
        raise TypeError(f"open_agent takes an Agent or its function, not {type_of(agent)}; open_session runs a program")
    if not isinstance(agent, Agent):
        agent = Agent(agent)
    if not isinstance(options, (ClaudeOptions, type(None))):
        raise TypeError(f"open_agent takes ClaudeOptions(model=...), not {type_of(options)}")
    flags = [] if options is None else options.arguments()
    if arguments.get("can_use_tool") is not None and (options is None or options.permission_prompt_tool is None):
        flags += ["--permission-prompt-tool", "stdio"]
    service = service_of(agent, AgentOptions.parse(["agent", *flags], {STATE_VARIABLE: "1"}))
    to_agent, at_agent = anyio.create_memory_object_stream[bytes](MAX_LINES)
    to_host, at_host = anyio.create_memory_object_stream[bytes](MAX_LINES)
    failed: list[Exception] = []

    async def serve() -> None:
        async with at_agent, to_host:
            try:
                await service.run(at_agent, _Lines(to_host))
            except Exception as error:
                failed.append(error)

    tasks = Tasks()
    tasks.remember_context()
    tasks.start(serve, "claude-wire-agent")
    try:
        async with (
            at_host,
            MessageStream(at_host) as stream,
            to_agent,
            Session(stream, to_agent.send, dialect=agent.dialect, **arguments) as session,
        ):
            try:
                await session.initialize(initialize)
            except Exception as error:
                await tasks.wait(LAST_SECONDS)
                raise failed[0] if failed else error from None
            yield session
            service.interrupt()
            await tasks.wait(LAST_SECONDS)
    finally:
        tasks.cancel()
        with cancel_scope(shield=True):
            await tasks.wait(LAST_SECONDS)
        at_agent.close()  # if the task was cancelled before it began, it did not close the streams
        to_host.close()
    if failed:
        raise failed[0]


class _Lines(ByteSendStream):
    """The agent's output as an anyio stream."""

    def __init__(self, lines: ObjectSendStream[bytes]) -> None:
        self._lines = lines

    async def send(self, item: bytes) -> None:
        await self._lines.send(item)

    async def aclose(self) -> None:
        await self._lines.aclose()
