"""A LazyFrame gives the same results as the whole frame, and reads only the columns and parts that a query needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from claude_wire.columns import columns_of, files, scan
from recipes import recipe

needed("pyarrow")
polars = needed("polars")

integration = recipe("lines_in_polars")
lazyframe = integration.lazyframe
PART = 500_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_all(tmp_path_factory.mktemp("all"))


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list to which each scan appends the names of its columns."""
    found: list[list[str]] = []

    def noted(source: Any, table: Any, columns: Any, only: Any, **options: Any) -> Any:
        found.append(list(columns or []))
        return scan(source, table, columns, only, **options)

    monkeypatch.setattr(integration, "scan", noted)
    return found


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_sums_are_those_of_the_api(engine: str, folder: Path) -> None:
    frame = lazyframe(folder, "usage", part_bytes=PART)
    # By default polars exports text in an Arrow format that combine() does not accept.
    table = frame.collect(engine=engine).to_arrow(compat_level=polars.CompatLevel.oldest())
    assert sums(table) == wanted()


QUERIES = {
    "all": lambda frame: frame,
    "projection": lambda frame: frame.select("text", "uuid"),
    "one column twice": lambda frame: frame.select("type", kind=polars.col("type")),
    "a predicate over another column": lambda frame: frame.filter(polars.col("type") == "user").select("text"),
    "rows, then a predicate": lambda frame: frame.head(9).filter(polars.col("type") == "assistant").select("uuid"),
    "a predicate, then rows": lambda frame: frame.filter(polars.col("type") == "assistant").head(9).select("uuid"),
    "rows of two parts": lambda frame: frame.head(300).select("offset"),
    "no row": lambda frame: frame.head(0).select("uuid"),
    "rows in the middle": lambda frame: frame.slice(100, 50).select("uuid"),
    "the last rows": lambda frame: frame.tail(3).select("uuid"),
    "how many": lambda frame: frame.select(polars.len()),
    "groups": lambda frame: frame.group_by("type").agg(polars.col("text").str.len_bytes().sum()).sort("type"),
    "time": lambda frame: frame.select(polars.col("timestamp").dt.date().value_counts(sort=True)),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_what_it_gives_on_the_whole_frame(query: str, engine: str, folder: Path) -> None:
    whole = polars.DataFrame(scan(files(folder), "messages"))
    assert len(whole) > 2000
    found = QUERIES[query](lazyframe(folder, part_bytes=PART)).collect(engine=engine)
    assert found.equals(QUERIES[query](whole.lazy()).collect())


def test_only_what_the_query_needs_is_read(scans: list[list[str]], folder: Path) -> None:
    frame = lazyframe(folder, part_bytes=PART)
    del scans[:]  # forget the scan that determined the schema
    frame.filter(polars.col("type") == "user").select("text").collect()
    parts = len(scans)
    assert parts > 10
    assert sorted(scans[0]) == ["text", "type"]
    assert scans == scans[:1] * parts
    del scans[:]
    frame.select("uuid").head(5).collect()
    assert scans == [["uuid"]]


def test_columns_and_kinds_are_those_of_a_scan(folder: Path) -> None:
    frame = lazyframe(folder, "messages", ["uuid", "type"], {"user"})
    assert frame.collect_schema().names() == ["uuid", "type"]
    assert frame.collect()["type"].unique().to_list() == ["user"]
    assert lazyframe(folder, "blocks").collect_schema().names() == list(columns_of("blocks"))
    with pytest.raises(ValueError, match="has no column 'uid'"):
        lazyframe(folder, "messages", ["uid"])
    with pytest.raises(polars.exceptions.ComputeError, match="line 28, column text: half of a surrogate pair"):
        lazyframe(folder, strict=True).collect()
