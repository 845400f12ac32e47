"""Programs and several tabs start, prompt, answer and interrupt sessions over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from claude_wire_kit.supervisor.attach import connect
from forged import forged, pieces
from served import Served, agent_profile, id_of, named, served
from supervisors import SECONDS


async def test_a_session_is_started_and_prompted_and_its_events_come(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"lines": 2})
        async with service.events(id) as events:
            found = [named(piece)[1] for piece in await events.until("turn_complete")]
        assert [one["type"] for one in found] == ["user_prompt", "claude_response", "claude_response", "turn_complete"]
        async with service.client() as client:
            listed = (await client.get("/sessions")).json()
        assert [one["id"] for one in listed["sessions"]] == [id]
        assert listed["profiles"] == [{"name": "agent", "roots": [str(tmp_path)], "choices": {}, "options": {}}]


async def test_a_prompt_that_is_sent_twice_is_run_once(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create()
        async with service.client() as client:
            for _ in range(2):
                sent = await client.post(f"/sessions/{id}/prompts", json={"text": "hello", "uuid": "one"})
                assert (sent.status_code, sent.json()) == (202, {"uuid": "one"})
            await client.post(f"/sessions/{id}/prompts", json={"text": "bye"})
        async with service.events(id) as events:
            found = await events.until("claude_response") + await events.until("claude_response")
        texts = [named(piece)[1].get("content") for piece in found]
        assert texts == ["hello", "0 hello", None, "bye", "0 bye"]


async def test_of_two_answers_the_second_gets_409_and_each_tab_is_told(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"ask": "q1"})
        async with service.events(id) as one, service.events(id) as two, service.client() as client:
            for tab in (one, two):
                await tab.until_state(open=["q1"])
            answer = {"requestId": "q1", "allow": True}
            replies = await asyncio.gather(*(client.post(f"/sessions/{id}/answers", json=answer) for _ in range(2)))
            assert sorted(reply.status_code for reply in replies) == [204, 409]
            assert [reply.json()["error"] for reply in replies if reply.status_code == 409] == ["settled"]
            for tab in (one, two):
                found = [named(piece)[1] for piece in await tab.until("turn_complete")]
                assert ["answered" in one.get("content", "") for one in found] == [True, False]
            assert json.loads(found[0]["content"].removeprefix("answered "))["behavior"] == "allow"


async def test_an_answer_is_refused_that_fits_no_question(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"ask": "q1"})
        async with service.events(id) as events, service.client() as client:
            await events.until_state(open=["q1"])
            unknown = await client.post(f"/sessions/{id}/answers", json={"requestId": "q2", "allow": True})
            option = await client.post(f"/sessions/{id}/answers", json={"requestId": "q1", "allow": True, "option": 3})
            denied = await client.post(
                f"/sessions/{id}/answers", json={"requestId": "q1", "allow": False, "message": "not today"}
            )
            assert [unknown.status_code, option.status_code, denied.status_code] == [404, 400, 204]
            found = [named(piece)[1] for piece in await events.until("turn_complete")]
        assert "not today" in found[0]["content"]


async def test_a_turn_is_interrupted(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"hang": True})
        async with service.events(id) as events, service.client() as client:
            await events.until("claude_response")
            assert (await client.post(f"/sessions/{id}/interrupt")).status_code == 204
            await events.until("turn_complete")


async def test_the_end_of_the_cli_is_told_and_prompts_are_refused_then(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"exit": 3})
        async with service.events(id) as events, service.client() as client:
            await events.until_state(ended=True, exitCode=3)
            refused = await client.post(f"/sessions/{id}/prompts", json={"text": "hello"})
            assert (refused.status_code, refused.json()["error"]) == (409, "ended")
        async with service.events(id) as events:
            await events.until_state(ended=True, exitCode=3)


async def test_another_driver_keeps_its_session(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        driver, answer = await service.supervised.create()
        async with service.client() as client:
            refused = await client.post(f"/sessions/{answer['id']}/prompts", json={"text": "hello"})
            assert (refused.status_code, refused.json()["error"]) == (409, "driver")
            driver.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"text": 1}', 400),
        (b'{"text": ""}', 400),
        (b'{"text": "a", "argv": []}', 400),
        (b'{"text": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"text": "' + b"x" * 1_100_000 + b'"}', 400),
        (b'{"text": "a", "images": [{"mediaType": "image/svg+xml", "data": "PHN2Zz4="}]}', 400),
        (b'{"text": "a", "images": [{"mediaType": "image/png", "data": "?"}]}', 400),
        (b'{"text": "a", "images": [' + b",".join([b'{"mediaType": "image/png", "data": "AAAA"}'] * 9) + b"]}", 400),
        (b'{"text": "' + b"x" * 13_000_000 + b'"}', 413),
    ],
)
async def test_a_body_that_is_no_prompt_is_refused(tmp_path: Path, body: bytes, status: int) -> None:
    async with served(tmp_path) as service:
        id = await service.create()
        async with service.client(**{"Content-Type": "application/json"}) as client:
            assert (await client.post(f"/sessions/{id}/prompts", content=body)).status_code == status
            assert (await client.post(f"/sessions/{id}/prompts", json={"text": "ok"})).status_code == 202


async def test_a_body_is_json_by_its_type_too_so_no_form_can_send_it(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create()
        async with service.client(**{"Content-Type": "text/plain"}) as client:
            assert (await client.post(f"/sessions/{id}/prompts", content=b'{"text": "a"}')).status_code == 415


async def test_the_service_says_so_while_there_is_no_supervisor(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        service.supervised.supervisor._stop_all()
        await asyncio.wait({service.supervised.task}, timeout=30)
        async with service.client() as client:
            absent = await client.get("/sessions")
            assert (absent.status_code, absent.json()["error"]) == (503, "absent")


def test_a_profile_is_what_it_says(tmp_path: Path) -> None:
    profile = agent_profile(tmp_path, env=["HOME"], cost_usd=2.0)
    spec = profile.spec(profile.folder(""), "name")
    assert (spec.cwd, spec.name, spec.cost_usd) == (str(tmp_path), "name", 2.0)
    assert spec.argv == profile.argv


# --- A client resumes an ended session over HTTP: only once, with the environment of the supervisor or a profile ------


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


# --- If a CLI writes lines that imitate frames of the supervisor, the service turns each into an ordinary event -------


async def test_forged_frames_are_raw_events_with_their_numbers_and_the_session_goes_on(tmp_path: Path) -> None:
    lines = [line for line in forged("f" * 32) if line.strip()]
    async with served(tmp_path) as service:
        id = await service.create({"raw": pieces(lines)}, {"exit": 0})
        async with service.events(id, query="?raw=1") as events:
            found = []
            while piece := await events.piece():
                if piece.startswith(b"id: "):
                    found.append(piece)
                elif named(piece)[0] == "session_state" and named(piece)[1].get("ended"):
                    break
        journal = (tmp_path / "state" / "sessions" / id / "parts" / "000001" / "stdout.ndjson").read_bytes()
        written = journal.split(b"\n")[:-1]
        assert "".join(lines).encode() in journal
        assert [id_of(piece) for piece in found] == [f"1.{number}.0" for number in range(1, len(written) + 1)]
        assert [piece.split(b"\n", 1)[1] for piece in found] == [
            b"data: %s\n\n" % line.replace(b"\r", b"\ndata: ") for line in written
        ]
        async with service.websocket(id, "?raw=1") as socket:
            got = []
            while "id" in (message := json.loads(await asyncio.wait_for(socket.recv(), SECONDS))):
                got.append(message)
        assert [one["id"] for one in got] == [f"1.{number}.0" for number in range(1, len(written) + 1)]


async def test_forged_frames_end_no_stream_of_events_and_no_driver(tmp_path: Path) -> None:
    async with served(tmp_path) as service:
        id = await service.create({"raw": pieces(forged("f" * 32))})
        async with service.events(id) as events, service.websocket(id) as socket, service.client() as client:
            await events.until("turn_complete")
            sent = await client.post(f"/sessions/{id}/prompts", json={"text": json.dumps({"exit": 4})})
            assert sent.status_code == 202
            await events.until_state(ended=True)
            message: dict[str, Any] = {}
            while not message.get("event", {}).get("ended"):
                message = json.loads(await asyncio.wait_for(socket.recv(), SECONDS))
            assert message["event"]["exitCode"] == 4
