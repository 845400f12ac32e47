"""The types of a session. test_typing.py runs type checkers on this file; nothing executes it."""

from collections.abc import AsyncIterator
from typing import Any

from typing_extensions import assert_type

from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackRequest,
    HookMatcher,
    HookOutput,
    InvalidLine,
    McpServer,
    Message,
    MessageStream,
    PermissionResultAllow,
    PermissionResultDeny,
    Process,
    ResultMessage,
    Session,
    TurnError,
    UserMessage,
    open_session,
)
from claude_wire import ask as ask_once
from claude_wire.integrations.mcp import InProcessMcpServer
from claude_wire.messages import (
    ContentBlock,
    FileSuggestionsRequest,
    GetContextUsageRequest,
    GetContextUsageResponse,
    InitializeResponse,
    InterruptResponse,
    McpServerConfig,
    McpSetServersResponse,
    McpStatusRequest,
    McpStatusResponse,
    PermissionResult,
    SetModelResponse,
    StopTaskRequest,
)


async def what_is_received(session: Session) -> None:
    async for message in session:
        assert_type(message, Message | InvalidLine)
    async for batch in session.batches():
        assert_type(batch, list[Message | InvalidLine])
    async for message in session.receive_response():
        assert_type(message, Message | InvalidLine)
    async for message in session.receive_run(ceiling=None):
        assert_type(message, Message | InvalidLine)
    assert_type(session.info, InitializeResponse | None)
    assert_type(session.process, Process[Any] | None)


async def what_is_answered(session: Session) -> None:
    assert_type(await session.request(McpStatusRequest()), McpStatusResponse)
    assert_type(await session.request(GetContextUsageRequest(detail="summary"), timeout=5), GetContextUsageResponse)
    assert_type(await session.request(StopTaskRequest(task_id="t")), dict[str, Any])
    assert_type((await session.request(FileSuggestionsRequest(query="a"))).cwd, str | None)
    assert_type(await session.interrupt(), InterruptResponse)
    assert_type(await session.set_model(None), SetModelResponse)
    configs: dict[str, McpServer | McpServerConfig] = {"calc": InProcessMcpServer(session), "b": {"command": "b"}}
    assert_type(await session.set_mcp_servers(configs), McpSetServersResponse)
    await session.set_mcp_servers({"calc": 5})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    await session.request("interrupt")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    try:
        assert_type(await session.ask("text"), ResultMessage)
    except TurnError as error:
        assert_type(error.result, ResultMessage)


async def what_one_prompt_gives() -> None:
    assert_type(await ask_once("text"), ResultMessage)
    assert_type(await ask_once("text", ClaudeOptions(), can_use_tool=ask, cwd="/", stderr=print), ResultMessage)
    await ask_once("text", model="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await ask_once("text", ["claude"], can_use_tool=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def prompts() -> AsyncIterator[str | UserMessage]:
    yield "one"
    yield UserMessage.of("two")


async def what_is_asked(session: Session, blocks: list[ContentBlock]) -> None:
    await session.query("text", uuid="u")
    await session.query(blocks)
    await session.query(prompts())
    await session.query(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def ask(request: CanUseToolRequest) -> PermissionResult:
    assert_type(request.allow(), PermissionResultAllow)
    assert_type(request.deny("no"), PermissionResultDeny)
    return request.allow({**request.input, "more": 1})


async def hook(request: HookCallbackRequest) -> HookOutput | None:
    return None


async def plain_hook(request: HookCallbackRequest) -> dict[str, Any]:
    return {"continue": False}


async def elicit(request: ElicitationRequest) -> ElicitationResponse:
    return ElicitationResponse(action="decline")


async def wrong(request: str) -> PermissionResult:
    raise AssertionError(request)


def what_opens(server: object, stream: MessageStream[Any]) -> None:
    servers: dict[str, McpServer] = {"calc": InProcessMcpServer(server)}
    hooks = {"PreToolUse": [HookMatcher(hook, plain_hook, matcher="Bash", timeout=5, on_failure="block")]}
    session = open_session(
        ClaudeOptions(), can_use_tool=ask, hooks=hooks, mcp_servers=servers, on_elicitation=elicit, stderr=print
    )
    assert_type(session, Session)
    open_session(["claude"], can_use_tool=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    async def send(line: bytes) -> None:
        pass

    assert_type(Session(stream, send, can_use_tool=ask), Session)


def ask_plainly(request: CanUseToolRequest) -> PermissionResult:
    return request.allow()


def hook_plainly(request: HookCallbackRequest) -> HookOutput | None:
    return None


async def what_is_said_wrong(session: Session) -> None:
    assert_type(open_session(ClaudeOptions(), can_use_tool=ask_plainly), Session)
    assert_type(HookMatcher(hook_plainly, hook, on_failure="continue"), HookMatcher)
    assert_type(ClaudeOptions(permission_mode="plan", effort="high", thinking="adaptive"), ClaudeOptions)
    ClaudeOptions(permission_prompts="none", debug="hooks", managed_settings={}, project_config_root="/repo")
    ClaudeOptions(permission_prompts="nobody")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(ClaudeOptions(setting_sources=["user", "local"], thinking_display="omitted"), ClaudeOptions)
    ClaudeOptions(permission_mode="pIan")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ClaudeOptions(effort="hgih")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ClaudeOptions(setting_sources=["users"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    ClaudeOptions(cwd="/")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    open_session({"model": "x"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    open_session(["claude"], model="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    HookMatcher(hooks=[hook])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    HookMatcher(hook, on_failure="blok")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await session.set_permission_mode("plan")
    await session.set_permission_mode("pIan")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
