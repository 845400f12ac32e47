"""WireTransport starts the CLI as claude-agent-sdk does: the same command line, environment and working folder."""

from __future__ import annotations

import json
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, InMemorySessionStore, Transport, create_sdk_mcp_server
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from claude_wire.integrations.agent_sdk import WireTransport
from sdk_cli import MARKS, allow, until

pytestmark = MARKS

DUMP = """
with open(os.environ["DUMP_TO"] + ".part", "w") as file:
    json.dump({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.getuid(),
               "stderr": os.stat(2).st_mode & 0o170000}, file)
os.rename(os.environ["DUMP_TO"] + ".part", os.environ["DUMP_TO"])
hear()
"""

SERVER = create_sdk_mcp_server("calc")

SAME: list[dict[str, Any]] = [
    {},
    {"model": "m", "max_turns": 3, "permission_mode": "plan", "allowed_tools": ["Bash(git *)"], "betas": ["b"]},
    {"system_prompt": {"type": "preset", "preset": "claude_code", "append": "p"}, "fallback_model": "f"},
    {"mcp_servers": {"calc": SERVER, "other": {"command": "c"}}, "strict_mcp_config": True},
    {"can_use_tool": allow},
    {"permission_prompt_tool_name": "mcp__x__y"},
    {"skills": ["a"], "plugins": [{"type": "local", "path": "/p"}]},
    {"settings": '{"a": 1}', "sandbox": {"enabled": True}, "add_dirs": ["/a"]},
    {"thinking": {"type": "enabled", "budget_tokens": 7}, "effort": "max", "extra_args": {"bare": None}},
    {"output_format": {"type": "json_schema", "schema": {}}, "include_partial_messages": True},
    {"resume": "name", "fork_session": True, "resume_session_at": "u", "resume_drops_turn": "v"},
    {"session_store": InMemorySessionStore()},
    {"enable_file_checkpointing": True},
    {"client_app": "app/1"},
    {"client_app": ""},
    {"stderr": print},
    {"cwd": "."},
    {"env": {"CLAUDE_CODE_ENTRYPOINT": "mine", "CLAUDE_AGENT_SDK_VERSION": "0", "CLAUDECODE": "1", "PWD": "/x"}},
    {"env": {"claude_code_sdk_reads_session_state": "0"}},
    {"env": {"CLAUDE_AGENT_SDK_CLIENT_APP": "", "CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP": "x", "EMPTY": ""}},
    {"env": {"TRACEPARENT": "mine"}},
]


#: Options, whether OpenTelemetry is installed, and the event loop. OpenTelemetry affects only ``env``.
STARTS = [
    *[(fields, False, "asyncio") for fields in SAME],
    *[(fields, True, "asyncio") for fields in SAME if not fields or "env" in fields],
    *[({}, tracing, "trio") for tracing in (False, True)],
]


def start_id(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(value) or "defaults"
    return value if isinstance(value, str) else "traced" if value else "untraced"


async def dump(transport: Transport, path: pathlib.Path) -> dict[str, Any]:
    """Start the stub CLI, and return the arguments, environment and folder that it reports."""
    await transport.connect()
    try:
        await until(path.exists)
    finally:
        await transport.close()
    found: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return found


@pytest.mark.parametrize(("fields", "tracing", "anyio_backend"), STARTS, ids=start_id)
async def test_the_cli_is_started_as_the_sdk_starts_it(
    fields: dict[str, Any],
    tracing: bool,
    cli: Callable[..., str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP", "outer")
    monkeypatch.setenv("TRACEPARENT", "stale")
    monkeypatch.setenv("TRACESTATE", "stale")
    propagate = types.SimpleNamespace(inject=lambda carrier: carrier.update(traceparent="fresh", baggage="b"))
    if tracing:
        monkeypatch.setitem(sys.modules, "opentelemetry", types.SimpleNamespace(propagate=propagate))
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", types.ModuleType("trace"))  # a tracing host imports it
    else:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dump"
    env = {**fields.get("env", {}), "DUMP_TO": str(path)}
    options = ClaudeAgentOptions(**{**fields, "cli_path": cli(DUMP), "env": env})
    # InternalClient.process_query of the SDK does the same before it makes its transport.
    theirs = await dump(SubprocessCLITransport("hi", sdk.types._configure_can_use_tool(options)), path)
    ours = await dump(WireTransport("hi", options), path)
    assert ours == theirs
    assert "CLAUDECODE" not in ours["env"] or "CLAUDECODE" in fields.get("env", {})
    assert ours["env"].get("BAGGAGE") == ("b" if tracing else None)


async def test_the_label_of_the_app_is_derived_as_the_sdk_derives_it(
    cli: Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def derived(self: Any) -> str:
        return "app/2"

    monkeypatch.setattr(SubprocessCLITransport, "_derive_client_app", derived)
    path = tmp_path / "dump"
    options = ClaudeAgentOptions(cli_path=cli(DUMP), env={"DUMP_TO": str(path)})
    ours = await dump(WireTransport("hi", options), path)
    assert ours["env"]["CLAUDE_AGENT_SDK_DERIVED_CLIENT_APP"] == "app/2"
    assert ours == await dump(SubprocessCLITransport("hi", options), path)


async def test_the_cli_is_looked_for_as_the_sdk_looks_for_it(
    cli: Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = cli(DUMP)
    monkeypatch.setattr(SubprocessCLITransport, "_find_cli", lambda self: found)
    path = tmp_path / "dump"
    assert (await dump(WireTransport("hi", ClaudeAgentOptions(env={"DUMP_TO": str(path)})), path))["argv"][0] == found
