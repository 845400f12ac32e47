"""Session: the forms of a prompt, and how the session sends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
import pytest

from async_backends import every_asyncio, every_backend
from claude_wire import HandleError, MessageStream, Session, TextBlock, UserMessage
from claude_wire.session.prompts import message_of
from session_peer import INIT, RESULT, Peer, opened


@every_backend
async def test_query_sends_text_blocks_whole_messages_and_all_of_an_iterable() -> None:
    async with opened() as (peer, session):
        await session.query("text", session_id="s")
        await session.query([TextBlock("block")], uuid="11111111-1111-4111-8111-111111111111")
        await session.query(UserMessage.of("whole", uuid="u2"))
        await session.query(UserMessage.of("whole", uuid="u2"), uuid="u3")

        async def prompts() -> AsyncIterator[str | UserMessage]:
            yield "one"
            yield UserMessage.of("two", uuid="u4")

        await session.query(prompts())
        with pytest.raises(TypeError, match="uuid"):
            await session.query(prompts(), uuid="one for all")
    sent = peer.prompts()
    contents = [message["message"]["content"] for message in sent]
    assert contents == ["text", [{"type": "text", "text": "block"}], "whole", "whole", "one", "two"]
    assert all(message["message"]["role"] == "user" for message in sent)
    assert sent[0]["session_id"] == "s"
    uuids = [message["uuid"] for message in sent]
    assert uuids[1:4] == ["11111111-1111-4111-8111-111111111111", "u2", "u3"]
    assert uuids[5] == "u4"
    assert len(set(uuids)) == len(uuids)


@every_asyncio
async def test_verbatim_prompts_are_marked_as_composed_by_the_client() -> None:
    async with opened(verbatim_prompts=True) as (peer, session):
        await session.query("@secret.txt", uuid="u1")
        await session.query(UserMessage.of("/cost", uuid="u2"))
        await session.query(msgspec.structs.replace(UserMessage.of("/cost", uuid="u3"), client_composed=False))
    assert [prompt["client_composed"] for prompt in peer.prompts()] == [True, True, False]


@every_asyncio
async def test_prompts_are_not_marked_unless_the_session_says_so() -> None:
    async with opened() as (peer, session):
        await session.query("@notes.txt")
    assert ["client_composed" in prompt for prompt in peer.prompts()] == [False]


@every_backend
async def test_query_raises_what_sending_raises_and_owes_no_turn() -> None:
    async with opened() as (peer, session):
        peer.failure = OSError("broken")
        with pytest.raises(OSError, match="broken"):
            await session.query("x")
        assert [message async for message in session.receive_run()] == []


@every_asyncio
async def test_what_sends_is_cancelled_by_nobody_in_the_session() -> None:
    async with opened() as (peer, session):

        async def cancelled() -> None:
            import asyncio

            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        peer.hold = cancelled
        with pytest.raises(HandleError, match="cancelled"):
            await session.query("x")
        peer.hold = anyio.lowlevel.checkpoint
        await session.query("y")


@every_backend
async def test_nobody_else_reads_while_ask_sends_its_prompt() -> None:
    """Otherwise another task could take the messages that answer the prompt."""
    async with opened() as (peer, session):
        go = anyio.Event()
        peer.hold = go.wait
        async with anyio.create_task_group() as group:
            group.start_soon(session.ask, "x")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(HandleError, match="ask"), anyio.fail_after(60):
                await session.__anext__()
            go.set()
            (prompt,) = await peer.until(peer.prompts)
            peer.say(INIT, {**RESULT, "user_message_uuids": [prompt["uuid"]]})


@every_backend
async def test_all_who_wait_to_send_are_told_that_the_session_was_closed() -> None:
    peer = Peer()
    told: list[int] = []

    async def send(session: Session, number: int) -> None:
        with pytest.raises(HandleError, match="closed"):
            await session.query(str(number))
        told.append(number)

    async with anyio.create_task_group() as group, peer.session() as session:
        peer.hold = anyio.sleep_forever
        for number in range(4):
            group.start_soon(send, session, number)
        await anyio.wait_all_tasks_blocked()
        await session.aclose()
        with anyio.fail_after(60):
            while len(told) < 4:
                await anyio.sleep(0.001)
    assert peer.lines == []


@every_backend
async def test_a_cancelled_query_leaves_no_half_line() -> None:
    async with opened() as (peer, session):
        begun, go = anyio.Event(), anyio.Event()

        async def hold() -> None:
            begun.set()
            await go.wait()

        peer.hold = hold
        async with anyio.create_task_group() as group:
            group.start_soon(session.query, "first")
            await begun.wait()
            group.cancel_scope.cancel()
        go.set()
        await session.query("second")
        assert [prompt["message"]["content"] for prompt in peer.prompts()] == ["first", "second"]


@every_backend
async def test_a_prompt_that_is_cancelled_before_its_turn_to_be_sent_is_not_sent() -> None:
    go = anyio.Event()
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        await go.wait()
        sent.append(data)

    async with Session(MessageStream(Peer().output), send) as session, anyio.create_task_group() as group:
        scopes = [anyio.CancelScope(), anyio.CancelScope()]

        async def ask(scope: anyio.CancelScope, text: str) -> None:
            with scope:
                await session.query(text)

        for scope, text in zip(scopes, ("first", "second"), strict=True):
            group.start_soon(ask, scope, text)
            await anyio.wait_all_tasks_blocked()
        for scope in scopes:
            scope.cancel()  # the first prompt is partly written, so the session completes it
        await anyio.wait_all_tasks_blocked()
        go.set()
        await anyio.wait_all_tasks_blocked()
        assert len(sent) == 1
        assert b"first" in sent[0]
        assert not session._reading.run.over


@every_backend
@pytest.mark.parametrize("prompt", [{"type": "user"}, ["one", "two"], [], b"bytes", 5], ids=str)
async def test_what_is_no_prompt_is_refused_and_not_sent(prompt: Any) -> None:
    async with opened() as (peer, session):
        with pytest.raises(TypeError, match="a prompt is text"):
            await session.query(prompt)
        assert peer.prompts() == []


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt_is_refused_before_anything_is_sent(prompt: str) -> None:
    with pytest.raises(ValueError, match="the prompt is empty"):
        message_of(prompt)
