"""A simple second implementation of the tables of claude_wire.columns, over the dicts that a Decoder returns."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from claude_wire.codec.objects import BadLine, Objects

__all__ = ["Expected", "expected"]

MISFIT = object()
SURROGATE = re.compile("[\ud800-\udfff]")
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?)?", re.ASCII
)


class Expected(NamedTuple):
    """The expected result of a scan.

    It has the rows of the table, the number of values per column that did not fit, and the lines that are not JSON
    objects.
    """

    rows: list[dict[str, Any]]
    surrogates: Counter[str]
    misfits: Counter[str]
    invalid: list[int]


def text(value: Any) -> Any:
    return value if isinstance(value, str) else MISFIT


def integer(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        value = int(value)
    return value if type(value) is int and -(2**63) <= value < 2**63 else MISFIT


def real(value: Any) -> Any:
    if type(value) is not int and type(value) is not float:
        return MISFIT
    try:
        return float(value)
    except OverflowError:
        return MISFIT


def boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else MISFIT


def time(value: Any) -> Any:
    """Parse a timestamp. Return microseconds since 1970, or MISFIT."""
    match = TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return MISFIT
    date, minutes, seconds, fraction, _, sign, east_hours, east_minutes = match.groups()
    try:
        moment = datetime.datetime.strptime(
            f"{date} {minutes or '00:00'}:{seconds or '00'}", "%Y-%m-%d %H:%M:%S"
        ).replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        return MISFIT
    if int(seconds or 0) > 59:  # strptime accepts seconds to 61
        return MISFIT
    east = int(east_hours or 0) * 60 + int(east_minutes or 0)
    if int(east_hours or 0) > 23 or int(east_minutes or 0) > 59:
        return MISFIT
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    whole = since.days * 86400 + since.seconds - (east * 60 if sign == "+" else -east * 60)
    return whole * 10**6 + int((fraction or "0").ljust(6, "0")[:6])


def as_json(value: Any) -> Any:
    return Json(value)


class Json:
    """Equal to any JSON text of this value, whatever its spaces."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and json.loads(other) == self.value

    __hash__ = None

    def __repr__(self) -> str:
        return f"Json({self.value!r})"


def path(*keys: str) -> Callable[[dict[str, Any]], Any]:
    def get(line: dict[str, Any]) -> Any:
        value: Any = line
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    return get


def either(*keys: str) -> Callable[[dict[str, Any]], Any]:
    return lambda line: next((line[key] for key in keys if line.get(key) is not None), None)


def source(line: dict[str, Any]) -> str | None:
    if not {"sessionId", "parentUuid", "isSidechain"}.isdisjoint(line):
        return "transcript"
    return "stream" if "session_id" in line else None


def joined(blocks: list[Any]) -> tuple[Any, int]:
    """Return the joined text of the text blocks, and the number of text blocks without a string."""
    found = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    texts = [one for one in found if isinstance(one, str)]
    return ("".join(texts) if texts else None), len(found) - len(texts)


def is_list(content: Any) -> bool:
    return isinstance(content, list)


#: Column -> its type, and the function that finds its value. "" marks a column that is computed in another way.
SHARED: dict[str, tuple[Callable[[Any], Any], Callable[[dict[str, Any]], Any]]] = {
    "source": (text, source),
    "uuid": (text, path("uuid")),
    "session_id": (text, either("sessionId", "session_id")),
    "timestamp": (time, path("timestamp")),
    "message_id": (text, path("message", "id")),
    "model": (text, path("message", "model")),
    "is_sidechain": (boolean, path("isSidechain")),
    "agent_id": (text, path("agentId")),
    "parent_tool_use_id": (text, path("parent_tool_use_id")),
}
TYPES = {"type": (text, path("type")), "subtype": (text, path("subtype"))}
REQUEST = {"request_id": (text, either("requestId", "request_id"))}
ROLE = {"role": (text, path("message", "role"))}


def counts(*before: str) -> dict[str, tuple[Callable[[Any], Any], Callable[[dict[str, Any]], Any]]]:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {
        **{name: (integer, path(*before, "usage", name)) for name in names},
        "cache_creation_5m": (integer, path(*before, "usage", "cache_creation", "ephemeral_5m_input_tokens")),
        "cache_creation_1h": (integer, path(*before, "usage", "cache_creation", "ephemeral_1h_input_tokens")),
        "thinking_tokens": (integer, path(*before, "usage", "output_tokens_details", "thinking_tokens")),
        "service_tier": (text, path(*before, "usage", "service_tier")),
    }


TABLES: dict[str, dict[str, tuple[Callable[[Any], Any], Callable[[dict[str, Any]], Any]]]] = {
    "messages": {
        **SHARED,
        **TYPES,
        **REQUEST,
        **ROLE,
        "parent_uuid": (text, path("parentUuid")),
        "stop_reason": (text, path("message", "stop_reason")),
        "cwd": (text, path("cwd")),
        "git_branch": (text, path("gitBranch")),
        "version": (text, path("version")),
    },
    "blocks": {**SHARED, **ROLE},
    "usage": {
        **SHARED,
        **REQUEST,
        **counts("message"),
        "request_session_id": (text, path("requestSessionId")),
        "cwd": (text, path("cwd")),
    },
    "results": {
        **{name: SHARED[name] for name in ("source", "uuid", "session_id", "timestamp")},
        **TYPES,
        **counts(),
        "is_error": (boolean, path("is_error")),
        "num_turns": (integer, path("num_turns")),
        "duration_ms": (real, either("duration_ms", "totalDuration")),
        "duration_api_ms": (real, either("duration_api_ms", "totalAPIDuration")),
        "total_cost_usd": (real, either("total_cost_usd", "totalCostUSD")),
        "text": (text, path("result")),
        "stop_reason": (text, path("stop_reason")),
        "model_usage": (as_json, path("modelUsage")),
    },
}

BLOCK: dict[str, tuple[Callable[[Any], Any], Callable[[dict[str, Any]], Any]]] = {
    "block_type": (text, path("type")),
    "tool_use_id": (text, either("id", "tool_use_id")),
    "tool_name": (text, path("name")),
    "tool_input": (as_json, path("input")),
    "is_error": (boolean, path("is_error")),
}


class _Rows:
    def __init__(self, table: str) -> None:
        self.table = table
        self.found = Expected([], Counter(), Counter(), [])

    def value(self, name: str, kind: Callable[[Any], Any], value: Any) -> Any:
        value = None if value is None else kind(value)
        if value is MISFIT:
            self.found.misfits[name] += 1
            return None
        if isinstance(value, str):
            count = len(SURROGATE.findall(value))
            if count:
                self.found.surrogates[name] += count
                return SURROGATE.sub("\ufffd", value)
        return value

    def line(self, line: dict[str, Any], offset: int) -> None:
        kind, message = line.get("type"), line.get("message")
        usage = path("message", "usage")(line)
        wanted = {
            "messages": True,
            "blocks": kind in ("assistant", "user", "attachment"),
            "usage": kind == "assistant" and isinstance(usage, dict),
            "results": kind in ("result", "cost-state"),
        }
        if not wanted[self.table]:
            return
        content = message.get("content") if isinstance(message, dict) else None
        content = path("attachment", "prompt")(line) if content is None else content
        if self.table != "blocks":
            row = self.shared(line, offset)
            if self.table == "messages":
                row["text"] = self.text(content, line.get("content"))
            self.found.rows.append(row)
        elif isinstance(content, str):
            row = self.shared(line, offset)
            none = dict.fromkeys(BLOCK)
            self.found.rows.append(row | none | {"block": 0, "block_type": "text"})
            self.found.rows[-1]["text"] = self.value("text", text, content)
        elif is_list(content):
            self.found.misfits["text"] += any(not isinstance(block, dict) for block in content)
            for index, block in enumerate(block for block in content if isinstance(block, dict)):
                row = self.shared(line, offset) | {
                    "block": index,
                    "text": self.text(*map(block.get, ("text", "thinking", "content"))),
                }
                row |= {name: self.value(name, kind, get(block)) for name, (kind, get) in BLOCK.items()}
                self.found.rows.append(row)
        elif content is not None:
            self.found.misfits["text"] += 1

    def shared(self, line: dict[str, Any], offset: int) -> dict[str, Any]:
        row = {name: self.value(name, kind, get(line)) for name, (kind, get) in TABLES[self.table].items()}
        return {**row, "offset": offset}

    def text(self, *values: Any) -> Any:
        """Return the first value that is not None. Of a list of blocks, return the joined text."""
        value = next((value for value in values if value is not None), None)
        if is_list(value):
            strays = any(not isinstance(block, dict) for block in value)
            value, misfits = joined(value)
            self.found.misfits["text"] += misfits + strays
        return self.value("text", text, value)


def expected(data: bytes, table: str) -> Expected:
    """Return the result that a scan of these bytes must have."""
    rows = _Rows(table)
    offset = 0
    for number, line in enumerate(data.split(b"\n")):
        bare = line.removesuffix(b"\r")
        if not number:
            bare = bare.removeprefix(b"\xef\xbb\xbf")
        if bare.strip(b" \t\r"):
            try:
                rows.line(Objects("keep").object(bare), offset)
            except BadLine:
                rows.found.invalid.append(offset)
        offset += len(line) + 1
    for counter in (rows.found.surrogates, rows.found.misfits):
        for name in [name for name, count in counter.items() if not count]:
            del counter[name]
    return rows.found
