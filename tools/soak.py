"""Put a mixed load on a supervisor and its web service, while clients are killed at random. Print a row each minute.

    python tools/soak.py 1h                     # 100 sessions
    python tools/soak.py 30s --sessions 10      # a short test

It starts ``claude-wire supervisor start`` and ``claude-wire serve``; the CLIs are tests/support/host_agent.py. Each
client is a fork of this process and gets SIGKILL after some seconds. There are readers of lines (by the supervisor's
socket), readers of events (by Server-Sent Events or WebSockets), pages that are loaded again and again, drivers that
send prompts and answer questions, and clients that do not read. A client writes what it has received to a file, and
its successor continues from there.

At the end the script reads each whole session and compares it with the clients' files: nothing is lost or received
twice, each prompt has one turn, and each question has one answer. Memory, descriptors and threads must not grow. If any
of this fails, the exit code is 1.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from websockets.sync.client import connect as connect_websocket

from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Attach, Cursor
from claude_wire_kit.web.lines import Lines

AGENT = Path(__file__).parents[1] / "tests" / "support" / "host_agent.py"
COMMAND = [sys.executable, "-m", "claude_wire_kit"]
#: A client's shortest and longest life in seconds. The actual time is random.
LIVES = (0.5, 20.0)
#: How long to wait for a program's reply, in seconds.
PATIENCE = 60.0
#: Kind of client -> clients per session.
SHARES = {"lines": 0.3, "events": 0.3, "websocket": 0.15, "page": 0.05, "driver": 0.06, "stalled": 0.05}
#: The mean time between two of a driver's prompts, in seconds.
PAUSE = 1.0
#: How much memory may grow between the second and the last third of the run: a share, plus bytes.
GROWTH, GROWTH_BYTES = 0.15, 12_000_000


class Serving:
    """A supervisor and a web service, both started for this run."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        root = folder / "root"
        root.mkdir()
        argv = json.dumps([sys.executable, "-B", str(AGENT), "--replay-user-messages"])
        config = folder / "serve.toml"
        config.write_text(f"[profiles.soak]\nroots = [{json.dumps(str(root))}]\nargv = {argv}\n")
        said = subprocess.run(
            [*COMMAND, "supervisor", "start", "--folder", self.state], check=True, capture_output=True, text=True
        ).stdout
        self.supervisor = int(re.findall(r"supervisor (\d+)", said)[0])
        self.log = folder / "serve.log"
        with self.log.open("wb") as log:
            self.service = subprocess.Popen(
                [*COMMAND, "serve", "--config", config, "--folder", self.state, "--port=0"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.service.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", self.service.stdout.readline())
        assert found is not None, self.log.read_text()
        self.port, self.token = int(found[1]), found[2]
        self.headers = {"Authorization": f"Bearer {self.token}"}

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request. Return the status, and the body, or the cookie if the reply sets one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            data = None if body is None else json.dumps(body)
            of_json = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, data, {**(self.headers if headers is None else headers), **of_json})
            reply = connection.getresponse()
            said = reply.read()
            if cookie := reply.getheader("set-cookie"):
                return reply.status, cookie
            is_json = (reply.getheader("content-type") or "").startswith("application/json")
            return reply.status, json.loads(said) if is_json else said
        finally:
            connection.close()

    def act(self, path: str, body: Any) -> tuple[int, Any]:
        """POST an act. Repeat it while there are too many acts, or while another client is the driver."""
        while True:
            status, said = self.request("POST", path, body)
            if status != 429 and not (status == 409 and said.get("error") == "driver"):
                return status, said
            time.sleep(0.5)

    def pieces(self, session: str, after: str | None) -> Iterator[tuple[str, bytes]]:
        """Read a session by Server-Sent Events. Yield (id, data) of an event, or ("", name) if it has a name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            last = {"Last-Event-ID": after} if after else {}
            connection.request("GET", f"/sessions/{session}/events", headers={**self.headers, **last})
            reply = connection.getresponse()
            assert reply.status == 200, (reply.status, reply.read())
            id = name = ""
            while line := reply.readline():
                if line.startswith(b"id: "):
                    id = line[4:-1].decode()
                elif line.startswith(b"event: "):
                    name = line[7:-1].decode()
                elif line.startswith(b"data: "):
                    yield ("", name.encode()) if name else (id, line[6:-1])
                    id = name = ""
        finally:
            connection.close()

    def close(self) -> None:
        """Stop the service, and then the supervisor with all its sessions."""
        if self.service.poll() is None:
            self.service.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.service.wait(PATIENCE)
        subprocess.run(
            [*COMMAND, "supervisor", "stop", "--all", "--grace=0", "--folder", self.state], capture_output=True
        )


class Client:
    """A client process, which is restarted whenever it is killed.

    Args:
        kind: the method that the client runs.
        sessions: the sessions that the client uses; a reader has one.
        path: the file in which the client records its progress.
    """

    def __init__(self, serving: Serving, kind: str, sessions: list[str], path: Path) -> None:
        self.serving = serving
        self.kind = kind
        self.sessions = sessions
        self.path = path
        path.touch()
        self.pid = 0
        self.until = 0.0

    def start(self) -> None:
        """Fork the client."""
        self.until = time.monotonic() + random.uniform(*LIVES)
        seed = random.random()
        self.pid = os.fork()
        if self.pid:
            return
        code = 0
        try:
            random.seed(seed)
            self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            getattr(self, self.kind)()
        except (OSError, EOFError, http.client.HTTPException, SupervisorError):
            pass  # The connection ended. The next client continues.
        except BaseException as error:
            os.write(2, f"soak: a client ({self.kind}) failed: {error!r}\n".encode())
            code = 1
        os._exit(code)

    def note(self, *words: object) -> None:
        """Append a line of words to the file."""
        os.write(self.file, " ".join(map(str, words)).encode() + b"\n")

    def noted(self) -> list[list[str]]:
        """Return the words of each complete line in the file."""
        text = self.path.read_text()
        return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]

    def last(self) -> str | None:
        """Return the first word of the last line in the file: the id or number of the last event or line received."""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - 200))
            lines = file.read().splitlines()
        return lines[-1].split()[0].decode() if lines else None

    # --- kinds

    def lines(self) -> None:
        """Read a session's lines from the supervisor's socket."""
        anyio.run(self.lines_of, connect(str(self.serving.state)))

    async def lines_of(self, supervisor: Any) -> None:
        """Read the lines of a session, after the last one in the file."""
        last = self.last()
        after = None if last is None else Cursor(self.sessions[0], 1, int(last))
        async with Lines(supervisor, Attach(attach=self.sessions[0], after=after)) as lines:
            while received := await lines.receive():
                for one in received:
                    if isinstance(one, tuple):
                        self.note(one[0], zlib.crc32(one[1]))

    def events(self) -> None:
        """Read events as Server-Sent Events."""
        for id, data in self.serving.pieces(self.sessions[0], self.last()):
            if id:
                self.note(id, zlib.crc32(data))

    def websocket(self) -> None:
        """Read events from a WebSocket."""
        last = self.last()
        query = "" if last is None else f"?lastEventId={last}"
        url = f"ws://127.0.0.1:{self.serving.port}/sessions/{self.sessions[0]}/events{query}"
        with connect_websocket(url, additional_headers=self.serving.headers, max_size=None, proxy=None) as connection:
            for message in connection:
                head, _, event = str(message).partition(',"event":')
                if head.startswith('{"id":"'):
                    self.note(head[7:-1], zlib.crc32(event[:-1].encode()))

    def page(self) -> None:
        """Load the page, log in, and read a session for up to 2 seconds, again and again."""
        own = {"Origin": f"http://127.0.0.1:{self.serving.port}"}
        while True:
            for path in ("/", "/page.css", "/page.js", "/text.js", "/conversation.js"):
                self.serving.request("GET", path, headers={})
            status, cookie = self.serving.request("POST", "/login", {"token": self.serving.token}, own)
            assert status == 204, status
            self.serving.request("GET", "/sessions", headers={"Cookie": cookie.partition(";")[0]})
            until = time.monotonic() + random.uniform(0, 2)
            for _ in self.serving.pieces(random.choice(self.sessions), None):
                if time.monotonic() > until:
                    break

    def stalled(self) -> None:
        """Request events and never read the reply."""
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", self.serving.port))
            path = f"/sessions/{random.choice(self.sessions)}/events"
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.serving.token}\r\n\r\n"
            client.sendall(head.encode())
            time.sleep(1_000)

    def driver(self) -> None:
        """Send prompts, a quarter of them with a question to answer. First finish the prompts of the killed client."""
        while True:
            self.finish()
            time.sleep(random.uniform(0, 2 * PAUSE))
            asks = "asks" if random.random() < 0.25 else "says"
            self.note("prompt", uuid.uuid4(), random.choice(self.sessions), asks)

    def finish(self) -> None:
        """Send the prompts and the answers in the file that are not yet marked as sent or answered."""
        noted = self.noted()
        done = {(words[0], words[1]) for words in noted}
        for what, id, *rest in noted:
            if what != "prompt":
                continue
            session, asks = rest
            if ("sent", id) not in done:
                wanted: dict[str, Any] = {"lines": random.Random(id).choice([3, 20, 60])}
                if asks == "asks":
                    wanted.update(ask=f"q-{id}", tool=f"t-{id}")
                status, said = self.serving.act(
                    f"/sessions/{session}/prompts", {"text": json.dumps(wanted), "uuid": id}
                )
                assert status in (202, 502, 503, 504), (status, said)
                if status != 202:
                    raise OSError
                self.note("sent", id)
            if asks == "asks" and ("answered", id) not in done:
                self.answer(session, id)

    def answer(self, session: str, id: str) -> None:
        """Wait until the CLI asks the question of a prompt, and answer it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            status, said = self.serving.act(f"/sessions/{session}/answers", {"requestId": f"q-{id}", "allow": True})
            if status == 204 or (status == 409 and said["error"] == "settled"):
                self.note("answered", id)
                return
            assert status in (404, 409, 502, 503, 504), (status, said)
            time.sleep(0.2)
        raise AssertionError(f"{id} was never asked")


def sample(pid: int) -> tuple[int, int, int]:
    """Return how many bytes of memory, descriptors and threads a process uses."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


class Soak:
    """A run's sessions and clients, and the faults found so far."""

    def __init__(self, serving: Serving, folder: Path, count: int) -> None:
        self.serving = serving
        self.faults: list[str] = []
        self.killed: Counter[str] = Counter()
        self.samples: list[tuple[tuple[int, int, int], tuple[int, int, int]]] = []
        self.sessions: list[str] = []
        for _ in range(count):
            status, said = serving.act("/sessions", {"profile": "soak"})
            assert status == 201, said
            self.sessions.append(said["id"])
        self.clients: list[Client] = []
        for kind, share in SHARES.items():
            number = max(1, round(share * count))
            for each in range(number):
                whose = self.sessions[each::number] if kind == "driver" else self.sessions
                one = [self.sessions[each % count]] if kind in ("lines", "events", "websocket") else whose
                self.clients.append(Client(serving, kind, one, folder / f"{kind}-{each}"))

    def run(self, seconds: float, every: float) -> None:
        """Run the clients for the given number of seconds, and print a row every ``every`` seconds."""
        began = time.monotonic()
        row = 1
        at_rest = sample(self.serving.service.pid), sample(self.serving.supervisor)
        print("minute   killed    noted MB   service MB  fds thr   supervisor MB  fds thr", flush=True)
        for client in self.clients:
            client.start()
        while (now := time.monotonic()) < began + seconds and not self.faults:
            self.reap(now)
            if self.serving.service.poll() is not None:
                self.faults.append(f"the service has ended with {self.serving.service.returncode}")
            elif now >= began + row * every:
                self.show(row * every / 60)
                row += 1
            time.sleep(0.05)
        for client in self.clients:
            os.kill(client.pid, signal.SIGKILL)
            os.waitpid(client.pid, 0)
        if not self.faults:
            self.flat(at_rest, seconds / 60)

    def reap(self, now: float) -> None:
        """Kill the clients whose time is over, and restart all clients that exited."""
        for client in self.clients:
            if now > client.until:
                os.kill(client.pid, signal.SIGKILL)
                self.killed[client.kind] += 1
                os.waitpid(client.pid, 0)
                client.start()
            elif (status := os.waitpid(client.pid, os.WNOHANG))[0]:
                if status[1]:
                    self.faults.append(f"a client ({client.kind}) ended with {status[1]}")
                client.start()

    def show(self, minute: float) -> None:
        """Print a row, and store the numbers."""
        service, supervisor = sample(self.serving.service.pid), sample(self.serving.supervisor)
        self.samples.append((service, supervisor))
        noted = sum(client.path.stat().st_size for client in self.clients) / 1e6
        numbers = f"{minute:6.1f} {sum(self.killed.values()):8,} {noted:11.1f}"
        print(
            f"{numbers} {service[0] / 1e6:12.1f} {service[1]:4} {service[2]:3}"
            f" {supervisor[0] / 1e6:15.1f} {supervisor[1]:4} {supervisor[2]:3}",
            flush=True,
        )

    def flat(self, before: tuple[tuple[int, int, int], tuple[int, int, int]], minutes: float) -> None:
        """Check that memory did not grow during a long run, and that no descriptors or threads leaked."""
        names = "service", "supervisor"
        for number, pid in enumerate((self.serving.service.pid, self.serving.supervisor)):
            memory = [one[number][0] for one in self.samples]
            third = len(memory) // 3
            if minutes >= 3 and third:
                first, last = sorted(memory[third : 2 * third]), sorted(memory[-third:])
                early, late = first[len(first) // 2], last[len(last) // 2]
                if late > early * (1 + GROWTH) + GROWTH_BYTES:
                    self.faults.append(
                        f"the memory of the {names[number]} grew: {early / 1e6:.1f} to {late / 1e6:.1f} MB"
                    )
            most = before[number][1] + 20 + (len(self.sessions) if number == 0 else 0)  # one feed per session
            until = time.monotonic() + PATIENCE
            while (now := sample(pid))[1] > most and time.monotonic() < until:
                time.sleep(0.2)
            if now[1] > most or now[2] > before[number][2] + 2:
                self.faults.append(f"descriptors and threads of the {names[number]}: {before[number][1:]} to {now[1:]}")

    def check(self) -> None:
        """Compare what the clients received with one read of each whole session."""
        drivers = [client for client in self.clients if client.kind == "driver"]
        for driver in drivers:
            driver.file = os.open(driver.path, os.O_WRONLY | os.O_APPEND)
            driver.finish()
        prompts = [words for driver in drivers for words in driver.noted() if words[0] == "prompt"]
        total: Counter[str] = Counter(prompts=len(prompts), questions=sum(words[3] == "asks" for words in prompts))
        for session in self.sessions:
            expected = {words[1]: words[3] for words in prompts if words[2] == session}
            lines = anyio.run(self.whole_lines, session, expected)
            taken = [client for client in self.clients if client.sessions == [session]]
            found: dict[str, list[list[str]]] = {
                "lines": [[str(number), str(zlib.crc32(line))] for number, line in lines]
            }
            if any(client.kind != "lines" for client in taken):
                found["events"] = found["websocket"] = self.whole_events(session)
            for client in taken:
                noted = client.noted()
                total[client.kind] += len(noted)
                if noted != found[client.kind][: len(noted)]:
                    self.faults.append(f"{client.path.name} differs from {session}")
            self.check_prompts(session, [line for _, line in lines], expected)
        print(", ".join(f"{number:,} {what}" for what, number in total.items()), "compared", flush=True)

    def check_prompts(self, session: str, lines: list[bytes], expected: dict[str, str]) -> None:
        """Check that each prompt has one turn, and each question one answer."""
        turns: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        for line in lines:
            message = json.loads(line)
            if message["type"] == "result":
                turns.update(message["user_message_uuids"])
            elif message["type"] == "user" and "tool_result_meta" in message:
                answers.update([message["tool_result_meta"][0]["id"]])
        if turns != Counter(list(expected)):
            self.faults.append(f"{session}: prompts lost or double: {turns - Counter(list(expected))}, {len(turns)}")
        if answers != Counter([f"t-{id}" for id, asks in expected.items() if asks == "asks"]):
            self.faults.append(f"{session}: answers lost or double")

    async def whole_lines(self, session: str, expected: dict[str, str]) -> list[tuple[int, bytes]]:
        """Read all lines of a session, until each prompt has its result."""
        found: list[tuple[int, bytes]] = []
        left = len(expected)
        with anyio.move_on_after(PATIENCE):
            async with Lines(connect(str(self.serving.state)), Attach(attach=session)) as lines:
                while (left or len(found) < lines.answer.line) and (received := await lines.receive()):
                    for one in received:
                        if isinstance(one, tuple):
                            found.append(one)
                            left -= one[1].startswith(b'{"type": "result"')
        return found

    def whole_events(self, session: str) -> list[list[str]]:
        """Read all events of a session so far: those before the first ``session_state``."""
        found: list[list[str]] = []
        after: str | None = None
        while True:
            for id, data in self.serving.pieces(session, after):
                if id:
                    found.append([id, str(zlib.crc32(data))])
                    after = id
                elif data == b"session_state":
                    return found


def seconds_of(text: str) -> float:
    """Parse a duration such as ``30s``, ``5m`` or ``1h``. Return seconds."""
    return float(text.rstrip("smh")) * {"m": 60, "h": 3600}.get(text[-1], 1)


def main() -> int:
    """Run the load and print the faults."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("duration", type=seconds_of, help="30s, 5m, 1h")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    serving = Serving(folder)
    soak: Soak | None = None
    try:
        soak = Soak(serving, folder, arguments.sessions)
        soak.run(arguments.duration, min(60.0, arguments.duration / 10))
        if not soak.faults:
            soak.check()
        if text := serving.log.read_text():
            print(f"the log of the service has {len(text):,} characters: {text[:2000]}")
        for fault in soak.faults:
            print(f"fault: {fault}", flush=True)
        return 1 if soak.faults else 0
    finally:
        serving.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
