"""Keep the transcripts that a CLI wrote in the scenarios beside the recordings, and read them for the comparison."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

__all__ = ["FOLDER", "MAX_BYTES", "MAX_FILES", "keep", "kept"]

#: Name of their folder, beside the folders of the recordings: those are called SCENARIO.NUMBER, so none has this name.
FOLDER = "transcripts"
#: Limits for one scenario: bytes of all its transcripts together, and how many files are read. The largest scenario of
#: CLI 2.1.331 leaves 0.6 MB in 5 files; only a CLI that writes without end reaches the limits.
MAX_BYTES, MAX_FILES = 1 << 23, 100


def keep(home: Path, folder: Path, name: str) -> None:
    """Keep the transcripts below a home, by the name of their scenario, whole lines up to the bounds."""
    left = MAX_BYTES
    for number, file in enumerate(islice((home / ".claude" / "projects").rglob("*.jsonl"), MAX_FILES), 1):
        if file.is_symlink() or not file.is_file():  # it would be followed, or waited for
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
    """The transcripts among recordings, each with its name."""
    for file in sorted((folder / FOLDER).glob("*.jsonl")):
        yield file.name, file.read_bytes()
