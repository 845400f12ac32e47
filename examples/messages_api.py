#!/usr/bin/env -S claude-wire agent
"""An agent that calls a model through the Messages API. It has one tool, streams text and reports token counts.

Environment variables: ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL for another server. ``answer`` is not a coroutine
function, so it runs in a thread and calls the turn's methods without ``await``.
"""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from claude_wire.agent import Agent, PlainTurn

URL = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
READ = {"name": "Read", "description": "Read a text file.", "input_schema": SCHEMA}


def read(given: dict[str, Any]) -> str:
    return Path(given["file_path"]).read_text()


def answer(turn: PlainTurn) -> None:
    conversation = turn.session.state.setdefault("conversation", [])
    conversation.append({"role": "user", "content": turn.text})
    while not turn.cancelled:
        content = reply(turn, conversation)
        conversation.append({"role": "assistant", "content": content})
        results = []
        for block in content:
            if block["type"] == "tool_use":
                # Calls the host's hooks, asks the host for permission, reads the file, and reports the result.
                outcome = turn.run_tool(block["name"], block["input"], read)
                result = {"type": "tool_result", "tool_use_id": block["id"], "content": outcome.content}
                results.append({**result, "is_error": outcome.is_error})
        if not results:
            return
        conversation.append({"role": "user", "content": results})


def reply(turn: PlainTurn, conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stream one message from the model, and return its content blocks."""
    content: list[dict[str, Any]] = []
    pieces: list[str] = []
    for event in events(turn.session.model, conversation):
        if event["type"] == "message_start":
            turn.usage(input_tokens=event["message"]["usage"]["input_tokens"])
        elif event["type"] == "content_block_start":
            content.append(event["content_block"])
            pieces.clear()
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            pieces.append(delta.get("text") or delta.get("partial_json") or "")
            if delta["type"] == "text_delta":
                turn.stream(delta["text"])
        elif event["type"] == "content_block_stop":
            if content[-1]["type"] == "tool_use":
                content[-1]["input"] = json.loads("".join(pieces) or "{}")
            else:
                content[-1]["text"] = "".join(pieces)
        elif event["type"] == "message_delta":
            turn.usage(output_tokens=event["usage"]["output_tokens"])
        elif event["type"] == "error":
            raise RuntimeError(event["error"]["message"])
    return content


def events(model: str, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events of one reply from the API."""
    body = {"model": model, "max_tokens": 4096, "stream": True, "messages": messages, "tools": [READ]}
    headers = {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "x-api-key": os.environ["ANTHROPIC_API_KEY"],
    }
    request = urllib.request.Request(f"{URL}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as lines:
        for line in lines:
            if line.startswith(b"data:"):
                yield json.loads(line[5:])


agent = Agent(answer, model="claude-sonnet-4-5", init={"tools": ["Read"]})
