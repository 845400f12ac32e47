"""Rename, tag, delete and fork sessions on disk. The records are the same as those of the official SDKs.

Each function takes the path of a session's file, or a :class:`SessionInfo`. The CLI may have the session open: a new
line is appended in one write, and the CLI keeps it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import unicodedata
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias, cast

from claude_wire.transcripts.files import open_regular
from claude_wire.transcripts.sessions import SessionInfo, session_info
from claude_wire.transcripts.transcript import MAX_BYTES

SessionFile: TypeAlias = "SessionInfo | str | os.PathLike[str]"

#: The types of records that belong to a conversation.
CONVERSATION = frozenset({"user", "assistant", "attachment", "system", "progress"})
#: Fields about the origin of a record, which would be wrong in a copy.
NOT_COPIED = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
#: Unicode categories that are removed from a tag: format, private use, unassigned.
INVISIBLE = ("Cf", "Co", "Cn")


def rename_session(session: SessionFile, title: str) -> None:
    """Set a session's title. Spaces around the title are removed.

    Raises:
        ValueError: the title is empty, or ``session`` is not a ``.jsonl`` file.
        OSError: the file is absent, empty or cannot be written.
    """
    path = _path(session)
    if not title.strip():
        raise ValueError("the title is empty")
    _append(path, {"type": "custom-title", "customTitle": title.strip(), "sessionId": path.stem})


def tag_session(session: SessionFile, tag: str | None) -> None:
    """Set a session's tag, which replaces an earlier tag. None removes the tag.

    As in the official SDKs, the tag is normalized (NFKC) and invisible characters are removed.

    Raises:
        ValueError: the tag has no visible character, or ``session`` is not a ``.jsonl`` file.
        OSError: the file is absent, empty or cannot be written.
    """
    path = _path(session)
    if tag is not None:
        tag = _visible(tag).strip()
        if not tag:
            raise ValueError("the tag is empty; None removes the tag")
    _append(path, {"type": "tag", "tag": tag or "", "sessionId": path.stem})


def delete_session(session: SessionFile) -> None:
    """Delete a session's file and its subagents' folder. This cannot be undone.

    Raises:
        ValueError: ``session`` is not a ``.jsonl`` file.
        OSError: the file is absent or cannot be deleted. (Files in the folder that cannot be deleted remain, without
            an error.)
    """
    path = _path(session)
    path.unlink()
    shutil.rmtree(path.with_suffix(""), ignore_errors=True)


def fork_session(
    session: SessionFile, *, up_to: str | None = None, title: str | None = None, max_bytes: int = MAX_BYTES
) -> Path:
    """Copy a session to a new file in the same folder, with new uuids.

    Returns the path of the new file: its name is the new session's id followed by ``.jsonl``. Messages of subagents and
    backups of files are not copied.

    Args:
        session: the session to copy.
        up_to: the uuid of the last message to copy; None copies all messages.
        title: the title of the copy. None: the title or the first prompt of the session, followed by ``(fork)``.
        max_bytes: maximum size of the file in bytes, because the copy is made in memory.

    Raises:
        ValueError: the session has no messages, no message has the uuid ``up_to``, or the file is too large or not a
            ``.jsonl`` file.
        OSError: the file cannot be read, or the copy cannot be written.
    """
    path = _path(session)
    with open_regular(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ValueError(f"the session has more than {max_bytes:,} bytes (max_bytes=)")
    entries: list[dict[str, Any]] = []
    replacements: list[Any] = []
    for record in _records(data):
        if record.get("type") in CONVERSATION and isinstance(record.get("uuid"), str):
            entries.append(record)
        elif record.get("type") == "content-replacement" and record.get("sessionId") == path.stem:
            replaced = record.get("replacements")
            replacements += replaced if isinstance(replaced, list) else []
    id, now = str(uuid.uuid4()), datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    records = _copied(_main_chain(entries, up_to), path.stem, id, now)
    added = {"sessionId": id, "uuid": str(uuid.uuid4()), "timestamp": now}
    if replacements:
        records.append({"type": "content-replacement", "replacements": replacements, **added})
    if not title or not title.strip():
        info = session_info(path)
        title = f"{info.title or info.first_prompt or 'Forked session'} (fork)"
    records.append({"type": "custom-title", "customTitle": title.strip(), **added, "uuid": str(uuid.uuid4())})
    fork = path.with_name(f"{id}.jsonl")
    with open(fork, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            file.write(b"".join(map(_line, records)))
            file.flush()
        except BaseException:
            fork.unlink()
            raise
    return fork


def _main_chain(entries: list[dict[str, Any]], up_to: str | None) -> list[dict[str, Any]]:
    """Return the main agent's records, up to and including the record with the uuid ``up_to``."""
    main = [entry for entry in entries if not entry.get("isSidechain")]
    if up_to is not None:
        found = next((index for index, entry in enumerate(main) if entry["uuid"] == up_to), None)
        if found is None:
            raise ValueError("no message of the session has the uuid that up_to= gives")
        main = main[: found + 1]
    if all(entry["type"] == "progress" for entry in main):
        raise ValueError("the session has no messages")
    return main


def _copied(entries: list[dict[str, Any]], source: str, id: str, now: str) -> list[dict[str, Any]]:
    """Copy records with new uuids. Skip ``progress`` records: a child of such a record gets the record's parent."""
    by_uuid = {entry["uuid"]: entry for entry in entries}
    new = {old: str(uuid.uuid4()) for old in by_uuid}
    written = [entry for entry in entries if entry["type"] != "progress"]
    copies: list[dict[str, Any]] = []
    for entry in written:
        parent, passed = by_uuid.get(entry.get("parentUuid") or ""), set[str]()
        while parent is not None and parent["type"] == "progress" and parent["uuid"] not in passed:
            passed.add(parent["uuid"])
            parent = by_uuid.get(parent.get("parentUuid") or "")
        logical = entry.get("logicalParentUuid")
        copy = {
            **entry,
            "uuid": new[entry["uuid"]],
            "parentUuid": None if parent is None or parent["type"] == "progress" else new[parent["uuid"]],
            "logicalParentUuid": new.get(logical) if logical else logical,
            "sessionId": id,
            # The CLI resumes a session at the message with the newest timestamp.
            "timestamp": now if entry is written[-1] else entry.get("timestamp", now),
            "isSidechain": False,
            "forkedFrom": {"sessionId": source, "messageUuid": entry["uuid"]},
        }
        copies.append({key: value for key, value in copy.items() if key not in NOT_COPIED})
    return copies


def _path(session: SessionFile) -> Path:
    path = session.path if isinstance(session, SessionInfo) else Path(session)
    if path.suffix != ".jsonl":
        raise ValueError(f"a session is a .jsonl file, not {path.name!r}")
    return path


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            record: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield cast("dict[str, Any]", record)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _append(path: Path, record: dict[str, Any]) -> None:
    with open_regular(path) as file:  # does not create the file, and does not wait for a pipe
        if not file.seek(0, os.SEEK_END):
            raise FileNotFoundError(f"the session is empty: {path.name}")
        file.seek(-1, os.SEEK_END)
        cut = file.read(1) != b"\n"  # the last line is incomplete, because the CLI was killed
    writer = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        line = b"\n" * cut + _line(record)
        if os.write(writer, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(writer)


def _visible(text: str) -> str:
    before = None
    while text != before:
        before = text
        text = unicodedata.normalize("NFKC", text)
        text = "".join(character for character in text if unicodedata.category(character) not in INVISIBLE)
    return text
