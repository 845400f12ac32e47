"""Reading files and pipes: every line, in order, in constant memory. ``read`` closes only files that it opened."""

from __future__ import annotations

import gzip
import io
import json
import os
import pathlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from claude_wire import Decoder, InitMessage, InvalidLine, InvalidLineError, StreamEvent, UnknownMessage, read
from claude_wire.limits import BLOCK_BYTES
from claude_wire.messages import KeepAlive, ResultSuccess
from claude_wire.streams import Reader

EVENT = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}}'
)
INIT = b'{"type":"system","subtype":"init","cwd":"/"}'
RESULT = b'{"type":"result","subtype":"success"}'
STREAM = b"\n".join([INIT, EVENT, b"bad 1", b"", b'{"type":"new"}', b"bad 2", RESULT])
MESSAGES = [type(message) for message in (lambda d: d.feed(STREAM) + d.close())(Decoder())]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "stdout.ndjson"
    path.write_bytes(STREAM)
    return path


class Trickle(io.RawIOBase):
    """A file that returns at most ``size`` bytes per read, like a pipe, and records the sizes that were requested."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size
        self.asked: list[int] = []

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self.size)
        if buffer:
            self.asked.append(len(buffer))
        taken, self.data = self.data[:size], self.data[size:]
        buffer[: len(taken)] = taken
        return len(taken)


# --- Kinds of sources -------------------------------------------------------------------------------------------------


def test_a_path_may_be_str_or_path_like(path: pathlib.Path) -> None:
    for source in (path, str(path)):
        assert [type(message) for message in read(source)] == MESSAGES
    assert [InitMessage, StreamEvent, InvalidLine, UnknownMessage, InvalidLine, ResultSuccess] == MESSAGES


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_binary_file_of_any_kind(path: pathlib.Path, size: int) -> None:
    with open(path, "rb") as buffered, open(path, "rb", buffering=0) as raw:
        for source in (buffered, raw, io.BytesIO(STREAM), Trickle(STREAM, size), gzip.GzipFile(fileobj=packed())):
            assert [type(message) for message in read(source)] == MESSAGES


def packed() -> io.BytesIO:
    return io.BytesIO(gzip.compress(STREAM))


def test_a_file_that_only_has_read() -> None:
    class Reading:
        def __init__(self) -> None:
            self.read = io.BytesIO(STREAM).read

    assert [type(message) for message in read(Reading())] == MESSAGES


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(STREAM))
    monkeypatch.setattr(sys, "stdin", stdin)
    with read("-") as reader:
        assert [type(message) for message in reader] == MESSAGES
    assert not stdin.buffer.closed


def test_messages_of_a_pipe_come_when_their_line_does_and_not_at_its_end() -> None:
    readable, writable = os.pipe()
    with open(readable, "rb") as source, open(writable, "wb", buffering=0) as sink, read(source) as reader:
        for line, cls in ((INIT, InitMessage), (RESULT, ResultSuccess)):
            sink.write(line + b"\n")
            # The pipe stays open, so a reader that waits for a full block would hang here.
            assert type(next(reader)) is cls
        sink.write(RESULT[:5])
        sink.close()
        (bad,) = reader
        assert isinstance(bad, InvalidLine)
        assert bad.reason.startswith("truncated")


def test_a_text_file_is_refused(path: pathlib.Path) -> None:
    with open(path, encoding="utf-8") as source, pytest.raises(TypeError, match="open it with mode 'rb'"):
        read(source)
    with pytest.raises(TypeError, match="binary"):
        read(io.StringIO(""))


def test_a_file_that_does_not_exist_is_an_os_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")


def test_a_file_that_does_not_block_is_refused() -> None:
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    with open(readable, "rb", buffering=0) as source, open(writable, "wb", buffering=0) as sink:
        reader = read(source)
        with pytest.raises(BlockingIOError, match="blocking"):
            next(reader)
        # The exception has lost no data.
        sink.write(INIT + b"\n")
        assert next(reader) == InitMessage(cwd="/")


def test_wrong_arguments_are_refused_before_the_file_is_opened(tmp_path: pathlib.Path) -> None:
    for arguments, error in (({"type": list}, TypeError), ({"on_invalid": "no"}, ValueError)):
        with pytest.raises(error):
            read(tmp_path / "missing", **arguments)


# --- Options of read() ------------------------------------------------------------------------------------------------


def test_the_options_are_those_of_the_decoder(path: pathlib.Path) -> None:
    assert list(read(path, dict))[::6] == [json.loads(INIT)]
    assert list(read(path, dict, loads=lambda line: {"read": line}))[::6] == [{"read": INIT}]
    seen: list[InvalidLine] = []
    assert len(list(read(path, on_invalid=seen.append))) == len(MESSAGES) - 2
    assert [line.raw for line in seen] == [b"bad 1", b"bad 2"]
    assert [type(message) for message in read(path, max_line_bytes=len(INIT))].count(InvalidLine) == 3
    (message,) = read(io.BytesIO(b'{"a":"\\ud83d"}'), dict, surrogates="replace")
    assert message == {"a": "\ufffd"}


@pytest.mark.parametrize("size", [1, 50, 1000])
def test_an_exception_does_not_end_the_iteration(size: int) -> None:
    reader = read(Trickle(STREAM, size), on_invalid="raise")
    found: list[Any] = []
    for _ in range(100):
        try:
            found.append(next(reader))
        except InvalidLineError as error:
            # The iteration has already returned the messages before the bad line, so the error must not repeat them.
            found += [*error.messages, error.line]
        except StopIteration:
            break
    assert [type(item) for item in found] == MESSAGES


def test_an_exception_at_the_end_does_not_hide_it() -> None:
    reader = read(io.BytesIO(b"bad\n{"), on_invalid="raise")
    for raw in (b"bad", b"{"):
        with pytest.raises(InvalidLineError) as caught:
            next(reader)
        assert caught.value.line.raw == raw
    assert list(reader) == []
    assert list(reader) == []


def test_an_exception_of_the_callable_does_not_end_the_iteration() -> None:
    def complain(line: InvalidLine) -> None:
        raise KeyError(line.line_number)

    reader = read(Trickle(STREAM, 1000), on_invalid=complain)
    found: list[Any] = []
    raised: list[int] = []
    while True:
        try:
            found.append(next(reader))
        except KeyError as error:
            raised.append(error.args[0])
        except StopIteration:
            break
    assert raised == [3, 6]
    assert [type(item) for item in found] == [cls for cls in MESSAGES if cls is not InvalidLine]


def test_the_stats_are_those_of_the_decoder(path: pathlib.Path) -> None:
    reader = read(path)
    assert reader.stats.lines == 0
    list(reader)
    assert reader.stats == (len(STREAM), 6, 4, 2, 1, 0, 0, 0)


def test_a_reader_is_its_own_iterator(path: pathlib.Path) -> None:
    with read(path) as reader:
        assert isinstance(reader, Reader)
        assert iter(reader) is reader
        assert type(next(reader)) is InitMessage
        assert [type(message) for message in reader] == MESSAGES[1:]


# --- Memory and files -------------------------------------------------------------------------------------------------


def test_it_reads_a_block_at_a_time_and_only_what_is_asked_for() -> None:
    source = Trickle(b'{"type":"keep_alive"}\n' * 100_000, 10**9)
    reader = read(source)
    assert source.asked == []
    assert next(reader) == KeepAlive()
    assert source.asked == [BLOCK_BYTES]
    assert sum(1 for _ in reader) == 99_999
    assert set(source.asked) == {BLOCK_BYTES}


def test_messages_do_not_pile_up() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    line = b'{"type":"user","message":{"role":"user","content":"%s"}}\n' % (b"x" * 900)

    class Endless(io.RawIOBase):
        left = 20_000

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            if not self.left or not buffer:
                return 0
            self.left -= 50
            buffer[: 50 * len(line)] = line * 50
            return 50 * len(line)

    reader = read(Endless())
    next(reader)
    tracemalloc.start()
    try:
        count = sum(1 for _ in reader)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 19_999
    assert peak < 10 * BLOCK_BYTES  # the file has 19 MB


def opened(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Reader[Any], io.FileIO]:
    files: list[io.FileIO] = []
    true_open = open

    def watch(*args: Any, **kwargs: Any) -> Any:
        files.append(true_open(*args, **kwargs))
        return files[-1]

    monkeypatch.setattr("builtins.open", watch)
    reader = read(path)
    (file,) = files
    return reader, file


def test_a_file_it_opened_is_closed_at_its_end(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, file = opened(path, monkeypatch)
    list(reader)
    assert file.closed


def test_a_file_it_opened_is_closed_by_close(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, file = opened(path, monkeypatch)
    next(reader)
    assert not file.closed
    reader.close()
    assert file.closed
    assert list(reader) == []
    reader.close()


def test_a_file_it_opened_is_closed_when_an_exception_leaves_the_block(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, file = opened(path, monkeypatch)
    next(reader)
    with pytest.raises(KeyError), reader:
        raise KeyError
    assert file.closed


def test_a_file_of_the_caller_stays_open() -> None:
    source = io.BytesIO(STREAM)
    with read(source) as reader:
        list(reader)
    assert not source.closed


def test_closing_forgets_what_was_read_but_not_returned(path: pathlib.Path) -> None:
    reader = read(path, on_invalid="raise")
    next(reader)
    reader.close()
    assert list(reader) == []


def test_an_error_of_the_file_passes_through_and_reading_goes_on() -> None:
    class Failing(io.BytesIO):
        fail = True

        def read1(self, size: int | None = -1, /) -> bytes:
            if self.fail:
                self.fail = False
                raise OSError("no medium")
            return super().read1(size)

    reader = read(Failing(STREAM))
    with pytest.raises(OSError, match="no medium"):
        next(reader)
    assert [type(message) for message in reader] == MESSAGES


def test_readers_of_several_threads_do_not_meet(path: pathlib.Path) -> None:
    found: list[list[type]] = []

    def run() -> None:
        found.append([type(message) for message in read(path)])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [MESSAGES] * 4


def test_iterators_may_be_typed_as_such(path: pathlib.Path) -> None:
    iterator: Iterator[Any] = read(path)
    assert len(list(iterator)) == len(MESSAGES)


@pytest.mark.parametrize("source", [5, b"/a/path", None])
def test_what_is_neither_a_path_nor_a_file_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match=type(source).__name__):
        read(source)
