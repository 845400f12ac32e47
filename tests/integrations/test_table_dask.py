"""Two Dask worker processes read partitions. The sums over all partitions equal those of the library's own API."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from children import in_own_process
from claude_wire import Kind
from claude_wire.columns import columns_of
from recipes import recipe

needed("distributed")
needed("pyarrow")
pandas = needed("pandas")
dask = needed("dask")

integration = recipe("lines_in_dask")
dataframe = integration.dataframe
PART = 500_000


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return a list to which each scan appends the names of its columns."""
    found: list[list[str]] = []

    def noted(source: Any, table: Any, columns: Any, *rest: Any, **options: Any) -> Any:
        found.append(list(columns))
        return scan(source, table, columns, *rest, **options)

    scan = integration.scan
    monkeypatch.setattr(integration, "scan", noted)
    return found


def in_two_processes(folder: str) -> None:
    import pyarrow
    from distributed import Client, LocalCluster

    address = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.ERROR}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **address) as cluster,
        Client(cluster) as client,
    ):
        frame = dataframe(folder, "usage", part_bytes=PART)
        assert frame.npartitions > 10
        read = frame.compute()
        table = pyarrow.Table.from_pandas(read, preserve_index=False)
        assert sums(table) == wanted()
        # The workers compute each partition separately. The lengths add up to the whole frame.
        parts = client.gather(client.map(len, client.gather(client.compute(frame.to_delayed()))))
        assert sum(parts) == len(frame) == len(read)
        spoken = dataframe(folder, "messages", ["uuid", "type"], {"user", Kind("attachment")}, part_bytes=PART)
        counts = spoken.groupby("type").size().compute().to_dict()
        assert counts == {"user": 389, "attachment": 588}
        answers = frame[frame.model != "<synthetic>"].message_id.nunique().compute()
        assert answers == sum(counts["answers"] for counts in wanted().values())
        assert len(client.scheduler_info()["workers"]) == 2


def test_sums_are_those_of_the_api(tmp_path: Path) -> None:
    in_own_process(in_two_processes, str(unpack_all(tmp_path)))


def test_only_the_columns_that_are_used_are_read(columns_read: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"type":"user","uuid":"a"}\n{"type":"user","uuid":7}\n')
    frame = dataframe(tmp_path)
    assert list(frame.columns) == list(columns_of("messages"))
    del columns_read[:]  # forget the scan that determined the column types
    with dask.config.set(scheduler="synchronous"):
        assert frame.groupby("type").size().compute().to_dict() == {"user": 2}
        assert len(frame[[]].compute()) == 2
        assert frame.uuid.isna().compute().tolist() == [False, True]
    assert [len(columns) for columns in columns_read] == [1, 1, 1]
    assert columns_read[0] == ["type"]
    assert columns_read[2] == ["uuid"]


def test_a_null_is_a_null_and_types_are_those_of_arrow(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"message":{"usage":{"output_tokens":9007199254740993}},"type":"assistant"}\n')
    with dask.config.set(scheduler="synchronous"):
        read = dataframe(tmp_path, "usage", ["output_tokens", "input_tokens", "timestamp"]).compute()
    assert read["output_tokens"].tolist() == [9007199254740993]
    assert read["input_tokens"].isna().tolist() == [True]
    assert {str(kind) for kind in read.dtypes} == {"int64[pyarrow]", "timestamp[us, tz=UTC][pyarrow]"}


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\nno\n")
    with pytest.raises(FileNotFoundError):
        dataframe(tmp_path / "none")
    with pytest.raises(ValueError, match="has no column"):
        dataframe(tmp_path, "messages", ["uid"])
    with dask.config.set(scheduler="synchronous"), pytest.raises(Exception, match=r"x\.jsonl, line 2"):
        dataframe(tmp_path, strict=True).compute()
