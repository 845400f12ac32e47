"""Mutations of lines: invalid JSON, or valid but unusual JSON that a fast reader might misread.

Each mutation takes a line without its line feed and a random generator, and returns another line without a line feed.
The same seed gives the same lines on every Python. This module knows JSON and the tags of the protocol, but does not
use the library.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["MUTATIONS", "mutants", "mutated"]

Mutation = Callable[[bytes, random.Random], bytes]

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
#: Most strings of at most this length are keys and tags.
SHORT = 24
TAGS = [
    *[b"stream_event", b"assistant", b"result", b"system", b"control_request", b"control_response", b"user", b""],
    *[b"content_block_delta", b"content_block_start", b"message_stop", b"init", b"can_use_tool", b"success"],
    *[b"text_delta", b"thinking_delta", b"input_json_delta", b"signature_delta", b"of_tomorrow", b"\\u00fcber"],
]
KEYS = [
    *[b"type", b"subtype", b"event", b"request", b"response", b"delta", b"content_block", b"index", b"text"],
    *[b"thinking", b"partial_json", b"session_id", b"parent_tool_use_id", b"uuid", b"x", b""],
]
SCALARS = [
    *[b"null", b"true", b"false", b"0", b"1", b"-1", b"1.0", b"1e0", b"01", b"-0", b"99999999999999999999", b"tru"],
    *[b"NaN", b"+1", b".5", b"1.", b"1e", b"nulll", b"\x00", b"{}", b"[]", b'""', b'"x"', b'"\\n"', b"[{]}", b"{1}"],
    *[b"0.5", b"1e300", b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808"],
]
STRUCTURE = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b" ", b"\t", b"\r", b"\\u", b'\\"', b"\\\\", b"/"]
ESCAPES = [
    *[rb"\ud83d", rb"\ude00", rb"\ud83d\ude00", rb"\uD83D", rb"\ud83d\u0041", rb"\n", rb"\/", rb"\u0000", rb"\u0022"],
    *[rb"\ud83d\ue000", rb"\udbff\udfff", rb"\ud7ff", rb"\ud83d\udbff"],
    *[rb"\x", rb"\u12g4", rb"\u12", rb"\U0001", rb"\ ", rb"\u005c", "é".encode(), "😀".encode(), "\u2028".encode()],
]
NOT_UTF8 = [b"\xff", b"\xc3", b"\xa9", b"\xed\xa0\xbd", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xe2\x80", b"\xf0\x9f\x98"]
LOOK_ALIKES = [
    rb"\",\"type\":\"result\",\"",
    rb"{\"type\":\"assistant\"}",
    rb"\"}},\"type\":\"system\"",
    rb"\\",
    rb"\\\"",
    rb'"type":"result"'.replace(b'"', rb"\u0022"),
    b"}}]],,::[[{{",
]
DECOYS = [
    b'{"type":"result","subtype":"success"}',
    b'{"event":{"type":"message_stop","delta":{"type":"x"}}}',
    b'[{"type":"assistant"},["type","result"]]',
    b'{"type":{"type":{"type":"system"}}}',
    b'{"delta":{"type":"text_delta","text":"no"}}',
    b'["\\"]}",{"a":"}"}]',
    b"[" * 40 + b"]" * 40,
    b"[" * 70 + b"]" * 70,
    b'{"a":' * 40 + b"1" + b"}" * 40,
]
MEMBERS = [
    b'"type":"result"',
    b'"type":"stream_event"',
    b'"type":"text_delta"',
    b'"type":null',
    b'"subtype":"init"',
    b'"event":{}',
    b'"event":{"type":"message_stop"}',
    b'"delta":{"type":"text_delta","text":"more"}',
    b'"text":"more"',
    b'"thinking":"more"',
    b'"uuid":"u"',
    b'"session_id":null',
    b'"index":7',
    b'"content_block":{"type":"text_delta"}',
    b'"request":{"subtype":"interrupt"}',
    b'"x":{"type":"y"}',
]


class _Object(list[Any]):
    """A JSON object as a list of members, which allows repeated keys."""


def mutants(lines: Sequence[bytes], seed: int, count: int) -> Iterator[bytes]:
    """Yield ``count`` random lines with one to three mutations each."""
    rng = random.Random(seed)
    for _ in range(count):
        yield mutated(rng.choice(lines), rng)


def mutated(line: bytes, rng: random.Random) -> bytes:
    """Apply one to three random mutations to a line."""
    names = sorted(MUTATIONS)
    for _ in range(1 + rng.randrange(3)):
        line = MUTATIONS[rng.choice(names)](line, rng)
    return line


# --- Bytes ------------------------------------------------------------------------------------------------------------


def _place(line: bytes, rng: random.Random) -> int:
    return rng.randrange(len(line) + 1)


def _insert(line: bytes, at: int, what: bytes) -> bytes:
    return line[:at] + what + line[at:]


def flip(line: bytes, rng: random.Random) -> bytes:
    """Flip a few bits."""
    changed = bytearray(line)
    for _ in range(1 + rng.randrange(3) if line else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed).replace(b"\n", b"\x0b")


def cut(line: bytes, rng: random.Random) -> bytes:
    """Remove a piece: the end, the beginning, a part of the middle, or one byte."""
    start, end = sorted((_place(line, rng), _place(line, rng)))
    return rng.choice([line[:start], line[start:], line[:start] + line[end:], line[:start] + line[start + 1 :]])


def double(line: bytes, rng: random.Random) -> bytes:
    """Repeat a piece of the line, or the whole line."""
    start, end = sorted((_place(line, rng), _place(line, rng)))
    return rng.choice([line + line, line[:end] + line[start:], line[:start] + line[: end - start] + line[start:]])


def punctuate(line: bytes, rng: random.Random) -> bytes:
    """Insert a structural byte, or replace a byte with one."""
    at = _place(line, rng)
    return line[:at] + rng.choice(STRUCTURE) + line[at + rng.randrange(2) :]


def control(line: bytes, rng: random.Random) -> bytes:
    """Insert a control byte other than a line feed."""
    return _insert(line, _place(line, rng), bytes([rng.choice([byte for byte in (*range(0x20), 0x7F) if byte != 10])]))


def not_utf8(line: bytes, rng: random.Random) -> bytes:
    """Insert bytes that are not UTF-8."""
    return _insert(line, _place(line, rng), rng.choice(NOT_UTF8))


def ending(line: bytes, rng: random.Random) -> bytes:
    """Add JSON white space, or bytes that only look like it, before or after the line."""
    around = [b"\r", b"\r\r", b" ", b"\t", b" \r", b"\x0c", b"\x0b", b"\xc2\xa0", b"\x00", b"\xef\xbb\xbf", b","]
    what = rng.choice(around)
    return rng.choice([line + what, what + line])


# --- Tokens -----------------------------------------------------------------------------------------------------------


def _tokens(line: bytes) -> list[bytes]:
    return TOKEN.findall(line)


def _pick(line: bytes, rng: random.Random, fits: Callable[[bytes], bool]) -> tuple[int, int] | None:
    found = [match.span() for match in TOKEN.finditer(line) if fits(match[0])]
    return rng.choice(found) if found else None


def _is_string(token: bytes) -> bool:
    return token.startswith(b'"')


def _is_short(token: bytes) -> bool:
    return _is_string(token) and len(token) <= SHORT


def space(line: bytes, rng: random.Random) -> bytes:
    """Insert white space after some tokens, or after all of them."""
    share = rng.choice([0.1, 0.5, 1.0])
    spaced = [
        token + (rng.choice([b" ", b"  ", b"\t", b"\r", b" \t\r "]) if rng.random() < share else b"")
        for token in _tokens(line)
    ]
    return rng.choice([b"", b" ", b"\t\r"]) + b"".join(spaced)


def escape(line: bytes, rng: random.Random) -> bytes:
    """Escape characters of a short string, usually a key or a tag."""
    span = _pick(line, rng, lambda token: _is_short(token) and len(token) > 2)
    if span is None:
        return line
    start, end = span
    share = rng.choice([0.2, 1.0])
    written = b""
    for byte in line[start + 1 : end - 1]:
        plain = byte not in b'"\\' and byte < 0x80 and rng.random() < share
        code = rng.choice([b"%04x", b"%04X"]) % byte
        written += (b"\\u" + code) if plain else bytes([byte])
    return line[: start + 1] + written + line[end - 1 :]


def say(line: bytes, rng: random.Random) -> bytes:
    """Insert a valid escape, an invalid escape or other text into a string."""
    span = _pick(line, rng, _is_string)
    if span is None:
        return line
    at = span[0] + 1 + rng.randrange(span[1] - span[0] - 1)
    return _insert(line, at, rng.choice(ESCAPES))


def look_alike(line: bytes, rng: random.Random) -> bytes:
    """Insert text into a string that looks like members of the surrounding object."""
    span = _pick(line, rng, _is_string)
    return line if span is None else _insert(line, span[1] - 1, rng.choice(LOOK_ALIKES))


def rename(line: bytes, rng: random.Random) -> bytes:
    """Replace a key or tag with another one."""
    span = _pick(line, rng, _is_short)
    if span is None:
        return line
    return line[: span[0]] + b'"' + rng.choice([*TAGS, *KEYS]) + b'"' + line[span[1] :]


def revalue(line: bytes, rng: random.Random) -> bytes:
    """Replace a string or scalar with another value, or with an invalid one."""
    span = _pick(line, rng, lambda token: token not in b"{}[],:")
    return line if span is None else line[: span[0]] + rng.choice(SCALARS) + line[span[1] :]


def decoy(line: bytes, rng: random.Random) -> bytes:
    """Replace a value with a container that has its own tags, or add one as a member."""
    if rng.random() < 0.5:
        span = _pick(line, rng, lambda token: token not in b"{}[],:")
        return line if span is None else line[: span[0]] + rng.choice(DECOYS) + line[span[1] :]
    return _with_member(line, b'"x":' + rng.choice(DECOYS), rng)


def member(line: bytes, rng: random.Random) -> bytes:
    """Add a member to an object. Its key may already exist."""
    return _with_member(line, rng.choice(MEMBERS), rng)


def _with_member(line: bytes, what: bytes, rng: random.Random) -> bytes:
    span = _pick(line, rng, lambda token: token in b"{}")
    if span is None:
        return line
    if line[span[0] : span[1]] == b"{":
        return _insert(line, span[1], what + b",")
    return _insert(line, span[0], b"," + what)


def swap_tokens(line: bytes, rng: random.Random) -> bytes:
    """Swap two tokens."""
    tokens = _tokens(line)
    if len(tokens) > 1:
        one, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


# --- Trees ------------------------------------------------------------------------------------------------------------


def _tree(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_Object)
    except (ValueError, RecursionError):
        return None


def _written(value: Any, separators: tuple[str, str]) -> str:
    comma, colon = separators
    if isinstance(value, _Object):
        members = [json.dumps(key, ensure_ascii=False) + colon + _written(item, separators) for key, item in value]
        return "{" + comma.join(members) + "}"
    if isinstance(value, list):
        return "[" + comma.join(_written(item, separators) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _bytes(value: Any, rng: random.Random) -> bytes:
    separators = rng.choice([(",", ":"), (", ", ": ")])
    return _written(value, separators).encode("utf-8", "backslashreplace")


def _objects(value: Any) -> list[_Object]:
    if isinstance(value, _Object):
        return [value, *(inner for _, item in value for inner in _objects(item))]
    return [inner for item in value for inner in _objects(item)] if isinstance(value, list) else []


def shuffle(line: bytes, rng: random.Random) -> bytes:
    """Shuffle the members of each object."""
    tree = _tree(line)
    for found in _objects(tree):
        found.sort(key=lambda _: rng.random())
    return line if tree is None else _bytes(tree, rng)


def repeat_member(line: bytes, rng: random.Random) -> bytes:
    """Repeat a member of an object, with the same or another value."""
    tree = _tree(line)
    objects = [found for found in _objects(tree) if found]
    if not objects:
        return line
    chosen = rng.choice(objects)
    key, value = rng.choice(chosen)
    chosen.insert(rng.randrange(len(chosen) + 1), (key, rng.choice([value, value, None, "x", 1, [], _Object()])))
    return _bytes(tree, rng)


def drop_member(line: bytes, rng: random.Random) -> bytes:
    """Remove a member from an object."""
    tree = _tree(line)
    objects = [found for found in _objects(tree) if found]
    if not objects:
        return line
    chosen = rng.choice(objects)
    del chosen[rng.randrange(len(chosen))]
    return _bytes(tree, rng)


def move_object(line: bytes, rng: random.Random) -> bytes:
    """Replace a value with an object from elsewhere, so its tags are on another level."""
    tree = _tree(line)
    objects = [found for found in _objects(tree) if found]
    if not objects:
        return line
    moved = _bytes(rng.choice(objects), rng)
    span = _pick(line, rng, lambda token: token not in b"{}[],:")
    return line if span is None else line[: span[0]] + moved + line[span[1] :]


MUTATIONS: dict[str, Mutation] = {
    function.__name__: function
    for function in (
        *(flip, cut, double, punctuate, control, not_utf8, ending),
        *(space, escape, say, look_alike, rename, revalue, decoy, member, swap_tokens),
        *(shuffle, repeat_member, drop_member, move_object),
    )
}
