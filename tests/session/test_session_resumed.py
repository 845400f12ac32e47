"""A resumed session continues the earlier conversation, or warns that it does not."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from async_backends import Backend, every_backend
from claude_wire import ClaudeOptions, open_session

SESSION = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
OTHER = "11111111-6a5c-4a6c-9a54-0d3c2a1b0f9e"

#: A fake CLI that runs its turn in the session that an environment variable names.
PROGRAM = """
import json, os, sys
def say(**message): print(json.dumps(message), flush=True)
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        say(type="control_response", response=answer)
    elif message["type"] == "user":
        id = os.environ["BEGINS"]
        say(type="system", subtype="init", session_id=id)
        say(type="result", subtype="success", is_error=False, result="done", session_id=id, uuid=message["uuid"],
            user_message_uuids=[message["uuid"]])
        say(type="system", subtype="session_state_changed", state="idle", session_id=id)
"""


@every_backend
@pytest.mark.parametrize(
    ("begins", "fork", "warned"), [(SESSION, False, False), (OTHER, False, True), (OTHER, True, False)]
)
def test_a_resume_that_begins_another_session_is_warned_of(
    backend: Backend, begins: str, fork: bool, warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / backend.id
    (folder / "projects" / "-x").mkdir(parents=True)
    (folder / "projects" / "-x" / f"{SESSION}.jsonl").touch()
    interpreter = folder / "node"  # the CLI is a Node.js script or a binary, so the script must not look like Python
    interpreter.symlink_to(sys.executable)
    program = folder / "claude"
    program.write_text(f"#!{interpreter}\n{PROGRAM}")
    program.chmod(0o755)

    async def main() -> None:
        options = ClaudeOptions(cli_path=program, resume=SESSION, fork_session=fork)
        env = {"CLAUDE_CONFIG_DIR": str(folder), "BEGINS": begins, "PATH": "/usr/bin:/bin"}
        async with open_session(options, env=env) as session:
            assert (await session.ask("x", until="turn")).result == "done"

    with caplog.at_level(logging.WARNING, "claude_wire"):
        backend.run(main)
    said = [record.getMessage() for record in caplog.records]
    expected = (
        f"the CLI was to resume session {SESSION} and has begun session {OTHER}: it has nothing of what was said before"
    )
    assert said == ([expected] if warned else [])
