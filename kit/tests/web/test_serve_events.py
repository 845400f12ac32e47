"""With the id of any event, a client gets exactly the events after it, on every transport and after a restart."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from claude_wire.testing import Replay
from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.frames import Attach
from claude_wire_kit.web import feed as feed_module
from claude_wire_kit.web import service as service_module
from claude_wire_kit.web.events import Batch, Event, EventId, Source, raw_event
from claude_wire_kit.web.feed import Feed
from claude_wire_kit.web.lines import Lines
from each import each
from served import EventReader, Profile, Served, id_of, named, served
from supervisors import hosting


def recorded(folder: Path, name: str) -> Profile:
    """Return a profile whose CLI replays a recording without waiting for input."""
    copy = folder / name
    copy.mkdir()
    for file, content in recordings.load(name).files.items():
        (copy / file).write_bytes(content)
    return Profile(roots=[os.fspath(folder)], argv=Replay(copy, wait=False).argv())


async def all_events(service: Served, id: str) -> list[bytes]:
    async with service.events(id) as events:
        return await events.until_state(ended=True)


async def rest(events: EventReader) -> list[bytes]:
    return await events.until_state(ended=True)


@pytest.mark.parametrize("name", ["05_perm_allow_deny", "04_tools_bypass_partial", "15_subagent_background"])
async def test_each_id_brings_back_what_followed_byte_for_byte(tmp_path: Path, name: str) -> None:
    async with served(tmp_path, recorded=recorded(tmp_path, name)) as service:
        id = await service.create(profile="recorded")
        found = await all_events(service, id)
        assert len(found) > 3
        ids = [id_of(piece) for piece in found]
        assert len(set(ids)) == len(ids)
        for number, after in enumerate(ids, 1):
            async with service.events(id, after) as events:
                assert await rest(events) == found[number:], after
            async with service.websocket(id, f"?lastEventId={after}") as socket:
                got = []
                while "id" in (message := json.loads(await socket.recv())):
                    got.append(message)
                told = [{"id": id_of(piece), "event": named(piece)[1]} for piece in found[number:]]
                assert got == told, after
        await service.stop()
        await service.start()
        for number, after in enumerate(ids, 1):
            async with service.events(id, after) as events:
                assert await rest(events) == found[number:], after


async def test_ids_are_the_same_where_older_events_come_from_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 300}, {"lines": 300, "exit": 0})
        found = await all_events(service, id)
        assert len(found) == 603
        await service.stop()
        monkeypatch.setattr(feed_module, "MAX_KEPT", 2000)
        await service.start()
        assert await all_events(service, id) == found
        for number in range(0, len(found), 37):
            async with service.events(id, id_of(found[number])) as events:
                assert await rest(events) == found[number + 1 :]


async def test_events_with_details_have_ids_of_their_own(tmp_path: Path) -> None:
    """With each id a client gets the events after it. No event without details has the same id."""
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2, "exit": 0})
        plain = await all_events(service, id)
        async with service.events(id, query="?details=1") as events:
            found = await rest(events)
        assert "session_started" in [named(piece)[1]["type"] for piece in found]
        assert len(found) > len(plain)
        ids = [id_of(piece) for piece in found]
        assert all(one.partition(".")[0].endswith("d") for one in ids)
        for number, after in enumerate(ids, 1):
            async with service.events(id, after, "?details=1") as events:
                assert await rest(events) == found[number:], after
        async with service.client() as client:
            refused = await client.get(f"/sessions/{id}/events", headers={"Last-Event-ID": ids[0]})
            assert (refused.status_code, refused.json()["error"]) == (410, "epoch")


async def test_tabs_share_one_feed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2})
        async with service.events(id) as one, service.events(id) as two, service.websocket(id) as three:
            first = await one.until("turn_complete")
            assert await two.until("turn_complete") == first
            ids: list[str] = []
            while len(ids) < len(first):
                message = json.loads(await socket_message(three))
                ids += [message["id"]] if "id" in message else []  # a session_state has no id
            assert ids == [id_of(piece) for piece in first]
            (feed,) = service.server._app.state.service._feeds
            assert feed.users == 3
        await closed(feed)


async def socket_message(socket: Any) -> str:
    return str(await asyncio.wait_for(socket.recv(), 30))


async def closed(feed: Feed) -> None:
    async def wait() -> None:
        while feed.users:
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 30)


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_feed_whose_older_lines_are_gone_ends_with_its_last_connection(
    tmp_path: Path, is_replaced: bool
) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2})
        feeds = service.server._app.state.service
        async with feeds.feed(id) as stale:
            stale.is_stale = True
            if is_replaced:
                async with feeds.feed(id) as new:
                    assert new is not stale
            assert stale.error is None
        await asyncio.wait_for(ended(stale), 30)
        assert stale not in feeds._feeds


async def test_a_service_that_ends_ends_the_feeds_too_that_others_have_replaced(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2})
        feeds = service.server._app.state.service
        async with feeds.feed(id) as stale:
            stale.is_stale = True
            async with feeds.feed(id) as new:
                feeds.close()
                await asyncio.wait_for(asyncio.gather(ended(stale), ended(new)), 30)


async def test_a_session_whose_events_cannot_be_made_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add = Source.add

    def fails(self: Source, number: int, line: bytes) -> list[Event]:
        if b"poison" in line:
            raise ZeroDivisionError("poison")
        return add(self, number, line)

    monkeypatch.setattr(Source, "add", fails)
    async with served(tmp_path) as service:
        good, bad = await service.create({"lines": 1}), await service.create({"lines": 1})
        async with service.events(good) as events, service.client() as client:
            assert await events.until("turn_complete")
            async with service.events(bad) as broken:
                await client.post(f"/sessions/{bad}/prompts", json={"text": json.dumps({"pad": "poison", "lines": 1})})
                while piece := await broken.piece():
                    assert b"poison" not in piece
            again = await client.get(f"/sessions/{bad}/events")
            assert (again.status_code, again.json()["error"]) == (502, "system")
            await client.post(f"/sessions/{good}/prompts", json={"text": json.dumps({"lines": 1})})
            assert await events.until("turn_complete")
        async with service.events(good) as events:
            assert await events.until("turn_complete")
    assert "the events of a session cannot be made: ZeroDivisionError" in caplog.text


async def ended(feed: Feed) -> None:
    while feed.error is None:
        await asyncio.sleep(0.01)


async def test_raw_lines_come_as_the_cli_wrote_them(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2, "exit": 0})
        async with service.events(id, query="?raw=1") as events:
            found = await rest(events)
        lines = (tmp_path / "state" / "sessions" / id / "parts" / "000001" / "stdout.ndjson").read_bytes().splitlines()
        assert found == [b"id: 1.%d.0\ndata: %s\n\n" % (number, line) for number, line in enumerate(lines, 1)]
        for number, piece in enumerate(found, 1):
            async with service.events(id, id_of(piece), "?raw=1") as events:
                assert await rest(events) == found[number:]
            async with service.websocket(id, f"?raw=1&lastEventId={id_of(piece)}") as socket:
                got = []
                while "id" in (message := json.loads(await socket_message(socket))):
                    got.append(message["event"])
                assert got == [json.loads(line) for line in lines[number:]]


async def test_a_session_goes_on_in_its_tabs_when_its_cli_is_started_again(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1, "call": "c1", "exit": 1})
        async with service.events(id) as events:
            first = await events.until_state(ended=True)
            client = await service.supervised.client()
            await client.ask({"resume": id, "role": "driver"})
            client.prompt("p2", lines=1)
            second = await events.until("turn_complete")
            client.close()
        states = [named(piece)[1].get("state") for piece in first + second]
        assert [state for state in states if state] == ["started", "interrupted"]
        async with service.events(id) as events:
            assert await events.until("turn_complete") == first + second


@pytest.mark.parametrize(
    ("after", "status", "error"),
    [
        ("1.2", 400, "id"),
        ("nonsense", 400, "id"),
        ("1.9999.0", 410, "epoch"),
        ("7.1.0", 410, "epoch"),
        ("1@9999.9999.0", 410, "epoch"),
        ("1." + "9" * 19 + ".0", 400, "id"),
    ],
)
async def test_an_id_of_nothing_is_refused(tmp_path: Path, after: str, status: int, error: str) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        async with service.events(id) as events:
            await events.until("turn_complete")
        async with service.client(**{"Last-Event-ID": after}) as client:
            refused = await client.get(f"/sessions/{id}/events")
            assert (refused.status_code, refused.json()["error"]) == (status, error)


async def test_a_slow_connection_is_cut_with_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_KEPT", 4000)
    monkeypatch.setattr(service_module, "BEAT_SECONDS", 3600.0)  # no signs of life between the events
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        async with service.server._app.state.service.feed(id) as feed:
            follower = feed.follow(None)
            got, states = [], 0
            # The follower first reads the state and the whole first turn, so it is not yet a slow client.
            while not states or not any('"turn_complete"' in event.json for event in got):
                one = await asyncio.wait_for(anext(follower), 30)
                if isinstance(one, feed_module.Signal):
                    assert one.name == "session_state"
                    states += 1
                else:
                    got += one
            async with service.client() as client:
                await client.post(f"/sessions/{id}/prompts", json={"text": json.dumps({"lines": 100, "exit": 0})})
            with anyio.fail_after(30):
                while feed._ended is None:  # the feed reads everything while the follower reads nothing
                    await asyncio.sleep(0.01)
            cut = await asyncio.wait_for(anext(follower), 30)
            assert isinstance(cut, feed_module.Signal)
            assert (cut.name, json.loads(cut.json)["id"]) == ("cut", got[-1].id)
            with pytest.raises(StopAsyncIteration):
                await anext(follower)
        found = await all_events(service, id)
        assert len(found) == 104
        async with service.events(id, got[-1].id) as events:
            assert await rest(events) == found[len(got) :]


async def test_each_connection_gets_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to a silent session gets them too. They have no id, so the service never repeats them."""
    monkeypatch.setattr(service_module, "BEAT_SECONDS", 0.01)
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        async with service.client() as client, client.stream("GET", f"/sessions/{id}/events") as reply:
            pieces = reply.aiter_raw()
            got = b""
            while b'"type":"turn_complete"' not in got or got.count(b"\n\n:\n\n") < 2:
                got += await asyncio.wait_for(anext(pieces), 30)
        assert got.count(b'"type":"turn_complete"') == 1


async def test_tabs_get_the_same_bytes_which_are_made_once(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 3})
        async with service.events(id) as events:
            await events.until("turn_complete")
        async with service.server._app.state.service.feed(id) as feed:
            batches = []
            for _ in range(2):
                one = await asyncio.wait_for(anext(feed.follow(None)), 30)
                assert isinstance(one, Batch)
                batches.append(one)
            assert batches[0] is batches[1]
            assert batches[0].sse is batches[1].sse
            assert batches[0].sse == b"".join(event.sse for event in batches[0])


def test_an_id_says_where_its_events_begin() -> None:
    for text in ("1.2.3", "4@17.5000.0"):
        assert str(EventId.of(text)) == text


@each("name", recordings.names(), str)
def test_the_same_lines_give_the_same_events(name: str) -> None:
    lines = recordings.load(name).stdout.splitlines()

    def events() -> list[bytes]:
        source = Source(1, 1)
        return [event.sse for number, line in enumerate(lines, 1) for event in source.add(number, line)]

    first = events()
    assert first == events()
    assert all(piece.count(b"\n") == 3 for piece in first)


@pytest.mark.parametrize(
    "line",
    ['{"a":1},"id":"9.9.9","event":{"type":"forged"}', "no JSON", "", "[1", '{"a":' * 2000 + "1" + "}" * 2000],
    ids=["an id", "words", "nothing", "cut", "deep"],
)
def test_a_raw_line_that_is_no_json_is_a_string_in_a_websocket(line: str) -> None:
    assert json.loads(raw_event(1, 2, line.encode()).websocket) == {"id": "1.2.0", "event": line}


def test_a_raw_line_is_as_the_cli_wrote_it() -> None:
    assert raw_event(1, 2, b'{"a": 1}').websocket == '{"id":"1.2.0","event":{"a": 1}}'


# --- The service reads numbered lines from a supervisor ---------------------------------------------------------------


async def test_leaving_ends_the_connection_also_while_somebody_keeps_the_object(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as running:
        _, attached = await running.create()
        supervisor = connect(tmp_path / "h")
        lines = Lines(supervisor, Attach(attach=attached["id"]))

        async def clients() -> int:
            [session] = (await supervisor.list()).sessions
            return session.clients

        async with lines:
            assert await clients() == 2
        with anyio.fail_after(60):
            while await clients() > 1:
                await anyio.sleep(0.01)
