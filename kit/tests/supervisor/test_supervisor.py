"""A supervisor serves its clients over its socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from supervisors import hosting


def behind(answer: Any, line: int) -> dict[str, Any]:
    return {"id": answer["id"], "epoch": answer["epoch"], "line": line}


async def test_a_session_goes_on_without_its_client(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        first, answer = await supervisor.create()
        first.prompt("p1", ask="q1")
        seen = await first.until("control_request")
        first.close()
        second = await supervisor.client()
        again = await second.ask({"attach": answer["id"], "after": behind(answer, 1), "role": "driver"})
        assert again["life"] == "asking"
        assert [request["request_id"] for request in again["open"]] == ["q1"]
        assert again["owed"] == ["p1"]
        lines = [await second.get() for _ in range(again["line"] - again["after"])]
        assert lines == [line for line in seen if not line["type"].startswith("supervisor_")]
        second.send(
            {"type": "control_response", "response": {"subtype": "success", "request_id": "q1", "response": {}}}
        )
        await second.until("result")
        assert (await second.ask({"type": "supervisor_end_input"}))["type"] == "supervisor_accepted"
        ended = (await second.until("supervisor_ended"))[-1]
        assert ended["exit_code"] == 0
        assert ended["unfinished"] == ""


async def test_a_viewer_sends_nothing_and_a_second_driver_has_to_take(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        first, answer = await supervisor.create()
        second = await supervisor.client()
        assert (await second.ask({"attach": answer["id"], "role": "driver"}))["error"] == "driver"
        assert (await second.ask({"attach": answer["id"]}))["role"] == "viewer"
        await second.get()
        second.prompt("p1")
        assert "a viewer sends nothing" in (await second.until("supervisor_refused"))[-1]["reason"]
        third = await supervisor.client()
        assert (await third.ask({"attach": answer["id"], "role": "driver", "take": True}))["role"] == "driver"
        assert (await first.until("supervisor_driver"))[-1] == {
            "type": "supervisor_driver",
            "role": "viewer",
            "driver": True,
        }
        first.prompt("p2")
        assert "a viewer sends nothing" in (await first.until("supervisor_refused"))[-1]["reason"]
        third.prompt("p3")
        await third.until("result")
        third.close()
        assert (await first.until("supervisor_driver"))[-1]["driver"] is False


async def test_a_prompt_that_is_sent_again_is_acknowledged_and_not_written_again(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create()
        for _ in range(2):
            client.prompt("p1")
        assert [line["lines"] for line in await client.until("result") if line["type"] == "supervisor_accepted"] == [
            1,
            2,
        ]
        client.prompt("p2")
        lines = await client.until("result")
        assert lines[-1]["user_message_uuids"] == ["p2"]


@pytest.mark.parametrize("line", [b"no json", b'"a string"', b"[1]", b"", b"\xff", b"[" * 200_000, b'{"type": 1}'])
async def test_a_line_that_is_no_message_is_refused_or_passed_on_and_the_next_one_counts(
    tmp_path: Path, line: bytes
) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create()
        client.writer.write(line + b"\n")
        client.prompt("p1")
        answers = [await client.get(), await client.get()]
        kinds = {answer["type"] for answer in answers}
        assert kinds <= {"supervisor_refused", "supervisor_accepted"}, answers
        if line != b'{"type": 1}':
            assert "is not a message" in answers[0]["reason"]
            await client.until("result")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ({}, "command"),
        ([1], "command"),
        ({"attach": "x", "nonsense": 1}, "command"),
        ({"attach": "x", "list": {}}, "command"),
        ({"attach": "x"}, "unknown"),
        ({"attach": "../../etc"}, "unknown"),
        ({"list": {}, "version": 99}, "version"),
        ({"create": {"argv": ["/no/such/cli"], "cwd": "/", "env": {}}}, "start"),
        ({"create": {"argv": [], "cwd": "/", "env": {}}}, "command"),
        ({"create": {"argv": ["true"], "cwd": "/no/such/folder", "env": {}}}, "start"),
        ({"create": {"argv": ["tr\0ue"], "cwd": "/", "env": {}}}, "start"),
        ({"resume": "x"}, "unknown"),
        ({"remove": "x"}, "unknown"),
        ({"stop": "x"}, "unknown"),
    ],
)
async def test_a_wrong_command_is_answered_and_the_next_one_is_taken(tmp_path: Path, command: Any, error: str) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        assert (await client.ask(command))["error"] == error
        listed = await client.ask({"list": {}})
        assert listed["sessions"] == []
        assert not list((tmp_path / "h" / "sessions").iterdir())


async def test_a_cursor_of_another_epoch_or_line_is_told_where_the_session_is(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        _, answer = await supervisor.create()
        client = await supervisor.client()
        for cursor in ({**behind(answer, 1), "epoch": 2}, behind(answer, 2), behind(answer, -1)):
            refused = await client.ask({"attach": answer["id"], "after": cursor})
            assert (refused["error"], refused["line"]) == ("epoch", 1)


async def test_a_stopped_session_is_listed_resumed_and_removed(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create(name="mine")
        client.prompt("p1")
        await client.until("result")
        other = await supervisor.client()
        (session,) = (await other.ask({"stop": answer["id"]}))["sessions"]
        assert (session["life"], session["name"], session["pid"]) == ("ended", "mine", None)
        assert (await other.ask({"attach": answer["id"]}))["ended"]["exit_code"] == 0
        last = await supervisor.client()
        resumed = await last.ask({"resume": answer["id"], "role": "driver", "take": True})
        assert resumed["type"] == "supervisor_attached"
        await last.until("result")
        last.prompt("p2")
        assert (await last.until("result"))[-1]["user_message_uuids"] == ["p2"]
        third = await supervisor.client()
        (session,) = (await third.ask({"rename": answer["id"], "name": "yours"}))["sessions"]
        assert session["name"] == "yours"
        assert (await third.ask({"rename": answer["id"], "name": ""}))["error"] == "command"
        assert (await third.ask({"rename": "x", "name": None}))["error"] == "unknown"
        assert (await third.ask({"remove": answer["id"]}))["error"] == "running"
        await third.ask({"stop": answer["id"]})
        assert (await third.ask({"remove": answer["id"]}))["sessions"] == []
        assert await asyncio.to_thread(lambda: list((tmp_path / "h" / "sessions").iterdir())) == []
