"""Each answer is counted once, and the sums are those that the API reported."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sessions
from all_sessions import needed
from arrow_reader import columns, rows
from claude_wire.columns import plan, scan, usage

COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_creation_input_tokens": "cache_creation_input_tokens",
    "cache_creation_5m": "cache_creation_5m",
    "cache_creation_1h": "cache_creation_1h",
    "cache_read_input_tokens": "cache_read_input_tokens",
}


def sums(table: Any) -> dict[str, dict[str, int]]:
    """Return the number of answers and the tokens of each model."""
    models: dict[str, Counter[str]] = {}
    for row in rows(table):
        if row["model"] != "<synthetic>":
            found = models.setdefault(row["model"], Counter())
            found["answers"] += 1
            found.update({name: row[name] or 0 for name in COUNTS})
    return {name: dict(found) for name, found in models.items()}


def wanted(scenario: str) -> dict[str, dict[str, int]]:
    told: dict[str, dict[str, int]] = sessions.truth(scenario)["sums"]["expected_from_transcripts"]
    return told


@pytest.mark.parametrize("name", sessions.scenarios())
def test_sums_are_those_of_the_api(name: str, tmp_path: Path) -> None:
    paths = sorted(sessions.unpack(name, tmp_path).rglob("*.jsonl"))
    if not paths:
        assert not wanted(name)
        return
    told = wanted(name)
    combined = usage.combine(scan(path, "usage") for path in paths)
    assert sums(combined) == told
    assert sums(combined) == told  # it can be read a second time
    assert sums(usage.combine(scan(paths, "usage"))) == told
    # The sums are the same in any order, in ranges, combined twice, and with the CLI's output added.
    assert sums(usage.combine(scan(path, "usage") for path in reversed(paths))) == told
    parts = [usage.combine(scan(part, "usage")) for part in plan(paths, 20_000)]
    assert sums(usage.combine(parts)) == told
    # The CLI's output says less about the same answers, so the transcript's rows replace its rows.
    known = {row["message_id"]: row for row in rows(combined)}
    streams = [scan(output, "usage") for output in sessions.outputs(name)]
    with_streams = rows(usage.combine([*streams, scan(paths, "usage"), *streams]))
    assert {row["message_id"]: row for row in with_streams if row["message_id"] in known} == known


def line(message: str | None, tokens: int, **keys: Any) -> bytes:
    body = {"type": "assistant", "message": {"id": message, "usage": {"output_tokens": tokens}}, **keys}
    return json.dumps(body).encode() + b"\n"


KEYS = ["message_id", "request_id", "uuid", "source", "request_session_id", "output_tokens"]


def tokens(*tables: bytes, columns_: list[str] = KEYS) -> list[int]:
    combined = usage.combine(scan(data, "usage", columns_) for data in tables)
    return columns(combined)["output_tokens"]


def test_which_row_of_an_answer_counts() -> None:
    one = line("m", 1, requestId="r", sessionId="s")
    last = line("m", 2, requestId="r", sessionId="s")
    copy = line("m", 3, requestId="r", sessionId="t", requestSessionId="s")
    stream = line("m", 4, request_id="r", session_id="s")
    for order in itertools.permutations([copy, stream]):
        assert tokens(one, *order, last) == [2]
        assert tokens(*order, one, last) == [2]
        assert tokens(one, last, *order) == [2]
    assert tokens(copy, stream) == tokens(stream, copy) == [3]
    assert tokens(stream) == [4]


def test_what_is_an_answer_of_its_own() -> None:
    assert tokens(line("m", 1, requestId="r"), line("m", 2, requestId="q"), line("m", 3), line("m", 4)) == [1, 2, 4]
    assert tokens(line(None, 1, uuid="u"), line(None, 2, uuid="v"), line(None, 3, uuid="u")) == [2, 3]
    assert tokens(line(None, 1), line(None, 2)) == [1, 2]
    assert tokens(line("m", 1, requestId=""), line("m", 2)) == [1, 2]
    assert tokens(line("mr", 1, requestId=""), line("m", 2, requestId="r")) == [1, 2]


def test_many_answers_go_over_several_batches() -> None:
    data = b"".join(line(f"m{number}", number, requestId="r", sessionId="s") for number in range(50_000))
    assert sorted(tokens(data, data)) == list(range(50_000))


def test_tables_that_cannot_be_combined() -> None:
    found = scan(line("m", 1), "usage", KEYS)
    for table, text in [
        (scan(b"", "usage", ["message_id"]), "lacks the column message_id or request_id"),
        (scan(b"no", "usage", KEYS, strict=True), "line 1: not a JSON object"),
    ]:
        with pytest.raises(ValueError, match=text):
            usage.combine([table])
    with pytest.raises(ValueError, match="columns are not those"):
        usage.combine([found, scan(b"", "usage")])
    with pytest.raises(TypeError, match="Arrow streams, such as Scans, not dict"):
        usage.combine([{}])
    with pytest.raises(ValueError, match="at least one"):
        usage.combine([])
    assert tokens(b"", b"") == []


def test_tables_of_pyarrow() -> None:
    pyarrow: Any = needed("pyarrow")
    data = b"".join(line(f"m{number % 7}", number, requestId="r", isSidechain=True) for number in range(100))
    table = pyarrow.table(scan(data, "usage"))
    wanted = rows(usage.combine(scan(data, "usage")))
    assert rows(usage.combine(table)) == wanted
    for cut in range(20):
        assert rows(usage.combine([table.slice(0, cut), table.slice(cut)])) == wanted
    names = table.schema.names
    large = table.cast(
        pyarrow.schema(
            [
                (name, pyarrow.large_string() if kind == pyarrow.string() else kind)
                for name, kind in zip(names, table.schema.types, strict=True)
            ]
        )
    )
    assert rows(usage.combine(large)) == wanted
    with pytest.raises(ValueError, match="of the Arrow format"):
        usage.combine(table.append_column("x", pyarrow.array([[1]] * 100)))
