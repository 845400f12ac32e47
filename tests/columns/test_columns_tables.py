"""A scan agrees with the dicts of a Decoder on every recording, on mutated lines, and wherever a file is split."""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
from pathlib import Path
from typing import Any, get_args

import pytest

import recordings
import sessions
from arrow_reader import rows
from claude_wire import Kind
from claude_wire.columns import Range, columns_of, plan, scan
from claude_wire.columns.scan import Scan, _scan
from claude_wire.columns.tables import TableName
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.library import lib
from columns_by_hand import expected
from each import each
from folders import ROOT
from long_tests import LONG
from mutations import mutants

TABLES: tuple[TableName, ...] = get_args(TableName)


def without_path(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "path"} for row in found]


def same(data: bytes, table: TableName, scanned: Scan | None = None) -> None:
    """Check that a scan of these bytes returns the expected rows and report."""
    scanned = scanned or scan(data, table)
    found = without_path(rows(scanned))
    wanted = expected(data, table)
    for one, other in zip(found, wanted.rows, strict=False):
        assert one == other
    assert len(found) == len(wanted.rows)
    report = scanned.report
    assert (report.surrogates, report.misfits, report.invalid) == (
        dict(wanted.surrogates),
        dict(wanted.misfits),
        len(wanted.invalid),
    )
    assert report.rows == len(found)


def plain(data: bytes, table: TableName) -> Scan:
    """Scan with the native code without SIMD."""
    return _scan([data], table, columns_of(table), (), lib.CW_SCAN_PLAIN, DEFAULT_MAX_LINE_BYTES)


@pytest.mark.parametrize("table", TABLES)
@each("name", sessions.scenarios(), str)
def test_stored_sessions(name: str, table: TableName) -> None:
    for data in [*sessions.transcripts(name).values(), *sessions.outputs(name)]:
        same(data, table)


@pytest.mark.parametrize("table", TABLES)
def test_recorded_streams(table: TableName) -> None:
    for name in recordings.names() if LONG else recordings.names()[::7]:
        recording = recordings.load(name)
        same(recording.stdout, table)
        same(recording.stdin, table)


@pytest.mark.parametrize("table", TABLES)
def test_source_tells_streams_from_transcripts(table: TableName) -> None:
    for name in ("tools", "fork_both", "subagent"):
        for where, files in (("transcript", sessions.transcripts(name).values()), ("stream", sessions.outputs(name))):
            for data in files:
                found = {row["source"] for row in rows(scan(data, table, ["source"], only={"user", "assistant"}))}
                assert found <= {where}


def test_a_prompt_that_was_sent_during_a_turn_is_in_the_tables() -> None:
    (data,) = sessions.transcripts("midturn_fold").values()
    said = [row["text"] for row in rows(scan(data, "messages", ["type", "text"])) if row["type"] == "attachment"]
    assert [text for text in said if text is not None] == ["fold me into the turn", "and a picture"]
    found = [(row["block_type"], row["text"]) for row in rows(scan(data, "blocks", only={Kind("attachment")}))]
    assert found == [("text", "fold me into the turn"), ("text", "and a picture"), ("image", None)]


#: Short lines that contain every key that a table reads.
LINES = [
    {
        "type": "assistant",
        "parentUuid": "p",
        "isSidechain": False,
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm\n", "signature": "s"},
                {"type": "text", "text": 'Ünï\u2028code 😀 "quoted"'},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": [1, {}]}},
            ],
            "stop_reason": None,
            "usage": {
                "input_tokens": 1,
                "output_tokens": 2,
                "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 4,
                "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
                "output_tokens_details": {"thinking_tokens": 1},
                "service_tier": "standard",
            },
        },
        "requestId": "req_1",
        "uuid": "u",
        "timestamp": "2026-11-22T19:55:45.198Z",
        "sessionId": "s",
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "c"},
            ],
        },
        "session_id": "s",
        "timestamp": "2026-11-22T19:55:45",
    },
    {"type": "user", "message": {"role": "user", "content": "hello"}, "sessionId": "s", "isSidechain": True},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and this"}, "sessionId": "s"},
    {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "see"}, {"type": "image"}]},
        "sessionId": "s",
    },
    {"type": "system", "subtype": "init", "session_id": "s", "content": "told"},
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 3,
        "duration_ms": 12.5,
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 7, "cache_creation": {"ephemeral_5m_input_tokens": 9}},
        "modelUsage": {"m": {"inputTokens": 7}},
        "result": "done",
    },
    {"type": "cost-state", "totalCostUSD": 1, "totalDuration": 5, "totalAPIDuration": 4, "modelUsage": {}},
]
ENCODED = [json.dumps(line, ensure_ascii=False).encode() for line in LINES]
#: Values that fit almost no column.
VALUES = [
    *["null", "true", "0", "-0", "1.0", "1e2", "2.5", "9007199254740993.0", "9223372036854775807"],
    *["9223372036854775808", "-9223372036854775808", "1" + "0" * 400, '"x"', '""', '"\\ud83d"', '"\\ud83d\\ude00"'],
    *['"a\\ud83d\\ud83d\\ude00\\ude00b"', '"\\ud83d\\n"', '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9"', "{}", "[]", "[1]"],
    *['[{"type":"text"}]', '[{"type":"text","text":"\\udc00"},1]', '[{"content":[2]}]', '"2026-02-29T00:00:00Z"'],
]
TIMES = [
    *["2026-11-22", "2024-02-29 23:59:59.9999999Z", "1969-12-31T23:59:59.5+00:00", "2026-11-22t10:00z", "0001-01-01"],
    *["9999-12-31T23:59:59.999999-23:59", "2026-11-22T10:00:00+0530", "2026-11-22T10:00:00+05", "2000-02-29"],
    *["1900-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "0000-01-01", "2026-1-1", "2026-11-22T24:00:00"],
    *["2026-11-22T10:60:00", "2026-11-22T10:00:60", "2026-11-22T10:00:00+24:00", "2026-11-22T10", "2026-11-22T"],
    *["2026-11-22T10:00:00.", "2026-11-22T10:00:00ZZ", "2026-11-22 10:00:00 Z", "+2026-11-22", "2026-11-22T10:00:0"],
    *["\uff12026-11-22", "", "2026-11-22T10:00:00,25", "2026-11-22T10:00:00.1+0", "1795377344845"],
]


def with_values(line: dict[str, Any], value: str) -> list[bytes]:
    """Replace each value of a line in turn, and return the resulting lines."""
    found: list[bytes] = []

    def each(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            before, node[key] = node[key], "\0here"
            text = json.dumps(line, ensure_ascii=False)
            found.append(text.replace('"\\u0000here"', value).encode())
            node[key] = before
            if isinstance(before, (dict, list)):
                each(before)

    each(line)
    return found


@pytest.mark.parametrize("table", TABLES)
@each("value", VALUES, repr)
def test_any_value_in_any_place(value: str, table: TableName) -> None:
    data = b"\n".join(line for one in LINES for line in with_values(one, value))
    same(data, table)
    same(data, table, plain(data, table))


def test_times() -> None:
    lines = [json.dumps({"type": "x", "timestamp": time}, ensure_ascii=False).encode() for time in TIMES]
    lines.append(rb'{"timestamp":"2026-11-22T10:00:0\u0030Z"}')
    lines.append(rb'{"timestamp":"2026-11-22T10:00:00\ud83d"}')
    same(b"\n".join(lines), "messages")


@pytest.mark.parametrize("table", TABLES)
def test_every_cut_of_a_line(table: TableName) -> None:
    for line in ENCODED:
        data = b"\n".join(line[:cut] for cut in range(len(line) + 1))
        for scanned in (scan(data, table), plain(data, table)):
            same(data, table, scanned)


@pytest.mark.parametrize("seed", range(200 if LONG else 4))
@pytest.mark.parametrize("table", TABLES)
def test_mutated_lines(table: TableName, seed: int) -> None:
    lines = [line for line in mutants(ENCODED, seed, 1500) if b"\n" not in line]
    data = b"\n".join(lines)
    refused = set(expected(data, table).invalid)
    starts = itertools.accumulate((len(line) + 1 for line in lines), initial=0)
    taken = [line for line, start in zip(lines, starts, strict=False) if start not in refused]
    assert len(taken) > 100
    same(b"\n".join(taken), table)
    same(b"\n".join(taken), table, plain(b"\n".join(taken), table))
    # A line that the decoder rejects has rows only if its error is in a value that no column needs.
    scanned = scan(data, table)
    kept = {offset for offset in (row["offset"] for row in rows(scanned)) if offset in refused}
    assert rows(plain(data, table)) == rows(scanned)
    report = scanned.report
    assert report.invalid + len(kept) <= len(refused)
    if table == "messages":
        assert report.invalid + len(kept) == len(refused)


@pytest.mark.parametrize(
    "line",
    [
        rb'{"type":"a","type":"user"}',
        rb'{"type":"user","typ\u0065":"assistant","message":{"content":"x"}}',
        rb'{"type":"user","message":{"content":"x","content":"y"}}',
        rb'{"type":"user","message":{"content":"x"},"message":{"role":"z"}}',
        rb'{"type":"user","message":null,"message":{"content":"y"}}',
        rb'{"type":"user","message":{"content":"y"},"message":null}',
        rb'{"type":"user","message":{"content":[{"type":"text","type":"text","text":"\ud83d"}]}}',
        rb'{"type":"assistant","message":{"usage":{"input_tokens":1,"input_tokens":2},"usage":{}}}',
        rb'{"type":"user","message":{"content":[{"content":[{"text":"a"}],"content":[{"type":"text","text":"b"}]}]}}',
        b' \t{"type" : "user" , "message" : { "content" : [ { "type" : "text" , "text" : "t" } , 1 ] } } \r',
        b'{"type":"user","uuid":"' + b"x" * 600_000 + b'","message":{"content":"y"}}',
    ],
)
@pytest.mark.parametrize("table", TABLES)
def test_lines_that_are_unusual(table: TableName, line: bytes) -> None:
    data = b"\xef\xbb\xbf" + line + b"\n\n" + ENCODED[0] + b"\r\n \n" + line
    same(data, table)


@pytest.mark.parametrize("table", TABLES)
def test_a_line_is_in_the_range_in_which_it_begins(table: TableName, tmp_path: Path) -> None:
    lines = [
        b'{"type":"assistant","message":{"usage":{}}}',
        b"",
        '{"type":"user","message":{"content":"é"}}'.encode(),
        b'{"type":"result"}\r',
        b"torn",
    ]
    data = b"\xef\xbb\xbf" + b"\n".join(lines)
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    wanted = rows(scan(path, table))
    assert wanted
    for cut in range(len(data) + 1):
        parts = [Range(str(path), 0, cut), Range(str(path), cut, len(data))]
        assert rows(scan(parts, table)) == wanted
        assert rows(scan(parts[0], table)) == [row for row in wanted if row["offset"] < cut]


def test_plans_of_any_size_give_all_lines(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "empty")]
    for path, lines in zip(paths, (ENCODED * 3, ENCODED[::-1], []), strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    wanted = rows(scan(paths))
    for target in (1, 7, 100, 1000, 10**9):
        ranges = plan(paths, target)
        assert all(1 <= one.stop - one.start <= target for one in ranges)
        assert rows(scan(ranges)) == wanted


def corpus(size: int, seed: int) -> bytes:
    """Return generated transcripts with unknown lines, torn lines, lone surrogates and duplicates."""
    spec = importlib.util.spec_from_file_location("corpus", ROOT / "benches" / "corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return b"".join(module.lines(size, seed))


@pytest.mark.parametrize("seed", range(125 if LONG else 1))
def test_generated_transcripts(seed: int) -> None:
    """Check 8 MB of generated transcripts; the long tests check 1 GB."""
    data = corpus(8_000_000, seed)
    for table in TABLES:
        same(data, table)


def test_lines_across_the_buffer() -> None:
    rng = random.Random(5)
    lines = [
        json.dumps({"type": "user", "message": {"content": "é" * rng.choice([1, 1000, 200_000])}}).encode()
        if rng.random() < 0.2
        else rng.choice(ENCODED)
        for _ in range(150)
    ]
    same(b"\n".join(lines), "messages")
    same(b"\n".join(lines), "blocks")
