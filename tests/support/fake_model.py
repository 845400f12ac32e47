"""An agent that gives the same answers as the fake model with which the recordings were made."""

from __future__ import annotations

import json
from typing import Any

import anyio

from claude_wire.agent import Turn

__all__ = ["fake_model"]

#: A scripted command with this prefix fails. Other commands print the words that they echo.
FAILS = "exit "


async def fake_model(turn: Turn) -> None:
    """Answer a prompt: play a ``SCRIPT`` of messages, stream slowly for ``SLOW``, or repeat the prompt."""
    text = turn.text
    if text.startswith("SCRIPT "):
        for message in json.loads(text[7:]):
            await _message(turn, message)
    elif text.startswith("SLOW"):
        for _ in range(300):
            await turn.stream("slow ")
            await anyio.sleep(0.1)
    else:
        answer = f"Hello from the fake API. You said: {text}"
        third = -(-len(answer) // 3)
        for start in range(0, len(answer), third):
            await turn.stream(answer[start : start + third])


async def _message(turn: Turn, blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        if block["type"] == "text":
            await turn.say(block["text"])
        else:
            await turn.run_tool(block["name"], block["input"], None if block["name"].startswith("mcp__") else _tool)


async def _tool(given: dict[str, Any]) -> str:
    command = given.get("command", "")
    if "seq 1 30" in command:
        await anyio.sleep(30)
    if command.startswith(FAILS):
        raise ValueError("Exit code 4")
    return "made"
