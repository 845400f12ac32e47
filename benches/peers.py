"""The same job done by others: chunks of bytes in, one object per line out."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import orjson
from claude_agent_sdk._internal.message_parser import parse_message
from claude_agent_sdk._internal.transport.subprocess_cli import _LineFramer, _parse_stdout_line

import pydantic_messages

Each = Callable[[Any], object]


def nothing(message: Any) -> None:
    """Drops a message."""


def lines_of(chunks: Iterable[bytes]) -> Iterable[bytes]:
    """Splits as an application would that writes it itself: find, slice, keep the tail."""
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        yield from lines


def by_json(chunks: Iterable[bytes], each: Each) -> None:
    loads = json.loads
    for line in lines_of(chunks):
        each(loads(line))


def by_orjson(chunks: Iterable[bytes], each: Each) -> None:
    loads = orjson.loads
    for line in lines_of(chunks):
        each(loads(line))


def by_pydantic(chunks: Iterable[bytes], each: Each) -> None:
    validate = pydantic_messages.adapter().validate_json
    for line in lines_of(chunks):
        each(validate(line))


def by_claude_agent_sdk(chunks: Iterable[bytes], each: Each) -> None:
    """Its transport's text decoding, framing and json, and its message parser; without its process and queues."""
    framer = _LineFramer()
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    for chunk in chunks:
        for line in framer.push(decode(chunk)):
            data = _parse_stdout_line(line)
            if data is not None:
                each(parse_message(data))


def by_pure_python_feed(
    decoder: msgspec.json.Decoder[Any],
) -> Callable[[Iterable[bytes], Callable[[list[Any]], object]], None]:
    """Typed, by rfind and ``decode_lines``: what a feed costs that checks nothing."""
    decode_lines = decoder.decode_lines

    def feed(chunks: Iterable[bytes], each: Callable[[list[Any]], object]) -> None:
        tail = b""
        for chunk in chunks:
            end = chunk.rfind(b"\n") + 1
            each(decode_lines(tail + chunk[:end] if tail else memoryview(chunk)[:end]))
            tail = chunk[end:]

    return feed


def by_msgspec_lines(decoder: msgspec.json.Decoder[Any]) -> Callable[[Iterable[bytes], Each], None]:
    """Typed, line by line."""
    decode = decoder.decode

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for line in lines_of(chunks):
            each(decode(line))

    return feed
