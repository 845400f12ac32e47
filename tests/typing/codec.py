"""The types of the codec. test_typing.py runs type checkers on this file; nothing executes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

from claude_wire import (
    AssistantMessage,
    Decoder,
    Encoder,
    InvalidLine,
    Kind,
    LineSplitter,
    Message,
    TextBlock,
    UnknownMessage,
    UserMessage,
    decode,
    encode,
    peek,
    read,
)
from claude_wire.codec import DecoderStats, peek_lines
from claude_wire.messages import KeepAlive
from claude_wire.streams import Reader


def handle(line: InvalidLine) -> None:
    print(line.reason)


# --- Decoder: an InvalidLine is among the messages only if nothing else was asked for.

assert_type(Decoder(), Decoder[Message | InvalidLine])
assert_type(Decoder(Message), Decoder[Message | InvalidLine])
assert_type(Decoder(on_invalid="return"), Decoder[Message | InvalidLine])
assert_type(Decoder(only={"result"}, coalesce=True), Decoder[Message | InvalidLine])
assert_type(Decoder(dict, only=["result"], on_invalid="raise"), Decoder[dict[str, Any]])
assert_type(read("path", only={"result"}), Reader[Message | InvalidLine])
assert_type(Decoder(only={"system/init", Kind("of_tomorrow")}), Decoder[Message | InvalidLine])
Decoder(only={"asistant"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
read("path", only=["asistant"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
assert_type(peek(b"{}"), Kind)
assert_type(peek_lines(b"{}\n")[0].subtype, str | None)
assert_type(Decoder(on_invalid="raise"), Decoder[Message])
assert_type(Decoder(on_invalid=handle), Decoder[Message])
assert_type(Decoder(on_invalid=lambda line: print(line.raw)), Decoder[Message])
assert_type(Decoder(surrogates="replace", max_line_bytes=1000), Decoder[Message | InvalidLine])

assert_type(Decoder(dict), Decoder[dict[str, Any] | InvalidLine])
assert_type(Decoder(dict, on_invalid="raise"), Decoder[dict[str, Any]])
assert_type(Decoder(dict, on_invalid=handle, surrogates="keep"), Decoder[dict[str, Any]])
assert_type(Decoder(dict, loads=json.loads), Decoder[dict[str, Any] | InvalidLine])
assert_type(Decoder(dict, loads=json.loads, on_invalid="raise"), Decoder[dict[str, Any]])

assert_type(Decoder().feed(b""), list[Message | InvalidLine])
assert_type(Decoder(dict).close(), list[dict[str, Any] | InvalidLine])
assert_type(Decoder(on_invalid="raise").feed(bytearray()), list[Message])
assert_type(Decoder(on_invalid="raise").feed(memoryview(b"")), list[Message])
assert_type(Decoder().stats, DecoderStats)
assert_type(Decoder().stats.repaired, int)

with Decoder(dict) as decoder:
    assert_type(decoder, Decoder[dict[str, Any] | InvalidLine])

Decoder().feed("")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Decoder(on_invalid="ignore")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
Decoder(surrogates="strict")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
Decoder(loads=json.loads)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

# --- One line.

assert_type(decode(b""), Message)
assert_type(decode(""), Message)
assert_type(encode(KeepAlive()), bytes)
assert_type(encode({"type": "keep_alive"}), bytes)
assert_type(encode(UnknownMessage()), bytes)
assert_type(encode(decode(b"")), bytes)

encode(b"")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
encode(InvalidLine(b"", 1, 0, ""))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(Encoder().encode_lines([KeepAlive(), {"type": "keep_alive"}, AssistantMessage.of("")]), bytes)
Encoder().encode_into(KeepAlive(), bytearray())
Encoder().encode_into(KeepAlive(), b"")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- Lines and files.

assert_type(LineSplitter().feed(b""), list[bytes])

assert_type(read("-"), Reader[Message | InvalidLine])
assert_type(read(Path("a"), on_invalid="raise"), Reader[Message])
assert_type(read("a", dict), Reader[dict[str, Any] | InvalidLine])
assert_type(read("a", dict, on_invalid=handle, loads=json.loads), Reader[dict[str, Any]])

for message in read("a", on_invalid="raise"):
    assert_type(message, Message)

with open("a", "rb") as file, read(file, dict, on_invalid="raise") as reader:
    iterator: Iterator[dict[str, Any]] = reader
    assert_type(next(reader), dict[str, Any])

with open("a", encoding="utf-8") as text:
    read(text)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


blocks = [TextBlock("a")]
assert_type(UserMessage.of(blocks), UserMessage)
assert_type(AssistantMessage.of(blocks), AssistantMessage)
