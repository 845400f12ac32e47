"""Random scripts run a supervisor. Each client must receive exactly the lines that the CLI wrote.

CLIs write lines in pieces, clients attach, read, die and return, disks become full, and supervisors are killed.
``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import socket
import stat
import tempfile
from collections import Counter
from contextlib import suppress
from typing import Any
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from claude_wire_kit.supervisor import connection, daemon, managed_session, sessions
from claude_wire_kit.supervisor.daemon import Daemon, Limits
from claude_wire_kit.supervisor.disk.folder import StateFolder

# A fake CLI for a supervisor, without a process: the test holds the other ends of its pipes.


#: No process has this pid: it is above the maximum on Linux.
PID = 5_000_000


class FakeChild:
    """A replacement for :class:`claude_wire_kit.supervisor.child.Child`. The test holds the other ends of the pipes."""

    def __init__(self) -> None:
        self.reads, stdin = os.pipe()
        stdout, self.says = os.pipe()
        self.stderr, self.errors = os.pipe()
        self.pidfd, self._ends = os.pipe()
        self.stdin: int | None = stdin
        self.stdout: int | None = stdout
        for descriptor in (self.reads, stdin, stdout, self.says, self.stderr, self.errors):
            os.set_blocking(descriptor, False)
        self.pid = PID
        self.began = 1
        self.mark = "m"
        self.code: int | None = None
        self.is_killed = False
        self.is_closed = False

    # --- for the test

    def say(self, data: bytes) -> int:
        """Write output. Return the number of bytes that the pipe accepted."""
        try:
            return os.write(self.says, data)
        except BlockingIOError:
            return 0

    def read(self, size: int) -> bytes:
        """Read input."""
        try:
            return os.read(self.reads, size)
        except BlockingIOError:
            return b""

    def end(self, code: int) -> None:
        """Act like a process that has ended."""
        if self.code is None:
            self.code = code
            os.close(self._ends)

    # --- for the supervisor

    def insist(self, grace: float) -> None:
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        self.is_killed |= number == signal.SIGKILL
        self.end(-number)

    def poll(self) -> int | None:
        return self.code

    def end_input(self) -> None:
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None

    def end_output(self) -> None:
        if self.stdout is not None:
            os.close(self.stdout)
            self.stdout = None

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.signal(signal.SIGKILL)
        self.end_input()
        self.end_output()
        for descriptor in (self.stderr, self.pidfd, self.reads, self.says, self.errors):
            os.close(descriptor)


class FakeClis:
    """Start fake CLIs and keep them in ``all``."""

    def __init__(self) -> None:
        self.all: list[FakeChild] = []

    def __call__(self, *_: Any, **__: Any) -> FakeChild:
        self.all.append(FakeChild())
        return self.all[-1]


EXAMPLES = 2_000 if os.environ.get("CLAUDE_WIRE_LONG") else 30

_write = os.write


class KilledError(SystemExit):
    """Raised to simulate that the supervisor was killed. It is a SystemExit, so an event loop stops immediately."""


class Client:
    """A client that reads on request and checks each line."""

    def __init__(self, machine: Hosts, command: dict[str, Any]) -> None:
        self.machine = machine
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        self.socket.connect(machine.folder.socket)
        self.is_open = True
        self.rest = b""
        self.answer: Any = None
        #: The number of the last line that it received.
        self.line = -1
        self.drives = False
        self.command = command
        #: The kind and value of each sent line. The supervisor has accepted or refused the first `answered` of them.
        self.sent: list[tuple[str, Any]] = []
        self.answered = 0
        self.unsent = b""
        self.send(command)

    def send(self, message: Any, *, cut: int | None = None) -> None:
        self.send_bytes((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self.unsent += data
        try:
            self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            self.unsent = b""

    def read(self, size: int) -> bool:
        """Read and check up to `size` bytes. Return whether there was data."""
        self.send_bytes(b"")
        try:
            data = self.socket.recv(size)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.die()
            return False
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.take(line + b"\n")
        return True

    def take(self, line: bytes) -> None:
        machine = self.machine
        if self.answer is None:
            self.answer = json.loads(line)
            if self.answer["type"] == "supervisor_error":
                self.refused()
                return
            assert self.answer["type"] == "supervisor_attached", line
            assert self.answer["line"] <= len(machine.said)
            self.line = self.answer["after"]
            self.drives = self.answer["role"] == "driver"
        elif line.startswith(b'{"type":"supervisor_'):
            self.told(json.loads(line))
        else:
            self.line += 1
            assert self.line <= len(machine.said), "a line that the CLI has not said"
            assert line == machine.said[self.line - 1], (self.line, line, machine.said[self.line - 1])
            machine.seen = max(machine.seen, self.line)

    def refused(self) -> None:
        error, after = self.answer["error"], self.command.get("after")
        if error == "gone":
            first = self.answer["first"]
            assert after is None or after["line"] + 1 < first
            self.machine.first = max(self.machine.first, first)
        else:
            assert error in ("driver", "running", "limit", "start", "system"), self.answer
        self.die()

    def told(self, frame: Any) -> None:
        kind = frame["type"]
        if kind == "supervisor_accepted":
            assert frame["lines"] == self.answered + 1, "each line has one answer, in order"
            self.answered += 1
            what, value = self.sent[self.answered - 1]
            if what == "prompt":
                assert self.machine.prompts()[value] == 1, "what is acknowledged is in the journal, once"
        elif kind == "supervisor_refused":
            assert frame["line"] == self.answered + 1
            self.answered += 1
        elif kind == "supervisor_ended":
            assert self.line in self.machine.ends, (self.line, self.machine.ends)
        elif kind == "supervisor_cut":
            assert frame["cursor"]["line"] == self.line
        elif kind == "supervisor_driver":
            self.drives = frame["role"] == "driver"
        else:
            assert kind in ("supervisor_blocked", "supervisor_stderr"), frame

    def die(self) -> None:
        if self.is_open:
            self.is_open = False
            self.socket.close()
            if self.line >= 0:
                self.machine.cursors.append(self.line)


class Connection(connection.Connection):
    """A connection with the smallest send buffer that the kernel allows, so that a client soon falls behind."""

    __slots__ = ()

    def __init__(self, client: socket.socket, owner: Any) -> None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        super().__init__(client, owner)


class Hosts(RuleBasedStateMachine):
    """The state machine: one session of a supervisor with a fake CLI and clients."""

    @initialize(budget=st.sampled_from([4_000, 20_000, 1 << 30]))
    def start(self, budget: int) -> None:
        self.path = tempfile.mkdtemp(prefix="h-")
        self.before = set(os.listdir("/proc/self/fd"))
        self.budget = budget
        self.clis = FakeClis()
        self.loop = asyncio.new_event_loop()
        self.errors: list[Any] = []
        self.loop.set_exception_handler(lambda _loop, context: self.errors.append(context))
        #: All complete lines of the CLI, the start of its next line, and the last line number that a client received.
        self.said: list[bytes] = []
        self.partial = b""
        self.seen = 0
        #: The number of the last line of each process that has ended.
        self.ends: set[int] = set()
        self.clients: list[Client] = []
        self.cursors: list[int] = [0]
        self.first = 1
        self.questions = 0
        self.uuids = 0
        #: The number of bytes until the disk is full, and until the supervisor is killed.
        self.room: int | None = None
        self.lives: int | None = None
        self._inputs: dict[str, list[Any]] = {}
        self.patches = [
            mock.patch.object(sessions, "Child", self.clis),
            mock.patch.object(daemon, "Connection", Connection),
            mock.patch.object(managed_session, "RETRY_SECONDS", 0.0),
            mock.patch.object(connection, "CHUNK_BYTES", 300),
            mock.patch.object(os, "write", self.write),
        ]
        for patch in self.patches:
            patch.start()
        self.begin()
        self.id = self.command({"create": {"argv": ["x"], "cwd": "/", "env": {}}, "detach": True})["id"]
        self.attach(0, True, False, True)
        self.output(["init", "text", "ask", "text"], 5, 2)

    def write(self, descriptor: int, data: Any) -> int:
        """Replace ``os.write`` for files on the simulated disk."""
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _write(descriptor, data)
        count = len(data)
        if self.lives is not None:
            if self.lives <= 0:
                raise KilledError
            count = min(count, self.lives)
            self.lives -= count
        if self.room is not None:
            if not self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            count = min(self.room, count)
            self.room -= count
        return _write(descriptor, data[:count])

    # --- the supervisor

    def begin(self) -> None:
        self.folder = StateFolder(self.path)
        self.folder.take()
        self.supervisor = Daemon(self.folder, limits=Limits(journal_bytes=self.budget))
        started = self.loop.create_future()
        self.task = self.loop.create_task(self.supervisor.run(lambda: started.set_result(None)))
        for _ in range(10):
            self.turn()
        assert started.done(), self.task

    def turn(self) -> None:
        """Run one turn of the event loop."""
        with suppress(RuntimeError):  # after KilledError the loop stops before the coroutine is done
            self.loop.run_until_complete(asyncio.sleep(0))

    def step(self, count: int = 5) -> None:
        """Run the loop for a few turns. If the supervisor is killed meanwhile, start the next one."""
        try:
            for _ in range(count):
                self.turn()
        except KilledError:
            self.is_killed()

    def command(self, command: Any) -> Any:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.setblocking(False)
            client.connect(self.folder.socket)
            client.sendall(json.dumps(command).encode() + b"\n")
            for _ in range(100):
                self.turn()
                try:
                    return json.loads(client.recv(1 << 20))
                except BlockingIOError:
                    continue
        finally:
            client.close()
        raise AssertionError("no answer")

    @property
    def cli(self) -> Any:
        return self.clis.all[-1]

    @property
    def runs(self) -> bool:
        return not self.cli.is_closed

    @rule(chance=st.integers(0, 3))
    def may_be_killed(self, chance: int) -> None:
        if not chance:
            self.is_killed()

    def is_killed(self) -> None:
        """Drop the killed supervisor without another write, keep its files, and start a new one."""
        self.lives = 0
        self.task.cancel()
        with mock.patch.object(os, "write", side_effect=OSError(errno.ENOSPC, "killed")):
            for _ in range(20):
                with suppress(KilledError):
                    self.turn()
        assert self.task.done()
        for descriptor in (*self.folder._locks, self.folder._log):
            if descriptor is not None:
                os.close(descriptor)
        self.lives = self.room = None
        for client in self.clients:
            while client.is_open and client.read(1 << 16):
                pass
            client.die()
        self.clients.clear()
        ran = len(self.ends) < len(self.clis.all)
        self.begin()
        record = self.supervisor._sessions._records[self.id]
        if not ran:
            return
        # No client has received a line that the journal lacks. A line that was cut off counts as a line.
        assert record.line >= self.seen
        del self.said[record.line :]
        last = self.last_line()
        if len(self.said) < record.line:
            assert last.endswith(b"\n")
            assert self.partial.startswith(last[:-1])
            self.said.append(last)
        elif self.said and last and last != self.said[-1]:
            assert self.said[-1].startswith(last[:-1])
            self.said[-1] = last
        self.partial = b""
        self.ends.add(len(self.said))
        self.ends_count = len(self.clis.all)

    def last_line(self) -> bytes:
        """Return the last line of the last part, or nothing if that part has no lines."""
        parts = os.path.join(self.path, "sessions", self.id, "parts")
        with open(os.path.join(parts, max(os.listdir(parts)), "stdout.ndjson"), "rb") as file:
            lines = file.readlines()
        return lines[-1] if lines else b""

    @rule(after=st.integers(1, 400), ticks=st.integers(1, 6))
    def will_be_killed(self, after: int, ticks: int) -> None:
        self.lives = after
        self.step(ticks)

    @rule(room=st.none() | st.integers(0, 300))
    def disk_has_room(self, room: int | None) -> None:
        self.room = room
        self.step()

    @precondition(lambda self: not self.runs)
    @rule()
    def resume(self) -> None:
        self.lives = None
        self.room = None
        self.step(8)
        answer = self.command({"resume": self.id, "env": {}, "detach": True})
        assert answer["type"] == "supervisor_session", answer

    # --- the CLI

    def says(self, data: bytes) -> None:
        data = data[: self.cli.say(data)] if self.runs and self.cli.code is None else b""
        *lines, self.partial = (self.partial + data).split(b"\n")
        self.said += [line + b"\n" for line in lines]

    @rule(
        kinds=st.lists(
            st.sampled_from(["text", "blank", "ask", "mcp", "cancel", "init", "result", "long"]), max_size=6
        ),
        cut=st.integers(0, 60),
        ticks=st.integers(0, 4),
    )
    def output(self, kinds: list[str], cut: int, ticks: int) -> None:
        data = b"".join(self.line(kind) for kind in kinds)
        self.says(data[: len(data) - cut])
        self.step(ticks)
        self.says(data[len(data) - cut :] if cut <= len(data) else data)
        self.step(ticks)

    def line(self, kind: str) -> bytes:
        if kind == "blank":
            return b"\n"
        message: dict[str, Any] = {"type": "x", "n": len(self.said), "text": "t" * (2_000 if kind == "long" else 9)}
        if kind in ("ask", "mcp"):
            self.questions += 1
            asks = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
            calls = {"subtype": "mcp_message", "server_name": "s", "message": {"id": 1, "method": "tools/call"}}
            request = asks if kind == "ask" else calls
            message = {"type": "control_request", "request_id": f"q{self.questions}", "request": request}
        elif kind == "cancel":
            message = {"type": "control_cancel_request", "request_id": f"q{self.questions}"}
        elif kind == "init":
            message = {"type": "system", "subtype": "init", "session_id": "cli"}
        elif kind == "result":
            message = {"type": "result", "subtype": "success", "is_error": False, "session_id": "cli"}
        return json.dumps(message).encode() + b"\n"

    @precondition(lambda self: self.runs)
    @rule(size=st.integers(1, 5_000))
    def cli_reads(self, size: int) -> None:
        if self.runs:
            self.cli.read(size)
        self.step()

    @rule(code=st.integers(0, 5))
    def cli_ends(self, code: int) -> None:
        if not self.runs or self.cli.code is not None or code > 1:
            return
        self.lives = self.room = None
        self.cli.end(code)
        if self.partial:
            self.said.append(self.partial + b"\n")
            self.partial = b""
        self.ends.add(len(self.said))
        for _ in range(50):
            self.step(10)
            if not self.runs:
                return
        raise AssertionError("its end was not noticed")

    # --- clients

    @property
    def open_clients(self) -> list[Client]:
        return [client for client in self.clients if client.is_open]

    @rule(chance=st.integers(0, 99), driver=st.booleans(), take=st.booleans(), all_lines=st.booleans())
    def attach(self, chance: int, driver: bool, take: bool, all_lines: bool) -> None:
        if len(self.open_clients) >= 5:
            return
        cursor = {"id": self.id, "epoch": 1, "line": self.cursors[chance % len(self.cursors)]}
        command = {"attach": self.id, "role": "driver" if driver else "viewer", "take": take}
        client = Client(self, command if all_lines else {**command, "after": cursor})
        self.clients.append(client)
        for _ in range(10):
            self.step()
            if client.answer is None and client.is_open:
                client.read(1 << 12)

    @precondition(lambda self: self.open_clients)
    @rule(chance=st.integers(0, 99), size=st.sampled_from([1, 50, 1_000, 10_000, 100_000]))
    def client_reads(self, chance: int, size: int) -> None:
        self.open_clients[chance % len(self.open_clients)].read(size)
        self.step()

    @precondition(lambda self: len(self.open_clients) > 1)
    @rule(chance=st.integers(0, 99))
    def client_dies(self, chance: int) -> None:
        self.open_clients[chance % len(self.open_clients)].die()
        self.step()

    @precondition(lambda self: self.open_clients)
    @rule(
        chance=st.integers(0, 99), what=st.sampled_from(["prompt", "again", "answer", "nonsense"]), id=st.integers(0, 9)
    )
    def client_sends(self, chance: int, what: str, id: int) -> None:
        client = self.open_clients[chance % len(self.open_clients)]
        if client.answer is None:
            return
        if what == "prompt" or what == "again":
            self.uuids += what == "prompt"
            uuid = f"p{max(0, self.uuids - (id if what == 'again' else 0))}"
            client.sent.append(("prompt", uuid))
            client.send({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "c" * 200 * id}})
        elif what == "answer":
            client.sent.append(("answer", f"q{max(0, self.questions - id)}"))
            response = {"subtype": "success", "request_id": client.sent[-1][1], "response": {"by": id}}
            client.send({"type": "control_response", "response": response})
        else:
            client.sent.append(("nonsense", None))
            client.send(b"no message")
        self.step()

    @rule(chance=st.integers(0, 3))
    def who_reads_nothing_is_cut(self, chance: int) -> None:
        if chance:
            return
        with mock.patch.object(connection, "STALLED_SECONDS", -1.0):
            self.loop.call_soon(self.supervisor._tick)
            self.step()

    # --- invariants

    def inputs(self) -> list[Any]:
        """Return all lines of input in the journal, including those of parts that were removed later."""
        parts = os.path.join(self.path, "sessions", self.id, "parts")
        for name in os.listdir(parts):
            try:
                with open(os.path.join(parts, name, "stdin.ndjson"), "rb") as file:
                    self._inputs[name] = [json.loads(line) for line in file if line.endswith(b"\n")]
            except FileNotFoundError:
                continue
        return [message for name in sorted(self._inputs) for message in self._inputs[name]]

    def prompts(self) -> Counter[str]:
        return Counter(message["uuid"] for message in self.inputs() if message["type"] == "user")

    @invariant()
    def nothing_is_written_twice(self) -> None:
        if not hasattr(self, "id"):
            return
        inputs = self.inputs()
        answers = Counter(m["response"]["request_id"] for m in inputs if m["type"] == "control_response")
        assert max(answers.values(), default=1) == 1
        # Uuids of prompts may repeat: the next process may receive a prompt that the last one did not read.
        assert not self.errors, self.errors

    def teardown(self) -> None:
        if not hasattr(self, "id"):
            return
        try:
            self.everybody_reads_on()
            self.nothing_is_written_twice()
        finally:
            for client in self.clients:
                client.die()
            self.task.cancel()
            for _ in range(10):
                self.turn()
            self.folder.release()
            tasks = asyncio.all_tasks(self.loop)
            self.loop.close()
            for patch in self.patches:
                patch.stop()
            shutil.rmtree(self.path)
        assert tasks == set()
        assert set(os.listdir("/proc/self/fd")) <= self.before, "no descriptor is left"

    def everybody_reads_on(self) -> None:
        self.lives = self.room = None
        self.step(20)
        for client in self.open_clients:
            for _ in range(20_000):
                self.step(1)
                if not client.read(1 << 16) and (not client.is_open or client.line == len(self.said)):
                    break
            assert not client.is_open or client.line == len(self.said), "a client that reads gets every line"


TestHosts = Hosts.TestCase
# The ordinary run repeats the same scripts each time. The long run uses random ones.
TestHosts.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=60, deadline=None, derandomize="CLAUDE_WIRE_LONG" not in os.environ
)
