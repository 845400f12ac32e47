"""A line for each path through the decoder, bad lines, and every way to cut a stream into chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from claude_wire import Decoder

BOM = b"\xef\xbb\xbf"

#: One line for each path through the decoder: decoded to a class directly, by its subtype, by a type learned before, in
#: pieces, repaired, invalid.
EVENT = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}'
)
ASSISTANT = '{"type":"assistant","message":{"content":[{"type":"text","text":"é\u2028\U0001f600"}]}}'.encode()
INIT = b'{"type":"system","subtype":"init","cwd":"/"}'
RESULT = b'{"type":"result","subtype":"success","is_error":false}'
NEW_TYPE = b'{"type":"a_type_of_tomorrow","x":[1,2]}'
NEW_BLOCK = b'{"type":"assistant","message":{"content":[{"type":"a_block_of_tomorrow"}]}}'
LONE = b'{"type":"user","message":{"role":"user","content":"\\ud83d"}}'
KEEP_ALIVE = b'{"type":"keep_alive"}'

#: Description -> a line that is not a JSON object, and a part of the reason that the decoder gives.
BAD = {
    "no JSON": (b"Warning: something", "not JSON"),
    "an array": (b"[1]", "not an object but an array"),
    "a string": (b'"a"', "not an object but a string"),
    "a number": (b"7", "not an object but a number"),
    "a fraction": (b"7.5", "not an object but a number"),
    "null": (b"null", "not an object but null"),
    "true": (b"true", "not an object but true or false"),
    "an object cut short": (b'{"type":"user"', "not JSON"),
    "two objects": (KEEP_ALIVE + KEEP_ALIVE, "not JSON"),
    "two objects with a space": (KEEP_ALIVE + b" " + KEEP_ALIVE, "not JSON"),
    "text after the object": (KEEP_ALIVE + b"}", "not JSON"),
    "NaN": (b'{"type":"keep_alive","x":NaN}', "not JSON: NaN is not a JSON number"),
    "an infinity": (b'{"type":"keep_alive","x":-Infinity}', "not JSON: -Infinity is not a JSON number"),
    "a raw control character": (b'{"type":"user","x":"\x01"}', "not JSON"),
    "a CR within a string": (b'{"type":"user","x":"\r"}', "not JSON"),
    "a wrong escape": (b'{"type":"user","x":"\\x"}', "not JSON"),
    "single quotes": (b"{'type':'user'}", "not JSON"),
    "a trailing comma": (b'{"type":"user",}', "not JSON"),
    "a leading zero": (b'{"type":"user","x":01}', "not JSON"),
    "nested too deeply": (b'{"type":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "a byte that is not UTF-8": (b'{"type":"user\xff"}', "not UTF-8 at byte 13 of the line"),
    "an encoded surrogate": (b'{"type":"user","x":"\xed\xa0\xbd"}', "not UTF-8 at byte 20 of the line"),
    "an overlong form": (b'{"type":"user","x":"\xc0\xaf"}', "not UTF-8 at byte 20 of the line"),
    "a character cut short": (b'{"type":"user","x":"\xf0\x9f"}', "not UTF-8 at byte 20 of the line"),
    "two types": (b'{"type":"user","type":"assistant","message":{}}', "'type' has two values"),
    "a block of two types, the second unknown": (
        b'{"type":"assistant","message":{"content":[{"type":"text","type":"new","text":"a"}]}}',
        "'type' has two values",
    ),
    "a block of two types, the first unknown": (
        b'{"type":"assistant","message":{"content":[{"type":"new","type":"text","text":"a"}]}}',
        "'type' has two values",
    ),
    "a block of two unknown types": (
        b'{"type":"assistant","message":{"content":[{"type":"new","type":"newer"}]}}',
        "'type' has two values",
    ),
    "two subtypes": (b'{"type":"system","subtype":"init","subtype":"status"}', "'subtype' has two values"),
}


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def decoded(chunks: Iterable[bytes], decoder: Decoder[Any] | None = None) -> list[Any]:
    decoder = Decoder() if decoder is None else decoder
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.close()


def chunkings(stream: bytes) -> Iterator[list[bytes]]:
    """Yield the stream whole, byte by byte, cut once at every position, and in three parts."""
    yield [stream]
    yield list(in_pieces(stream, 1))
    for cut in range(1, len(stream)):
        yield [stream[:cut], stream[cut:]]
    third = max(1, len(stream) // 3)
    yield list(in_pieces(stream, third))
