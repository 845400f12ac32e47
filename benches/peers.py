"""The same jobs done by others. A peer takes chunks of bytes and hands one object per line to ``each``, unless said.

Peers are optional: where a package is missing, its functions are None, a :class:`Contest` leaves them out, and the
table says so.
"""

from __future__ import annotations

import codecs
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

Each = Callable[[Any], object]
Peer = Callable[[Iterable[bytes], Each], None]

#: Packages that could not be imported.
missing: list[str] = []


def _optional(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        if package not in missing:
            missing.append(package)
        return None


orjson = _optional("orjson", "orjson")
jiter = _optional("jiter", "jiter")
simdjson = _optional("simdjson", "pysimdjson")
fastsimdjson = _optional("fastsimdjson", "fastsimdjson")
pydantic_messages = _optional("pydantic_messages", "pydantic")
#: A Telegram bot that reads the CLI's lines with msgspec. It needs Python 3.14.
takopi = _optional("takopi.schemas.claude", "takopi")
agent_sdk = _optional("claude_agent_sdk", "claude-agent-sdk")
_sdk_parser = _optional("claude_agent_sdk._internal.message_parser", "claude-agent-sdk")
_sdk_transport = _optional("claude_agent_sdk._internal.transport.subprocess_cli", "claude-agent-sdk")
#: What claude-agent-sdk's ``query`` makes of a line's dict.
parse_message: Any = _sdk_parser and _sdk_parser.parse_message
SubprocessCLITransport: Any = _sdk_transport and _sdk_transport.SubprocessCLITransport


def needs(module: object) -> Callable[[Any], Any]:
    """Makes None of a function that has nothing to work with."""
    return lambda function: None if module is None else function


def nothing(message: Any) -> None:
    """Drops a message."""


def of(peer: Peer | None, chunks: list[bytes], each: Each = nothing) -> Callable[[], None] | None:
    """The job of a peer on these chunks."""
    return None if peer is None else lambda: peer(chunks, each)


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Splits as an application would that writes it itself: split, and keep what is left of each chunk."""
    parts: list[bytes] = []
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        if rest:
            yield b"".join(parts)
            parts = [rest.pop()]
            yield from rest


def blocks_of(chunks: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Whole lines, as many as a chunk completes: rfind, and keep the rest."""
    parts: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, chunk[:end]]) if parts else memoryview(chunk)[:end]
            parts = []
        if end < len(chunk):
            parts.append(chunk[end:])


def line_by_line(loads: Callable[[bytes], Any] | None) -> Peer | None:
    """By a function that reads one line."""
    if loads is None:
        return None

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for line in lines_of(chunks):
            each(loads(line))

    return feed


def block_by_block(loads: Callable[[Any], Iterable[Any]] | None) -> Peer | None:
    """By a function that reads many lines. It checks nothing: a line that is two objects is two messages."""
    if loads is None:
        return None

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for block in blocks_of(chunks):
            for message in loads(block):
                each(message)

    return feed


def block_lists(decoder: msgspec.json.Decoder[Any]) -> Peer:
    """As above by ``decode_lines``, but lists are what ``each`` gets, as from our feed."""
    decode_lines = decoder.decode_lines

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for block in blocks_of(chunks):
            each(decode_lines(block))

    return feed


@needs(simdjson)
def _by_pysimdjson(chunks: Iterable[bytes], each: Each) -> None:
    parse = simdjson.Parser().parse
    for line in lines_of(chunks):
        each(parse(line, True))


@needs(agent_sdk and _sdk_parser and _sdk_transport)
def agent_sdk_feed(each: Each = nothing) -> Callable[[bytes], None]:
    """Its transport's text decoding, framing and json, and its message parser; without its process and queues."""
    push = _sdk_transport._LineFramer().push
    parse_line = _sdk_transport._parse_stdout_line
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def feed(chunk: bytes) -> None:
        for line in push(decode(chunk)):
            data = parse_line(line)
            if data is not None:
                each(parse_message(data))

    return feed


@needs(agent_sdk_feed)
def _by_agent_sdk(chunks: Iterable[bytes], each: Each) -> None:
    feed = agent_sdk_feed(each)
    for chunk in chunks:
        feed(chunk)


@needs(pydantic_messages)
def _validate(line: bytes) -> Any:
    return pydantic_messages.adapter().validate_json(line)


@needs(takopi)
def by_takopi(line: bytes) -> Any:
    """A message of takopi's classes, which have a tenth of our fields; None for a line that they do not fit."""
    try:
        return takopi.decode_stream_json_line(line)
    except msgspec.ValidationError:
        return None


def _many(fields: str | list[str] | None) -> Callable[[Any], Iterable[Any]] | None:
    if fastsimdjson is None:
        return None
    loads_many = fastsimdjson.loads_many
    if fields is None:
        return lambda block: loads_many(block, format="lines")
    return lambda block: loads_many(block, format="lines", fields=fields)


by_json = line_by_line(json.loads)
by_orjson = line_by_line(orjson and orjson.loads)
by_jiter = line_by_line(jiter and jiter.from_json)
by_pysimdjson: Peer | None = _by_pysimdjson
by_fastsimdjson = block_by_block(_many(None))
by_pydantic = line_by_line(_validate)
by_agent_sdk: Peer | None = _by_agent_sdk


def by_fastsimdjson_fields(*pointers: str) -> Peer | None:
    """For each line a tuple of the values at these JSON pointers, or the value at the only one."""
    return block_by_block(_many(pointers[0] if len(pointers) == 1 else list(pointers)))


#: Those that build dicts, by their labels.
DICTS: dict[str, Peer | None] = {
    "json.loads (dicts)": by_json,
    "orjson.loads (dicts)": by_orjson,
    "jiter.from_json (dicts)": by_jiter,
    "pysimdjson, Parser.parse (dicts)": by_pysimdjson,
    "fastsimdjson.loads_many (dicts)": by_fastsimdjson,
}
#: Those that build classes.
TYPED: dict[str, Peer | None] = {
    "pydantic, discriminated unions": by_pydantic,
    "claude-agent-sdk": by_agent_sdk,
}


def entered(
    chunks: list[bytes], peers: dict[str, Peer | None], claims: dict[str, float] | None = None
) -> dict[str, tuple[Callable[[], None] | None, float | None]]:
    """The peers as a contest takes them, with what is claimed of each by the name of its package."""
    claims = claims or {}
    named = {label: label.replace(",", " ").replace(".", " ").split(" ")[0] for label in peers}
    return {label: (of(peer, chunks), claims.get(named[label])) for label, peer in peers.items()}
