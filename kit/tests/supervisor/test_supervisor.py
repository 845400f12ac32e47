"""A supervisor serves its clients over its socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from children import ASKS
from claude_wire import MessageStream
from claude_wire.messages import AssistantMessage, ResultMessage
from claude_wire.streams.message_stream import receiver_of
from claude_wire_kit.supervisor import cost
from claude_wire_kit.supervisor.disk.record import MAX_STARTED_CHARS, Record
from claude_wire_kit.supervisor.frames import Attached, Started
from claude_wire_kit.supervisor.session import AttachedSession
from supervisors import SECONDS, Client, hosting, limits


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


# --- A supervisor reports how it started the CLI of a session ---------------------------------------------------------


def started(argv: list[str], initialize: dict[str, Any]) -> Started | None:
    return Record(id="s", name=None, created=0.0, argv=argv, cwd="/", initialize=initialize).started


def test_a_record_knows_which_hooks_and_servers_its_cli_calls_and_whether_it_asks() -> None:
    matchers = [{"matcher": "Bash", "hookCallbackIds": ["a", "b"]}, {"hookCallbackIds": ["c"]}]
    initialize = {"hooks": {"PreToolUse": matchers[:1], "Stop": matchers[1:]}, "sdkMcpServers": ["calc"]}
    assert started(["claude", *ASKS], initialize) == Started(hooks=["a", "b", "c"], mcp=["calc"], asks=True)
    assert started(["claude"], {}) == Started()
    assert started(["claude", "--permission-prompt-tool", "mcp__a__b"], {}) == Started()
    assert started(["claude", *ASKS, "--permission-prompts", "none"], {}) == Started()


@pytest.mark.parametrize(
    "initialize", [{"hooks": 5}, {"hooks": {"Stop": [{}]}}, {"sdkMcpServers": ["x" * (MAX_STARTED_CHARS + 1)]}]
)
def test_what_cannot_be_read_or_is_too_long_is_not_told(initialize: dict[str, Any]) -> None:
    assert started(["claude"], initialize) is None


# --- A question without a callback in the driver stays open for a later driver. The session invents no answer ---------


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


# --- The supervisor's limits of sessions, memory and cost, and the CLIs that it starts in advance ---------------------


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
