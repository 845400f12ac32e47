"""The sessions that the CLI keeps on disk: those whose folder a profile allows, to be read and resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.transcripts import Transcript, find_sessions, messages
from claude_wire_kit.events import Bridge
from claude_wire_kit.web.config import FolderError

if TYPE_CHECKING:
    from pathlib import Path

    from claude_wire_kit.web.config import Config

#: At most this many files are looked at, and this many sessions are listed.
MAX_FILES = 2_000
MAX_LISTED = 100
#: A larger file is not read, and of its events the last so many are given.
MAX_BYTES = 64 * 1024 * 1024
MAX_EVENTS = 2_000


class PastSession(msgspec.Struct, frozen=True):
    """A session of the CLI.

    Attributes:
        id: for ``--resume``.
        title: the title, or the beginning of the first prompt.
        cwd: its folder.
        ended: in seconds since 1970; None if it is not known.
        profile: the first profile that allows its folder.
    """

    id: str
    title: str
    cwd: str
    ended: float | None
    profile: str


def list_past(config: Config) -> list[PastSession]:
    """Return the sessions, the newest first. Without the CLI's folder there are none."""
    return [session for session, _ in islice(_sessions(config), MAX_LISTED)]


def past_events(config: Config, id: str) -> list[dict[str, Any]] | None:
    """Return the last events of a session; None if there is no such session.

    Raises:
        OSError, ValueError: its file cannot be read, or is too large.
    """
    path = next((path for session, path in islice(_sessions(config), MAX_LISTED) if session.id == id), None)
    if path is None:
        return None
    ui = Bridge(details=True)
    events = [event for message in messages(Transcript.load(path, max_bytes=MAX_BYTES)) for event in ui.add(message)]
    return [event.to_dict() for event in (*events, *ui.end())][-MAX_EVENTS:]


def _sessions(config: Config) -> Iterator[tuple[PastSession, Path]]:
    home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    projects = os.path.join(home, "projects")
    if not os.path.isdir(projects):
        return
    for info in islice(find_sessions(projects, newest_first=True), MAX_FILES):
        profile = None if info.project is None else _profile(config, info.project)
        if info.project is not None and profile is not None:
            title = info.title or info.first_prompt or info.id
            ended = None if info.ended is None else info.ended.timestamp()
            yield PastSession(info.id, title[:200], info.project, ended, profile), info.path


def _profile(config: Config, folder: str) -> str | None:
    for name, profile in config.profiles.items():
        try:
            profile.folder(folder)
        except FolderError:
            continue
        return name
    return None
