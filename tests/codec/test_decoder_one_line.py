"""Tests of the decoder: a line gives the same message whether it is fed alone or among others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from claude_wire import (
    AssistantMessage,
    ControlRequest,
    Decoder,
    HandleError,
    InitMessage,
    InvalidLine,
    InvalidLineError,
    Kind,
    ResultMessage,
    StreamEvent,
    UnknownMessage,
    UserMessage,
    decode,
)
from claude_wire.codec import engine
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import KeepAlive, PermissionReply, ResultSuccess
from decoder_lines import ASSISTANT, BOM, EVENT, INIT, KEEP_ALIVE, LONE, NEW_BLOCK, NEW_TYPE, RESULT, decoded, in_pieces
from each import each
from interrupts import at_each_line, interrupted

# --- decode: one line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [bytes, bytearray, memoryview, lambda line: line.decode()], ids=["bytes", "bytearray", "view", "str"]
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@each("line", [EVENT, ASSISTANT, INIT, RESULT, NEW_TYPE, NEW_BLOCK, LONE], repr)
def test_decode_takes_a_line_with_or_without_its_end(line: bytes, end: bytes, wrap: Callable[[bytes], Any]) -> None:
    assert [decode(wrap(line + end))] == decoded([line + b"\n"])


def test_decode_takes_a_str_with_raw_surrogates() -> None:
    assert decode('{"type":"user","message":{"role":"user","content":"\ud83d"}}').text == "\ud83d"


def test_decode_skips_a_byte_order_mark() -> None:
    assert decode(BOM + KEEP_ALIVE) == decode("\ufeff" + KEEP_ALIVE.decode()) == KeepAlive()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_decode_raises_with_the_line_but_not_its_line_feed(end: bytes) -> None:
    with pytest.raises(InvalidLineError) as caught:
        decode(b"bad" + end)
    assert caught.value.line.raw == b"bad" + end.removesuffix(b"\n")
    assert (caught.value.line.line_number, caught.value.line.offset, caught.value.messages) == (1, 0, [])


@pytest.mark.parametrize(
    "line", [b"", b"\n", b" \t\r\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE, KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"]
)
def test_decode_refuses_what_is_not_one_line(line: bytes) -> None:
    with pytest.raises(InvalidLineError):
        decode(line)


@pytest.mark.parametrize("line", [None, 5, [123, 125], {"type": "keep_alive"}])
def test_decode_refuses_what_is_neither_bytes_nor_str(line: Any) -> None:
    with pytest.raises(TypeError, match=type(line).__name__):
        decode(line)


def test_what_a_line_decodes_to() -> None:
    classes = {
        EVENT: StreamEvent,
        ASSISTANT: AssistantMessage,
        INIT: InitMessage,
        RESULT: ResultSuccess,
        NEW_TYPE: UnknownMessage,
        NEW_BLOCK: AssistantMessage,
        LONE: UserMessage,
        b'{"type":"result","subtype":"of_tomorrow"}': ResultMessage,
        b'{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}': ControlRequest,
        b'{"allow": true}': PermissionReply,
        b"{}": UnknownMessage,
    }
    for line, cls in classes.items():
        assert type(decode(line)) is cls


# --- A line among others, and a line alone -------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [b"bad", NEW_BLOCK, LONE, b"", KEEP_ALIVE + KEEP_ALIVE, NEW_TYPE, RESULT])
@pytest.mark.parametrize(
    "places", [[0], [31], [32], [33], [299], [0, 299], [5, 6, 7, 40], range(0, 300, 32), range(300)]
)
def test_odd_lines_of_a_long_block_are_judged_alone_and_change_no_other(odd: bytes, places: Iterable[int]) -> None:
    lines = [odd if index in places else EVENT for index in range(300)]
    stream = b"".join(line + b"\n" for line in lines)
    # The second time, the decoder has already seen the odd lines.
    decoder = Decoder()
    for start in (0, len(stream)):
        found = decoder.feed(stream)
        expected: list[Any] = []
        offset = start
        for number, line in enumerate(lines, 1 + 300 * (start > 0)):
            if line:
                (item,) = Decoder().feed(line + b"\n")
                if isinstance(item, InvalidLine):
                    item = InvalidLine(item.raw, number, offset, item.reason, kind=item.kind)
                expected.append(item)
            offset += len(line) + 1
        assert found == expected
        assert list(map(type, found)) == list(map(type, expected))


def test_lines_fed_one_by_one_and_many_at_once_are_counted_alike() -> None:
    lines = [KEEP_ALIVE, EVENT, ASSISTANT, b"bad", b"", INIT, KEEP_ALIVE + b"\r", NEW_TYPE, b"bad"]
    chunks = [line + b"\n" for line in lines]
    stream = b"".join(chunks)
    whole = Decoder()
    expected = whole.feed(stream * 3)
    for pattern in (
        chunks * 3,
        [stream, *chunks, stream],
        [*chunks, stream, *chunks],
        [*chunks, stream[:40], stream[40:], *chunks],
    ):
        decoder = Decoder()
        assert decoded(pattern, decoder) == expected
        assert decoder.stats == whole.stats


def test_a_byte_order_mark_is_skipped_at_the_start_only_also_when_lines_come_alone() -> None:
    found = decoded([BOM + KEEP_ALIVE + b"\n", BOM + KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n", BOM + KEEP_ALIVE + b"\n"])
    assert [type(item) for item in found] == [KeepAlive, InvalidLine, KeepAlive, InvalidLine]


@pytest.mark.parametrize("limit", [len(KEEP_ALIVE), 5_000, BLOCK_BYTES - 3])
def test_a_line_alone_over_the_limit_is_too_long(limit: int) -> None:
    decoder = Decoder(max_line_bytes=limit)
    longest = KEEP_ALIVE[:-1].ljust(limit - 1) + b"}"
    longer = KEEP_ALIVE[:-1].ljust(limit) + b"}"
    found = decoded([longest + b"\n", longest + b"\n", longer + b"\n", KEEP_ALIVE + b"\n"], decoder)
    assert [type(item) for item in found] == [KeepAlive, KeepAlive, InvalidLine, KeepAlive]
    assert (found[2].offset, found[2].line_number, found[2].length) == (2 * limit + 2, 3, limit + 1)


@pytest.mark.parametrize(
    "begun",
    [[b'{"a":'], [b'{"a', b'":'], [b'{}\n{"a":'], [b'{"a":1}\n{"a":', b""], [b'{"a"', b':1}\n{"a":'], [b'{"a":', b" "]],
    ids=range(6),
)
@pytest.mark.parametrize("options", [{}, {"coalesce": True}], ids=["plain", "filtered"])
def test_what_would_be_a_line_is_none_within_another(begun: list[bytes], options: dict[str, Any]) -> None:
    decoder: Decoder[Any] = Decoder(dict, **options)
    decoder.feed(KEEP_ALIVE + b"\n")
    for chunk in begun:
        decoder.feed(chunk)
    (bad,) = decoder.feed(KEEP_ALIVE + b"\n")
    assert isinstance(bad, InvalidLine)
    assert bad.raw == b"".join(begun).rpartition(b"\n")[2] + KEEP_ALIVE


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"])
def test_a_second_thread_is_refused_while_loads_runs(chunk: bytes) -> None:
    entered, leave = threading.Event(), threading.Event()

    def loads(line: bytes) -> Any:
        entered.set()
        assert leave.wait(30)
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    leave.set()
    decoder.feed(chunk)  # after it, the decoder no longer expects a byte order mark
    entered.clear()
    leave.clear()
    found: list[Any] = []
    first = threading.Thread(target=lambda: found.extend(decoder.feed(chunk)))
    first.start()
    try:
        assert entered.wait(30)
        for call in (lambda: decoder.feed(chunk), decoder.close):
            with pytest.raises(HandleError, match="two threads"):
                call()
    finally:
        leave.set()
        first.join()
    assert found == [json.loads(KEEP_ALIVE)] * chunk.count(b"\n")
    assert decoder.feed(chunk) == found


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n"])
def test_loads_that_feeds_its_own_decoder_is_refused(chunk: bytes) -> None:
    refused: list[bytes] = []

    def loads(line: bytes) -> Any:
        with pytest.raises(HandleError):
            decoder.feed(line + b"\n")
        refused.append(line)
        return {"n": len(refused)}

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    assert [*decoder.feed(chunk), *decoder.feed(chunk)] == [{"n": n} for n in range(1, 2 * chunk.count(b"\n") + 1)]


@pytest.mark.parametrize("error", [KeyError, ValueError, RecursionError, TypeError])
@pytest.mark.parametrize("size", [1, 3, 12, 50, 1_000_000])
def test_no_line_is_lost_or_misnumbered_when_loads_raises(error: type[Exception], size: int) -> None:
    def loads(line: bytes) -> Any:
        if b"boom" in line:
            raise error
        return json.loads(line)

    stream = b'{}\n{"boom":1}\nxx\n' + b'{"x":1}\n' * 100 + b'{"boom":2}\n{"y":1}\nyy'
    decoder = Decoder(dict, loads=loads)
    found = decoded(in_pieces(stream, size), decoder)
    assert [(bad.line_number, bad.offset) for bad in found if isinstance(bad, InvalidLine)] == [(3, 14), (106, 836)]
    rest = [item for item in found if not isinstance(item, InvalidLine)]
    assert rest == [{}, {"boom": 1}, *[{"x": 1}] * 100, {"boom": 2}, {"y": 1}]
    assert decoder.stats.bytes == len(stream)


@pytest.mark.parametrize("chunk", [KEEP_ALIVE + b"\n", KEEP_ALIVE + b"\n" + KEEP_ALIVE + b"\n" * 2 + b'{"y":'])
def test_after_an_interrupt_the_stream_is_in_step(chunk: bytes) -> None:
    interrupt = [False, True]

    def loads(line: bytes) -> Any:
        if interrupt.pop(0):
            raise KeyboardInterrupt
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    decoder.feed(b"{}\n")
    with pytest.raises(KeyboardInterrupt):
        decoder.feed(chunk)
    interrupt += [False] * 2
    tail = b"1}\n" if chunk.endswith(b":") else b""
    *whole, bad = decoder.feed(tail + b"bad\n")
    assert whole == [{"y": 1}] * bool(tail)
    before = b"{}\n" + chunk + tail
    assert (bad.line_number, bad.offset) == (before.count(b"\n") + 1, len(before))
    assert decoder.stats.bytes in (len(before) + 4, len(before) + 4 - len(chunk))


@pytest.mark.parametrize("options", [{}, {"only": ["assistant"], "coalesce": True}], ids=["plain", "filtered"])
@pytest.mark.parametrize(
    "chunk",
    [
        KEEP_ALIVE + b"\n",
        KEEP_ALIVE + b"\nbad\n" + KEEP_ALIVE + b'\n{"type":',
        b"x" * 100_000 + b"\n" + (KEEP_ALIVE + b"\n") * 4_000 + b'{"type":',
    ],
    ids=["line", "chunk", "many"],
)
@pytest.mark.parametrize("first", [b"{}\n", b'{}\n{"type":'], ids=["at rest", "in a line"])
def test_an_interrupt_at_any_line_of_code_leaves_the_stream_in_step(
    first: bytes, chunk: bytes, options: dict[str, Any]
) -> None:
    def interrupted_at(at: int) -> bool:
        decoder: Decoder[Any] = Decoder(**options)
        decoder.feed(first)
        before = decoder.stats.bytes
        was_interrupted = interrupted(lambda: decoder.feed(chunk), at)
        if decoder.stats.bytes == before:  # interrupted before the decoder took the chunk
            decoder.feed(chunk)
        assert decoder.stats.bytes == before + len(chunk)
        tail = b'"assistant","message":{"role":"assistant","content":[]}}\n' if chunk.endswith(b":") else b""
        *_, bad = found = decoder.feed(tail + b"bad\n")
        assert not tail or isinstance(found[-2], AssistantMessage)
        stream = first + chunk + tail
        assert isinstance(bad, InvalidLine)
        assert (bad.line_number, bad.offset, bad.raw) == (stream.count(b"\n") + 1, len(stream), b"bad")
        return was_interrupted

    # Once a class is planned, the native reader decodes its lines without running Python code.
    Decoder().feed(KEEP_ALIVE + b"\n")
    natively = engine().startswith("native") and first + chunk == b"{}\n" + KEEP_ALIVE + b"\n"
    at_each_line(interrupted_at, some=not natively)


STARVED = """
import resource
from claude_wire import Decoder

keep_alive = b'{"type":"keep_alive"}\\n'
decoder = Decoder(only=["keep_alive"])  # what is kept is copied
decoder.feed(keep_alive)
huge = b'{"type":"keep_alive","x":"' + b"x" * 60_000_000 + b'"}\\n'
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (held + 30_000_000, most))
for _ in range(2):
    try:
        decoder.feed(huge)
    except MemoryError:
        continue
    raise AssertionError("there was memory")
resource.setrlimit(resource.RLIMIT_AS, (limit, most))
assert len(decoder.feed(keep_alive * 2)) == 2
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is limited as Linux does it")
def test_a_decoder_goes_on_after_memory_errors() -> None:
    subprocess.run([sys.executable, "-c", STARVED], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_is_refused_also_for_a_line_alone() -> None:
    code = f"""
import os
from claude_wire import Decoder, HandleError
line = {KEEP_ALIVE!r} + b"\\n"
decoder = Decoder()
assert len(decoder.feed(line)) == len(decoder.feed(line)) == 1
if child := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(decoder.feed(line)) == 1
else:
    try:
        decoder.feed(line)
    except HandleError:
        os._exit(7)
    os._exit(1)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


def test_what_an_exception_leaves_over_is_copied_only_when_half_of_it_was_raised() -> None:
    # If the rest were copied for each invalid line, a file of invalid lines would take quadratic time.
    decoder = Decoder(on_invalid="raise")
    with pytest.raises(InvalidLineError):
        decoder.feed(b"bad\n" * 1000 + KEEP_ALIVE + b"\n")
    left = decoder._ready
    assert len(left) == 1001
    copied = 0
    for number in range(2, 1001):
        with pytest.raises(InvalidLineError) as caught:
            decoder.feed(b"")
        assert caught.value.line.line_number == number
        if decoder._ready is not left:
            assert len(decoder._ready) <= len(left) / 2
            left = decoder._ready
            copied += 1
    assert copied <= 10
    assert decoder.feed(b"") == [KeepAlive()]
    assert decoder._ready == []


def test_a_callback_that_raises_each_time_is_called_once_for_each_line_and_loses_nothing() -> None:
    seen: list[int] = []

    def complain(line: InvalidLine) -> None:
        seen.append(line.line_number)
        raise LookupError

    decoder = Decoder(on_invalid=complain)
    with pytest.raises(LookupError):
        decoder.feed(KEEP_ALIVE + b"\nbad\n" + EVENT + b"\nbad\n" + RESULT + b"\n")
    with pytest.raises(LookupError):
        decoder.feed(b"")
    assert [type(message) for message in decoder.feed(INIT + b"\n")] == [
        KeepAlive,
        StreamEvent,
        ResultSuccess,
        InitMessage,
    ]
    assert seen == [2, 4]


def test_an_exception_does_not_hold_on_to_a_bytearray() -> None:
    data = bytearray(b"bad\n")
    with pytest.raises(InvalidLineError) as caught:
        Decoder(on_invalid="raise").feed(data)
    assert caught.traceback  # the traceback keeps the frames of feed() alive
    data.clear()


@pytest.mark.parametrize("limit", [None, "1", 1.5])
def test_a_limit_that_is_no_int_is_a_type_error(limit: Any) -> None:
    with pytest.raises(TypeError, match="max_line_bytes"):
        Decoder(max_line_bytes=limit)


# --- a line and its neighbours ----------------------------------------------------------------------------------------

#: Valid JSON, but the number is too large for a float.
TOO_LARGE = b'{"type":"keep_alive","n":1e999}\n'


@pytest.mark.parametrize(
    "odd",
    [
        KEEP_ALIVE + b" " + KEEP_ALIVE + b"\n",
        b'{"type":"`$[0]`"}\n',
        b'{"type":"stream_event"}\n',
        b'{"type":"keep_alive" (byte 3)}\n',
        b"{x}\n",
    ],
)
@pytest.mark.parametrize("count", [1, 40])
def test_what_a_line_is_does_not_depend_on_its_neighbours(odd: bytes, count: int) -> None:
    lines = [TOO_LARGE] * count + [odd] + [TOO_LARGE] * count
    alone = [message for line in lines for message in Decoder().feed(line)]
    together = Decoder().feed(b"".join(lines))
    assert [type(message) for message in together] == [type(message) for message in alone]
    assert [type(message) for message in together[:count]] == [InvalidLine] * count


@pytest.mark.parametrize("space", [b"", b" "])
@pytest.mark.parametrize("depth", [100, 520, 3_000])
def test_depth_is_no_exception_for_the_lines_around_it(depth: int, space: bytes) -> None:
    deep = b'{"type":"zz","x":' + space + b"[" * depth + b'"\\ud800"' + b"]" * depth + b"}\n"
    found = Decoder(surrogates="replace").feed(KEEP_ALIVE + b"\n" + deep + KEEP_ALIVE + b"\n")
    assert [type(found[0]), type(found[2])] == [KeepAlive, KeepAlive]
    assert isinstance(found[1], (InvalidLine, UnknownMessage))


def test_an_exception_that_has_no_text_loses_no_line() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def loads(line: bytes) -> Any:
        if b"2" in line:
            raise MuteError
        return json.loads(line)

    found = Decoder(dict, loads=loads).feed(b'{"a":1}\n{"a":2}\n{"a":3}\n')
    assert found == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_loads_gets_each_line_that_is_not_blank_without_its_line_end(cut: int) -> None:
    given: list[bytes] = []

    def loads(line: bytes) -> Any:
        given.append(line)
        return {"line": line}

    stream = b'{"a":1}\n\n \r\n{"a":2}\r\n\t\n{"a":3}'
    found = decoded(in_pieces(stream, cut), Decoder(dict, loads=loads))
    assert given == [b'{"a":1}', b'{"a":2}', b'{"a":3}']
    assert {type(line) for line in given} == {bytes}
    assert found == [{"line": line} for line in given]


def test_what_an_interrupt_left_is_not_counted_later() -> None:
    interrupt = [False, False, True]

    def loads(line: bytes) -> Any:
        if b"bad" in line:
            raise ValueError
        if interrupt and interrupt.pop(0):
            raise KeyboardInterrupt
        return json.loads(line)

    decoder: Decoder[Any] = Decoder(dict, loads=loads)
    with pytest.raises(KeyboardInterrupt):
        decoder.feed(b"{bad}\n" + b"{}\n" * 4)
    before = decoder.stats
    assert decoder.feed(b"{}\n{}\n") == [{}, {}]
    assert decoder.stats.messages == before.messages + 2
    assert decoder.stats.invalid == before.invalid


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("options", ["", "only={'result'}", "coalesce=True"])
def test_a_child_leaves_the_with_block_of_its_parent(options: str) -> None:
    code = f"""
import os
from claude_wire import Decoder
with Decoder(dict, {options}) as decoder:
    decoder.feed(b'{{}}\\n')
    child = os.fork()
    if not child:
        decoder.stats
if not child:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_end_of_a_stream_gives_its_memory_back_whatever_its_last_line_is() -> None:
    for only in (None, ["result"], [Kind("a")]):
        decoder = Decoder(dict, only=only)
        decoder.feed(b'{"type":"a","text":"' + b"x" * 5_000_000 + b'"}')
        assert decoder._buffer.stats().held >= 5_000_000
        decoder.close()
        assert decoder._buffer.stats().held <= 2 * BLOCK_BYTES


def test_a_decoder_is_not_left_from_its_own_loads() -> None:
    refused: list[type[BaseException]] = []

    def loads(line: bytes) -> Any:
        try:
            decoder.__exit__(None, None, None)
        except HandleError as error:
            refused.append(type(error))
        return json.loads(line)

    for options in ({}, {"only": [Kind("a")]}):
        decoder: Decoder[Any] = Decoder(dict, loads=loads, **options)
        assert decoder.feed(b'{"type":"a"}\n{"type":"a"}\n') == [{"type": "a"}] * 2
    assert refused == [HandleError] * len(refused)
    assert refused


#: Prints by how many bytes the process's memory grows, at most, while a decoder reads a chunk. The first use of a
#: decoder builds what all decoders share.
GROWTH = """
from pathlib import Path
from claude_wire import Decoder

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

chunk = (b'{{"type":"keep_alive"' + b" " * {spaces} + b"}}\\n") * {lines}
Decoder({type}).feed(b'{{"type":"keep_alive"}}\\n')
Path("/proc/self/clear_refs").write_text("5")  # the peak begins again at what is used now
before = peak()
assert len(Decoder({type}).feed(chunk)) == {lines}
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("type", ["", "dict"], ids=["messages", "dicts"])
@pytest.mark.parametrize(
    ("lines", "spaces", "most"),
    [(4_000, 8_000, 2_000_000), (1, 32_000_000, 33_000_000)],
    ids=["many lines: none is copied", "one line: it is copied once"],
)
def test_a_fed_chunk_is_not_copied_but_for_its_last_line(lines: int, spaces: int, most: int, type: str) -> None:
    script = GROWTH.format(lines=lines, spaces=spaces, type=type)
    grown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(grown) < most
