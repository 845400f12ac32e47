"""Run a supervisor on a full file system: a program that a test starts in a new mount namespace.

    full_disk.py FOLDER

It mounts a file system of 8 MiB at FOLDER, runs a supervisor there, and prints its findings as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from claude_wire_kit.supervisor import managed_session as managed_sessions
from supervisors import Client, RunningDaemon, hosting

#: Sizes in bytes: the file system, the file that fills most of it, and a prompt that needs its own pages.
DISK, BALLAST, LARGE = 8 * 1024 * 1024, 6 * 1024 * 1024, 8 * 1024
#: The number of lines, about 3 MB, of a turn that does not fit on the disk together with the ballast.
LINES = 12_000


def mount(folder: Path) -> None:
    """Mount a tmpfs of DISK bytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)


def fill(path: Path, size: int = DISK) -> None:
    """Write a file of ``size`` bytes, or a smaller one that fills the disk to the last byte."""
    with open(path, "wb", buffering=0) as file:
        for piece in (64 * 1024, 4096, 1):
            try:
                while file.tell() + piece <= size:
                    file.write(b"x" * piece)
            except OSError:
                continue


def started(folder: Path) -> tuple[int, str]:
    """Run ``claude-wire supervisor start``. Return its exit code and its output."""
    ended = subprocess.run(
        [sys.executable, "-m", "claude_wire_kit", "supervisor", "start"],
        env={**os.environ, "CLAUDE_WIRE_SUPERVISOR": os.fspath(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr


def lines_of(got: list[Any]) -> list[Any]:
    """Return the CLI's lines, without the supervisor's own."""
    return [line for line in got if not line["type"].startswith("supervisor_")]


async def blocked(supervisor: RunningDaemon, ballast: Path) -> dict[str, Any]:
    """Fill the disk during a turn. Return whether the session waits, and goes on when there is room."""
    client, answer = await supervisor.create(name="waits")
    id = answer["id"]
    client.prompt("p1")
    got = await client.until("result")
    fill(ballast, BALLAST)
    client.prompt("p2", lines=LINES)
    got += await client.until("supervisor_blocked")
    found: dict[str, Any] = {"blocked": got[-1]["message"]}
    client.prompt("p3", content="x" * LARGE)
    got += await client.until("supervisor_refused")
    found["refused"] = got[-1]["reason"]
    other = await supervisor.client()
    found["create"] = await other.ask({"create": supervisor.spec(), "detach": True})
    found["folders"] = [name for name in os.listdir(supervisor.path / "sessions") if name != id]
    found["life"] = [session["life"] for session in (await other.ask({"list": {}}))["sessions"]]
    viewer: Client = await supervisor.client()
    attached = await viewer.ask({"attach": id})
    seen = [await viewer.get() for _ in range(attached["line"])]
    ballast.unlink()
    got += await client.until("result")
    seen += await viewer.until("result")
    client.prompt("p3", content="x" * LARGE)
    got += await client.until("result")
    seen += await viewer.until("result")
    said = [json.loads(line) for line in journal(supervisor, id, "stdout.ndjson")]
    answered = said[0]  # the answer to `initialize`
    assert [answered, *lines_of(got)] == said
    assert lines_of(seen) == said
    found["results"] = [line["user_message_uuids"] for line in said if line["type"] == "result"]
    found["prompts"] = [json.loads(line).get("uuid") for line in journal(supervisor, id, "stdin.ndjson")][1:]
    found["accepted"] = [line["lines"] for line in got if line["type"] == "supervisor_accepted"]
    return found


def journal(supervisor: RunningDaemon, id: str, name: str) -> list[bytes]:
    """Return the lines of a file in a session's journal."""
    return (supervisor.path / "sessions" / id / "parts" / "000001" / name).read_bytes().splitlines()


async def ended(supervisor: RunningDaemon, ballast: Path) -> dict[str, Any]:
    """Stop a session on a full disk, then end the supervisor and start it again there."""
    client, answer = await supervisor.create(name="ends")
    id = answer["id"]
    client.prompt("p1")
    got = await client.until("result")
    fill(ballast)
    stopped = await (await supervisor.client()).ask({"stop": id, "grace": 5})
    found: dict[str, Any] = {"stopped": {s["name"]: s["life"] for s in stopped["sessions"]}}
    got += await client.until("supervisor_ended")
    found["code"] = got[-1]["exit_code"]
    await supervisor.end()
    fill(ballast)
    found["start"] = started(supervisor.path)
    ballast.unlink()
    await supervisor.start()
    again = await supervisor.client()
    attached = await again.ask({"attach": id, "after": {"id": id, "epoch": 1, "line": 1}})
    found["again"] = attached["life"], attached["line"]
    assert [await again.get() for _ in range(attached["line"] - 1)] == lines_of(got)
    resumed = await (await supervisor.client()).ask({"resume": id, "env": dict(os.environ), "detach": True})
    found["resumed"] = resumed["type"]
    return found


async def main(folder: Path) -> None:
    """Run both scenarios and print their findings."""
    mount(folder)
    managed_sessions.RETRY_SECONDS = 0.05
    ballast = folder / "ballast"
    async with hosting(folder / "h") as supervisor:
        print(json.dumps([await blocked(supervisor, ballast), await ended(supervisor, ballast)]))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
