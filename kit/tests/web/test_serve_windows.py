"""A client gets the last events of a session first, and older ones in pages, without gaps or repetitions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from claude_wire_kit.web import feed as feed_module
from claude_wire_kit.web import service as service_module
from served import EventReader, Served, id_of, named, served

Pair = tuple[str, dict[str, Any]]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the size of a page, so that the sessions of these tests have several pages."""
    for module in (feed_module, service_module):
        monkeypatch.setattr(module, "TAIL_BYTES", 4_000)


async def opened(events: EventReader) -> tuple[str | None, list[Pair]]:
    """Read the events until the client has caught up. Return them, and the id before which there are older ones."""
    before, found = None, list[Pair]()
    while piece := await events.piece():
        name, event = named(piece)
        if name == "older":
            before = event["before"]
        elif name == "message":
            found.append((id_of(piece), event))
        elif name == "session_state":
            return before, found
    raise AssertionError(f"the events ended: {found[-3:]}")


async def pages(service: Served, id: str, before: str | None, count: int) -> AsyncIterator[list[Pair]]:
    """Yield the pages of older events, newest first."""
    async with service.client() as client:
        while before is not None:
            reply = await client.get(f"/sessions/{id}/events", params={"before": before, "last": count})
            assert reply.status_code == 200, reply.text
            assert before != reply.json()["before"]
            before = reply.json()["before"]
            yield [(one["id"], one["event"]) for one in reply.json()["events"]]


def texts(events: list[Pair]) -> list[str]:
    return [event["content"] for _, event in events if event["type"] == "claude_response" and not event.get("partial")]


def line_of(id: str) -> int:
    return int(id.split(".")[1])


@pytest.mark.parametrize("count", [1, 7, 200])
async def test_the_last_events_and_all_pages_are_the_session(tmp_path: Path, short: None, count: int) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 60, "pad": "x" * 200}, {"lines": 3})
        async with service.events(id) as events:
            everything = [(id_of(one), named(one)[1]) for one in [*await events.until("turn_complete")]]
            everything += [(id_of(one), named(one)[1]) for one in await events.until("turn_complete")]
        # A new service has not read the session yet, so it starts near the end of the journal.
        await service.stop()
        await service.start()
        async with service.events(id, query=f"?last={count}") as events:
            before, found = await opened(events)
        assert len(found) <= max(count, 8)
        async for page in pages(service, id, before, count):
            assert not page or not found or line_of(page[-1][0]) < line_of(found[0][0])
            found = page + found
        assert texts(found) == texts(everything)
        assert [event for _, event in found if event["type"] == "turn_complete"] == [
            event for _, event in everything if event["type"] == "turn_complete"
        ]
        ids = [id.rpartition("@")[2].partition(".")[2] for id, _ in found]
        assert len(set(ids)) == len(ids)


async def test_the_end_of_a_window_goes_on_live_and_after_a_restart(tmp_path: Path, short: None) -> None:
    """With each id a client gets the same later events, byte for byte, even from a restarted service."""
    async with served(tmp_path) as service:
        id = await service.create({"lines": 60, "pad": "x" * 200})
        async with service.events(id) as events:
            await events.until("turn_complete")
        await service.stop()
        await service.start()
        async with service.events(id, query="?last=5") as events, service.client() as client:
            _, found = await opened(events)
            await client.post(f"/sessions/{id}/prompts", json={"text": json.dumps({"lines": 5})})
            live = await events.until("turn_complete")
        assert all("@" in one.split(".")[0] for one, _ in found)
        for _ in range(2):
            async with service.events(id, found[-1][0]) as events:
                assert await events.until("turn_complete") == live
            async with service.events(id, id_of(live[2])) as events:
                assert await events.until("turn_complete") == live[3:]
            await service.stop()
            await service.start()


async def test_a_text_that_its_result_repeats_comes_once(tmp_path: Path, short: None) -> None:
    """The last lines hold only the result, which repeats the text of an earlier answer."""
    text = "y" * 5_000
    said = {"id": "m", "role": "assistant", "model": "x", "content": [{"type": "text", "text": text}]}
    lines = [{"type": "assistant", "message": said, "session_id": "s"}, {"type": "result", "subtype": "success"}]
    lines[1] |= {"is_error": False, "result": text, "session_id": "s", "num_turns": 1}
    async with served(tmp_path) as service:
        id = await service.create({"lines": 0, "raw": [json.dumps(line) + "\n" for line in lines], "hang": True})
        async with service.events(id, query="?details=1") as events:
            await events.until("turn_complete")
        await service.stop()
        await service.start()
        async with service.events(id, query="?last=1&details=1") as events:
            before, found = await opened(events)
        assert texts(found) == []
        async for page in pages(service, id, before, 1):
            found = page + found
        assert texts(found) == [text]


async def test_a_page_reads_only_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a session of several megabytes, the service decodes only the lines at the end."""
    made: list[int] = []
    add = feed_module.Source.add

    def counted(self: feed_module.Source, number: int, line: bytes) -> Any:
        made.append(len(line))
        return add(self, number, line)

    async with served(tmp_path) as service:
        id = await service.create({"lines": 400, "pad": "x" * 20_000})
        async with service.events(id) as events:
            await events.until("turn_complete")
        await service.stop()
        await service.start()
        monkeypatch.setattr(feed_module.Source, "add", counted)
        async with service.events(id, query="?last=20") as events:
            before, found = await opened(events)
        assert found
        assert 0 < sum(made) <= feed_module.TAIL_BYTES
        made.clear()
        async for page in pages(service, id, before, 20):
            assert page
            break
        assert 0 < sum(made) <= feed_module.TAIL_BYTES


async def test_an_open_question_that_is_further_up_is_asked(tmp_path: Path, short: None) -> None:
    """The question arrives without an id, before the state that names it. After an answer it is gone."""
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"}
    asked_first = json.dumps({"type": "control_request", "request_id": "q", "request": request}) + "\n"
    said = json.dumps({"type": "assistant", "message": {"id": "m", "role": "assistant", "model": "x", "content": []}})
    async with served(tmp_path) as service:
        id = await service.create({"raw": [asked_first, f"{said}\n" * 100], "hang": True})
        async with service.events(id) as events:
            await events.until("permission_request")
        await service.stop()
        await service.start()
        async with service.events(id, query="?last=1&details=1") as events, service.client() as client:
            asked: dict[str, Any] = {}
            while not asked.get("open"):
                _, event = named(await events.piece())
                if event["type"] == "permission_request":
                    question = event
                if event["type"] == "session_state":
                    asked = event
            assert question["input"] == {"command": "ls"}
            assert asked["open"] == [question["requestId"]] == ["q"]
            answer = {"requestId": question["requestId"], "allow": True}
            assert (await client.post(f"/sessions/{id}/answers", json=answer)).status_code == 204
            await events.until_state(open=[])


@pytest.mark.parametrize(
    "query", ["?last=0", "?last=x", "?last=2001", "?last=5&raw=1", "?before=x", "?before=1.2.0&last=-1", "?before="]
)
async def test_a_number_or_an_id_that_is_none_is_refused(tmp_path: Path, query: str) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        async with service.client() as client:
            refused = await client.get(f"/sessions/{id}/events{query}")
        assert (refused.status_code, refused.json()["error"]) == (400, "id")


async def test_ids_of_other_journals(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 1})
        async with service.events(id) as events:
            await events.until("turn_complete")
        async with service.client() as client:
            for before in ("2.3.0", "1.9999.0"):
                refused = await client.get(f"/sessions/{id}/events?before={before}")
                assert (refused.status_code, refused.json()["error"]) == (410, "epoch"), before
            first = await client.get(f"/sessions/{id}/events?before=1.1.0")
            assert first.json() == {"events": [], "before": None}
