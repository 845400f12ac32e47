"""Decide which input lines an agent accepts, ignores or rejects, as CLI 2.1.331 does.

A "wrong" line makes the CLI exit with code 1:

==========================================  =========================================================================
line                                        result
==========================================  =========================================================================
invalid JSON                                wrong. The error has its length, and its type if a pattern finds one
``null``                                    wrong
any other value except an object            ignored; wrong if ``strict``
an object nested too deeply for Python      wrong: the CLI would read it, so it must not be lost silently
``control_request`` without a ``request``   wrong
``user`` whose role is not ``user``         wrong, also if the role or the message is missing
``user`` whose content is a number          ignored, like all content that is neither text nor a list
``user`` without content, or with null      a prompt whose text is ``(no content)``
any other ``user``                          a prompt, even if it is empty or has unknown blocks
another type, or no type                    ignored; wrong if ``strict``, as for CLI 2.1.7
==========================================  =========================================================================

Lines are read as JavaScript reads them: bytes that are not UTF-8 become U+FFFD, and if a key has two values, the last
one counts. An error text goes to logs, so it shows no content of the line except its type.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec

from claude_wire.codec.decoder import decode
from claude_wire.codec.encoder import encode
from claude_wire.errors import InvalidLineError
from claude_wire.messages import (
    ContentBlock,
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    InvalidLine,
    KeepAlive,
    MessageParam,
    TextBlock,
    UnknownMessage,
    UserMessage,
)
from claude_wire.support.plain_json import fields_of

#: The text that replaces missing content in a prompt.
NO_CONTENT = "(no content)"
#: An error shows at most this many characters of a line's type.
MAX_TYPE_CHARS = 64
#: An integer with fewer digits is read exactly. A longer integer is read as a float.
MAX_DIGITS = 4000

#: The messages that an agent handles.
Accepted = UserMessage | ControlRequest | ControlResponse | ControlCancelRequest

_TYPE = re.compile(rf'"type"\s*:\s*"(\w{{1,{MAX_TYPE_CHARS}}})"')
#: A request id that is neither a str nor a number is replaced by this prefix and the id as JSON, until the answer is
#: written.
_JSON_ID = "\0json:"
#: Field of a prompt -> type of its value. A value of another type is ignored.
_PROMPT_FIELDS = {
    "uuid": str,
    "session_id": str,
    "parent_tool_use_id": str,
    "priority": str,
    "timestamp": str,
    "shouldQuery": bool,
    "isSynthetic": bool,
}


class WrongLine(Exception):
    """A line makes the CLI exit. The exception's text is what the CLI writes to its standard error."""


def accept(message: Any, *, strict: bool = False) -> Accepted | None:
    """Return the message that the agent must handle for a decoded line, or None if the line is ignored.

    Args:
        message: the decoded line, which may be an :class:`InvalidLine`.
        strict: True if a line of another type is wrong, as for CLI 2.1.7.

    Raises:
        WrongLine: the line is wrong, as in the table of this module.
    """
    if isinstance(message, InvalidLine):
        message = _read_again(message, strict)
    if isinstance(message, UserMessage):
        if message.message.role != "user":
            raise _wrong_role("undefined" if message.message.role is msgspec.UNSET else message.message.role)
        return message
    if isinstance(message, ControlRequest):
        request_id = message.request_id
        if isinstance(request_id, str) and request_id.startswith(_JSON_ID):
            return msgspec.structs.replace(message, request_id=_JSON_ID + json.dumps(request_id))
        return message
    if isinstance(message, ControlResponse):
        return message
    if isinstance(message, UnknownMessage):
        if message.type == "user":
            return _prompt(message)
        if message.type == "control_request":
            return _request(message)
        if message.type == "control_response":
            return None
    if message is None or isinstance(message, KeepAlive):
        return None
    if strict:
        tag = message.type if isinstance(message, UnknownMessage) else message.__struct_config__.tag
        raise _wrong_type(tag or "undefined")
    return message if isinstance(message, ControlCancelRequest) else None


def _read_again(line: InvalidLine, strict: bool) -> Any:
    """Reread a line that the decoder rejected, by JavaScript's rules."""
    text = line.raw.decode(errors="replace")
    try:
        if line.kind in ("too_long", "no_memory"):
            raise ValueError(line.kind)
        if line.kind == "too_deep":
            raise RecursionError
        value: Any = json.loads(text, parse_constant=_refuse, parse_int=_number)
        if isinstance(value, dict):
            return decode(encode(cast("dict[str, Any]", value)))
    except RecursionError:
        if not text.lstrip().startswith("["):
            raise _unreadable(text, "RangeError") from None
        value = []
    except InvalidLineError as error:
        raise _unreadable(text, "RangeError" if error.line.kind == "too_deep" else "SyntaxError") from None
    except ValueError:
        raise _unreadable(text, "SyntaxError") from None
    if value is None:
        raise _unreadable(text, "TypeError")
    if strict:
        raise _wrong_type("undefined")
    return None


def _prompt(line: UnknownMessage) -> UserMessage | None:
    """Build the prompt from a ``user`` line that does not fit its class. Fields that cannot be read are dropped."""
    message = fields_of(line.get("message"))
    if message.get("role", "undefined") != "user":
        raise _wrong_role(message.get("role", "undefined"))
    content = message.get("content")
    if content is None:
        content = NO_CONTENT
    elif not isinstance(content, (str, list)):
        return None
    fields = {name: line[name] for name, kind in _PROMPT_FIELDS.items() if isinstance(line.get(name), kind)}
    prompt = decode(encode({"type": "user", "message": {"role": "user", "content": content}, **fields}))
    return prompt if isinstance(prompt, UserMessage) else None


def _request(line: UnknownMessage) -> ControlRequest | None:
    if not line.get("request"):
        raise WrongLine("Error: Missing request on control_request")
    request = fields_of(line["request"])
    fields = {name: line[name] for name in ("request_id",) if name in line}
    request_id: Any = line.get("request_id")
    if isinstance(request_id, (bool, dict, list)):
        fields["request_id"] = _JSON_ID + json.dumps(request_id, sort_keys=True)
    read = decode(encode({"type": "control_request", **fields, "request": request}))
    return read if isinstance(read, ControlRequest) else None


def with_original_id(response: ControlResponse) -> ControlResponse | dict[str, Any]:
    """Return an answer with the original id of its request, which may be any JSON value."""
    request_id = response.request_id
    if not isinstance(request_id, str) or not request_id.startswith(_JSON_ID):
        return response
    plain = response.to_dict()
    plain["response"]["request_id"] = json.loads(request_id[len(_JSON_ID) :])
    return plain


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _number(digits: str) -> float:
    """Read an integer. Read a very long integer as a float, as JavaScript does. (``int()`` takes 4,300 digits.)"""
    return int(digits) if len(digits) < MAX_DIGITS else float(digits)


def _unreadable(text: str, error: str) -> WrongLine:
    found = _TYPE.search(text)
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    kind = found.group(1) if found else "unknown"
    return WrongLine(f"Error parsing streaming input line (type={kind}, {units} chars): {error}")


def _wrong_role(role: object) -> WrongLine:
    return WrongLine(f"Error: Expected message role 'user', got '{_in_javascript(role)}'")


def _wrong_type(kind: str) -> WrongLine:
    return WrongLine(f"Error: Expected 'user' or 'control_request', got '{kind[:MAX_TYPE_CHARS]}'")


def _in_javascript(value: object) -> str:
    """Write a value as JavaScript's ``String(value)`` does for objects, and as JSON for other values."""
    if isinstance(value, str):
        return value[:MAX_TYPE_CHARS]
    return "[object Object]" if isinstance(value, dict) else json.dumps(value)[:MAX_TYPE_CHARS]


def join_prompts(prompts: list[UserMessage], between: str) -> UserMessage:
    """Join waiting prompts into one prompt, which gets the last prompt's uuid.

    If all content is text, the texts are joined with ``between``; otherwise the result has the blocks of all prompts.
    """
    if len(prompts) == 1:
        return prompts[0]
    blocks: list[ContentBlock] = []
    for prompt in prompts:
        blocks += [TextBlock(prompt.content)] if isinstance(prompt.content, str) else prompt.content
    is_text = all(isinstance(block, TextBlock) for block in blocks)
    content = between.join(prompt.text for prompt in prompts) if is_text else blocks
    return msgspec.structs.replace(prompts[-1], message=MessageParam("user", content))
