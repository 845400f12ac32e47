"""A supervised session over ssh passes everything, and loses nothing when the connection is lost."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

import host_agent
from claude_wire import CanUseToolRequest
from claude_wire.errors import ProcessError
from claude_wire.messages import AssistantMessage, PermissionResult, ResultMessage
from claude_wire_kit.supervisor import Supervisor, connect, spec_of
from claude_wire_kit.supervisor.errors import DetachedError, SupervisorError
from ssh import SSHD, ssh_command
from supervised import SECONDS, Commands, journal

pytestmark = [pytest.mark.skipif(SSHD is None, reason="there is no SSH server: `make sshd` unpacks one on Debian")]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        yield commands


def command(commands: Commands) -> list[str]:
    """Return the command that connects to the supervisor's socket over ssh."""
    there = f"{shlex.quote(sys.executable)} -m claude_wire_kit supervisor stdio"
    return [*ssh_command(commands.folder.parent, {"CLAUDE_WIRE_SUPERVISOR": os.fspath(commands.folder)}), there]


def spec(**more: Any) -> Any:
    return spec_of([sys.executable, "-B", host_agent.__file__], **more)


async def test_questions_errors_and_the_end_cross_it(commands: Commands) -> None:
    commands.serve()
    supervisor = connect(command=command(commands), timeout=SECONDS)
    asked: list[str] = []

    async def allow(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    with anyio.fail_after(SECONDS):
        async with supervisor.create(spec(name="far"), can_use_tool=allow) as session:
            result = await session.ask(json.dumps({"ask": "q1", "stderr": "a warning"}))
            assert (result.result, asked) == ("ok", ["Bash"])
            await session.interrupt()  # returns when the CLI has answered
            with pytest.raises(ProcessError) as ended:
                await session.ask(json.dumps({"exit": 3, "call": "c1"}))
        assert (ended.value.returncode, ended.value.stderr_tail) == (3, b"a warning")
        (found,) = (await supervisor.list()).sessions
    assert (found.name, found.life.value) == ("far", "ended")


async def test_the_end_of_the_input_crosses_it(commands: Commands) -> None:
    commands.serve()
    supervisor = connect(command=command(commands), timeout=SECONDS)
    with anyio.fail_after(SECONDS):
        async with supervisor.create(spec()) as session:
            await session.end_input()
            assert [message async for message in session if isinstance(message, ResultMessage)] == []
        (found,) = (await supervisor.list()).sessions
    assert found.life.value == "ended"


async def test_a_connection_that_is_killed_loses_no_line(commands: Commands) -> None:
    commands.serve()
    id = commands.create(lines=3000, ask="q1")
    supervisor = connect(command=command(commands), timeout=SECONDS)
    texts: list[str] = []
    place: Any = id
    lost = is_over = asked = 0

    async def allow(request: CanUseToolRequest) -> PermissionResult:
        nonlocal asked
        asked += 1
        if asked == 1:  # this connection is lost in any case, because the session only ends after an answer
            kill_children()
            await anyio.sleep_forever()
        return request.allow()

    while not is_over:
        seen = len(texts)
        try:
            with anyio.fail_after(SECONDS):
                # The supervisor may not have noticed yet that the previous client is gone.
                async with supervisor.attach(place, take=True, can_use_tool=allow) as session:
                    async for message in session:
                        place = session.cursor
                        if isinstance(message, ResultMessage):
                            is_over = True
                            break
                        if isinstance(message, AssistantMessage):
                            texts.append(message.text)
                        if len(texts) == seen + 500:  # the client may have all lines already
                            kill_children()
        except DetachedError as error:
            lost += 1
            place = error.cursor
    assert lost
    assert texts.pop().startswith('answered {"behavior": "allow"')
    assert texts == [f'{number} {{"lines": 3000, "ask": "q1"}}' for number in range(3000)]
    assert place.line == journal(commands.folder, id, "stdout.ndjson").count(b"\n")


def kill_children() -> None:
    """Kill all ssh clients that this process has started."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        for pid in map(int, file.read().split()):
            if b"ProxyCommand" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


async def test_what_is_missing_on_the_other_side_is_said(commands: Commands) -> None:
    async def why(supervisor: Supervisor) -> str:
        with pytest.raises(SupervisorError) as refused, anyio.fail_after(SECONDS):
            await supervisor.list()
        return f"{refused.value.error}: {refused.value}"

    way = command(commands)
    assert "no supervisor is running in" in await why(connect(command=way, timeout=SECONDS))
    assert "lost: " in await why(connect(command=[*way[:-1], "no-such-program"], timeout=SECONDS))
