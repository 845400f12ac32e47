"""The conversations of through_sdk.py, held through `open_process`: the hosts write the control messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ControlRequest,
    ControlResponse,
    HookCallbackRequest,
    Process,
    ProcessError,
    ResultMessage,
    StreamEvent,
    UserMessage,
    open_process,
)
from claude_wire.messages import (
    HookCallbackMatcher,
    InitializeRequest,
    InterruptRequest,
    McpMessageRequest,
    SetModelRequest,
)
from places import CLI, Place
from through_sdk import DEADLINE, FEW_RETRIES

__all__ = ["CONVERSATIONS", "Host", "hold", "recording_cli"]


def recording_cli(place: Place) -> tuple[Path, Path]:
    """Write a script that runs the CLI and copies its stdout to a file. Return the paths of the script and the file."""
    program, copy = place.home.parent / "recorded-claude", place.home.parent / "stdout.ndjson"
    program.write_text(f'#!/bin/bash\nset -o pipefail\n"{CLI}" "$@" | tee "{copy}"\n')
    program.chmod(0o755)
    return program, copy


@dataclass
class Host:
    """One CLI, and the messages, calls and error that its host recorded."""

    place: Place
    #: The program to run as the CLI.
    cli: Path = CLI
    #: All messages in the order of arrival, including control messages.
    messages: list[Any] = field(default_factory=list)
    #: Calls of tools and callbacks, in the order of the calls.
    calls: list[Any] = field(default_factory=list)
    #: The exception that was raised at the end of the output.
    error: ProcessError | None = None

    async def converse(
        self,
        prompts: Sequence[str],
        *,
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        initialize: InitializeRequest | None = None,
        answer: Callable[[Any], Mapping[str, Any]] | None = None,
        watch: Callable[[Process[Any], Any], Awaitable[None]] | None = None,
        turns: int = 1,
    ) -> None:
        """Send prompts, record the messages, and close the input after `turns` results.

        `answer` gives the payload of the answer to each request; `watch` is called with every message.
        """
        argv = ClaudeOptions(cli_path=self.cli, system_prompt="", **(options or {})).argv()
        environment = {**self.place.environment, **(env or {})}
        async with open_process(argv, cwd=self.place.work, env=environment) as process:
            await process.send(ControlRequest("first", initialize or InitializeRequest()))
            for prompt in prompts:
                await process.send(UserMessage.of(prompt))
            try:
                async for message in process:
                    self.messages.append(message)
                    if isinstance(message, ControlRequest):
                        assert answer is not None
                        payload = dict(answer(message.request))
                        await process.send(ControlResponse.success(message.request_id, payload))
                    if watch is not None:
                        await watch(process, message)
                    if isinstance(message, ResultMessage):
                        turns -= 1
                        if turns == 0:
                            await process.end_input()
            except ProcessError as error:
                self.error = error
            # A second iteration after the error yields no message.
            assert [message async for message in process] == []
            assert await process.wait() == (0 if self.error is None else self.error.returncode)


def _plain(name: str, turns: int = 1, **options: Any) -> Callable[[Host], Awaitable[None]]:
    async def conversation(host: Host) -> None:
        await host.converse([f"[[{name}]]"], options=options, turns=turns)

    return conversation


def _failing(name: str) -> Callable[[Host], Awaitable[None]]:
    async def conversation(host: Host) -> None:
        await host.converse([f"[[{name}]]"], options={"include_partial_messages": True}, env=FEW_RETRIES)

    return conversation


async def permission(host: Host) -> None:
    def ask(request: Any) -> Mapping[str, Any]:
        assert isinstance(request, CanUseToolRequest)
        host.calls.append((request.tool_name, request.input, request.tool_use_id))
        if request.tool_name == "Write":
            return request.allow({**request.input, "content": "as the host wanted it"}).to_dict()
        if "refused" in request.input["command"]:
            return request.deny("Not today").to_dict()
        return request.allow().to_dict()

    await host.converse(["[[permission]]"], options={"permission_prompt_tool": "stdio"}, answer=ask)


async def hooks(host: Host) -> None:
    def note(request: Any) -> Mapping[str, Any]:
        assert isinstance(request, HookCallbackRequest)
        given = request.input.to_dict()
        event, tool = given["hook_event_name"], given.get("tool_name")
        host.calls.append((event, tool, given.get("tool_input"), request.tool_use_id))
        if event == "PreToolUse" and "forbidden" in given["tool_input"]["command"]:
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "A hook said no",
                }
            }
        return {}

    events = {"UserPromptSubmit": None, "PreToolUse": "Bash", "PostToolUse": "Bash", "Stop": None}
    matchers = {
        event: [HookCallbackMatcher(matcher=matcher, hookCallbackIds=[event])] for event, matcher in events.items()
    }
    options = {"allowed_tools": ["Bash"], "include_hook_events": True}
    await host.converse(["[[hooks]]"], options=options, initialize=InitializeRequest(hooks=matchers), answer=note)


async def command_hooks(host: Host) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo from the hook"}]}
    options = {
        "settings": {"hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}},
        "allowed_tools": ["Bash"],
        "include_hook_events": True,
    }
    await host.converse(["[[hooks]]"], options=options)


async def mcp(host: Host) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    tools = [{"name": name, "description": name, "inputSchema": schema} for name in ("add", "fail")]

    def serve(request: Any) -> Mapping[str, Any]:
        assert isinstance(request, McpMessageRequest)
        asked = request.message
        result: dict[str, Any] = {}
        if asked["method"] == "initialize":
            version = asked["params"]["protocolVersion"]
            result = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": request.server_name, "version": "1"},
            }
        elif asked["method"] == "tools/list":
            result = {"tools": tools}
        elif asked["method"] == "tools/call":
            name, arguments = asked["params"]["name"], asked["params"]["arguments"]
            host.calls.append((name, arguments))
            text = "it failed" if name == "fail" else str(arguments["a"] + arguments["b"])
            result = {"content": [{"type": "text", "text": text}], "isError": name == "fail"}
        return {"mcp_response": {"jsonrpc": "2.0", "id": asked.get("id", 0), "result": result}}

    options = {
        "mcp_config": {"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}},
        "allowed_tools": ["mcp__calc__add", "mcp__calc__fail"],
    }
    await host.converse(["[[mcp]]"], options=options, answer=serve)


async def interrupt(host: Host) -> None:
    interrupted = False

    async def watch(process: Process[Any], message: Any) -> None:
        nonlocal interrupted
        # Interrupt at content block 1: by then the model has written all its text.
        if isinstance(message, StreamEvent) and getattr(message.event, "index", 0) == 1 and not interrupted:
            interrupted = True
            await process.send(ControlRequest("stop", InterruptRequest()))
        elif isinstance(message, ResultMessage) and message.subtype == "error_during_execution":
            await process.send(UserMessage.of("[[again]]"))

    await host.converse(["[[stall]]"], options={"include_partial_messages": True}, watch=watch, turns=2)


async def set_model(host: Host) -> None:
    first = True

    async def watch(process: Process[Any], message: Any) -> None:
        nonlocal first
        if isinstance(message, ResultMessage) and first:
            first = False
            await process.send(ControlRequest("model", SetModelRequest(model="claude-haiku-4-5")))
            await process.send(UserMessage.of("[[again]]"))

    await host.converse(["[[simple]]"], options={"model": "claude-sonnet-4-5"}, watch=watch, turns=2)


async def queued(host: Host) -> None:
    await host.converse(["[[slow]]", "[[simple]]", "[[again]]"], turns=2)


CONVERSATIONS: dict[str, Callable[[Host], Awaitable[None]]] = {
    "simple": _plain("simple"),
    "partial": _plain("simple", include_partial_messages=True),
    "thinking": _plain("thinking", include_partial_messages=True),
    "tool": _plain("read", allowed_tools=["Read"]),
    "permission": permission,
    "hooks": hooks,
    "command_hooks": command_hooks,
    "mcp": mcp,
    "interrupt": interrupt,
    "set_model": set_model,
    "queued": queued,
    "max_turns": _plain("endless", max_turns=2, allowed_tools=["Bash"]),
    "unicode": _plain("unicode", include_partial_messages=True),
    "long": _plain("long", include_partial_messages=True),
    "huge": _plain("huge", include_partial_messages=True),
    "huge_at_once": _plain("huge_at_once", include_partial_messages=True),
    **{name: _failing(name) for name in ("error_400", "error_401", "error_429", "error_500", "overloaded")},
}


async def hold(name: str, host: Host) -> Host:
    """Run one conversation. Raise TimeoutError if it takes longer than DEADLINE."""
    with anyio.fail_after(DEADLINE):
        await CONVERSATIONS[name](host)
    return host
