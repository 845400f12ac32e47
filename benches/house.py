"""A supervisor in a process of its own, its sessions, and their clients, for the benches of the host.

Run as a program, it is that supervisor: its arguments are the state folder and the event loop.

The CLI of each session is a real process, ``sleep``, so that the supervisor holds all that it holds of a CLI: the
process, its three pipes and its journal. The bench writes into the output of each of them, by way of
``/proc/PID/fd/1``. So nothing else takes processor time or memory, and the supervisor cannot tell the difference.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import workloads

SECONDS = 60.0


class Hosted:
    """A session and a client that follows it, if one does.

    Attributes:
        id: the host's own id of it.
        output: a descriptor of the output of its CLI.
    """

    def __init__(self, id: str, pid: int) -> None:
        self.id = id
        self.output = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
        self._client: socket.socket | None = None

    @property
    def client(self) -> socket.socket:
        """The connection of the client."""
        assert self._client is not None
        return self._client

    def attach(self, house: House) -> None:
        """A driver follows it, and has all lines that there are."""
        self._client, answer = house.ask({"attach": self.id, "role": "driver"})
        assert answer["type"] == "host_attached", answer

    def take(self, size: int) -> None:
        """Receive so many bytes."""
        while size > 0:
            size -= len(self.client.recv(1 << 20))
        assert size == 0

    def close(self) -> None:
        os.close(self.output)
        if self._client is not None:
            self._client.close()


class House:
    """A supervisor."""

    def __init__(self, folder: Path, loop: str) -> None:
        self._folder = folder
        self._process = subprocess.Popen([sys.executable, __file__, str(folder), loop], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"started\n"
        self.sessions: list[Hosted] = []

    def ask(self, command: dict[str, Any]) -> tuple[socket.socket, Any]:
        """A connection, and the answer to its first command."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(SECONDS)
        client.connect(str(self._folder / "socket"))
        client.sendall(json.dumps(command).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += client.recv(1)
        return client, json.loads(answer)

    def create(self, argv: list[str]) -> tuple[str, int]:
        """The id of a new session, and the pid of its CLI."""
        spec = {"argv": argv, "cwd": str(self._folder), "env": dict(os.environ)}
        client, answer = self.ask({"create": spec, "detach": True})
        client.close()
        return answer["id"], answer["pid"]

    def open(self, count: int, *, attached: bool) -> None:
        """So many sessions more, which are idle: their CLI has answered ``initialize``, and all of that has arrived."""
        line = workloads.initialized("claude_wire_host_initialize")
        opened = [Hosted(*self.create(["sleep", "1000000"])) for _ in range(count)]
        self.sessions += opened
        for session in opened:
            if attached:
                session.attach(self)
            os.write(session.output, line)
            if attached:
                session.take(len(line))
        while True:
            client, answer = self.ask({"list": {}})
            client.close()
            if all(info["life"] == "idle" for info in answer["sessions"]):
                return

    @property
    def seconds(self) -> float:
        """The processor time that it has taken, its part of the kernel's included."""
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    @property
    def resident(self) -> int:
        """The bytes of memory that it holds, without those that it shares with other processes."""
        fields = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().split()
        return int(fields[fields.index("Pss:") + 1]) * 1024

    def close(self) -> None:
        """End it, and with it all CLIs."""
        for session in self.sessions:
            session.close()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def main(path: str, loop: str) -> None:
    from claude_wire.host.disk.folder import StateFolder
    from claude_wire.host.supervisor import Limits, Supervisor

    folder = StateFolder(path)
    folder.take()
    limits = Limits(sessions=2_000, connections=4_000)
    run = Supervisor(folder, limits=limits).run(lambda: print("started", flush=True))
    if loop == "uvloop":
        import uvloop

        uvloop.run(run)
    else:
        asyncio.run(run)
    folder.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
