"""Show what JSON readers do with an emoji that is split over two lines: ``python benches/cut_emoji.py``.

An emoji is two code units in JSON, ``\\ud83d\\ude00``. When the text of a message is streamed, each half may be in its
own line. The JSON grammar allows this (RFC 8259, section 8.2), and the Claude Code CLI writes such lines. Each
installed reader gets four lines. The second and the third line each have half of an emoji.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["LINES", "READERS", "outcome", "report"]

_DELTA = (
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}}'
)
#: Four deltas; an emoji is split between the second and the third.
LINES = "".join(f"{_DELTA % text}\n" for text in ("Hi ", "\\ud83d", "\\ude00", "!")).encode()


def with_claude_wire(file: Path) -> list[str | None]:
    from claude_wire import StreamEvent, read

    return [message.text_delta for message in read(file) if isinstance(message, StreamEvent)]


def with_claude_wire_merging(file: Path) -> list[str | None]:
    from claude_wire import Decoder

    decoder = Decoder(only={"stream_event"}, coalesce=True)
    return [getattr(message, "text_delta", None) for message in decoder.feed(file.read_bytes())]


def with_json(file: Path) -> list[str | None]:
    return [_text(json.loads(line)) for line in file.read_bytes().splitlines()]


def _skipping(module: str, loads: str) -> Callable[[Path], list[str | None]]:
    """Return a reader that decodes line by line and skips refused lines, as the CLI's SDKs do."""

    def decode(file: Path) -> list[str | None]:
        package = importlib.import_module(module)
        function: Callable[[bytes], Any] = package
        for name in loads.split("."):
            function = getattr(function, name)
        texts: list[str | None] = []
        for line in file.read_bytes().splitlines():
            try:
                texts.append(_text(function(line)))
            except ValueError:
                continue
        return texts

    return decode


def with_duckdb(file: Path, ignore_errors: bool = False) -> list[str | None]:
    duckdb = importlib.import_module("duckdb")
    query = f"SELECT event.delta.text FROM read_ndjson('{file}', ignore_errors={str(ignore_errors).lower()})"
    return [row[0] for row in duckdb.sql(query).fetchall()]


def with_polars(file: Path) -> list[str | None]:
    polars = importlib.import_module("polars")
    return [_text(row) for row in polars.read_ndjson(file).to_dicts()]


def _text(message: dict[str, Any]) -> str | None:
    text = message["event"]["delta"]["text"]
    return text if isinstance(text, str) else None


#: Label -> the package, and a function that reads a file with it.
READERS: dict[str, tuple[str, Callable[[Path], list[str | None]]]] = {
    "claude_wire": ("claude_wire", with_claude_wire),
    "claude_wire, coalesce=True": ("claude_wire", with_claude_wire_merging),
    "json": ("json", with_json),
    "orjson, a bad line skipped": ("orjson", _skipping("orjson", "loads")),
    "msgspec, a bad line skipped": ("msgspec", _skipping("msgspec", "json.decode")),
    "DuckDB": ("duckdb", with_duckdb),
    "DuckDB, ignore_errors": ("duckdb", partial(with_duckdb, ignore_errors=True)),
    "polars": ("polars", with_polars),
}


def outcome(reader: Callable[[Path], list[str | None]], data: bytes = LINES) -> list[str | None] | str:
    """Return the texts that a reader finds in these lines, or the error that it raises for the file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cut.ndjson"
        file.write_bytes(data)
        try:
            return reader(file)
        except ImportError:
            return "is not installed"
        except Exception as error:  # each package raises its own exceptions
            return f"refuses the file: {type(error).__name__}"


def report() -> Iterator[str]:
    """Yield a line of text for each reader."""
    for label, (package, reader) in READERS.items():
        found = outcome(reader)
        version = getattr(importlib.import_module(package), "__version__", "") if found != "is not installed" else ""
        yield f"{label:<27} {version:<8} {found if isinstance(found, str) else _shown(found)}"


def _shown(texts: list[str | None]) -> str:
    try:
        return json.dumps(texts, ensure_ascii=False).encode().decode()
    except UnicodeEncodeError:  # UTF-8 cannot encode half an emoji
        return json.dumps(texts)


if __name__ == "__main__":
    print("\n".join(report()))
