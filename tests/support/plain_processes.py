"""Helpers that open processes with messages as plain dicts, and lines for these processes."""

from __future__ import annotations

from typing import Any

from claude_wire import Decoder, Process, open_process

INIT = {"type": "system", "subtype": "init"}
RESULT = {"type": "result", "subtype": "success"}
PROMPT = {"type": "user", "message": {"role": "user", "content": "hello"}}
SECRET = "sk-ant-a-secret"


def plain(argv: list[str], **options: Any) -> Process[Any]:
    """Open a process whose messages are dicts."""
    return open_process(argv, Decoder(dict), **options)


async def everything(process: Process[Any]) -> list[Any]:
    return [message async for message in process]
