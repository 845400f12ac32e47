"""claude-agent-sdk as a host: ``claude-wire conform -- python examples/conform/agent_sdk.py``."""

import anyio
import claude_agent_sdk as sdk
import host

KINDS = {"TextBlock": "text", "ThinkingBlock": "thinking", "ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result"}


def show_message(message):
    match message:
        case sdk.StreamEvent():
            host.show_event(message.event)
        case sdk.SystemMessage(subtype="init"):
            host.show("init", session_id=message.data["session_id"])
        case sdk.SystemMessage():
            host.show_unknown(message.subtype, "system/")
        case sdk.ResultMessage():
            host.show_keys("result", "subtype is_error result structured_output", message)
        case sdk.RateLimitEvent():
            host.show_keys("rate_limit", "status", message.rate_limit_info)
        case sdk.UserMessage(content=str(text)) | sdk.UserMessage(content=[sdk.TextBlock(text)]):
            host.show("user", text=text)
        case sdk.UserMessage() | sdk.AssistantMessage():
            for block in message.content:
                host.show(KINDS[type(block).__name__], **vars(block))


async def can_use_tool(name, given, _):
    answer = host.permission(name, given)
    if answer["behavior"] == "deny":
        return sdk.PermissionResultDeny(message=answer["message"])
    return sdk.PermissionResultAllow(updated_input=answer.get("updatedInput"))


async def hook(given, _, __):
    return host.hook_output(given["hook_event_name"])


def tool(name, schema):
    async def run(given):
        return {"content": [{"type": "text", "text": host.calculate(name, given)}]}

    return sdk.tool(name, name, schema)(run)


async def main():
    calc = [tool("add", {"a": int, "b": int}), tool("fail", {})]
    options = sdk.ClaudeAgentOptions(
        **host.OPTIONS,
        can_use_tool=can_use_tool if "permission" in host.TASK else None,
        hooks={event: [sdk.HookMatcher(hooks=[hook])] for event in host.TASK.get("hooks", ())},
        mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=calc)} if "mcp" in host.TASK else {},
        output_format={"type": "json_schema", "schema": host.TASK["schema"]} if "schema" in host.TASK else None,
        extra_args={"replay-user-messages": None} if "replay" in host.TASK else {},
        max_buffer_size=2**26,
    )
    client = sdk.ClaudeSDKClient(options)

    async def prompts():
        async for text in host.prompts(client.interrupt):
            yield {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}

    try:
        await client.connect(prompts())
        async for message in client.receive_messages():
            show_message(message)
    except Exception as error:
        host.show("error", message=str(error))
    await client.disconnect()


anyio.run(main)
