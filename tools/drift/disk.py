"""Copy the transcripts that a CLI wrote during the scenarios to the recordings, and read them for the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

__all__ = ["FOLDER", "MAX_BYTES", "MAX_FILES", "keep", "kept"]

#: The folder of the transcripts. The folders of recordings, SCENARIO.NUMBER, never have this name.
FOLDER = "transcripts"
#: Maximum bytes and files per scenario. With CLI 2.1.331, the largest scenario writes 0.6 MB in 5 files. Only a CLI
#: that never stops writing reaches the limits.
MAX_BYTES, MAX_FILES = 1 << 23, 100


def keep(home: Path, folder: Path, name: str) -> None:
    """Copy the transcripts below ``home`` to ``NAME.NUMBER.jsonl``, up to the limits and in whole lines."""
    left = MAX_BYTES
    for number, file in enumerate(islice((home / ".claude" / "projects").rglob("*.jsonl"), MAX_FILES), 1):
        if file.is_symlink() or not file.is_file():  # do not follow a link, or wait for a FIFO's writer
            continue
        with open(file, "rb") as opened:
            data = opened.read(left + 1)
        if len(data) > left:
            data = data[: data.rfind(b"\n", 0, left) + 1]
        left -= len(data)
        to = folder / FOLDER
        to.mkdir(mode=0o700, exist_ok=True)
        (to / f"{name}.{number}.jsonl").write_bytes(data)


def kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each kept transcript."""
    for file in sorted((folder / FOLDER).glob("*.jsonl")):
        yield file.name, file.read_bytes()
