"""The jobs of test_columns.py, written as users of other libraries would write them, on one thread.

Each job reads a file of transcripts and returns what it found: the bench reports a wrong result together with the job's
time.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

# Polars reads this variable only when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import peers
from arrow_reader import Array, opened
from claude_wire.columns import scan, usage
from claude_wire.columns.scan import Source
from claude_wire.columns.tables import TableName

__all__ = ["COLUMNS", "IDS", "TABLES", "TOKENS", "Found", "columns", "drained", "tokens"]

duckdb = peers.optional("duckdb", "duckdb")
polars = peers.optional("polars", "polars")
pyarrow = peers.optional("pyarrow", "pyarrow")
compute = peers.optional("pyarrow.compute", "pyarrow")

IDS = ["message_id", "request_id", "source", "request_session_id", "input_tokens", "output_tokens"]
COLUMNS = [
    *["source", "type", "subtype", "uuid", "parent_uuid", "session_id", "timestamp", "message_id", "request_id"],
    *["role", "model", "text", "stop_reason", "is_sidechain"],
]


class Found(NamedTuple):
    """Two sums: input and output tokens, or the number of texts and of their characters."""

    one: int
    other: int


class Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0


class Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class Message(msgspec.Struct):
    id: str | None = None
    usage: Usage | None = None


class Line(msgspec.Struct):
    type: str = ""
    message: Message | None = None
    requestId: str | None = None


class FullMessage(msgspec.Struct):
    id: str | None = None
    role: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: str | list[Block] | None = None


class FullLine(msgspec.Struct):
    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | None = None
    requestId: str | None = None
    isSidechain: bool | None = None
    message: FullMessage | None = None
    content: str | None = None


def read_by(decode: Callable[[bytes], Any], error: type[Exception] | tuple[type[Exception], ...]) -> Any:
    """Return a function that decodes the lines of a file one by one, and skips lines that ``decode`` refuses."""

    def lines(path: Path) -> Iterator[Any]:
        with open(path, "rb") as file:
            for line in file:
                try:
                    yield decode(line)
                except error:
                    continue

    return lines


# --- tokens by message id ---------------------------------------------------------------------------------------------


def drained(source: Source | Iterable[Source], table: TableName, names: list[str]) -> int:
    """Read a scan to its end, without reading the values, and return the number of rows."""
    rows = 0
    stream = opened(scan(source, table, names).__arrow_c_stream__())
    while True:
        array = Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(array)):
            raise OSError(stream.get_last_error(ctypes.byref(stream)))
        if not array.release:
            break
        rows += array.length
        array.release(ctypes.byref(array))
    stream.release(ctypes.byref(stream))
    return rows


def tokens(path: Path) -> Found:
    table = pyarrow.table(usage.combine(scan(path, "usage", IDS)))
    return Found(*(compute.sum(table[name]).as_py() for name in ("input_tokens", "output_tokens")))


def tokens_by_msgspec(path: Path) -> Found:
    best: dict[Any, Usage] = {}
    for line in read_by(msgspec.json.Decoder(Line).decode, (msgspec.MsgspecError, UnicodeDecodeError))(path):
        if line.type == "assistant" and line.message is not None and line.message.usage is not None:
            best[line.message.id, line.requestId] = line.message.usage
    return Found(sum(one.input_tokens for one in best.values()), sum(one.output_tokens for one in best.values()))


def _tokens_of_dicts(loads: Callable[[bytes], Any]) -> Callable[[Path], Found]:
    def job(path: Path) -> Found:
        best: dict[Any, dict[str, int]] = {}
        for line in read_by(loads, ValueError)(path):
            if line.get("type") == "assistant" and "usage" in line["message"]:
                best[line["message"]["id"], line.get("requestId")] = line["message"]["usage"]
        counts = best.values()
        return Found(sum(one["input_tokens"] for one in counts), sum(one["output_tokens"] for one in counts))

    return job


def _duckdb(query: str, path: Path) -> Any:
    database = duckdb.connect(config={"threads": 1})
    return database.sql(query, params={"path": str(path)})


def tokens_by_duckdb(path: Path) -> Found:
    query = """
        select sum(one), sum(other) from (
            select last(message.usage.input_tokens) one, last(message.usage.output_tokens) other
            from read_json($path, format='newline_delimited', ignore_errors=true, columns={
                type: 'VARCHAR', requestId: 'VARCHAR',
                message: 'STRUCT(id VARCHAR, usage STRUCT(input_tokens BIGINT, output_tokens BIGINT))'})
            where type = 'assistant' and message.usage is not null group by message.id, requestId)
    """
    return Found(*map(int, _duckdb(query, path).limit(1).fetchall()[0]))


def tokens_by_polars(path: Path) -> Found:
    counts = polars.Struct({"input_tokens": polars.Int64, "output_tokens": polars.Int64})
    message = polars.Struct({"id": polars.String, "usage": counts})
    schema = {"type": polars.String, "requestId": polars.String, "message": message}
    of = polars.col("message").struct
    best = (
        polars.scan_ndjson(path, schema=schema, ignore_errors=True)
        .filter((polars.col("type") == "assistant") & of.field("usage").is_not_null())
        .group_by(of.field("id"), "requestId")
        .agg(of.field("usage").last())
        .select(polars.col("usage").struct.unnest().sum())
        .collect()
    )
    return Found(*best.row(0))


# --- 14 columns with text ---------------------------------------------------------------------------------------------


def _texts(table: Any) -> Found:
    lengths = compute.utf8_length(table["text"])
    return Found(len(lengths) - lengths.null_count, compute.sum(lengths).as_py())


def columns(path: Path) -> Found:
    return _texts(pyarrow.table(scan(path, "messages", COLUMNS)))


def columns_by_msgspec(path: Path) -> Found:
    """Decode the lines to msgspec Structs, collect lists, and build an Arrow table from the lists."""
    found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    adds = [column.append for column in found.values()]
    for line in read_by(msgspec.json.Decoder(FullLine).decode, (msgspec.MsgspecError, UnicodeDecodeError))(path):
        message = line.message or FullMessage()
        text = message.content if message.content is not None else line.content
        if isinstance(text, list):
            text = "".join([block.text for block in text if block.text is not None]) or None
        values = (
            "transcript" if line.sessionId else None,
            *(line.type, line.subtype, line.uuid, line.parentUuid, line.sessionId, line.timestamp, message.id),
            *(line.requestId, message.role, message.model, text, message.stop_reason, line.isSidechain),
        )
        for add, value in zip(adds, values, strict=True):
            add(value)
    return _texts(pyarrow.table(found))


def columns_by_duckdb(path: Path) -> Found:
    query = """
        select type, subtype, uuid, parentUuid, sessionId, timestamp, message.id, requestId, message.role,
            message.model, case json_type(message.content) when 'VARCHAR' then message.content->>'$'
                when 'ARRAY' then nullif(array_to_string(message.content->>'$[*].text', ''), '')
                else content end as text, message.stop_reason, isSidechain, 'transcript' as source
        from read_json($path, format='newline_delimited', ignore_errors=true, columns={
            type: 'VARCHAR', subtype: 'VARCHAR', uuid: 'VARCHAR', parentUuid: 'VARCHAR', sessionId: 'VARCHAR',
            timestamp: 'TIMESTAMPTZ', requestId: 'VARCHAR', isSidechain: 'BOOLEAN', content: 'VARCHAR',
            message: 'STRUCT(id VARCHAR, role VARCHAR, model VARCHAR, content JSON, stop_reason VARCHAR)'})
    """
    return _texts(_duckdb(query, path).to_arrow_table())


def columns_by_polars(path: Path) -> Found:
    """Read with Polars. A Polars column has one type, so ``content`` is a list of blocks, as in most lines."""
    blocks = polars.List(polars.Struct({"type": polars.String, "text": polars.String}))
    strings = dict.fromkeys(["id", "role", "model", "stop_reason"], polars.String)
    names = ["type", "subtype", "uuid", "parentUuid", "sessionId", "timestamp", "requestId"]
    schema = {
        **dict.fromkeys(names, polars.String),
        "isSidechain": polars.Boolean,
        "message": polars.Struct({**strings, "content": blocks}),
    }
    of = polars.col("message").struct
    texts = of.field("content").list.eval(polars.element().struct.field("text")).list.drop_nulls()
    table = (
        polars.scan_ndjson(path, schema=schema, ignore_errors=True)
        .select(
            *names,
            "isSidechain",
            *(of.field(name) for name in strings),
            polars.when(texts.list.len() > 0).then(texts.list.join("")).alias("text"),
        )
        .collect()
    )
    return _texts(table.to_arrow())


Peer = Callable[[Path], Found]
TOKENS: dict[str, Peer | None] = {
    "msgspec by hand": tokens_by_msgspec,
    "duckdb, read_json": tokens_by_duckdb if duckdb else None,
    "polars, scan_ndjson": tokens_by_polars if polars else None,
    "orjson.loads (dicts)": _tokens_of_dicts(peers.orjson.loads) if peers.orjson else None,
    "json.loads (dicts)": _tokens_of_dicts(json.loads),
}
TABLES: dict[str, Peer | None] = {
    "msgspec by hand, and pyarrow": columns_by_msgspec if pyarrow else None,
    "duckdb, read_json": columns_by_duckdb if duckdb and pyarrow else None,
    "polars, scan_ndjson": columns_by_polars if polars and pyarrow else None,
}
