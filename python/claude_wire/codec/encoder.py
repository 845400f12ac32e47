"""Encode a message, or a plain JSON object, as one line."""

# Plain JSON has no types: what isinstance narrows here stays partially unknown to pyright.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.codec.native_writer import NativeWriter
from claude_wire.errors import EncodeError
from claude_wire.messages.base import EXTRA_KEY, Wire, to_plain
from claude_wire.support.arguments import type_of

_encode_json = msgspec.json.Encoder().encode
_encode_json_lines = msgspec.json.Encoder().encode_lines
_REFUSED_TO_ENCODE = (UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError)
_SEPARATORS = re.compile(b"\xe2\x80[\xa8\xa9]")
_ESCAPED = {b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}
#: What msgspec writes of keys without a field, wherever in a message. It may also be some other object of the message.
_EXTRA = f'"{EXTRA_KEY}":'.encode()

#: Classes of messages that were encoded before. Looking here takes half the time of isinstance().
_encodable: set[type] = {dict}


def _escape_separators(encoded: bytes) -> bytes:
    # U+2028 and U+2029 end a line in JavaScript; the CLI always escapes them, so readers may split on them. Look for
    # their first byte before using the expression: 3 ns a line instead of 80 to 130. No CJK character and no emoji has
    # this byte, but dashes and quotation marks do.
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

    U+2028 and U+2029 are escaped, as the CLI does; lone surrogates too. NaN and infinities become ``null``, as in
    JavaScript. A ``msgspec.Raw`` within the message is written as it is, unchecked.

    Raises:
        TypeError: neither a message nor a dict (such as an :class:`InvalidLine`, whose bytes are in ``raw``).
        EncodeError: it has a value that JSON cannot express.
    """
    if type(message) not in _encodable:
        _check(message)
    try:
        # A list of one message: so msgspec writes the line feed in place, while adding one would copy the line. For a
        # prompt this takes 1.4 times as long as msgspec's encode() alone; encode() and an addition took 1.8 times.
        encoded = _encode_json_lines([message])
        if _EXTRA in encoded:
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
    # It calls the function above for what it does not write. A function of Python around it would double its time.
    encode = _writer.encode


def encode_value(value: Any) -> bytes:
    """Encode one JSON value of any type, without a line feed, as :func:`encode` does within a message.

    Raises:
        EncodeError: it has a value that JSON cannot express.
    """
    try:
        encoded = _encode_json(value)
        if _EXTRA in encoded:
            encoded = _encode_json(to_plain(value, keep_raw=True))
    except _REFUSED_TO_ENCODE as error:
        encoded = _encode_otherwise(value, error)[:-1]
    return encoded if encoded.isascii() else _escape_separators(encoded)


def _encode_otherwise(message: object, error: Exception) -> bytes:
    """Encode a message that msgspec refuses but JSON can express: lone surrogates, whole numbers above 64 bits."""
    if not isinstance(error, (UnicodeEncodeError, OverflowError)):
        raise EncodeError(f"no JSON for this message: {type(error).__name__}") from error
    try:
        text = json.dumps(_finite(to_plain(message)), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as second:
        raise EncodeError(f"no JSON for this message: {type(second).__name__}") from second
    return text.encode("utf-8", "backslashreplace") + b"\n"  # a surrogate becomes \udXXX, which is its JSON escape too


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
    """Encodes messages and plain JSON objects, each as one line that ends with a line feed; see :func:`encode`.

    It has no state: threads may share one.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Encoder()"

    def encode(self, message: Wire | dict[str, Any]) -> bytes:
        """Encode one message. Raises like :func:`encode`."""
        return encode(message)

    def encode_lines(self, messages: Iterable[Wire | dict[str, Any]]) -> bytes:
        """Encode messages one after another. Raises like :func:`encode`; then nothing is returned."""
        messages = list(messages)
        if not _writer.why_not:
            return _writer.encode_lines(messages)
        for cls in set(map(type, messages)):
            if not issubclass(cls, (dict, Wire)):
                return b"".join(map(encode, messages))  # raises for the first value that is not a message
        try:
            encoded = _encode_json_lines(messages)
        except _REFUSED_TO_ENCODE:
            return b"".join(map(encode, messages))
        if _EXTRA in encoded:
            return b"".join(map(encode, messages))
        return encoded if encoded.isascii() else _escape_separators(encoded)

    def encode_into(self, message: Wire | dict[str, Any], buffer: bytearray) -> None:
        """Append one message to ``buffer``. Raises like :func:`encode`; then the buffer is as it was."""
        buffer.extend(encode(message))
