"""The types of message streams. test_typing.py runs type checkers on this file; nothing executes it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

from anyio.abc import ByteReceiveStream, ByteStream, SocketStream
from typing_extensions import assert_type

from claude_wire import Decoder, InvalidLine, Message, MessageStream, ResultMessage
from claude_wire.codec import DecoderStats
from claude_wire.messages import ResultSuccess
from claude_wire.streams import Batches, DrainStats


async def generate() -> AsyncIterator[bytes]:
    yield b""


async def what_is_iterated_over(fd: int, source: Any) -> None:
    # The stream yields InvalidLine unless `on_invalid` of the decoder is "raise" or a callback.
    async for message in MessageStream(fd):
        assert_type(message, Message | InvalidLine)
    async for message in MessageStream(fd, Decoder()):
        assert_type(message, Message | InvalidLine)
    async for sure in MessageStream(fd, Decoder(on_invalid="raise")):
        assert_type(sure, Message)
    async for plain in MessageStream(fd, Decoder(dict, on_invalid="raise")):
        assert_type(plain, dict[str, Any])
    async for either in MessageStream(fd, Decoder(dict)):
        assert_type(either, dict[str, Any] | InvalidLine)
    async for unsourced in MessageStream(source, overflow="spill", spill_limit=1):
        assert_type(unsourced, Message | InvalidLine)

    async for batch in MessageStream(fd).batches():
        assert_type(batch, list[Message | InvalidLine])
    async for plain_batch in MessageStream(fd, Decoder(dict, on_invalid="raise")).batches():
        assert_type(plain_batch, list[dict[str, Any]])


async def what_is_what(fd: int) -> None:
    assert_type(MessageStream(fd), MessageStream[Message | InvalidLine])
    assert_type(MessageStream(fd, None), MessageStream[Message | InvalidLine])
    assert_type(MessageStream(fd, Decoder(dict, on_invalid=print)), MessageStream[dict[str, Any]])
    async with MessageStream(fd, Decoder(dict, on_invalid="raise")) as stream:
        assert_type(stream, MessageStream[dict[str, Any]])
        assert_type(await stream.__anext__(), dict[str, Any])
        assert_type(stream.batches(), Batches[dict[str, Any]])
        assert_type(await stream.batches().__anext__(), list[dict[str, Any]])
        assert_type(stream.stats, DecoderStats)
        assert_type(stream.drain_stats, DrainStats | None)
        assert_type([message async for message in stream], list[dict[str, Any]])
        await stream.aclose()


async def match_narrows(fd: int) -> None:
    async for message in MessageStream(fd):
        match message:
            case ResultSuccess(result=text):
                assert_type(text, str | None)
            case ResultMessage():
                print(message.ok)
            case InvalidLine():
                assert_type(message.raw, bytes)
            case _:
                pass


async def what_may_be_a_source(
    file_descriptor: int,
    file: Any,
    connection: socket.socket,
    reader: asyncio.StreamReader,
    receive: ByteReceiveStream,
    both_ways: ByteStream,
    connected: SocketStream,
) -> None:
    with open("stdout.ndjson", "rb") as opened:
        MessageStream(opened)
    MessageStream(file_descriptor)
    MessageStream(file)
    MessageStream(connection)
    MessageStream(reader)
    MessageStream(receive)
    MessageStream(both_ways)
    MessageStream(connected)
    MessageStream(generate())
    MessageStream("stdout.ndjson")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    MessageStream(b"")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    MessageStream([b""])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    MessageStream(file_descriptor, dict)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    MessageStream(file_descriptor, overflow="drop")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    iter(MessageStream(file_descriptor))  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
