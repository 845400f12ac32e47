"""An in-memory host for an agent. It sends the messages of a test and keeps the messages that the agent writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import ByteSendStream, TaskGroup

from claude_wire.agent import Agent
from claude_wire.agent.agent import service_of
from claude_wire.agent.service import Service

__all__ = ["Host", "hosted", "initialize", "kinds", "prompt"]


def prompt(text: Any, uuid: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a user message as a host writes it."""
    ids = {} if uuid is None else {"uuid": uuid}
    return {"type": "user", "message": {"role": "user", "content": text}, **ids, **fields}


def initialize(**fields: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": "init", "request": {"subtype": "initialize", **fields}}


def kind(message: dict[str, Any]) -> str:
    """Return a short name for a message: ``user/tool_result``, ``stream_event/content_block_delta``."""
    tag = message["type"]
    if tag == "stream_event":
        return f"{tag}/{message['event']['type']}"
    if tag == "control_request":
        return f"{tag}/{message['request']['subtype']}"
    if tag == "control_response":
        return f"{tag}/{message['response']['subtype']}"
    if tag == "command_lifecycle":
        return f"{tag}/{message['state']}"
    if tag == "user":
        if message.get("isReplay"):
            return "user/replay"
        content = message["message"]["content"]
        return f"user/{content[0]['type']}" if isinstance(content, list) else "user/text"
    return f"{tag}/{message['subtype']}" if "subtype" in message else tag


def kinds(messages: list[dict[str, Any]]) -> list[str]:
    return [kind(message) for message in messages]


class Host(ByteSendStream):
    """Keep the agent's output in :attr:`messages`, and let :meth:`send` write the agent's input."""

    def __init__(self, raw: Callable[[dict[str, Any]], object] | None = None) -> None:
        #: Called with each frame that has no ``type``; such frames are not in :attr:`messages`.
        self._raw = raw
        self._send, self.input = anyio.create_memory_object_stream[bytes](1_000_000)
        self.messages: list[dict[str, Any]] = []
        self._rest = b""
        self._came = anyio.Event()
        self.code: int | None = None
        self.service: Service
        self.paused: anyio.Event | None = None
        self.broken = False
        #: Returns the answer to a control request of the agent, or None to leave the request unanswered.
        self.answers: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda request: None

    def start(self, agent: Agent, group: TaskGroup) -> None:
        """Start the agent in a task, with this host as its input and output."""
        self.service = service_of(agent)

        async def serve() -> None:
            with self.input:
                self.code = await self.service.run(self.input, self)

        group.start_soon(serve)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes. If the agent has ended, discard them."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._send.send(data)

    async def tell(self, *messages: dict[str, Any]) -> None:
        """Send the messages in one chunk."""
        await self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def ask(self, request_id: Any, subtype: str, **fields: Any) -> dict[str, Any]:
        return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}

    def end(self) -> None:
        """Close the agent's input. A second call does nothing."""
        self._send.close()

    # --- the agent's standard output

    async def send(self, data: bytes) -> None:
        if self.paused is not None:
            await self.paused.wait()
        if self.broken:
            raise anyio.BrokenResourceError
        assert data.endswith(b"\n")
        assert self._raw is not None or data.count(b"\n") == 1
        if self._raw is not None:
            for line in data.splitlines():
                self._raw(json.loads(line))
            return
        message = json.loads(data)
        self.messages.append(message)
        if message["type"] == "control_request":
            answer = self.answers(message["request"])
            if answer is not None:
                response = {"subtype": "success", "request_id": message["request_id"], "response": answer}
                await self.tell({"type": "control_response", "response": response})
        self._came.set()

    async def aclose(self) -> None:
        pass

    # --- the messages of the agent

    async def until(self, wanted: str, count: int = 1) -> dict[str, Any]:
        """Wait for ``count`` messages whose kind starts with ``wanted``, and return the last of them."""
        while True:
            found = [message for message in self.messages if kind(message).startswith(wanted)]
            if len(found) >= count:
                return found[count - 1]
            self._came = anyio.Event()
            await self._came.wait()

    def of(self, wanted: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if kind(message).startswith(wanted)]

    @property
    def unread(self) -> int:
        """The number of chunks that the agent has not read yet."""
        return self.input.statistics().current_buffer_used

    @property
    def kinds(self) -> list[str]:
        return kinds(self.messages)


@asynccontextmanager
async def hosted(agent: Agent) -> AsyncIterator[Host]:
    """Run an agent for a block. At its end, close the agent's input and wait until the agent has ended."""
    host = Host()
    try:
        async with anyio.create_task_group() as group:
            host.start(agent, group)
            yield host
            host.end()
    finally:
        host.end()
        host.input.close()
