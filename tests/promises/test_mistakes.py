"""Typical mistakes of new users, and the exact error message for each.

A message says what is wrong, names the argument or value, and says what to do instead.
"""

# ruff: noqa: E501 - the words of a row stand as they are said, on one line

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import click
import pytest

import recordings
from claude_wire import (
    Accumulator,
    ClaudeOptions,
    CLINotFoundError,
    Decoder,
    EncodeError,
    HandleError,
    HookMatcher,
    InvalidLineError,
    MessageStream,
    ResultMessage,
    Session,
    UserMessage,
    ask,
    decode,
    encode,
    open_process,
    open_session,
    peek,
    read,
    sync,
)
from claude_wire.dialects import CLASSIC, MIRIAD
from claude_wire.errors import DialectError
from claude_wire.messages import (
    HookOutput,
    McpStatusRequest,
    MessageStopEvent,
    PermissionResultAllow,
    PermissionResultDeny,
    PreToolUseHookSpecificOutput,
)
from claude_wire.streams import set_byte_budget
from claude_wire.testing import Recording, Replay, Stall, open_agent
from claude_wire.transcripts import Transcript, find_sessions
from claude_wire_kit.commands.app import cli
from claude_wire_kit.usage.meter import UsageMeter
from folders import SUPPORT

HERE = str(SUPPORT)


def decide(request: Any) -> Any:
    return request.allow()


def sdk_decide(tool_name: str, tool_input: Any, context: Any) -> Any: ...
def sdk_hook(hook_input: Any, tool_use_id: Any, context: Any) -> Any: ...
def takes_two(line: bytes, more: Any) -> Any: ...
async def async_one(request: Any) -> Any: ...


class ClaudeAgentOptions:
    """A class with the name of claude-agent-sdk's options class."""


async def lines() -> AsyncIterator[bytes]:
    yield b'{"type":"keep_alive"}\n'


def waited(call: Callable[[], Awaitable[object]]) -> object:
    return anyio.run(call)


async def into(opened: Any) -> None:
    async with opened:
        pytest.fail("it was entered")


async def entered(call: Callable[[Any], Awaitable[object]]) -> object:
    async with Session(MessageStream(lines()), print) as session:
        return await call(session)


async def after_its_end() -> object:
    async with Session(MessageStream(lines()), print) as session:
        pass
    return [message async for message in session]


async def asks_in_a_loop() -> object:
    return sync.ask("hello", ["agent"])


def command(*arguments: str) -> object:
    return cli.main(list(arguments), prog_name="claude-wire", standalone_mode=False)


def session(options: Any = None, **arguments: Any) -> object:
    return open_session(options or ClaudeOptions(cli_path="claude"), **arguments)


#: A mistaken call, the exception that it raises, and the message of the exception.
MISTAKES: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        lambda: Decoder(only={"asistant"}),
        ValueError,
        "only: there is no kind 'asistant' (did you mean 'assistant'?); for a kind that this version does not know: Kind('type', 'subtype')",
    ),
    (lambda: Decoder(only="result"), TypeError, "only takes a set of kinds, not one: only={'result'}"),
    (
        lambda: Decoder(only={"stream_event/text_delta"}),
        ValueError,
        "only: there is no kind 'stream_event/text_delta' (did you mean 'stream_event/content_block_delta/text_delta'?); for a kind that this version does not know: Kind('type', 'subtype')",
    ),
    (
        lambda: Decoder(only={"init"}),
        ValueError,
        "only: there is no kind 'init' (did you mean 'system/init'?); for a kind that this version does not know: Kind('type', 'subtype')",
    ),
    (
        lambda: Decoder(only={ResultMessage}),
        TypeError,
        "only takes names of kinds, such as 'result' or 'system/init', not the class ResultMessage",
    ),
    (
        lambda: Decoder(ResultMessage),
        TypeError,
        "type must be Message or dict, not the class ResultMessage; only={'result'} picks kinds",
    ),
    (
        lambda: Decoder(on_invalid="ignore"),
        ValueError,
        "on_invalid must be 'return', 'raise' or a callable, not 'ignore'",
    ),
    (
        lambda: Decoder(on_invalid=async_one),
        TypeError,
        "on_invalid must be a plain function, and async_one is async: nobody awaits it",
    ),
    (lambda: Decoder(surrogates="strict"), ValueError, "surrogates must be 'keep' or 'replace', not 'strict'"),
    (lambda: Decoder(max_line_bytes=0), ValueError, "max_line_bytes must be at least 1, not 0"),
    (
        lambda: Decoder(dict, loads=takes_two),
        TypeError,
        "loads is called with one argument, the bytes of a line; takes_two(line, more) does not take that: missing a required argument: 'more'",
    ),
    (lambda: Decoder().feed('{"type":"user"}\n'), TypeError, "feed() takes bytes, not str; encode it as UTF-8 first"),
    (lambda: decode({"type": "user"}), TypeError, "decode() takes bytes or str, not dict"),
    (
        lambda: decode(b"hello"),
        InvalidLineError,
        "line 1 at byte 0 is not one JSON object: not JSON: Expecting value at character 0 of the line",
    ),
    (
        lambda: encode('{"type":"user"}'),
        TypeError,
        "encode() takes a message or a dict, not str; UserMessage.of(text) is a prompt",
    ),
    (
        lambda: encode([UserMessage.of("hello")]),
        TypeError,
        "encode() takes a message or a dict, not list; Encoder().encode_lines() takes several",
    ),
    (lambda: encode(UserMessage), TypeError, "encode() takes a message or a dict, not the class UserMessage"),
    (
        lambda: decode(b'{"type":"keep_alive"}\n{"type":"keep_alive"}\n'),
        InvalidLineError,
        "line 1 at byte 0 is not one JSON object: not JSON: Extra data at character 22 of the line; pass several lines to Decoder().feed()",
    ),
    (
        lambda: read("stdout.ndjson.gz"),
        ValueError,
        "the file is compressed, by its name: read(gzip.open(path)) unpacks it",
    ),
    (
        lambda: list(find_sessions("/nosuch")),
        NotADirectoryError,
        "[Errno 20] find_sessions() takes a folder, and this path is not one: '/nosuch'",
    ),
    (
        lambda: Transcript.load(HERE),
        IsADirectoryError,
        f"[Errno 21] a folder: Transcript.load() takes one file; find_sessions(folder) lists the files of a folder: '{HERE}'",
    ),
    (
        lambda: waited(lambda: into(open_agent(["claude-wire", "agent", "hello.py"]))),
        TypeError,
        "open_agent takes an Agent or its function, not list; open_session runs a program",
    ),
    (
        lambda: waited(lambda: into(open_agent(print, dialect=MIRIAD))),  # type: ignore[call-arg]  # the Agent has the dialect
        TypeError,
        "open_agent has no argument 'dialect'",
    ),
    (
        lambda: waited(lambda: into(open_agent(print, can_use_tools=print))),  # type: ignore[call-arg]  # misspelt
        TypeError,
        "open_agent has no argument 'can_use_tools' (did you mean 'can_use_tool'?)",
    ),
    (
        lambda: open_session(["agent"]).__enter__(),
        TypeError,
        "use `async with`; in code without async, use claude_wire.sync.open_session",
    ),
    (
        lambda: waited(lambda: open_session(["agent"])),
        TypeError,
        "use `async with open_session(...) as session`, not `await`",
    ),
    (
        lambda: waited(lambda: into(sync.open_session(["agent"]))),
        TypeError,
        "use `with`; in async code, use claude_wire.open_session",
    ),
    (lambda: waited(after_its_end), HandleError, "this session is closed; open another one"),
    (
        lambda: [Session(MessageStream(lines()), print).receive_response()],
        HandleError,
        "this session is not entered: use it as `async with ... as session`",
    ),
    (lambda: encode({"type": "user", "when": object()}), EncodeError, "no JSON for this message: TypeError"),
    (lambda: peek({"type": "user"}), TypeError, "peek() takes bytes, bytearray or memoryview, not dict"),
    (
        lambda: read(HERE),
        IsADirectoryError,
        f"[Errno 21] a directory: read() takes one file of it at a time; of a recording, stdout.ndjson: '{HERE}'",
    ),
    (lambda: read(HERE, onli={"result"}), TypeError, "read has no argument 'onli' (did you mean 'only'?)"),
    (lambda: read('{"type":"user"}'), ValueError, "read() takes a path, not JSON: pass one line to decode()"),
    (
        lambda: read(b'{"type":"user"}'),
        TypeError,
        "read() takes a path or a binary file, not bytes; pass bytes to Decoder().feed(), or one line to decode()",
    ),
    (lambda: read(io.StringIO("{}")), TypeError, "read() takes a binary file; open it with mode 'rb'"),
    (lambda: Accumulator(keep=0), ValueError, "keep must be at least 1, not 0"),
    (lambda: Accumulator(keep=True), TypeError, "keep must be an int, not bool"),
    (lambda: Accumulator(max_chars="1000"), TypeError, "max_chars must be an int, not str"),
    (lambda: Accumulator(max_chars=1.5), TypeError, "max_chars must be an int, not float"),
    (lambda: Decoder(max_line_bytes=True), TypeError, "max_line_bytes must be an int, not bool"),
    (lambda: set_byte_budget(True), TypeError, "limit must be an int, not bool"),
    (
        lambda: Accumulator().add([]),
        TypeError,
        "an Accumulator takes the messages of a stream, one at a time, not list",
    ),
    (
        lambda: Accumulator().add(MessageStopEvent()),
        TypeError,
        "an Accumulator takes the messages of a stream, one at a time, not MessageStopEvent",
    ),
    (
        lambda: Replay(Recording.from_files({"stdout.ndjson": b"{}\n"}), faults=Stall(1.0, at_byte=0)),
        TypeError,
        "faults must be a list of faults, such as [CutOutput(at_byte=1000)], not Stall",
    ),
    (
        lambda: UsageMeter().add({"type": "result"}),
        TypeError,
        "a UsageMeter takes messages, not dicts: use Decoder() instead of Decoder(dict)",
    ),
    (
        lambda: UsageMeter().add(b'{"type":"result"}'),
        TypeError,
        "a UsageMeter takes the messages of a stream, one at a time, not bytes",
    ),
    (
        lambda: Accumulator().add({"type": "stream_event"}),
        TypeError,
        "an Accumulator takes messages, not dicts: use Decoder() instead of Decoder(dict)",
    ),
    (
        lambda: MessageStream("stdout.ndjson"),
        TypeError,
        "MessageStream takes a descriptor, a file object, a socket, an asyncio.StreamReader, an anyio byte stream or an asynchronous iterable of bytes, not str; to read a file by its path, use read(path)",
    ),
    (
        lambda: MessageStream(io.BytesIO(b"{}")),
        TypeError,
        "MessageStream takes a descriptor, a file object, a socket, an asyncio.StreamReader, an anyio byte stream or an asynchronous iterable of bytes, not BytesIO",
    ),
    (
        lambda: MessageStream(lines(), dict),
        TypeError,
        "decoder must be a Decoder(...), such as Decoder(dict), not the class dict",
    ),
    (
        lambda: MessageStream(lines(), overflow="drop"),
        ValueError,
        "overflow must be one of 'pause', 'spill', 'error', not 'drop'",
    ),
    (lambda: set_byte_budget(-1), ValueError, "limit must be at least 1, not -1"),
    (
        lambda: ClaudeOptions({"model": "sonnet"}),
        TypeError,
        "ClaudeOptions takes no positional arguments, but got dict: ClaudeOptions(model=...), or ClaudeOptions(**fields) for a dict",
    ),
    (
        lambda: ClaudeOptions(cwd="/tmp"),
        TypeError,
        "ClaudeOptions has no argument 'cwd': open_session(ClaudeOptions(...), cwd=...), or open_process(..., cwd=...)",
    ),
    (
        lambda: ClaudeOptions(mcp_servers={}),
        TypeError,
        "ClaudeOptions has no argument 'mcp_servers': servers that the CLI runs: mcp_config={'mcpServers': {...}}; servers in this process: open_session(..., mcp_servers={...})",
    ),
    (
        lambda: ClaudeOptions(permissionMode="plan"),
        TypeError,
        "ClaudeOptions has no argument 'permissionMode' (did you mean 'permission_mode'?)",
    ),
    (lambda: ClaudeOptions(modle="sonnet"), TypeError, "ClaudeOptions has no argument 'modle' (did you mean 'model'?)"),
    (
        lambda: ClaudeOptions(permission_mode="pIan"),
        ValueError,
        "ClaudeOptions.permission_mode must be one of 'default', 'manual', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions', not 'pIan' (did you mean 'plan'?); for a value that this version does not know: extra_args={'permission-mode': ...}",
    ),
    (
        lambda: ClaudeOptions(effort="hgih"),
        ValueError,
        "ClaudeOptions.effort must be one of 'low', 'medium', 'high', 'xhigh', 'max', not 'hgih' (did you mean 'high'?); for a value that this version does not know: extra_args={'effort': ...}",
    ),
    (
        lambda: ClaudeOptions(allowed_tools="Bash"),
        TypeError,
        "ClaudeOptions.allowed_tools takes a list of str, not str",
    ),
    (lambda: ClaudeOptions(max_turns=0), ValueError, "ClaudeOptions.max_turns must be at least 1, not 0"),
    (
        lambda: ClaudeOptions(session_id="my session"),
        ValueError,
        "ClaudeOptions.session_id must be a UUID, such as str(uuid.uuid4())",
    ),
    (
        lambda: ClaudeOptions(system_prompt="a", system_prompt_file="b"),
        ValueError,
        "ClaudeOptions takes one of system_prompt and system_prompt_file, not both",
    ),
    (
        lambda: ClaudeOptions(thinking={"type": "adaptive"}),
        TypeError,
        "ClaudeOptions.thinking takes a str, not dict; write 'adaptive', 'enabled' or 'disabled'; pass budget_tokens as max_thinking_tokens=, and display as thinking_display=",
    ),
    (
        lambda: ClaudeOptions(system_prompt={"type": "preset", "preset": "claude_code", "append": "x"}),
        TypeError,
        "ClaudeOptions.system_prompt takes a str, not dict; in place of a preset, pass its text as append_system_prompt=; pass a file as system_prompt_file=",
    ),
    (
        lambda: ClaudeOptions(tools={"type": "preset", "preset": "claude_code"}),
        TypeError,
        "ClaudeOptions.tools takes a list of str, not dict; for the preset write ['default'], or leave it out",
    ),
    (
        lambda: ClaudeOptions(task_budget={"total": 1000}),
        TypeError,
        "ClaudeOptions.task_budget takes an int, not dict; pass only the total, an int",
    ),
    (
        lambda: ClaudeOptions(agents={"x": object()}),
        ValueError,
        "ClaudeOptions.agents has a value that JSON cannot represent; write {'NAME': {'description': ..., 'prompt': ...}}, or claude_wire.messages.AgentDefinition as the value",
    ),
    (
        lambda: open_process("claude --print hello"),
        TypeError,
        "argv must be a list of arguments, not one string; use shlex.split() to split it",
    ),
    (
        lambda: open_process(ClaudeOptions()),
        TypeError,
        "argv must be a list of arguments, as ClaudeOptions.argv() gives it, not ClaudeOptions",
    ),
    (lambda: open_process([]), TypeError, "argv is empty"),
    (
        lambda: open_process(["claude"], stderr="null"),
        ValueError,
        "stderr must be None, 'inherit' or a function, not 'null'",
    ),
    (lambda: open_process(["claude"], env={"DEBUG": 1}), TypeError, "env['DEBUG'] must be a str, not int"),
    (lambda: open_process(["claude"], grace=-1), ValueError, "grace must be at least 0 seconds, not -1"),
    (
        lambda: open_process(["claude"], dict),
        TypeError,
        "decoder must be a Decoder(...), such as Decoder(dict), not the class dict",
    ),
    (
        lambda: open_session({"model": "x"}),
        TypeError,
        "open_session takes ClaudeOptions(model=...), or a command line as a list of arguments, not dict",
    ),
    (
        lambda: open_session(ClaudeAgentOptions()),
        TypeError,
        "open_session takes ClaudeOptions(...), not ClaudeAgentOptions of claude-agent-sdk: pass flags to ClaudeOptions and callbacks, cwd and env to open_session, all under the same names; or pass ClaudeAgentOptions to claude_wire.integrations.agent_sdk.WireTransport",
    ),
    (
        lambda: session(model="sonnet"),
        TypeError,
        "open_session has no argument 'model': it is a flag of the CLI: open_session(ClaudeOptions(model=...))",
    ),
    (
        lambda: session(prompt="hello"),
        TypeError,
        "open_session has no argument 'prompt': send it: await session.query(...), or session.ask(...)",
    ),
    (
        lambda: session(can_use_tools=decide),
        TypeError,
        "open_session has no argument 'can_use_tools' (did you mean 'can_use_tool'?)",
    ),
    (
        lambda: session(dialect="miriad"),
        ValueError,
        "dialect must be STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD or JSON_RPC of claude_wire.dialects, or 'auto', "
        "not 'miriad'",
    ),
    (
        lambda: session(dialect=MIRIAD),
        TypeError,
        "ClaudeOptions are flags of the CLI; for miriad pass a command line as a list",
    ),
    (
        lambda: open_session(["agent"], dialect=MIRIAD, can_use_tool=decide),
        DialectError,
        "the dialect miriad has no permission requests: can_use_tool is never asked",
    ),
    (
        lambda: open_session(["agent"], dialect=MIRIAD, hooks={"PreToolUse": [HookMatcher(decide)]}),
        DialectError,
        "the dialect miriad has no initialize, so hooks would never be called",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.status())),
        DialectError,
        "the dialect stream-json has no status request; Session.receive_run() tells when a run is over",
    ),
    (
        lambda: waited(lambda: ask("hello", model="sonnet")),
        TypeError,
        "open_session has no argument 'model': it is a flag of the CLI: open_session(ClaudeOptions(model=...))",
    ),
    (
        lambda: waited(lambda: ask(ClaudeOptions(), "hello")),
        TypeError,
        "a prompt is text, content blocks such as [TextBlock(...)], or a UserMessage, not ClaudeOptions",
    ),
    (
        lambda: waited(lambda: ask("hello", "claude --model opus")),
        TypeError,
        "open_session takes ClaudeOptions(model=...), or a command line as a list of arguments, not str; shlex.split() makes a list of a command line",
    ),
    (
        lambda: waited(asks_in_a_loop),
        HandleError,
        "an event loop runs in this thread, and would stand still; use the async API: await claude_wire.ask(...), or async with claude_wire.open_session(...)",
    ),
    (
        lambda: sync.open_session(["agent"]).ask("hello"),
        HandleError,
        "the session is not open; use it in its block: with open_session(...) as session",
    ),
    (
        lambda: sync.open_session(["agent"], model="sonnet"),
        TypeError,
        "open_session has no argument 'model': it is a flag of the CLI: open_session(ClaudeOptions(model=...))",
    ),
    (lambda: session(initialize={"agents": {}}), TypeError, "initialize must be an InitializeRequest(...), not dict"),
    (
        lambda: session(can_use_tool=sdk_decide),
        TypeError,
        "can_use_tool is called with one argument, the CanUseToolRequest; sdk_decide(tool_name, tool_input, context) does not take that: missing a required argument: 'tool_input'",
    ),
    (
        lambda: open_session(ClaudeOptions(cli_path="c", permission_prompt_tool="mcp__a__b"), can_use_tool=decide),
        ValueError,
        "can_use_tool is never asked with another permission_prompt_tool than 'stdio' (--permission-prompt-tool)",
    ),
    (
        lambda: session(can_use_tool=async_one("x")),
        TypeError,
        "can_use_tool must be a function, not its result: pass it without ()",
    ),
    (
        lambda: session(hooks={"PreTooluse": [HookMatcher(decide)]}),
        ValueError,
        "hooks: there is no event 'PreTooluse' (did you mean 'PreToolUse'?); for an event that this version does not know: HookMatcher(..., unknown_event=True)",
    ),
    (
        lambda: session(hooks={"PreToolUse": [decide]}),
        TypeError,
        "hooks['PreToolUse'] must be a list of HookMatcher: [HookMatcher(decide)]",
    ),
    (
        lambda: session(hooks={"PreToolUse": HookMatcher(decide)}),
        TypeError,
        "hooks['PreToolUse'] must be a list of HookMatcher: [HookMatcher(f)]",
    ),
    (
        lambda: session(hooks=[HookMatcher(decide)]),
        TypeError,
        "hooks must be a dict such as {'PreToolUse': [HookMatcher(f)]}, not list",
    ),
    (
        lambda: session(mcp_servers={"calc": {"command": "calc"}}),
        TypeError,
        "mcp_servers['calc'] must be an McpServer, not dict: wrap a server of the mcp package in claude_wire.integrations.mcp.InProcessMcpServer; pass a server that the CLI runs to ClaudeOptions(mcp_config=...)",
    ),
    (lambda: session(callback_timeout="5"), TypeError, "callback_timeout must be a number of seconds, not str"),
    (
        lambda: session(on_sent=async_one),
        TypeError,
        "on_sent must be a plain function, and async_one is async: nobody awaits it",
    ),
    (
        lambda: HookMatcher(hooks=[decide]),
        TypeError,
        "HookMatcher has no argument 'hooks': its functions come first and bare: HookMatcher(f, g, matcher='Bash')",
    ),
    (
        lambda: HookMatcher([decide]),
        TypeError,
        "HookMatcher takes functions, not list: HookMatcher(f, g, matcher='Bash')",
    ),
    (
        lambda: HookMatcher("Bash", decide),
        TypeError,
        "HookMatcher takes functions, not str: HookMatcher(f, g, matcher='Bash')",
    ),
    (
        lambda: HookMatcher(sdk_hook),
        TypeError,
        "a hook is called with one argument, the HookCallbackRequest, whose input is request.input; sdk_hook(hook_input, tool_use_id, context) does not take that: missing a required argument: 'tool_use_id'",
    ),
    (lambda: HookMatcher(decide, timeout=0), ValueError, "timeout must be more than 0 seconds, not 0"),
    (
        lambda: HookMatcher(decide, on_failure="blok"),
        ValueError,
        "on_failure must be one of 'continue', 'block', not 'blok' (did you mean 'block'?)",
    ),
    (
        lambda: Session(ClaudeOptions()),
        TypeError,
        "stream must be a Process, a MessageStream or a SessionTransport, not ClaudeOptions; open_session(ClaudeOptions(...)) runs the CLI",
    ),
    (
        lambda: Session(MessageStream(lines())),
        TypeError,
        "send is missing: a stream that is not a Process needs a function that sends",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.ask(5))),
        TypeError,
        "a prompt is text, content blocks such as [TextBlock(...)], or a UserMessage, not int",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.request(McpStatusRequest))),
        TypeError,
        "request() takes a request such as McpStatusRequest(), not the class McpStatusRequest",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.request("interrupt"))),
        TypeError,
        "request() takes a request such as McpStatusRequest(), not str",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.set_permission_mode("pIan"))),
        ValueError,
        "mode must be one of 'default', 'manual', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions', not 'pIan' (did you mean 'plan'?); for a mode that this version does not know: session.request(SetPermissionModeRequest(mode=...))",
    ),
    (
        lambda: waited(lambda: entered(lambda session: session.set_model(""))),
        TypeError,
        "model must be a model's name, or None for the default, not ''",
    ),
    (
        lambda: waited(lambda: Session(MessageStream(lines()), print).ask("hello")),
        HandleError,
        "this session is not entered: use it as `async with ... as session`",
    ),
    (
        lambda: waited(lambda: into(open_process(["/nosuch/claude"]))),
        CLINotFoundError,
        "there is no program '/nosuch/claude'; correct the first argument of the command",
    ),
    (
        lambda: waited(lambda: into(open_session(["no-such-program", "agent"]))),
        CLINotFoundError,
        "there is no program 'no-such-program' in PATH; correct the first argument of the command, or write the program's whole path: the programs of a virtual environment are in PATH only while it is active",
    ),
    (
        lambda: waited(lambda: into(open_session(ClaudeOptions(cli_path="/nosuch/claude")))),
        CLINotFoundError,
        "there is no program '/nosuch/claude'; correct ClaudeOptions(cli_path=...), or leave it out to search for the CLI",
    ),
    (
        lambda: waited(lambda: into(open_process([sys.executable], cwd="/nosuch"))),
        FileNotFoundError,
        "[Errno 2] the working directory (cwd) does not exist: '/nosuch'",
    ),
    (lambda: Recording.from_files({"stdin.ndjson": b""}), ValueError, "a recording needs a stdout.ndjson"),
    (lambda: Replay(HERE), FileNotFoundError, f"[Errno 2] not a recording: it has no stdout.ndjson: '{HERE}'"),
    (lambda: Stall(seconds=-1), ValueError, "Stall needs seconds of at least 0"),
    (
        lambda: PermissionResultAllow(updated_input={}),
        TypeError,
        "PermissionResultAllow has no field 'updated_input' (did you mean 'updatedInput'?)",
    ),
    (
        lambda: HookOutput(hook_specific_output={}),
        TypeError,
        "HookOutput has no field 'hook_specific_output' (did you mean 'hookSpecificOutput'?)",
    ),
    (
        lambda: PreToolUseHookSpecificOutput(permission_decision="deny"),
        TypeError,
        "PreToolUseHookSpecificOutput has no field 'permission_decision' (did you mean 'permissionDecision'?)",
    ),
    (
        lambda: PermissionResultDeny(reason="no"),
        TypeError,
        "PermissionResultDeny has no field 'reason'; it has message, interrupt, toolUseID, decisionClassification",
    ),
    (lambda: PermissionResultDeny(), TypeError, "PermissionResultDeny: Missing required argument 'message'"),
    (
        lambda: UserMessage("hello"),
        TypeError,
        "UserMessage takes its fields by name; UserMessage.of(...) takes its content",
    ),
    (
        lambda: UserMessage(text="hello"),
        TypeError,
        "UserMessage has no field 'text'; UserMessage.of(...) takes its content",
    ),
    (lambda: command("vieww", "hello"), click.UsageError, "No such command 'vieww'. Did you mean 'view'?"),
    (
        lambda: command("view", "/nosuch.ndjson"),
        click.BadParameter,
        "Invalid value for 'FILE|-': Path '/nosuch.ndjson' does not exist.",
    ),
    (
        lambda: command("stats", HERE),
        click.ClickException,
        f"{HERE} cannot be read: not a recording: it has no stdout.ndjson",
    ),
    (
        lambda: command("run", "--model", "", "--", "hello"),
        click.UsageError,
        "ClaudeOptions.model is empty; leave it out, or give None",
    ),
    (
        lambda: command("run", "--permission-mode", "pIan", "hello"),
        click.UsageError,
        "ClaudeOptions.permission_mode must be one of 'default', 'manual', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions', not 'pIan' (did you mean 'plan'?); for a value that this version does not know: extra_args={'permission-mode': ...}",
    ),
    (
        lambda: command("replay", "/nosuch"),
        click.BadParameter,
        "Invalid value for 'RECORDING': Path '/nosuch' does not exist.",
    ),
]


@pytest.mark.parametrize(("make", "kind", "words"), MISTAKES, ids=[words[:40] for _, _, words in MISTAKES])
def test_a_mistake_gets_words_that_say_what_to_do(
    make: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        make()
    error = caught.value
    said = error.format_message() if isinstance(error, click.ClickException) else str(error)
    assert said == words
    assert isinstance(error, click.ClickException) or type(error) is kind


def test_there_are_forty_of_them() -> None:
    assert len(MISTAKES) >= 40


def test_the_output_of_a_cli_is_no_transcript(tmp_path: Path) -> None:
    path = tmp_path / "stdout.ndjson"
    path.write_bytes(recordings.load("01_simple_bidi_init").stdout)
    with pytest.raises(
        ValueError, match=r"^this is not a transcript but the output of a CLI: .*use claude_wire.read\(\)$"
    ):
        Transcript.load(path)


def test_a_package_that_is_not_imported_yet_is_named() -> None:
    code = "import claude_wire; claude_wire.transcripts"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.endswith(
        "AttributeError: module 'claude_wire' has no attribute 'transcripts'; import claude_wire.transcripts first\n"
    )


def test_a_session_of_another_event_loop_is_refused() -> None:
    says = """import sys; print('{"type":"system","subtype":"init"}', flush=True); sys.stdin.read()"""
    opened = open_session([sys.executable, "-c", says], dialect=CLASSIC)

    async def uses() -> None:
        with anyio.fail_after(60):
            await anext(aiter(opened))

    async def leaves_open() -> None:
        await opened.__aenter__()
        await uses()

    anyio.run(leaves_open)
    with pytest.raises(HandleError) as caught:
        anyio.run(uses)
    assert str(caught.value) == (
        "this stream belongs to the event loop in which it was first read; open and use it in one asyncio.run()"
    )


@pytest.mark.parametrize("name", ["query", "ClaudeAgentOptions", "ClaudeSDKClient"])
def test_a_name_of_claude_agent_sdk_is_answered_with_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; (it is|use) (ask|ClaudeOptions|open_session)"):
        getattr(sys.modules["claude_wire"], name)
