"""A supervisor in a separate process, with sessions and clients, for the supervisor's benches.

Run as a program, this module is the supervisor: ``supervisor_process.py FOLDER LOOP``, with the state folder and the
event loop. ``asyncio`` means the supervisor's own loop, which is based on asyncio's loop.

The CLI of each session is the program ``sleep``. So the supervisor has the same resources as for a real CLI (a process,
three pipes and a journal), but the CLI takes no processor time. The bench writes lines into the output of each CLI
through ``/proc/PID/fd/1``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import selectors
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import workloads

SECONDS = 60.0
#: How far a slow reader is behind at the beginning, in half megabytes: far more than its socket holds.
BEHIND = 10
#: After this many lines of all sessions together, one of the slow readers reads ``SLOW_BYTES``.
SLOW_EVERY = 100
#: How many bytes a slow reader reads in one call.
SLOW_BYTES = 4 * 1024


class ManagedSession:
    """One of the supervisor's sessions, which may have a client.

    Attributes:
        id: the id that the supervisor gave the session.
        output: a descriptor that writes to the CLI's output.
    """

    def __init__(self, id: str, pid: int) -> None:
        self.id = id
        self.output = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
        self._client: socket.socket | None = None

    @property
    def client(self) -> socket.socket:
        """The client's connection."""
        assert self._client is not None
        return self._client

    def attach(self, supervisor: SupervisorProcess) -> None:
        """Connect a client as the session's driver, and receive all lines so far."""
        self._client, answer = supervisor.ask({"attach": self.id, "role": "driver"})
        assert answer["type"] == "supervisor_attached", answer

    def take(self, size: int) -> None:
        """Receive exactly ``size`` bytes."""
        while size > 0:
            size -= len(self.client.recv(1 << 20))
        assert size == 0

    def close(self) -> None:
        os.close(self.output)
        if self._client is not None:
            self._client.close()


class Pace:
    """Writes lines into sessions at random moments, and receives them through the sessions' clients.

    Args:
        sessions: the sessions whose clients read everything immediately.
        slow: the sessions whose clients read little, and are behind from the beginning.
    """

    def __init__(self, sessions: Sequence[ManagedSession], slow: Sequence[ManagedSession] = ()) -> None:
        self._sessions = sessions
        self._slow = slow
        self._lines = workloads.lines(workloads.deltas())
        self._random = random.Random(0)
        self._selector = selectors.EpollSelector()
        for session in sessions:
            self._selector.register(session.client, selectors.EVENT_READ, session)
        for session in slow:
            with open(session.output, "wb", closefd=False) as output:
                output.write(workloads.deltas() * BEHIND)

    def run(self, count: int, seconds: float) -> dict[ManagedSession, list[float]]:
        """Write ``count`` lines within ``seconds``. Return session -> each line's seconds to the session's client."""
        everybody = [*self._sessions, *self._slow]
        moments = sorted(self._random.random() * seconds for _ in range(count))
        # Session -> for each line that has not arrived yet: when it was written, and how many bytes are missing.
        sent: dict[ManagedSession, deque[list[float]]] = {session: deque() for session in self._sessions}
        found: dict[ManagedSession, list[float]] = {session: [] for session in self._sessions}
        start, done, arriving = time.perf_counter(), 0, 0
        while done < count or arriving:
            now = time.perf_counter()
            while done < count and start + moments[done] <= now:
                session, line = self._random.choice(everybody), self._lines[done % len(self._lines)]
                if session in sent:
                    sent[session].append([time.perf_counter(), len(line)])
                    arriving += 1
                os.write(session.output, line)
                done += 1
                if self._slow and done % SLOW_EVERY == 0:
                    self._random.choice(self._slow).client.recv(SLOW_BYTES)
            wait = start + moments[done] - time.perf_counter() if done < count else SECONDS
            for key, _ in self._selector.select(max(wait, 0)):
                size, waiting = len(key.data.client.recv(1 << 20)), sent.get(key.data)
                now = time.perf_counter()
                while size and waiting:
                    taken = min(size, waiting[0][1])
                    waiting[0][1] -= taken
                    size -= taken
                    if not waiting[0][1]:
                        found[key.data].append(now - waiting.popleft()[0])
                        arriving -= 1
        return found

    def close(self) -> None:
        self._selector.close()


class Writer:
    """A writer.py process, and a reader of its lines: through a bare pipe, through relay.py, or through a supervisor.

    The reader is the same in all three cases: an asyncio callback that reads what is available from a descriptor.

    Args:
        lines: the file with the lines that the writer writes.
        supervisor: the supervisor to read through, if any.
        relayed: the file that relay.py writes, to read through it.
    """

    def __init__(self, lines: Path, supervisor: SupervisorProcess | None = None, relayed: Path | None = None) -> None:
        argv = [sys.executable, "-S", str(Path(__file__).with_name("writer.py")), str(lines)]
        self._process: subprocess.Popen[bytes] | None = None
        self._client: socket.socket | None = None
        if relayed is not None:
            self._client, its_end = socket.socketpair()
            relay = [sys.executable, str(Path(__file__).with_name("relay.py")), str(relayed), *argv]
            with its_end:
                self._process = subprocess.Popen(relay, stdin=subprocess.PIPE, stdout=its_end, bufsize=0)
            assert self._process.stdin is not None
            self._commands, self._output = self._process.stdin.fileno(), self._client.fileno()
        elif supervisor is None:
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._commands, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        else:
            # The writer takes its commands from our pipe; it never sees the supervisor's `initialize`.
            reads, self._commands = os.pipe()
            id, _ = supervisor.create(["sh", "-c", f'exec "$0" "$@" < /proc/{os.getpid()}/fd/{reads}', *argv])
            self._client, answer = supervisor.ask({"attach": id, "role": "driver"})
            assert answer["type"] == "supervisor_attached", answer
            self._output = self._client.fileno()
        os.set_blocking(self._output, False)

    async def latencies(self, count: int, microseconds: int) -> list[float]:
        """Have the writer write ``count`` lines, with a pause after each. Return each line's seconds to the reader."""
        found: list[float] = []

        def note(data: bytes) -> bool:
            now = time.perf_counter_ns()
            for piece in data.split(b'"text_delta","text":"')[1:]:
                found.append((now - int(piece[: piece.index(b'"')])) / 1e9)
            return len(found) < count

        await self._reads(b"paced %d %d\n" % (count, microseconds), note)
        return found

    async def take(self, count: int, size: int) -> None:
        """Have the writer write ``count`` lines in blocks, and receive their ``size`` bytes."""
        left = size

        def note(data: bytes) -> bool:
            nonlocal left
            left -= len(data)
            return left > 0

        await self._reads(b"blocks %d\n" % count, note)

    async def _reads(self, command: bytes, goes_on: Callable[[bytes], bool]) -> None:
        """Send a command to the writer, and read until ``goes_on`` returns False."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def on_readable() -> None:
            if not goes_on(os.read(self._output, 1 << 18)) and not over.done():
                over.set_result(None)

        loop.add_reader(self._output, on_readable)
        os.write(self._commands, command)
        await asyncio.wait_for(over, SECONDS)
        loop.remove_reader(self._output)

    def close(self) -> None:
        """Stop the writer and the reader. A writer that the supervisor started exits with the supervisor."""
        if self._client is not None:
            self._client.close()
        if self._process is not None:
            with self._process:
                self._process.terminate()
        else:
            os.close(self._commands)


def resident(pid: int) -> int:
    """Return a process's memory in bytes. Pages that several processes share count in part."""
    fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split()
    return int(fields[fields.index("Pss:") + 1]) * 1024


class SupervisorProcess:
    """A supervisor process and its sessions."""

    def __init__(self, folder: Path, loop: str) -> None:
        self._folder = folder
        self._process = subprocess.Popen([sys.executable, __file__, str(folder), loop], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"started\n"
        self.sessions: list[ManagedSession] = []

    def ask(self, command: dict[str, Any]) -> tuple[socket.socket, Any]:
        """Connect and send a command. Return the connection and the reply."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(SECONDS)
        client.connect(str(self._folder / "socket"))
        client.sendall(json.dumps(command).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += client.recv(1)
        return client, json.loads(answer)

    def reply(self, command: dict[str, Any]) -> Any:
        """Send a command in a new connection, and return the reply."""
        client, answer = self.ask(command)
        client.close()
        return answer

    def create(self, argv: list[str]) -> tuple[str, int]:
        """Create a session. Return the session's id and the CLI's pid."""
        spec = {"argv": argv, "cwd": str(self._folder), "env": dict(os.environ)}
        answer = self.reply({"create": spec, "detach": True})
        return answer["id"], answer["pid"]

    def open(self, count: int, *, attached: bool) -> None:
        """Open ``count`` more idle sessions, whose CLIs have answered ``initialize``; wait for the answers."""
        line = workloads.initialized("claude_wire_supervisor_initialize")
        opened = [ManagedSession(*self.create(["sleep", "1000000"])) for _ in range(count)]
        self.sessions += opened
        for session in opened:
            if attached:
                session.attach(self)
            os.write(session.output, line)
            if attached:
                session.take(len(line))
        while any(info["life"] != "idle" for info in self.reply({"list": {}})["sessions"]):
            pass

    @property
    def seconds(self) -> float:
        """The supervisor's processor time in seconds, including time in the kernel."""
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    @property
    def resident(self) -> int:
        """The supervisor's memory in bytes."""
        return resident(self._process.pid)

    def close(self) -> None:
        """Kill the supervisor, which also terminates all CLIs."""
        for session in self.sessions:
            session.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def main(path: str, loop: str) -> None:
    from claude_wire_kit.supervisor.daemon import Daemon, Limits
    from claude_wire_kit.supervisor.disk.folder import StateFolder
    from claude_wire_kit.supervisor.loop import SupervisorLoop

    folder = StateFolder(path)
    folder.take()
    limits = Limits(sessions=2_000, connections=4_000)
    run = Daemon(folder, limits=limits).run(lambda: print("started", flush=True))
    if loop == "uvloop":
        import uvloop

        uvloop.run(run)
    else:  # the loop of ``claude-wire supervisor start``
        with closing(SupervisorLoop()) as own:
            own.run_until_complete(run)
    folder.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
