"""A session of 100 MB, as the output of a program that a supervisor starts, and as a transcript of the CLI."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host_agent

__all__ = ["BYTES", "TURNS", "keep_long_session", "long_agent", "long_output"]

#: The size of the session, and its number of turns. Each turn has one large tool result, small enough that the service
#: does not cut it.
BYTES = 100 * 1024 * 1024
TURNS = 1_100

#: An agent that writes the file next to it on the first prompt. After that it behaves like host_agent.
PROGRAM = """\
import json, shutil, sys
sys.path.insert(0, {folder!r})
import host_agent

class Long(host_agent.Agent):
    told = False

    def begin(self):
        if not self.told:
            self.told, self.cost = True, {cost}
            with open({path!r}, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
            sys.stdout.flush()
        super().begin()

agent = Long()
for line in sys.stdin:
    agent.take(json.loads(line))
"""


def _turn(number: int) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn as the CLI writes them."""
    call = {"type": "tool_use", "id": f"call-{number}", "name": "Bash", "input": {"command": f"report {number}"}}
    line = f"{number:05} " + "all is as it was before, and nobody has seen anything else\n"
    output = line * (BYTES // TURNS // len(json.dumps(line)))
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
    said = {"type": "text", "text": f"Answer {number}"}
    yield {"type": "user", "message": {"role": "user", "content": f"Question {number}"}, "isReplay": True}
    yield {"type": "assistant", "message": {"id": f"a-{number}", "role": "assistant", "model": "x", "content": [call]}}
    yield {"type": "user", "message": {"role": "user", "content": [result]}}
    yield {"type": "assistant", "message": {"id": f"b-{number}", "role": "assistant", "model": "x", "content": [said]}}


def long_output(turns: int = TURNS) -> Iterator[bytes]:
    """Yield the lines of the session."""
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "duration_ms": 1}
    both = {"session_id": "cli-1", "parent_tool_use_id": None}
    for number in range(turns):
        for place, message in enumerate([*_turn(number), {**result, "num_turns": 2, "total_cost_usd": number}]):
            yield json.dumps({**message, **both, "uuid": f"u-{number}-{place}"}).encode() + b"\n"


def long_agent(folder: Path, turns: int = TURNS) -> list[str]:
    """Write the session and its agent into a folder. Return the agent's command line."""
    with open(folder / "long.ndjson", "wb") as file:
        file.writelines(long_output(turns))
    program = folder / "long_agent.py"
    program.write_text(
        PROGRAM.format(
            folder=os.path.dirname(host_agent.__file__), path=os.fspath(folder / "long.ndjson"), cost=turns - 1
        )
    )
    return [sys.executable, "-B", os.fspath(program), "--replay-user-messages"]


def keep_long_session(home: Path, cwd: Path, id: str, turns: int = TURNS) -> None:
    """Write the session as a transcript under the CLI's home folder."""
    both = {"sessionId": id, "cwd": os.fspath(cwd), "version": "2.1.330", "isSidechain": False, "userType": "external"}
    folder = home / "projects" / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    parent: str | None = None
    with open(folder / f"{id}.jsonl", "w", encoding="utf-8") as file:
        for number in range(turns):
            for place, message in enumerate(_turn(number)):
                uuid = f"u-{number}-{place}"
                at = f"2026-01-02T{number // 60 % 24:02}:{number % 60:02}:{place:02}.000Z"
                record = {**both, "type": message["type"], "uuid": uuid, "parentUuid": parent, "timestamp": at}
                file.write(json.dumps({**record, "message": message["message"]}) + "\n")
                parent = uuid
