"""``claude_wire.columns.usage_rows``: the rows of files add up to each answer once."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessions
from claude_wire.codec.objects import Objects
from claude_wire.columns import Range, columns_of
from claude_wire.columns.tables import usage_rows_spec
from claude_wire.columns.usage_rows import UsageRows, UsageSums, read_usage
from claude_wire.errors import HandleError
from cli_lines import line

ROW_BYTES = 88
HOUR = 3_600_000_000


def answer(id: object, tokens: int = 1, **more: Any) -> bytes:
    usage = {"input_tokens": tokens, "output_tokens": 1}
    message = {"id": f"m{id}", "model": more.pop("model", "x"), "usage": usage}
    return line({"type": "assistant", "message": message, "requestId": "r", "sessionId": "s", **more})


def test_all_columns_are_those_of_the_tables() -> None:
    described = [each.split(" ")[0] for each in usage_rows_spec().decode().splitlines()[2:]]
    assert set(described) <= {*columns_of("usage"), *columns_of("results")}
    assert len(set(described)) == len(described)


def test_what_a_file_has_is_read() -> None:
    cost = {"type": "cost-state", "sessionId": "c", "totalCostUSD": 2, "modelUsage": {"x": {"costUSD": 1.5}, "y": {}}}
    copy = answer(2, requestSessionId="o", cwd="/a")
    synthetic = answer(3, model="<synthetic>")
    found = read_usage(line({"type": "user"}) + answer(1) + copy + synthetic + line(cost) + b"{torn")
    assert (len(found.originals), len(found.copies)) == (ROW_BYTES, ROW_BYTES)
    assert sorted(found.names.values()) == ["o", "s", "x"]
    assert found[3:] == ("s", "/a", (2.0, {"x": 1.5, "y": 0.0}), "c")
    assert read_usage(b"") == UsageRows(b"", b"", {}, "", "", None, "")


@pytest.mark.parametrize(
    ("models", "costs"),
    [
        ('{"x":5,"y":{"costUSD":"1"},"z":{"costUSD":null},"w":{"costUSD":true}}', {"y": 0.0, "z": 0.0, "w": 0.0}),
        *(("null", {}), ("[1]", {}), ("[" * 100_000 + "]" * 100_000, {}), ("9" * 5000, {}), ("{}", {})),
        ('{"x":{"costUSD":' + "9" * 5000 + "}}", {"x": 0.0}),
    ],
    ids=["odd", "null", "list", "deep", "long", "empty", "digits"],
)
def test_the_cost_of_a_model_without_a_number_is_zero(models: str, costs: dict[str, float]) -> None:
    state = b'{"type":"cost-state","sessionId":"\\ud83d","totalCostUSD":0.5,"modelUsage":%s}\n'
    found = read_usage(state % models.encode())
    assert (found.cost, found.cost_session) == ((0.5, costs), "\ufffd")


def test_a_cost_needs_no_models_and_an_answer_no_cost() -> None:
    found = read_usage(b'{"type":"cost-state","totalCostUSD":3}\n{"type":"assistant","modelUsage":{},"message":{}}\n')
    assert found == UsageRows(b"", b"", {}, "", "", (3.0, {}), "")


def test_an_exception_while_python_decodes_a_line_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt usually arrives there, because the native library runs no Python code elsewhere."""
    twice = answer(1).replace(b"{", b'{"type":"user",', 1)
    assert len(read_usage(twice).originals) == ROW_BYTES

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Objects, "object", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_usage(twice)
    assert len(read_usage(answer(1)).originals) == ROW_BYTES


def test_ranges_cut_anywhere_have_the_rows_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(answer(id) for id in range(3)) + b"\n{torn\n" + answer(4).rstrip(b"\n"))
    size = path.stat().st_size
    whole = read_usage(path)
    assert len(whole.originals) == 4 * ROW_BYTES
    for cut in range(size + 1):
        begin, end = (read_usage(Range(str(path), *each)) for each in ((0, cut), (cut, size)))
        assert begin.originals + end.originals == whole.originals
    assert read_usage(path.read_bytes()) == whole


def test_a_file_of_any_name_is_read_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\n.jsonl")
    path.write_bytes(answer(1))
    assert len(read_usage(path).originals) == ROW_BYTES
    with pytest.raises(FileNotFoundError):
        read_usage(tmp_path / "no.jsonl")
    with pytest.raises(IsADirectoryError):
        read_usage(tmp_path)


@pytest.mark.parametrize("name", sessions.scenarios())
def test_sums_are_those_of_the_api(name: str, tmp_path: Path) -> None:
    found = [read_usage(path) for path in sorted(sessions.unpack(name, tmp_path).rglob("*.jsonl"))]
    names = {id: name for each in found for id, name in each.names.items()}
    sums = UsageSums(HOUR, [])
    totals: dict[str, list[int]] = {}
    for rows in [each.originals for each in found] + [each.copies for each in found]:
        for each in sums.add(rows):
            before = totals.setdefault(names[each.model], [0] * 7)
            before[:] = [a + b for a, b in zip(before, each[4:], strict=True)]
    expected: dict[str, dict[str, int]] = sessions.truth(name)["sums"]["expected_from_transcripts"]
    assert totals == {model: list(counts.values()) for model, counts in expected.items()}


ANSWERS = st.tuples(st.integers(0, 5), st.integers(0, 300), st.sampled_from("st"), st.integers(0, 2), st.booleans())


@given(st.lists(st.lists(ANSWERS, max_size=6), max_size=4))
def test_each_answer_counts_once_in_its_group(files: list[list[tuple[int, int, str, int, bool]]]) -> None:
    expected: dict[tuple[str, int, int], int] = defaultdict(int)
    found: dict[tuple[str, int, int], int] = defaultdict(int)
    rows: list[UsageRows] = []
    names: dict[int, str] = {0: ""}
    for file in files:
        lines = [
            answer(
                id,
                tokens,
                timestamp=f"2026-01-02T0{hour}:59:59Z",
                **({"requestSessionId": session, "sessionId": "f"} if is_copy else {"sessionId": session}),
            )
            for id, tokens, session, hour, is_copy in file
        ]
        rows.append(read_usage(b"".join(lines)))
        names |= rows[-1].names
    seen: set[int] = set()
    for only_copies in (False, True):
        for file in files:
            for id, tokens, session, hour, is_copy in reversed(file):
                if is_copy == only_copies and id not in seen:
                    seen.add(id)
                    expected[session, hour, 100 if tokens > 100 else 0] += tokens
    sums = UsageSums(HOUR, [100])
    first = 1_767_312_000_000_000 // HOUR
    for part in [each.originals for each in rows] + [each.copies for each in rows]:
        for each in sums.add(part):
            found[names[each.session], each.period - first, each.step] += each.input_tokens
    assert found == expected


def test_bytes_that_are_not_rows_are_an_error_and_closed_sums_too() -> None:
    sums = UsageSums(HOUR, [])
    with pytest.raises(ValueError, match="these 87 bytes are not rows of usage"):
        sums.add(bytes(87))
    assert sums.add(b"") == []
    sums.close()
    sums.close()
    with pytest.raises(HandleError, match="closed"):
        sums.add(bytes(88))
    del sums
    gc.collect()
