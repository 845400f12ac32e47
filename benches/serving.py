"""For test_serve.py: the web service and a plain Starlette endpoint, each in a separate process, and their clients.

Run as a program, this module is one of the two: ``serving.py service FOLDER`` or ``serving.py plain FOLDER``, with the
folder of a supervisor. Both run on uvicorn with the same settings, read sessions of that supervisor, and send the same
bytes for the same lines. The endpoint prepares these bytes in advance.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import selectors
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import peers
import workloads
from supervisor_process import ManagedSession, SupervisorProcess, resident

SECONDS = 60.0
TOKEN = "t" * 43
#: The bytes at the end of an event. No other output contains these bytes.
END = b"}\n\n"


def events() -> list[tuple[bytes, bytes]]:
    """Return pairs of a CLI line and the event that the service sends for the line, without the event's id."""
    from claude_wire_kit.web.events import Source

    found: list[tuple[bytes, bytes]] = []
    source = Source(1, 1)
    for number, line in enumerate(workloads.lines(workloads.deltas()), 1_000):
        made = source.add(number, line[:-1])
        if len(made) == 1:
            found.append((line, made[0].sse))
    return found


class Served:
    """A process that serves sessions, and connections that read their events.

    Args:
        argv: the process's arguments, for :func:`main`.
        sessions: the sessions that this process serves, and no other process.
        lines: the lines to write into the sessions. Each gives one event.
    """

    def __init__(self, argv: list[str], sessions: list[ManagedSession], lines: list[bytes]) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, *argv], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())
        self._sessions = sessions
        self._lines = lines
        self._random = random.Random(0)
        self._selector = selectors.EpollSelector()
        #: How many connections read each session.
        self._readers = 0

    def connect(self, count: int) -> None:
        """Open ``count`` more connections for each session."""
        for session in self._sessions * count:
            client = socket.create_connection(("127.0.0.1", self._port))
            client.settimeout(SECONDS)
            head = f"GET /sessions/{session.id}/events HTTP/1.1\r\nHost: localhost\r\n"
            client.sendall(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            answer = b""
            while b"event: session_state\n" not in answer or not answer.endswith(b"\n\n\r\n"):
                answer += client.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200"), answer
            self._selector.register(client, selectors.EVENT_READ, [client, b""])
        self._readers += count

    def open_end(self) -> float:
        """Get the last 200 events of the session from a service that has not read the session yet.

        Returns:
            The processor time of the service, in seconds.
        """
        self._get("/sessions", b'"profiles":', 4096)  # wait until the service is ready
        before = self.seconds
        path = f"/sessions/{self._sessions[0].id}/events?details=1&last=200"
        answer = self._get(path, b"event: session_state\n", 4096)
        assert b'"Answer ' in answer
        return self.seconds - before

    def paint(self, text: str) -> tuple[float, float]:
        """See :func:`paint_of`."""
        url = f"http://127.0.0.1:{self._port}/#token={TOKEN}&session={self._sessions[0].id}"
        argv = [sys.executable, str(Path(__file__).with_name("paint.py")), peers.browser, url, text]
        first, seen = subprocess.run(argv, stdout=subprocess.PIPE, timeout=SECONDS, check=True).stdout.split()
        return float(first), float(seen)

    def _get(self, path: str, end: bytes, within: int) -> bytes:
        """Get a path. Read until the last ``within`` bytes of the reply contain ``end``."""
        with socket.create_connection(("127.0.0.1", self._port)) as client:
            client.settimeout(SECONDS)
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            client.sendall(head.encode())
            answer = b""
            while end not in answer[-within:]:
                answer += client.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200"), answer[:100]
            return answer

    def run(self, count: int, at_once: int) -> float:
        """Write ``count`` events in batches of ``at_once``. Each event of a batch is in a different session.

        So a connection never gets two events together, however busy the machine is.

        Returns:
            The processor time per event and connection, in seconds.
        """
        before = self.seconds
        for done in range(0, count, at_once):
            for number, session in enumerate(self._random.sample(self._sessions, at_once)):
                os.write(session.output, self._lines[(done + number) % len(self._lines)])
            arriving = at_once * self._readers
            while arriving:
                ready = self._selector.select(SECONDS)
                assert ready, f"{arriving} events have not come"
                for key, _ in ready:
                    client, tail = key.data
                    data = tail + client.recv(1 << 18)
                    arriving -= data.count(END)
                    key.data[1] = data[-2:]
        return (self.seconds - before) / count / self._readers

    @property
    def seconds(self) -> float:
        """The process's processor time in seconds, including time in the kernel."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    @property
    def resident(self) -> int:
        """The process's memory in bytes."""
        return resident(self._process.pid)

    def close(self) -> None:
        for key in list(self._selector.get_map().values()):
            key.data[0].close()
        self._selector.close()
        self._process.kill()
        self._process.communicate()


def start(what: str, supervisor: SupervisorProcess, folder: Path, sessions: int) -> Served:
    """Start the ``service`` or the ``plain`` endpoint, with ``sessions`` new supervisor sessions."""
    supervisor.open(sessions, attached=False)
    opened = supervisor.sessions[-sessions:]
    return Served([what, str(folder)], opened, [line for line, _ in events()])


def paint_of(folder: Path, session: ManagedSession, text: str) -> tuple[float, float]:
    """Open the page of a newly started service in Chromium, and let it show a session.

    Returns:
        The first paint, and when ``text`` can be seen, in seconds since the navigation began.
    """
    with closing(Served(["service", str(folder)], [session], [])) as served:
        return served.paint(text)


def end_of(supervisor: SupervisorProcess, folder: Path, session: ManagedSession) -> float:
    """Return how many seconds of processor time a newly started service needs to send the end of a session."""
    with closing(Served(["service", str(folder)], [session], [])) as served:
        return served.open_end()


def write_long(supervisor: SupervisorProcess, turns: int) -> ManagedSession:
    """Open a session and write ``turns`` turns of 100 KB each into it."""
    import long_session  # in tests/support: importing workloads makes this folder known

    supervisor.open(1, attached=False)
    session = supervisor.sessions[-1]
    size = 0
    for line in long_session.long_output(turns):
        size += len(line)
        with open(session.output, "wb", closefd=False) as output:
            output.write(line)
    kept = 0
    while kept < size:
        infos = supervisor.reply({"list": {}})["sessions"]
        kept = next(info["bytes"] for info in infos if info["id"] == session.id)
    return session


def plain_app(folder: str) -> Any:
    """Return an endpoint for Server-Sent Events as a program would write it with Starlette: one queue per connection.

    It looks up the bytes for a line in a table, and does not parse the line.
    """
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    pieces = dict(events())
    queues: dict[str, set[asyncio.Queue[bytes]]] = {}

    def follow(session: str) -> None:
        supervisor = socket.socket(socket.AF_UNIX)
        supervisor.connect(f"{folder}/socket")
        supervisor.sendall(json.dumps({"attach": session}).encode() + b"\n")
        supervisor.setblocking(False)
        rest = b""

        def on_readable() -> None:
            nonlocal rest
            *lines, rest = (rest + supervisor.recv(1 << 16)).split(b"\n")
            for line in lines:
                piece = pieces.get(line + b"\n")
                if piece is not None:
                    for queue in queues[session]:
                        queue.put_nowait(piece)

        asyncio.get_running_loop().add_reader(supervisor, on_readable)

    async def stream(session: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        if session not in queues:
            queues[session] = set()
            follow(session)
        queues[session].add(queue)
        try:
            yield b"retry: 1000\n\nevent: session_state\n\n"
            while True:
                yield await queue.get()
        finally:
            queues[session].discard(queue)

    async def answer(request: Request) -> StreamingResponse:
        return StreamingResponse(stream(request.path_params["id"]), media_type="text/event-stream")

    app = Starlette(routes=[Route("/sessions/{id}/events", answer)])
    app.state.service = argparse.Namespace(close=lambda: None)
    return app


def main(what: str, folder: str) -> None:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from claude_wire_kit.supervisor.attach import connect
    from claude_wire_kit.web import Config, create_app
    from claude_wire_kit.web.server import BoundedProtocol, ServiceServer, listen

    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = plain_app(folder) if what == "plain" else create_app(connect(folder), Config(), TOKEN, port=port)
    protocol: Any = H11Protocol if what == "plain" else BoundedProtocol
    print(port, flush=True)
    asyncio.run(ServiceServer(app, protocol).serve(sockets=[listener]))


if __name__ == "__main__":
    main(*sys.argv[1:])
