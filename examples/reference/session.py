import anyio

from claude_wire import ClaudeOptions, open_session


async def main():
    async with open_session(ClaudeOptions(model="sonnet")) as session:
        result = await session.ask("Hello")
        print(result.ok, result.total_cost_usd)  # True 0.0001


anyio.run(main)
