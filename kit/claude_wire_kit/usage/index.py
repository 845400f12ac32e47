"""Keep the usage of a folder of transcripts in an SQLite file, so the next query reads only what was added.

Each answer counts once, by the rules of :mod:`claude_wire_kit.usage.answers`. The index has small rows of numbers for
the answers in each file, and the sums of these rows. After a change, it reads only what is new in the files, and adds
up all rows again, because several files may have the same answers.

The index contains no conversation text, only paths, model and subagent names, session ids, digests of answer ids, times
and numbers.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache, partial
from hashlib import blake2b
from operator import add
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from claude_wire.support import require_one_of
from claude_wire_kit.usage.prices import PRICES, PROMPT_STEPS, Prices
from claude_wire_kit.usage.tokens import AnswerTotals, cut_name

if TYPE_CHECKING:
    from typing_extensions import Self

    from claude_wire_kit.usage.file_delta import FileDelta

T = TypeVar("T")

#: The ways to group the sums.
By: TypeAlias = Literal["day", "week", "month", "project", "model", "session", "subagent"]

#: The groups that are periods of time, with the ``strftime`` format of their names. Weeks are ISO 8601 weeks, which
#: begin on Monday.
PERIODS = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}

#: The version of the tables below. An index with another version is rebuilt.
VERSION = 3

#: How many seconds to wait while another process is writing the index.
BUSY_SECONDS = 30

#: Each quarter of an hour has its own sums, because time zones differ by whole quarter hours. A quarter hour is stored
#: as its number, counted from 1970. ``NO_TIME`` stands for a missing time or one before 1970, and ``NEVER`` is after
#: all times.
QUARTER_SECONDS, NO_TIME, NEVER = 900, -1, 2**62

#: Transcripts are searched in subfolders up to this depth.
MAX_LEVELS = 6

#: The columns with numbers of tokens.
COUNTS = ("input", "output", "written", "written_5m", "written_1h", "read")
_SCHEMA = f"""
CREATE TABLE files (id INTEGER PRIMARY KEY, path BLOB UNIQUE, size INT, mtime INT, inode INT, offset INT, tail BLOB,
  agent TEXT, session TEXT, project TEXT, cost TEXT, gone INT DEFAULT 0, rows_digest BLOB);
CREATE TABLE rows (file INTEGER PRIMARY KEY, originals BLOB, copies BLOB);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE sums (file INT, session INT, model INT, quarter INT, step INT, answers INT, {", ".join(COUNTS)});
CREATE TABLE digest (value BLOB);
PRAGMA user_version = {VERSION};
"""
#: The table ``digest`` has a digest of what these queries return, because SQLite reports no error for a flipped bit in
#: a number. ``files`` has a digest of each file's rows.
_DIGESTED = ("SELECT * FROM files ORDER BY id", "SELECT * FROM names ORDER BY id", "SELECT * FROM sums")
#: Stores a new file, or updates a file that grew: its session and project stay, and a new cost replaces the old one.
#: But the session of a file without answers is that of its last cost.
_STORE = """
INSERT INTO files (id, path, size, mtime, inode, offset, tail, agent, session, project, cost, rows_digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET (size, mtime, inode, offset, tail, session,
  project, cost, rows_digest) = (excluded.size, excluded.mtime, excluded.inode, excluded.offset, excluded.tail,
  CASE WHEN rows_digest IS NULL THEN coalesce(excluded.session, session) ELSE coalesce(session, excluded.session) END,
  coalesce(project, excluded.project), coalesce(excluded.cost, cost), coalesce(excluded.rows_digest, rows_digest))
"""
_DAMAGED = "it is damaged: a digest differs"
#: An OperationalError with one of these words in its text does not mean that the index is damaged.
_NO_DAMAGE = ("locked", "busy", "readonly", "read-only", "disk", "full", "unable to open", "I/O", "interrupted")
#: The columns to group by, besides model and price step. A subagent's file belongs to its session's project.
_GROUPS = {
    **dict.fromkeys(PERIODS, "s.quarter"),
    "project": "s.session, f.project",
    "model": "''",
    "session": "s.session",
}


class OwnCost(NamedTuple):
    """A session's cost in US dollars according to the CLI: the last ``cost-state`` in its file."""

    total: float
    models: dict[str, float]


class UsageIndex:
    """The token usage of a folder's transcripts. This is a context manager, for one thread only.

    ::

        with UsageIndex(Path.home() / ".claude" / "projects") as index:
            for day, models in index.sums("day").items():
                print(day, {model: totals.output_tokens for model, totals in models.items()})

    The first query and each :meth:`refresh` scan the folder. They read new files, and the new part of a file that grew.
    If a file shrank or was replaced, they read the whole file again. Deleted files still count, because the CLI deletes
    old transcripts. :meth:`prune` removes them from the sums.

    Args:
        folder: the folder ``projects`` in the CLI's configuration folder, or another folder. All ``.jsonl`` files in
            the folder and its subfolders are read.
        file: the index file. The default is :func:`default_file`. With ``":memory:"`` nothing is stored.
        on_file: called before a file is read, with the number of files read so far and the number of files to read.

    Attributes:
        file: the index file. None if nothing is stored.
        notes: messages that the index was damaged, had another version, or was not writable. The sums are correct
            even then.
        unreadable: the files and folders that could not be read.
        files_read: the number of files that were read, completely or in part.
        bytes_read: the number of bytes that were read.
        files: the number of files in the folder.
        bytes: the total size of these files.
        gone: the paths of deleted files whose answers still count.

    Raises:
        OSError: the folder cannot be read. Any method may raise this.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        file: str | os.PathLike[str] | None = None,
        *,
        on_file: Callable[[int, int], object] | None = None,
    ) -> None:
        self._root = os.path.realpath(os.fsencode(folder))
        place = default_file(folder) if file is None else file
        self.file: Path | None = None if os.fspath(place) == ":memory:" else Path(place)
        self.notes: list[str] = []
        self.unreadable: list[Path] = []
        self.files_read: int = 0
        self.bytes_read: int = 0
        self.files: int = 0
        self.bytes: int = 0
        self.gone: list[Path] = []
        self._db: sqlite3.Connection | None = None
        self._on_file = on_file
        self._is_fresh = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<UsageIndex: {self.files:,} files, {self.bytes:,} bytes>"

    def close(self) -> None:
        """Close the index. If a query was interrupted, the next query reads the same files again."""
        if self._db is not None:
            self._db.close()
            self._db = None
        self._is_fresh = False

    def refresh(self) -> None:
        """Scan the folder again."""
        self._is_fresh = False
        self._safely(lambda db: None)

    def prune(self) -> int:
        """Remove deleted files from the sums, and return the number of deleted files."""

        def forget(db: sqlite3.Connection) -> int:
            db.execute("BEGIN IMMEDIATE")
            with db:  # commits, or rolls back
                gone = db.execute("SELECT id FROM files WHERE gone").fetchall()
                db.executemany("DELETE FROM rows WHERE file = ?", gone)
                db.executemany("DELETE FROM files WHERE id = ?", gone)
                _sum(db)
            return len(gone)

        count = self._safely(forget)
        self.gone = []
        return count

    def sums(
        self,
        by: By = "model",
        *,
        since: date | None = None,
        until: date | None = None,
        project: str | None = None,
        zone: tzinfo | None = None,
        prices: Prices = PRICES,
    ) -> dict[str, dict[str, AnswerTotals]]:
        """Return the sums for each group, by group name and model name. The groups are sorted by name.

        Args:
            by: what to group by. A day has a name like ``2026-11-23``, a week ``2026-W48``, and a month ``2026-11``. A
                project is named after the directory in which the session began, a session after its id, and a subagent
                after its type; the main loop is ``main``. An unknown name is ``""``.
            since: the first day to count.
            until: the last day to count.
            project: count only this directory's sessions.
            zone: the time zone in which days begin. The default is this computer's time zone.
            prices: the prices for calculating ``cost_usd``.

        Raises:
            ValueError: ``by`` is unknown, or the price of a model in the folder is invalid.
        """
        require_one_of("by", by, get_args(By))
        group = _GROUPS.get(by, "f.agent")
        if project is not None:
            group += f", {_GROUPS['project']}"
        first = NO_TIME if since is None else _quarter(since, zone)
        behind = NEVER if until is None or until == date.max else _quarter(until + timedelta(days=1), zone)
        query = f"""
            SELECT m.name, s.step, {", ".join(f"sum({name})" for name in ("answers", *COUNTS))}, {group}
            FROM sums s JOIN files f ON f.id = s.file JOIN names m ON m.id = s.model
            WHERE s.quarter >= ? AND s.quarter < ? GROUP BY {group}, m.name, s.step
        """
        rows, name_of, project_of = self._safely(
            lambda db: (
                db.execute(query, (first, behind)).fetchall(),
                self._namer(db, by, zone),
                self._namer(db, "model" if project is None else "project", zone),
            )
        )
        merged: dict[tuple[str, str, int], list[int]] = {}
        for model, step, *rest in rows:
            if project is not None:
                if project_of(*rest[-2:]) != project:
                    continue
                del rest[-2:]
            place = name_of(*rest[7:]), model, step
            before = merged.get(place)
            merged[place] = rest[:7] if before is None else [*map(add, before, rest)]
        found: dict[str, dict[str, AnswerTotals]] = {}
        for (name, model, step), (answers, *counts) in sorted(merged.items()):
            totals = AnswerTotals(*counts)
            price, totals.answers = prices.of(model), answers
            totals.unpriced, totals.cost_usd = (answers, 0.0) if price is None else (0, price.cost(totals, step))
            models = found.setdefault(name, {})
            if model in models:  # the model has a row for another price step
                models[model].add(totals)
            else:
                models[model] = totals
        return found

    def own_costs(self) -> dict[str, OwnCost]:
        """Return the costs that the CLI itself stored, by session id. Sessions without a stored cost are omitted."""
        # If a session has several files, the last one in this order counts, as with answers.
        query = (
            "SELECT session, cost FROM files WHERE cost IS NOT NULL AND session IS NOT NULL ORDER BY gone DESC, path"
        )
        return self._safely(
            lambda db: {session: OwnCost(*json.loads(cost)) for session, cost in db.execute(query).fetchall()}
        )

    def _namer(self, db: sqlite3.Connection, by: By, zone: tzinfo | None) -> Callable[..., str]:
        """Return a function that takes the columns that a row is grouped by, and returns the group's name."""
        if by in ("model", "subagent"):
            return str
        if by in PERIODS:
            return lru_cache(None)(partial(_period, PERIODS[by], zone))
        names: dict[int, str] = dict(db.execute("SELECT id, name FROM names"))
        project_of: dict[str, str] = dict(
            db.execute("SELECT session, project FROM files WHERE agent = 'main' ORDER BY gone DESC, path")
        )

        def session(id: int) -> str:
            return names.get(id, "")

        def project(id: int, of_file: str | None) -> str:
            return project_of.get(session(id)) or of_file or ""

        return session if by == "session" else project

    # --- the file of the index ----------------------------------------------------------------------------------------

    def _safely(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Update the index, then run ``work``. Rebuild a damaged index; if that fails, continue in memory."""
        for mend in (self._rebuild, self._do_without):
            try:
                return work(self._refreshed())
            except sqlite3.ProgrammingError:  # another thread is using it, or it is closed
                raise
            # A damaged value may be invalid UTF-8, invalid JSON, or of another type.
            except (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError, TypeError, OverflowError) as error:
                mend(error)
        return work(self._refreshed())

    def _rebuild(self, error: Exception) -> None:
        is_no_damage = isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in _NO_DAMAGE)
        if is_no_damage or self.file is None:
            return self._do_without(error)
        self.close()
        self.notes.append(f"the index {self.file} is built anew: {error}. What it had of files that are gone is lost")
        # SQLite would apply the journal of the old file to the new one.
        for end in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self.file}{end}")
        return None

    def _do_without(self, error: Exception) -> None:
        self.close()
        if self.file is not None:
            self.notes.append(f"the index {self.file} is not used: {error}")
            self.file = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            if self.file is not None:
                with suppress(OSError):  # SQLite's error below says more
                    self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    os.close(os.open(self.file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(self.file or ":memory:", timeout=BUSY_SECONDS, isolation_level=None)
            self._db.execute("PRAGMA synchronous = NORMAL")
        return self._db

    # --- reading the folder -------------------------------------------------------------------------------------------

    def _refreshed(self) -> sqlite3.Connection:
        db = self._opened()
        if not self._is_fresh:
            self.unreadable = []
            found = dict(self._walk(b"", MAX_LEVELS))
            self.files, self.bytes = len(found), sum(size for size, _, _ in found.values())
            self._look(db, found)
            self._is_fresh = True
        return db

    def _walk(self, below: bytes, levels: int) -> Iterator[tuple[bytes, tuple[int, int, int]]]:
        """Yield (path, (size, time, inode)) for each transcript in the folder."""
        with os.scandir(os.path.join(self._root, below)) as entries:
            for entry in entries:
                name = below + entry.name
                try:
                    if name.endswith(b".jsonl"):
                        status = entry.stat()
                        if S_ISREG(status.st_mode):
                            yield name, (status.st_size, status.st_mtime_ns, status.st_ino)
                    # A `tool-results` folder holds many files, but no transcripts.
                    elif levels and entry.name != b"tool-results" and entry.is_dir(follow_symlinks=False):
                        yield from self._walk(name + b"/", levels - 1)
                except FileNotFoundError:  # deleted in the meantime
                    continue
                except OSError:
                    self.unreadable.append(self._path(name))

    def _full(self, name: bytes) -> str:
        return os.fsdecode(os.path.join(self._root, name))

    def _path(self, name: bytes) -> Path:
        return Path(self._full(name))

    def _look(self, db: sqlite3.Connection, found: dict[bytes, tuple[int, int, int]]) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version and version != VERSION:
            raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
        known: object = None
        if version:
            if db.execute("SELECT value FROM digest").fetchall() != [(_digest(db),)]:
                raise sqlite3.DatabaseError(_DAMAGED)
            files = db.execute("SELECT path, size, mtime, inode FROM files WHERE NOT gone")
            known = {path: tuple(state) for path, *state in files}
        if found != known:
            db.execute("BEGIN IMMEDIATE")
            with db:
                self._update(db, found)
        self.gone = [self._path(path) for (path,) in db.execute("SELECT path FROM files WHERE gone ORDER BY path")]

    def _update(self, db: sqlite3.Connection, found: dict[bytes, tuple[int, int, int]]) -> None:
        from claude_wire_kit.usage.file_delta import FileDelta  # imports the native library, which takes long

        if not db.execute("PRAGMA user_version").fetchone()[0]:  # unless another process did it first
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
        known = {row[1]: row for row in db.execute("SELECT id, path, size, mtime, inode, offset, tail FROM files")}
        were_gone = {path for (path,) in db.execute("SELECT path FROM files WHERE gone")}
        for path in (known.keys() - found.keys()) ^ were_gone:  # files that were deleted, and files that came back
            db.execute("UPDATE files SET gone = ? WHERE path = ?", (path not in found, path))
        changed = [path for path in sorted(found) if path not in known or known[path][2:5] != found[path]]
        for number, path in enumerate(changed):
            if self._on_file is not None:
                self._on_file(number, len(changed))
            row = known.get(path)
            try:
                delta = FileDelta(self._full(path), *(row[4:] if row is not None else ()))
            except (OSError, ValueError):
                self.unreadable.append(self._path(path))
                continue
            _store(db, None if row is None else row[0], path, delta)
            self.files_read += 1
            self.bytes_read += delta.bytes_read
        _sum(db)


def _store(db: sqlite3.Connection, id: int | None, path: bytes, delta: FileDelta) -> None:
    """Store what is new in a file. ``id`` is the file's id in the index, or None for a new file."""
    usage, agent = delta.usage, None
    rows = usage.originals, usage.copies
    if id is not None and delta.start and any(rows):
        originals, copies = _rows(db, id)
        rows = originals + usage.originals, copies + usage.copies
    if not delta.start:
        if id is not None:
            db.execute("DELETE FROM files WHERE id = ?", (id,))
            db.execute("DELETE FROM rows WHERE file = ?", (id,))
        is_subagent = b"/subagents/" in path or os.path.basename(path).startswith(b"agent-")
        agent = cut_name(delta.agent) if is_subagent else "main"
    values = (
        *(id, path, *delta.state, agent, usage.session or usage.cost_session or None, usage.cwd or None),
        *(json.dumps(usage.cost) if usage.cost is not None else None, _rows_digest(*rows) if any(rows) else None),
    )
    cursor = db.execute(_STORE, values)
    if any(rows):
        # Delete the old rows first. REPLACE would write the new ones before it frees the pages of the old ones, and the
        # file would double.
        db.execute("DELETE FROM rows WHERE file = ?", (id,))
        db.execute("INSERT INTO rows VALUES (?, ?, ?)", (cursor.lastrowid if id is None else id, *rows))
    db.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", usage.names.items())


def _rows(db: sqlite3.Connection, id: int) -> tuple[bytes, bytes]:
    """Return a file's rows: the originals and the copies."""
    query = "SELECT rows_digest, originals, copies FROM files LEFT JOIN rows ON file = id WHERE id = ?"
    digest, *stored = db.execute(query, (id,)).fetchone()
    if digest is None:  # the file has had no answers yet
        return b"", b""
    originals, copies = stored
    if None in stored or digest != _rows_digest(originals, copies):
        raise sqlite3.DatabaseError(_DAMAGED)
    return originals, copies


def _rows_digest(originals: bytes, copies: bytes) -> bytes:
    digest = blake2b(b"%d " % len(originals), digest_size=16)
    digest.update(originals)
    digest.update(copies)
    return digest.digest()


def _sum(db: sqlite3.Connection) -> None:
    """Add up the rows of all files.

    An answer only counts in one file: preferably one with the original, then one that still exists, then the last one.
    """
    from claude_wire.columns.usage_rows import UsageSums

    db.execute("DELETE FROM sums")
    insert = f"INSERT INTO sums VALUES ({', '.join('?' * (6 + len(COUNTS)))})"
    files = db.execute("SELECT id FROM files WHERE rows_digest IS NOT NULL ORDER BY gone, path DESC").fetchall()
    sums = UsageSums(QUARTER_SECONDS * 1_000_000, PROMPT_STEPS)
    with_copies: list[int] = []
    try:
        for (id,) in files:
            originals, copies = _rows(db, id)
            db.executemany(insert, [(id, *each) for each in sums.add(originals)])
            if copies:
                with_copies.append(id)
        for id in with_copies:
            db.executemany(insert, [(id, *each) for each in sums.add(_rows(db, id)[1])])
    finally:
        sums.close()
    db.execute("DELETE FROM digest")
    db.execute("INSERT INTO digest VALUES (?)", (_digest(db),))


def _digest(db: sqlite3.Connection) -> bytes:
    digest = blake2b(digest_size=16)
    for query in _DIGESTED:
        for row in db.execute(query):
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.digest()


def default_file(folder: str | os.PathLike[str]) -> Path:
    """Return the default path of a folder's index, in ``claude-wire`` below ``XDG_CACHE_HOME`` or ``~/.cache``."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = blake2b(os.path.realpath(os.fsencode(folder)), digest_size=8).hexdigest()
    return Path(cache, "claude-wire", f"usage-{name}.sqlite3")


def _quarter(day: date, zone: tzinfo | None) -> int:
    begin = datetime.combine(day, time(), zone)
    try:
        return int((begin if zone is not None else begin.astimezone()).timestamp()) // QUARTER_SECONDS
    except (ValueError, OverflowError, OSError):  # the first and the last possible days
        return NO_TIME if day.year < 1970 else NEVER


def _period(form: str, zone: tzinfo | None, quarter: int) -> str:
    try:
        return "" if quarter < 0 else datetime.fromtimestamp(quarter * QUARTER_SECONDS, zone).strftime(form)
    except (ValueError, OverflowError, OSError):
        return ""
