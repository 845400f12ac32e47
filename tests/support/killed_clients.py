"""Clients of a supervisor that are killed, one after the other, each behind the cursor that the one before has noted.

    killed_clients.py FOLDER SESSION LOG KILLS SEED [COMMAND...]

Each client is a fork of this process. It notes each message that it takes in LOG, with its cursor, and dies by SIGKILL
at a point that chance chooses:

========  ===========================================================================
taken     behind a line that was taken and noted
asked     in a callback, before there is an answer
half      in the middle of writing a line: a prompt or an answer
sent      when a line was written, before it is acknowledged
known     when the acknowledgement has come
========  ===========================================================================

The last one lives, and takes all that there is. It prints how many died at which point, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from claude_wire import CanUseToolRequest, HookCallbackRequest, HookMatcher, PermissionResult, ResultMessage
from claude_wire.control.host_frames import Accepted, Cursor
from claude_wire.host import connect
from claude_wire.host.ways import CommandWay, SocketWay
from claude_wire.session.attached import link

POINTS = ("taken", "asked", "half", "sent", "known")
#: Seconds that a client may take.
SECONDS = 60
#: Prompts that all clients send together.
PROMPTS = 20


class Client:
    """One client, until it dies."""

    def __init__(self, log: str, number: int, point: str, count: int) -> None:
        self.log = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self.number = number
        self.point = point
        self.left = count
        self.greeted = False

    def reach(self, point: str) -> None:
        """Die here, if it is the point, often enough reached."""
        if point == self.point:
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self.left -= 1

    def note(self, *words: object) -> None:
        """Write a line into the log, in one piece."""
        os.write(self.log, " ".join(map(str, words)).encode() + b"\n")

    # --- callbacks

    async def may(self, request: CanUseToolRequest) -> PermissionResult:
        self.reach("asked")
        await asyncio.sleep(0.0005)
        return request.allow() if self.number % 2 else request.deny(f"by {self.number}")

    async def guard(self, request: HookCallbackRequest) -> dict[str, Any]:
        self.reach("asked")
        return {"reason": f"by {self.number}"}

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """As an MCP server."""

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """As an MCP server, which must have seen the handshake first."""
        self.reach("asked")
        if message["method"] == "initialize":
            self.greeted = True
        elif not self.greeted:
            self.note("wrong", message["method"])
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}} if "id" in message else None

    async def aclose(self) -> None:
        """As an MCP server."""

    # --- its life

    def watch(self) -> None:
        """Have it die in the middle of lines, behind them, and behind their acknowledgements."""
        send_socket, send_command = SocketWay.send, CommandWay.send
        take = link.Link._take

        def dying(send: Any) -> Any:
            async def half(way: Any, data: bytes) -> None:
                if self.point == "half" and self.left == 0:
                    await send(way, data[: len(data) // 2])
                self.reach("half")
                await send(way, data)
                self.reach("sent")

            return half

        def took(of: Any, frame: Any) -> None:
            take(of, frame)
            if isinstance(frame, Accepted):
                self.reach("known")

        SocketWay.send, CommandWay.send = dying(send_socket), dying(send_command)  # type: ignore[method-assign]
        link.Link._take = took  # type: ignore[method-assign]

    async def live(self, host: Any, id: str) -> None:
        with open(self.log, "rb", closefd=False) as file:
            noted = [line.split() for line in file.read().splitlines()]
        taken = [words for words in noted if words[0] == b"took"]
        prompts = [words[1].decode() for words in noted if words[0] == b"prompt"]
        results = sum(words[2] == b"result" for words in taken)
        after: Any = id
        if taken:
            after = Cursor(id, 1, int(taken[-1][1]))
        hooks = {"PreToolUse": [HookMatcher(self.guard, name="guard")]}
        arguments: Any = {"can_use_tool": self.may, "hooks": hooks, "mcp_servers": {"tools": self}}
        async with host.attach(after, take=True, **arguments) as session:
            self.watch()
            for uuid in prompts:  # nobody knows which of them have arrived
                await session.query("x", uuid=uuid)
            while len(prompts) < PROMPTS:
                if len(prompts) > 2 * self.number and self.point:
                    break
                prompts.append(f"p{len(prompts)}")
                self.note("prompt", prompts[-1])
                await session.query("x", uuid=prompts[-1])
            while results < PROMPTS:
                message: Any = await session.__anext__()
                kind = "result" if isinstance(message, ResultMessage) else "message"
                results += kind == "result"
                self.note("took", session.cursor.line, kind, message.uuid)
                self.reach("taken")


def run(client: Client, host: Any, id: str) -> int:
    """In a fork: live until it dies."""
    signal.alarm(SECONDS)
    try:
        asyncio.run(client.live(host, id))
    except BaseException as error:
        client.note("wrong", repr(error).replace(" ", "_"))
        return 1
    return 0


def main() -> None:
    """Have the clients live and die."""
    folder, id, log, kills, seed, *command = sys.argv[1:]
    chance = random.Random(int(seed))
    host = connect(command=command) if command else connect(folder)
    died: Counter[str] = Counter()
    for number in range(int(kills) + 1):
        point = POINTS[number % len(POINTS)] if number < int(kills) else ""
        child = os.fork()
        if child == 0:
            os._exit(run(Client(log, number, point, chance.choice([0, 0, 1, 2, 5])), host, id))
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            died[point] += 1
        elif status == 0:
            break
        else:
            sys.exit(f"client {number}, which was to die at {point!r}, ended with {status}")
    print(json.dumps(died))


if __name__ == "__main__":
    main()
