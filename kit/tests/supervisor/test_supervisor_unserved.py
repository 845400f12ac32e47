"""A question without a callback in the driver stays open for a later driver. The session invents no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec

from claude_wire import MessageStream
from claude_wire.messages import AssistantMessage, ResultMessage
from claude_wire.streams.message_stream import receiver_of
from claude_wire_kit.supervisor.frames import Attached
from claude_wire_kit.supervisor.session import AttachedSession
from supervisors import SECONDS, Client, hosting


class Connection:
    """The connection of a client that is already attached."""

    def __init__(self, answer: Attached, client: Client, send: Any) -> None:
        self.answer = answer
        self.chunks = receiver_of(MessageStream(client.reader)).chunks
        self.send = send

    async def open(self, serves: object, complete: object) -> Attached:
        return self.answer

    async def aclose(self) -> None:
        pass


def session_of(client: Client, answer: Any, **callbacks: Any) -> AttachedSession:
    """Return a session over the connection of a client that is already attached."""

    async def send(line: bytes) -> None:
        client.writer.write(line)
        await client.writer.drain()

    attached = msgspec.json.decode(json.dumps(answer), type=Attached)
    connection: Any = Connection(attached, client, send)
    return AttachedSession(connection, **callbacks)


async def test_a_question_without_a_callback_waits_for_a_driver_who_has_one(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        answer = await client.ask({"create": supervisor.spec(), "role": "driver"})
        async with session_of(client, answer) as session:
            await session.query('{"ask": "q1"}')
            with anyio.fail_after(SECONDS):
                async for message in session:
                    if isinstance(message, AssistantMessage):
                        break
                while await open_questions(supervisor, answer) == []:
                    await anyio.sleep(0.01)
                # If the session answered the question, the answer would precede this request.
                await session.set_permission_mode("plan")
            assert await open_questions(supervisor, answer) == ["q1"]
            cursor = session.cursor
        client.close()
        second = await supervisor.client()
        command = {"attach": answer["id"], "role": "driver", "take": True, "after": msgspec.to_builtins(cursor)}
        async with session_of(
            second, await second.ask(command), can_use_tool=lambda request: request.allow()
        ) as session:
            with anyio.fail_after(SECONDS):
                async for message in session:
                    if isinstance(message, ResultMessage):
                        break
        assert await open_questions(supervisor, answer) == []


async def open_questions(supervisor: Any, answer: Any) -> list[str]:
    client = await supervisor.client()
    attached = await client.ask({"attach": answer["id"]})
    client.close()
    return [question["request_id"] for question in attached["open"]]
