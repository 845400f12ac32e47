"""Whether the CLI has a conversation on disk that it is to resume."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["is_session_id", "missing_from", "projects_folder"]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def projects_folder(env: Mapping[str, str]) -> Path | None:
    """The folder of the CLI's conversations, by its environment; None if that does not say."""
    config = env.get("CLAUDE_CONFIG_DIR")
    home = env.get("HOME") or env.get("USERPROFILE")
    if not config and not home:
        return None
    return (Path(config) if config else Path(home or "") / ".claude") / "projects"


def is_session_id(text: str) -> bool:
    """Whether ``--resume`` takes a text for the id of a session, and not for its name or the path of its file."""
    return _UUID.fullmatch(text) is not None


def missing_from(session_id: str, env: Mapping[str, str]) -> Path | None:
    """The folder in which no conversation has this id; None if there is one, or nobody can know.

    Conversations of all working directories count: whether the CLI takes one of another directory is for the CLI to
    say. A name or a path is for the CLI, too.
    """
    folder = projects_folder(env)
    if folder is None or not folder.is_absolute() or not is_session_id(session_id):
        return None
    name = f"{session_id.lower()}.jsonl"
    try:
        for project in os.listdir(folder):
            if os.path.exists(os.path.join(folder, project, name)):
                return None
    except FileNotFoundError:
        return folder
    except OSError:
        return None
    return folder
