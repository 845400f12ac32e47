"""Select one line of each kind from the recordings in ``tests/data``."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import lzma
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from protocol.cases import kind_of
from protocol.vocabulary import Name

__all__ = ["recorded_lines"]

_DATA = Path(__file__).parents[2] / "tests" / "data"
#: File name in an archive -> the schema of the file's lines.
_FILES: dict[str, Name] = {"stdout.ndjson": "output", "stdin.ndjson": "input"}
#: Recordings in which the host sends invalid lines.
_WRONG = ("14_bad", "08_control")
#: Select the line with the most keys among the lines with at most this many bytes.
_MAX_BYTES = 3000


def recorded_lines() -> Iterator[tuple[Name, str, bytes]]:
    """Yield a line of each kind as (schema, kind, bytes), sorted by schema and kind."""
    best: dict[tuple[Name, str], tuple[tuple[int, int], bytes]] = {}
    for schema, line, value in _lines():
        kind = kind_of(value)["kind"]
        rank = (-_keys(value) if len(line) <= _MAX_BYTES else 0, len(line))
        if (schema, kind) not in best or rank < best[schema, kind][0]:
            best[schema, kind] = rank, line
    for (schema, kind), (_, line) in sorted(best.items()):
        yield schema, kind, line


def _lines() -> Iterator[tuple[Name, bytes, dict[str, Any]]]:
    for archive in ("recordings.tar.xz", "sessions-2.1.331.tar.xz"):
        with lzma.open(_DATA / archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as files:
            for member in files:
                folder, _, name = member.name.rpartition("/")
                schema: Name | None = (
                    "records" if name.endswith(".jsonl") and "projects" in folder else _FILES.get(name)
                )
                content = files.extractfile(member)
                if content is None or schema is None or folder.startswith(_WRONG):
                    continue
                for line in content.read().split(b"\n"):
                    with suppress(ValueError):
                        if isinstance(value := json.loads(line), dict):
                            yield schema, line, value


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return max(map(_keys, value), default=0) if isinstance(value, list) else 0
