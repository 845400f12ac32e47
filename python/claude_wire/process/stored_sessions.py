"""Before starting the CLI to resume a conversation, check that the conversation is on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def projects_folder(env: Mapping[str, str]) -> Path | None:
    """Find the CLI's conversations folder from its environment. Return None if it does not name a home folder."""
    config = env.get("CLAUDE_CONFIG_DIR")
    home = env.get("HOME") or env.get("USERPROFILE")
    if not config and not home:
        return None
    return (Path(config) if config else Path(home or "") / ".claude") / "projects"


def is_session_id(text: str) -> bool:
    """Return True if ``text`` is a UUID, like a session id. ``--resume`` treats any other text as a name or path."""
    return _UUID.fullmatch(text) is not None


def folder_without_session(session_id: str, env: Mapping[str, str]) -> Path | None:
    """Return the conversations folder if no conversation in it has this id. Otherwise, or if unknown, return None.

    Conversations from all working directories count, because the CLI decides whether it resumes a conversation from
    another directory. For a name or path, return None: only the CLI can find the conversation.
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
