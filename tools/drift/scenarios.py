"""The sessions in which a CLI is recorded, and the model's replies in these sessions.

Each scenario makes the CLI write something that it does not write in the others. The result of a session does not
matter, only its lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from claude_wire import ClaudeOptions, HookMatcher, Session, StreamEvent, UserMessage, open_session
from claude_wire.errors import PayloadError, ProcessError, RequestError, TurnError
from claude_wire.messages import (
    CanUseToolRequest,
    HookCallbackRequest,
    PermissionResult,
    StopTaskRequest,
    TaskStartedMessage,
)
from claude_wire.messages.hooks.events import HOOK_EVENTS
from claude_wire_kit.terminal.record import Recorder
from drift.requests import every_request
from offline import sandbox
from offline.fake_api import Failure, FakeAPI, Reply, Step, deltas, text, thinking, tool

__all__ = ["SCENARIOS", "SCRIPTS", "Stage"]

SESSION_ID = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
PROMPT_ID = "10000000-0000-4000-8000-000000000000"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
#: Timeouts in seconds for the answer to a request, and for the run of a prompt.
REQUEST_SECONDS, RUN_SECONDS = 60.0, 60.0
#: Maximum bytes to record per session (8 MiB). With today's CLI, a session has 0.3 MB.
MAX_BYTES = 1 << 23


def _bash(command: str, **more: Any) -> Reply:
    return Reply(tool("Bash", command=command, description="Try it", **more))


def _agent(**more: Any) -> Reply:
    return Reply(
        tool("Agent", description="Look", prompt="[[worker]] Look.", subagent_type="general-purpose", **more),
        tool("Task", description="Look", prompt="[[worker]] Look.", subagent_type="general-purpose", **more),
    )


SCRIPTS: Mapping[str, Sequence[Step]] = {
    "text": [Reply(thinking("First this, ", "then that."), text("Hello, ", "world."))],
    "again": [Reply(text("Hello again."))],
    "tools": [
        _bash("touch allowed"),
        _bash("touch refused"),
        _bash("exit 3"),
        Reply(tool("Read", file_path="notes.txt"), tool("NoSuchTool", a=1)),
        Reply(tool("Write", file_path="written.txt", content="written")),
        Reply(tool("TodoWrite", todos=[{"content": "Try", "status": "pending", "activeForm": "Trying"}])),
        Reply(text("Done.")),
    ],
    "mcp": [Reply(tool("mcp__calc__add", a=20, b=22)), Reply(tool("mcp__calc__fail")), Reply(text("Added."))],
    "stall": [Reply(text("One ", "two "), deltas(2, pause=120))],
    "structured": [Reply(tool("StructuredOutput", name=1)), Reply(tool("StructuredOutput", name="Ada"))],
    "unfit": [Reply(tool("StructuredOutput", name=1)) for _ in range(9)],
    "agent": [_agent(), Reply(text("The worker has reported."))],
    "behind": [_agent(run_in_background=True), *(Reply(text("It goes on.")) for _ in range(3))],
    "worker": [_bash("echo worked"), Reply(text("All is quiet."))],
    "task": [_bash("sleep 100", run_in_background=True), *(Reply(text("It runs.")) for _ in range(3))],
    "endless": [_bash(f"echo {turn}") for turn in range(9)],
    "summary": [Reply(text("<summary>They said hello.</summary>"))],
    "error_400": [Failure(400, "invalid_request_error")],
    "error_401": [Failure(401, "authentication_error")],
    "error_429": [[Failure(429, "rate_limit_error", retry_after=0), Reply(text("After the limit."))]],
    "error_529": [Failure(529, "overloaded_error")],
    "cut": [[Reply(text("This is ", "cut ", "off here"), cut=5), Reply(text("At the second try."))]],
}


@dataclass
class Stage:
    """What a scenario needs to run a CLI: the paths, the fake API, and the folder for the recorded sessions."""

    cli: Path
    api: FakeAPI
    home: Path
    work: Path
    #: The folder for the recordings, and the scenario's name. The recordings' names begin with this name.
    folder: Path
    name: str
    #: Fields of the options whose flags this CLI does not have. The CLI would not start with an unknown flag.
    refused: frozenset[str] = frozenset()
    recorders: list[Recorder] = field(default_factory=lambda: list[Recorder]())

    def session(
        self, env: Mapping[str, str] | None = None, host: Mapping[str, Any] | None = None, **flags: Any
    ) -> Session:
        """Return a session that is not open yet. ``host`` has the options of `open_session` that are not flags."""
        sandbox.require()
        recorder = Recorder(self.folder / f"{self.name}.{len(self.recorders) + 1}", MAX_BYTES)
        self.recorders.append(recorder)
        environment = {**sandbox.environment(self.home, self.api.url), "CLAUDE_CODE_MAX_RETRIES": "1", **(env or {})}
        return open_session(
            ClaudeOptions(cli_path=self.cli, **{name: flags[name] for name in flags if name not in self.refused}),
            cwd=self.work,
            env=environment,
            stderr=recorder.stderr,
            on_received=recorder.received,
            on_sent=recorder.sent,
            request_timeout=REQUEST_SECONDS,
            **(host or {}),
        )

    async def play(self, *prompts: str, **options: Any) -> None:
        """Send prompts, one after the other, in a new session."""
        async with self.session(**options) as session:
            for prompt in prompts:
                await run(session, prompt)


async def run(session: Session, prompt: str | UserMessage) -> None:
    """Send a prompt and receive its run. An error of the turn is a valid outcome."""
    await session.query(prompt)
    # An older CLI does not reply to a prompt that it has received before.
    with suppress(TurnError, ProcessError), anyio.move_on_after(RUN_SECONDS):
        async for _ in session.receive_run():
            pass


class Calculator:
    """An in-process MCP server with a tool that fails."""

    def connect(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Do nothing: this server sends only answers."""

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Answer a request."""
        result: dict[str, Any] = {}
        match message:
            case {"method": "initialize", "params": {"protocolVersion": version}}:
                server = {"name": "calc", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            case {"method": "tools/list"}:
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", "fail")]}
            case {"method": "tools/call", "params": {"name": name}}:
                result = {"content": [{"type": "text", "text": "42"}], "isError": name == "fail"}
            case _:
                pass
        return {"jsonrpc": "2.0", "id": message["id"], "result": result} if "id" in message else None

    async def aclose(self) -> None:
        """Do nothing: this server has nothing to stop."""


async def allow(request: CanUseToolRequest) -> PermissionResult:
    """Allow every tool use unless its input contains the word ``refused``."""
    return request.deny("Not today") if "refused" in str(request.input) else request.allow()


async def note(request: HookCallbackRequest) -> None:
    """A hook that returns an empty output."""


async def partial(stage: Stage) -> None:
    await stage.play("[[text]]", "[[again]]", include_partial_messages=True, replay_user_messages=True)


async def permission(stage: Stage) -> None:
    await stage.play("[[tools]]", host={"can_use_tool": allow})


async def hooks(stage: Stage) -> None:
    host = {"hooks": {event: [HookMatcher(note)] for event in sorted(HOOK_EVENTS)}, "can_use_tool": allow}
    prompts = ("[[tools]]", "[[agent]]", "/compact [[summary]]", "[[error_400]]")
    await stage.play(*prompts, host=host, include_hook_events=True)


async def command_hooks(stage: Stage) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo from the hook"}]}
    settings = {"hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}}
    await stage.play("[[worker]]", settings=settings, allowed_tools=["Bash"], include_hook_events=True)


async def mcp(stage: Stage) -> None:
    await stage.play("[[mcp]]", host={"mcp_servers": {"calc": Calculator()}, "can_use_tool": allow})


async def interrupt(stage: Stage) -> None:
    async with stage.session(include_partial_messages=True) as session:
        await session.query("[[stall]]")
        async for message in session.receive_response():
            if isinstance(message, StreamEvent) and message.text_delta:
                await session.interrupt()
                break
        with suppress(TurnError):
            async for _ in session.receive_response():
                pass
        await run(session, "[[again]]")


async def requests(stage: Stage) -> None:
    (stage.work / "below").mkdir()
    async with stage.session(model="claude-sonnet-4-5") as session:
        await run(session, "[[text]]")
        for request in every_request():
            with suppress(RequestError, PayloadError):
                await session.request(request)


async def structured(stage: Stage) -> None:
    await stage.play("[[structured]]", "[[unfit]]", json_schema=SCHEMA)


async def resume(stage: Stage) -> None:
    prompt = UserMessage.of("[[text]]", uuid=PROMPT_ID)
    again = {"resume": SESSION_ID}
    ways: list[dict[str, Any]] = [{"session_id": SESSION_ID}, again, {**again, "fork_session": True}]
    for flags in ways:
        async with stage.session(replay_user_messages=True, **flags) as session:
            await run(session, prompt)
            await run(session, "[[again]]")


async def subagent(stage: Stage) -> None:
    await stage.play("[[agent]]", "[[behind]]", allowed_tools=["Bash"], forward_subagent_text=True)


async def task(stage: Stage) -> None:
    async with stage.session(allowed_tools=["Bash"]) as session:
        await session.query("[[task]]")
        started: list[str] = []
        async for message in session.receive_response():
            started += [message.task_id] if isinstance(message, TaskStartedMessage) else []
        for task_id in started:
            await session.request(StopTaskRequest(task_id=task_id))
        await run(session, "[[again]]")


async def compact(stage: Stage) -> None:
    await stage.play("[[text]]", "/compact [[summary]]", "/context", "[[again]]")


async def limits(stage: Stage) -> None:
    await stage.play("[[endless]]", max_turns=2, allowed_tools=["Bash"])
    await stage.play("[[endless]]", max_budget_usd=0.0001, allowed_tools=["Bash"])


async def errors(stage: Stage) -> None:
    failing = [name for name in SCRIPTS if name.startswith(("error_", "cut"))]
    await stage.play(*(f"[[{name}]]" for name in failing), include_partial_messages=True)


SCENARIOS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    scenario.__name__: scenario
    for scenario in (
        *(partial, permission, hooks, command_hooks, mcp, interrupt, requests),
        *(structured, resume, subagent, task, compact, limits, errors),
    )
}
