"""A stand-in for the CLI. Each prompt's turn has deltas, a permission question, a hook and an MCP call.

It repeats each answer on its output, so a test sees which answer arrived, and whether a second one arrived.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from typing import Any

prompts: deque[str] = deque()
asked: deque[dict[str, Any]] = deque()


def say(**message: Any) -> None:
    """Write a message as a line to standard output."""
    os.write(1, json.dumps({**message, "session_id": "cli-1"}).encode() + b"\n")


def begin() -> None:
    """Begin the turn of the first prompt."""
    uuid = prompts[0]
    say(type="system", subtype="init", cwd="/", tools=[], model="x")
    for n in range(3):
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"{n} of {uuid}"}}
        say(type="stream_event", event=delta, parent_tool_use_id=None, uuid=f"{uuid}-{n}")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {}}}
    asked.append({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"})
    asked.append({"subtype": "hook_callback", "callback_id": "h", "input": {}, "tool_use_id": "t"})
    asked.append({"subtype": "mcp_message", "server_name": "tools", "message": call})
    ask()


def ask() -> None:
    """Ask the next question of the turn, or end it."""
    if asked:
        say(type="control_request", request_id=f"{prompts[0]}-q{len(asked)}", request=asked.popleft())
        return
    uuids = [prompts.popleft()]
    say(type="result", subtype="success", is_error=False, result="ok", user_message_uuids=uuids)
    if prompts:
        begin()


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "user":
            prompts.append(message["uuid"])
            if len(prompts) == 1:
                begin()
        elif message["type"] == "control_response":
            say(type="answered", response=message["response"])
            ask()
        else:
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            say(type="control_response", response=response)
