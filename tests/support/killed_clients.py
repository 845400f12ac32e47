"""Kill clients of a supervisor one after the other. Each continues after the last cursor that was logged.

    killed_clients.py FOLDER SESSION LOG KILLS SEED [COMMAND...]

Each client is a fork of this process. It writes each message that it takes to LOG, with its cursor, and dies by SIGKILL
at one of these points, after a random number of passes:

===================  ================================================================
taken                after it has taken and logged a line
asked                in a callback, before it answers
answer half          in the middle of an answer
answer written       after it has written an answer
answer journaled     when the journal has the answer, before it is acknowledged
answer acknowledged  after the acknowledgement of an answer
answer sent          when the CLI has taken the answer
prompt half          in the middle of a prompt
prompt written       after it has written a prompt, before it is acknowledged
prompt acknowledged  after the acknowledgement of a prompt
===================  ================================================================

The last client survives and takes all remaining messages. The program prints the number of deaths at each point, as
JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from busy_agent import LAST
from claude_wire import CanUseToolRequest, HookCallbackRequest, HookMatcher, ResultMessage
from claude_wire.messages import PermissionResult
from claude_wire_kit.supervisor import connect
from claude_wire_kit.supervisor.frames import Accepted, Cursor
from claude_wire_kit.supervisor.session import SupervisorTransport
from claude_wire_kit.supervisor.transport import CommandTransport, SocketTransport

POINTS = (
    "taken",
    "asked",
    "answer half",
    "answer written",
    "answer journaled",
    "answer acknowledged",
    "answer sent",
    "prompt half",
    "prompt written",
    "prompt acknowledged",
)
#: The time limit in seconds for a client, and for an answer to reach the journal and the CLI.
SECONDS = 120
#: The number of settled prompts that each client sends again.
AGAIN = 3


class Client:
    """One client, until it dies."""

    def __init__(self, log: str, journal: Path, number: int, point: str, count: int) -> None:
        self.log = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self.journal = journal
        self.number = number
        self.point = point
        self.left = count
        self.greeted = False
        #: "answer" or "prompt" for each line that this connection wrote.
        self.written: list[str] = []

    def reaches(self, point: str) -> bool:
        """Count a pass of ``point``. Return whether the client dies here now."""
        if point != self.point:
            return False
        self.left -= 1
        return self.left < 0

    def reach(self, point: str) -> None:
        """Die if the client's turn has come at this point."""
        if self.reaches(point):
            os.kill(os.getpid(), signal.SIGKILL)

    def wait_for(self, words: bytes, name: str) -> None:
        """Wait until a file of the journal contains these words, without reading from the supervisor."""
        until = time.monotonic() + SECONDS
        while words not in (self.journal / name).read_bytes()[-1_000_000:]:
            if time.monotonic() > until:
                self.note("wrong", name, "never had", words)
                os._exit(1)
            time.sleep(0.0005)

    def note(self, *words: object) -> None:
        """Write a line to the log with one write."""
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
        """Part of the MCP server's interface."""

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Part of the MCP server's interface. Note an error if ``initialize`` was not the first message."""
        self.reach("asked")
        if message["method"] == "initialize":
            self.greeted = True
        elif not self.greeted:
            self.note("wrong", message["method"])
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}} if "id" in message else None

    async def aclose(self) -> None:
        """Part of the MCP server's interface."""

    # --- the client's life

    def watch(self) -> None:
        """Patch the transports, so the client can die within a line, after a line, and after an acknowledgement."""
        send_socket, send_command = SocketTransport.send, CommandTransport.send
        take = SupervisorTransport.take

        def dying(send: Any) -> Any:
            async def sending(way: Any, data: bytes) -> None:
                message = json.loads(data)
                kind = {"control_response": "answer", "user": "prompt"}.get(message.get("type"))
                if kind is None:  # the command that attaches
                    await send(way, data)
                    return
                self.written.append(kind)
                if self.reaches(f"{kind} half"):
                    await send(way, data[: len(data) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                await send(way, data)
                self.reach(f"{kind} written")
                if kind == "answer":
                    self.after_answer(message["response"]["request_id"].encode())

            return sending

        def took(of: Any, frame: Any) -> None:
            take(of, frame)
            if isinstance(frame, Accepted):
                self.reach(f"{self.written[frame.lines - 1]} acknowledged")

        SocketTransport.send, CommandTransport.send = dying(send_socket), dying(send_command)
        SupervisorTransport.take = took

    def after_answer(self, id: bytes) -> None:
        """Called after an answer was written.

        Die once it is in the journal, or once the CLI reports that it took the answer.
        """
        if self.reaches("answer journaled"):
            self.wait_for(b'"%s"' % id, "stdin.ndjson")
            os.kill(os.getpid(), signal.SIGKILL)
        if self.reaches("answer sent"):
            self.wait_for(b'"taken %s"' % id, "stdout.ndjson")
            os.kill(os.getpid(), signal.SIGKILL)

    async def live(self, supervisor: Any, id: str) -> None:
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
        self.watch()
        async with supervisor.attach(after, take=True, **arguments) as session:
            unsure = [uuid for uuid in prompts if uuid not in session.attached.owed] + prompts[-AGAIN:]
            # A client that dies at a prompt first writes as many new prompts as it needs to reach its death.
            count = self.left + 1 if self.point.startswith("prompt") else len(prompts) == 0
            new = [f"p{len(prompts) + n}" for n in range(count)] + ([] if self.point else [LAST])
            prompts += new
            for uuid in new:
                self.note("prompt", uuid)
            for uuid in new + unsure:
                await session.query("x", uuid=uuid)
            while self.point or results < len(prompts):
                message: Any = await session.__anext__()
                kind = "result" if isinstance(message, ResultMessage) else "message"
                results += kind == "result"
                self.note("took", session.cursor.line, kind, message.uuid)
                self.reach("taken")


def run(client: Client, supervisor: Any, id: str) -> int:
    """Run the client in a fork until it dies."""
    signal.alarm(SECONDS)
    try:
        asyncio.run(client.live(supervisor, id))
    except BaseException as error:
        client.note("wrong", repr(error).replace(" ", "_"))
        return 1
    return 0


def main() -> None:
    """Run all clients and print the counts of their deaths."""
    folder, id, log, kills, seed, *command = sys.argv[1:]
    chance = random.Random(int(seed))
    supervisor = connect(command=command, timeout=SECONDS) if command else connect(folder, timeout=SECONDS)
    journal = Path(folder, "sessions", id, "parts", "000001")
    died: Counter[str] = Counter()
    for number in range(int(kills) + 1):
        point = POINTS[number % len(POINTS)] if number < int(kills) else ""
        child = os.fork()
        if child == 0:
            os._exit(run(Client(log, journal, number, point, chance.choice([0, 0, 1, 2, 5])), supervisor, id))
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
