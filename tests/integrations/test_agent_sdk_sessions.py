"""Queries, clients and callbacks of claude-agent-sdk work over WireTransport as over the SDK's own transport."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import json
import pathlib
import re
import sys
import types
import warnings
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    Transport,
    create_sdk_mcp_server,
    query,
    tool,
)
from claude_agent_sdk._internal import session_resume
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from async_backends import DEADLINE
from claude_wire.integrations import agent_sdk
from claude_wire.integrations.agent_sdk import SUPPORTED, TESTED, WireProcessError, WireTransport
from sdk_cli import MARKS, ONE_TURN, allow, ask, is_alive, read, run_python, texts_of, until

pytestmark = MARKS


async def test_a_query_gives_what_it_gives_with_the_transport_of_the_sdk(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN))
    theirs = [message async for message in query(prompt="hi", options=options)]
    ours = [message async for message in ask(options)]
    assert ours == theirs
    assert len(ours) == 3


async def test_a_query_with_a_stream_of_prompts(cli: Callable[..., str]) -> None:
    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for text in "one", "two":
            yield {"type": "user", "message": {"role": "user", "content": text}}

    options = ClaudeAgentOptions(
        cli_path=cli("while (message := prompt()): init(); assistant(message['message']['content']); result()")
    )
    transport = WireTransport(prompts(), options)
    assert await texts_of(query(prompt=prompts(), options=options, transport=transport)) == [
        "one",
        "done",
        "two",
        "done",
    ]
    assert not transport.is_ready()
    assert transport.process is None


async def test_a_client_with_turns_and_control_requests(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli("while (message := prompt()): init(); assistant(message['message']['content']); result()")
    )
    async with ClaudeSDKClient(options, transport=WireTransport(None, options)) as client:
        for text in "one", "two":
            await client.query(text)
            assert await texts_of(client.receive_response()) == [text, "done"]
            await client.set_model("other")
        await client.interrupt()


async def test_a_client_connects_again(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("raw(b'bad\\n');" + ONE_TURN))
    transport = WireTransport(None, options)
    client = ClaudeSDKClient(options, transport=transport)
    pids = []
    for _ in range(2):
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
        assert transport.process is not None
        pids.append(transport.process.pid)
        assert await texts_of(client.receive_response()) == ["hello", "done"]
        assert transport.invalid_lines == 1
        await client.disconnect()
        assert not is_alive(pids[-1])
    assert pids[0] != pids[1]


async def test_a_transport_whose_cli_has_failed_connects_again_after_closing(
    cli: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    failed = tmp_path / "failed"
    script = f"""
        if not os.path.exists({str(failed)!r}):
            open({str(failed)!r}, "w").close()
            sys.exit(4)
        hear(); init(); result(); hear()
    """
    transport = WireTransport(None, ClaudeAgentOptions(cli_path=cli(script)))
    await transport.connect()
    with pytest.raises(WireProcessError) as caught:
        await read(transport)
    error = weakref.ref(caught.value)
    await transport.close()
    del caught
    gc.collect()
    assert error() is None  # the transport keeps no reference to the error of the failed connection
    await transport.connect()
    await transport.write("{}\n")
    await transport.end_input()
    assert [message["type"] for message in await read(transport)] == ["system", "result"]
    await transport.close()


async def test_permission_prompts_hooks_and_tools_of_the_host(cli: Callable[..., str]) -> None:
    asked: list[Any] = []

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> PermissionResultAllow:
        asked.append((name, given))
        return PermissionResultAllow()

    async def hook(given: Any, tool_use_id: str | None, context: Any) -> Any:
        asked.append(given)
        return {"continue_": True}

    @tool("add", "adds", {"a": int})
    async def add(given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given)
        return {"content": [{"type": "text", "text": "3"}]}

    script = """
        def mcp(method, params):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = ask({"subtype": "mcp_message", "server_name": "calc", "message": message})
            return answer["response"]["mcp_response"]

        request = hear()
        hooks = request["request"]["hooks"]
        answer(request)
        prompt()
        init()
        client = {"name": "c", "version": "1"}
        mcp("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        said = [
            ask({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"a": 1}})["response"]["behavior"],
            ask({"subtype": "hook_callback", "callback_id": hooks["PreToolUse"][0]["hookCallbackIds"][0],
                 "input": {"b": 2}})["response"]["continue"],
            mcp("tools/call", {"name": "add", "arguments": {"a": 1}})["result"]["content"][0]["text"],
            "--permission-prompt-tool" in sys.argv,
        ]
        assistant(repr(said))
        result()
        hear()
    """
    options = ClaudeAgentOptions(
        cli_path=cli(script),
        can_use_tool=can_use_tool,
        hooks={"PreToolUse": [HookMatcher(hooks=[hook])]},
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
    )
    assert await texts_of(ask(options)) == ["['allow', True, '3', True]", "done"]
    assert asked == [("Bash", {"a": 1}), {"b": 2}, {"a": 1}]


async def test_a_shadowed_permission_callback_is_warned_of_once(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow, permission_mode="bypassPermissions")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert await texts_of(ask(options)) == ["hello", "done"]
    shadowed = [warning for warning in caught if issubclass(warning.category, sdk.CanUseToolShadowedWarning)]
    assert len(shadowed) == 1


def test_the_prompt_may_be_left_out_and_so_may_the_options() -> None:
    assert WireTransport()._options == ClaudeAgentOptions()


def test_options_that_contradict_each_other_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="can_use_tool callback cannot be used with permission_prompt_tool_name"):
        WireTransport("", ClaudeAgentOptions(can_use_tool=allow, permission_prompt_tool_name="stdio"))
    with pytest.raises(ValueError, match="session_store cannot be combined with enable_file_checkpointing"):
        WireTransport("", ClaudeAgentOptions(session_store=InMemorySessionStore(), enable_file_checkpointing=True))
    with pytest.raises(TypeError, match="options must be ClaudeAgentOptions, not dict"):
        WireTransport("", {})
    with pytest.raises(TypeError, match="on_invalid must be callable, not str"):
        WireTransport("", on_invalid="return")
    with pytest.raises(ValueError, match="overflow"):
        WireTransport("", overflow="drop")


@pytest.mark.parametrize(
    ("extra_args", "words"),
    [
        ({"permission-prompt-tool": "mcp__mine__ask"}, "with another permission_prompt_tool than 'stdio'"),
        ({"permission-prompt-tool": None}, "with another permission_prompt_tool than 'stdio'"),
        ({"permission-prompts": "none"}, "with the arguments '--permission-prompts', 'none'"),
    ],
)
async def test_a_permission_callback_that_extra_arguments_rule_out_is_refused_before_the_cli_starts(
    cli: Callable[..., str], extra_args: dict[str, str | None], words: str
) -> None:
    """The transport always adds ``--permission-prompt-tool`` for ``can_use_tool``, but extra_args can override it."""
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow, extra_args=extra_args)
    transport = WireTransport(None, options)
    with pytest.raises(ValueError, match=f"can_use_tool is never asked {words}"):
        await transport.connect()
    assert transport.process is None
    with pytest.raises(ValueError, match=f"can_use_tool is never asked {words}"):
        await ClaudeSDKClient(options, transport=WireTransport(None, options)).connect()
    alone = dataclasses.replace(options, can_use_tool=None)
    assert await texts_of(ask(alone)) == ["hello", "done"], "without a callback there is nothing to refuse"


async def test_the_options_are_not_changed(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli(ONE_TURN), can_use_tool=allow)
    before = dataclasses.replace(options)
    assert await texts_of(ask(options)) == ["hello", "done"]
    assert options == before


async def test_options_that_are_changed_before_connecting_count_as_with_the_sdk(cli: Callable[..., str]) -> None:
    script = """
        prompt()
        init()
        assistant(repr([os.getcwd(), [arg for arg in sys.argv if arg in ("--permission-prompt-tool", "late")]]))
        result()
        hear()
    """
    said = []
    for transport_of in (lambda options: None), (lambda options: WireTransport(None, options)):
        options = ClaudeAgentOptions(cli_path="/nowhere")
        client = ClaudeSDKClient(options, transport=transport_of(options))
        options.cli_path, options.cwd, options.model, options.can_use_tool = cli(script), "/", "late", allow
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
            said.append(await texts_of(client.receive_response()))
            await client.disconnect()
    theirs, ours = said
    assert ours == theirs == [repr(["/", ["late", "--permission-prompt-tool"]]), "done"]


# --- WireTransport starts the CLI as claude-agent-sdk does: the same command line, environment and working folder -----


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


# --- WireTransport uses internals of claude-agent-sdk. They are as it expects, or it reports which one is not ---------


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def parameters(function: Any) -> str:
    return ", ".join(inspect.signature(function).parameters)


def test_the_interface_is_the_one_that_it_was_made_for() -> None:
    assert Transport.__abstractmethods__ == {"connect", "write", "read_messages", "close", "is_ready", "end_input"}
    assert {name: parameters(getattr(Transport, name)) for name in Transport.__abstractmethods__} == {
        "connect": "self",
        "write": "self, data",
        "read_messages": "self",
        "close": "self",
        "is_ready": "self",
        "end_input": "self",
    }
    assert parameters(query) == "prompt, options, transport"
    assert parameters(ClaudeSDKClient) == "options, transport"


def test_so_are_the_private_parts() -> None:
    base = SubprocessCLITransport
    assert parameters(base) == "prompt, options"
    assert (
        parameters(base._find_cli) == parameters(base._build_command) == parameters(base._derive_client_app) == "self"
    )
    assert inspect.iscoroutinefunction(base._derive_client_app)
    assert parameters(base._check_claude_version) == "self, data"
    assert not inspect.iscoroutinefunction(base._check_claude_version)
    assert parameters(base._reject_windows_batch_cli) == "cli_path"
    assert parameters(agent_sdk.materialize_resume_session) == "options"
    assert parameters(agent_sdk.apply_materialized_options) == "options, materialized"
    assert parameters(agent_sdk.validate_session_store_options) == "options"
    assert parameters(agent_sdk._get_projects_dir) == "env_override"
    assert parameters(agent_sdk._configure_can_use_tool) == "options"
    fields = {field.name for field in dataclasses.fields(session_resume.MaterializedResume)}
    assert fields == {"config_dir", "resume_session_id", "cleanup"}
    attributes = vars(base("", ClaudeAgentOptions()))
    assert {
        "_prompt",
        "_options",
        "_cli_path",
        "_cwd",
        "_ready",
        "_exit_error",
        "_version_checked",
    } <= attributes.keys()


def test_no_attribute_of_the_original_is_used_for_something_else() -> None:
    ours, theirs = vars(WireTransport("", ClaudeAgentOptions())), vars(SubprocessCLITransport("", ClaudeAgentOptions()))
    assert {name: type(ours[name]) for name in theirs} == {name: type(theirs[name]) for name in theirs}
    assert not {name for name in ours.keys() - theirs.keys() if hasattr(SubprocessCLITransport, name)}


def test_the_installed_version_is_supported() -> None:
    assert SUPPORTED[0] <= numbers(sdk.__version__) <= numbers(TESTED) < SUPPORTED[1]


def test_without_the_sdk_it_says_what_to_install() -> None:
    said = run_python("""
        import sys
        sys.modules["claude_agent_sdk"] = None
        try:
            import claude_wire.integrations.agent_sdk
        except ImportError as error:
            print(error.name, error)
    """)
    assert said.startswith("claude_agent_sdk claude_wire.integrations.agent_sdk needs claude-agent-sdk")
    assert 'pip install "claude-agent-sdk>=0.2' in said


def test_with_another_version_it_says_which_it_supports() -> None:
    versions = ["0.1.80", "0.2.180", "0.3.0", "1.0"]
    said = run_python(f"""
        import claude_agent_sdk
        for version in {versions}:
            claude_agent_sdk.__version__ = version
            try:
                import claude_wire.integrations.agent_sdk
            except ImportError as error:
                print(error)
    """)
    for version, line in zip(versions, said.splitlines(), strict=True):
        assert f"supports claude-agent-sdk >=0.2.181,<0.3; {version} is installed" in line


@pytest.mark.parametrize(
    ("module", "owner", "name"),
    [
        ("sessions", "module", "_get_projects_dir"),
        ("transport.subprocess_cli", "module.SubprocessCLITransport", "_reject_windows_batch_cli"),
    ],
)
def test_with_an_sdk_that_is_built_otherwise_it_says_so(module: str, owner: str, name: str) -> None:
    said = run_python(f"""
        import claude_agent_sdk._internal.{module} as module
        del {owner}.{name}
        try:
            import claude_wire.integrations.agent_sdk
        except ImportError as error:
            print(error)
    """)
    assert "whose internals differ" in said
    assert name in said


def test_the_package_does_not_import_it() -> None:
    assert "False" in run_python("import claude_wire, sys; print('claude_agent_sdk' in sys.modules)")
