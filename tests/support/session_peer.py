"""An in-memory CLI for a session. It writes the messages of a test and keeps the lines that the session sends."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

from async_backends import DEADLINE
from claude_wire import CanUseToolRequest, Decoder, MessageStream, Session, UserMessage
from claude_wire.messages import PermissionResult
from claude_wire.native.budget import queued_bytes

__all__ = [
    "ASKING_CHILD",
    "INIT",
    "RESULT",
    "Output",
    "Peer",
    "Server",
    "allow",
    "collect",
    "hook_ids",
    "hook_request",
    "line",
    "never",
    "numbered",
    "numbers",
    "opened",
    "opened_for_questions",
    "queued_bytes",
    "rest",
    "stays_unanswered",
    "take",
]

#: The message that begins a turn.
INIT: dict[str, Any] = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/", "tools": [], "model": "m"}
#: The message that ends a turn.
RESULT: dict[str, Any] = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}

#: The program of a child that acts as the CLI and asks as many questions as its argument says.
ASKING_CHILD = """
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"]})
    elif message["type"] == "user":
        for number in range(int(sys.argv[1])):
            say(type="user", message={"role": "user", "content": f"{number} "}, session_id="")
        say(type="control_request", request_id="p" + message["uuid"], request={"subtype": "can_use_tool",
            "tool_name": "Bash", "input": {}, "tool_use_id": "t"})
    elif message["type"] == "control_response":
        say(type="result", subtype="success", is_error=False)
"""


def line(message: dict[str, Any]) -> bytes:
    """Return a message as a line in the CLI's compact JSON."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def numbered(number: int, size: int = 0) -> dict[str, Any]:
    """Return a user message that contains this number and at least ``size`` more characters."""
    return {"type": "user", "message": {"role": "user", "content": f"{number} " + "x" * size}, "session_id": ""}


def numbers(messages: Iterable[Any]) -> list[int]:
    """Return the numbers in the messages of ``numbered``. There must be no other messages."""
    found = []
    for message in messages:
        assert isinstance(message, UserMessage), message
        found.append(int(message.text.split()[0]))
    return found


class Output:
    """An asynchronous iterator of chunks. Cancelling ``__anext__`` loses nothing."""

    def __init__(self) -> None:
        self._chunks: deque[bytes | Exception] = deque()
        self._ended = False
        self._changed = anyio.Event()
        #: The number of chunks, and of bytes, that the reader has received so far.
        self.given = self.given_bytes = 0

    def write(self, chunk: bytes | Exception) -> None:
        """Queue a chunk to return, or an exception to raise, from ``__anext__``."""
        assert not self._ended
        if chunk:
            self._chunks.append(chunk)
            self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    @property
    def waiting(self) -> int:
        """The number of chunks that the reader has not taken yet."""
        return len(self._chunks)

    def __aiter__(self) -> Output:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._ended:
                raise StopAsyncIteration
            self._changed = anyio.Event()
            await self._changed.wait()
        chunk = self._chunks.popleft()
        if isinstance(chunk, Exception):
            raise chunk
        self.given += 1
        self.given_bytes += len(chunk)
        return chunk


class Peer:
    """A fake CLI at the other end of a session.

    Args:
        answers: subtype of the session's request -> the payload to answer, or a function of the request that returns
            it. An exception becomes an error answer, with its arguments as text and code. Requests of other subtypes
            wait until the test answers them.
    """

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.output = Output()
        self.stream: MessageStream[Any] = MessageStream(self.output)
        self.answers = {"initialize": {}, **(answers or {})}
        #: The messages that the session sent, one per line.
        self.lines: list[dict[str, Any]] = []
        #: If set, :meth:`send` raises this.
        self.failure: Exception | None = None
        #: :meth:`send` awaits this before it accepts a line.
        self.hold: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        self._sending = False
        self._changed = anyio.Event()

    def session(self, *, decoder: Decoder[Any] | None = None, **arguments: Any) -> Session:
        """Return a session that is connected to this peer."""
        if decoder is not None:
            self.stream = MessageStream(self.output, decoder)
        return Session(self.stream, self.send, **arguments)

    # --- what the session sends

    async def send(self, data: bytes) -> None:
        assert not self._sending, "a line was sent while another one was"
        self._sending = True
        try:
            await self.hold()
            if self.failure is not None:
                raise self.failure
        finally:
            self._sending = False
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        self.took(json.loads(data))

    def took(self, message: dict[str, Any]) -> None:
        self.lines.append(message)
        self._changed.set()
        if message["type"] == "control_request" and message["request"]["subtype"] in self.answers:
            answer = self.answers[message["request"]["subtype"]]
            if callable(answer):
                answer = answer(message["request"])
            self.answer(message["request_id"], answer)

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until a condition on the sent lines is true, and return its value."""
        with anyio.fail_after(DEADLINE):
            while not (value := condition()):
                self._changed = anyio.Event()
                await self._changed.wait()
        return value

    async def answer_to(self, request_id: str) -> dict[str, Any]:
        """Wait for the answer to a request of the peer. Check that there is only one."""
        found = await self.until(lambda: self.answers_to(request_id))
        assert len(found) == 1
        answer: dict[str, Any] = found[0]
        return answer

    def answers_to(self, request_id: str) -> list[dict[str, Any]]:
        responses = [message["response"] for message in self.lines if message["type"] == "control_response"]
        return [response for response in responses if response.get("request_id") == request_id]

    async def asked(self, subtype: str, count: int = 1) -> dict[str, Any]:
        """Wait for the ``count``-th request of a subtype. The result has the request's id as ``request_id``."""
        found = await self.until(lambda: self.requests(subtype)[count - 1 : count])
        request: dict[str, Any] = found[0]
        return request

    def requests(self, subtype: str) -> list[dict[str, Any]]:
        asked = [message for message in self.lines if message["type"] == "control_request"]
        return [
            {**message["request"], "request_id": message["request_id"]}
            for message in asked
            if message["request"]["subtype"] == subtype
        ]

    def withdrawn(self) -> list[str]:
        """Return the ids of the requests that the session has withdrawn."""
        return [message["request_id"] for message in self.lines if message["type"] == "control_cancel_request"]

    def prompts(self) -> list[dict[str, Any]]:
        return [message for message in self.lines if message["type"] == "user"]

    # --- what the peer writes

    def say(self, *messages: dict[str, Any], size: int | None = None) -> None:
        """Write messages as one chunk, or in chunks of this size."""
        self.write(b"".join(map(line, messages)), size)

    def write(self, data: bytes, size: int | None = None) -> None:
        for at in range(0, len(data), size or len(data) or 1):
            self.output.write(data[at : at + (size or len(data))])

    def answer(self, request_id: str, payload: Any = None, **more: Any) -> None:
        """Answer a request of the session with a payload, or with an error if ``payload`` is an exception."""
        if isinstance(payload, Exception):
            response = {"subtype": "error", "request_id": request_id, "error": payload.args[0], **more}
            if len(payload.args) > 1:
                response["error_code"] = payload.args[1]
        else:
            response = {"subtype": "success", "request_id": request_id, **more}
            if payload is not None:
                response["response"] = payload
        self.say({"type": "control_response", "response": response})

    @staticmethod
    def request(request_id: str, subtype: str, **fields: Any) -> dict[str, Any]:
        """Return a control request of the peer."""
        return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}

    @staticmethod
    def permission(request_id: str, tool: str = "Bash", **fields: Any) -> dict[str, Any]:
        asked = {"tool_name": tool, "input": {"command": "ls"}, "tool_use_id": f"use-{request_id}", **fields}
        return Peer.request(request_id, "can_use_tool", **asked)

    @staticmethod
    def cancel(request_id: str) -> dict[str, Any]:
        return {"type": "control_cancel_request", "request_id": request_id}


@asynccontextmanager
async def opened(peer: Peer | None = None, **arguments: Any) -> AsyncIterator[tuple[Peer, Session]]:
    peer = peer or Peer()
    async with peer.session(**arguments) as session:
        await session.initialize()
        yield peer, session


async def allow(request: CanUseToolRequest) -> PermissionResult:
    return request.allow()


@asynccontextmanager
async def opened_for_questions(peer: Peer | None = None, **arguments: Any) -> AsyncIterator[tuple[Peer, Session]]:
    """Open a session without ``initialize`` that allows every tool. Close its stream at the end."""
    peer = peer or Peer()
    async with peer.session(**{"can_use_tool": allow, **arguments}) as session:
        yield peer, session
    await peer.stream.aclose()


async def rest(session: Session) -> list[Any]:
    """Return all remaining messages."""
    return [message async for message in session]


async def take(session: Session, count: int) -> list[Any]:
    """Return the next ``count`` messages."""
    return [await session.__anext__() for _ in range(count)]


async def collect(messages: AsyncIterable[Any], got: list[Any]) -> None:
    """Append each message to ``got`` as it arrives."""
    async for message in messages:
        got.append(message)


async def never() -> PermissionResult:
    await anyio.sleep_forever()
    raise AssertionError


async def stays_unanswered(peer: Peer, *request_ids: str) -> None:
    """Check that these requests have no answer even after a later request was answered."""
    barrier = f"barrier-{len(peer.lines)}"
    peer.say(Peer.request(barrier, "nonsense"))
    await peer.answer_to(barrier)
    await anyio.wait_all_tasks_blocked()
    for request_id in request_ids:
        assert peer.answers_to(request_id) == []


def hook_ids(peer: Peer) -> list[str]:
    """Return the ids of all hooks in the session's last ``initialize``, in order."""
    told = peer.requests("initialize")[-1]["hooks"]
    return [id for matchers in told.values() for matcher in matchers for id in matcher["hookCallbackIds"]]


def hook_request(request_id: str, callback_id: str, event: str = "PreToolUse") -> dict[str, Any]:
    about = {"session_id": "s", "transcript_path": "/t", "cwd": "/"}
    tool = {"tool_name": "Bash", "tool_input": {"command": "ls"}} if event == "PreToolUse" else {}
    asked = {"hook_event_name": event, **about, **tool}
    return Peer.request(request_id, "hook_callback", callback_id=callback_id, input=asked, tool_use_id="t")


class Server:
    """An MCP server whose behavior depends on the method of each message."""

    def __init__(self) -> None:
        self.handled: list[dict[str, Any]] = []
        self.send: Callable[[dict[str, Any]], Awaitable[None]] | None = None
        self.closed = 0

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        assert self.send is None
        assert not self.handled
        self.send = send

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        assert self.send is not None
        assert not self.closed
        self.handled.append(message)
        await anyio.lowlevel.checkpoint()
        if message["method"] == "raise":
            raise ValueError("inside")
        if message["method"] == "notify":
            await self.send({"jsonrpc": "2.0", "method": "notifications/progress"})
        if "id" not in message:
            return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"echo": message["method"]}}

    async def aclose(self) -> None:
        self.closed += 1
