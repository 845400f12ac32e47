"""Libraries that read Arrow accept our streams directly: they get all rows, recorded and generated, and the errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from arrow_reader import columns
from claude_wire.columns import Scan, columns_of, files, scan, usage
from folders import ROOT

sys.path.append(str(ROOT / "benches"))
import corpus

Rows = dict[str, list[Any]]


def by_pyarrow(found: Any) -> Rows:
    pyarrow = needed("pyarrow")
    with pyarrow.RecordBatchReader.from_stream(found) as reader:
        table = reader.read_all()
    table.validate(full=True)
    read: Rows = table.to_pydict()
    return read


def by_polars(found: Any) -> Rows:
    read: Rows = needed("polars").DataFrame(found).to_dict(as_series=False)
    return read


def by_duckdb(found: Any) -> Rows:
    with needed("duckdb").connect() as connection:
        connection.register("found", found)
        relation = connection.table("found")
        return dict(zip(relation.columns, map(list, zip(*relation.fetchall(), strict=True)), strict=True))


def by_nanoarrow(found: Any) -> Rows:
    nanoarrow = needed("nanoarrow")
    stream = nanoarrow.ArrayStream(found)
    names = [field.name for field in stream.schema.fields]
    read: Rows = {name: [] for name in names}
    for array in stream:
        for name, child in zip(names, array.iter_children(), strict=True):
            read[name] += child.to_pylist()
    return read


def by_datafusion(found: Any) -> Rows:
    frame = needed("datafusion").SessionContext().from_arrow(found, "found")
    read: Rows = frame.select(*(f'"{field.name}"' for field in frame.schema())).to_pydict()
    return read


READERS: dict[str, Callable[[Any], Rows]] = {
    "pyarrow": by_pyarrow,
    "polars": by_polars,
    "duckdb": by_duckdb,
    "nanoarrow": by_nanoarrow,
    "datafusion": by_datafusion,
}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the paths of all recorded sessions and of a generated file with torn lines and lone surrogates."""
    folder = unpack_all(tmp_path_factory.mktemp("all"))
    corpus.write(folder / "generated.jsonl", 5_000_000)
    return files(folder)


def in_order(read: Rows) -> list[tuple[Any, ...]]:
    # Leave the timestamps out: they are numbers on one side and objects on the other.
    names = [name for name in read if name != "timestamp"]
    return sorted(zip(*(read[name] for name in names), strict=True), key=repr)


@pytest.mark.parametrize("table", ["messages", "blocks", "usage", "results"])
@each_reader
def test_all_rows_arrive(read: Callable[[Any], Rows], table: Any, paths: list[str]) -> None:
    found = scan(paths, table)
    told = read(found)
    assert list(told) == list(columns_of(table))
    own = columns(found)
    assert in_order(told) == in_order(own)
    assert len(told["path"]) > (10 if table == "results" else 1000)
    # Here timestamps are datetime objects. They must be the same moments, in microseconds.
    times = [time for time in told["timestamp"] if time is not None]
    assert sorted(round(time.timestamp() * 1e6) for time in times) == sorted(filter(None, own["timestamp"]))


@each_reader
def test_each_answer_arrives_once(read: Callable[[Any], Rows], paths: list[str]) -> None:
    recorded = [path for path in paths if not path.endswith("generated.jsonl")]
    combined = usage.combine(scan(path, "usage") for path in recorded)
    told = read(combined)
    real = [at for at, model in enumerate(told["model"]) if model != "<synthetic>"]
    assert len(real) == sum(counts["answers"] for counts in wanted().values())
    assert sum(told["output_tokens"][at] for at in real) == sum(counts["output_tokens"] for counts in wanted().values())


@pytest.mark.parametrize("name", ["pyarrow", "duckdb"])
def test_tables_of_others_are_combined(name: str, paths: list[str]) -> None:
    recorded = [path for path in paths if not path.endswith("generated.jsonl")]
    library = needed(name)
    if name == "pyarrow":
        assert sums([library.table(scan(path, "usage")) for path in recorded]) == wanted()
    else:
        with library.connect() as connection:
            assert sums([connection.from_arrow(scan(path, "usage")) for path in recorded]) == wanted()


@each_reader
def test_a_stream_that_fails_says_where(read: Callable[[Any], Rows], tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"type":"user","uuid":"a"}\n' * 3 + b'{"torn\n')
    assert len(read(scan(path))["uuid"]) == 3
    with pytest.raises(Exception, match=r"x\.jsonl, line 4"):
        read(scan(path, strict=True))


@each_reader
def test_a_table_without_rows_has_its_columns(read: Callable[[Any], Rows]) -> None:
    if read is by_duckdb:
        with needed("duckdb").connect() as connection:
            assert connection.from_arrow(scan(b"")).columns == list(columns_of("messages"))
    else:
        assert read(scan(b"", "messages", ["text", "uuid"])) == {"text": [], "uuid": []}


def test_a_stream_may_be_left_in_the_middle() -> None:
    pyarrow = needed("pyarrow")
    found: Scan | None = scan(b'{"uuid":"a"}\n' * 50_000, "messages", ["uuid"])
    reader = pyarrow.RecordBatchReader.from_stream(found)
    first = reader.read_next_batch()
    del reader, found
    assert first["uuid"].to_pylist() == ["a"] * len(first)
    assert 0 < len(first) < 50_000
