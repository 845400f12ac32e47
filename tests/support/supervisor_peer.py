"""A fake supervisor in memory. It keeps the lines of a CLI and passes them to one client after the other."""

from __future__ import annotations

import json
from typing import Any

import anyio
import msgspec

from async_backends import DEADLINE
from claude_wire import MessageStream
from claude_wire.streams.message_stream import receiver_of
from claude_wire_kit.supervisor.frames import NOTHING, Attached, Cursor, Ended, Life, Started
from claude_wire_kit.supervisor.session import AttachedSession
from session_peer import RESULT, Output, line

__all__ = ["SupervisorPeer", "Wire", "result"]

#: The CLI's answer to the supervisor's ``initialize``.
INITIALIZED: dict[str, Any] = {
    "type": "control_response",
    "response": {
        "subtype": "success",
        "request_id": "claude_wire_supervisor_initialize",
        "response": {"output_style": "default", "hook_on_failure_supported": True},
    },
}


def result(*uuids: str) -> dict[str, Any]:
    """Return a result that names the prompts it answers."""
    return {**RESULT, "user_message_uuids": list(uuids)}


class Wire:
    """The connection of one client: it carries the lines in both directions."""

    def __init__(self, host: SupervisorPeer) -> None:
        self.output = Output()
        self.attachment = PeerAttachment(self)
        self.received: list[dict[str, Any]] = []
        self.is_broken = False
        self._host = host

    def say(self, **frame: Any) -> None:
        """Write a frame of the supervisor."""
        self.write(line(frame))

    def write(self, data: bytes) -> None:
        """Write bytes in chunks of the peer's ``chunk`` size."""
        size = self._host.chunk or len(data) or 1
        for at in range(0, len(data), size):
            self.output.write(data[at : at + size])

    def send(self, data: bytes) -> None:
        """Receive a line from the client."""
        if self.is_broken:
            raise BrokenPipeError
        message = json.loads(data)
        self.received.append(message)
        self._host.took(self, message)

    async def sends(self, data: bytes) -> None:
        """Call :meth:`send` from an async function."""
        self.send(data)

    def lose(self) -> None:
        """Break the connection."""
        self.is_broken = True
        self.output.end()

    async def until(self, condition: Any) -> Any:
        """Wait until a condition on the received lines is true, and return its value."""
        with anyio.fail_after(DEADLINE):
            while not (value := condition()):
                await anyio.sleep(0.001)
        return value

    async def answer_to(self, request_id: str) -> dict[str, Any]:
        """Wait for the answer to a question, and check that there is only one."""
        found = await self.until(lambda: self.answers_to(request_id))
        assert len(found) == 1
        answer: dict[str, Any] = found[0]
        return answer

    def answers_to(self, request_id: str) -> list[dict[str, Any]]:
        responses = [message["response"] for message in self.received if message["type"] == "control_response"]
        return [response for response in responses if response["request_id"] == request_id]

    def prompts(self) -> list[str]:
        return [message["uuid"] for message in self.received if message["type"] == "user"]


class PeerAttachment:
    """A connection whose supervisor has already answered; see ``claude_wire_kit.supervisor.Attachment``."""

    def __init__(self, wire: Wire) -> None:
        self.answer: Attached | None = None
        self.chunks = receiver_of(MessageStream(wire.output)).chunks
        self._wire = wire

    async def open(self, serves: object, complete: object) -> Attached:
        assert self.answer is not None
        return self.answer

    async def send(self, data: bytes) -> None:
        await self._wire.sends(data)

    async def aclose(self) -> None:
        await self.chunks.aclose()


class SupervisorPeer:
    """A fake supervisor with one session.

    Args:
        chunk: the size of the chunks to write, in bytes; None for whole lines.
        acknowledges: whether the peer acknowledges each line immediately.
    """

    def __init__(self, *, chunk: int | None = None, acknowledges: bool = True) -> None:
        self.chunk = chunk
        self.acknowledges = acknowledges
        #: The lines of the CLI, including their line feeds.
        self.journal: list[bytes] = []
        #: The open questions of the CLI, and the first answer to each of the others.
        self.open: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        #: The prompts that the CLI received, and those without a result yet.
        self.prompts: list[str] = []
        self.owed: list[str] = []
        self.handshakes: dict[str, list[dict[str, Any]]] = {}
        self.initialized: dict[str, Any] | None = INITIALIZED
        self.ended: Ended | None = None
        self.started: Started | None = None
        self.turn = False
        self.subagents: list[str] = []
        self.wires: list[Wire] = []

    # --- the CLI

    def say(self, *messages: dict[str, Any]) -> None:
        """Write messages as the CLI."""
        for message in messages:
            if message["type"] == "control_request":
                self.open[message["request_id"]] = message
            elif message["type"] == "control_cancel_request":
                self.open.pop(message["request_id"], None)
            elif message["type"] == "result":
                self.turn = False
                self.owed = [uuid for uuid in self.owed if uuid not in message.get("user_message_uuids", [])]
            elif message["type"] == "system" and message.get("subtype") == "init":
                self.turn = True
            self.raw(line(message))

    def raw(self, data: bytes) -> None:
        """Write one line as the CLI."""
        assert data.count(b"\n") == 1
        assert data.endswith(b"\n")
        self.journal.append(data)
        for wire in self.wires:
            if not wire.is_broken:
                wire.write(data)

    # --- clients

    def attached(self, after: Cursor | None = None, *, role: str = "driver") -> Attached:
        """Return the answer to a client that attaches after a cursor."""
        cli_line = len(self.journal)
        return Attached(
            id="s1",
            epoch=1,
            after=0 if after is None else after.line,
            line=cli_line,
            role="driver" if role == "driver" else "viewer",
            driver=True,
            life=Life.RUNNING if self.turn else Life.IDLE,
            turn=self.turn,
            subagents=self.subagents,
            open=[msgspec.Raw(json.dumps(message).encode()) for message in self.open.values()],
            owed=list(self.owed),
            initialized=NOTHING if self.initialized is None else msgspec.Raw(json.dumps(self.initialized).encode()),
            handshakes=self.handshakes,
            ended=self.ended,
            started=self.started,
        )

    def connect(
        self, after: Cursor | None = None, *, role: str = "driver", **arguments: Any
    ) -> tuple[Wire, AttachedSession]:
        """Attach a client after a cursor. Return its connection and its session."""
        answer = self.attached(after, role=role)
        wire = Wire(self)
        self.wires.append(wire)
        wire.write(b"".join(self.journal[answer.after :]))
        return wire, self.session(wire, answer, **arguments)

    def session(self, wire: Wire, answer: Attached, **arguments: Any) -> AttachedSession:
        """Return the session of a client whose connection received this answer."""
        wire.attachment.answer = answer
        attachment: Any = wire.attachment
        return AttachedSession(attachment, **arguments)

    def took(self, wire: Wire, message: dict[str, Any]) -> None:
        """Handle a line from a client."""
        if message["type"] == "control_response":
            request_id = message["response"]["request_id"]
            if self.open.pop(request_id, None) is not None:
                self.answers[request_id] = message["response"]
        elif message["type"] == "user" and message["uuid"] not in self.prompts:
            self.prompts.append(message["uuid"])
            self.owed.append(message["uuid"])
        if self.acknowledges:
            wire.say(type="supervisor_accepted", lines=len(wire.received))
