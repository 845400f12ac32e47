"""Lines end only at 0x0A. Splitting works at any chunking, in linear time and bounded memory, and loses nothing."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claude_wire.errors import HandleError, LineTooLongError
from claude_wire.limits import BLOCK_BYTES, DEFAULT_MAX_LINE_BYTES
from claude_wire.native.block import Block
from claude_wire.native.functions import functions_if_any
from claude_wire.native.line_buffer import LineBuffer
from claude_wire.native.line_splitter import LineSplitter
from each import each
from interrupts import at_each_line, interrupted

BOM = b"\xef\xbb\xbf"
KIB64 = 64 * 1024

# Streams that simple line splitters get wrong.
STREAMS = {
    "empty": b"",
    "line feed alone": b"\n",
    "one line": b"{}\n",
    "unterminated": b'{"a":1}\n{"b":',
    "CR LF": b"{}\r\n{}\r\n",
    "CR alone splits nothing": b'{"a":\r1}\n{}\r',
    "two CRs": b"{}\r\r\n",
    "blank lines": b"\n\n{}\n \t\r\n\n{}\n  ",
    "other separators split nothing": '{"\u2028\u2029\x85\x0b\x0c\x1c\x1d"}\n{}\n'.encode(),
    "not UTF-8": b'{"\xff\xfe"}\n{}\n',
    "a character cut by the line feed": b"{\xc3\n\xa9}\n",
    "NUL": b"\0\n{}\0\n",
    "BOM": BOM + b"{}\n{}\n",
    "BOM twice": BOM + BOM + b"{}\n",
    "BOM later": b"{}\n" + BOM + b"{}\n",
    "BOM alone": BOM,
    "BOM cut short": BOM[:2],
    "BOM begun and not ended": BOM[:2] + b"{}\n",
    "BOM before a blank line": BOM + b"\r\n{}\n",
}


def reference(stream: bytes, *, keepends: bool) -> list[bytes]:
    """Split a stream into lines in the simplest way."""
    *lines, last = stream.split(b"\n")
    if keepends:
        return [line + b"\n" for line in lines] + ([last] if last else [])
    lines = stream.removeprefix(BOM).split(b"\n")
    return [bare for line in lines if (bare := line.removesuffix(b"\r")).strip(b" \t\r")]


def split(chunks: Iterable[bytes], *, keepends: bool, max_line_bytes: int = 1000) -> list[bytes]:
    splitter = LineSplitter(keepends=keepends, max_line_bytes=max_line_bytes)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.close()


def take(splitter: LineSplitter, chunk: bytes | None) -> tuple[list[bytes], LineTooLongError | None]:
    """Feed a chunk, or close if it is None. Return the lines, and the exception if there was one."""
    try:
        return (splitter.close() if chunk is None else splitter.feed(chunk)), None
    except LineTooLongError as error:
        return error.lines, error


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def blocks_of(chunks: Iterable[bytes], buffer: LineBuffer) -> list[Block]:
    """Return all blocks of a stream."""
    blocks = [block for chunk in chunks for block in buffer.feed(chunk)] + buffer.close()
    return [(bytes(data), *place) for data, *place in blocks]


# --- LineSplitter: the same lines at every chunking -------------------------------------------------------------------


@pytest.mark.parametrize("keepends", [False, True])
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
class TestEveryChunking:
    def test_whole(self, stream: bytes, keepends: bool) -> None:
        assert split([stream], keepends=keepends) == reference(stream, keepends=keepends)

    def test_byte_by_byte(self, stream: bytes, keepends: bool) -> None:
        assert split(in_pieces(stream, 1), keepends=keepends) == reference(stream, keepends=keepends)

    def test_any_two_cuts(self, stream: bytes, keepends: bool) -> None:
        expected = reference(stream, keepends=keepends)
        for one, two in itertools.combinations_with_replacement(range(len(stream) + 1), 2):
            assert split([stream[:one], stream[one:two], stream[two:]], keepends=keepends) == expected, (one, two)

    def test_with_trailing_data(self, stream: bytes, keepends: bool) -> None:
        for trailing in (b"x", b"\n", b"{}\n{", b"\r", BOM):
            expected = reference(stream + trailing, keepends=keepends)
            assert split([stream, trailing], keepends=keepends) == expected, trailing
            assert split([stream + trailing], keepends=keepends) == expected, trailing

    def test_with_empty_chunks_between(self, stream: bytes, keepends: bool) -> None:
        chunks = [part for byte in in_pieces(stream, 1) for part in (b"", byte)]
        assert split([*chunks, b""], keepends=keepends) == reference(stream, keepends=keepends)


small_pieces = st.one_of(
    st.sampled_from([b"{}\n", b"\n", b"\r\n", b"\r", b" ", BOM, BOM[:1], BOM[1:], b"{", b"}", "\u2028".encode()]),
    st.binary(max_size=20),
    st.integers(0, 100).map(lambda size: b"x" * size),
)
pieces = small_pieces | st.integers(0, 3 * BLOCK_BYTES // 2).map(lambda size: b"x" * size)


@settings(deadline=None)
@given(st.lists(pieces, max_size=12).map(b"".join), st.lists(st.floats(0, 1), max_size=8), st.booleans())
def test_any_stream_at_any_chunking_splits_as_defined(stream: bytes, cuts: list[float], keepends: bool) -> None:
    at = sorted({0, len(stream), *(int(cut * len(stream)) for cut in cuts)})
    chunks = [stream[start:end] for start, end in itertools.pairwise(at)]
    assert split(chunks, keepends=keepends, max_line_bytes=2**40) == reference(stream, keepends=keepends)


@settings(deadline=None)
@given(st.lists(small_pieces, max_size=20).map(b"".join), st.integers(1, 60), st.integers(1, 60))
def test_nothing_is_lost_but_lines_too_long(stream: bytes, size: int, limit: int) -> None:
    splitter = LineSplitter(keepends=True, max_line_bytes=limit)
    # Add one close per possible line, because each call returns after at most one line that is too long.
    chunks = [*in_pieces(stream, size), *itertools.repeat(None, len(stream) + 1)]
    rebuilt = b""
    for chunk in chunks:
        lines, error = take(splitter, chunk)
        rebuilt += b"".join(lines)
        if error is not None:
            line = stream[error.offset :].split(b"\n")[0]
            assert (error.offset, error.line_number) == (len(rebuilt), rebuilt.count(b"\n") + 1)
            assert (error.head, error.length) == (line[:1024], len(line))
            assert len(line) > limit
            rebuilt = stream[: error.offset + error.length + 1]
    assert rebuilt == stream


def test_lines_come_with_the_chunk_that_completes_them() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a"') == []
    assert splitter.feed(b":1}\n{}\n{") == [b'{"a":1}', b"{}"]
    assert splitter.feed(b"}") == []
    assert splitter.close() == [b"{}"]


def test_after_close_a_new_stream_begins() -> None:
    splitter = LineSplitter(max_line_bytes=5)
    assert splitter.feed(b"{}\n{") == [b"{}"]
    assert splitter.close() == [b"{"]
    assert splitter.close() == []
    with pytest.raises(LineTooLongError) as caught:
        splitter.feed(BOM + b"123456\n")
    assert (caught.value.line_number, caught.value.offset) == (1, 3)


def test_lines_are_bytes_of_their_own() -> None:
    data = bytearray(b"{}\n[]\n{")
    splitter = LineSplitter()
    lines = splitter.feed(data)
    data[:] = b"overwritten, and longer than before"
    assert lines == [b"{}", b"[]"]
    assert {type(line) for line in lines} == {bytes}
    assert splitter.close() == [b"{"]


# --- What may be fed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n[]\n{}",
        bytearray(b"{}\n[]\n{}"),
        memoryview(b"{}\n[]\n{}"),
        memoryview(bytearray(b"{}\n[]\n{}")),
        memoryview(b"xx{}\n[]\n{}xx")[2:-2],
        memoryview(b"{}\n[]\n{}").cast("I"),
        memoryview(b"{}\n[]\n{}").cast("B", (2, 4)),
        type("Bytes", (bytes,), {})(b"{}\n[]\n{}"),
    ],
    ids=["bytes", "bytearray", "view", "writable view", "slice", "of integers", "two dimensions", "subclass"],
)
def test_any_contiguous_bytes_may_be_fed(data: bytes) -> None:
    splitter = LineSplitter()
    assert splitter.feed(data) == [b"{}", b"[]"]
    assert splitter.close() == [b"{}"]


@pytest.mark.parametrize("data", [b"", bytearray(), memoryview(b""), memoryview(b"")[::2]])
def test_nothing_may_be_fed(data: bytes) -> None:
    splitter = LineSplitter()
    splitter.feed(b"{")
    assert splitter.feed(data) == []
    assert splitter.feed(b"}\n") == [b"{}"]


def test_str_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match=r"takes bytes, not str; encode it as UTF-8 first"):
        LineSplitter().feed("{}\n")


@pytest.mark.parametrize("data", [None, 3, ["{}"], object()])
def test_what_has_no_bytes_is_refused(data: object) -> None:
    with pytest.raises(TypeError, match=f"not {type(data).__name__}"):
        LineSplitter().feed(data)


def test_a_view_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        LineSplitter().feed(memoryview(b"{}\n{}\n")[::2])


def test_a_refused_argument_changes_nothing() -> None:
    splitter = LineSplitter()
    splitter.feed(b"{")
    for data in ("}\n", None, memoryview(b"}\n\n")[::2]):
        with pytest.raises((TypeError, ValueError)):
            splitter.feed(data)
    assert splitter.feed(b"}\n") == [b"{}"]


def test_a_fed_bytearray_may_be_resized_afterwards() -> None:
    data = bytearray(b"{}\n{")
    splitter = LineSplitter()
    splitter.feed(data)
    data.clear()
    assert splitter.close() == [b"{"]


def test_a_bytearray_with_a_line_too_long_may_be_resized_while_the_error_is_dealt_with() -> None:
    data = bytearray(b"{}\n{}\n" + b"x" * 50 + b"\n{}\n{}\n{}")
    splitter = LineSplitter(max_line_bytes=10)
    with pytest.raises(LineTooLongError) as caught:
        splitter.feed(data)
    assert caught.value.lines == [b"{}", b"{}"]
    data.clear()
    assert splitter.close() == [b"{}"] * 3


@pytest.mark.parametrize("keepends", [False, True])
@pytest.mark.parametrize("first", [b"{}\n", b'{}\n{"a":'], ids=["at a line's start", "in a line"])
def test_an_interrupt_at_any_line_of_code_leaves_the_stream_in_step(first: bytes, keepends: bool) -> None:
    chunk = b"1}\n" + b"{}\n" * 30_000 + b"y" * 70_000 + b'\n{"b":'

    def feed_all(splitter: LineSplitter, data: bytes) -> list[bytes]:
        try:
            return splitter.feed(data)
        except LineTooLongError as error:
            return error.lines + feed_all(splitter, b"")

    def interrupted_at(at: int) -> bool:
        splitter = LineSplitter(keepends=keepends, max_line_bytes=KIB64)
        splitter.feed(first)
        was_interrupted = interrupted(lambda: feed_all(splitter, chunk), at)
        if splitter._buffer.counts().fed == len(first):  # the interrupt came before the buffer took anything
            feed_all(splitter, chunk)
        assert feed_all(splitter, b"2}\n")[-1].rstrip() == b'{"b":2}'
        with pytest.raises(LineTooLongError) as caught:
            splitter.feed(b"z" * KIB64 + b"z\n")
        stream = first + chunk + b"2}\n"
        assert (caught.value.line_number, caught.value.offset) == (stream.count(b"\n") + 1, len(stream))
        return was_interrupted

    at_each_line(interrupted_at)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LineSplitter(max_line_bytes=limit)


def test_a_limit_above_all_memory_is_no_limit() -> None:
    assert split([b"{}\n"], keepends=False, max_line_bytes=2**100) == [b"{}"]


# --- Lines too long ---------------------------------------------------------------------------------------------------


@each("limit", [2, 1023, 1024, 1025, KIB64 - 1, KIB64, KIB64 + 1], str)
@each("size", [1, 7, 1000, KIB64, 10**9], str)
@pytest.mark.parametrize("end", [b"\n", b""], ids=["terminated", "unterminated"])
def test_the_limit_is_the_longest_line_without_its_line_feed(size: int, limit: int, end: bytes) -> None:
    fits = b"x" * limit
    assert split(in_pieces(fits + end, size), keepends=False, max_line_bytes=limit) == [fits]
    with pytest.raises(LineTooLongError) as caught:
        split(in_pieces(fits + b"y" + end, size), keepends=False, max_line_bytes=limit)
    error = caught.value
    assert (error.lines, error.length, error.line_number, error.offset) == ([], limit + 1, 1, 0)
    assert error.head == (fits + b"y")[:1024]


STARVED = """
import resource, sys
from claude_wire import Decoder, InvalidLine, LineSplitter
from claude_wire.errors import LineTooLongError

KIB64 = 64 * 1024
small = b'{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}\\n'
begin = small.partition(b"a\\"}]")[0]
size, options = int(sys.argv[1]), eval(sys.argv[2])

def pieces():
    yield begin
    for _ in range(size // KIB64):
        yield bytes(KIB64).replace(b"\\0", b"x")
    yield b'"}]}}\\n' + small + b"bad\\n"

length = sum(map(len, pieces())) - len(small) - 5
decoder, splitter = Decoder(**options), LineSplitter()
decoder.feed(small)
splitter.feed(small)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 40_000_000,) * 2)
for piece in pieces():
    messages = decoder.feed(piece)
big, message, bad = messages
assert isinstance(big, InvalidLine) and message.text == "a", messages
assert (big.kind, big.reason) == ("no_memory", "more than there is memory for"), big.reason
assert big.raw.startswith(begin) and len(big.raw) == 1024
assert (big.line_number, big.offset, big.length) == (2, len(small), length)
assert decoder._buffer.stats().held <= 2 * KIB64, "nothing is left of it"
assert (bad.line_number, bad.offset) == (4, 2 * len(small) + length + 1)
if not options:
    try:
        for piece in pieces():
            splitter.feed(piece)
    except LineTooLongError as error:
        assert (error.line_number, error.offset, error.length) == (2, len(small), length)
    assert splitter.feed(b"") == [small[:-1], b"bad"]
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is limited as Linux does it")
@pytest.mark.parametrize(
    ("size", "options"), [(40_000_000, {}), (40_000_000, {"only": ["assistant"]})], ids=["plain", "filtered"]
)
def test_a_line_that_is_more_than_there_is_memory_for_costs_only_itself(size: int, options: dict[str, Any]) -> None:
    subprocess.run([sys.executable, "-c", STARVED, str(size), repr(options)], check=True, timeout=60)


def test_a_carriage_return_counts() -> None:
    assert split([b"{}\r\n"], keepends=False, max_line_bytes=3) == [b"{}"]
    with pytest.raises(LineTooLongError) as caught:
        split([b"{}\r\n"], keepends=False, max_line_bytes=2)
    assert caught.value.head == b"{}\r"


@pytest.mark.parametrize("keepends", [False, True])
def test_a_line_too_long_takes_no_other_line_with_it(keepends: bool) -> None:
    stream = b"{}\n12345\n[]\n\n1234567\n123456\n{1}\n{2"
    end = b"\n" if keepends else b""
    blank = [b"\n"] if keepends else []
    for size in range(1, len(stream) + 1):
        splitter = LineSplitter(max_line_bytes=4, keepends=keepends)
        lines: list[bytes] = []
        dropped: list[tuple[bytes, int, int, int, int]] = []
        calls = [*in_pieces(stream, size), None, None, None, None]
        for chunk in calls:
            more, error = take(splitter, chunk)
            lines += more
            if error is not None:
                dropped.append((error.head, error.length, error.line_number, error.offset, len(lines)))
        assert lines == [b"{}" + end, b"[]" + end, *blank, b"{1}" + end, b"{2"], size
        assert dropped == [
            (b"12345", 5, 2, 3, 1),
            (b"1234567", 7, 5, 13, 2 + len(blank)),
            (b"123456", 6, 6, 21, 2 + len(blank)),
        ], size


def test_no_line_bytes_are_in_the_text_of_the_error() -> None:
    with pytest.raises(LineTooLongError) as caught:
        LineSplitter(max_line_bytes=10).feed(b"{}\nsk-ant-secret\n")
    assert "secret" not in str(caught.value) + repr(caught.value)
    assert caught.value.lines == [b"{}"]


# --- LineBuffer: the contents of a block ------------------------------------------------------------------------------


def test_a_chunk_of_whole_lines_is_one_block_and_is_not_copied() -> None:
    chunk = b'{"a":1}\n{}\n'
    ((data, *place),) = LineBuffer().feed(chunk)
    assert data is chunk
    assert place == [0, 1, -1]


def test_blocks_of_a_chunk_cut_at_both_ends() -> None:
    assert blocks_of([b'{"a"', b":1}\r\n{}\n\n{", b"}"], LineBuffer()) == [
        (b'{"a":1}\r\n', 0, 1, -1),
        (b"{}\n\n", 9, 2, -1),
        (b"{}", 13, 4, -1),
    ]


def test_blocks_are_64_kib_of_lines_or_one_longer_line() -> None:
    long = b"{" + b"x" * KIB64 + b"}\n"
    stream = b"{}\n" * 50_000 + long + b"{}\n" + long + long
    found = blocks_of([stream], LineBuffer())
    assert len(found) == 3 + 4
    assert b"".join(data for data, *_ in found) == stream
    at, number = 0, 1
    for data, offset, line_number, length in found:
        assert len(data) <= BLOCK_BYTES or data.count(b"\n") == 1
        assert (offset, line_number, length) == (at, number, -1)
        at += len(data)
        number += data.count(b"\n")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_numbers_and_offsets_count_everything(size: int) -> None:
    stream = BOM + b"{}\n\n123456789\n\r\n{}\n1234567890"
    found = blocks_of(in_pieces(stream, size), LineBuffer(max_line_bytes=8))
    for _, offset, number, _ in found:
        assert offset == 3 or stream[:offset].endswith(b"\n")
        assert number == stream[:offset].count(b"\n") + 1
    assert [block for block in found if block[3] >= 0] == [(b"123456789", 7, 3, 9), (b"1234567890", 22, 6, 10)]


# --- Cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [KIB64, 1024, 1], ids=["64 KiB", "1 KiB", "1 byte"])
@pytest.mark.parametrize(
    "line", [b'{"text":"' + b"x" * 270 + b'"}\n', b"{" + b"x" * 200_000 + b"}\n"], ids=["short", "huge"]
)
def test_work_is_linear_at_any_chunking(size: int, line: bytes) -> None:
    stream = line * (1 + 100_000 // len(line))
    buffer = LineBuffer()
    for chunk in in_pieces(stream, size):
        buffer.feed(chunk)
    searched, copied, _ = buffer.stats()
    assert searched == len(stream)
    assert copied <= 3 * len(stream)  # copied in once, and moved at most twice as the capacity doubles


def test_whole_lines_are_not_copied() -> None:
    buffer = LineBuffer()
    for _ in range(10):
        buffer.feed(b"{}\n" * 1000)
    assert buffer.stats()[:2] == (30_000, 0)


@pytest.mark.parametrize("size", [KIB64, 10**6])
@pytest.mark.parametrize("closed", [False, True])
def test_memory_of_a_huge_line_goes_back(size: int, closed: bool) -> None:
    buffer = LineBuffer()
    held = 0
    for chunk in in_pieces(b"x" * 10_000_000, size):
        buffer.feed(chunk)
        held = max(held, buffer.stats().held)
    assert held >= 10_000_000
    assert len(buffer.close() if closed else buffer.feed(b"\n")) == 1
    assert buffer.stats().held <= KIB64


def test_a_line_too_long_is_dropped_in_bounded_memory() -> None:
    buffer = LineBuffer(max_line_bytes=100_000)
    for _ in range(1000):
        assert buffer.feed(b"x" * 10_000) == []
        assert buffer.stats().held <= 2 * 100_000
    assert buffer.feed(b"\n") == [(b"x" * 1024, 0, 1, 10_000_000)]


# --- One user at a time -----------------------------------------------------------------------------------------------


def test_a_splitter_left_as_a_context_manager_is_closed() -> None:
    with LineSplitter() as splitter:
        assert splitter.feed(b"{}\n") == [b"{}"]
    with pytest.raises(HandleError, match="closed"):
        splitter.feed(b"{}\n")
    with pytest.raises(HandleError, match="closed"):
        splitter.close()


def test_an_exception_passes_through_the_context_manager() -> None:
    with pytest.raises(KeyError), LineSplitter():
        raise KeyError


def test_block_size_is_that_of_the_documentation() -> None:
    assert BLOCK_BYTES == KIB64
    assert DEFAULT_MAX_LINE_BYTES == 128 * 1024 * 1024


@pytest.mark.parametrize("size", [1_000, 16_000, 17_000, 33_000, 60_000, 65_500, 70_000])
@pytest.mark.parametrize("rest", [b"", b"{}\n", b"{}\n{"])
def test_an_idle_buffer_holds_little_after_a_carried_line_of_any_length(size: int, rest: bytes) -> None:
    buffer = LineBuffer()
    for _ in range(3):
        buffer.feed(b"{" + b"x" * size)
        buffer.feed(b"}\n" + rest)
        buffer.feed(b"}\n" if rest.endswith(b"{") else b"")
        assert buffer.stats().held <= BLOCK_BYTES


@pytest.mark.parametrize("only", [frozenset({"assistant"}), frozenset({"result"})], ids=["kept", "passed-over"])
@pytest.mark.parametrize("last", [b"\n", b"\n{}", b"\n{}\n"])
def test_a_huge_line_leaves_nothing_behind_in_a_filter(only: frozenset[str], last: bytes) -> None:
    buffer = LineBuffer(only=only, coalesce=True)
    line = b'{"type":"assistant","text":"' + b"x" * 10_000_000 + b'"}'
    for at in range(0, len(line), 100_000):
        assert buffer.feed(line[at : at + 100_000]) == []
    assert buffer.stats().held >= 10_000_000
    kept = sum(bytes(data).count(b"\n") for data, *_ in buffer.feed(last))
    assert kept == (only == {"assistant"}) + last.endswith(b"}\n")
    assert buffer.stats().held <= 2 * BLOCK_BYTES


@pytest.mark.parametrize("name", STREAMS)
def test_the_unfinished_line_is_what_came_after_the_last_line_feed(name: str) -> None:
    stream = STREAMS[name]
    for limit in (10, 10**9):
        buffer = LineBuffer(limit, keep_bom=True)
        for at in range(len(stream) + 1):
            unfinished = stream[:at].rpartition(b"\n")[2]
            assert buffer.unfinished() == (None if len(unfinished) > limit else unfinished)
            buffer.feed(stream[at : at + 1])


def test_the_unfinished_line_remains() -> None:
    buffer = LineBuffer()
    assert buffer.unfinished() == b""
    assert buffer.feed(b"{}\n{") == [(b"{}\n", 0, 1, -1)]
    assert buffer.unfinished() == buffer.unfinished() == b"{"
    assert buffer.feed(b"}\n") == [(b"{}\n", 3, 2, -1)]
    buffer.feed(b"{")
    buffer.close()
    assert buffer.unfinished() == b""
    buffer.free()
    buffer.free()
    with pytest.raises(HandleError):
        buffer.unfinished()


@pytest.mark.parametrize("keepends", [True, False])
def test_without_memory_for_a_line_the_block_is_refused(keepends: bool) -> None:
    memory = pytest.importorskip("_testcapi", reason="this Python has no functions for tests of C")
    split = functions_if_any().get("lines_with_ends" if keepends else "bare_lines")
    if split is None:
        pytest.skip("Python splits the lines")
    line = b"x" * 1000 + b"\n" * keepends
    refused = 0
    for start in range(20):
        memory.set_nomemory(start, start + 1)
        try:
            lines = split(b"x" * 1000 + b"\n" + line)
        except MemoryError:
            refused += 1
            continue
        finally:
            memory.remove_mem_hooks()
        assert lines == [line, line]
    assert refused
