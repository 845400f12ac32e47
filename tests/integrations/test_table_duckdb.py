"""A DuckDB view over lines gives the same sums as the library's own API, on every query."""

from __future__ import annotations

from pathlib import Path

import pytest

from all_sessions import needed, sums, unpack_all, wanted
from claude_wire.columns import files, scan

duckdb = needed("duckdb")


def test_sums_are_those_of_the_api(tmp_path: Path) -> None:
    folder = unpack_all(tmp_path)
    with duckdb.connect() as connection:
        connection.register("usage", scan(files(folder), "usage"))
        relation = connection.view("usage")
        assert sums(relation) == wanted()
        assert sums(connection.table("usage")) == wanted()
        rows = connection.sql("select count(*), count(distinct message_id) from usage").fetchall()
        assert rows == relation.aggregate("count(*), count(distinct message_id)").fetchall()
        # The rule of combine() written in SQL, without the part for streams, which these files do not contain.
        once = """
            select model, count(*), sum(output_tokens)::bigint from (
                from usage where model <> '<synthetic>' qualify row_number() over (
                    partition by message_id, request_id
                    order by request_session_id is null desc, path desc, "offset" desc) = 1)
            group by all"""
        assert set(connection.sql(once).fetchall()) == {
            (model, counts["answers"], counts["output_tokens"]) for model, counts in wanted().items()
        }


def test_a_view_is_read_anew_and_has_the_columns_and_the_name_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"type":"user","uuid":"a"}\n{"type":"system","uuid":"b"}\n')
    with duckdb.connect() as connection:
        connection.register("spoken", scan(path, "messages", ["uuid"], ["user"]))
        relation = connection.view("spoken")
        assert relation.columns == ["uuid"]
        assert connection.sql("from spoken").fetchall() == [("a",)]
        path.write_bytes(b'{"type":"user","uuid":"c"}\n{"torn')
        assert connection.sql("from spoken").fetchall() == relation.fetchall() == [("c",)]
        connection.register("messages", scan(path, strict=True))
        with pytest.raises(duckdb.Error, match=r"x\.jsonl, line 2"):
            connection.sql("from messages").fetchall()


def test_a_scan_of_ones_own_tells_what_did_not_fit() -> None:
    found = scan(b'{"uuid":7}\n', "messages", ["uuid"])
    with duckdb.connect() as connection:
        connection.register("lines", found)
        assert connection.sql("from lines").fetchall() == [(None,)]
    assert found.report.misfits == {"uuid": 1}
