"""A transcript as the CLI might have saved it."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["PAST", "keep_session"]

PAST = "0a1b2c3d-0000-4000-8000-000000000001"


def keep_session(home: Path, cwd: Path, id: str = PAST, prompt: str = "Count the pens") -> None:
    """Write the transcript of a session with one prompt and its answer under the CLI's home folder."""
    both = {"sessionId": id, "cwd": os.fspath(cwd), "version": "2.1.330", "isSidechain": False, "userType": "external"}
    asked = {
        "type": "user",
        "uuid": "u-1",
        "parentUuid": None,
        "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "user", "content": prompt},
    }
    answer = {
        "type": "assistant",
        "uuid": "a-1",
        "parentUuid": "u-1",
        "timestamp": "2026-01-02T03:04:06.000Z",
        "message": {
            "id": "m-1",
            "type": "message",
            "role": "assistant",
            "model": "x",
            "content": [{"type": "text", "text": "There are three pens."}],
        },
    }
    folder = home / "projects" / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({**both, **one}) + "\n" for one in (asked, answer)]
    (folder / f"{id}.jsonl").write_text("".join(lines))
