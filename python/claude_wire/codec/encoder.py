"""Encode a message, or a plain JSON object, as one line: ``{"type":"user",…}`` and a line feed."""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.codec.native_writer import NativeWriter
from claude_wire.codec.warnings_of_msgspec import warn_of_msgspec
from claude_wire.errors import EncodeError
from claude_wire.messages.base import EXTRA_BYTES, Wire, to_plain
from claude_wire.support.arguments import type_of

_encode_json = msgspec.json.Encoder().encode
_encode_json_lines = msgspec.json.Encoder().encode_lines
_REFUSED_TO_ENCODE = (UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError)
_SEPARATORS = re.compile(b"\xe2\x80[\xa8\xa9]")
_ESCAPED = {b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}

#: Classes whose messages were encoded before. A look-up in this set takes half as long as isinstance().
_encodable: set[type] = {dict}


def _escape_separators(encoded: bytes) -> bytes:
    # U+2028 and U+2029 end a line in JavaScript. The CLI always escapes them, so a reader may split lines at them. The
    # test for their first byte, which they share with dashes and quotation marks, takes 3 ns per line. The expression
    # takes 80 to 130 ns.
    return _SEPARATORS.sub(lambda match: _ESCAPED[match.group()], encoded) if 0xE2 in encoded else encoded


def _hint(message: object) -> str:
    if isinstance(message, str):
        return "; UserMessage.of(text) is a prompt"
    return "; Encoder().encode_lines() takes several" if isinstance(message, (list, tuple)) else ""


def _check(message: object) -> None:
    if isinstance(message, Wire):
        _encodable.add(type(message))
    elif not isinstance(message, dict):
        raise TypeError(f"encode() takes a message or a dict, not {type_of(message)}{_hint(message)}")


def encode(message: Wire | dict[str, Any]) -> bytes:
    """Encode one message, or a plain JSON object, as one line that ends with a line feed: compact UTF-8.

    U+2028 and U+2029 are escaped, as in the CLI, and so are lone surrogates. NaN and infinities become ``null``, as in
    JavaScript. A ``msgspec.Raw`` within the message is written unchanged and unchecked.

    Raises:
        TypeError: ``message`` is neither a message nor a dict. (The bytes of an :class:`InvalidLine` are in ``raw``.)
        EncodeError: ``message`` has a value that JSON cannot express.
    """
    if type(message) not in _encodable:
        _check(message)
    try:
        # Encode a list of one message, because msgspec then writes the line feed. Adding a line feed afterwards copies
        # the line: for a prompt, this takes 1.8 times as long as encode(); the list takes 1.4 times as long.
        encoded = _encode_json_lines([message])
        if EXTRA_BYTES in encoded:
            encoded = _encode_json_lines([to_plain(message, keep_raw=True)])
    except _REFUSED_TO_ENCODE as error:
        encoded = _encode_otherwise(message, error)
    if not encoded.isascii():
        encoded = _escape_separators(encoded)
    wanted = _writer.wanted()
    if wanted is not None:
        _writer.learn(wanted, message, encoded)
    return encoded


_writer = NativeWriter(encode)
if not TYPE_CHECKING:
    # The native function replaces the function above, and calls it for a message that the native code cannot encode. A
    # Python wrapper around the native function would take twice as long.
    encode = _writer.encode


def encode_value(value: Any) -> bytes:
    """Encode one JSON value of any type, without a line feed, as :func:`encode` does within a message.

    Raises:
        EncodeError: ``value`` contains a value that JSON cannot express.
    """
    try:
        encoded = _encode_json(value)
        if EXTRA_BYTES in encoded:
            encoded = _encode_json(to_plain(value, keep_raw=True))
    except _REFUSED_TO_ENCODE as error:
        encoded = _encode_otherwise(value, error)[:-1]
    return encoded if encoded.isascii() else _escape_separators(encoded)


def _encode_otherwise(message: object, error: Exception) -> bytes:
    """Encode a message with a lone surrogate or an integer of more than 64 bits. msgspec refuses both."""
    if not isinstance(error, (UnicodeEncodeError, OverflowError)):
        raise EncodeError(f"no JSON for this message: {type(error).__name__}") from error
    try:
        text = json.dumps(_finite(to_plain(message)), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as second:
        raise EncodeError(f"no JSON for this message: {type(second).__name__}") from second
    return text.encode("utf-8", "backslashreplace") + b"\n"  # a surrogate becomes its JSON escape \udXXX


def _finite(value: Any) -> Any:
    """Replace NaN and infinities by None, as msgspec does."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


class Encoder:
    """Encodes messages and plain JSON objects, each as one line that ends with a line feed. See :func:`encode`.

    An encoder has no state, so threads may share it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Encoder()"

    def encode(self, message: Wire | dict[str, Any]) -> bytes:
        """Encode one message. Raises like :func:`encode`."""
        return encode(message)

    def encode_lines(self, messages: Iterable[Wire | dict[str, Any]]) -> bytes:
        """Encode messages as lines. Raises like :func:`encode` if one of the messages cannot be encoded."""
        messages = list(messages)
        if not _writer.why_not:
            return _writer.encode_lines(messages)
        warn_of_msgspec()
        for cls in set(map(type, messages)):
            if not issubclass(cls, (dict, Wire)):
                return b"".join(map(encode, messages))  # raises for the first value that is not a message
        try:
            encoded = _encode_json_lines(messages)
        except _REFUSED_TO_ENCODE:
            return b"".join(map(encode, messages))
        if EXTRA_BYTES in encoded:
            return b"".join(map(encode, messages))
        return encoded if encoded.isascii() else _escape_separators(encoded)

    def encode_into(self, message: Wire | dict[str, Any], buffer: bytearray) -> None:
        """Append one message to ``buffer``. If this raises, like :func:`encode`, the buffer does not change."""
        buffer.extend(encode(message))
