import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from claude_wire.integrations.agent_sdk import WireTransport


async def main():
    prompt, options = "Hello", ClaudeAgentOptions(model="sonnet")
    async for message in query(prompt=prompt, options=options, transport=WireTransport(prompt, options)):
        if isinstance(message, ResultMessage):
            print(message.is_error)  # False


asyncio.run(main())
