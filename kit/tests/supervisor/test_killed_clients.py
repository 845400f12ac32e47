"""Drivers are killed at random lines, and between the steps of an answer. The next driver has other callbacks.

The test kills 40 drivers, or 1,000 with ``CLAUDE_WIRE_LONG=1``. ``pytest -s`` prints the totals.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import asking_agent
from long_tests import LONG
from supervisors import Client, RunningDaemon, connected, hosting

pytest.importorskip("click")
pytest.importorskip("rich")

import toolsmith
from claude_wire.testing import Recording
from supervised import SECONDS, Commands, Talker

KILLS = 1_000 if LONG else 40

#: When a driver dies: after a random number of lines, or after its answer is written in part, is written completely, is
#: in the journal, is acknowledged, or is taken by the CLI.
DEATHS = ("line", "part", "written", "journal", "acknowledged", "taken")


class Drivers:
    """The successive drivers of one session, and the lines that they received in total."""

    def __init__(self, supervisor: RunningDaemon) -> None:
        self.host = supervisor
        self.chance = random.Random(11)
        self.id = ""
        self.lines: list[bytes] = []
        self.deaths: Counter[str] = Counter()
        self.prompts = 0
        #: Prompts without an acknowledgment; the next driver sends them again.
        self.unsure: list[str] = []
        self.results: list[str] = []

    async def live(self, number: int, death: str | None) -> None:
        """Drive the session until `death`, or until all prompts have their results."""
        async with connected(self.host.path) as client:
            self.client, self.number, self.death = client, number, death
            self.left = self.chance.randrange(1, 12)
            serves: dict[str, Any] = {"hooks": ["h"], "mcp": ["tools"]}
            after = {"id": self.id, "epoch": 1, "line": len(self.lines)}
            answer = await client.ask(
                {"attach": self.id, "after": after, "role": "driver", "take": True, "serves": serves}
            )
            assert answer["type"] == "supervisor_attached", answer
            assert answer["after"] == len(self.lines)
            self.known = answer["line"]
            self.sent: list[str | None] = []
            for uuid in list(self.unsure):
                self.prompt(uuid)
            # The second prompt arrives while the turn of the first one runs.
            for _ in range(2 if death and len(answer["owed"]) < 3 else 0):
                self.prompts += 1
                self.unsure.append(f"p{self.prompts}")
                self.prompt(self.unsure[-1])
            for question in answer["open"]:
                if await self.answer(question):
                    return
            while death or len(self.results) < self.prompts or self.unsure:
                if await self.take(await client.reader.readline()):
                    return

    def prompt(self, uuid: str) -> None:
        self.sent.append(uuid)
        self.client.prompt(uuid)

    async def take(self, line: bytes) -> bool:
        """Process a line. Return whether the driver died in the process."""
        message = json.loads(line)
        if message["type"] == "supervisor_accepted":
            uuid = self.sent[message["lines"] - 1]
            if uuid is not None:
                self.unsure.remove(uuid)
            return False
        assert not message["type"].startswith("supervisor_"), message
        self.lines.append(line)
        if message["type"] == "result":
            self.results += message["user_message_uuids"]
        if message["type"] == "control_request" and len(self.lines) > self.known:
            return await self.answer(message)
        self.left -= 1
        return self.dies("line") if self.left <= 0 else False

    def dies(self, death: str) -> bool:
        if self.death == death:
            self.deaths[death] += 1
            return True
        return False

    async def answer(self, question: dict[str, Any]) -> bool:
        """Answer a permission question. Return whether the driver died in the process."""
        id = question["request_id"]
        response = {"subtype": "success", "request_id": id, "response": {"by": self.number}}
        line = json.dumps({"type": "control_response", "response": response}).encode() + b"\n"
        if self.death == "part":
            self.client.writer.write(line[: self.chance.randrange(1, len(line))])
            return self.dies("part")
        self.sent.append(None)
        self.client.writer.write(line)
        if self.death == "written":
            return self.dies("written")
        journal = self.host.supervisor._sessions._managed[self.id].journal
        if self.death == "journal":
            path = Path(journal.last.path, "stdin.ndjson")
            while id.encode() not in path.read_bytes():
                await asyncio.sleep(0)
            return self.dies("journal")
        number = len(self.sent)
        while self.death in ("acknowledged", "taken"):
            line = await self.client.reader.readline()
            message = json.loads(line)
            if message["type"] == "supervisor_accepted" and message["lines"] == number and self.death == "acknowledged":
                await self.take(line)
                return self.dies("acknowledged")
            death, self.death = self.death, "later"
            await self.take(line)
            self.death = death
            if message["type"] == "answered" and message["response"]["request_id"] == id:
                return self.dies("taken")
        return False


async def test_drivers_that_die_lose_no_line_and_no_question_is_answered_twice(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client: Client = await supervisor.client()
        argv = [sys.executable, "-B", asking_agent.__file__]
        session = await client.ask({"create": supervisor.spec(argv=argv), "detach": True})
        drivers = Drivers(supervisor)
        drivers.id = session["id"]
        for number in range(KILLS):
            await drivers.live(number, DEATHS[number % len(DEATHS)])
        await drivers.live(KILLS, None)
        assert sum(drivers.deaths.values()) == KILLS
        assert min(drivers.deaths.values()) >= KILLS // len(DEATHS)
        assert drivers.results == [f"p{n + 1}" for n in range(drivers.prompts)], "each prompt has one turn"
        folder = tmp_path / "h/sessions" / drivers.id / "parts/000001"
        assert (folder / "stdout.ndjson").read_bytes() == b"".join(drivers.lines), "each line once, byte for byte"
        inputs = [json.loads(line) for line in (folder / "stdin.ndjson").read_bytes().splitlines()]
        answers = [message["response"] for message in inputs if message["type"] == "control_response"]
        said = [json.loads(line) for line in drivers.lines]
        asked = [message["request_id"] for message in said if message["type"] == "control_request"]
        assert [answer["request_id"] for answer in answers] == asked, "each question has one answer"
        assert [message["response"] for message in said if message["type"] == "answered"] == answers
        kinds = Counter(message["request"]["subtype"] for message in said if message["type"] == "control_request")
        print(f"\ndrivers killed: {KILLS:,}; {dict(drivers.deaths)}; {dict(kinds)}; {drivers.prompts} prompts")
        least = {"can_use_tool": 200, "hook_callback": 100, "mcp_message": 50}
        assert {kind: number for kind, number in kinds.items() if number < least[kind] // (1 if LONG else 20)} == {}
        assert min(kinds.values()) == drivers.prompts


# --- Kill a supervisor at random moments, while its CLI runs tools ----------------------------------------------------


SUPERVISOR_KILLS = 100 if os.environ.get("CLAUDE_WIRE_LONG") else 6


def test_no_tool_begins_once_the_supervisor_was_killed_and_what_it_leaves_is_reported(tmp_path: Path) -> None:
    chance = random.Random(7)
    log = tmp_path / "tools"
    environment = {**os.environ, "TOOL_LOG": os.fspath(log)}
    spec = {"argv": [sys.executable, "-B", toolsmith.__file__], "cwd": os.fspath(tmp_path), "env": environment}
    id, line = "", 0
    with Commands(tmp_path / "h") as supervisor:
        pid = supervisor.serve()
        for n in range(SUPERVISOR_KILLS):
            with Talker(tmp_path / "h") as client:
                resume = {"resume": id, "env": environment, "after": {"id": id, "epoch": 1, "line": line}}
                answer = client.ask({**(resume if id else {"create": spec}), "role": "driver"})
                assert answer["type"] == "supervisor_attached", answer
                id = answer["id"]
                client.send(prompt(f"p{n}", "tools"))
                client.until("assistant")
                # the supervisor may be killed at any moment, so the test does not depend on this time
                time.sleep(chance.random() * 0.15)
                watched = os.pidfd_open(pid)
                os.kill(pid, signal.SIGKILL)
                assert select.select([watched], [], [], SECONDS)[0]
                gone = time.monotonic_ns()
                os.close(watched)
                while client.line():  # read the lines that were already sent
                    pass
            pid = supervisor.serve()
            output = whole(tmp_path / "h" / "sessions" / id / "parts")[line:]
            assert output[: len(client.lines)] == client.lines
            line += len(output)
            assert reported(tmp_path / "h", id) == (line, f"p{n}", calls(output) - results(output))
            began, ran = tools(log)
            assert max(began.values()) < gone
            assert ran <= set(began)
        with Talker(tmp_path / "h") as client:
            client.ask({"resume": id, "role": "driver", "env": environment})
            client.send(prompt("last", "hi"))
            assert client.until("result")["user_message_uuids"] == ["last"]


def prompt(uuid: str, text: str) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


def contents(lines: list[bytes], kind: str) -> list[dict[str, Any]]:
    messages: list[Any] = []
    for line in lines:
        with suppress(ValueError):  # the last line may be cut off
            messages.append(json.loads(line))
    return [message["message"]["content"][0] for message in messages if message["type"] == kind]


def calls(lines: list[bytes]) -> set[str]:
    return {block["id"] for block in contents(lines, "assistant")}


def results(lines: list[bytes]) -> set[str]:
    return {block["tool_use_id"] for block in contents(lines, "user")}


def reported(folder: Path, id: str) -> tuple[int, str, set[str]]:
    """Ask the next supervisor for the number of the last line, and for the prompt and calls without a result."""
    with Talker(folder) as client:
        answer = client.ask({"attach": id})
    ended = answer["ended"]
    assert ended["exit_code"] is None
    assert ended["unfinished"] == "in the middle of a turn"
    (owed,) = ended["owed"]
    return answer["line"], owed, set(ended["calls"])


def whole(parts: Path) -> list[bytes]:
    """Return the lines of all parts. Check that each part loads as a recording."""
    lines: list[bytes] = []
    for part in sorted(parts.iterdir()):
        kept = (part / "stdout.ndjson").read_bytes()
        assert Recording.load(part).stdout == kept
        lines += kept.splitlines(keepends=True)
    return lines


def tools(log: Path) -> tuple[dict[str, int], set[str]]:
    """Read the fake CLI's log. Return when each tool began, and the ids of the tools that ran."""
    rows = [line.split() for line in log.read_text().splitlines()]
    began = {id: int(moment) for what, id, moment in rows if what == "begins"}
    return began, {id for what, id, _ in rows if what == "runs"}
