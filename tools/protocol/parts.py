"""Handwritten lines with parts that no class fits: their tag is unknown, or their values have a wrong type.

Each row has a name, the schema, the line, and the parts that a decoder keeps as dicts: each part's type and the JSON
pointer to it. A row without such parts is a valid line that looks unknown.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from protocol.vocabulary import Name

__all__ = ["MISFIT_PARTS", "UNKNOWN_PARTS", "Row"]

Row: TypeAlias = tuple[str, Name, Any, list[tuple[str, str]]]


def _assistant(*blocks: Any, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": list(blocks), **more}}


def _user(*blocks: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}}


def _event(event: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": event}


def _delta(delta: Any) -> dict[str, Any]:
    return _event({"type": "content_block_delta", "index": 0, "delta": delta})


def _request(request: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": "1", "request": request}


def _hook(hook_input: Any) -> dict[str, Any]:
    return _request({"subtype": "hook_callback", "callback_id": "hook_0", "input": hook_input})


_TEXT = {"type": "text", "text": "Hello"}
_NEW = {"type": "of_tomorrow", "text": "Hello"}
_LINE = [("line", "")]
_PLACE = {"session_id": "s", "transcript_path": "/t", "cwd": "/"}

UNKNOWN_PARTS: list[Row] = [
    ("an empty object", "output", {}, _LINE),
    ("no type", "output", {"session_id": "s"}, _LINE),
    ("an unknown type", "output", {"type": "of_tomorrow", "uuid": "1"}, _LINE),
    ("an empty type", "output", {"type": ""}, _LINE),
    ("a type that is a number", "output", {"type": 1}, _LINE),
    ("a type that is null", "output", {"type": None}, _LINE),
    ("a type in other letters", "output", {"type": "Assistant", "message": {}}, _LINE),
    ("an unknown subtype", "output", {"type": "system", "subtype": "of_tomorrow"}, _LINE),
    ("no subtype", "output", {"type": "system"}, _LINE),
    ("a subtype that is a number", "output", {"type": "system", "subtype": 1}, _LINE),
    ("a subtype of a result that is null", "output", {"type": "result", "subtype": None}, _LINE),
    ("a result of an unknown subtype is a result", "output", {"type": "result", "subtype": "error_of_tomorrow"}, []),
    ("a result without a subtype is a result", "output", {"type": "result", "is_error": True}, []),
    ("an unknown key", "output", {"type": "keep_alive", "of_tomorrow": {"a": [1]}}, []),
    ("an unknown key in a block", "output", _assistant({**_TEXT, "of_tomorrow": 1}), []),
    ("a key in other letters is another key", "output", {"type": "keep_alive", "Type": 1}, []),
    ("an unknown word of an open set", "output", _assistant(_TEXT, stop_reason="of_tomorrow"), []),
    (
        "an unknown block between known ones",
        "output",
        _assistant(_TEXT, _NEW, _TEXT),
        [("block", "/message/content/1")],
    ),
    ("a block without a type", "output", _assistant({"text": "Hello"}), [("block", "/message/content/0")]),
    (
        "an unknown block in a tool result",
        "output",
        _user({"type": "tool_result", "tool_use_id": "t", "content": [_TEXT, _NEW]}),
        [("block", "/message/content/0/content/1")],
    ),
    (
        "an unknown citation",
        "output",
        _assistant({**_TEXT, "citations": [_NEW]}),
        [("object", "/message/content/0/citations/0")],
    ),
    ("an unknown event", "output", _event(_NEW), [("event", "/event")]),
    ("an unknown delta", "output", _delta(_NEW), [("delta", "/event/delta")]),
    (
        "an unknown block that starts",
        "output",
        _event({"type": "content_block_start", "index": 0, "content_block": _NEW}),
        [("block", "/event/content_block")],
    ),
    ("an unknown request", "output", _request({"subtype": "of_tomorrow"}), [("request", "/request")]),
    ("a request without a subtype", "output", _request({"tool_name": "Bash"}), [("request", "/request")]),
    (
        "an unknown hook event",
        "output",
        _hook({"hook_event_name": "Sunrise", **_PLACE}),
        [("hook_input", "/request/input")],
    ),
    (
        "an answer that is neither success nor error",
        "output",
        {"type": "control_response", "response": {"subtype": "of_tomorrow", "request_id": "1"}},
        [("object", "/response")],
    ),
    ("a prompt with an unknown block", "input", _user(_NEW), [("block", "/message/content/0")]),
    ("an unknown request of a host", "input", _request({"subtype": "of_tomorrow"}), [("request", "/request")]),
    ("an unknown type of a host", "input", {"type": "of_tomorrow", "allow": 1}, _LINE),
    ("an unknown record", "records", {"type": "of_tomorrow", "uuid": "1"}, _LINE),
    (
        "an unknown attachment",
        "records",
        {"type": "attachment", "uuid": "1", "attachment": _NEW},
        [("object", "/attachment")],
    ),
]

MISFIT_PARTS: list[Row] = [
    ("content that is a number", "output", {"type": "user", "message": {"role": "user", "content": 5}}, _LINE),
    ("a block that is a text", "output", _assistant("Hello"), _LINE),
    ("a block that is null", "output", _assistant(_TEXT, None), _LINE),
    ("a list of blocks that is an object", "output", _assistant() | {"message": {"role": "a", "content": {}}}, _LINE),
    ("a text that is null", "output", _assistant({"type": "text", "text": None}), [("block", "/message/content/0")]),
    (
        "one of three blocks is wrong, and one unknown",
        "output",
        _assistant(_TEXT, {"type": "text"}, _NEW),
        [("block", "/message/content/1"), ("block", "/message/content/2")],
    ),
    (
        "a wrong block in a tool result",
        "output",
        _user({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": 1}]}),
        [("block", "/message/content/0/content/0")],
    ),
    (
        "a wrong block around an unknown one is kept as a whole",
        "output",
        _user({"type": "tool_result", "tool_use_id": 1, "content": [_NEW]}),
        [("block", "/message/content/0")],
    ),
    (
        "an index with a fraction",
        "output",
        _event({"type": "content_block_stop", "index": 1.5}),
        [("event", "/event")],
    ),
    ("an index that is true", "output", _event({"type": "content_block_stop", "index": True}), [("event", "/event")]),
    ("an index that is a text", "output", _event({"type": "content_block_stop", "index": "1"}), [("event", "/event")]),
    ("an event that is a list", "output", _event([]), _LINE),
    ("a flag that is a number", "output", {"type": "result", "subtype": "success", "is_error": 1}, _LINE),
    ("a flag that is a text", "output", {"type": "result", "subtype": "success", "is_error": "false"}, _LINE),
    ("a number that is a text", "output", {"type": "result", "subtype": "success", "duration_ms": "1"}, _LINE),
    ("one model of many is a text", "output", {"type": "result", "modelUsage": {"a": "b"}}, _LINE),
    ("a list with a number among texts", "output", {"type": "system", "subtype": "init", "tools": ["a", 1]}, _LINE),
    ("a reply that is a text", "input", {"allow": "yes"}, _LINE),
    (
        "a wrong rule in a permission question",
        "output",
        _request(
            {
                "subtype": "can_use_tool",
                "tool_name": "Bash",
                "input": {},
                "permission_suggestions": [{"type": "setMode", "mode": 1, "destination": "session"}],
            }
        ),
        [("object", "/request/permission_suggestions/0")],
    ),
]
