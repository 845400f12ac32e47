"""The supervisor's limits of sessions, memory and cost, and the CLIs that it starts in advance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from claude_wire_kit.supervisor import cost
from supervisors import SECONDS, hosting, limits


async def test_no_more_sessions_are_started_than_the_limit_says(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h", limits=limits(sessions=1)) as supervisor:
        _, answer = await supervisor.create()
        client = await supervisor.client()
        refused = await client.ask({"create": supervisor.spec(), "detach": True})
        assert refused["error"] == "limit"
        assert "1 CLIs are running" in refused["message"]
        await client.ask({"stop": answer["id"]})
        assert (await client.ask({"create": supervisor.spec(), "detach": True}))["type"] == "supervisor_session"


async def test_no_more_sessions_are_started_above_the_limit_of_memory(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h", limits=limits(memory_bytes=1)) as supervisor:
        await supervisor.create()
        refused = await (await supervisor.client()).ask({"create": supervisor.spec(), "detach": True})
        assert refused["error"] == "limit"
        assert "limit: memory" in refused["message"]


async def test_no_more_clients_are_taken_than_the_limit_says(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h", limits=limits(connections=1)) as supervisor:
        await supervisor.create()
        refused = await (await supervisor.client()).get()
        assert refused["error"] == "refused"
        assert "1 clients are connected" in refused["message"]


async def test_a_turn_is_interrupted_when_the_session_has_cost_what_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "ASK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create(cost_usd=1.0)
        client.prompt("p1", cost=0.6)
        await client.until("result")
        client.prompt("p2", cost=0.6, hang=True)
        lines = await client.until("result")
        (limited,) = [line for line in lines if line["type"] == "supervisor_limited"]
        assert (limited["limit"], limited["value"]) == ("cost_usd", 1.2)
        client.prompt("p3")
        refused = (await client.until("supervisor_refused"))[-1]
        assert refused["reason"] == "the session has cost $1.20, and may cost $1.00 (limit: cost_usd)"


async def test_the_cli_is_not_asked_for_its_cost_between_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "ASK_SECONDS", 0.001)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create(cost_usd=1.0)
        sent = tmp_path / "h" / "sessions" / answer["id"] / "parts" / "000001" / "stdin.ndjson"
        (managed,) = supervisor.supervisor._sessions.running
        for n in range(2):
            client.prompt(f"p{n}")
            await client.until("result")
            with anyio.fail_after(SECONDS):
                while managed._cost._timer is not None:  # without a timer, only the next turn asks
                    await anyio.sleep(0.001)
        asked = sent.read_text().count("get_usage")
        await client.ask({"type": "supervisor_end_input"})
        await client.until("supervisor_ended")
        assert sent.read_text().count("get_usage") == asked


async def test_a_cli_that_is_ready_is_given_to_who_asks_for_an_equal_one(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        spec = supervisor.spec()
        assert (await client.ask({"prewarm": spec, "count": 1}))["sessions"] == [], "nobody has asked for it yet"
        (ready,) = supervisor.supervisor._sessions.running
        await become_idle(ready)
        other = await client.ask({"create": {**spec, "env": {**spec["env"], "X": "1"}}, "detach": True})
        assert other["pid"] != ready.pid
        first = await client.ask({"create": {**spec, "name": "mine"}, "detach": True})
        assert (first["pid"], first["name"], first["life"]) == (ready.pid, "mine", "idle")
        assert len(supervisor.supervisor._sessions.running) == 3, "another one is begun in its place"
        driver = await supervisor.client()
        assert (await driver.ask({"attach": first["id"], "role": "driver"}))["type"] == "supervisor_attached"
        driver.prompt("p1")
        assert (await driver.until("result"))[-1]["result"] == "ok"


async def become_idle(managed: Any) -> None:
    with anyio.fail_after(SECONDS):
        while managed.life.value != "idle":
            await anyio.sleep(0.005)


async def test_what_a_creator_declares_answers_the_handshake_of_a_server_that_nobody_serves(tmp_path: Path) -> None:
    declared = {"tools": {"tools/list": {"tools": [{"name": "add"}]}}}
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create(mcp=declared)
        client.prompt("p1", mcp={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        lines = await client.until("result")
        assert '"name\\": \\"add' in json.dumps(lines)
        client.prompt("p2", mcp={"jsonrpc": "2.0", "id": 2, "method": "tools/call"})
        assert "no client serves tools" in json.dumps(await client.until("result"))


async def test_a_supervisor_that_was_killed_has_ended_its_clis_and_reports_what_they_left(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create(name="cut")
        client.prompt("p1", call="t1", ask="q1")
        await client.until("control_request")
        await supervisor.end()
        await supervisor.start()
        again = await supervisor.client()
        (session,) = (await again.ask({"list": {}}))["sessions"]
        assert (session["life"], session["line"], session["epoch"]) == ("lost", 5, 1)
        attached = await again.ask({"attach": answer["id"], "after": {"id": answer["id"], "epoch": 1, "line": 5}})
        ended = attached["ended"]
        assert ended["exit_code"] is None
        assert ended["unfinished"] == "in the middle of a turn"
        assert (ended["owed"], ended["died"], ended["calls"]) == (["p1"], ["q1"], ["t1"])
        driver = await supervisor.client()
        assert (await driver.ask({"resume": answer["id"], "role": "driver"}))["error"] == "environment"
        resumed = await driver.ask({"resume": answer["id"], "role": "driver", "env": supervisor.spec()["env"]})
        assert resumed["line"] == 5
        driver.prompt("p2")
        assert (await driver.until("result"))[-1]["user_message_uuids"] == ["p2"]
