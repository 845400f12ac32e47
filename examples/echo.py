#!/usr/bin/env -S claude-wire agent
"""An agent that repeats the prompt, word by word.

    claude-wire agent examples/echo.py -p "Hello, my world"

Any host of the Claude Code CLI can run it: pass ``cli_path="examples/echo.py"`` to ClaudeAgentOptions of the Python
SDK, or set pathToClaudeCodeExecutable of the TypeScript SDK. Replace ``words`` with your model.
"""

from collections.abc import AsyncIterator

from claude_wire.agent import Turn


async def words(text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word + " "


async def answer(turn: Turn) -> None:
    await turn.stream(words(f"You said: {turn.text}"))
