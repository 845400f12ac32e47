import anyio

from claude_wire import CanUseToolRequest
from claude_wire.testing import open_agent


async def answer(turn):
    outcome = await turn.run_tool("Bash", {"command": "rm a"}, lambda given: "removed")
    await turn.say(outcome.content)


def policy(request: CanUseToolRequest):
    return request.allow() if request.tool_name == "Read" else request.deny("Read only.")


async def main():
    async with open_agent(answer, can_use_tool=policy) as session:
        print((await session.ask("Clean up")).result)  # Read only.


anyio.run(main)
