"""The agent that both official SDKs drive. The first word of the prompt selects what it does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import anyio

from claude_wire.agent import Agent, Turn
from claude_wire.messages import SetPermissionModeRequest


async def words(text: str) -> AsyncIterator[str]:
    for word in text.split(" "):
        yield word + " "


async def answer(turn: Turn) -> Any:
    what, _, rest = turn.text.partition(" ")
    return await ACTS[what](turn, rest)


async def echo(turn: Turn, rest: str) -> None:
    turn.session.state["turns"] = turn.session.state.get("turns", 0) + 1
    await turn.say(f"{turn.session.state['turns']}: {rest}")


async def stream(turn: Turn, rest: str) -> None:
    await turn.thinking("Let me see.")
    await turn.stream(words(rest))


async def bash(turn: Turn, rest: str) -> None:
    outcome = await turn.run_tool("Bash", {"command": rest}, lambda given: f"ran {given['command']}")
    await turn.say(f"ran: {outcome.ran}")


async def add(turn: Turn, rest: str) -> None:
    a, b = map(int, rest.split())
    outcome = await turn.run_tool("mcp__calc__add", {"a": a, "b": b})
    failed = await turn.run_tool("mcp__calc__fail")
    await turn.say(f"errors: {outcome.is_error}, {failed.is_error}")


async def forever(turn: Turn, rest: str) -> None:
    await turn.stream("working")
    try:
        await anyio.sleep_forever()
    finally:
        turn.session.state["cleaned"] = True


async def forever_in_tool(turn: Turn, rest: str) -> None:
    async def tool(given: dict[str, Any]) -> None:
        await turn.session.state["begun"].wait()

    turn.session.state["begun"] = anyio.Event()
    await turn.say("working")
    await turn.run_tool("Bash", {"command": "sleep"}, tool)


async def cleaned(turn: Turn, rest: str) -> None:
    await turn.say(f"cleaned: {turn.session.state.get('cleaned')}")


async def who(turn: Turn, rest: str) -> None:
    await turn.say(f"{turn.session.model}, {turn.session.permission_mode}")


async def fold(turn: Turn, rest: str) -> None:
    """Answer the prompts that came before the mode was set, within this turn."""
    await turn.say("waiting")
    await mode_set.wait()
    prompts = await turn.injected()
    await turn.say(f"And: {' | '.join(prompt.text for prompt in prompts)}")


async def pause(turn: Turn, rest: str) -> None:
    """Leave the prompts that came before the mode was set where they are."""
    await turn.say("waiting")
    await mode_set.wait()
    await turn.say("rested")


async def structured(turn: Turn, rest: str) -> dict[str, Any]:
    await turn.say("Here it is.")
    return {"name": rest, "asked": sorted(turn.schema["properties"]) if turn.schema else None}


async def fail(turn: Turn, rest: str) -> None:
    raise LookupError("nothing was found")


async def loud(turn: Turn, rest: str) -> None:
    """Write to standard output in every way that could break the NDJSON lines."""
    print("print")
    os.write(1, b"descriptor\n")
    subprocess.run(["echo", "child"], check=True)
    await turn.say("quiet")


async def helper(turn: Turn, rest: str) -> None:
    use = await turn.use_tool("Task", {"prompt": rest})
    async with turn.subagent(use, description="helps") as scout:
        await scout.say(f"scouting {rest}")
    await turn.tool_result(use, "found")
    await turn.say("done")


async def set_mode(request: SetPermissionModeRequest) -> None:
    mode_set.set()


#: Set when the host has changed the permission mode. Everything that it sent earlier has arrived by then.
mode_set = anyio.Event()
NAMED = [echo, stream, bash, add, forever, forever_in_tool, cleaned, who, fold, pause, structured, fail, loud, helper]
ACTS = {act.__name__: act for act in NAMED}

if __name__ == "__main__":
    told = {"tools": ["Bash", "Task"]}
    Agent(answer, model="driven-1", init=told, requests={SetPermissionModeRequest: set_mode}).main()
