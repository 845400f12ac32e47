"""A host that asks for a long answer, pauses at the first delta, continues, and counts what it receives.

``python pausing.py HOST PAUSE BACKEND URL FOLDER SECONDS`` writes one JSON object to its standard output. Each
host is a separate process, so a pause can block all of its threads, and several hosts can pause at the same time.
"""

from __future__ import annotations

import ctypes
import dataclasses
import fcntl
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from claude_wire import ClaudeOptions, Decoder, InvalidLine, UserMessage, open_process
from claude_wire.integrations.agent_sdk import WireTransport
from places import CLI, Place
from scripts import DELTAS

__all__ = ["EVENTS", "HOSTS", "PAUSES", "Count"]

#: Number of stream events of the whole answer: one for each delta, two for its block and three for the message.
EVENTS = DELTAS + 5
#: Seconds that a host may take in addition to its pause.
PATIENCE = 180


@dataclasses.dataclass
class Count:
    """What one host received."""

    events: int = 0
    #: Whether the joined text of all deltas is the whole answer.
    whole: bool = False
    assistant: int = 0
    result: int = 0
    #: Number of invalid lines, such as a torn line.
    invalid: int = 0
    #: The class name of the exception that the iteration raised, if any.
    error: str | None = None
    #: Capacity of the CLI's stdout pipe in bytes.
    pipe: int = 0
    #: Length of the pause in seconds.
    paused: float = 0.0


def pipe_size() -> int:
    """Return the capacity in bytes of the stdout pipe of this process's only child."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread ended meanwhile
            found.update((task / "children").read_text().split())
    [child] = found
    fd = os.open(f"/proc/{child}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    try:
        assert stat.S_ISFIFO(os.fstat(fd).st_mode)
        return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
    finally:
        os.close(fd)


# --- How a supervisor goes away ---------------------------------------------------------------------------------------


async def by_await(seconds: float) -> None:
    """Pause the iteration while the event loop keeps running."""
    await anyio.sleep(seconds)


async def by_blocking(seconds: float) -> None:
    """Block the event loop while other threads keep running."""
    time.sleep(seconds)


async def by_holding_the_gil(seconds: float) -> None:
    """Hold the GIL, so no Python code runs, like a slow C extension."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


PAUSES: dict[str, Callable[[float], Awaitable[None]]] = {
    "await": by_await,
    "block": by_blocking,
    "gil": by_holding_the_gil,
}


# --- Hosts ------------------------------------------------------------------------------------------------------------

PROMPT = "[[long]]"


def _argv(prompt: str | None = None) -> list[str]:
    return ClaudeOptions(cli_path=CLI, system_prompt="", include_partial_messages=True).argv(prompt)


async def one_shot(place: Place) -> AsyncIterator[Any]:
    """Use `open_process` with the prompt as an argument and without input."""
    async with open_process(_argv(PROMPT), Decoder(dict), cwd=place.work, env=place.environment) as process:
        await process.end_input()
        async for message in process:
            yield message


async def closed_early(place: Place) -> AsyncIterator[Any]:
    """Use `open_process`, send the prompt as a message, and close the input immediately."""
    async with open_process(_argv(), Decoder(dict), cwd=place.work, env=place.environment) as process:
        await process.send(UserMessage.of(PROMPT))
        await process.end_input()
        async for message in process:
            yield message


async def session(place: Place) -> AsyncIterator[Any]:
    """Use `open_process`, send the prompt as a message, and close the input after the result."""
    async with open_process(_argv(), Decoder(dict), cwd=place.work, env=place.environment) as process:
        await process.send(UserMessage.of(PROMPT))
        async for message in process:
            if isinstance(message, dict) and message["type"] == "result":
                await process.end_input()
            yield message


def _options(place: Place) -> ClaudeAgentOptions:
    return ClaudeAgentOptions(cwd=place.work, env=place.environment, include_partial_messages=True)


async def sdk_query(place: Place) -> AsyncIterator[Any]:
    """Use ``query("text")`` of claude-agent-sdk with its own transport."""
    async for message in claude_agent_sdk.query(prompt=PROMPT, options=_options(place)):
        yield message


async def sdk_client(place: Place) -> AsyncIterator[Any]:
    """Use the client of claude-agent-sdk with its own transport."""
    async with ClaudeSDKClient(_options(place)) as client:
        await client.query(PROMPT)
        async for message in client.receive_response():
            yield message


async def wire_query(place: Place) -> AsyncIterator[Any]:
    """Use the same call of claude-agent-sdk over `WireTransport`."""
    options = _options(place)
    transport = WireTransport(PROMPT, options)
    async for message in claude_agent_sdk.query(prompt=PROMPT, options=options, transport=transport):
        yield message


async def wire_client(place: Place) -> AsyncIterator[Any]:
    """Use the same call of claude-agent-sdk over `WireTransport`."""
    options = _options(place)
    async with ClaudeSDKClient(options, transport=WireTransport(None, options)) as client:
        await client.query(PROMPT)
        async for message in client.receive_response():
            yield message


HOSTS: dict[str, Callable[[Place], AsyncIterator[Any]]] = {
    supervisor.__name__: supervisor
    for supervisor in (one_shot, closed_early, session, wire_query, wire_client, sdk_query, sdk_client)
}


async def run(supervisor: str, pause: str, seconds: float, place: Place) -> Count:
    """Send the prompt, pause at the first delta, then read the rest and count it."""
    count = Count()
    pieces: list[str] = []
    try:
        with anyio.fail_after(seconds + PATIENCE):
            async for message in HOSTS[supervisor](place):
                if isinstance(message, InvalidLine):
                    count.invalid += 1
                    continue
                plain = message if isinstance(message, dict) else dataclasses.asdict(message)
                if "event" in plain:
                    count.events += 1
                    piece = plain["event"].get("delta", {}).get("text")
                    if piece:
                        pieces.append(piece)
                    if len(pieces) == 1 and not count.paused:
                        count.pipe = pipe_size()
                        began = time.monotonic()
                        await PAUSES[pause](seconds)
                        count.paused = time.monotonic() - began
                elif plain.get("type") == "assistant" or isinstance(message, claude_agent_sdk.AssistantMessage):
                    count.assistant += 1
                elif plain.get("type") == "result" or isinstance(message, claude_agent_sdk.ResultMessage):
                    count.result += 1
    except Exception as error:
        count.error = type(error).__name__
    count.whole = "".join(pieces) == "".join(f"word {number} " for number in range(DELTAS))
    return count


def main(supervisor: str, pause: str, backend: str, url: str, folder: str, seconds: str) -> None:
    """Run one host from the command line, as the module docstring describes."""
    place = Place(url, Path(folder) / "home", Path(folder) / "work")
    count = anyio.run(run, supervisor, pause, float(seconds), place, backend=backend)
    json.dump(dataclasses.asdict(count), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
