"""A consumer owns the arrays of a scan: it may keep them, split them, and release them on any thread."""

from __future__ import annotations

import ctypes
import errno
import gc
import importlib
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed
from arrow_reader import Array, batches, columns, fields, opened, rows, values
from children import in_own_process, linux_only
from claude_wire.columns import Scan, scan, usage

LINE = (
    '{"type":"assistant","uuid":"u%d","isSidechain":%s,'
    '"message":{"id":"m%d","content":[{"type":"text","text":"%s"}],"usage":{}}}\n'
)
DATA = "".join(
    LINE % (number, "false" if number % 2 else "true", number, "é" * (number % 50)) for number in range(40_000)
).encode()


def test_a_consumer_keeps_batches_when_stream_and_scan_are_gone() -> None:
    found: Scan | None = scan(DATA, "messages", ["uuid", "text", "is_sidechain"])
    assert found is not None
    stream = opened(found.__arrow_c_stream__())
    known = fields(stream)
    arrays = batches(stream)
    assert len(arrays) == 3
    stream.release(ctypes.byref(stream))
    del found
    gc.collect()
    read = [value for array in arrays for value in values(array.children[1].contents, known[1][1])]
    assert read == ["é" * (number % 50) for number in range(40_000)]
    for array in arrays:
        array.release(ctypes.byref(array))
        assert not array.release


def test_a_child_that_was_moved_out_outlives_its_parent() -> None:
    stream = opened(scan(DATA[:10_000], "messages", ["uuid", "type"]).__arrow_c_stream__())
    (array,) = batches(stream)
    child = Array()
    place = array.children[0]
    ctypes.memmove(ctypes.byref(child), place, ctypes.sizeof(Array))
    ctypes.memset(place, 0, ctypes.sizeof(Array))
    count = array.length
    array.release(ctypes.byref(array))
    stream.release(ctypes.byref(stream))
    assert values(child, "u")[:3] == ["u0", "u1", "u2"]
    assert child.length == count
    child.release(ctypes.byref(child))
    assert not child.release


def test_any_thread_reads_and_releases() -> None:
    stream = opened(scan(DATA, "messages", ["uuid"]).__arrow_c_stream__())
    failures: list[BaseException] = []
    arrays: list[Array] = []

    def read() -> None:
        try:
            arrays.extend(batches(stream))
        except BaseException as error:
            failures.append(error)

    def release() -> None:
        for array in arrays:
            array.release(ctypes.byref(array))
        stream.release(ctypes.byref(stream))

    for step in (read, release):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert not failures
    assert len(arrays) == 3
    assert not stream.release


def test_several_streams_of_a_scan_at_once() -> None:
    found = scan(DATA, "messages", ["uuid", "text"])
    wanted = columns(found)
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(columns(found))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [wanted] * 3


def test_a_stream_that_failed_gives_nothing_more() -> None:
    stream = opened(scan(b"no\n" + DATA, strict=True).__arrow_c_stream__())
    with pytest.raises(OSError, match="line 1: not a JSON object"):
        batches(stream)
    with pytest.raises(OSError, match="line 1: not a JSON object"):
        batches(stream)
    stream.release(ctypes.byref(stream))


def leaks() -> None:
    def resident() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    data = DATA[: 2**20]

    def use() -> None:
        scanned = scan(data, "usage", ["message_id", "request_id", "uuid"])
        columns(scanned)
        scanned.__arrow_c_stream__()  # nobody reads this stream, so its capsule releases it
        unread = opened(scan(data).__arrow_c_stream__())
        unread.release(ctypes.byref(unread))
        columns(usage.combine([scanned, scanned]))

    for _ in range(3):
        use()
    before = resident()
    for _ in range(10):
        use()
    assert resident() - before < 3 * len(data)


@linux_only
def test_nothing_is_left_of_what_was_released() -> None:
    in_own_process(leaks)


def taken_by(name: str, folder: str) -> None:
    library: Any = importlib.import_module(name)
    path = Path(folder) / "x.jsonl"
    path.write_bytes(DATA)
    scanned = scan(path, "messages", ["uuid", "timestamp", "text", "is_sidechain", "offset"])
    wanted = columns(scanned)
    if name == "pyarrow":
        table = library.table(scanned)
        table.validate(full=True)
        found = table.to_pydict()
    elif name == "nanoarrow":
        table = library.ArrayStream(scanned).read_all()
        keys = [field.name for field in table.schema.fields]
        found = {key: [row[key] for row in table.to_pylist()] for key in keys}
    elif name == "polars":
        found = library.DataFrame(scanned).to_dict(as_series=False)
    else:
        relation = library.sql("select * from scanned")
        found = dict(zip(relation.columns, map(list, zip(*relation.fetchall(), strict=True)), strict=True))
    assert found == wanted


@pytest.mark.parametrize("name", ["pyarrow", "nanoarrow", "polars", "duckdb"])
def test_libraries_take_it_as_it_is(name: str, tmp_path: Path) -> None:
    # Runs in a new process, because DuckDB writes to stderr when its process ends.
    needed(name)
    in_own_process(taken_by, name, str(tmp_path))


def test_rows_in_the_words_of_a_reader() -> None:
    assert rows(scan(b'{"type":"a"}', "messages", ["type", "text"])) == [{"type": "a", "text": None}]


# --- without memory, and with several threads -------------------------------------------------------------------------

# Arguments of the program: a file, the remaining bytes of memory, and the work to do.
WITHOUT_MEMORY = """
import ctypes, errno, resource, sys
sys.path.insert(0, {support!r})
from arrow_reader import Array, Stream
from claude_wire.columns import scan, usage
path, left, work = sys.argv[1], int(sys.argv[2]), sys.argv[3]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
def read(table):
    capsule = table.__arrow_c_stream__()
    stream = Stream.from_address(pointer_of(capsule, b"arrow_array_stream"))
    rows = 0
    while True:
        array = Array()
        status = stream.get_next(ctypes.byref(stream), ctypes.byref(array))
        if status == errno.ENOMEM:
            assert b"no memory" in stream.get_last_error(ctypes.byref(stream))
            raise MemoryError
        assert status == 0, status
        if not array.release:
            return rows
        rows += array.length
        array.release(ctypes.byref(array))
names = ["message_id", "request_id", "uuid", "source"] if work == "combine" else ["uuid", "text"]
table = scan(path, "usage" if work == "combine" else "messages", names)
with open("/proc/self/statm") as file:
    held = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + left, resource.RLIM_INFINITY))
try:
    print(read(usage.combine([table, table]) if work == "combine" else table))
except MemoryError:
    print("MemoryError")
""".format(support=str(Path(__file__).parents[1] / "support"))


@linux_only
@pytest.mark.parametrize("work", ["text", "escaped", "combine"])
def test_without_memory_there_is_an_error_and_no_signal(work: str, tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    size = 20_000_000
    text = b"\\n" * (size // 2) if work == "escaped" else b"x" * size
    message = b'"message":{"id":"m","usage":{},"content":"' + text + b'"}'
    path.write_bytes(b'{"type":"assistant","uuid":"2",' + message + b"}\n" + b"{}\n" * (work != "combine"))
    found = []
    for left in (1_000_000, 30_000_000, 60_000_000, 90_000_000, 2**33):
        child = [sys.executable, "-c", WITHOUT_MEMORY, str(path), str(left), work]
        done = subprocess.run(child, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (left, done.returncode, done.stderr)
        found.append(done.stdout.strip())
    right = "1" if work == "combine" else "2"
    assert set(found) == {"MemoryError", right}
    assert (found[0], found[-1]) == ("MemoryError", right)


def test_a_stream_is_read_by_one_thread_at_a_time() -> None:
    # Python decodes these lines, so a thread releases the GIL within the stream, and another thread enters.
    data = b'{"uuid":"a","uuid":"b"}\n' * 5000
    stream = opened(scan(data, "messages", ["uuid"]).__arrow_c_stream__())
    found: list[int] = []
    refused: list[bytes] = []
    statuses: set[int] = set()
    begin = threading.Barrier(6)

    def read() -> None:
        begin.wait(60)
        while True:
            array = Array()
            status = stream.get_next(ctypes.byref(stream), ctypes.byref(array))
            statuses.add(status)
            if status:
                refused.append(stream.get_last_error(ctypes.byref(stream)) or b"")
            elif not array.release:
                return
            else:
                found.append(array.length)
                array.release(ctypes.byref(array))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    stream.release(ctypes.byref(stream))
    assert sum(found) == 5000
    assert statuses <= {0, errno.EBUSY}
    assert set(refused) <= {b"", b"another thread is reading this stream: give each thread its own"}
