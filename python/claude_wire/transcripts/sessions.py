"""List the sessions in a folder by reading only the beginning and the end of each file."""

from __future__ import annotations

import errno
import heapq
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec

from claude_wire.codec.decoder import Decoder
from claude_wire.messages import InvalidLine, TextBlock, UnknownMessage
from claude_wire.support.plain_json import fields_of
from claude_wire.transcripts.files import open_regular, read_small
from claude_wire.transcripts.records.base import Entry, Record
from claude_wire.transcripts.records.conversation import UserRecord
from claude_wire.transcripts.records.state import (
    AiTitleRecord,
    CustomTitleRecord,
    LastPromptRecord,
    SummaryRecord,
    TagRecord,
)

#: How many bytes to read at the beginning and at the end of a file.
END_BYTES = 64 * 1024

#: Maximum length of a title or prompt in characters. Longer titles and prompts are truncated.
MAX_CHARS = 1000

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

#: Maximum size of a ``custom-title.json`` in bytes. A larger file is not read.
MAX_TITLE_BYTES = 64 * 1024

#: Matches text that the user did not type: a command's output, additions by hooks and IDEs, and the note about an
#: interrupted turn.
_ADDED = re.compile(
    r"\s*(?:<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]"
    r"|<ide_opened_file>.*</ide_opened_file>\s*$|<ide_selection>.*</ide_selection>\s*$)",
    re.DOTALL,
)

Lines = list[Record | UnknownMessage | InvalidLine]


class SessionInfo(NamedTuple):
    """A summary of a session, from the beginning and the end of its file."""

    id: str
    """The session id, for ``--resume``."""
    path: Path
    """The session's file."""
    title: str | None
    """The user's title or, if there is none, the model's title. None if the session has neither."""
    project: str | None
    """The first working directory; None if it is not at the beginning of the file."""
    started: datetime | None
    """The time of the first record, in UTC; None if unknown."""
    ended: datetime | None
    """The time of the last record, in UTC; None if unknown."""
    size: int
    """The file's size in bytes, without the subagents' files."""
    first_prompt: str | None
    """The text of the first prompt.

    If the beginning of the file has only commands, this is the name of the first command, such as ``/clear``. None if
    the beginning has neither.
    """
    last_prompt: str | None
    """The text of the last prompt; None if the end of the file does not contain it."""
    tag: str | None = None
    """The user's tag, or None."""


def find_sessions(
    folder: str | os.PathLike[str], *, newest_first: bool = False, on_file: Callable[[int, int], None] | None = None
) -> Iterator[SessionInfo]:
    """Yield the sessions below a folder. Each file is read only when the iteration reaches it, and at most 128 KiB.

    Args:
        folder: the CLI's configuration folder, the folder ``projects`` in it, or one project's folder.
        newest_first: order the sessions by the time of their last record, the newest first. False: order them by their
            paths.
        on_file: called before each file is read, with the number of files already read and the number of all files.

    A file that is missing, cannot be read, or is not a regular file is omitted. Titles and prompts have at most 1,000
    characters. Times are in UTC.

    Raises:
        NotADirectoryError: there is no such folder.
    """
    if not Path(folder).expanduser().is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "find_sessions() takes a folder, and this path is not one", str(folder))
    # A heap, by time, of sessions that were read but not yielded, because an unread file may have a newer session. No
    # record is newer than its file, so read the files that changed last first.
    waiting: list[tuple[float, int, SessionInfo]] = []
    paths = session_files(folder, newest_first=newest_first)
    for number, path in enumerate(paths):
        if on_file is not None:
            on_file(number, len(paths))
        changed = _changed(path)
        while waiting and -waiting[0][0] >= changed:
            yield heapq.heappop(waiting)[2]
        try:
            session = session_info(path)
        except OSError:
            continue
        if not newest_first:
            yield session
            continue
        ended = changed if session.ended is None else (session.ended - EPOCH) / timedelta(seconds=1)
        heapq.heappush(waiting, (-ended, number, session))
    while waiting:
        yield heapq.heappop(waiting)[2]


def session_files(folder: str | os.PathLike[str], *, newest_first: bool = False) -> list[Path]:
    """Return the session files below a folder, without subagents' files.

    Args:
        folder: as for :func:`find_sessions`.
        newest_first: order the files by the time of their last change, the newest first. False: by their paths.
    """
    root = Path(folder).expanduser()
    root = root / "projects" if (root / "projects").is_dir() else root
    paths = sorted([*root.glob("*.jsonl"), *root.glob("*/*.jsonl")])
    # Older CLIs stored the files of subagents in the same folder as the sessions.
    paths = [path for path in paths if not path.name.startswith("agent-")]
    return sorted(paths, key=_changed, reverse=True) if newest_first else paths


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def session_info(path: Path) -> SessionInfo:
    """Return a summary of the session in a file. Raise OSError if it cannot be read, or is not a regular file."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(END_BYTES)
        begins = max(size - END_BYTES, 0)
        file.seek(begins)
        last = file.read(END_BYTES)
    if begins:
        last = last.partition(b"\n")[2]  # the line before it is incomplete
    head, tail = _records(first), _records(last)
    entries = [record for record in head if isinstance(record, Entry)]
    tags = [record.label for record in head + tail if isinstance(record, TagRecord)]
    last_prompts = [record.lastPrompt for record in tail if isinstance(record, LastPromptRecord)]
    return SessionInfo(
        id=path.stem,
        path=path,
        title=_title(path, head + tail),
        project=next((record.cwd for record in entries if record.cwd is not None), None),
        started=next(_times(head), None),
        ended=next(_times(tail[::-1]), None),
        size=size,
        first_prompt=_first_prompt(record for record in entries if isinstance(record, UserRecord)),
        last_prompt=_cut(last_prompts[-1]) if last_prompts else None,
        tag=(_cut(tags[-1]) or None) if tags else None,
    )


def _records(data: bytes) -> Lines:
    # The last line may be cut. Without its line feed, it stays in the decoder.
    with Decoder(Record) as decoder:
        return decoder.feed(data)


def _title(path: Path, records: Lines) -> str | None:
    given = [record.customTitle for record in records if isinstance(record, CustomTitleRecord)]
    made = [record.aiTitle for record in records if isinstance(record, AiTitleRecord)]
    old = [record.summary for record in records if isinstance(record, SummaryRecord)]
    titles = given or _titles_beside(path) or made or old
    return _cut(titles[-1]) if titles else None


def _titles_beside(path: Path) -> list[str]:
    try:
        title = msgspec.json.decode(read_small(path.with_suffix("") / "custom-title.json", MAX_TITLE_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    found = fields_of(title).get("customTitle")
    return [found] if isinstance(found, str) else []


def _times(records: Lines) -> Iterator[datetime]:
    for record in records:
        stamp = getattr(record, "timestamp", None)
        try:
            # Python 3.10 does not accept a Z.
            time = datetime.fromisoformat(stamp.replace("Z", "+00:00"))  # type: ignore[union-attr]  # None has no replace
            yield time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
        except (AttributeError, ValueError, OverflowError):
            continue


def _first_prompt(records: Iterable[UserRecord]) -> str | None:
    """Return the first text that a user typed, otherwise the name of the first command.

    The rule is the same as in ``_extract_first_prompt_from_head`` in claude-agent-sdk.
    """
    command = None
    for record in records:
        if record.isMeta or record.isCompactSummary or record.tool_results:
            continue
        content = record.message.content
        blocks = [content] if isinstance(content, str) else [b.text for b in content if isinstance(b, TextBlock)]
        for text in blocks:
            # The CLI writes a command that a user types as markup.
            name, closed, _ = text.partition("<command-name>")[2].partition("</command-name>")
            if closed:
                command = command or name
            elif text.strip() and not _ADDED.match(text):
                return _cut(text.strip())
    return _cut(command)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_CHARS]
