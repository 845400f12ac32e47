"""The pytest fixture ``replay_cli``, also with claude-agent-sdk as the host of the replayed CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import recordings
from claude_wire.testing import GarbageLine, Kill, Recording, ReplayCLI

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a script is no executable file there")
pytest_plugins = ["claude_wire.testing.fixtures"]


def recording(name: str) -> Recording:
    return Recording.from_files(recordings.load(name).files, name)


# --- the fixture ------------------------------------------------------------------------------------------------------


def test_each_call_makes_a_stand_in_of_its_own(replay_cli: ReplayCLI) -> None:
    whole = recording("03_think_partial")
    plain, broken = replay_cli(whole), replay_cli(whole, writes="blocks", faults=[Kill(100)])
    assert plain != broken
    assert os.path.basename(plain) == os.path.basename(broken) == "claude"
    for path, expected in ((plain, whole.stdout), (broken, whole.stdout[:100])):
        assert subprocess.run([path], capture_output=True, timeout=60, check=False).stdout == expected


def test_plugin_is_all_that_a_project_needs(tmp_path: Path) -> None:
    recording("03_think_partial").save(tmp_path / "recordings" / "think")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["claude_wire.testing.fixtures"]\n')
    (tmp_path / "test_it.py").write_text(
        "import pathlib, subprocess\n"
        "def test_it(replay_cli):\n"
        "    path = replay_cli('recordings/think')\n"
        "    done = subprocess.run([path, '-p', 'hi'], capture_output=True, timeout=60)\n"
        "    assert done.stdout == pathlib.Path('recordings/think/stdout.ndjson').read_bytes()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout
    assert b"1 passed" in done.stdout


# --- claude-agent-sdk, as it is ---------------------------------------------------------------------------------------


@pytest.fixture
def sdk() -> Any:
    return pytest.importorskip("claude_agent_sdk")


def expected(played: Recording, sdk: Any) -> list[Any]:
    """Parse the recorded output with the SDK. Return the messages that the SDK passes to its user."""
    parser = pytest.importorskip("claude_agent_sdk._internal.message_parser")
    plain = [json.loads(step.data) for step in played.steps if step.direction == "out" and step.data.endswith(b"\n")]
    shown = [m for m in plain if not m["type"].startswith("control_") and not m.get("sdk_host_only")]
    return [message for message in map(parser.parse_message, shown) if message is not None]


def run(main: Any, *args: Any) -> Any:
    async def bounded() -> Any:
        with anyio.fail_after(60):
            return await main(*args)

    return anyio.run(bounded)


#: Sessions with and without prompts, an initialize request, partial messages, retries, tools and subagents.
SESSIONS = [
    "01_blocks_bidi",
    "01_simple_bidi_init",
    "02_long_partial",
    "04_tools_bypass_partial",
    "10_unicode",
    "12_multi_noreplay",
    "12_state_env",
    "13_struct_bidi",
    "15_subagent_partial",
    "16_compact_partial_noinit",
    "18_monitor",
]


@pytest.mark.parametrize("name", SESSIONS)
def test_query_gives_the_recorded_messages(name: str, sdk: Any, replay_cli: ReplayCLI) -> None:
    played = recording(name)

    async def main() -> list[Any]:
        options = sdk.ClaudeAgentOptions(cli_path=replay_cli(played))
        return [message async for message in sdk.query(prompt="hi", options=options)]

    assert run(main) == expected(played, sdk)


def test_query_with_a_stream_of_prompts_gives_the_recorded_messages(sdk: Any, replay_cli: ReplayCLI) -> None:
    played = recording("12_multi_noreplay")

    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for text in ("one", "two", "three", "four"):
            yield {"type": "user", "message": {"role": "user", "content": text}}

    async def main() -> list[Any]:
        options = sdk.ClaudeAgentOptions(cli_path=replay_cli(played))
        return [message async for message in sdk.query(prompt=prompts(), options=options)]

    assert run(main) == expected(played, sdk)


def test_query_raises_for_a_recorded_failure(sdk: Any, replay_cli: ReplayCLI) -> None:
    played = recording("09_max_turns")
    messages: list[Any] = []

    async def main() -> None:
        options = sdk.ClaudeAgentOptions(cli_path=replay_cli(played))
        async for message in sdk.query(prompt="hi", options=options):
            messages.append(message)

    with pytest.raises(sdk.ClaudeSDKError, match="maximum number of turns"):
        run(main)
    assert messages == expected(played, sdk)


def test_fault_is_what_the_sdk_sees(sdk: Any, replay_cli: ReplayCLI) -> None:
    played = recording("03_think_partial")
    messages: list[Any] = []

    async def main() -> None:
        options = sdk.ClaudeAgentOptions(cli_path=replay_cli(played, faults=[GarbageLine(3, b"{not JSON}")]))
        async for message in sdk.query(prompt="hi", options=options):
            messages.append(message)

    with pytest.raises(Exception, match="JSON"):
        run(main)
    assert messages == expected(played, sdk)[:2]


def three_prompts(whole: Recording) -> Recording:
    """Cut a recording before its fourth prompt."""
    prompts = [index for index, step in enumerate(whole.steps) if step.data.startswith(b'{"type": "user"')]
    steps = whole.steps[: prompts[3]]
    streams = {"stdout.ndjson": "out", "stdin.ndjson": "in"}
    return Recording.from_files(
        {
            file: b"".join(step.data for step in steps if step.direction == direction)
            for file, direction in streams.items()
        }
    )


def test_client_goes_through_a_recorded_session(sdk: Any, replay_cli: ReplayCLI) -> None:
    played = three_prompts(recording("17_sdk_client_full"))
    asked: list[str] = []
    hooked: list[str] = []

    async def may(name: str, arguments: dict[str, Any], context: Any) -> Any:
        asked.append(arguments["command"])
        if "deny" in arguments["command"]:
            return sdk.PermissionResultDeny(message="no")
        return sdk.PermissionResultAllow()

    async def hook(event: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        hooked.append(event["hook_event_name"])
        return {}

    @sdk.tool("add", "Add", {"a": float, "b": float})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "3"}]}

    def hooks(*events: str) -> dict[str, list[Any]]:
        return {event: [sdk.HookMatcher(hooks=[hook])] for event in events}

    async def main() -> list[Any]:
        options = sdk.ClaudeAgentOptions(
            cli_path=replay_cli(played),
            can_use_tool=may,
            # The SDK numbers the callbacks in this order, which gives them the recorded ids.
            hooks=hooks("PreToolUse", "Stop", "UserPromptSubmit"),
            mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=[add])},
            max_buffer_size=100_000_000,
        )
        messages: list[Any] = []
        async with sdk.ClaudeSDKClient(options) as client:
            await client.query("first")
            messages += [message async for message in client.receive_response()]
            await client.query("second")
            messages += [message async for message in client.receive_response()]
            await client.set_permission_mode("acceptEdits")
            await client.set_model("claude-haiku-4-5-20251001")
            await client.query("third")
            await client.interrupt()
            messages += [message async for message in client.receive_response()]
            assert (await client.get_mcp_status())["mcpServers"]
        return messages

    messages = run(main)
    whole = expected(played, sdk)
    assert messages == whole[: len(messages)]
    assert [type(message).__name__ for message in messages].count("ResultMessage") == 3
    assert asked == ["touch ok", "touch deny"]
    assert set(hooked) == {"PreToolUse", "Stop", "UserPromptSubmit"}
