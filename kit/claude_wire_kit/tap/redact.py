"""Mask the secrets in a session's lines. Each line remains JSON and keeps its structure.

The rules, for every line:

* Secrets within strings are masked, in keys and in values (:mod:`.secrets`).
* In a field with a secret name, strings are masked and numbers become 0.
* The texts of deltas are masked completely, because a secret may be split between two of them.
* A field that no message class has is masked. A line of an unknown type is masked, except for its ``type``.
* A line that is not a JSON object, or longer than :data:`LINE_BYTES`, becomes ``{"type": "masked", "bytes": ...}``.
"""

# The values are plain JSON, so pyright knows only a part of their types after isinstance.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from claude_wire import Decoder
from claude_wire.messages import InvalidLine
from claude_wire_kit.survey.fields import found_in
from claude_wire_kit.tap.names import counts_tokens, is_plain_value, is_secret_name
from claude_wire_kit.tap.secrets import MASK, is_token_over, masked_text

#: Maximum size of a line in bytes.
LINE_BYTES = 16 * 1024 * 1024

#: Fields of an unknown object to keep.
_TAGS = ("type", "subtype", "role")
_TAG = re.compile(r"[a-z][a-z_/-]{0,60}")
#: Fields of a stream event that contain a piece of text, and the fields of this piece that are ids or names.
_PIECES = ("delta", "content_block")
_WHOLE = ("id", "name", "tool_use_id", "stop_reason")
_HOOK_PIECES = ("stdout", "stderr", "output")

#: Fields that contain the name of a secret, and fields that contain its value: ``{"name": "API_KEY", "value": ...}``.
_NAMES = {"name", "key", "header", "field", "variable", "label", "Name", "Key", "id", "title"}
_VALUES = ("value", "default", "content", "val", "data", "text", "current", "values")
#: JSON Schema describes a field by its type. These keys of a schema cannot hold a secret.
_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "object", "array")
_SCHEMA_KEYS = ("type", "minLength", "maxLength", "nullable", "format")
_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,40}")
#: Flags with a password as their value, in many programs.
_SHORT_FLAGS = ("-p", "-P", "-a", "-w", "-pw")
#: Harmless values of these flags: ports, paths, other flags.
_HARMLESS = re.compile(r"\d{1,5}(?::\d{1,5})?|[./~].*|--?[a-z][\w-]*", re.S)
#: A list of at least this many numbers may be the bytes of text.
MIN_BYTES = 6

_decoder = Decoder()


def redacted_line(line: bytes) -> bytes:
    """Return a line with its secrets masked. Keep a line feed at its end."""
    body = line.removesuffix(b"\n")
    end = line[len(body) :]
    if not body.strip():
        return line
    try:
        plain = json.loads(body, parse_constant=_refuse)
        [message] = _decoder.feed(body + b"\n")
        if isinstance(message, InvalidLine):
            return _unreadable(len(body)) + end
        _mask_unknown(plain, message)
        _mask_pieces(plain)
        return json.dumps(_redacted(plain), separators=(",", ":"), allow_nan=False).encode() + end
    except Exception:  # mask a line that cannot be read
        return _unreadable(len(body)) + end


def redacted_flags(flags: list[str]) -> list[str]:
    """Return the CLI's arguments with their secrets masked."""
    return [str(flag) for flag in _redacted(flags)]


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN is not JSON


def _unreadable(size: int) -> bytes:
    return b'{"type":"masked","bytes":%d}' % size


def _mask_unknown(plain: dict[str, Any], message: Any) -> None:
    for found in list(found_in(plain, message)):
        if found.owner is None:  # an object of an unknown type
            for key, value in found.value.items():
                if not (key in _TAGS and isinstance(value, str) and _TAG.fullmatch(value)):
                    found.value[key] = _mask(value)
        else:
            found.holder[found.key] = _mask(found.value)


def _mask_pieces(plain: dict[str, Any]) -> None:
    event = plain.get("event")
    if plain.get("type") == "stream_event" and isinstance(event, dict):
        for part in _PIECES:
            piece = event.get(part)
            if isinstance(piece, dict):
                for key, value in piece.items():
                    if key not in (*_TAGS, *_WHOLE):
                        piece[key] = _mask(value)
    elif plain.get("subtype") == "hook_progress":
        plain |= {key: _mask(plain[key]) for key in _HOOK_PIECES if key in plain}


def _mask(value: Any, *, numbers: bool = True, keys: bool = False) -> Any:
    """Mask all strings in a value.

    Args:
        numbers: set numbers to 0.
        keys: mask keys that contain characters other than letters and ``_``.
    """
    match value:
        case dict():
            clean: dict[str, Any] = {}
            for key, item in value.items():
                shown = MASK if keys and not _PLAIN_KEY.fullmatch(key) else key
                clean[_key(shown, clean)] = _mask(item, numbers=numbers, keys=keys)
            return clean
        case list():
            return [_mask(item, numbers=numbers, keys=keys) for item in value]
        case str():
            return value and MASK
        case bool() | None:
            return value
        case _:
            return 0 if numbers else value


def _redacted(value: Any) -> Any:
    match value:
        case dict():
            return _redacted_object(value)
        case list():
            return _redacted_list(value)
        case str():
            return _redacted_text(value)
        case _:
            return value


def _redacted_list(values: list[Any]) -> list[Any]:
    if len(values) >= MIN_BYTES and all(type(item) is int and 0 <= item < 256 for item in values):
        # A program may print a buffer as numbers. If the bytes are a readable text, mask them: it may be a secret.
        text = bytes(values).decode("latin-1")
        return [0] * len(values) if text.isprintable() and sum(map(str.isalnum, text)) > 0.7 * len(text) else values
    texts = [item for item in values if isinstance(item, str)]
    if len(texts) > 1 and is_token_over(texts):
        return [_mask(item) for item in values]
    return [
        _mask(item) if isinstance(item, str) and _follows_name(values, index) else _redacted(item)
        for index, item in enumerate(values)
    ]


def _redacted_object(value: dict[str, Any]) -> dict[str, Any]:
    # {"name": "API_KEY", "value": "..."}
    is_pair = any(_names_secret(value[name]) for name in value.keys() & _NAMES)
    is_data = value.get("type") in ("base64", "Buffer")
    is_command = "command" in value and isinstance(value.get("args"), list)
    clean: dict[str, Any] = {}
    for key, item in value.items():
        if is_secret_name(key) or (is_pair and key.lower() in _VALUES) or (is_data and key == "data"):
            item = _masked_value(key, item)
        elif is_command and key == "args":
            item = _without_short_flags(item)
        clean[_key(key, clean)] = _redacted(item)
    return clean


def _masked_value(name: str, value: Any) -> Any:
    """Mask the value of a secret name. Keep token counts, and values such as "none"."""
    if isinstance(value, str) and is_plain_value(value):
        return value
    if counts_tokens(name):
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            return value
        return _mask(value, numbers=False)
    if isinstance(value, dict) and value.get("type") in _SCHEMA_TYPES:  # the schema of a field
        return {key: item if key in _SCHEMA_KEYS else _mask(item, keys=True) for key, item in value.items()}
    return _mask(value, keys=True)


def _without_short_flags(arguments: list[Any]) -> list[Any]:
    """Mask the arguments after ``-p`` and similar flags, which many programs use for passwords."""
    return [
        _mask(item)
        if index and arguments[index - 1] in _SHORT_FLAGS and isinstance(item, str) and not _HARMLESS.fullmatch(item)
        else item
        for index, item in enumerate(arguments)
    ]


def _names_secret(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 100 and is_secret_name(value.lstrip("-"))


def _follows_name(values: list[Any], index: int) -> bool:
    """Return True if an item of a list is the value of a flag, or of a header in a pair."""
    before = values[index - 1] if index else None
    if before in ("=", ":", "=>") and index > 1:
        return _names_secret(values[index - 2])
    return isinstance(before, str) and _names_secret(before) and (len(values) <= 3 or before.startswith("-"))


def _key(key: str, taken: dict[str, Any]) -> str:
    unique = clean = masked_text(key)
    number = 2
    while unique in taken:
        unique, number = f"{clean} {number}", number + 1
    return unique


def _redacted_text(text: str) -> str:
    if text[:1] in ("{", "["):  # JSON in a string, such as the result of a tool
        with suppress(ValueError, RecursionError):
            plain = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unambiguous)
            clean = _redacted(plain)
            return text if clean == plain else json.dumps(clean, allow_nan=False)
    return masked_text(text)


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):  # a key occurs twice, and the dict lacks its first value, which would not be masked
        raise ValueError
    return plain


class Lines:
    """Splits chunks of bytes into lines, and redacts each complete line."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._dropped = 0

    def feed(self, data: bytes) -> bytes:
        """Return the redacted lines that ``data`` completes."""
        *ended, begun = data.split(b"\n")
        lines = [self._ended(part) + b"\n" for part in ended]
        self._keep(begun)
        return b"".join(lines)

    def close(self) -> bytes:
        """Return the last line, redacted, if it had no line feed."""
        return self._ended(b"")

    def _ended(self, part: bytes) -> bytes:
        self._keep(part)
        line, dropped = bytes(self._begun), self._dropped
        self._begun.clear()
        self._dropped = 0
        return _unreadable(dropped) if dropped else redacted_line(line)

    def _keep(self, part: bytes) -> None:
        if self._dropped or len(self._begun) + len(part) > LINE_BYTES:
            self._dropped += len(self._begun) + len(part)
            self._begun.clear()
        else:
            self._begun += part
