"""Read JSON objects as plain dicts.

msgspec reads most lines. :mod:`json` reads the lines that msgspec refuses, such as ``{"text":"\\ud83d"}`` with a lone
surrogate. ``NaN`` and ``1e999`` are errors.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from claude_wire.messages.invalid import InvalidKind
from claude_wire.messages.tolerant import VALUE_NAMES, Ambiguities

#: The exceptions that msgspec raises to refuse input. MsgspecError covers DecodeError and ValidationError.
REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BadLine(Exception):
    """Raised for a line that is not one JSON object.

    ``reason`` is a sentence that does not quote the line. ``kind`` is the ``kind`` of the :class:`InvalidLine`.
    """

    def __init__(self, kind: InvalidKind, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind: InvalidKind = kind
        self.reason = reason


decode_dict: Callable[[Any], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode
_BLANK = b" \t\r\n"
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_dump = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode

SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse_constant(name: str) -> Any:
    raise BadLine("not_json", f"not JSON: {name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise BadLine("number", "a number is out of range")
    return number


def _noting(ambiguous: Ambiguities) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return an ``object_pairs_hook`` that adds keys with two different values to ``ambiguous``."""

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            ambiguous[id(made)] = made, {key for key, value in pairs if value != made[key]}
        return made

    return make


_NUMBERS: dict[str, Any] = {"parse_constant": _refuse_constant, "parse_float": _finite}
_strict = json.JSONDecoder(**_NUMBERS)


#: Matches text that does not begin with a JSON value. Tests check that json gives the same reason.
_NO_VALUE = re.compile(r"(?![ \t\r\n]*(?:[\[{\"0-9-]|true|false|null|NaN|Infinity|\Z))")
_NO_VALUE_REASON = "not JSON: Expecting value at character 0 of the line"


def _without_surrogates(value: Any) -> Any:
    """Replace each lone surrogate by U+FFFD, in place in lists and dicts, because Ambiguities refer to them by id()."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        value[:] = [_without_surrogates(item) for item in value]
    elif isinstance(value, dict):
        items = [(_without_surrogates(key), _without_surrogates(item)) for key, item in value.items()]
        value.clear()
        value.update(items)
    return value


class Objects:
    """Reads JSON objects as plain dicts, and keeps or replaces lone surrogates. Base of DictLines and TypedLines."""

    def __init__(self, surrogates: str) -> None:
        if surrogates not in ("keep", "replace"):
            raise ValueError(f"surrogates must be 'keep' or 'replace', not {surrogates!r}")
        self.keep: bool = surrogates == "keep"
        self.repaired: int = 0
        self.unknown = 0
        # Created on first use: creation takes as long as decoding a line, and most streams do not need this decoder.
        self._noting_decoder: json.JSONDecoder | None = None
        self._ambiguous: Ambiguities = {}

    def object(self, line: bytes) -> dict[str, Any]:
        """Return a line's JSON object. If a key occurs twice, its last value counts. Raises :class:`BadLine`."""
        text = _text(line)
        if _NO_VALUE.match(text):  # such as a log line; the exceptions of two parsers would take six times as long
            raise BadLine("not_json", _NO_VALUE_REASON)
        try:
            value = _decode_any(text)
        except msgspec.MsgspecError:
            value = self._by_json(text, _strict)
        except RecursionError:
            raise BadLine("too_deep", "nested too deeply") from None
        return _as_object(value)

    def noted_object(self, line: bytes) -> tuple[dict[str, Any], Ambiguities]:
        """Read an object, and return it with the keys that had two values. Call :meth:`forget_ambiguous` after use.

        Raises :class:`BadLine`.
        """
        if not line.lstrip(_BLANK).startswith(b"{"):
            return self.object(line), {}
        value = self._unambiguous_object(line)
        if value is not None:
            return value, {}
        if self._noting_decoder is None:
            self._noting_decoder = json.JSONDecoder(**_NUMBERS, object_pairs_hook=_noting(self._ambiguous))
        return _as_object(self._by_json(_text(line), self._noting_decoder)), self._ambiguous

    def forget_ambiguous(self) -> None:
        """Free the keys and dicts that had two values: they may be as large as the line."""
        self._ambiguous.clear()

    def _unambiguous_object(self, line: bytes) -> dict[str, Any] | None:
        """Return a line's object, or None if an object in the line may repeat a key.

        This decodes the line and encodes the object. If the result is the line, it repeats no key, because a dict has
        each key only once. Only lines with rare escapes differ. This takes a third as long as recording all keys.
        """
        line = line.strip(_BLANK)
        try:
            decoded = decode_dict(line)
            return decoded if _encode(decoded) == line else None
        except (*REFUSED, ValueError, OverflowError):  # the encoder refuses integers above 64 bits
            return None

    def _by_json(self, text: str, decoder: json.JSONDecoder) -> Any:
        """Read text that msgspec may have refused. The only invalid text that json accepts has lone surrogates."""
        try:
            value = decoder.decode(text.strip(" \t\r\n"))
            return self._mended(value) if "\\u" in text else value
        except json.JSONDecodeError as error:
            problem = error.msg.removesuffix(" at")
            raise BadLine("not_json", f"not JSON: {problem} at character {error.pos} of the line") from None
        except ValueError:  # more digits than sys.get_int_max_str_digits() allows
            raise BadLine("number", "a number is out of range") from None
        except RecursionError:
            raise BadLine("too_deep", "nested too deeply") from None

    def _mended(self, value: Any) -> Any:
        """Count a value with lone surrogates, and replace them unless they are kept."""
        try:
            _dump(value).encode()
        except UnicodeEncodeError:
            self.repaired += 1
            if not self.keep:
                return _without_surrogates(value)
        return value


def _text(line: bytes) -> str:
    try:
        return str(line, "utf-8")
    except UnicodeDecodeError as error:
        raise BadLine("not_utf8", f"not UTF-8 at byte {error.start} of the line") from None


def _as_object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise BadLine("null" if value is None else "not_object", f"not an object but {VALUE_NAMES[type(value)]}")
    return value
