"""The types of the sync API. test_typing.py runs type checkers on this file; nothing executes it."""

from typing_extensions import assert_type

import claude_wire
from claude_wire import CanUseToolRequest, ClaudeOptions, InvalidLine, Message, ResultMessage, sync
from claude_wire.messages import (
    InitializeResponse,
    InterruptResponse,
    McpSetServersResponse,
    McpStatusRequest,
    McpStatusResponse,
    PermissionResult,
    SetModelResponse,
)


def decide(request: CanUseToolRequest) -> PermissionResult:
    return request.allow()


def what_one_prompt_gives() -> None:
    assert_type(sync.ask("text"), ResultMessage)
    assert_type(claude_wire.sync.ask("text", ClaudeOptions(), can_use_tool=decide, cwd="/"), ResultMessage)
    sync.ask("text", model="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def what_a_session_gives() -> None:
    with sync.open_session(ClaudeOptions(), can_use_tool=decide) as session:
        assert_type(session, sync.Session)
        assert_type(session.session, claude_wire.Session)
        assert_type(session.info, InitializeResponse | None)
        assert_type(session.ask("text"), ResultMessage)
        assert_type(session.request(McpStatusRequest()), McpStatusResponse)
        assert_type(session.interrupt(), InterruptResponse)
        assert_type(session.set_mcp_servers({"b": {"command": "b"}}), McpSetServersResponse)
        assert_type(session.set_model(None), SetModelResponse)
        for message in session:
            assert_type(message, Message | InvalidLine)
        for message in session.receive_response():
            assert_type(message, Message | InvalidLine)
        for batch in session.batches():
            assert_type(batch, list[Message | InvalidLine])
        session.ask(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
