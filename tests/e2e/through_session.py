"""The conversations of through_sdk.py, held through `open_session`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    HookCallbackRequest,
    HookMatcher,
    ProcessError,
    RequestRefusedError,
    Session,
    StreamEvent,
    TurnError,
    UserMessage,
    open_session,
)
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.messages import PermissionResult, PreToolUseHookInput
from places import CLI, Place
from through_sdk import DEADLINE, FEW_RETRIES, calculator

__all__ = ["CONVERSATIONS", "Talk", "hold", "plain_answer"]

#: Names the host to the CLI as claude-agent-sdk does, so that both receive the same messages from the CLI.
HOST = {"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}


@dataclass
class Talk:
    """Runs sessions in one place, one after another, and records their messages, calls, answers and error."""

    place: Place
    #: Messages in the order of arrival.
    messages: list[Any] = field(default_factory=list)
    #: Calls of callbacks and tools, in the order of the calls, as plain values.
    calls: list[Any] = field(default_factory=list)
    #: For each request of the host: its subtype, and the answer or the error.
    answers: list[tuple[str, Any]] = field(default_factory=list)
    #: The exception that ended the iteration, if any.
    error: ProcessError | TurnError | None = None

    def session(
        self, *, env: Mapping[str, str] | None = None, host: Mapping[str, Any] | None = None, **options: Any
    ) -> Session:
        """Return a session that is not started: `options` are flags of the CLI, `host` arguments of `open_session`."""
        argv = ClaudeOptions(cli_path=CLI, system_prompt="", **options)
        environment = {**self.place.environment, **HOST, **(env or {})}
        return open_session(argv, cwd=self.place.work, env=environment, **(host or {}))

    async def query(self, session: Session, prompt: str, uuid: str | None = None) -> None:
        """Send a prompt as claude-agent-sdk does: without a uuid by default, since the CLI reports more about uuids."""
        await session.query(UserMessage.of(prompt, session_id="default", uuid=uuid))

    async def turn(self, session: Session) -> None:
        """Record the messages through the next result."""
        async for message in session.receive_response():
            self.messages.append(message)

    async def run(self, session: Session) -> None:
        """Record the messages through the end of the run."""
        async for message in session.receive_run():
            self.messages.append(message)

    async def rest(self, session: Session) -> None:
        """Record the messages through the end of the output."""
        try:
            async for message in session:
                self.messages.append(message)
        except (ProcessError, TurnError) as error:
            self.error = error

    async def ask(self, *prompts: str, **more: Any) -> None:
        """Send prompts in a new session, close its input, and record all messages."""

        async def messages() -> AsyncIterator[UserMessage]:
            for prompt in prompts:
                yield UserMessage.of(prompt, session_id="default")

        async with self.session(**more) as session:
            await session.query(messages())
            if "host" in more:
                # The answers of callbacks go through the input, so keep the input open until the run ends.
                await self.run(session)
            await session.end_input()
            await self.rest(session)

    async def request(self, session: Session, request: Any) -> None:
        """Send a control request, and record the answer or the error."""
        try:
            answer = plain_answer(await session.request(request))
        except RequestRefusedError as error:
            answer = error.error
        self.answers.append((request.to_dict()["subtype"], answer))


def plain_answer(answer: Any) -> Any:
    """Convert a typed answer to a plain dict."""
    return answer.to_dict() if hasattr(answer, "to_dict") else answer


# --- The conversations ------------------------------------------------------------------------------------------------


def _plain(name: str, **options: Any) -> Callable[[Talk], Awaitable[None]]:
    async def conversation(talk: Talk) -> None:
        await talk.ask(f"[[{name}]]", **options)

    return conversation


def _failing(name: str) -> Callable[[Talk], Awaitable[None]]:
    return _plain(name, include_partial_messages=True, env=FEW_RETRIES)


async def permission(talk: Talk) -> None:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.input, request.tool_use_id))
        if request.tool_name == "Write":
            return request.allow({**request.input, "content": "as the host wanted it"})
        if "refused" in request.input["command"]:
            return request.deny("Not today")
        return request.allow()

    async with talk.session(host={"can_use_tool": ask}) as session:
        await talk.query(session, "[[permission]]")
        await talk.turn(session)


async def hooks(talk: Talk) -> None:
    async def note(request: HookCallbackRequest) -> Any:
        given = request.input
        plain = given.to_dict()
        talk.calls.append(
            (plain["hook_event_name"], plain.get("tool_name"), plain.get("tool_input"), request.tool_use_id)
        )
        if isinstance(given, PreToolUseHookInput) and "forbidden" in given.tool_input["command"]:
            # A callback may also return a plain dict.
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "A hook said no",
                }
            }
        return None

    matchers = {
        "UserPromptSubmit": [HookMatcher(note)],
        "PreToolUse": [HookMatcher(note, matcher="Bash")],
        "PostToolUse": [HookMatcher(note, matcher="Bash")],
        "Stop": [HookMatcher(note)],
    }
    options = {"allowed_tools": ["Bash"], "include_hook_events": True}
    async with talk.session(host={"hooks": matchers}, **options) as session:
        await talk.query(session, "[[hooks]]")
        await talk.turn(session)


async def command_hooks(talk: Talk) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo from the hook"}]}
    settings = {"hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}}
    await talk.ask("[[hooks]]", settings=settings, allowed_tools=["Bash"], include_hook_events=True)


async def mcp(talk: Talk) -> None:
    allowed = ["mcp__calc__add", "mcp__calc__fail"]
    await talk.ask(
        "[[mcp]]",
        host={"mcp_servers": {"calc": InProcessMcpServer(calculator(talk.calls)["instance"])}},
        allowed_tools=allowed,
    )


async def interrupt(talk: Talk) -> None:
    async with talk.session(include_partial_messages=True) as session:
        interrupted = False
        await talk.query(session, "[[stall]]")
        async for message in session.receive_response():
            talk.messages.append(message)
            # Interrupt at content block 1: by then the model has written all its text.
            if isinstance(message, StreamEvent) and getattr(message.event, "index", 0) == 1 and not interrupted:
                interrupted = True
                await session.interrupt()
        await talk.query(session, "[[again]]")
        await talk.turn(session)


async def set_model(talk: Talk) -> None:
    async with talk.session(model="claude-sonnet-4-5") as session:
        await talk.query(session, "[[simple]]")
        await talk.turn(session)
        await session.set_model("claude-haiku-4-5")
        await talk.query(session, "[[again]]")
        await talk.turn(session)


THREE: Sequence[str] = ("[[slow]]", "[[simple]]", "[[again]]")


async def queued(talk: Talk) -> None:
    async with talk.session() as session:
        for prompt in THREE:
            await talk.query(session, prompt)
        # The CLI answers the first prompt in one turn, and the two queued prompts together in a second turn.
        await talk.turn(session)
        await talk.turn(session)


async def three_in_a_stream(talk: Talk) -> None:
    await talk.ask(*THREE)


CONVERSATIONS: dict[str, Callable[[Talk], Awaitable[None]]] = {
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
    "three_in_a_stream": three_in_a_stream,
    "max_turns": _plain("endless", max_turns=2, allowed_tools=["Bash"]),
    "unicode": _plain("unicode", include_partial_messages=True),
    "long": _plain("long", include_partial_messages=True),
    "huge": _plain("huge", include_partial_messages=True),
    "huge_at_once": _plain("huge_at_once", include_partial_messages=True),
    **{name: _failing(name) for name in ("error_400", "error_401", "error_429", "error_500", "overloaded")},
}


async def hold(conversation: Callable[[Talk], Awaitable[None]], talk: Talk) -> None:
    """Run one conversation. Raise TimeoutError if it takes longer than DEADLINE."""
    with anyio.fail_after(DEADLINE):
        await conversation(talk)
