"""A CLI writes lines that imitate frames of its supervisor. Every client receives them as ordinary lines."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from claude_wire import ResultMessage
from claude_wire_kit.supervisor.attach import connect
from forged import forged, pieces
from supervisors import Client, hosting


async def lines_of(client: Client, mark: str) -> tuple[list[bytes], list[Any]]:
    """Read until the CLI ends. Return its lines and the supervisor's frames, which only the mark identifies."""
    lines, frames = list[bytes](), list[Any]()
    while line := await client.reader.readline():
        if not line.endswith(b',"mark":"%b"}\n' % mark.encode()):
            lines.append(line)
            continue
        frames.append(json.loads(line))
        if frames[-1]["type"] == "supervisor_ended":
            break
    return lines, frames


async def test_each_client_gets_forged_frames_as_lines_and_the_session_goes_on(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        # A CLI could learn the marks of ended connections, both of its own session and of another one.
        early, elsewhere = await supervisor.client(), await supervisor.client()
        marks = [(await early.ask({"attach": attached["id"]}))["mark"]]
        marks.append((await elsewhere.ask({"create": supervisor.spec()}))["mark"])
        early.close()
        elsewhere.close()
        lines = forged(*marks)
        viewer = await supervisor.client()
        seen = await viewer.ask({"attach": attached["id"]})
        driver.prompt("p1", raw=pieces(lines))
        driver.prompt("p2", exit=3)
        mine, frames = await lines_of(driver, attached["mark"])
        assert [frame["type"] for frame in frames] == ["supervisor_accepted", "supervisor_accepted", "supervisor_ended"]
        assert (frames[-1]["exit_code"], frames[-1]["owed"]) == (3, ["p2"])
        said = "".join(lines).encode()
        assert said in b"".join(mine)
        part = Path(supervisor.path, "sessions", attached["id"], "parts", "000001")
        journal = (part / "stdout.ndjson").read_bytes()
        assert b"".join((await lines_of(viewer, seen["mark"]))[0]) == journal
        assert journal.endswith(b"".join(mine))
        late = await supervisor.client()
        again = await late.ask({"attach": attached["id"]})
        assert again["line"] == journal.count(b"\n")
        assert b"".join([await late.reader.readline() for _ in range(again["line"])]) == journal


async def test_a_session_gets_forged_frames_as_messages_with_their_numbers(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        async with connect(supervisor.path).attach(attached["id"], role="viewer") as session:
            driver.prompt("p1", raw=pieces([line for line in forged(attached["mark"][::-1]) if line.strip()]))
            driver.prompt("p2")
            found = []
            async for message in session:
                if isinstance(message, ResultMessage):
                    assert session.cursor is not None
                    found.append(session.cursor.line)
                if len(found) == 2:
                    break
        path = Path(supervisor.path, "sessions", attached["id"], "parts", "000001", "stdout.ndjson")
        journal = path.read_bytes().splitlines(keepends=True)
        assert found == [number for number, line in enumerate(journal, 1) if line.startswith(b'{"type": "result"')]


async def test_the_mark_of_a_connection_is_in_no_file_no_environment_and_no_other_connection(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        viewer = await supervisor.client()
        seen = await viewer.ask({"attach": attached["id"]})
        assert seen["mark"] != attached["mark"]
        listed = await (await supervisor.client()).ask({"list": {}})
        (pid,) = (session["pid"] for session in listed["sessions"])
        places = [Path(f"/proc/{pid}/environ").read_bytes(), Path(f"/proc/{pid}/cmdline").read_bytes()]
        driver.prompt("p1", stderr="a warning", exit=0)
        ours, _ = await lines_of(driver, attached["mark"])
        theirs, _ = await lines_of(viewer, seen["mark"])
        places += [json.dumps(listed).encode(), *ours, *theirs]
        for folder, _, names in os.walk(supervisor.path):
            places += [Path(folder, name).read_bytes() for name in names if name != "socket"]
        for mark in (attached["mark"], seen["mark"]):
            assert len(mark) == 32
            assert not any(mark.encode() in place for place in places)


async def test_what_a_driver_sends_comes_to_no_cli_with_a_mark(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        driver.prompt("p1", ask="q1")
        await driver.until("control_request")
        driver.send(
            {"type": "control_response", "response": {"subtype": "success", "request_id": "q1", "response": {}}}
        )
        await driver.until("result")
        driver.send({"type": "supervisor_end_input"})
        await driver.until("supervisor_ended")
        part = Path(supervisor.path, "sessions", attached["id"], "parts", "000001")
        assert attached["mark"].encode() not in (part / "stdin.ndjson").read_bytes()
