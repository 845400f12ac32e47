"""Session.set_mcp_servers: the session and the CLI always agree on the MCP servers, even if the request fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from async_backends import every_backend
from claude_wire import ClaudeWireError, EncodeError, HandleError, RequestRefusedError, RequestTimeoutError, Session
from claude_wire.errors import PayloadError
from session_peer import Peer, opened
from virtual_time import every_virtual_backend

SUBTYPE = "mcp_set_servers"


class Counted:
    """An MCP server that counts its connections and closes."""

    def __init__(self) -> None:
        self.connected = self.closed = 0

    def connect(self, send: Any) -> None:
        self.connected += 1

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}}

    async def aclose(self) -> None:
        self.closed += 1

    @property
    def serves(self) -> bool:
        return self.connected > self.closed


def done(request: dict[str, Any]) -> dict[str, Any]:
    """The CLI's answer to a request that succeeded. The session ignores its contents."""
    return {"added": [], "removed": [], "errors": {}}


async def is_served(peer: Peer, name: str) -> bool:
    """Whether the session hands a message of the CLI to an MCP server of this name."""
    request_id = f"to-{name}-{len(peer.lines)}"
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    peer.say(Peer.request(request_id, "mcp_message", server_name=name, message=message))
    answer = await peer.answer_to(request_id)
    return "result" in answer["response"]["mcp_response"]


async def cancelled(session: Session, peer: Peer, servers: dict[str, Any]) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(session.set_mcp_servers, servers)
        await peer.asked(SUBTYPE, 2)
        group.cancel_scope.cancel()


async def timed_out(session: Session, peer: Peer, servers: dict[str, Any]) -> None:
    session._request_timeout = 0.0
    with pytest.raises(RequestTimeoutError):
        await session.set_mcp_servers(servers)


async def answered_with_nonsense(session: Session, peer: Peer, servers: dict[str, Any]) -> None:
    peer.answers[SUBTYPE] = {"added": 5}
    with pytest.raises(PayloadError):
        await session.set_mcp_servers(servers)


@every_backend
@pytest.mark.parametrize("ends", [cancelled, timed_out, answered_with_nonsense], ids=lambda ends: ends.__name__)
async def test_without_a_clear_answer_both_sets_of_servers_stay_up_to_the_next_call(ends: Callable[..., Any]) -> None:
    old, new = Counted(), Counted()
    async with opened(Peer({SUBTYPE: done})) as (peer, session):
        await session.set_mcp_servers({"old": old})
        del peer.answers[SUBTYPE]
        await ends(session, peer, {"new": new})
        await anyio.wait_all_tasks_blocked()
        # The CLI may or may not have applied the change, so the session must serve both servers.
        assert await is_served(peer, "old")
        assert await is_served(peer, "new")
        session._request_timeout = 60.0
        peer.answers[SUBTYPE] = done
        await session.set_mcp_servers({"new": new})
        assert not await is_served(peer, "old")
        assert await is_served(peer, "new")
    assert (old.connected, old.closed, new.connected, new.closed) == (1, 1, 1, 1)


@every_backend
@pytest.mark.parametrize(
    ("config", "error"),
    [({"command": "x"}, RequestRefusedError), ({"command": object()}, EncodeError)],
    ids=["refused", "never sent"],
)
async def test_what_the_cli_has_not_taken_is_closed(config: dict[str, Any], error: type[ClaudeWireError]) -> None:
    old, new = Counted(), Counted()
    async with opened(Peer({SUBTYPE: done})) as (peer, session):
        await session.set_mcp_servers({"old": old})
        peer.answers[SUBTYPE] = ValueError("not today")
        servers: dict[str, Any] = {"new": new, "other": config}
        with pytest.raises(error):
            await session.set_mcp_servers(servers)
        await anyio.wait_all_tasks_blocked()
        assert await is_served(peer, "old")
        assert not await is_served(peer, "new")
        assert (old.serves, new.serves) == (True, False)


class Slow(Counted):
    """An MCP server that needs seconds to close.

    Like a server of the package mcp, it cannot be connected before that.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def connect(self, send: Any) -> None:
        assert not self.serves
        super().connect(send)

    async def aclose(self) -> None:
        await anyio.sleep(self._seconds)
        await super().aclose()


@every_virtual_backend
@pytest.mark.parametrize("seconds", [0, 3])
@pytest.mark.parametrize("name", ["same", "other"])
async def test_a_server_that_was_left_out_can_be_added_again_at_once(seconds: float, name: str) -> None:
    server = Slow(seconds)
    async with opened(Peer({SUBTYPE: done})) as (peer, session):
        await session.set_mcp_servers({"same": server})
        await session.set_mcp_servers({})
        await session.set_mcp_servers({name: server})
        await anyio.sleep(60)
        assert server.serves
        assert await is_served(peer, name)
        assert server.connected == 2
    assert not server.serves


@every_virtual_backend
async def test_a_server_that_does_not_close_holds_up_nothing_but_itself() -> None:
    server, other = Slow(1000), Counted()
    async with opened(Peer({SUBTYPE: done})) as (peer, session):
        await session.set_mcp_servers({"slow": server})
        await session.set_mcp_servers({})
        began = anyio.current_time()
        await session.set_mcp_servers({"other": other})
        assert anyio.current_time() == began
        with pytest.raises(HandleError, match=r"'slow'.*aclose\(\) has not returned"):
            await session.set_mcp_servers({"slow": server})
        assert 10 <= anyio.current_time() - began < 11
        assert (server.connected, other.serves) == (1, True)
        assert await is_served(peer, "other")


@every_virtual_backend
async def test_a_session_that_closes_while_a_server_is_waited_for_connects_nothing() -> None:
    server = Slow(3)
    async with opened(Peer({SUBTYPE: done})) as (_, session):
        await session.set_mcp_servers({"slow": server})
        await session.set_mcp_servers({})

        async def add() -> None:
            with pytest.raises(HandleError, match="closed"):
                await session.set_mcp_servers({"slow": server})

        async with anyio.create_task_group() as group:
            group.start_soon(add)
            await anyio.sleep(1)
            await session.aclose()
    assert (server.connected, server.closed) == (1, 1)


@every_virtual_backend
async def test_an_aclose_that_hangs_is_cancelled_soon_after_the_session_ends(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    class Hangs(Counted):
        async def aclose(self) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("cancelled")

    async with opened(Peer({SUBTYPE: done}), mcp_servers={"one": Hangs()}) as (_, session):
        await session.set_mcp_servers({"two": Hangs()})
        began = anyio.current_time()
    assert ended == ["cancelled", "cancelled"]
    assert 5 <= anyio.current_time() - began < 6
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        "2 tasks did not end in 5 seconds: claude-wire-mcp-one, claude-wire-mcp-two"
    ]


@every_backend
async def test_a_server_has_one_name_at_a_time() -> None:
    server, other = Counted(), Counted()
    with pytest.raises(ValueError, match="same object"):
        Peer().session(mcp_servers={"one": server, "two": server})
    async with opened(Peer({SUBTYPE: done}), mcp_servers={"old": server}) as (peer, session):
        for servers in ({"new": server}, {"old": server, "new": server}, {"a": other, "b": other}):
            with pytest.raises(ValueError, match="same object"):
                await session.set_mcp_servers(servers)
        assert peer.requests(SUBTYPE) == []
        assert await is_served(peer, "old")
        assert (server.connected, server.closed, other.connected) == (1, 0, 0)


@every_backend
async def test_a_second_call_at_the_same_time_is_refused_and_changes_nothing() -> None:
    first, second, third = Counted(), Counted(), Counted()
    async with opened() as (peer, session):
        async with anyio.create_task_group() as group:
            group.start_soon(session.set_mcp_servers, {"first": first})
            asked = await peer.asked(SUBTYPE)
            with pytest.raises(HandleError, match="call is running"):
                await session.set_mcp_servers({"second": second})
            assert await is_served(peer, "first")
            assert not await is_served(peer, "second")
            peer.answer(asked["request_id"], done(asked))
        assert len(peer.requests(SUBTYPE)) == 1
        peer.answers[SUBTYPE] = done
        await session.set_mcp_servers({"third": third})
        assert not await is_served(peer, "first")
        assert await is_served(peer, "third")
    assert [one.connected for one in (first, second, third)] == [1, 0, 1]


class Meddling(Counted):
    """An MCP server that tries to change the session's MCP servers whenever it is called."""

    session: Session
    error: Exception | None = None

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        try:
            await self.session.set_mcp_servers({})
        except HandleError as error:
            self.error = error
        return await super().handle(message)


@every_backend
async def test_a_server_that_calls_it_during_the_call_does_not_wait_for_ever() -> None:
    server = Meddling()
    async with opened() as (peer, server.session), anyio.create_task_group() as group:
        group.start_soon(server.session.set_mcp_servers, {"meddling": server})
        asked = await peer.asked(SUBTYPE)
        # Call the new server before answering, like a CLI that does the MCP handshake first.
        assert await is_served(peer, "meddling")
        assert "call is running" in str(server.error)
        peer.answer(asked["request_id"], done(asked))


@every_backend
async def test_a_session_that_is_not_open_keeps_its_servers() -> None:
    first, other = Counted(), Counted()
    peer = Peer()
    session = peer.session(mcp_servers={"x": first})
    with pytest.raises(HandleError, match="not entered"):
        await session.set_mcp_servers({"other": other})
    async with session:
        assert await is_served(peer, "x")
        assert not await is_served(peer, "other")
    with pytest.raises(HandleError, match="closed"):
        await session.set_mcp_servers({"other": other})
    assert (first.connected, first.closed, other.connected, other.closed) == (1, 1, 0, 0)


def test_a_call_whose_loop_is_gone_can_be_closed() -> None:
    kept: list[Any] = []

    async def main() -> None:
        peer = Peer()
        session = peer.session()
        await session.__aenter__()
        call = session.set_mcp_servers({"new": Counted()})
        kept.extend((call, peer, session, asyncio.ensure_future(call)))
        await peer.asked(SUBTYPE)
        kept[-1]._log_destroy_pending = False

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    kept[0].close()
