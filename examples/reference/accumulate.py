import anyio

from claude_wire import Accumulator, ClaudeOptions
from claude_wire.testing import open_agent


async def answer(turn):
    await turn.stream("Hello")


async def main():
    accumulator = Accumulator()
    async with open_agent(answer, ClaudeOptions(include_partial_messages=True)) as session:
        await session.query("Hi")
        async for message in session.receive_response():
            partial = accumulator.add(message)
            if partial is not None and partial.done:
                print(partial.text)  # Hello


anyio.run(main)
