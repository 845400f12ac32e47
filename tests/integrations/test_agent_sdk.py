"""WireTransport in the place of claude-agent-sdk's own transport: what must be the same is, and what must be better is.

The CLI of these tests is a small Python script. Whatever both transports do is done with each, and compared.
"""

from __future__ import annotations

import dataclasses
import gc
import inspect
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import time
import types
import uuid
import warnings
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    CLINotFoundError,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    ProcessError,
    ResultError,
    ResultMessage,
    Transport,
    create_sdk_mcp_server,
    project_key_for_directory,
    query,
    tool,
)
from claude_agent_sdk._internal import session_resume
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

import claude_wire
from async_backends import BACKENDS, Backend
from claude_wire.integrations import agent_sdk
from claude_wire.integrations.agent_sdk import SUPPORTED, WireProcessError, WireTransport
from claude_wire.native.budget import DEFAULT_BYTE_BUDGET

pytestmark = [
    pytest.mark.anyio,
    # The SDK drops generators of its own in mid-iteration, which trio warns of.
    pytest.mark.filterwarnings("ignore:Async generator 'claude_agent_sdk:ResourceWarning"),
    pytest.mark.skipif(sys.platform == "win32", reason="the CLI of these tests is a script with a shebang"),
]

#: Stands for a prompt or a token; no log may hold it.
SECRET = "sk-ant-hunter2"
#: Seconds after which a test that waits for something has failed.
DEADLINE = 60.0


@pytest.fixture(params=[pytest.param(backend, id=backend.id) for backend in BACKENDS])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    backend: Backend = request.param
    pytest.importorskip("uvloop" if backend.options.get("use_uvloop") else backend.name)
    return backend.name, backend.options


PRELUDE = '''
import json, os, signal, sys, time

def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def say(message):
    raw(json.dumps(message).encode() + b"\\n")

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def answer(request, response=None):
    say({"type": "control_response", "response": {
        "subtype": "success", "request_id": request["request_id"], "response": response or {}}})

def prompt():
    """The next prompt; control requests before it are answered. None at the end of the input."""
    while (message := hear()) is not None:
        if message["type"] == "control_request":
            answer(message)
        else:
            return message

def ask(request):
    say({"type": "control_request", "request_id": "ask", "request": request})
    while (message := hear())["type"] != "control_response":
        pass
    return message["response"]

def init(**more):
    say({"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.1.330", **more})

def assistant(text):
    say({"type": "assistant", "session_id": "s", "parent_tool_use_id": None,
         "message": {"role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}})

def result(**more):
    say({"type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1,
         "num_turns": 1, "session_id": "s", "result": "done", **more})
'''

ONE_TURN = "prompt(); init(); assistant('hello'); result(); hear()"


@pytest.fixture
def cli(tmp_path: pathlib.Path) -> Callable[..., str]:
    """Makes a CLI of a few lines of Python, and returns its path."""

    def make(script: str, name: str = "claude") -> str:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable} -S\n{PRELUDE}\n{textwrap.dedent(script)}\n")
        path.chmod(0o755)
        return str(path)

    return make


async def until(condition: Callable[[], Any]) -> None:
    with anyio.fail_after(DEADLINE):
        while not condition():
            await anyio.sleep(0.005)


async def texts_of(messages: AsyncIterator[Any]) -> list[Any]:
    """The texts of assistant messages, and the result's."""
    found: list[Any] = []
    with anyio.fail_after(DEADLINE):
        async for message in messages:
            if isinstance(message, AssistantMessage):
                found += [block.text for block in message.content]
            elif isinstance(message, ResultMessage):
                found.append(message.result)
    return found


def ask(options: ClaudeAgentOptions, prompt: str = "hi", **more: Any) -> AsyncIterator[Any]:
    return query(prompt=prompt, options=options, transport=WireTransport(prompt, options, **more))


async def read(transport: Transport) -> list[dict[str, Any]]:
    with anyio.fail_after(DEADLINE):
        return [message async for message in transport.read_messages()]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- What of the SDK it stands on -------------------------------------------------------------------------------------


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
    assert SUPPORTED[0] <= tuple(map(int, re.findall(r"\d+", sdk.__version__))) < SUPPORTED[1]


def run_python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


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
    assert "pip install 'claude-wire[agent-sdk]'" in said


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


def test_with_an_sdk_that_is_built_otherwise_it_says_so() -> None:
    said = run_python("""
        import claude_agent_sdk._internal.sessions as sessions
        del sessions._get_projects_dir
        try:
            import claude_wire.integrations.agent_sdk
        except ImportError as error:
            print(error)
    """)
    assert "which is built otherwise" in said


def test_the_package_does_not_import_it() -> None:
    assert "False" in run_python("import claude_wire, sys; print('claude_agent_sdk' in sys.modules)")


# --- The same command line and environment ----------------------------------------------------------------------------

DUMP = """
with open(os.environ["DUMP_TO"] + ".part", "w") as file:
    json.dump({"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.getuid(),
               "stderr": os.stat(2).st_mode & 0o170000}, file)
os.rename(os.environ["DUMP_TO"] + ".part", os.environ["DUMP_TO"])
hear()
"""

SERVER = create_sdk_mcp_server("calc")


async def allow(*args: Any) -> PermissionResultAllow:
    return PermissionResultAllow()


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


async def dump(transport: Transport, path: pathlib.Path) -> dict[str, Any]:
    """What the stub CLI says of how it was started."""
    await transport.connect()
    try:
        await until(path.exists)
    finally:
        await transport.close()
    found: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return found


@pytest.mark.parametrize("fields", SAME, ids=lambda fields: ",".join(fields) or "defaults")
@pytest.mark.parametrize("tracing", [False, True], ids=["", "traced"])
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
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
    else:
        monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "dump"
    env = {**fields.get("env", {}), "DUMP_TO": str(path)}
    options = ClaudeAgentOptions(**{**fields, "cli_path": cli(DUMP), "env": env})
    # As InternalClient.process_query does before it makes its transport.
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


# --- Sessions ---------------------------------------------------------------------------------------------------------


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
    assert error() is None  # nothing of what it has failed with is kept
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


# --- Nothing is lost --------------------------------------------------------------------------------------------------


async def test_a_host_that_blocks_its_loop_loses_nothing(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    done = tmp_path / "done"
    script = f"""
        prompt()
        init()
        for number in range(2000):
            assistant(str(number) + "x" * 500)
        result()
        open({str(done)!r}, "w").close()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    texts = []
    with anyio.fail_after(DEADLINE):
        async for message in ask(options):
            if isinstance(message, AssistantMessage):
                texts.append(message.content[0].text)
                if len(texts) == 1:
                    # The CLI writes all it has and ends although no loop runs; 1 MB does not fit into a pipe.
                    until_then = time.monotonic() + DEADLINE
                    while not done.exists():
                        assert time.monotonic() < until_then
                        time.sleep(0.01)
    assert texts == [str(number) + "x" * 500 for number in range(2000)]


async def test_lone_surrogates_are_kept_in_both_directions(cli: Callable[..., str]) -> None:
    script = """
        prompt()
        init()
        raw(b'{"type":"assistant","parent_tool_use_id":null,"session_id":"s","message":{"role":"assistant",'
            b'"model":"m","content":[{"type":"text","text":"cut \\\\ud83d"}]}}\\n')
        result(result=ascii(hear()["text"]))
        hear()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    transport = WireTransport(None, options)
    async with ClaudeSDKClient(options, transport=transport) as client:
        await client.query("hi")
        await transport.write('{"text": "é \ud83d"}\n')
        assert await texts_of(client.receive_response()) == ["cut \ud83d", ascii("é \ud83d")]


BAD_LINES = f"""
    prompt()
    init()
    raw(b"[SandboxDebug] {SECRET}\\n\\n")
    raw(b'{{"type": "assistant", "{SECRET}\\n')
    raw(b'{{"type": "assistant", "{SECRET}": "\\xff"}}\\n')
    assistant("hello")
    result()
    hear()
"""


async def test_bad_lines_are_skipped_and_told(cli: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    options = ClaudeAgentOptions(cli_path=cli(BAD_LINES))
    lines: list[claude_wire.InvalidLine] = []
    transport = WireTransport("hi", options, on_invalid=lines.append)
    with caplog.at_level(logging.DEBUG):
        assert await texts_of(query(prompt="hi", options=options, transport=transport)) == ["hello", "done"]
    assert [line.line_number for line in lines] == [3, 5, 6]
    assert all(SECRET.encode() in line.raw for line in lines)
    assert transport.invalid_lines == 3
    told = [record for record in caplog.records if record.name == "claude_wire" and record.levelname == "WARNING"]
    assert len(told) == 3
    assert SECRET not in caplog.text


BAD_LINE_OF_EACH_KIND: list[tuple[str, bytes, type[Exception] | None]] = [
    ("broken", b'{"type": "assistant", "mess', sdk.CLIJSONDecodeError),
    ("bad UTF-8", b'{"type": "keep_alive", "a": "\xff"}', UnicodeDecodeError),
    ("no object", b"[debug] [1]", None),
    ("NaN", b'{"type": "keep_alive", "a": NaN}', None),
    ("no double", b'{"type": "keep_alive", "a": 1e999}', None),
]


@pytest.mark.parametrize(("line", "error"), [pytest.param(*rest, id=name) for name, *rest in BAD_LINE_OF_EACH_KIND])
async def test_a_bad_line_may_end_the_session_of_the_sdk_but_not_ours(
    line: bytes, error: type[Exception] | None, cli: Callable[..., str]
) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli(f"prompt(); init(); raw({line!r} + bytes([10])); assistant('a'); result(); hear()")
    )
    lines: list[claude_wire.InvalidLine] = []
    assert await texts_of(ask(options, on_invalid=lines.append)) == ["a", "done"]
    assert [bad.raw for bad in lines] == [line]
    transport = SubprocessCLITransport("", options)
    await transport.connect()
    await transport.write('{"type": "user"}\n')
    await transport.end_input()
    if error is None:
        assert len(await read(transport)) >= 3
    else:
        with pytest.raises(error):
            await read(transport)
    await transport.close()


async def test_what_on_invalid_raises_ends_nothing(cli: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    def on_invalid(line: claude_wire.InvalidLine) -> None:
        raise ValueError(line.raw)

    options = ClaudeAgentOptions(cli_path=cli(BAD_LINES))
    assert await texts_of(ask(options, on_invalid=on_invalid)) == ["hello", "done"]
    assert "on_invalid raised ValueError" in caplog.text
    assert SECRET not in caplog.text


async def test_a_line_above_max_buffer_size_is_skipped(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); assistant('x' * 2000); assistant('short'); result(); hear()"
    lines: list[claude_wire.InvalidLine] = []
    options = ClaudeAgentOptions(cli_path=cli(script), max_buffer_size=1000)
    assert await texts_of(ask(options, on_invalid=lines.append)) == ["short", "done"]
    assert [(line.reason, line.length > 2000) for line in lines] == [("longer than max_line_bytes", True)]


async def test_a_line_far_above_the_limit_of_the_sdk_is_not(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); assistant('x' * 3_000_000); result(); hear()"))
    assert await texts_of(ask(options)) == ["x" * 3_000_000, "done"]


async def test_an_old_cli_is_warned_of_as_the_sdk_does(
    cli: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    script = "prompt(); init(claude_code_version=None); result(); hear()"
    options = ClaudeAgentOptions(cli_path=cli(script))
    await texts_of(query(prompt="hi", options=options))
    theirs = [(record.name, record.getMessage()) for record in caplog.records]
    caplog.clear()
    await texts_of(ask(options))
    assert [(record.name, record.getMessage()) for record in caplog.records] == theirs
    assert len(theirs) == 1


# --- Standard error ---------------------------------------------------------------------------------------------------

STDERR = (
    r"prompt(); sys.stderr.write('one  \n\n  two\nthr'); sys.stderr.flush(); init(); assistant('a'); result(); hear()"
)


async def test_the_stderr_callback_gets_what_it_gets_from_the_sdk(cli: Callable[..., str]) -> None:
    theirs: list[str] = []
    ours: list[str] = []
    path = cli(STDERR)
    assert await texts_of(query(prompt="hi", options=ClaudeAgentOptions(cli_path=path, stderr=theirs.append)))
    assert await texts_of(ask(ClaudeAgentOptions(cli_path=path, stderr=ours.append)))
    assert ours == theirs == ["one", "  two", "thr"]


async def test_what_the_stderr_callback_raises_ends_nothing(cli: Callable[..., str]) -> None:
    lines: list[str] = []

    def callback(line: str) -> None:
        lines.append(line)
        raise ValueError(line)

    assert await texts_of(ask(ClaudeAgentOptions(cli_path=cli(STDERR), stderr=callback))) == ["a", "done"]
    assert lines == ["one", "  two", "thr"]


async def test_without_a_callback_stderr_is_that_of_the_host(
    cli: Callable[..., str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert await texts_of(ask(ClaudeAgentOptions(cli_path=cli(STDERR)))) == ["a", "done"]
    assert capfd.readouterr().err == "one  \n\n  two\nthr"


# --- Errors -----------------------------------------------------------------------------------------------------------


async def raised_by(messages: AsyncIterator[Any]) -> tuple[list[Any], Exception]:
    """What came before the error, and the error."""
    found: list[Any] = []
    with pytest.raises(sdk.ClaudeSDKError) as caught, anyio.fail_after(DEADLINE):  # noqa: PT012 - a loop
        async for message in messages:
            found.append(message)
    return found, caught.value


async def test_an_exit_code_is_the_error_of_the_sdk(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); assistant('a'); result(); sys.stderr.write('why'); sys.stderr.flush(); sys.exit(3)"
    options = ClaudeAgentOptions(cli_path=cli(script), stderr=lambda line: None)
    before, theirs = await raised_by(query(prompt="hi", options=options))
    found, ours = await raised_by(ask(options))
    assert found == before
    assert isinstance(theirs, ProcessError)
    assert isinstance(ours, WireProcessError)
    assert str(ours) == str(theirs)
    assert (ours.exit_code, ours.stderr) == (theirs.exit_code, theirs.stderr) == (3, "Check stderr output for details")
    assert ours.stderr_tail == b"why"
    assert isinstance(ours.__cause__, claude_wire.ProcessError)
    assert "why" not in str(ours)


async def test_so_is_the_exit_code_after_an_error_result(cli: Callable[..., str]) -> None:
    script = "prompt(); init(); result(subtype='error_max_turns', is_error=True, errors=['too many']); sys.exit(1)"
    options = ClaudeAgentOptions(cli_path=cli(script))
    before, theirs = await raised_by(query(prompt="hi", options=options))
    found, ours = await raised_by(ask(options))
    assert found == before
    assert type(ours) is type(theirs) is ResultError
    assert str(ours) == str(theirs)
    assert vars(ours) == vars(theirs)


async def test_so_is_the_signal_that_ended_it(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); result(); os.kill(os.getpid(), signal.SIGKILL)"))
    _, theirs = await raised_by(query(prompt="hi", options=options))
    _, ours = await raised_by(ask(options))
    assert str(ours) == str(theirs)
    assert isinstance(ours, ProcessError)
    assert ours.exit_code == -9


@pytest.mark.parametrize(
    "cut", ["sys.exit(0)", 'raw(b\'{"type":"assistant","mess\'); sys.exit(0)'], ids=["turn", "line"]
)
async def test_output_that_ends_in_the_middle_is_an_error_even_with_exit_code_0(
    cut: str, cli: Callable[..., str]
) -> None:
    options = ClaudeAgentOptions(cli_path=cli(f"prompt(); init(); assistant('a'); {cut}"))
    # The SDK's own transport says nothing.
    assert await texts_of(query(prompt="hi", options=options)) == ["a"]
    found, error = await raised_by(ask(options))
    assert [type(message) for message in found] == [sdk.SystemMessage, AssistantMessage]
    assert isinstance(error, ProcessError)
    assert error.exit_code == 0
    assert "in the middle of a" in str(error)
    assert isinstance(error.__cause__, claude_wire.UnfinishedTurnError)


async def test_a_cli_that_ends_before_it_was_asked_fails_the_connection(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("sys.stderr.write('no'); sys.exit(1)"), stderr=lambda line: None)
    with pytest.raises(sdk.ClaudeSDKError), anyio.fail_after(DEADLINE):
        await ClaudeSDKClient(options, transport=WireTransport(None, options)).connect()


async def same_error(make: Callable[[], ClaudeAgentOptions]) -> Exception:
    """What connecting raises, if it is the same with both transports."""
    errors = []
    for transport in SubprocessCLITransport("", make()), WireTransport("", make()):
        with pytest.raises(CLIConnectionError) as caught:
            await transport.connect()
        errors.append(caught.value)
        assert not transport.is_ready()
        await transport.close()
    theirs, ours = errors
    assert type(ours) is type(theirs)
    assert str(ours).startswith(str(theirs))  # with uvloop the system's reason comes without the path
    return ours


async def test_a_cli_that_cannot_be_started(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "missing"
    error = await same_error(lambda: ClaudeAgentOptions(cli_path=missing))
    assert isinstance(error, CLINotFoundError)
    error = await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), cwd=missing))
    assert str(error) == f"Working directory does not exist: {missing}"
    (tmp_path / "file").write_text("")
    await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), cwd=tmp_path / "file"))
    await same_error(lambda: ClaudeAgentOptions(cli_path=tmp_path / "file"))
    await same_error(lambda: ClaudeAgentOptions(cli_path=cli(""), settings="{", sandbox={}))


async def test_there_is_no_cli(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    if os.path.exists("/usr/local/bin/claude"):
        pytest.skip("this machine has a CLI in /usr/local/bin")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(SubprocessCLITransport, "_find_bundled_cli", lambda self: None)
    assert isinstance(await same_error(ClaudeAgentOptions), CLINotFoundError)


async def test_reading_and_writing_without_a_connection(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("hear(); hear()"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        for _ in range(2):
            with pytest.raises(CLIConnectionError, match="Not connected"):
                await read(transport)
            with pytest.raises(CLIConnectionError, match="not ready for writing"):
                await transport.write("{}\n")
            await transport.end_input()
            assert not transport.is_ready()
            await transport.connect()
            assert transport.is_ready()
            await transport.connect()
            await transport.write("{}\n")
            await transport.close()
            await transport.close()


async def test_writing_after_the_end_of_the_input(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("hear()"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        await transport.connect()
        await transport.end_input()
        await transport.end_input()
        for _ in range(2):
            with pytest.raises(CLIConnectionError, match=r"^ProcessTransport is not ready for writing$"):
                await transport.write("{}\n")
            assert transport.is_ready()
        assert await read(transport) == []
        await transport.close()
        await transport.connect()
        await transport.write("{}\n")
        await transport.close()


async def test_writing_to_a_cli_that_has_ended(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("sys.exit(4)"))
    for transport in SubprocessCLITransport("", options), WireTransport("", options):
        await transport.connect()
        with pytest.raises(ProcessError) as caught:
            await read(transport)
        assert caught.value.exit_code == 4
        with pytest.raises(CLIConnectionError, match=re.escape("Cannot write to terminated process (exit code: 4)")):
            await transport.write("{}\n")
        await transport.close()


async def test_writing_to_a_cli_that_reads_no_more(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    closed = tmp_path / "closed"
    options = ClaudeAgentOptions(
        cli_path=cli(f"os.close(0); open({str(closed)!r}, 'w').close(); time.sleep({DEADLINE})")
    )
    transport = WireTransport("", options)
    await transport.connect()
    await until(closed.exists)
    with pytest.raises(CLIConnectionError, match="Failed to write to process stdin"):
        await transport.write("{}\n")
    assert not transport.is_ready()
    with pytest.raises(CLIConnectionError, match="not ready for writing"):
        await transport.write("{}\n")
    assert transport.process is not None
    os.kill(transport.process.pid, 9)
    await transport.close()


async def test_overflow_error_ends_the_session_with_an_error_of_the_sdk(cli: Callable[..., str]) -> None:
    script = "init()\nfor _ in range(1000): assistant('x' * 1000)\nresult(); hear()"
    transport = WireTransport("", ClaudeAgentOptions(cli_path=cli(script)), overflow="error")
    claude_wire.set_byte_budget(100_000)
    try:
        await transport.connect()
        process = transport.process
        assert process is not None
        await until(lambda: process.drain_stats is not None and process.drain_stats.pauses)
        with pytest.raises(CLIConnectionError, match="more than 100000 bytes wait") as caught:
            await read(transport)
        assert isinstance(caught.value.__cause__, claude_wire.ByteBudgetError)
        with pytest.raises(CLIConnectionError, match="Cannot write to process that exited with error"):
            await transport.write("{}\n")
    finally:
        claude_wire.set_byte_budget(DEFAULT_BYTE_BUDGET)
        await transport.close()


async def test_spilled_output_is_delivered(cli: Callable[..., str], tmp_path: pathlib.Path) -> None:
    done = tmp_path / "done"
    script = f"""
        init()
        for number in range(1000):
            assistant(str(number) + "x" * 1000)
        result()
        open({str(done)!r}, "w").close()
        hear()
    """
    options = ClaudeAgentOptions(cli_path=cli(script))
    transport = WireTransport("", options, overflow="spill", spill_limit=10_000_000)
    claude_wire.set_byte_budget(100_000)
    try:
        await transport.connect()
        process = transport.process
        assert process is not None
        await until(done.exists)  # it had not to wait, above the budget though it is
        await transport.end_input()
        messages = await read(transport)
        assert process.drain_stats is not None
        assert process.drain_stats.bytes_spilled > 0
    finally:
        claude_wire.set_byte_budget(DEFAULT_BYTE_BUDGET)
        await transport.close()
    texts = [message["message"]["content"][0]["text"] for message in messages if message["type"] == "assistant"]
    assert texts == [str(number) + "x" * 1000 for number in range(1000)]


# --- Closing ----------------------------------------------------------------------------------------------------------


async def test_leaving_a_query_early_ends_the_cli(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(
        cli_path=cli("prompt(); init()\nwhile True: say({'type': 'keep_alive'}); time.sleep(0.001)")
    )
    transport = WireTransport("hi", options)
    messages = query(prompt="hi", options=options, transport=transport)
    with anyio.fail_after(DEADLINE):
        await messages.__anext__()
        assert transport.process is not None
        exchange = transport.process._exchange
        exchange._settings = exchange._settings._replace(grace=0.3)
        pid = transport.process.pid
        assert is_alive(pid)
        await messages.aclose()
    # The SDK leaves its inner generators to the loop, which closes them soon.
    await until(lambda: transport.process is None)
    assert not is_alive(pid)


async def test_a_cancelled_query_ends_the_cli(cli: Callable[..., str]) -> None:
    options = ClaudeAgentOptions(cli_path=cli("prompt(); init(); hear(); hear()"))
    transport = WireTransport(None, options)
    pids: list[int] = []

    async def session() -> None:
        async with ClaudeSDKClient(options, transport=transport) as client:
            await client.query("hi")
            assert transport.process is not None
            pids.append(transport.process.pid)
            async for _ in client.receive_messages():
                pass

    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(session)
            await until(lambda: pids)
            group.cancel_scope.cancel()
    assert not is_alive(pids[0])
    assert transport.process is None


async def test_two_tasks_may_close_at_once(cli: Callable[..., str]) -> None:
    transport = WireTransport("", ClaudeAgentOptions(cli_path=cli("hear()")))
    await transport.connect()
    assert transport.process is not None
    pid = transport.process.pid
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as group:
            group.start_soon(transport.close)
            group.start_soon(transport.close)
    assert not is_alive(pid)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_closing_is_not_cut_short_by_a_cancellation_of_asyncio(
    cli: Callable[..., str], tmp_path: pathlib.Path, home: pathlib.Path
) -> None:
    import asyncio

    store, _ = await stored(home)
    started = tmp_path / "started"
    script = f"open({str(started)!r}, 'w').close()\nwhile True: time.sleep(1)"  # ends at SIGTERM only
    options = ClaudeAgentOptions(cli_path=cli(script), cwd=home, session_store=store, resume=SESSION_ID)
    transport = WireTransport("", options)
    await transport.connect()
    await until(started.exists)
    assert transport.process is not None
    exchange = transport.process._exchange
    exchange._settings = exchange._settings._replace(grace=0.3)
    pid = transport.process.pid
    assert left_over(home)
    closing = asyncio.ensure_future(transport.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, DEADLINE)
    assert not is_alive(pid)
    assert not left_over(home)
    assert transport.process is None


# --- Sessions from a store --------------------------------------------------------------------------------------------

SESSION_ID = "4b18c744-4cbf-47f5-8390-8f10b55cac4e"

RESUMED = """
    import glob
    folder = os.environ["CLAUDE_CONFIG_DIR"]
    [path] = glob.glob(folder + "/projects/*/*.jsonl")
    prompt()
    init()
    assistant(json.dumps([folder, open(path).read(), [arg for arg in sys.argv if arg.startswith("--resume")]]))
    say({"type": "transcript_mirror", "filePath": path, "entries": [{"type": "user", "uuid": "new"}]})
    inner = path.removesuffix(".jsonl") + "/subagents/agent-1.jsonl"
    say({"type": "transcript_mirror", "filePath": inner, "entries": [{"type": "user", "uuid": "sub"}]})
    result()
    hear()
"""


async def stored(tmp_path: pathlib.Path) -> tuple[InMemorySessionStore, dict[str, str]]:
    store = InMemorySessionStore()
    key = {"project_key": project_key_for_directory(tmp_path), "session_id": SESSION_ID}
    await store.append(key, [{"type": "user", "uuid": str(uuid.uuid4())}])
    return store, key


@pytest.fixture
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A home without credentials or settings, so that none are copied; and a place for temporary files, to look at."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def left_over(home: pathlib.Path) -> list[pathlib.Path]:
    return list(home.glob("claude-resume-*"))


@pytest.mark.parametrize("how", [{"resume": SESSION_ID}, {"continue_conversation": True}], ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["default", "own"])
async def test_a_session_is_resumed_from_a_store_and_written_back(
    how: dict[str, Any], own: bool, cli: Callable[..., str], home: pathlib.Path
) -> None:
    found: list[Any] = []
    for transport_of in (lambda options: None), (lambda options: WireTransport("hi", options)):
        store, key = await stored(home)
        options = ClaudeAgentOptions(
            cli_path=cli(RESUMED),
            cwd=home,
            session_store=store,
            env={"CLAUDE_CONFIG_DIR": str(home / "config")} if own else {},
            **how,
        )
        texts = await texts_of(query(prompt="hi", options=options, transport=transport_of(options)))
        folder, content, argv = json.loads(texts[0])
        assert argv == [f"--resume={SESSION_ID}"]
        assert folder.startswith(str(home / "claude-resume-"))
        assert not left_over(home)
        subkey = {**key, "subpath": "subagents/agent-1"}
        found.append((len(content.splitlines()), [entry["uuid"] for entry in store.get_entries(key)[1:]]))
        assert [entry["uuid"] for entry in store.get_entries(subkey)] == ["sub"]
        assert store.size == 1
    assert found == [(1, ["new"])] * 2


async def test_mirrors_that_lead_out_of_their_folder_are_left_as_they_are(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    """A path is changed if it is one of the copied session; any other is the SDK's to refuse."""
    script = """
        projects = os.environ["CLAUDE_CONFIG_DIR"] + "/projects"
        for path in "/p/s.jsonl", "/../s.jsonl", "/p/../../s.jsonl", "/..":
            say({"type": "transcript_mirror", "filePath": projects + path, "entries": [projects + path]})
        result()
        hear()
    """
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli(script), cwd=home, session_store=store, resume=SESSION_ID)
    transport = WireTransport("hi", options)
    await transport.connect()
    await transport.end_input()
    inside, *outside = [message for message in await read(transport) if message["type"] == "transcript_mirror"]
    assert inside["filePath"] == str(home / ".claude" / "projects" / "p" / "s.jsonl")
    assert len(outside) == 3
    for message in outside:
        assert message["filePath"] == message["entries"][0]
    await transport.close()


async def test_a_new_session_is_mirrored_to_a_store(cli: Callable[..., str], home: pathlib.Path) -> None:
    path = home / ".claude" / "projects" / "p" / f"{SESSION_ID}.jsonl"
    script = f"""
        prompt()
        init()
        say({{"type": "transcript_mirror", "filePath": {str(path)!r}, "entries": [{{"type": "user", "uuid": "a"}}]}})
        result()
        hear()
    """
    store = InMemorySessionStore()
    options = ClaudeAgentOptions(cli_path=cli(script), session_store=store)
    assert await texts_of(ask(options)) == ["done"]
    assert [entry["uuid"] for entry in store.get_entries({"project_key": "p", "session_id": SESSION_ID})] == ["a"]


async def test_a_client_resumes_anew_each_time_it_connects(cli: Callable[..., str], home: pathlib.Path) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli(RESUMED), cwd=home, session_store=store, resume=SESSION_ID)
    client = ClaudeSDKClient(options, transport=WireTransport(None, options))
    for entries in 1, 2:
        with anyio.fail_after(DEADLINE):
            await client.connect("hi")
        (said, done) = await texts_of(client.receive_response())
        assert (len(json.loads(said)[1].splitlines()), done) == (entries, "done")
        assert left_over(home)
        await client.disconnect()
        assert not left_over(home)


async def test_a_session_that_the_store_does_not_have_is_left_to_the_cli(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    script = "prompt(); init(); assistant(repr([a for a in sys.argv if a.startswith('--resume')])); result(); hear()"
    options = ClaudeAgentOptions(cli_path=cli(script), session_store=InMemorySessionStore(), resume=SESSION_ID)
    assert await texts_of(ask(options)) == [repr([f"--resume={SESSION_ID}"]), "done"]


async def test_the_copy_of_a_session_is_removed_when_the_cli_cannot_be_started(
    cli: Callable[..., str], home: pathlib.Path
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(
        cli_path=home / "missing", cwd=home, session_store=store, resume=SESSION_ID, settings="{}"
    )
    with pytest.raises(CLINotFoundError):
        await WireTransport("", options).connect()
    assert not left_over(home)
    options = dataclasses.replace(options, plugins=[{"type": "other"}])
    with pytest.raises(ValueError, match="Unsupported plugin type"):
        await WireTransport("", options).connect()
    assert not left_over(home)


async def test_the_copy_of_a_session_is_removed_when_starting_is_cancelled(
    cli: Callable[..., str], home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(cli_path=cli("hear()"), cwd=home, session_store=store, resume=SESSION_ID)
    seen: list[bool] = []

    async def derive(self: Any) -> None:
        seen.append(bool(left_over(home)))
        await anyio.sleep(DEADLINE)

    monkeypatch.setattr(SubprocessCLITransport, "_derive_client_app", derive)
    transport = WireTransport("", options)
    async with anyio.create_task_group() as group:
        group.start_soon(transport.connect)
        await until(lambda: seen)
        group.cancel_scope.cancel()
    assert seen == [True]
    assert not left_over(home)
    assert transport.process is None


@pytest.mark.parametrize("stderr", [None, print], ids=["", "stderr"])
async def test_the_copy_of_a_session_is_removed_when_the_sdk_forgets_to_close(
    cli: Callable[..., str],
    home: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    stderr: Callable[[str], None] | None,
) -> None:
    store, _ = await stored(home)
    options = ClaudeAgentOptions(
        cli_path=cli("hear()"), cwd=home, session_store=store, resume=SESSION_ID, stderr=stderr
    )
    # It is read after connecting, before anything would be closed.
    monkeypatch.setenv("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "no number")
    pids = []

    async def ask_once(transport: Transport) -> None:
        await texts_of(query(prompt="hi", options=options, transport=transport))

    async def connect(transport: Transport) -> None:
        await ClaudeSDKClient(options, transport=transport).connect()

    for use in ask_once, connect:
        transport = WireTransport(None, options)
        with pytest.raises(ValueError, match="no number"):
            await use(transport)
        assert left_over(home)
        assert transport.process is not None
        pids.append(transport.process.pid)
        del transport
        await until(lambda: not (gc.collect(), left_over(home))[1])
    await until(lambda: not any(map(is_alive, pids)))


def test_the_copy_of_a_session_is_removed_when_the_host_ends_without_closing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "claude").write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
    (tmp_path / "claude").chmod(0o755)
    said = run_python(f"""
        import os, pathlib, sys, tempfile, warnings
        import anyio
        from claude_agent_sdk import ClaudeAgentOptions, InMemorySessionStore, project_key_for_directory
        from claude_wire.integrations.agent_sdk import WireTransport

        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, forking beside threads has one
        home = pathlib.Path({str(tmp_path)!r})
        os.environ["HOME"] = tempfile.tempdir = str(home)
        os.environ.pop("CLAUDE_CONFIG_DIR", None)
        transports = []

        async def main():
            store = InMemorySessionStore()
            key = {{"project_key": project_key_for_directory(home), "session_id": {SESSION_ID!r}}}
            await store.append(key, [{{"type": "user", "uuid": "u"}}])
            options = ClaudeAgentOptions(
                cli_path=home / "claude", cwd=home, session_store=store, resume={SESSION_ID!r})
            transports.append(WireTransport(None, options))
            await transports[0].connect()
            child = os.fork()
            if child == 0:
                sys.exit(0)  # with the finalizers of its parent
            os.waitpid(child, 0)

        anyio.run(main)
        print(len(list(home.glob("claude-resume-*"))))
    """)
    assert said == "1\n"
    assert not left_over(tmp_path)


async def test_a_store_that_fails_starts_nothing(cli: Callable[..., str], home: pathlib.Path) -> None:
    class Failing(InMemorySessionStore):
        async def load(self, key: Any) -> Any:
            raise OSError("no store")

    options = ClaudeAgentOptions(cli_path=cli("hear()"), session_store=Failing(), resume=SESSION_ID)
    transport = WireTransport("", options)
    with pytest.raises(RuntimeError, match="no store"):
        await transport.connect()
    assert transport.process is None
    assert not left_over(home)
