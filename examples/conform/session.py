"""This library's Session as a host: ``claude-wire conform -- python examples/conform/session.py``."""

import anyio
import host
from mcp.server import MCPServer

import claude_wire as wire
from claude_wire.integrations.mcp import InProcessMcpServer


def show_message(message):
    match message:
        case wire.messages.StreamEvent():
            host.show_event(message.to_dict()["event"])
        case wire.messages.InitMessage():
            host.show_keys("init", "session_id", message)
        case wire.messages.ResultMessage():
            host.show_keys("result", "subtype is_error result structured_output", message)
        case wire.messages.RateLimitEvent():
            host.show_keys("rate_limit", "status", message.rate_limit_info)
        case wire.messages.UnknownMessage(type=type, subtype=subtype):
            host.show("unknown", name=f"{type}/{subtype}" if subtype else type)
        case wire.messages.UserMessage(tool_results=[]):
            host.show("user", text=message.text)
        case wire.messages.UserMessage() | wire.messages.AssistantMessage():
            for block in message.content:
                if isinstance(block, wire.messages.UnknownBlock):
                    host.show("unknown", name=block.type)
                else:
                    line = block.to_dict()
                    host.show(line.pop("type"), **line)


def can_use_tool(request):
    answer = host.permission(request.tool_name, request.input)
    if answer["behavior"] == "deny":
        return request.deny(answer["message"])
    return request.allow(answer.get("updatedInput"))


def hook(event):
    return wire.HookMatcher(lambda _: host.hook_output(event))


calc = MCPServer("calc")
calc.tool("add")(lambda a, b: host.calculate("add", {"a": a, "b": b}))
calc.tool("fail")(lambda: host.calculate("fail", {}))


async def main():
    options = wire.ClaudeOptions(
        **host.OPTIONS, json_schema=host.TASK.get("schema"), replay_user_messages="replay" in host.TASK
    )
    session = wire.open_session(
        options,
        can_use_tool=can_use_tool if "permission" in host.TASK else None,
        hooks={event: [hook(event)] for event in host.TASK.get("hooks", ())},
        mcp_servers={"calc": InProcessMcpServer(calc)} if "mcp" in host.TASK else {},
    )
    async with session, anyio.create_task_group() as group:
        group.start_soon(host.do, session.query, session.interrupt)
        over = False
        while not over:  # each prompt may begin a new run
            over = not host.left
            await anyio.sleep(0.01)
            async for message in session.receive_run():
                show_message(message)


try:
    anyio.run(main)
except Exception as error:
    host.show("error", message=str(error))
