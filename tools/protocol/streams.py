"""Handwritten test cases for splitting a stream into lines, and for invalid lines."""

from __future__ import annotations

import base64
import json
from typing import Any

from protocol.cases import Case, kind_of

__all__ = ["STREAMS"]

_ALIVE = b'{"type":"keep_alive"}'
#: Two nesting depths: every decoder accepts the first, and recursive decoders refuse the second.
_DEEP, _TOO_DEEP = 100, 20_000


def _stream(name: str, *parts: bytes | tuple[bytes, Any], **options: Any) -> Case:
    """Return a case whose stream consists of the parts.

    A pair is a line without its line feed, and the expected result: the decoded JSON of a valid message, or the reason
    why the line is invalid. Plain bytes, such as a line feed, have no result.
    """
    data = b"".join(part if isinstance(part, bytes) else part[0] for part in parts)
    expected: list[dict[str, Any]] = []
    at = 0
    for part in parts:
        if isinstance(part, tuple):
            place = {"line": 1 + data.count(b"\n", 0, at), "offset": at}
            expected.append({**_verdict(part[1]), **place})
        at += len(part if isinstance(part, bytes) else part[0])
    try:
        content = {"text": data.decode()}
    except UnicodeDecodeError:
        content = {"base64": base64.b64encode(data).decode()}
    return {"name": name, "schema": "output", **content, **options, "expect": expected}


def _verdict(meant: Any) -> dict[str, Any]:
    return {"verdict": "invalid", "reason": meant} if isinstance(meant, str) else {"verdict": "valid", **kind_of(meant)}


def _valid(line: bytes) -> tuple[bytes, Any]:
    """Return the pair for a valid line. ``json.loads`` must read its JSON as every other parser does."""
    return line, json.loads(line)


_KEEP = {"type": "keep_alive"}
_TEXT = b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"%s"}]}}'


def _nested(depth: int) -> bytes:
    """Return a message in which one value is nested ``depth`` levels deep."""
    return b'{"type":"user","message":{"role":"user","content":""},"tool_use_result":%s}' % (
        b"[" * depth + b"]" * depth
    )


STREAMS: list[Case] = [
    # --- where lines end
    _stream("two lines", _valid(_ALIVE), b"\n", _valid(_TEXT % b"Hello"), b"\n"),
    _stream("the last line has no line feed", _valid(_ALIVE), b"\n", _valid(_ALIVE)),
    _stream("nothing at all"),
    _stream("CR before the line feed", _valid(_ALIVE), b"\r\n", _valid(_ALIVE), b"\r\n"),
    _stream("CR alone does not end a line", (b'{"type":\r"keep_alive"}', _KEEP), b"\n"),
    _stream("blank lines are skipped, and counted", b"\n\r\n \t\n", _valid(_ALIVE), b"\n\n", _valid(_ALIVE), b"\n\n"),
    _stream("white space around a line", (b' \t{"type": "keep_alive"} \t', _KEEP), b"\n"),
    _stream("a byte order mark at the start", b"\xef\xbb\xbf", _valid(_ALIVE), b"\n"),
    _stream("a byte order mark later", _valid(_ALIVE), b"\n", (b"\xef\xbb\xbf" + _ALIVE, "not_json"), b"\n"),
    _stream(
        "no other character ends a line",
        _valid(_TEXT % "a\u2028b\u2029c\u0085d".encode()),
        b"\n",
        _valid(_TEXT % rb"e\u000bf\fg"),
        b"\n",
    ),
    # --- lines that are cut off
    _stream("torn at the end", _valid(_ALIVE), b"\n", (b'{"type":"keep_al', "truncated")),
    _stream("torn within a character", ((_TEXT % "€".encode())[:-12], "truncated")),
    _stream("torn within an escape", ((_TEXT % rb"\ud83d\ude00")[:-11], "truncated")),
    _stream("torn after a number", (b'{"type":"keep_alive","a":1', "truncated")),
    _stream("torn in the middle of a stream", (b'{"type":"keep_al', "not_json"), b"\n", _valid(_ALIVE), b"\n"),
    _stream(
        "too long",
        (_TEXT % (b"x" * 99), "too_long"),
        b"\n",
        _valid(_ALIVE),
        b"\n",
        (_TEXT % (b"y" * 99), "too_long"),
        max_line_bytes=64,
    ),
    _stream("exactly as long as allowed", _valid(_ALIVE), b"\n", max_line_bytes=len(_ALIVE)),
    _stream("too long by one byte", (_ALIVE, "too_long"), b"\n", max_line_bytes=len(_ALIVE) - 1),
    # --- text
    _stream("half an emoji is kept", (_TEXT % rb"\ud83d", json.loads(_TEXT % b"")), b"\n", lone_surrogates=1),
    _stream("a pair of escapes is one emoji", _valid(_TEXT % rb"\ud83d\ude00"), b"\n", lone_surrogates=0),
    _stream("halves in the wrong order", (_TEXT % rb"\ude00\ud83d", json.loads(_TEXT % b"")), b"\n", lone_surrogates=1),
    _stream("an escape in a tag", (rb'{"ty\u0070e":"keep\u005falive"}', _KEEP), b"\n"),
    _stream("NUL as an escape", _valid(_TEXT % rb"a\u0000b"), b"\n"),
    _stream("half an emoji as UTF-8 bytes", (_TEXT % b"\xed\xa0\xbd", "not_utf8"), b"\n"),
    _stream("Latin-1", (_TEXT % b"caf\xe9", "not_utf8"), b"\n", _valid(_ALIVE), b"\n"),
    _stream("a character in more bytes than it needs", (_TEXT % b"\xc0\xaf", "not_utf8"), b"\n"),
    _stream("not UTF-8 in an unknown key", (b'{"type":"keep_alive","a":"\xff"}', "not_utf8"), b"\n"),
    # --- lines that are not JSON
    _stream(
        "a log line between messages",
        _valid(_ALIVE),
        b"\n",
        (b"npm WARN deprecated", "not_json"),
        b"\n",
        _valid(_ALIVE),
    ),
    _stream("two objects on a line", (_ALIVE + _ALIVE, "not_json"), b"\n"),
    _stream("an object, and text after it", (_ALIVE + b" ok", "not_json"), b"\n"),
    _stream("single quotes", (b"{'type':'keep_alive'}", "not_json"), b"\n"),
    _stream("a trailing comma", (b'{"type":"keep_alive",}', "not_json"), b"\n"),
    _stream("a comment", (b'{"type":"keep_alive"/* */}', "not_json"), b"\n"),
    _stream("a raw tab in a string", (b'{"type":"keep_alive","a":"\t"}', "not_json"), b"\n"),
    _stream("a raw NUL after a line", (_ALIVE + b"\0", "not_json"), b"\n"),
    _stream("an unknown escape", (rb'{"type":"keep_alive","a":"\x41"}', "not_json"), b"\n"),
    _stream("NaN", (b'{"type":"result","duration_ms":NaN}', "not_json"), b"\n"),
    _stream("Infinity", (b'{"type":"result","duration_ms":-Infinity}', "not_json"), b"\n"),
    _stream("a number with a leading zero", (b'{"type":"result","duration_ms":01}', "not_json"), b"\n"),
    _stream("a number out of range", (b'{"type":"result","duration_ms":1e400}', "number"), b"\n"),
    # --- JSON that is not an object
    _stream("null", (b"null", "null"), b"\n"),
    _stream("a list", (b"[" + _ALIVE + b"]", "not_object"), b"\n"),
    _stream("a text", (b'"keep_alive"', "not_object"), b"\n"),
    _stream("a number", (b"1", "not_object"), b"\n"),
    _stream("true", (b"true", "not_object"), b"\n"),
    # --- objects that two parsers read differently
    _stream("a type with two values", (b'{"type":"keep_alive","type":"user"}', "tags"), b"\n"),
    _stream("a type with two values, one escaped", (rb'{"type":"keep_alive","ty\u0070e":"user"}', "tags"), b"\n"),
    _stream("the same type twice", (b'{"type":"keep_alive","type":"keep_alive"}', _KEEP), b"\n"),
    _stream("a subtype with two values", (b'{"type":"system","subtype":"init","subtype":"status"}', "tags"), b"\n"),
    _stream(
        "a tag of a block with two values",
        (_TEXT.replace(b'"type":"text"', b'"type":"text","type":"thinking"') % b"", "tags"),
        b"\n",
    ),
    _stream("another key twice", (b'{"type":"result","result":"a","result":"b"}', {"type": "result"}), b"\n"),
    # --- unusual but valid lines
    _stream("the type at the end", _valid(b'{"session_id":"s","result":"done","type":"result"}'), b"\n"),
    _stream("a type inside a string", _valid(_TEXT % rb"\"type\":\"result\""), b"\n"),
    _stream("1.0 is a whole number", _valid(b'{"type":"result","num_turns":1.0,"duration_ms":1}'), b"\n"),
    _stream("a deeply nested value", _valid(_nested(_DEEP)), b"\n"),
    _stream("a too deeply nested value", (_nested(_TOO_DEEP), "too_deep"), b"\n", lenient=True),
    _stream("a number above 64 bits", _valid(b'{"type":"result","duration_ms":18446744073709551617}'), b"\n"),
]
