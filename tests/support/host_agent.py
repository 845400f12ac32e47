"""A program in place of the CLI. It answers each prompt with a turn.

A prompt that is a JSON object can ask for more: ``lines``, a number of text lines; ``ask``, the id of a permission
question that must be answered before the result, and ``tool``, the id of its tool call; ``mcp``, a message for the
server "tools", which also needs an answer; ``call``, the id of a tool call without a result; ``cost``, in dollars;
``stderr``, a text; ``raw``, texts to write unchanged; ``exit``, an exit code; ``hang``, to stop in the middle of the
turn. With ``--replay-user-messages`` it repeats prompts as the CLI does. It imports only the standard library, so it
starts fast.
"""

from __future__ import annotations

import json
import sys
from typing import Any

#: The answer to ``get_usage`` for a session that has used nothing.
NOTHING = {
    "total_cost_usd": 0.0,
    "total_api_duration_ms": 0,
    "total_duration_ms": 0,
    "total_lines_added": 0,
    "total_lines_removed": 0,
    "model_usage": {},
}


def say(**message: Any) -> None:
    """Write a message as a line to standard output."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def speak(*blocks: dict[str, Any]) -> None:
    """Write an assistant message."""
    body = {"id": "m", "role": "assistant", "model": "x", "content": blocks}
    say(type="assistant", message=body, session_id="cli-1", parent_tool_use_id=None, uuid="a")


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


class Agent:
    """The waiting prompts, and the question that the current turn waits for."""

    def __init__(self) -> None:
        self.prompts: list[dict[str, Any]] = []
        self.waits: str | None = None
        self.tool: str | None = None
        self.cost = 0.0

    def begin(self) -> None:
        """Begin the turn of the first prompt."""
        prompt = self.prompts[0]
        content = prompt["message"]["content"]
        if "--replay-user-messages" in sys.argv:
            say(**prompt, isReplay=True)
        try:
            wanted: dict[str, Any] = json.loads(content)
        except (ValueError, TypeError):
            wanted = {}
        say(type="system", subtype="init", session_id="cli-1", cwd="/", tools=[], model="x")
        for n in range(wanted.get("lines", 1)):
            speak(text(f"{n} {content}"))
        for piece in wanted.get("raw", ()):
            sys.stdout.write(piece)
            sys.stdout.flush()
        if "stderr" in wanted:
            sys.stderr.write(wanted["stderr"])
            sys.stderr.flush()
        if "call" in wanted:
            speak({"type": "tool_use", "id": wanted["call"], "name": "Bash", "input": {}})
        self.cost += wanted.get("cost", 0.0)
        if "exit" in wanted:
            sys.exit(wanted["exit"])
        if "ask" in wanted:
            self.waits, self.tool = wanted["ask"], wanted.get("tool")
            if self.tool is not None:
                speak({"type": "tool_use", "id": self.tool, "name": "Bash", "input": {}})
            request: dict[str, Any] = {
                "subtype": "can_use_tool",
                "tool_name": "Bash",
                "input": {},
                "tool_use_id": self.tool or "t",
            }
            say(type="control_request", request_id=self.waits, request=request)
        elif "mcp" in wanted:
            self.waits = f"mcp-{prompt['uuid']}"
            request = {"subtype": "mcp_message", "server_name": "tools", "message": wanted["mcp"]}
            say(type="control_request", request_id=self.waits, request=request)
        elif not wanted.get("hang"):
            self.end()

    def end(self) -> None:
        """End the turn, and begin the next one."""
        prompt = self.prompts.pop(0)
        said = {"is_error": False, "result": "ok", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
        spent = {"total_cost_usd": self.cost, "usage": {}}
        uuids = [prompt["uuid"]]
        say(
            type="result",
            subtype="success",
            session_id="cli-1",
            uuid=f"r-{prompt['uuid']}",
            user_message_uuids=uuids,
            **said,
            **spent,
        )
        self.waits = None
        if self.prompts:
            self.begin()

    def run(self, tool: str, is_allowed: bool) -> None:
        """Write the result of a tool call after its permission question was answered, as the CLI does."""
        decision = {"decision": "accept" if is_allowed else "reject"}
        result = {"type": "tool_result", "tool_use_id": tool, "content": "ok", "is_error": not is_allowed}
        say(
            type="user",
            message={"role": "user", "content": [result]},
            session_id="cli-1",
            tool_result_meta=[{"id": tool, "permission_decision": decision}],
        )

    def take(self, message: dict[str, Any]) -> None:
        """Handle a line from the host."""
        kind = message["type"]
        if kind == "control_request":
            subtype = message["request"]["subtype"]
            payload = {"session": {**NOTHING, "total_cost_usd": self.cost}} if subtype == "get_usage" else {}
            response = {"subtype": "success", "request_id": message["request_id"], "response": payload}
            say(type="control_response", response=response)
            if subtype == "interrupt" and self.prompts:
                self.end()
        elif kind == "control_response":
            if message["response"]["request_id"] == self.waits:
                answer = message["response"].get("response")
                if self.tool is not None:
                    self.run(self.tool, answer["behavior"] == "allow")
                speak(text("answered " + json.dumps(answer)))
                self.end()
        elif kind == "user":
            self.prompts.append(message)
            if len(self.prompts) == 1:
                self.begin()


if __name__ == "__main__":
    agent = Agent()
    for line in sys.stdin:
        agent.take(json.loads(line))
