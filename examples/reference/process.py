import anyio

from claude_wire import ClaudeOptions, ResultMessage, UserMessage, open_process


async def main():
    async with open_process(ClaudeOptions().argv()) as process:
        await process.send(UserMessage.of("Hello"))
        async for message in process:
            if isinstance(message, ResultMessage):
                print(message.ok)  # True
                await process.end_input()


anyio.run(main)
