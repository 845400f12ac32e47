"""A program in place of the CLI. It writes a long turn of numbered lines, with questions, hooks and MCP calls.

Of twelve questions, eight ask for permission, three call a hook and one calls the MCP server "tools". At most eight
questions are open at a time. The program repeats each answer in its output, so a test can see the answer. A prompt with
the uuid :data:`LAST` ends the questions. Then a short turn follows for each prompt; its result says whether the prompt
arrived during a turn.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from typing import Any

MAX_WAITING = 8
#: The uuid of the last prompt. The program asks no questions after it.
LAST = "last"


class Agent:
    """The state of the program: the lines it writes, and the questions that are open."""

    def __init__(self) -> None:
        self.numbers = count()
        self.waiting: set[str] = set()
        #: Uuid of a prompt -> whether it arrived during a turn.
        self.prompts: dict[str, bool] = {}
        self.seen: set[str] = set()
        self.count = 0
        self.asks = False

    def say(self, **message: Any) -> None:
        """Write a message with a new uuid."""
        self.count += 1
        sys.stdout.write(json.dumps({**message, "uuid": f"u{self.count}"}) + "\n")

    def text(self, text: str = "x") -> None:
        """Write two deltas and the assistant message to which they belong."""
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for _ in range(2):
            self.say(type="stream_event", event=delta, session_id="s", parent_tool_use_id=None)
        body = {"id": "m", "role": "assistant", "model": "x", "content": [{"type": "text", "text": text}]}
        self.say(type="assistant", message=body, session_id="s", parent_tool_use_id=None)

    def ask(self, id: str, **request: Any) -> None:
        """Write a control request."""
        self.waiting.add(id)
        self.say(type="control_request", request_id=id, request=request)

    def question(self, number: int) -> None:
        """Ask question ``number``: a permission question, a hook or an MCP call."""
        if number % 12 == 5:
            self.mcp(f"mcp-{number}", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {}})
        elif number % 3 == 2:
            about = {"session_id": "s", "transcript_path": "/t", "cwd": "/", "tool_name": "Bash", "tool_input": {}}
            event = {"hook_event_name": "PreToolUse", **about}
            self.ask(f"hook-{number}", subtype="hook_callback", callback_id="PreToolUse::guard", input=event)
        else:
            self.ask(f"may-{number}", subtype="can_use_tool", tool_name="Bash", input={}, tool_use_id=f"t{number}")

    def mcp(self, id: str, message: dict[str, Any]) -> None:
        """Send a message to the MCP server "tools"."""
        self.ask(id, subtype="mcp_message", server_name="tools", message=message)

    def go_on(self) -> None:
        """Ask until MAX_WAITING questions are open. After the last prompt, write the short turns."""
        while self.asks and len(self.waiting) < MAX_WAITING:
            self.text()
            self.question(next(self.numbers))
        while not self.asks and not self.waiting and self.prompts:
            self.say(type="system", subtype="init", session_id="s", cwd="/", tools=[], model="x")
            uuid = next(iter(self.prompts))
            result = "busy" if self.prompts.pop(uuid) else "idle"
            said = {"is_error": False, "result": result, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
            self.say(type="result", subtype="success", session_id="s", user_message_uuids=[uuid], **said)
        sys.stdout.flush()

    def take(self, message: dict[str, Any]) -> None:
        """Handle a line from the host."""
        if message["type"] == "control_request":
            response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            self.say(type="control_response", response=response)
            self.mcp("mcp-hello", {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {}})
        elif message["type"] == "control_response":
            id = message["response"]["request_id"]
            assert id in self.waiting, f"{id} was answered twice"
            self.waiting.discard(id)
            self.text(f"taken {id}")
            if id == "mcp-hello":
                self.mcp("mcp-ready", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        elif message["type"] == "user":
            assert message["uuid"] not in self.seen, "a prompt came twice"
            self.asks = message["uuid"] != LAST and (self.asks or not self.seen)
            self.prompts[message["uuid"]] = bool(self.seen)
            self.seen.add(message["uuid"])
        self.go_on()


if __name__ == "__main__":
    agent = Agent()
    for line in sys.stdin:
        agent.take(json.loads(line))
