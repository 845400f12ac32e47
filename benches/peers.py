"""The jobs of the benches, done by other packages.

A peer takes chunks of bytes, and calls ``each`` with one object per line.

Peers are optional. If a package is not installed, its functions here are None, the benches omit it, and the summary
names it.
"""

from __future__ import annotations

import codecs
import importlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

Each = Callable[[Any], object]
Peer = Callable[[Iterable[bytes], Each], None]

#: The packages that are not installed.
missing: list[str] = []


def optional(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        if package not in missing:
            missing.append(package)
        return None


orjson = optional("orjson", "orjson")
jiter = optional("jiter", "jiter")
simdjson = optional("simdjson", "pysimdjson")
fastsimdjson = optional("fastsimdjson", "fastsimdjson")
pydantic_messages = optional("pydantic_messages", "pydantic")
_playwright = optional("playwright.sync_api", "playwright")
#: A browser's path, for the web page's bench. None if the browser or Playwright is not installed.
browser = _playwright and (shutil.which("chromium") or shutil.which("google-chrome"))
if browser is None and _playwright is not None:
    missing.append("chromium")
#: If these packages are missing, the pages are still written, because no Python version runs all peers.
SPARED = frozenset({"takopi"})
#: takopi is a Telegram bot that reads the CLI's lines with msgspec. It needs Python 3.14.
takopi = optional("takopi.schemas.claude", "takopi")
agent_sdk = optional("claude_agent_sdk", "claude-agent-sdk")
_sdk_parser = optional("claude_agent_sdk._internal.message_parser", "claude-agent-sdk")
_sdk_transport = optional("claude_agent_sdk._internal.transport.subprocess_cli", "claude-agent-sdk")
#: The function that claude-agent-sdk's ``query`` uses to convert a line's dict to a message.
parse_message: Any = _sdk_parser and _sdk_parser.parse_message
SubprocessCLITransport: Any = _sdk_transport and _sdk_transport.SubprocessCLITransport


def needs(module: object) -> Callable[[Any], Any]:
    """Return a decorator that replaces a function with None if ``module`` is None."""
    return lambda function: None if module is None else function


def nothing(message: Any) -> None:
    """Drop a message."""


def of(peer: Peer | None, chunks: list[bytes], each: Each = nothing) -> Callable[[], None] | None:
    """Return a function without arguments that has a peer decode these chunks. None if the peer is not installed."""
    return None if peer is None else lambda: peer(chunks, each)


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of chunks, with the code that an application would write: split, and keep the unfinished line."""
    parts: list[bytes] = []
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        parts.append(first)
        if rest:
            yield b"".join(parts)
            parts = [rest.pop()]
            yield from rest


def blocks_of(chunks: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Yield the complete lines of each chunk as one block, found with rfind, and keep the unfinished line."""
    parts: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, chunk[:end]]) if parts else memoryview(chunk)[:end]
            parts = []
        if end < len(chunk):
            parts.append(chunk[end:])


def line_by_line(loads: Callable[[bytes], Any] | None) -> Peer | None:
    """Return a peer that decodes line by line with ``loads``."""
    if loads is None:
        return None

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for line in lines_of(chunks):
            each(loads(line))

    return feed


def block_by_block(loads: Callable[[Any], Iterable[Any]] | None) -> Peer | None:
    """Return a peer that decodes many lines with one call. It does not check that a line is exactly one object."""
    if loads is None:
        return None

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for block in blocks_of(chunks):
            for message in loads(block):
                each(message)

    return feed


def block_lists(decoder: msgspec.json.Decoder[Any]) -> Peer:
    """Return a peer that decodes many lines with ``decode_lines``, and calls ``each`` with lists, as our feed does."""
    decode_lines = decoder.decode_lines

    def feed(chunks: Iterable[bytes], each: Each) -> None:
        for block in blocks_of(chunks):
            each(decode_lines(block))

    return feed


@needs(simdjson)
def by_pysimdjson(chunks: Iterable[bytes], each: Each) -> None:
    parse = simdjson.Parser().parse
    for line in lines_of(chunks):
        each(parse(line, True))


@needs(agent_sdk and _sdk_parser and _sdk_transport)
def agent_sdk_feed(each: Each = nothing) -> Callable[[bytes], None]:
    """Return a ``feed`` with claude-agent-sdk's text decoding, framing, json and message parser, without its queues."""
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
def by_agent_sdk(chunks: Iterable[bytes], each: Each) -> None:
    feed = agent_sdk_feed(each)
    for chunk in chunks:
        feed(chunk)


@needs(pydantic_messages)
def validate(line: bytes) -> Any:
    return pydantic_messages.adapter().validate_json(line)


@needs(takopi)
def by_takopi(line: bytes) -> Any:
    """Decode a line with takopi, whose classes have a tenth of our fields. Return None if the line does not fit."""
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
by_fastsimdjson = block_by_block(_many(None))
by_pydantic = line_by_line(validate)


def by_fastsimdjson_fields(*pointers: str) -> Peer | None:
    """Return a peer that reads the values at these JSON pointers: a tuple per line, or the value of one pointer."""
    return block_by_block(_many(pointers[0] if len(pointers) == 1 else list(pointers)))


#: Label -> peer that builds dicts.
DICTS: dict[str, Peer | None] = {
    "json.loads (dicts)": by_json,
    "orjson.loads (dicts)": by_orjson,
    "jiter.from_json (dicts)": by_jiter,
    "pysimdjson, Parser.parse (dicts)": by_pysimdjson,
    "fastsimdjson.loads_many (dicts)": by_fastsimdjson,
}
#: Label -> peer that builds objects of classes.
TYPED: dict[str, Peer | None] = {
    "pydantic, discriminated unions": by_pydantic,
    "claude-agent-sdk": by_agent_sdk,
}


def entered(
    chunks: list[bytes], peers: dict[str, Peer | None], claims: dict[str, float] | None = None
) -> dict[str, tuple[Callable[[], None] | None, float | None]]:
    """Return peers in the form that a contest expects, with the claim for each peer's package."""
    claims = claims or {}
    named = {label: label.replace(",", " ").replace(".", " ").split(" ")[0] for label in peers}
    return {label: (of(peer, chunks), claims.get(named[label])) for label, peer in peers.items()}
