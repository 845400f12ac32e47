"""Conversations through claude-agent-sdk, with its default transport or the one passed to `SDK`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import claude_agent_sdk
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    McpSdkServerConfig,
    PermissionResultAllow,
    PermissionResultDeny,
    StreamEvent,
    Transport,
    create_sdk_mcp_server,
)

from places import Place

__all__ = ["CONVERSATIONS", "DEADLINE", "FEW_RETRIES", "SDK", "Seen", "calculator", "hold", "user"]

#: Seconds after which a conversation fails with TimeoutError. A conversation may start the CLI three times, and on an
#: overloaded machine each start takes 20 seconds.
DEADLINE = 180
#: The CLI repeats a failed API request once. With its default number of retries a test would take minutes.
FEW_RETRIES = {"CLAUDE_CODE_MAX_RETRIES": "1"}

MakeTransport = Callable[[Any, ClaudeAgentOptions], Transport]


@dataclass
class Seen:
    """The messages, calls, answers and error that a host recorded in one conversation."""

    #: Messages in the order of arrival.
    messages: list[Any] = field(default_factory=list)
    #: Calls of callbacks and tools, in the order of the calls, as plain values.
    calls: list[Any] = field(default_factory=list)
    #: For each request of the host: its subtype, and the answer or the error.
    answers: list[tuple[str, Any]] = field(default_factory=list)
    #: The exception that ended the iteration, if any.
    error: Exception | None = None

    def of(self, kind: type) -> list[Any]:
        """Return the recorded messages of this class."""
        return [message for message in self.messages if isinstance(message, kind)]


@dataclass
class SDK:
    """Runs claude-agent-sdk in one place. `transport` makes its transport; None selects the default of the SDK."""

    place: Place
    transport: MakeTransport | None = None
    seen: Seen = field(default_factory=Seen)

    def options(self, **more: Any) -> ClaudeAgentOptions:
        """Return the options that every conversation needs, plus `more`."""
        env = {**self.place.environment, **more.pop("env", {})}
        return ClaudeAgentOptions(cwd=self.place.work, env=env, **more)

    async def query(self, prompt: Any, **more: Any) -> None:
        """Call ``query()`` of the SDK, and record its messages or its error."""
        options = self.options(**more)
        transport = self.transport and self.transport(prompt, options)
        try:
            async for message in claude_agent_sdk.query(prompt=prompt, options=options, transport=transport):
                self.seen.messages.append(message)
        except claude_agent_sdk.ClaudeSDKError as error:
            self.seen.error = error
        except Exception as error:
            # For a result with is_error the SDK raises Exception itself, not a subclass.
            if type(error) is not Exception:
                raise
            self.seen.error = error

    def client(self, **more: Any) -> ClaudeSDKClient:
        """Return a client that is not yet connected."""
        options = self.options(**more)
        return ClaudeSDKClient(options, transport=self.transport and self.transport(_nothing(), options))

    async def turn(self, client: ClaudeSDKClient) -> None:
        """Record the messages through the next result."""
        async for message in client.receive_response():
            self.seen.messages.append(message)

    async def request(self, client: ClaudeSDKClient, request: Any) -> None:
        """Send any control request, and record the answer or the error.

        The client has methods for only a few of them.
        """
        body = request.to_dict()
        assert client._query is not None
        try:
            answer: Any = await client._query._send_control_request(body)
        except Exception as error:
            # If the CLI refuses the request, the SDK raises Exception itself, not a subclass.
            if type(error) is not Exception:
                raise
            answer = str(error)
        self.seen.answers.append((body["subtype"], answer))


async def _nothing() -> AsyncIterator[dict[str, Any]]:
    """Yield nothing: ClaudeSDKClient passes such an empty prompt stream to its transport."""
    return
    yield {}


def user(prompt: str) -> dict[str, Any]:
    """Return the user message with this prompt, as a dict."""
    return {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "session_id": "default",
    }


# --- The conversations ------------------------------------------------------------------------------------------------


async def simple(sdk: SDK) -> None:
    await sdk.query("[[simple]]")


async def partial(sdk: SDK) -> None:
    await sdk.query("[[simple]]", include_partial_messages=True)


async def thinking(sdk: SDK) -> None:
    await sdk.query("[[thinking]]", include_partial_messages=True)


async def long(sdk: SDK) -> None:
    await sdk.query("[[long]]", include_partial_messages=True)


async def huge(sdk: SDK) -> None:
    await sdk.query("[[huge]]", include_partial_messages=True, max_buffer_size=1 << 24)


async def huge_at_once(sdk: SDK) -> None:
    await sdk.query("[[huge_at_once]]", include_partial_messages=True, max_buffer_size=1 << 24)


async def unicode(sdk: SDK) -> None:
    await sdk.query("[[unicode]]", include_partial_messages=True)


async def tool(sdk: SDK) -> None:
    await sdk.query("[[read]]", allowed_tools=["Read"])


async def permission(sdk: SDK) -> None:
    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, arguments, context.tool_use_id))
        if name == "Write":
            return PermissionResultAllow(updated_input={**arguments, "content": "as the host wanted it"})
        if "refused" in arguments["command"]:
            return PermissionResultDeny(message="Not today")
        return PermissionResultAllow()

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[permission]]")
        await sdk.turn(client)


async def hooks(sdk: SDK) -> None:
    async def note(given: Any, tool_use_id: str | None, context: Any) -> Any:
        sdk.seen.calls.append((given["hook_event_name"], given.get("tool_name"), given.get("tool_input"), tool_use_id))
        if given["hook_event_name"] == "PreToolUse" and "forbidden" in given["tool_input"]["command"]:
            return {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "A hook said no",
                }
            }
        return {}

    matchers = {
        "UserPromptSubmit": [HookMatcher(hooks=[note])],
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[note])],
        "PostToolUse": [HookMatcher(matcher="Bash", hooks=[note])],
        "Stop": [HookMatcher(hooks=[note])],
    }
    async with sdk.client(hooks=matchers, allowed_tools=["Bash"], include_hook_events=True) as client:
        await client.query("[[hooks]]")
        await sdk.turn(client)


async def command_hooks(sdk: SDK) -> None:
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo from the hook"}]}
    settings = json.dumps({"hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}})
    await sdk.query("[[hooks]]", settings=settings, allowed_tools=["Bash"], include_hook_events=True)


def calculator(calls: list[Any]) -> McpSdkServerConfig:
    """Return an MCP server that runs in this process. Its tool ``add`` adds two numbers; ``fail`` always fails."""

    @claude_agent_sdk.tool("add", "Add two numbers", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        calls.append(("add", arguments))
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    @claude_agent_sdk.tool("fail", "Fail", {})
    async def fail(arguments: dict[str, Any]) -> dict[str, Any]:
        calls.append(("fail", arguments))
        return {"content": [{"type": "text", "text": "it failed"}], "is_error": True}

    return create_sdk_mcp_server("calc", tools=[add, fail])


async def mcp(sdk: SDK) -> None:
    allowed = ["mcp__calc__add", "mcp__calc__fail"]
    await sdk.query("[[mcp]]", mcp_servers={"calc": calculator(sdk.seen.calls)}, allowed_tools=allowed)


async def interrupt(sdk: SDK) -> None:
    async with sdk.client(include_partial_messages=True) as client:
        interrupted = False
        await client.query("[[stall]]")
        async for message in client.receive_response():
            sdk.seen.messages.append(message)
            # Interrupt at content block 1: by then the model has written all its text.
            if isinstance(message, StreamEvent) and message.event.get("index") == 1 and not interrupted:
                interrupted = True
                await client.interrupt()
        await client.query("[[again]]")
        await sdk.turn(client)


async def set_model(sdk: SDK) -> None:
    async with sdk.client(model="claude-sonnet-4-5") as client:
        await client.query("[[simple]]")
        await sdk.turn(client)
        await client.set_model("claude-haiku-4-5")
        await client.query("[[again]]")
        await sdk.turn(client)


async def queued(sdk: SDK) -> None:
    async with sdk.client() as client:
        for prompt in ("[[slow]]", "[[simple]]", "[[again]]"):
            await client.query(prompt)
        # The CLI answers the first prompt in one turn, and the two queued prompts together in a second turn.
        await sdk.turn(client)
        await sdk.turn(client)


async def three_in_a_stream(sdk: SDK) -> None:
    async def prompts() -> AsyncIterator[dict[str, Any]]:
        for prompt in ("[[slow]]", "[[simple]]", "[[again]]"):
            yield user(prompt)

    await sdk.query(prompts())


async def max_turns(sdk: SDK) -> None:
    await sdk.query("[[endless]]", max_turns=2, allowed_tools=["Bash"])


def failing(name: str) -> Callable[[SDK], Awaitable[None]]:
    """Return a conversation in which the API answers with the error of this script."""

    async def error(sdk: SDK) -> None:
        await sdk.query(f"[[{name}]]", include_partial_messages=True, env=FEW_RETRIES)

    return error


CONVERSATIONS: dict[str, Callable[[SDK], Awaitable[None]]] = {
    **{
        conversation.__name__: conversation
        for conversation in (
            simple,
            partial,
            thinking,
            tool,
            permission,
            hooks,
            command_hooks,
            mcp,
            interrupt,
            set_model,
            queued,
            three_in_a_stream,
            max_turns,
            unicode,
            long,
            huge,
            huge_at_once,
        )
    },
    **{name: failing(name) for name in ("error_400", "error_401", "error_429", "error_500", "overloaded")},
}


async def hold(conversation: Callable[[SDK], Awaitable[None]], sdk: SDK) -> None:
    """Run one conversation. Raise TimeoutError if it takes longer than DEADLINE."""
    with anyio.fail_after(DEADLINE):
        await conversation(sdk)
