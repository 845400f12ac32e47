"""Every example in the five documents that the project started from decodes to a known message and encodes back.

The documents in ``data/documents`` are unchanged copies. The tests extract their examples: JSON in fenced blocks (one
object, or one per line, with arrows, comments and placeholders) and JSON within a sentence. For each TypeScript
interface and JavaScript schema this file has a handwritten example with every name of the interface. Other text that
looks like JSON or like an interface is listed with the reason to skip it; unlisted text fails.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import Counter
from typing import Any, NamedTuple

import pytest

from claude_wire import CanUseToolRequest, ControlResponse, HookCallbackRequest, UnknownMessage, decode, encode
from claude_wire.messages import McpMessageRequest, PermissionReply, Unknown
from claude_wire.messages.base import Wire
from each import each
from folders import DATA
from same_json import differences

DOCUMENTS = sorted((DATA / "documents").glob("*.md"))

#: (document, heading)
Place = tuple[str, str]


class Fence(NamedTuple):
    """A fenced code block: its place, its language, and its text without the fence."""

    place: Place
    language: str
    text: str


class Example(NamedTuple):
    """One JSON object of a document, with its placeholders filled in."""

    place: Place
    #: The number of the object under its heading, and of the alternative within the object.
    number: str
    value: dict[str, Any]


# --- values for the placeholders of the documents ---------------------------------------------------------------------

#: Replacements for every example, applied in this order.
PLACEHOLDERS = [
    (re.compile(r"\[\s*\.\.\.\s*\]"), "[]"),
    (re.compile(r"\{\s*\.\.\.\s*\}"), "{}"),
    (re.compile(r",\s*\.\.\.\s*\}"), "}"),
    (re.compile(r"(?<!:)//[^\n]*"), ""),
    (re.compile(r"\|\s*\.\.\.\s*$", re.MULTILINE), ""),
]

#: ``"a" | "b" | "c"`` in an example: test the example once with each value.
ALTERNATIVES = re.compile(r'("\w+"(?:\s*\|\s*"\w+")+)')

#: Placeholders for fields that the document names elsewhere. Each list of replacements makes one example.
FILLED_IN: dict[Place, list[list[tuple[str, str]]]] = {
    ("001", "Format"): [[('"message":{...}', '"message":{"role":"assistant","content":[]}')]],
    ("002", "3. control_response - Response to Claude Code Request"): [
        [
            ('"success" | "error"', '"success"'),
            ("{ ... } | undefined,", "{}"),
            ('"error": "error message" | undefined', ""),
        ],
        [('"success" | "error"', '"error"'), ('"response": { ... } | undefined,', ""), (" | undefined", "")],
    ],
    ("002", "3. system - Status Notifications"): [
        [(union, f'"{subtype}"'), ("// Subtype-specific fields", fields)]
        for union in ['"status" | "init" | "hook_response" | "tool_result"']
        for subtype, fields in [
            ("status", '"status": "compacting"'),
            ("init", '"cwd": "/home", "models": []'),
            ("hook_response", '"hook_event": "PreToolUse", "response": {"continue": true}'),
            ("tool_result", '"tool_use_id": "toolu_1", "content": "text"'),
        ]
    ],
    ("002", "6. control_request - Permission/Hook Request"): [
        [(union, f'"{subtype}"'), ("// ... subtype-specific fields", fields)]
        for union in ['"can_use_tool" | "hook_callback" | "mcp_message"']
        for subtype, fields in [
            ("can_use_tool", '"tool_name": "Bash", "input": {}'),
            (
                "hook_callback",
                '"callback_id": "hook_0", "input": {"hook_event_name": "Stop", "session_id": "s",'
                ' "transcript_path": "/t", "cwd": "/", "stop_hook_active": false}',
            ),
            ("mcp_message", '"server_name": "s", "message": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'),
        ]
    ],
    ("002", "7. control_response - Control Acknowledgment"): [
        [('"success" | "error"', '"success"')],
        [('"success" | "error"', '"error"'), ('"response": { ... },', '"error": "text",')],
    ],
}

#: Types of examples that do not belong to this protocol, and the reason.
OF_ANOTHER_PROTOCOL = {
    "claude_response": "what a wrapper sends to its own mobile application",
    "progress_update": "what a wrapper sends to its own mobile application",
}

#: Code blocks that do not describe a message, and what they show.
CODE: dict[Place, str] = {
    ("001", "canUseTool Hook"): "an option of the TypeScript SDK",
    ("001", "Hooks"): "an option of the TypeScript SDK",
    ("001", "Using streamInput"): "a prompt of the TypeScript SDK",
    ("001", "Parser Implementation"): "how to split lines",
    ("001", "Basic Command"): "a command line",
    ("002", "Input Validation (processLine)"): "how the CLI reads what it is sent",
    ("002", "Message Deduplication"): "how the CLI echoes a message; its frame is the example under 'user (echo)'",
    ("002", "Message Flow Summary"): "a diagram",
    ("002", "Python SDK Message Classes"): "attributes of an SDK's classes, not names of the wire",
    ("003", "Usage"): "a command line",
}

# --- a handwritten example for each interface -------------------------------------------------------------------------

_TEXT = {"type": "text", "text": "Hello"}
_TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/tmp/a"}}
_USAGE_000 = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
_RESULT_000 = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 2,
    "is_error": False,
    "num_turns": 3,
    "session_id": "s",
}
_RESULT_004 = {**_RESULT_000, "duration_ms": 1.5, "duration_api_ms": 2.5, "total_cost_usd": 0.5}
_MESSAGE_004 = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [_TEXT, _TOOL_USE],
    "model": "claude-opus-4",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


def _requests(*bodies: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "control_request", "request_id": "r", "request": body} for body in bodies]


def _answer(payload: dict[str, Any]) -> dict[str, Any]:
    return {"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": payload}}


#: Request classes, each with an answer that follows a schema in document 002.
ANSWERS_002: list[tuple[type[Any], dict[str, Any]]] = [
    (CanUseToolRequest, {"behavior": "allow", "toolUseID": "toolu_1"}),
    (CanUseToolRequest, {"behavior": "deny", "message": "no", "toolUseID": "toolu_1"}),
    (CanUseToolRequest, {"behavior": "deny", "message": "no"}),
    (CanUseToolRequest, {"behavior": "prompt", "message": "ask", "toolUseID": "toolu_1"}),
    (
        HookCallbackRequest,
        {
            "continue_": True,
            "suppressOutput": True,
            "stopReason": "text",
            "decision": "block",
            "systemMessage": "text",
            "reason": "text",
            "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"},
        },
    ),
    (McpMessageRequest, {"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {}}}),
]

#: Headings whose examples are content blocks. The test wraps each of these blocks in a user message.
BLOCK_PLACES = {
    ("000", "Text Block"),
    ("000", "Thinking Block"),
    ("000", "Tool Use Block"),
    ("000", "Tool Result Block"),
    ("003", "Text Block"),
    ("003", "Tool Use Block"),
    ("003", "Tool Result Block"),
    ("004", "TextBlock"),
    ("004", "ToolUseBlock"),
}

INTERFACES: dict[Place, list[dict[str, Any]]] = {
    ("000", 'User Message (`type: "user"`)'): [
        {"type": "user", "message": {"role": "user", "content": "Hello"}},
        {
            "type": "user",
            "message": {"role": "user", "content": [_TEXT]},
            "uuid": "u",
            "parent_tool_use_id": "toolu_1",
            "tool_use_result": {"stdout": None},
            "session_id": "s",
        },
    ],
    ("000", 'Assistant Message (`type: "assistant"`)'): [
        {"type": "assistant", "message": {"role": "assistant", "content": [], "model": "m"}, "parent_tool_use_id": "t"},
        *(
            {"type": "assistant", "message": {"role": "assistant", "content": [_TEXT], "model": "m", "error": error}}
            for error in (
                "authentication_failed",
                "billing_error",
                "rate_limit",
                "invalid_request",
                "server_error",
                "unknown",
            )
        ),
    ],
    ("000", 'System Message (`type: "system"`)'): [
        {"type": "system", "subtype": "init"},
        {"type": "system", "subtype": "status", "status": None},
    ],
    ("000", 'Result Message (`type: "result"`)'): [
        _RESULT_000,
        {
            **_RESULT_000,
            "total_cost_usd": 0.5,
            "usage": _USAGE_000,
            "result": "Done",
            "structured_output": {"answer": [1, None]},
        },
    ],
    ("000", 'Stream Event (`type: "stream_event"`)'): [
        {
            "type": "stream_event",
            "uuid": "u",
            "session_id": "s",
            "event": {"type": "content_block_stop", "index": 0},
            "parent_tool_use_id": "toolu_1",
        }
    ],
    ("000", "Text Block"): [_TEXT],
    ("000", "Thinking Block"): [{"type": "thinking", "thinking": "Hm", "signature": "sig"}],
    ("000", "Tool Use Block"): [_TOOL_USE],
    ("000", "Tool Result Block"): [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [_TEXT], "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": None},
    ],
    ("000", "Control Request (CLI → SDK)"): _requests(
        {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}},
        {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {},
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        },
        {
            "subtype": "hook_callback",
            "callback_id": "hook_0",
            "input": {
                "hook_event_name": "PreToolUse",
                "session_id": "s",
                "transcript_path": "/t",
                "cwd": "/",
                "tool_name": "Bash",
                "tool_input": {},
                "tool_use_id": "toolu_1",
            },
            "tool_use_id": "toolu_1",
        },
        {"subtype": "mcp_message", "server_name": "s", "message": {"jsonrpc": "2.0", "method": "ping", "id": 0}},
    ),
    ("000", "Control Request (SDK → CLI)"): _requests(
        {"subtype": "initialize"},
        {"subtype": "initialize", "hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}},
        {"subtype": "interrupt"},
        {"subtype": "set_permission_mode", "mode": "plan"},
        {"subtype": "set_model", "model": "opus"},
        {"subtype": "set_model", "model": None},
        {"subtype": "rewind_files", "user_message_id": "u"},
    ),
    ("000", "Control Response"): [
        _answer({"behavior": "allow", "updatedInput": {}}),
        {"type": "control_response", "response": {"subtype": "error", "request_id": "r", "error": "text"}},
    ],
    ("002", "Control Response Validation (Zod Schemas)"): [_answer(payload) for _, payload in ANSWERS_002],
    ("004", "1. Assistant Message"): [{"type": "assistant", "message": _MESSAGE_004, "session_id": "s"}],
    ("004", "2. User Message"): [{"type": "user", "message": {"role": "user", "content": [_TEXT]}, "session_id": "s"}],
    ("004", "3. Result Message - Success"): [{**_RESULT_004, "result": "Done"}],
    ("004", "4. Result Message - Error"): [
        {**_RESULT_004, "subtype": "error_max_turns", "is_error": True},
        {**_RESULT_004, "subtype": "error_during_execution", "is_error": True},
    ],
    ("004", "5. System Message - Initialization"): [
        {
            "type": "system",
            "subtype": "init",
            "apiKeySource": "none",
            "cwd": "/",
            "session_id": "s",
            "tools": ["Bash"],
            "mcp_servers": [{"name": "s", "status": "connected"}],
            "model": "m",
            "permissionMode": mode,
        }
        for mode in ("default", "acceptEdits", "bypassPermissions", "plan")
    ],
    ("004", "Message Structure"): [
        {"type": "assistant", "message": {**_MESSAGE_004, "stop_reason": reason}}
        for reason in ("end_turn", "max_tokens", "stop_sequence", "tool_use", None)
    ],
    ("004", "TextBlock"): [_TEXT],
    ("004", "ToolUseBlock"): [_TOOL_USE],
}

#: Content blocks that a document writes as TypeScript in a sentence or a table -> an example of each.
INLINE_BLOCKS: dict[str, dict[str, Any]] = {
    '{type: "text", text: string}': _TEXT,
    '{type: "tool_use", id, name, input}': _TOOL_USE,
    '{type: "tool_result", tool_use_id, content}': {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"},
    '{ type: "text", text: string }': _TEXT,
    '{ type: "tool_use", id: string, name: string, input: object }': _TOOL_USE,
    '{ type: "thinking", thinking: string, signature: string }': {
        "type": "thinking",
        "thinking": "Hm",
        "signature": "sig",
    },
    '{ type: "redacted_thinking", data: string }': {"type": "redacted_thinking", "data": "opaque"},
}

# --- reading the documents --------------------------------------------------------------------------------------------

_LOOKS_LIKE_JSON = re.compile(r'\{\s*"')


@functools.cache
def _read() -> tuple[list[Fence], list[tuple[Place, str]]]:
    """Return the fenced blocks of the documents, and all other text with its heading."""
    fences: list[Fence] = []
    prose: list[tuple[Place, str]] = []
    for path in DOCUMENTS:
        place = (path.stem, "")
        language: str | None = None
        lines: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                if language is None:
                    language = line.removeprefix("```")
                else:
                    fences.append(Fence(place, language, "\n".join(lines)))
                    language, lines = None, []
            elif language is not None:
                lines.append(line)
            elif line.startswith("#"):
                place = (path.stem, line.lstrip("#").strip())
            else:
                prose.append((place, line))
        assert language is None, f"{path.name} ends within a block"
    return fences, prose


def _objects(text: str) -> tuple[list[str], str]:
    """Return the outermost ``{...}`` objects of a text, and the text around them. Ignore braces within strings."""
    objects: list[str] = []
    around: list[str] = []
    depth = start = 0
    end = 0
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[{}]', text):
        if token.group() == "{":
            if depth == 0:
                around.append(text[end : token.start()])
                start = token.start()
            depth += 1
        elif token.group() == "}":
            depth -= 1
            if depth == 0:
                end = token.end()
                objects.append(text[start:end])
    assert depth == 0, text
    return objects, "".join([*around, text[end:]])


def _alternatives(text: str, replacements: list[list[tuple[str, str]]]) -> list[dict[str, Any]]:
    """Return the JSON objects for one object of a document: one for each combination of its alternatives."""
    values = []
    for replacement in replacements:
        filled = text
        for old, new in replacement:
            filled = filled.replace(old, new)
        for pattern, new in PLACEHOLDERS:
            filled = pattern.sub(new, filled)
        parts = ALTERNATIVES.split(filled)
        choices = [re.findall(r'"\w+"', part) if index % 2 else [part] for index, part in enumerate(parts)]
        for chosen in itertools.product(*choices):
            values.append(json.loads(re.sub(r",(\s*\})", r"\1", "".join(chosen))))
    return values


@functools.cache
def _examples() -> list[Example]:
    fences, prose = _read()
    texts = [(fence.place, fence.text) for fence in fences if fence.language in ("json", "")]
    texts += [(place, code) for place, line in prose for code in re.findall("`([^`]*)`", line)]
    examples: list[Example] = []
    count: dict[Place, int] = {}
    for place, text in texts:
        if not _LOOKS_LIKE_JSON.search(text):
            continue
        for found in _objects(text)[0]:
            count[place] = count.get(place, 0) + 1
            values = _alternatives(found, FILLED_IN.get(place, [[]]))
            for index, value in enumerate(values):
                number = f"{count[place]}" if len(values) == 1 else f"{count[place]}.{index + 1}"
                examples.append(Example(place, number, value))
    return examples


def _name(example: Example) -> str:
    return f"{example.place[0]} {example.place[1]} {example.number}"


EXAMPLES = _examples() + [
    Example(place, f"interface {number}", value)
    for place, values in INTERFACES.items()
    for number, value in enumerate(values, 1)
]


def _unknown(value: Any) -> list[Unknown]:
    if isinstance(value, Unknown):
        return [value]
    if isinstance(value, Wire):
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, dict):
        value = list(value.values())
    return [unknown for item in value for unknown in _unknown(item)] if isinstance(value, list) else []


def _line(example: Example) -> dict[str, Any]:
    if example.place in BLOCK_PLACES:
        return {"type": "user", "message": {"role": "user", "content": [example.value]}}
    return example.value


# --- the promises -----------------------------------------------------------------------------------------------------


@each("example", EXAMPLES, _name)
def test_an_example_is_known_and_comes_back(example: Example) -> None:
    value = _line(example)
    message = decode(json.dumps(value))
    if value.get("type") in OF_ANOTHER_PROTOCOL:
        assert isinstance(message, UnknownMessage)
        assert message == value
    else:
        assert [unknown.reason for unknown in _unknown(message)] == []
    assert differences(message, value, json.loads(encode(message))) == []


@pytest.mark.parametrize("code", INLINE_BLOCKS)
def test_a_block_that_a_sentence_shows_is_known_and_comes_back(code: str) -> None:
    block = INLINE_BLOCKS[code]
    names = re.findall(r"(\w+)(?=[:,}\s])", re.sub(r': *("[^"]*"|\w+)', "", code))
    assert set(names) == block.keys()
    value = {"type": "user", "message": {"role": "user", "content": [block]}}
    message = decode(json.dumps(value))
    assert _unknown(message) == []
    assert differences(message, value, json.loads(encode(message))) == []


@pytest.mark.parametrize(("request_class", "payload"), ANSWERS_002)
def test_an_answer_is_typed_by_its_request(request_class: type[Any], payload: dict[str, Any]) -> None:
    response = decode(json.dumps(_answer(payload)))
    assert isinstance(response, ControlResponse)
    answer = response.payload_as(request_class)
    # The schema uses the Python SDK's name `continue_`; the key on the wire is `continue`.
    payload = {{"continue_": "continue"}.get(key, key): value for key, value in payload.items()}
    assert differences(answer, payload, answer.to_dict()) == []
    assert isinstance(answer, Unknown) == (payload.get("behavior") == "prompt")


def test_a_permission_reply_has_no_type_and_is_known() -> None:
    replies = [decode(json.dumps(example.value)) for example in EXAMPLES if "type" not in example.value]
    assert replies == [PermissionReply(allow=True), PermissionReply(allow=False)]


# --- no example is skipped by accident --------------------------------------------------------------------------------


def test_there_are_five_documents_with_examples() -> None:
    assert [path.stem for path in DOCUMENTS] == ["000", "001", "002", "003", "004"]
    found = Counter(example.place[0] for example in _examples())
    assert found == {"000": 7, "001": 13, "002": 28, "003": 23, "004": 3}
    assert {example.value.get("type") for example in _examples()} >= OF_ANOTHER_PROTOCOL.keys()


def test_every_placeholder_that_is_filled_in_is_there() -> None:
    fences, _ = _read()
    for place, replacements in FILLED_IN.items():
        text = "\n".join(fence.text for fence in fences if fence.place == place)
        assert [old for old, _ in itertools.chain(*replacements) if old not in text and old != " | undefined"] == []


def test_every_block_is_json_or_an_interface_or_listed_code() -> None:
    fences, _ = _read()
    with_json = {example.place for example in _examples()}
    unlisted = {
        fence.place
        for fence in fences
        if fence.place not in CODE
        and not (fence.place in INTERFACES and fence.language in ("typescript", "javascript"))
        and not (fence.place in with_json and fence.language in ("json", ""))
    }
    assert unlisted == set()
    assert {*CODE, *INTERFACES} <= {fence.place for fence in fences}
    assert {*FILLED_IN, *(place for place in BLOCK_PLACES if place not in INTERFACES)} <= with_json


def test_a_block_with_json_holds_nothing_but_json_arrows_and_comments() -> None:
    fences, _ = _read()
    for fence in fences:
        if fence.language in ("json", "") and fence.place not in CODE:
            around = re.sub(r"//[^\n]*|[→←]|\\n", "", _objects(fence.text)[1])
            assert around.strip() == "", fence.place


def test_every_object_in_a_sentence_is_json_or_listed() -> None:
    _, prose = _read()
    code = {code for _, line in prose for code in re.findall("`([^`]*)`", line) if "{" in code}
    assert {text for text in code if not _LOOKS_LIKE_JSON.match(text)} == INLINE_BLOCKS.keys()


def test_no_json_is_left_in_the_text_between_the_blocks() -> None:
    _, prose = _read()
    for place, line in prose:
        assert not _LOOKS_LIKE_JSON.search(re.sub("`[^`]*`", "", line)), place


@pytest.mark.parametrize("place", INTERFACES, ids=" ".join)
def test_the_example_of_an_interface_has_all_its_names(place: Place) -> None:
    fences, _ = _read()
    text = "\n".join(fence.text for fence in fences if fence.place == place)
    text = re.sub(r"//[^\n]*|\"[^\"]*\"|'[^']*'", "", text)
    names = set(re.findall(r"(\w+)\??:", text))
    assert names

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(key for item in value.values() for key in keys(item))}
        return {key for item in value for key in keys(item)} if isinstance(value, list) else set()

    assert names <= keys(INTERFACES[place])
