"""An agent that replaces the recorded CLI: for the recorded input it writes the same kinds of messages as the CLI."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from agent_host import hosted, kind
from async_backends import ASYNCIO, TRIO, Backend
from claude_wire.agent import Agent, AgentOptions, Turn
from each import each
from folders import DATA
from recordings import load, names
from virtual_time import VirtualBackend, every_virtual_backend

#: A scripted command with this prefix fails. Other commands print the words that they echo.
FAILS = "exit "


async def fake_model(turn: Turn) -> None:
    """Answer a prompt: play a ``SCRIPT`` of messages, stream slowly for ``SLOW``, or repeat the prompt."""
    text = turn.text
    if text.startswith("SCRIPT "):
        for message in json.loads(text[7:]):
            await _message(turn, message)
    elif text.startswith("SLOW"):
        for _ in range(300):
            await turn.stream("slow ")
            await anyio.sleep(0.1)
    else:
        answer = f"Hello from the fake API. You said: {text}"
        third = -(-len(answer) // 3)
        for start in range(0, len(answer), third):
            await turn.stream(answer[start : start + third])


async def _message(turn: Turn, blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        if block["type"] == "text":
            await turn.say(block["text"])
        else:
            await turn.run_tool(block["name"], block["input"], None if block["name"].startswith("mcp__") else _tool)


async def _tool(given: dict[str, Any]) -> str:
    command = given.get("command", "")
    if "seq 1 30" in command:
        await anyio.sleep(30)
    if command.startswith(FAILS):
        raise ValueError("Exit code 4")
    return "made"


STDERR: dict[str, str] = json.loads((DATA / "agent" / "stderr.json").read_text())
BAD = sorted(STDERR)
#: Kinds of messages in which the CLI reports on itself. An agent never writes them.
LEFT_OUT = ("system/status", "system/thinking_tokens", "system/informational", "system/background_tasks_changed")
#: Recordings whose input ends in mid-turn -> the output message after which the host closes the input.
ENDS_BEHIND = {"08_eof_midturn": "stream_event/content_block_start", "05_perm_eof": "control_request/can_use_tool"}
#: Recordings that the test plays line by line, in the recorded order of input and output.
PLAYED = [
    name for name in names() if name.startswith(("12_multi", "05_perm", "08_", "12_state")) and name != "08_control"
] + ["16_interrupt_bash", "07_mcp"]


def options_of(name: str) -> tuple[AgentOptions, dict[str, Any]]:
    command = json.loads(load(name).files["cmd.json"])
    return AgentOptions.parse(command["argv"], command["env"]), command["env"]


@pytest.mark.parametrize(
    ("size", "backend"), [(0, ASYNCIO), (1, ASYNCIO), (0, TRIO)], ids=["whole", "bytes", "whole on trio"]
)
@each("name", BAD, str)
def test_bad_input_ends_as_recorded(name: str, size: int, backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    recording = load(name)

    async def main() -> tuple[int | None, int]:
        async with hosted(Agent(fake_model, options=options_of(name)[0])) as host:
            data = recording.stdin
            for start in range(0, len(data), size or len(data) or 1):
                await host.send_bytes(data[start : start + (size or len(data))])
        return host.code, len(host.of("result"))

    code, results = backend.run(main)
    assert code == json.loads(recording.files["exit.json"])["rc"]
    assert results == recording.stdout.count(b'"type":"result"')
    assert (capsys.readouterr().err.splitlines() or [""])[0] == STDERR[name]


def expected(name: str) -> list[str]:
    return merged(kind(json.loads(line)) for line in load(name).stdout.splitlines())


def merged(found: Any) -> list[str]:
    """Return the kinds of messages without LEFT_OUT. Consecutive deltas count as one."""
    kept: list[str] = []
    for one in found:
        if one.startswith(LEFT_OUT) or (kept and one == kept[-1] == "stream_event/content_block_delta"):
            continue
        kept.append(one)
    return kept


@every_virtual_backend
@pytest.mark.parametrize("name", PLAYED)
def test_an_agent_says_what_the_cli_said_in_the_order_of_the_cli(
    name: str, virtual: VirtualBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = load(name)
    options, env = options_of(name)
    for variable, value in env.items():
        if "STATE" in variable:
            monkeypatch.setenv(variable, value)
    outputs = iter(recording.stdout.split(b"\n"))
    inputs = iter(recording.stdin.split(b"\n"))
    script: list[tuple[str, Any]] = []
    for line in recording.files["order.jsonl"].splitlines():
        _, way, size = json.loads(line)
        while size >= 0:  # one record of the recorder may hold several lines
            text = next(inputs if way == "in" else outputs, b"")
            size -= len(text) + 1 if way == "in" and text else size + 1
            if text:
                script.append((way, json.loads(text)))

    async def main() -> tuple[int | None, list[str]]:
        async with hosted(Agent(fake_model, options=options)) as host:
            seen: dict[str, int] = {}
            ids: dict[str, str] = {}
            ended = False
            pending: list[dict[str, Any]] = []
            for way, message in script:
                if way == "in":
                    if message["type"] == "control_response":
                        message["response"]["request_id"] = ids.get(message["response"]["request_id"], "?")
                    pending.append(message)
                    continue
                if pending:
                    await host.tell(*pending)
                    pending = []
                name_of = kind(message)
                if name_of.startswith((*LEFT_OUT, "stream_event/content_block_delta")) or ended:
                    continue
                seen[name_of] = seen.get(name_of, 0) + 1
                if name == "08_sigint" and name_of == "assistant":
                    host.service.interrupt()
                ours = await host.until(name_of, seen[name_of])
                if message["type"] == "control_request":
                    ids[message["request_id"]] = ours["request_id"]
                if name_of == "stream_event/content_block_start":
                    await anyio.sleep(0.95)  # the recording host let the CLI write text for about a second
                if name_of == ENDS_BEHIND.get(name):
                    host.end()
                    ended = True
        return host.code, merged(host.kinds)

    code, found = virtual.run(main)
    assert found == expected(name)
    assert code == json.loads(recording.files["exit.json"])["rc"]
