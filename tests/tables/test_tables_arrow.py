"""What a scan hands over belongs to its consumer, who may keep it, take it apart, and release it on any thread."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed
from arrow_reader import Array, batches, columns, fields, opened, rows, values
from children import in_own_process, linux_only
from claude_wire.tables import Scan, scan, usage

DATA = b"".join(
    json.dumps(
        {
            "type": "assistant",
            "uuid": f"u{number}",
            "isSidechain": number % 2 == 0,
            "message": {"id": f"m{number}", "content": [{"type": "text", "text": "é" * (number % 50)}], "usage": {}},
        },
        ensure_ascii=False,
    ).encode()
    + b"\n"
    for number in range(40_000)
)


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
        scanned.__arrow_c_stream__()  # nobody reads it: its capsule releases it
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
    # In a process of its own: DuckDB writes to the standard error of one that ends.
    needed(name)
    in_own_process(taken_by, name, str(tmp_path))


def test_rows_in_the_words_of_a_reader() -> None:
    assert rows(scan(b'{"type":"a"}', "messages", ["type", "text"])) == [{"type": "a", "text": None}]
