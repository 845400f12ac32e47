"""The real CLI in a supervisor: its sessions outlive clients, and the supervisor's death ends them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from calculator import Calculator
from claude_wire import ClaudeOptions, HookMatcher, Session, encode
from claude_wire.messages import HookCallbackRequest, HookOutput, PreToolUseHookInput, ResultMessage, UserMessage
from claude_wire.testing import Recording
from claude_wire_kit.supervisor.attach import connect, spec_of
from places import CLI, Place
from supervisors import Client, connected, hosting

pytestmark = pytest.mark.anyio

#: Seconds to wait for any one step of the CLI.
SECONDS = 60.0

SUPERVISOR = """
import asyncio, sys
from claude_wire_kit.supervisor.disk.folder import StateFolder
from claude_wire_kit.supervisor.daemon import Daemon
folder = StateFolder(sys.argv[1])
folder.take()
asyncio.run(Daemon(folder).run(lambda: print("ready", flush=True)))
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def spec(place: Place, **options: Any) -> dict[str, Any]:
    """Return the spec of a session with the real CLI, for the supervisor's ``create`` request."""
    argv = ClaudeOptions(cli_path=CLI, system_prompt="", permission_prompt_tool="stdio", **options).argv()
    return {"argv": argv, "cwd": os.fspath(place.work), "env": place.environment}


async def begun(client: Client, place: Place, **options: Any) -> Any:
    """Create a session as its driver, and wait until the CLI has answered ``initialize``."""
    answer = await client.ask({"create": spec(place, **options), "role": "driver"})
    assert answer["type"] == "supervisor_attached", answer
    await client.until("control_response")
    return answer


def allow(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that allows the tool call of a permission request."""
    payload = {"behavior": "allow", "updatedInput": request["request"]["input"]}
    return answer_to(request, payload)


def deny(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that denies the tool call of a permission request."""
    return answer_to(request, {"behavior": "deny", "message": "not now"})


def answer_to(request: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    response = {"subtype": "success", "request_id": request["request_id"], "response": payload}
    return {"type": "control_response", "response": response}


async def test_a_question_that_a_client_leaves_open_is_answered_by_the_next_one(place: Place, tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        first = await supervisor.client()
        answer = await begun(first, place)
        first.prompt("10000000-0000-4000-8000-000000000001", "[[permission]] Go.")
        seen = await first.until("control_request")
        first.close()
        # Line 1 of the journal is the answer to initialize, which `begun` has already read.
        line = 1 + sum(not message["type"].startswith("supervisor_") for message in seen)
        cursor = {"id": answer["id"], "epoch": 1, "line": line}
        second = await supervisor.client()
        again = await second.ask({"attach": answer["id"], "after": cursor, "role": "driver"})
        assert [question["request_id"] for question in again["open"]] == [seen[-1]["request_id"]]
        assert again["owed"] == ["10000000-0000-4000-8000-000000000001"]
        second.send(allow(again["open"][0]))
        second.send(deny((await second.until("control_request"))[-1]))
        second.send(allow((await second.until("control_request"))[-1]))
        (result,) = (await second.until("result"))[-1:]
        assert result["subtype"] == "success"
        assert (place.work / "allowed").exists()
        assert not (place.work / "refused").exists()
        assert (place.work / "changed.txt").read_text() == "as the model wanted it"


@contextmanager
def supervised(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a supervisor in a separate process."""
    command = [sys.executable, "-c", SUPERVISOR, os.fspath(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
        try:
            assert supervisor.stdout is not None
            assert supervisor.stdout.readline() == "ready\n"
            yield supervisor
        finally:
            supervisor.kill()


def running(place: Place) -> list[int]:
    """Return the ids of the processes whose HOME is the home of this place."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOME={place.home}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ticks", [0, 1, 3, 6])
async def test_no_tool_starts_after_the_supervisor_was_killed_and_the_session_is_resumed(
    place: Place, tmp_path: Path, ticks: int
) -> None:
    folder = tmp_path / "h"
    with supervised(folder) as supervisor:
        async with connected(folder) as client:
            answer = await begun(client, place, permission_mode="bypassPermissions")
            client.prompt("10000000-0000-4000-8000-000000000001", "[[ticks]] Go.")
            with anyio.fail_after(SECONDS):
                await place.file(f"tick{ticks}")
                await place.transcribed('{"role":"user","content":"[[ticks]] Go."}')
            supervisor.kill()
            supervisor.wait()
            killed_at = time.time()
        with anyio.fail_after(SECONDS):
            while running(place):
                await anyio.sleep(0.01)
        await anyio.sleep(0.5)
        # The CLI was killed before the supervisor could be waited for. The shell of its last tool was not.
        ticks_later = [line for line in (place.work / "ticks").read_text().split() if float(line) > killed_at]
        assert len(ticks_later) <= 1
    with supervised(folder):
        async with connected(folder) as client, connected(folder) as driver:
            (session,) = (await client.ask({"list": {}}))["sessions"]
            assert (session["life"], session["epoch"]) == ("lost", 1)
            attached = await client.ask({"attach": answer["id"]})
            assert attached["ended"]["unfinished"] == "in the middle of a turn"
            assert attached["ended"]["owed"] == ["10000000-0000-4000-8000-000000000001"]
            assert len(attached["ended"]["calls"]) <= 1
            command = {"resume": answer["id"], "env": place.environment, "role": "driver"}
            assert (await driver.ask(command))["type"] == "supervisor_attached"
            driver.prompt("20000000-0000-4000-8000-000000000002", "[[again]] Go on.")
            lines = await driver.until("result")
            while lines[-1].get("user_message_uuids") != ["20000000-0000-4000-8000-000000000002"]:
                lines += await driver.until("result")
            assert lines[-1]["result"] == "Hello again."
            assert lines[-1]["session_id"] == session["cli_session_id"], "it is the same conversation"
        for part in sorted((folder / "sessions" / answer["id"] / "parts").iterdir()):
            assert Recording.load(part).steps


async def test_a_turn_is_interrupted_when_its_session_has_cost_what_it_may(place: Place, tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        created = {**spec(place, permission_mode="bypassPermissions"), "cost_usd": 0.0001}
        assert (await client.ask({"create": created, "role": "driver"}))["type"] == "supervisor_attached"
        client.prompt("10000000-0000-4000-8000-000000000001", "[[ticks]] Go.")
        lines = await client.until("result")
        (limited,) = [line for line in lines if line["type"] == "supervisor_limited"]
        assert limited["value"] >= 0.0001
        assert not (place.work / "tick39").exists()


async def test_a_prompt_that_waits_behind_an_interrupted_turn_is_owed_until_it_has_its_own_result(
    place: Place, tmp_path: Path
) -> None:
    first, second = (f"10000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        answer = await client.ask({"create": spec(place, permission_mode="bypassPermissions"), "role": "driver"})
        ledger = supervisor.supervisor._sessions.open(answer["id"]).ledger
        client.prompt(first, "[[ticks]] Go.")
        await client.until("assistant")
        client.prompt(second, "[[simple]] Hi.")
        client.send({"type": "control_request", "request_id": "i1", "request": {"subtype": "interrupt"}})
        results: list[Any] = []
        while len(results) < 2:
            line = await client.get()
            if line["type"] == "result":
                results.append((line["subtype"], line["user_message_uuids"]))
            # The supervisor may already have read the whole second turn, which this client has not read yet.
            assert (second in ledger.owed, ledger.life.value) in [(True, "running"), (False, "idle")] or not results
        assert results == [("error_during_execution", [first]), ("success", [second])]
        assert (ledger.owed, ledger.life.value) == ([], "idle")


async def test_a_cli_that_is_kept_ready_answers_the_first_prompt(place: Place, tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        assert (await client.ask({"prewarm": spec(place), "count": 1}))["type"] == "supervisor_list"
        (ready,) = supervisor.supervisor._sessions.running
        with anyio.fail_after(SECONDS):
            while ready.life.value != "idle":
                await anyio.sleep(0.01)
        await client.ask({"prewarm": spec(place), "count": 1})
        answer = await client.ask({"create": spec(place), "role": "driver"})
        assert answer["initialized"]["response"]["subtype"] == "success"
        client.prompt("10000000-0000-4000-8000-000000000001", "[[simple]] Hi.")
        assert (await client.until("result"))[-1]["result"] == "Hello, world."


def own_spec(place: Place, **options: Any) -> Any:
    """Return the spec of a session with the real CLI, for the client of the library."""
    chosen = ClaudeOptions(cli_path=CLI, system_prompt="", **options)
    return spec_of(chosen, cwd=place.work, env=place.environment)


async def until_tool_result(session: Session, seen: list[Any], number: int) -> None:
    """Append messages to `seen` until it holds `number` tool results of the main conversation."""
    async for message in session:
        seen.append(message)
        results = [one for one in seen if isinstance(one, UserMessage) and one.parent_tool_use_id is None]
        if len(results) == number:
            return


async def test_the_mcp_server_of_a_second_client_goes_on_where_that_of_the_first_was(
    place: Place, tmp_path: Path
) -> None:
    calls: list[list[Any]] = [[], []]
    seen: list[Any] = []
    assert place.api is not None
    async with hosting(tmp_path / "h") as supervisor:
        way = connect(supervisor.path)
        options = own_spec(place, permission_mode="bypassPermissions")
        with anyio.fail_after(SECONDS):
            async with way.create(options, mcp_servers={"calc": Calculator(calls[0])}) as session:
                await session.query("[[mcp_handed_over]] Add.")
                await until_tool_result(session, seen, 1)
                cursor = session.cursor
            async with way.attach(cursor, mcp_servers={"calc": Calculator(calls[1])}) as session:
                # While no client serves a tool, the supervisor itself answers its calls with an error.
                place.api.open("handed_over")
                async for message in session.receive_run():
                    seen.append(message)
    assert calls == [[("add", {"a": 20, "b": 22})], [("fail", {})]]
    assert isinstance(seen[-1], ResultMessage)
    assert seen[-1].result == "Added."
    uuids = [one.uuid for one in seen if getattr(one, "uuid", None)]
    assert len(uuids) == len(set(uuids)), "no message came twice"


async def test_the_hooks_of_a_second_client_decide_after_it_has_come(place: Place, tmp_path: Path) -> None:
    asked: list[list[str]] = [[], []]
    assert place.api is not None

    def guard_of(number: int) -> Any:
        def guard(request: HookCallbackRequest) -> HookOutput | None:
            assert isinstance(request.input, PreToolUseHookInput)
            command = str(request.input.tool_input["command"])
            asked[number].append(command)
            if command == "echo forbidden":
                return HookOutput(decision="block", reason="not this one")
            return None

        return {"PreToolUse": [HookMatcher(guard, matcher="Bash")]}

    seen: list[Any] = []
    async with hosting(tmp_path / "h") as supervisor:
        way = connect(supervisor.path)
        options = own_spec(place, permission_mode="bypassPermissions")
        with anyio.fail_after(SECONDS):
            async with way.create(options, hooks=guard_of(0)) as session:
                await session.query("[[hooks_handed_over]] Go.")
                await until_tool_result(session, seen, 1)
                cursor = session.cursor
            # A hook of the CLI waits while there is no client.
            place.api.open("handed_over")
            (running,) = supervisor.supervisor._sessions.running
            while running.life.value != "asking":
                await anyio.sleep(0.01)
            async with way.attach(cursor, hooks=guard_of(1)) as session:
                async for message in session.receive_run():
                    seen.append(message)
    assert asked == [["echo hooked"], ["echo forbidden"]]
    assert b"not this one" in b"".join(encode(message) for message in seen)
    assert isinstance(seen[-1], ResultMessage)
