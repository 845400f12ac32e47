"""Messages as the CLI writes them, reduced to the fields that the tests need."""

from __future__ import annotations

import json
from typing import Any

__all__ = [
    "assistant",
    "block_start",
    "call",
    "delta",
    "event",
    "line",
    "result",
    "returned",
    "start",
    "stop",
    "system",
]


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def event(event: dict[str, Any], id: str = "m", parent: str | None = None) -> dict[str, Any]:
    return {
        "type": "stream_event",
        "event": event,
        "api_message_id": id,
        "session_id": "s",
        "parent_tool_use_id": parent,
    }


def start(id: str = "m", parent: str | None = None) -> dict[str, Any]:
    return event({"type": "message_start", "message": {"id": id, "role": "assistant", "content": []}}, id, parent)


def block_start(index: int = 0, kind: str = "text", **where: Any) -> dict[str, Any]:
    block = {"type": "text", "text": ""} if kind == "text" else {"type": "thinking", "thinking": "", "signature": ""}
    return event({"type": "content_block_start", "index": index, "content_block": block}, **where)


def delta(text: str, index: int = 0, kind: str = "text", **where: Any) -> dict[str, Any]:
    return event(
        {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: text}}, **where
    )


def stop(index: int = 0, **where: Any) -> dict[str, Any]:
    return event({"type": "content_block_stop", "index": index}, **where)


def assistant(*blocks: dict[str, Any] | str, id: str = "m", parent: str | None = None, **others: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    message = {"id": id, "role": "assistant", "content": content}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "s", **others}


def call(id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def returned(id: str, content: Any, parent: str | None = None, **others: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, **others}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": parent}


def result(**others: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, **others}


def system(subtype: str, **others: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **others}
