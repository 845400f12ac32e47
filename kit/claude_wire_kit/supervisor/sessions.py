"""A supervisor's sessions. A session's CLI is running, has exited, or is prewarmed: started before a client asks."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import suppress
from subprocess import SubprocessError
from typing import TYPE_CHECKING

import msgspec

from claude_wire_kit.supervisor.child import Child, end_leftover, memory_of
from claude_wire_kit.supervisor.disk.files import private_folder, remove_tree
from claude_wire_kit.supervisor.disk.journal import JOURNAL_BYTES, Journal
from claude_wire_kit.supervisor.disk.record import Record, boot_id, load, resumed, save
from claude_wire_kit.supervisor.disk.review import prompts_of, review
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Ended, Life, SessionInfo, Spec
from claude_wire_kit.supervisor.managed_session import ManagedSession

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from claude_wire_kit.supervisor.disk.folder import StateFolder


#: Maximum number of sessions, including ended ones.
MAX_SESSIONS = 10_000
#: Maximum size in bytes of all sessions' start parameters together (command line, ``initialize``, environment).
MAX_SPEC_BYTES = 256 * 1024 * 1024
#: Suffix of a session's folder while the session is being removed.
_REMOVED = ".removed"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor's limits.

    Attributes:
        sessions: how many CLIs may run at the same time, including prewarmed ones.
        connections: how many clients may be connected at the same time.
        memory_bytes: maximum memory of all CLIs and the processes they start. Above this limit, the supervisor does not
            start CLIs. None for no limit.
        journal_bytes: maximum size of each session's journal.
    """

    sessions: int = 256
    connections: int = 1024
    memory_bytes: int | None = None
    journal_bytes: int = JOURNAL_BYTES


class _Warm:
    """The prewarmed CLIs for one spec: the wanted number, and the ids of their sessions."""

    def __init__(self, spec: Spec, count: int) -> None:
        self.spec = spec
        self.count = count
        self.ready: list[str] = []


class Sessions:
    """All sessions in a state folder.

    Args:
        folder: a state folder that this process has locked with :meth:`StateFolder.take`.
        limits: the supervisor's limits.
        syncs: flush each line to the disk before a client gets it.
        descriptors: how many descriptors a CLI may have open.
        ended: called when a session's CLI has exited.
    """

    def __init__(
        self,
        folder: StateFolder,
        limits: Limits,
        *,
        syncs: bool,
        descriptors: int,
        ended: Callable[[ManagedSession], object],
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._syncs = syncs
        self._descriptors = descriptors
        self._ended = ended
        self._boot = boot_id()
        # Id -> the record of each session.
        self._records: dict[str, Record] = {}
        # Id -> a session with open files: its CLI is running, or a client is attached.
        self._managed: dict[str, ManagedSession] = {}
        # Id -> the environment of the session's last CLI. It is never written to disk.
        self._environments: dict[str, Mapping[str, str]] = {}
        self._warm: dict[bytes, _Warm] = {}
        # Id -> the size in bytes of the session's start parameters.
        self._spec_bytes: dict[str, int] = {}
        #: True once a client or a signal has told the supervisor to stop. The supervisor then refuses to start CLIs.
        self.is_ending: bool = False

    # --- looking up sessions

    @property
    def running(self) -> list[ManagedSession]:
        """The sessions whose CLI is running, including prewarmed ones."""
        return [managed for managed in self._managed.values() if managed.runs]

    def infos(self) -> list[SessionInfo]:
        shown = [record for record in self._records.values() if not record.is_warm]
        return [self._managed.get(record.id, record).info for record in shown]

    def find(self, id: str) -> ManagedSession | None:
        """Return the session with this id, or None if it has ended and its files are closed.

        Raises:
            SupervisorError: no session has this id.
        """
        return self._managed.get(self._record(id).id)

    def open(self, id: str) -> ManagedSession:
        """Return the session with this id, and open its files if necessary. Call :meth:`let_go` afterwards.

        Raises:
            SupervisorError: no session has this id, or its journal is damaged.
            OSError: its journal cannot be opened.
        """
        record = self._record(id)
        managed = self._managed.get(id)
        if managed is None:
            try:
                journal = self._journal(self._path(id))
            except ValueError as error:
                raise SupervisorError("system", f"the journal of session {id} is damaged: {error}") from None
            try:
                if journal.next <= record.line:  # a power failure lost lines
                    record.epoch += 1
                    self._note_end(record, journal)
                if not journal.number:
                    raise SupervisorError("system", f"the journal of session {id} has lost its files")
                managed = ManagedSession(record, journal, self._folder, self._on_end)
                managed.ledger.remember_prompts(prompts_of(journal))
            except BaseException:
                journal.close()
                raise
            self._managed[id] = managed
        return managed

    def _record(self, id: str) -> Record:
        record = self._records.get(id)
        if record is None or record.is_warm:
            raise SupervisorError("unknown", f"there is no session {id!r}")
        return record

    def create(self, spec: Spec) -> ManagedSession:
        """Start a CLI in a new session, or take a prewarmed one for this spec.

        Raises:
            SupervisorError: the CLI cannot be started, or a limit is reached.
            OSError: the session's folder cannot be written.
        """
        return self._take_warm(spec) or self._begin(spec, is_warm=False)

    def resume(self, managed: ManagedSession, env: Mapping[str, str] | None) -> None:
        """Start a CLI that resumes a session.

        Raises:
            SupervisorError: the session's CLI is running or cannot be started, no environment is known, or a limit is
                reached.
            OSError: the session's folder cannot be written.
        """
        record = managed.record
        env = self._environments.get(record.id) if env is None else env
        if managed.runs:
            raise SupervisorError("running", "the CLI of this session is already running: attach to it")
        if env is None:
            raise SupervisorError("environment", "the environment is not stored on disk: pass env")
        self._require_room()
        self._require_spec_room(record, env)
        self._spawn(managed, resumed(record.argv, record.cli_session_id), env)
        self._spec_bytes[record.id] = _size(record, env)

    def remove(self, id: str) -> None:
        """Remove a session and its journal.

        Raises:
            SupervisorError: no session has this id, or its CLI is running.
            OSError: a file cannot be removed.
        """
        managed = self.find(id)
        if managed is not None and managed.runs:
            raise SupervisorError("running", "the CLI of this session is running: stop it first")
        # Rename the folder first. Then, after a crash, recover() removes the rest instead of treating it as a session.
        removed = f"{self._path(id)}{_REMOVED}"
        os.rename(self._path(id), removed)
        if managed is not None:
            managed.close()
        self._managed.pop(id, None)
        self._environments.pop(id, None)
        self._spec_bytes.pop(id, None)
        del self._records[id]
        remove_tree(removed)

    def rename(self, id: str, name: str | None) -> None:
        """Change the name of a session; None removes the name.

        Raises:
            SupervisorError: no session has this id.
            OSError: the name cannot be written to disk. The session keeps its old name.
        """
        record = self._record(id)
        save(self._path(id), msgspec.structs.replace(record, name=name))
        record.name = name

    # --- start and end

    def recover(self) -> None:
        """Read an earlier supervisor's sessions, kill their running CLIs, and record what the CLIs left unfinished."""
        for id in os.listdir(self._folder.sessions):
            path = self._path(id)
            try:
                private_folder(path)
                # Sessions writes a new session's record last. Without a record, no client has seen the session.
                is_whole = os.path.lexists(os.path.join(path, "session.json"))
                record = load(path) if is_whole and not id.endswith(_REMOVED) else None
                if record is None or record.is_warm or not os.path.isdir(os.path.join(path, "parts")):
                    remove_tree(path)
                    continue
                if record.id != id:
                    raise ValueError("the folder is another session's")
                if record.runs:
                    self._recover_one(record)
            except Exception as error:  # a damaged folder must not affect the other sessions
                self._folder.log("unreadable", session=id, error=type(error).__name__)
                continue
            self._records[id] = record
            self._spec_bytes[id] = _size(record, {})

    def _recover_one(self, record: Record) -> None:
        journal = self._journal(self._path(record.id))
        try:
            if not journal.number:
                record.ended = Ended(exit_code=None)
            else:
                part = journal.last
                pid = part.info.pid if record.boot == self._boot else None
                if pid is not None and end_leftover(pid, part.info.pid_began, part.info.mark):
                    self._folder.log("leftover-ended", session=record.id, pid=pid)
                part.end_process(None)
                record.ended, cli_session_id = review(journal, journal.process_line)
                record.cli_session_id = cli_session_id or record.cli_session_id
            if record.boot != self._boot and not self._syncs:
                record.epoch += 1
            self._note_end(record, journal)
            self._folder.log("lost", session=record.id, line=record.line, epoch=record.epoch)
        finally:
            journal.close()

    def _note_end(self, record: Record, journal: Journal) -> None:
        record.runs = False
        record.line = journal.next - 1
        record.bytes = journal.size
        save(self._path(record.id), record)

    def _journal(self, folder: str) -> Journal:
        return Journal(folder, budget=self._limits.journal_bytes, syncs=self._syncs)

    def _path(self, id: str) -> str:
        return os.path.join(self._folder.sessions, id)

    def _begin(self, spec: Spec, *, is_warm: bool) -> ManagedSession:
        self._require_room()
        if len(self._records) >= MAX_SESSIONS:
            raise SupervisorError("limit", f"the limit of {MAX_SESSIONS:,} sessions is reached: remove ended sessions")
        record = Record(
            id=secrets.token_hex(6),
            name=spec.name,
            created=time.time(),
            argv=spec.argv,
            cwd=spec.cwd,
            initialize=spec.initialize,
            mcp=spec.mcp,
            cost_usd=spec.cost_usd,
            is_warm=is_warm,
        )
        self._require_spec_room(record, spec.env)
        path = private_folder(self._path(record.id))
        managed = None
        try:
            managed = ManagedSession(record, self._journal(path), self._folder, self._on_end)
            self._spawn(managed, record.argv, spec.env)
        except BaseException:
            if managed is not None:
                managed.close()
            shutil.rmtree(path, ignore_errors=True)
            for folder in (os.path.join(path, "parts"), path):  # rmtree needs descriptors, and fails if none is free
                with suppress(OSError):
                    os.rmdir(folder)
            raise
        self._records[record.id] = record
        self._spec_bytes[record.id] = _size(record, spec.env)
        return managed

    def _spawn(self, managed: ManagedSession, argv: list[str], env: Mapping[str, str]) -> None:
        """Start a CLI for a session. If that fails, kill the process and leave the session unchanged."""
        record = managed.record
        before = record.boot, record.runs, record.ended
        try:
            child = Child(argv, cwd=record.cwd, env=env, descriptors=self._descriptors)
        except (OSError, ValueError, SubprocessError) as error:
            raise SupervisorError("start", f"the CLI cannot be started: {error}") from None
        try:
            managed.journal.begin(argv, began=time.time(), pid=child.pid, pid_began=child.began, mark=child.mark)
            record.boot, record.runs, record.ended = self._boot, True, None
            save(self._path(record.id), record)
            managed.start(child)
        except BaseException as error:
            child.close()
            record.boot, record.runs, record.ended = before
            if isinstance(error, ValueError):  # the ``initialize`` is invalid
                raise SupervisorError("command", f"initialize cannot be sent: {error}") from None
            raise
        self._managed[record.id] = managed
        self._environments[record.id] = env
        self._folder.log("process-started", session=record.id, pid=child.pid)

    def _require_room(self) -> None:
        if self.is_ending:
            raise SupervisorError("refused", "the supervisor is ending and starts no more CLIs")
        running = self.running
        if len(running) >= self._limits.sessions:
            raise SupervisorError("limit", f"{self._limits.sessions} CLIs are running, which is the limit (--sessions)")
        most = self._limits.memory_bytes
        if most is not None:
            used = memory_of([managed.pid for managed in running if managed.pid is not None])
            if used >= most:
                raise SupervisorError(
                    "limit", f"the CLIs use {used:,} bytes of the {most:,} that they may (limit: memory)"
                )

    def _require_spec_room(self, record: Record, env: Mapping[str, str]) -> None:
        others = sum(self._spec_bytes.values()) - self._spec_bytes.get(record.id, 0)
        if others + _size(record, env) > MAX_SPEC_BYTES:
            raise SupervisorError(
                "limit",
                f"what all sessions are started with would have more than {MAX_SPEC_BYTES:,} bytes: remove some that "
                "have ended",
            )

    def let_go(self, managed: ManagedSession) -> None:
        """Close a session's files if its CLI has exited and no client is attached."""
        if not managed.runs and not managed.clients and self._managed.get(managed.id) is managed:
            managed.close()
            del self._managed[managed.id]

    def _on_end(self, managed: ManagedSession) -> None:
        record = managed.record
        try:
            self._note_end(record, managed.journal)
        except OSError as error:
            self._folder.log("failed", session=managed.id, error=error.strerror)
        assert record.ended is not None
        self._folder.log("process-ended", session=managed.id, code=record.ended.exit_code)
        self._ended(managed)
        if record.is_warm:
            self._drop_warm(record)
        self.let_go(managed)

    def close(self) -> None:
        """Kill all CLIs, and close all files."""
        for managed in list(self._managed.values()):
            managed.close()

    # --- prewarmed CLIs

    def prewarm(self, spec: Spec, count: int) -> None:
        """Start ``count`` prewarmed CLIs for :meth:`create` with an equal spec. Stop surplus ones.

        Raises:
            SupervisorError: a CLI cannot be started, or a limit is reached.
            OSError: a folder cannot be written.
        """
        warm = self._warm.setdefault(_key(spec), _Warm(spec, 0))
        warm.count = count
        self._fill(warm)

    def _fill(self, warm: _Warm) -> None:
        try:
            while len(warm.ready) < warm.count:
                warm.ready.append(self._begin(warm.spec, is_warm=True).id)
        except BaseException:
            self._keep_ready(warm)
            raise
        surplus = warm.ready[warm.count :]
        del warm.ready[warm.count :]
        for id in surplus:
            self._managed[id].stop(0.0)
        self._keep_ready(warm)

    def _keep_ready(self, warm: _Warm) -> None:
        """Lower the wanted number of CLIs to the current number. Forget the spec if no CLI is left."""
        warm.count = len(warm.ready)
        if not warm.count:
            self._warm.pop(_key(warm.spec), None)

    def _take_warm(self, spec: Spec) -> ManagedSession | None:
        """Return a session with a prewarmed CLI for this spec, or None. Start another CLI in its place."""
        warm = self._warm.get(_key(spec))
        ready = [] if warm is None else [id for id in warm.ready if self._managed[id].life is Life.IDLE]
        if warm is None or not ready:
            return None
        managed = self._managed[ready[0]]
        taken = {"is_warm": False, "name": spec.name, "created": time.time(), "cost_usd": spec.cost_usd}
        save(self._path(managed.id), msgspec.structs.replace(managed.record, **taken))
        for field, value in taken.items():
            setattr(managed.record, field, value)
        managed.limit_cost()
        warm.ready.remove(managed.id)
        with suppress(SupervisorError, OSError):  # there is no room for another CLI
            self._fill(warm)
        return managed

    def _drop_warm(self, record: Record) -> None:
        for warm in list(self._warm.values()):
            if record.id in warm.ready:
                warm.ready.remove(record.id)
                self._keep_ready(warm)  # a CLI that exits right away must not be restarted for ever
        self._records.pop(record.id, None)
        self._environments.pop(record.id, None)
        self._spec_bytes.pop(record.id, None)
        shutil.rmtree(self._path(record.id), ignore_errors=True)


def _size(record: Record, env: Mapping[str, str]) -> int:
    """Return the size in bytes of a session's start parameters."""
    return len(msgspec.json.encode((record.argv, record.initialize, record.mcp, env)))


def _key(spec: Spec) -> bytes:
    """Return a key that is equal for specs whose CLIs are interchangeable."""
    return msgspec.json.encode(
        [spec.argv, spec.cwd, sorted(spec.env.items()), spec.initialize, spec.mcp], order="sorted"
    )
