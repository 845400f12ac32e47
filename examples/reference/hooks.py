import anyio

from claude_wire import HookMatcher, HookOutput
from claude_wire.messages import PreToolUseHookSpecificOutput
from claude_wire.testing import open_agent


async def answer(turn):
    outcome = await turn.run_tool("Bash", {"command": "rm a"}, lambda given: "removed")
    await turn.say(outcome.content)


async def refuse(request):
    decision = PreToolUseHookSpecificOutput(permissionDecision="deny", permissionDecisionReason="Keep it.")
    return HookOutput(hookSpecificOutput=decision)


async def main():
    async with open_agent(answer, hooks={"PreToolUse": [HookMatcher(refuse, matcher="Bash")]}) as session:
        print((await session.ask("Clean up")).result)  # PreToolUse:Bash hook error: Keep it.


anyio.run(main)
