"""A client resumes an ended session over HTTP: only once, with the environment of the supervisor or a profile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from claude_wire_kit.supervisor.attach import connect
from served import Served, agent_profile, named, served


async def ended(service: Served) -> str:
    """Create a session whose CLI has ended. Return its id."""
    id = await service.create({"exit": 3})
    async with service.events(id) as events:
        await events.until_state(ended=True, exitCode=3)
    return id


@pytest.mark.parametrize("body", [None, {}, {"profile": "agent"}])
async def test_a_session_that_has_ended_goes_on_for_all_clients(tmp_path: Path, body: dict[str, str] | None) -> None:
    async with served(tmp_path) as service:
        id = await ended(service)
        async with service.events(id) as events, service.client() as client:
            before = await events.until_state(ended=True)
            resumed = await client.post(f"/sessions/{id}/resume", **({} if body is None else {"json": body}))
            assert (resumed.status_code, resumed.json()["id"]) == (200, id)
            await events.until_state(ended=False)
            await client.post(f"/sessions/{id}/prompts", json={"text": "go on"})
            after = await events.until("turn_complete")
        assert [named(piece)[1].get("content") for piece in after][:2] == ["go on", "0 go on"]
        async with service.events(id) as events:
            assert await events.until("turn_complete") == before + after


async def test_a_session_that_runs_is_not_resumed(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await ended(service)
        async with service.client() as client:
            replies = await asyncio.gather(*(client.post(f"/sessions/{id}/resume") for _ in range(2)))
            assert sorted(reply.status_code for reply in replies) == [200, 409]
            assert [reply.json()["error"] for reply in replies if reply.status_code == 409] == ["running"]


async def test_a_new_supervisor_has_no_environment_and_a_profile_gives_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CLI gets only the environment variables of the service that the profile names."""
    monkeypatch.setenv("OF_THE_PROFILE", "yes")
    monkeypatch.setenv("OF_ANOTHER", "no")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    profile = agent_profile(tmp_path, env=["OF_THE_PROFILE"])
    async with served(tmp_path, more=profile, elsewhere=agent_profile(elsewhere)) as service:
        id = await ended(service)
        await service.supervised.end()
        await service.supervised.start()
        async with service.client() as client:
            for body, status, error in (
                ({}, 409, "environment"),
                ({"profile": "nothing"}, 404, "profile"),
                ({"profile": "elsewhere"}, 403, "folder"),
                ({"profile": 1}, 400, "request"),
                ({"env": {}}, 400, "request"),
            ):
                refused = await client.post(f"/sessions/{id}/resume", json=body)
                assert (refused.status_code, refused.json()["error"]) == (status, error), body
            resumed = await client.post(f"/sessions/{id}/resume", json={"profile": "more"})
            assert resumed.status_code == 200
        listed = await connect(service.supervised.path).list()
        (pid,) = [info.pid for info in listed.sessions if info.id == id]
        given = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"OF_THE_PROFILE=yes" in given
        assert not any(line.startswith(b"OF_ANOTHER") for line in given)


async def test_a_session_that_is_not_there_is_not_resumed(tmp_path: Path) -> None:
    async with served(tmp_path) as service, service.client() as client:
        refused = await client.post("/sessions/nothing/resume")
        assert (refused.status_code, refused.json()["error"]) == (404, "unknown")
