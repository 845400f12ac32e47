import anyio

from claude_wire.agent import Agent, Turn
from claude_wire.testing import open_agent


async def answer(turn: Turn):
    await turn.say(f"You said: {turn.text}")


async def main():
    async with open_agent(Agent(answer, model="my-model")) as session:
        print((await session.ask("Hi")).result)  # You said: Hi


anyio.run(main)
