"""Folders of transcripts of any size: ``usage_folder.py FOLDER FILES [KILOBYTES]``.

Each file is a session of its own: a generated transcript (``corpus``) with other ids. One in ten has a subagent.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import corpus

__all__ = ["write"]

#: So many transcripts are generated. The others are these with other ids.
TEMPLATES = 8


def write(folder: Path, files: int, size: int = 1_000_000) -> None:
    """Write a folder of so many files, of about ``size`` bytes each."""
    templates = [b"".join(corpus.lines(size, seed)) for seed in range(TEMPLATES)]
    for number in range(files):
        session = f"{number - number % 10 // 9:08x}-0000-4000-8000-000000000000"
        data = templates[number % TEMPLATES]
        for prefix in (b"msg_", b"req_"):
            data = data.replace(prefix, prefix + b"%06x" % number)
        data = re.sub(rb'"sessionId":"[^"]*"', f'"sessionId":"{session}"'.encode(), data)
        project = folder / f"-home-user-src-{number // 10 % 50}"
        path = project / f"{session}.jsonl"
        if number % 10 == 9:
            path = project / session / "subagents" / f"agent-{number:x}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]), *(int(kilobytes) * 1000 for kilobytes in sys.argv[3:]))
