"""A fake of the web service for the page, over HTTP. A test supplies the events and reads the page's requests.

It replaces ``claude_wire_kit.web`` in tests that decide which events are sent, when, and when a connection is lost.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

import recordings
from claude_wire_kit.web.events import Source

__all__ = ["POLICY", "PageServer", "PlayedSession", "events_of", "serve_page"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
TOKEN = "a-token-of-the-tests-a-token-of-the-tests"
COOKIE = "claude_wire_test=yes"
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

Event = dict[str, Any]


def events_of(recording: str, *, details: bool = False) -> list[Event]:
    """Return the events that the service makes from a recording, with the deltas of texts."""
    source = Source(1, 1, details)
    lines = recordings.load(recording).stdout.splitlines()
    return [json.loads(event.json) for number, line in enumerate(lines, 1) for event in source.add(number, line)]


@dataclass
class PlayedSession:
    """A session whose events come from a test. Each event counts as one line."""

    id: str
    name: str | None = None
    cwd: str = "/home/user/shop"
    life: str = "idle"
    began: float = 1.0
    epoch: int = 1
    ended: bool = False
    events: list[str] = field(default_factory=list)
    #: The ids of the open questions.
    open: dict[str | int, None] = field(default_factory=dict)
    #: The page's requests: ``prompts``, ``answers`` or ``interrupt``, with the body.
    posts: list[tuple[str, Any]] = field(default_factory=list)
    #: If set, the service refuses requests with this status, error and message.
    refusal: tuple[int, str, str] | None = None
    #: A page that opens the session receives at least this many of the last events.
    at_once: int = 10_000
    #: Whether prompts become events, as with a CLI that repeats prompts.
    repeats: bool = True
    #: The ``Last-Event-ID`` header of each connection.
    connections: list[str | None] = field(default_factory=list)
    #: A counter. Each increment closes all connections.
    cuts: int = 0
    states: int = 0
    news: threading.Condition = field(default_factory=threading.Condition)

    def publish(self, *events: Event) -> None:
        """Send events."""
        with self.news:
            for event in events:
                self.events.append(json.dumps(event))
                if event["type"] == "permission_request":
                    self.open[event["requestId"]] = None
                elif event["type"] == "permission_cancelled":
                    self.open.pop(event["requestId"], None)
            self.news.notify_all()

    def settle(self, id: str | int) -> None:
        """Close a question: this page or another client has answered it."""
        with self.news:
            self.open.pop(id, None)
            self.states += 1
            self.news.notify_all()

    def end(self) -> None:
        """End the session, as if its CLI had ended."""
        with self.news:
            self.ended, self.life = True, "ended"
            self.open.clear()
            self.states += 1
            self.news.notify_all()

    def resume(self) -> None:
        """Resume the session, as if a CLI had started again."""
        with self.news:
            self.ended, self.life = False, "idle"
            self.states += 1
            self.news.notify_all()

    def cut(self) -> None:
        """End all connections."""
        with self.news:
            self.cuts += 1
            self.news.notify_all()

    def has_news(self, cuts: int, line: int, states: int) -> bool:
        """Return whether a connection has something new to send."""
        return self.cuts > cuts or len(self.events) > line or self.states > states

    def wait_for_posts(self, count: int) -> list[tuple[str, Any]]:
        """Wait until the page has sent ``count`` requests, and return them."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.posts) >= count, 20), self.posts
            return list(self.posts)

    def wait_for_connections(self, count: int) -> list[str | None]:
        """Wait until the page has connected ``count`` times. Return the ``Last-Event-ID`` of each connection."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.connections) >= count, 20), self.connections
            return list(self.connections)


class PageServer(ThreadingHTTPServer):
    """A server for the page and its sessions."""

    daemon_threads = True
    # A browser may disconnect in the middle of a response; that is not an error.
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: dict[str, PlayedSession] = {}
        self.created: list[Any] = []
        self.profiles: list[str] = ["work"]
        #: For every profile: the options that a user may choose (name -> values), and the options that the profile
        #: sets.
        self.choices: dict[str, list[Any]] = {}
        self.options: dict[str, Any] = {}
        #: While this is set, the service acts as if it were down.
        self.is_away = threading.Event()

    @property
    def url(self) -> str:
        """The address of the page, without a token."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    @property
    def entry(self) -> str:
        """The address with the token, as the command prints it."""
        return f"{self.url}#token={TOKEN}"

    def add(self, id: str, *events: Event, **fields: Any) -> PlayedSession:
        """Add a session with these events."""
        session = self.sessions[id] = PlayedSession(id, **{"name": id, "began": len(self.sessions) + 1.0, **fields})
        session.publish(*events)
        return session

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: the browser has closed a connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: PageServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.split("?")[0].strip("/")
        if self.server.is_away.is_set():
            self._json(503, {"error": "absent", "message": "the supervisor is not there"})
        elif path == "sessions":
            self._sessions()
        elif path.startswith("sessions/"):
            session = self.server.sessions[path.split("/")[1]]
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            if "before" in asked:
                self._older(session, asked["before"], int(asked["last"]))
            else:
                self._events(session, int(asked.get("last", session.at_once)))
        else:
            self._file(path or "index.html")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert not body or self.headers["Content-Type"] == "application/json"
        data = json.loads(body) if body else None
        path = self.path.strip("/").split("/")
        if path == ["login"]:
            if data["token"] == TOKEN:
                self._empty({"Set-Cookie": f"{COOKIE}; HttpOnly; SameSite=Strict"})
            else:
                self._json(401, {"error": "token", "message": "the token is wrong"})
        elif not self._is_known():
            return
        elif path == ["sessions"]:
            self.server.created.append(data)
            self._json(201, {"id": self.server.add(f"made-{len(self.server.created)}", name=data.get("name")).id})
        else:
            self._act(self.server.sessions[path[1]], path[2], data)

    def _act(self, session: PlayedSession, what: str, data: Any) -> None:
        with session.news:
            session.posts.append((what, data))
            # Publish the prompt before waking the test, which publishes the events after the prompt.
            if what == "prompts" and session.repeats and not session.refusal:
                session.publish({"type": "user_prompt", "content": data["text"], "id": data["uuid"]})
            session.news.notify_all()
        if session.refusal:
            status, error, message = session.refusal
            self._json(status, {"error": error, "message": message})
            return
        if what == "resume":
            session.resume()
        if what == "answers":
            if data["requestId"] not in session.open:
                self._json(409, {"error": "settled", "message": "the question is settled"})
                return
            session.settle(data["requestId"])
        self._empty({})

    def _is_known(self) -> bool:
        if COOKIE in self.headers.get("Cookie", ""):
            return True
        self._json(401, {"error": "token", "message": "a token is needed"})
        return False

    def _sessions(self) -> None:
        if self._is_known():
            names = ("id", "name", "cwd", "life", "began")
            found = [{name: getattr(one, name) for name in names} for one in self.server.sessions.values()]
            choices = {"choices": self.server.choices, "options": self.server.options}
            profiles = [{"name": name, "roots": ["/home/user"], **choices} for name in self.server.profiles]
            self._json(200, {"sessions": found, "profiles": profiles})

    def _older(self, session: PlayedSession, before: str, count: int) -> None:
        """Send the events before an id, as JSON."""
        if not self._is_known():
            return
        end = int(before.split(".")[1]) - 1
        first = max(0, end - count)
        events = [
            {"id": f"{session.epoch}.{line}.0", "event": json.loads(event)}
            for line, event in enumerate(session.events[first:end], first + 1)
        ]
        self._json(200, {"events": events, "before": f"{session.epoch}.{first + 1}.0" if first else None})

    def _events(self, session: PlayedSession, count: int) -> None:
        if not self._is_known():
            return
        last = self.headers.get("Last-Event-ID")
        with session.news:
            session.connections.append(last)
            session.news.notify_all()
        older = max(0, len(session.events) - max(count, session.at_once))
        epoch, line = (session.epoch, older) if last is None else map(int, last.split(".")[:2])
        if epoch != session.epoch:
            self._json(410, {"error": "epoch", "message": "the id belongs to another journal"})
            return
        self._head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        self.close_connection = True
        if last is None and older:
            before = {"type": "older", "before": f"{session.epoch}.{older + 1}.0"}
            self.wfile.write(f"event: older\ndata: {json.dumps(before)}\n\n".encode())
        for chunk in self._stream(session, line):
            self.wfile.write(chunk.encode())

    def _stream(self, session: PlayedSession, line: int) -> Iterator[str]:
        cuts, told = session.cuts, -1
        while True:
            with session.news:
                session.news.wait_for(lambda: session.has_news(cuts, line, told), 5)  # noqa: B023 - it is called here
                if session.cuts > cuts:
                    return
                events, states = session.events[line:], session.states
                state = {"type": "session_state", "ended": session.ended, "exitCode": 0 if session.ended else None}
                state["open"] = list(session.open)
            for event in events:
                line += 1
                yield f"id: {session.epoch}.{line}.0\ndata: {event}\n\n"
            if states > told:
                told = states
                yield f"event: session_state\ndata: {json.dumps(state)}\n\n"
            else:
                yield 'event: beat\ndata: {"type":"beat"}\n\n'

    def _file(self, name: str) -> None:
        found = _PAGE.files.get(name)
        if found is None:
            self._json(404, {"error": "request", "message": "Not Found"})
            return
        self._head(200, {"Content-Type": TYPES[name.rpartition(".")[2]], "Content-Length": str(len(found))})
        self.wfile.write(found)

    def _json(self, status: int, data: Any) -> None:
        body = json.dumps(data).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _empty(self, headers: dict[str, str]) -> None:
        self._head(204, headers)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}.items():
            self.send_header(name, value)
        self.end_headers()


class _Page:
    @cached_property
    def files(self) -> dict[str, bytes]:
        folder = resources.files("claude_wire_kit") / "web" / "page"
        files = {file.name: file for file in folder.iterdir() if file.is_file()}
        files |= {f"vendor/{file.name}": file for file in (folder / "vendor").iterdir()}
        return {name: file.read_bytes() for name, file in files.items()}


_PAGE = _Page()


@contextmanager
def serve_page() -> Iterator[PageServer]:
    """Run a server for a block."""
    with PageServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            for session in server.sessions.values():
                session.cut()
            server.shutdown()
            thread.join(10)
