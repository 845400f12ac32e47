"""List and read sessions that the CLI keeps on disk, if their folder is below one of a profile's roots."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from claude_wire import Decoder
from claude_wire.messages import InvalidLine, UnknownMessage
from claude_wire.transcripts import AssistantRecord, Record, Transcript, UserRecord, find_sessions, messages
from claude_wire_kit.events import Bridge
from claude_wire_kit.events.bounds import bounded
from claude_wire_kit.supervisor.disk.files import open_private
from claude_wire_kit.web.config import FolderError

if TYPE_CHECKING:
    from pathlib import Path

    from claude_wire.transcripts import Node
    from claude_wire_kit.events.events import UiEvent
    from claude_wire_kit.web.config import Config

#: Maximum number of files to examine.
MAX_FILES = 2_000
#: Maximum number of sessions to list.
MAX_LISTED = 100
#: Number of bytes in the file that become one page of events.
PAGE_BYTES = 1024 * 1024
#: If a line is longer than a page, the page grows up to about this size.
MAX_LINE_BYTES = 64 * 1024 * 1024
#: Maximum size in bytes of a subagent's file. The page omits the events of a larger file.
MAX_SUBAGENT_BYTES = 4 * 1024 * 1024

_ID = re.compile(r"(\d{1,18})\.([^\s.]{1,128})", re.ASCII)


class PastSession(msgspec.Struct, frozen=True):
    """A session that the CLI keeps on disk.

    Attributes:
        id: the CLI's id for the session, the value for ``--resume``.
        title: the title, or the beginning of the first prompt.
        cwd: the CLI's working directory.
        ended: the time of the last record, in seconds since 1970; None if it is not known.
        profile: the first profile with a root above ``cwd``.
    """

    id: str
    title: str
    cwd: str
    ended: float | None
    profile: str


def list_past(config: Config) -> list[PastSession]:
    """Return the newest :data:`MAX_LISTED` sessions, newest first."""
    return [session for session, _ in islice(_sessions(config), MAX_LISTED)]


class PastId(NamedTuple):
    """A place in a session's file. The events before it are in the first ``offset`` bytes, on the branch of records
    that ends with the record ``leaf``.
    """

    offset: int
    leaf: str

    @staticmethod
    def of(text: str) -> PastId:
        """Parse an id from a client.

        Raises:
            ValueError: ``text`` is not an id.
        """
        found = _ID.fullmatch(text)
        if found is None:
            raise ValueError("the id of an event on disk must be an offset and the id of a record, such as 4096.UUID")
        return PastId(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.offset}.{self.leaf}"


class PastEvent(NamedTuple):
    """An event, and the id that a client sends to get earlier events; None if there are none. All events of an answer
    have the same id.
    """

    id: PastId | None
    event: UiEvent


class PastPage(NamedTuple):
    """Events in order, and the id that a client sends to get earlier events; None if there are none."""

    events: list[PastEvent]
    before: PastId | None


def past_events(config: Config, id: str, before: PastId | None, count: int) -> PastPage | None:
    """Return a session's last events, or the last events before an id. None if no listed session has this ``id``.

    Args:
        before: the id of an event; None for the last events of the session.
        count: return at least this many events, if a page of :data:`PAGE_BYTES` contains enough.

    Raises:
        OSError, ValueError: the session's file cannot be read.
    """
    path = next((path for session, path in islice(_sessions(config), MAX_LISTED) if session.id == id), None)
    if path is None:
        return None
    leaf = None if before is None else before.leaf
    with open(path, "rb", opener=open_private) as file:
        size = os.fstat(file.fileno()).st_size
        start, lines = _lines_before(file, size if before is None else min(before.offset, size))
    records, ends = _records(start, lines)
    transcript = Transcript(records, path)
    if leaf is not None and leaf not in transcript.tree.nodes:  # its line is on an earlier page
        return PastPage([], PastId(start, leaf) if start else None)
    groups = _groups(transcript, leaf, ends, start)
    while len(groups) > 1 and sum(len(events) for _, events in groups[1:]) >= count:
        del groups[0]
    return PastPage([PastEvent(id, event) for id, events in groups for event in events], groups[0][0])


def _lines_before(file: IO[bytes], end: int) -> tuple[int, list[bytes]]:
    """Return the whole lines in the last :data:`PAGE_BYTES` before ``end`` (at least one), and their start offset.

    Raises:
        ValueError: a line is too long.
    """
    size = PAGE_BYTES
    while True:
        start = max(0, end - size)
        file.seek(start)
        data = file.read(end - start)
        if start == 0:
            return 0, data.split(b"\n")
        # Skip the first line: its beginning is before the page.
        at = data.find(b"\n") + 1
        if 0 < at < len(data):
            return start + at, data[at:].split(b"\n")
        if size >= MAX_LINE_BYTES:
            raise ValueError(f"a line has more than {MAX_LINE_BYTES:,} bytes")
        size *= 4


def _records(start: int, lines: list[bytes]) -> tuple[list[Record | UnknownMessage | InvalidLine], dict[str, int]]:
    """Decode lines. Returns the records, and a dict: uuid of a record -> offset after its line."""
    records: list[Record | UnknownMessage | InvalidLine] = []
    ends: dict[str, int] = {}
    decoder = Decoder(Record, on_invalid="return")
    for line in lines:
        start += len(line) + 1
        for record in decoder.feed(line + b"\n"):
            records.append(record)
            uuid = None if isinstance(record, InvalidLine) else record.to_dict().get("uuid")
            if isinstance(uuid, str):
                ends.setdefault(uuid, start)
    return records, ends


def _groups(
    transcript: Transcript, leaf: str | None, ends: dict[str, int], start: int
) -> list[tuple[PastId | None, list[UiEvent]]]:
    """Return the events of a branch in groups, each with the id of its events. A group begins with a prompt or an
    answer.
    """
    begins: dict[str, PastId | None] = {}
    answer: str | None = None
    end = start
    for number, record in enumerate(transcript.branch(leaf)):
        uuid, parent = _place(record)
        is_answer = isinstance(record, AssistantRecord) and record.message.id != answer
        if number == 0 or is_answer or (isinstance(record, UserRecord) and record.is_prompt):
            begins[uuid] = PastId(end, parent) if parent is not None and end else None
        if isinstance(record, AssistantRecord):
            answer = record.message.id
        end = max(end, ends.get(uuid, 0))
    ui = Bridge(details=True)
    groups: list[tuple[PastId | None, list[UiEvent]]] = [(next(iter(begins.values()), None), [])]
    for message in messages(transcript, leaf, max_bytes=MAX_SUBAGENT_BYTES):
        source: str | None = getattr(message, "uuid", None)
        if groups[-1][1] and source in begins and getattr(message, "parent_tool_use_id", None) is None:
            groups.append((begins[source], []))
        groups[-1][1].extend(map(bounded, ui.add(message)))
    if leaf is None:
        groups[-1][1].extend(ui.end())
    return groups


def _place(record: Node) -> tuple[str, str | None]:
    """Return the ids of a record and its parent. A summary's parent is the last record that it replaces."""
    fields = record.to_dict()
    parent = fields.get("parentUuid") or fields.get("logicalParentUuid")
    return str(fields.get("uuid")), parent if isinstance(parent, str) else None


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
