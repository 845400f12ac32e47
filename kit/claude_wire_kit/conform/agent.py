"""The program that a host starts in place of the CLI.

Its arguments are ``SCENARIO FOLDER LIMIT [FLAGS...]``. It does what the scenario's agent does, and writes a
recording into the folder. SIGALRM kills it after LIMIT seconds.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from claude_wire import PROTOCOL_VERSION
from claude_wire.agent import Agent, AgentOptions, AgentSession, Turn
from claude_wire_kit.conform.scenarios import SCENARIOS
from claude_wire_kit.conform.wire import Wire


@asynccontextmanager
async def _resumed(session: AgentSession) -> AsyncGenerator[None, None]:
    """Keep the session id if the host resumes a session."""
    session.id = session.options.resume or session.id
    yield


async def _serve(agent: Agent, wire: Wire) -> int:
    code = await agent.serve(wire.receive(), wire)
    await anyio.sleep(wire.linger)
    return code


def main(argv: list[str]) -> None:
    """Run as the CLI of one host."""
    _, name, folder, limit, *flags = argv
    options = AgentOptions.parse(["claude", *flags])
    if options.version:
        print(f"{PROTOCOL_VERSION} (Claude Code)")
        return
    signal.alarm(int(limit))
    play = SCENARIOS[name].play
    wire = Wire(folder, flags)

    async def answer(turn: Turn) -> object:
        return await play(turn, wire)

    init = {"tools": ["Bash", "Read"]}
    agent = Agent(answer, options=options, init=init, model="conform-1", lifespan=_resumed)
    wire.exit(anyio.run(_serve, agent, wire))


if __name__ == "__main__":
    main(sys.argv)
