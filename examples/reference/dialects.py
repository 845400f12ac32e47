import anyio

from claude_wire.agent import Agent
from claude_wire.dialects import CLASSIC
from claude_wire.testing import open_agent


async def answer(turn):
    await turn.say(f"You said: {turn.text}")


async def main():
    async with open_agent(Agent(answer, dialect=CLASSIC)) as session:
        print((await session.ask("Hi")).result)  # You said: Hi


anyio.run(main)
