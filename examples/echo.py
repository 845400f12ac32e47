#!/usr/bin/env -S claude-wire agent
"""An agent that says again what it is told, word by word.

    claude-wire agent examples/echo.py -p "Hello, my world"

Any host of the Claude Code CLI drives it: ClaudeAgentOptions(cli_path="examples/echo.py") of the Python SDK, or
pathToClaudeCodeExecutable of the TypeScript SDK. Put your model in the place of ``words``.
"""

from collections.abc import AsyncIterator

from claude_wire.agent import Turn


async def words(text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word + " "


async def answer(turn: Turn) -> None:
    await turn.stream(words(f"You said: {turn.text}"))
