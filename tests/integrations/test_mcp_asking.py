"""Messages that an in-process MCP server sends unprompted: notifications, and requests to its client."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from async_backends import Backend, every_backend

pytest.importorskip("mcp")

import mcp.types

from mcp_servers import Client, Context, MCPServer, Message, connected, settled


@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@every_backend
async def test_notifications_are_sent_before_the_result_and_in_order() -> None:
    server = MCPServer("notifier")

    @server.tool()
    async def work(ctx: Context) -> str:
        await ctx.report_progress(1, 2)
        await ctx.session.send_log_message(level="info", data="half")
        await ctx.session.send_tool_list_changed()
        await ctx.report_progress(2, 2)
        return "done"

    async with connected(server) as client:
        await client.call("work")
        assert [message["method"] for message in client.sent] == [
            "notifications/progress",
            "notifications/message",
            "notifications/tools/list_changed",
            "notifications/progress",
        ]
        assert all(message["jsonrpc"] == "2.0" and "id" not in message for message in client.sent)
        assert client.sent[0]["params"] == {"progressToken": 7, "progress": 1.0, "total": 2.0}
        assert client.sent[1]["params"] == {"level": "info", "data": "half"}


def asking(answers: list[Any]) -> Any:
    """Return a server whose tool sends an elicitation request to the client."""
    server = MCPServer("asking")

    @server.tool()
    async def who(ctx: Context) -> str:
        try:
            answers.append(await ctx.session.elicit_form("Who?", {"type": "object", "properties": {}}))
        except Exception as error:
            answers.append(str(error))
        return "asked"

    return server


@every_backend
async def test_a_request_of_the_server_is_sent_and_its_answer_comes_back() -> None:
    """The server may send any request, whatever the client has declared. The client refuses unsupported ones."""
    answers: list[Any] = []
    async with connected(asking(answers)) as client, anyio.create_task_group() as group:
        group.start_soon(client.call, "who")
        request = await client.until_sent("elicitation/create")
        assert request["params"]["message"] == "Who?"
        result = {"action": "accept", "content": {"name": "Bob"}}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        assert await client.server.handle(answer) is None
        await settled(lambda: bool(answers))
        assert (answers[0].action, answers[0].content) == ("accept", {"name": "Bob"})

        client.sent.clear()
        group.start_soon(client.call, "who")
        request = await client.until_sent("elicitation/create")
        error = {"code": -32601, "message": "Method not found"}
        assert await client.server.handle({"jsonrpc": "2.0", "id": request["id"], "error": error}) is None
        await settled(lambda: len(answers) == 2)
        assert answers[1] == "Method not found"


@every_backend
async def test_a_ping_of_the_server_is_answered() -> None:
    server = MCPServer("pinging")

    @server.tool()
    async def ping(ctx: Context) -> str:
        await ctx.session.send_ping()
        return "answered"

    async with connected(server) as client:
        assert (await client.call("ping"))["content"][0]["text"] == "answered"
        assert client.sent == []


@every_backend
def test_a_failing_send_costs_the_message_and_not_the_server(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        answers: list[Any] = []
        client = Client(asking(answers))

        async def send(message: Message) -> None:
            raise ConnectionError("secret")

        client.server.connect(send)
        await client.initialize()
        assert (await client.call("who"))["content"][0]["text"] == "asked"
        assert answers == ["not sent to the client: ConnectionError"]
        await client.server.aclose()

    backend.run(main)
    ours = [record.getMessage() for record in caplog.records if record.name == "claude_wire"]
    assert ours == ["a message of the MCP server 'asking' was not sent: ConnectionError"]


@every_backend
async def test_lone_surrogates_pass_in_both_directions() -> None:
    server = MCPServer("odd")

    @server.tool()
    def cut() -> Any:
        return mcp.types.TextContent(type="text", text="cut \ud83d")

    async with connected(server) as client:
        assert (await client.call("cut", unused="\ud83d"))["content"][0]["text"] == "cut \ud83d"
