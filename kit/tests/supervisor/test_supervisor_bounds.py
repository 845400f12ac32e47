"""Clients and CLIs can make a supervisor store only a bounded amount. docs/supervisor.md states the bounds."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pkgutil
import re
import socket
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

import claude_wire_kit.supervisor
from claude_wire import ControlRequest, decode
from claude_wire_kit.supervisor.disk.folder import StateFolder
from claude_wire_kit.supervisor.disk.journal import Journal
from claude_wire_kit.supervisor.disk.review import review
from claude_wire_kit.supervisor.frames import Serves
from claude_wire_kit.supervisor.ledger import Ledger, Verdict
from claude_wire_kit.supervisor.managed_session import ManagedSession
from claude_wire_kit.supervisor.sessions import Limits
from pages import kept
from supervisors import SECONDS, Client, RunningDaemon, hosting


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(claude_wire_kit.supervisor.__path__, "claude_wire_kit.supervisor.")
    return [importlib.import_module(module.name) for module in found]


def module_of(name: str) -> ModuleType:
    """Return the module of the supervisor that defines a bound."""
    defined = re.compile(rf"^{name} = ", re.M)
    (found,) = (each for each in modules() if defined.search(Path(str(each.__file__)).read_text(encoding="utf-8")))
    return found


def bound(name: str) -> Any:
    return getattr(module_of(name), name)


def lower(monkeypatch: pytest.MonkeyPatch, **bounds: Any) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(module_of(name), name, value)


def silent(supervisor: RunningDaemon, session: str) -> socket.socket:
    """A viewer that reads only on request, with a small socket buffer."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(supervisor.folder.socket)
    client.sendall(json.dumps({"attach": session}).encode() + b"\n")
    return client


def rest(client: socket.socket) -> list[Any]:
    """Read a connection to its end. Return the frames of the supervisor."""
    with client, client.makefile("rb") as file:
        client.settimeout(SECONDS)
        return [json.loads(line) for line in file if line.startswith(b'{"type":"supervisor_') and line.endswith(b"\n")]


async def until(happened: Callable[[], bool]) -> None:
    async def look() -> None:
        while not happened():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(look(), SECONDS)


def managed_by(supervisor: RunningDaemon, answer: Any) -> ManagedSession:
    """Return the supervisor's object for a session."""
    managed = supervisor.supervisor._sessions.find(answer["id"])
    assert managed is not None
    return managed


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


# --- the bounds of the page -------------------------------------------------------------------------------------------

MIB = 2**20


def test_the_page_of_a_supervisor_says_its_bounds() -> None:
    said = " ".join(kept("supervisor.md"))
    numbers = {
        "MAX_LINE_BYTES": "64 MiB",
        "MAX_FRAME_BYTES": "1 MiB",
        "STALLED_SECONDS": "60 seconds",
        "MAX_OPEN": "4,096 questions",
        "MAX_OPEN_BYTES": "64 MiB",
        "MAX_QUESTION_BYTES": "16 MiB",
        "MAX_INITIALIZED_BYTES": "8 MiB",
        "MAX_SESSIONS": "10,000 sessions",
        "MAX_SPEC_BYTES": "256 MiB",
        "MAX_HANDSHAKE_BYTES": "1 MiB",
        "MAX_WAITING_BYTES": "1 MiB",
        "JOURNAL_BYTES": "256 MiB",
        "STDERR_BYTES": "1 MiB",
        "TAIL_BYTES": "8 KiB",
        "LOG_BYTES": "4 MiB",
        "MAX_CALLS": "1,024",
        "MAX_SETTLED": "1,024",
    }
    for name, text in numbers.items():
        number, unit = text.partition(" ")[::2]
        factor = {"MiB": MIB, "KiB": 1024}.get(unit, 1)
        assert bound(name) == int(number.replace(",", "")) * factor, name
        assert text in said, name
    limits = Limits()
    assert (limits.sessions, limits.connections, limits.memory_bytes) == (256, 1024, None)
    assert "256 CLIs" in said
    assert "1,024 clients" in said


# --- clients ----------------------------------------------------------------------------------------------------------


async def test_a_longer_line_of_a_client_is_refused_and_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, MAX_LINE_BYTES=10_000)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        client.prompt("p1", content="x" * 20_000)
        refused = (await client.until("supervisor_refused"))[-1]
        assert refused["line"] == 1
        assert "at most 10,000 are taken" in refused["reason"]
        while await client.get() is not None:
            pass
        again = await (await supervisor.client()).ask({"attach": answer["id"]})
        assert again["life"] == "idle"


async def test_a_tick_writes_the_order_of_the_sessions_that_have_waited_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, TICK_SECONDS=999.0, SESSIONS_PER_TICK=2)
    async with hosting(tmp_path / "h") as supervisor:
        created = [await supervisor.create() for _ in range(5)]
        parts = [managed_by(supervisor, answer).journal.last for _, answer in created]

        def waiting() -> list[int]:
            return [number for number, part in enumerate(parts) if part.unordered_since < inf]

        def waiting_after_a_tick() -> list[int]:
            supervisor.supervisor._tick()
            return waiting()

        async def speak(prompt: str, *numbers: int) -> None:
            for client, _ in (created[number] for number in numbers):
                client.prompt(prompt)
                await client.until("result")
            await until(lambda: set(numbers) <= set(waiting()))

        await until(lambda: len(waiting()) == 5)
        assert [len(waiting_after_a_tick()) for _ in range(3)] == [3, 1, 0]
        await speak("p1", 4)
        await speak("p2", 0, 1)
        assert waiting_after_a_tick() == [1]
        await speak("p3", 2, 3)
        assert waiting_after_a_tick() == [3]
        assert waiting_after_a_tick() == []


async def test_a_client_that_takes_nothing_is_cut_with_its_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, TICK_SECONDS=0.05)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        slow = silent(supervisor, answer["id"])
        client.prompt("p1", lines=20_000)
        await client.until("result")
        client.close()
        await until(lambda: len(managed_by(supervisor, answer).clients) == 1)
        lower(monkeypatch, STALLED_SECONDS=0.1)
        await until(lambda: not managed_by(supervisor, answer).clients)
        assert "client-cut" in (supervisor.path / "log.ndjson").read_text()
        await asyncio.to_thread(rest, slow)


async def test_a_client_that_does_not_take_what_the_host_says_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, MAX_FRAME_BYTES=500)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        slow = silent(supervisor, answer["id"])
        client.prompt("p1", lines=20_000)
        await client.until("result")
        assert len(managed_by(supervisor, answer).clients) == 2
        for _ in range(20):  # every viewer receives a frame each time the driver changes
            other = await supervisor.client()
            await other.ask({"attach": answer["id"], "role": "driver", "take": True})
            other.close()
        await until(lambda: len(managed_by(supervisor, answer).clients) == 1)
        await asyncio.to_thread(rest, slow)


# --- the CLI's questions ----------------------------------------------------------------------------------------------


def question(id: str, size: int = 0) -> ControlRequest:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "x" * size}}
    message = decode(json.dumps({"type": "control_request", "request_id": id, "request": request}).encode())
    assert isinstance(message, ControlRequest)
    return message


def test_nothing_more_is_read_while_so_many_questions_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_OPEN=3, MAX_OPEN_BYTES=5_000)
    ledger = Ledger()
    for id in ("a", "b"):
        ledger.received(question(id))
        assert not ledger.is_full
    ledger.received(question("c"))
    assert ledger.is_full
    ledger.process_ended()
    assert not ledger.is_full
    ledger.received(question("d", 5_000))
    assert ledger.is_full


ASKS = """
import json, sys
sys.stdin.readline()
def ask(n):
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    print(json.dumps({"type": "control_request", "request_id": f"q{n}", "request": request}), flush=True)
ask(0)
ask(1)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "user":
        for n in range(2000):
            print(json.dumps({"type": "told", "n": n}))
        print(json.dumps({"type": "last"}), flush=True)
"""


async def test_a_cli_goes_on_when_its_questions_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_OPEN=2)
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        answer = await client.ask({"create": supervisor.spec(argv=script(ASKS)), "role": "driver"})
        assert [(await client.get())["request_id"] for _ in range(2)] == ["q0", "q1"]
        client.prompt("p1")
        assert (await client.get())["type"] == "supervisor_accepted"
        other = await supervisor.client()
        assert (await other.ask({"attach": answer["id"]}))["line"] == 2  # the CLI's next lines are not read yet
        response = {"subtype": "success", "request_id": "q0", "response": {}}
        client.send({"type": "control_response", "response": response})
        assert len(await client.until("last")) == 2002


def test_of_a_handshake_above_the_bound_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_HANDSHAKE_BYTES=1_000)
    ledger = Ledger()
    for name, size in (("small", 10), ("large", 2_000)):
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"x": "x" * size}}
        request = {"subtype": "mcp_message", "server_name": name, "message": message}
        ledger.received(
            decode(json.dumps({"type": "control_request", "request_id": name, "request": request}).encode())
        )
    assert list(ledger.handshakes) == ["small"]


def test_a_handshake_that_comes_again_takes_the_room_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_HANDSHAKE_BYTES=1_000)
    ledger = Ledger()
    for _ in ledger.drive(Serves(mcp=["tools"])):
        pass
    for number in range(50):  # 50 processes of the CLI
        ledger.process_started()
        for method in ("initialize", "notifications/initialized", "tools/list"):
            message = {"jsonrpc": "2.0", "id": number, "method": method}
            request = {"subtype": "mcp_message", "server_name": "tools", "message": message}
            id = f"{number}-{method}"
            ledger.received(
                decode(json.dumps({"type": "control_request", "request_id": id, "request": request}).encode())
            )
            result = {"mcp_response": {"jsonrpc": "2.0", "id": number, "result": {"of": number}}}
            response = {"subtype": "success", "request_id": id, "response": result}
            line = json.dumps({"type": "control_response", "response": response}).encode()
            ledger.written(ledger.look_at(line, is_driver=True).message)
        assert [message["id"] for message in ledger.handshakes["tools"]] == [number, number]
        assert ledger._answers["tools", "tools/list"] == {"of": number}


def test_many_names_of_servers_take_the_room_of_handshakes(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_HANDSHAKE_BYTES=10_000)
    ledger = Ledger()
    for number in range(50):
        request = {"subtype": "mcp_message", "server_name": f"{number}" * 1_000, "message": {"method": "initialize"}}
        ledger.received(
            decode(json.dumps({"type": "control_request", "request_id": f"{number}", "request": request}).encode())
        )
    assert sum(map(len, ledger.handshakes)) < 10_000


def withdrawn(id: str) -> Any:
    return decode(json.dumps({"type": "control_cancel_request", "request_id": id}).encode())


def test_the_oldest_id_of_a_prompt_and_of_a_settled_question_is_forgotten() -> None:
    ledger, most = Ledger(), 4096

    def prompt(uuid: str) -> Verdict:
        line = json.dumps({"type": "user", "uuid": uuid, "message": {"role": "user", "content": "x"}}).encode()
        taken = ledger.look_at(line, is_driver=True)
        if taken.verdict is Verdict.WRITE:
            ledger.written(taken.message)
        return taken.verdict

    for number in range(most):
        assert prompt(f"p{number}") is Verdict.WRITE
        ledger.received(question(f"q{number}"))
        ledger.received(withdrawn(f"q{number}"))
    ledger.received(question("q0"))
    assert (prompt("p0"), ledger.open) == (Verdict.KNOWN, [])
    prompt("one more")
    ledger.received(question("one more"))
    ledger.received(withdrawn("one more"))
    ledger.received(question("q0"))
    assert prompt("p0") is Verdict.WRITE
    assert [request.request_id for request in ledger.open] == ["q0"]


async def test_of_the_settled_questions_a_client_gets_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_SETTLED=2)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        for id in ("q1", "q2", "q3"):
            client.prompt(f"p-{id}", ask=id)
            await client.until("control_request")
            response = {"subtype": "success", "request_id": id, "response": {"behavior": "allow"}}
            client.send({"type": "control_response", "response": response})
            await client.until("result")
        assert (await (await supervisor.client()).ask({"attach": answer["id"]}))["settled"] == ["q2", "q3"]


# --- the input of the CLI ---------------------------------------------------------------------------------------------

DEAF = """
import json, os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"type": "heard", "uuid": message.get("uuid")}), flush=True)
"""


async def test_a_driver_is_not_read_while_so_much_waits_for_its_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, MAX_WAITING_BYTES=1_000)
    async with hosting(tmp_path / "h") as supervisor:
        flag = tmp_path / "flag"
        client = await supervisor.client()
        argv = [*script(DEAF), os.fspath(flag)]
        answer = await client.ask({"create": supervisor.spec(argv=argv), "role": "driver"})
        for number in range(400):
            client.prompt(f"p{number}", content="x" * 10_000)
        await until(lambda: managed_by(supervisor, answer).waits_for(managed_by(supervisor, answer).driver))
        waits = (supervisor.path / "sessions" / answer["id"] / "parts" / "000001" / "stdin.ndjson").stat().st_size
        assert waits < 400_000  # the sum of the pipe's capacity, one read, and the bound
        flag.touch()
        heard = [line["uuid"] for line in await _until_heard(client, "p399") if line["type"] == "heard"]
        assert heard[1:] == [f"p{number}" for number in range(400)]


async def _until_heard(client: Client, uuid: str) -> list[Any]:
    got = [await client.get()]
    while got[-1].get("uuid") != uuid:
        got.append(await client.get())
    return got


# --- on disk ----------------------------------------------------------------------------------------------------------


async def test_the_standard_error_of_a_cli_is_kept_up_to_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, STDERR_BYTES=1_000, TAIL_BYTES=100)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        client.prompt("p1", stderr="e" * 5_000 + "d" * 60, exit=1)
        ended = (await client.until("supervisor_ended"))[-1]
        assert ended["stderr"] == "e" * 40 + "d" * 60
        assert (supervisor.path / "sessions" / answer["id"] / "parts" / "000001" / "stderr.txt").stat().st_size == 1_000


async def test_above_its_budget_a_journal_has_its_last_parts_and_no_client_keeps_twice_as_much(tmp_path: Path) -> None:
    budget = 200_000
    async with hosting(tmp_path / "h", limits=Limits(journal_bytes=budget)) as supervisor:
        client, answer = await supervisor.create()
        slow = silent(supervisor, answer["id"])
        await until(lambda: len(managed_by(supervisor, answer).clients) == 2)
        journal, sizes = managed_by(supervisor, answer).journal, [0]
        client.prompt("p1", lines=20_000)
        while (await client.get())["type"] != "result":
            sizes.append(journal.size)
        chunk = 2 * 64 * 1024  # one read of output and the rows of its lines in order.jsonl
        assert 1.25 * budget < max(sizes) <= 2 * budget + budget // 8 + chunk
        assert len(managed_by(supervisor, answer).clients) == 1, "who reads nothing was cut off"
        assert journal.size <= budget + budget // 8 + chunk
        refused = await (await supervisor.client()).ask(
            {"attach": answer["id"], "after": {"id": answer["id"], "epoch": 1, "line": 1}}
        )
        assert (refused["error"], refused["first"]) == ("gone", journal.first)
        await asyncio.to_thread(rest, slow)


def test_of_the_calls_without_a_result_the_last_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, MAX_CALLS=3)
    journal = Journal(os.fspath(tmp_path))
    journal.begin(["cli"], began=0.0)
    for number in range(5):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        body = {"id": "m", "role": "assistant", "model": "x", "content": [call]}
        message = {"type": "assistant", "message": body, "session_id": "s", "parent_tool_use_id": None}
        journal.add_output(json.dumps(message).encode() + b"\n")
    journal.add_order()
    assert review(journal, 1)[0].calls == ["t2", "t3", "t4"]
    journal.close()


def test_the_log_is_two_files_up_to_their_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, LOG_BYTES=2_000)
    folder = StateFolder(os.fspath(tmp_path / "h"))
    for number in range(500):
        folder.log("event", number=number)
    folder.release()
    kept = [(tmp_path / "h" / name).read_text() for name in ("log.1", "log.ndjson")]
    assert max(map(len, kept)) < 2_100
    assert [json.loads(line)["number"] for line in "".join(kept).splitlines()][-1] == 499


async def test_the_spec_of_a_cli_that_cannot_be_kept_ready_is_not_kept(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        spec = {**supervisor.spec(), "argv": ["/nowhere/to/be/found"]}
        assert (await client.ask({"prewarm": spec, "count": 1}))["error"] == "start"
        sessions = supervisor.supervisor._sessions
        assert (sessions._warm, sessions._spec_bytes, sessions._environments) == ({}, {}, {})


async def test_sessions_that_have_ended_are_kept_up_to_a_number_and_to_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, MAX_SESSIONS=2, MAX_SPEC_BYTES=100_000)
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        spec = {**supervisor.spec(env={}), "argv": ["/bin/true"]}
        long = {**spec, "initialize": {"appendSystemPrompt": "x" * 100_000}}
        assert "more than 100,000 bytes" in (await client.ask({"create": long, "detach": True}))["message"]
        made = [await client.ask({"create": spec, "detach": True}) for _ in range(2)]
        refused = await client.ask({"create": spec, "detach": True})
        assert (refused["error"], "the limit of 2 sessions is reached" in refused["message"]) == ("limit", True)
        await until(lambda: not supervisor.supervisor._sessions.running)
        await client.ask({"remove": made[0]["id"]})
        assert (await client.ask({"create": spec, "detach": True}))["type"] == "supervisor_session"
