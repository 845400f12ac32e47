"""Write one-word deltas to standard output, one line at a time, and the CPU seconds used to standard error.

``agent_writer.py plain COUNT`` uses json and print, as an author would without a library.
``agent_writer.py asyncio COUNT`` (or ``trio``) writes them with ``Agent``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid

import anyio

from claude_wire.agent import Agent, AgentOptions, Turn

WORD = "word "


def plain(count: int) -> float:
    session_id, message_id = str(uuid.uuid4()), "msg_0000"
    began = time.process_time()
    for _ in range(count):
        delta = {"type": "text_delta", "text": WORD}
        message = {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0, "delta": delta},
            "session_id": session_id,
            "parent_tool_use_id": None,
            "uuid": str(uuid.uuid4()),
            "api_message_id": message_id,
        }
        print(json.dumps(message), flush=True)
    return time.process_time() - began


async def as_agent(count: int) -> float:
    taken: list[float] = []

    async def answer(turn: Turn) -> None:
        began = time.process_time()
        for _ in range(count):
            await turn.stream(WORD)
        taken.append(time.process_time() - began)

    source, target = os.pipe()
    os.write(target, b'{"type":"user","message":{"role":"user","content":"go"}}\n')
    os.close(target)
    await Agent(answer, options=AgentOptions(include_partial_messages=True)).serve(source, 1)
    return taken[0]


if __name__ == "__main__":
    how, count = sys.argv[1], int(sys.argv[2])
    seconds = plain(count) if how == "plain" else anyio.run(as_agent, count, backend=how)
    print(seconds, file=sys.stderr)
