import anyio

from claude_wire.testing import open_agent


async def answer(turn):
    await turn.say("4")


async def main():
    async with open_agent(answer) as session:
        print((await session.ask("What is 2 + 2?")).result)  # 4


anyio.run(main)
