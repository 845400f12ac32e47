"""The supervisor process. It accepts connections and carries out its clients' commands.

It has one thread, which also starts the CLIs, because the kernel kills a CLI when the thread that started it exits
(see :mod:`claude_wire_kit.supervisor.child`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from claude_wire_kit.supervisor.child import raise_descriptors, user_of
from claude_wire_kit.supervisor.connection import Connection
from claude_wire_kit.supervisor.disk.journal import GoneError
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import (
    VERSION,
    Attach,
    Create,
    Failed,
    List,
    Listed,
    Prewarm,
    Remove,
    Rename,
    Resume,
    Stop,
    command_of,
    line_of,
)
from claude_wire_kit.supervisor.sessions import Limits, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_wire_kit.supervisor.disk.folder import StateFolder
    from claude_wire_kit.supervisor.disk.journal import Place
    from claude_wire_kit.supervisor.frames import Command
    from claude_wire_kit.supervisor.managed_session import ManagedSession

__all__ = ["Daemon", "Limits"]

#: Maximum number of connections that the kernel queues until the supervisor accepts them.
BACKLOG = 128
#: Seconds between ticks. A tick disconnects stalled clients and writes rows of ``order.jsonl``.
TICK_SECONDS = 5.0
#: A tick writes the rows of at most this many sessions: of those whose lines have waited longest. Writing the rows of
#: 1,000 sessions in one tick held up all events for 60 to 140 ms, and added 4 µs to the processor time of an event.
SESSIONS_PER_TICK = 200
#: Seconds between attempts to accept a connection while no descriptor is free.
ACCEPT_AGAIN_SECONDS = 1.0


class Daemon:
    """Runs the sessions in a state folder.

    Args:
        folder: a state folder that this process has locked with :meth:`StateFolder.take`.
        limits: the limits for sessions and clients.
        syncs: flush each line to the disk before a client gets it, so a power failure does not lose lines.
    """

    def __init__(self, folder: StateFolder, *, limits: Limits | None = None, syncs: bool = False) -> None:
        self._folder = folder
        self._limits = limits or Limits()
        self._descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._sessions = Sessions(
            folder, self._limits, syncs=syncs, descriptors=self._descriptors[0], ended=self._on_end
        )
        self._connections: set[Connection] = set()
        # Session id -> the connections waiting for the session to end. Key None: waiting for the supervisor to stop.
        self._waiting: dict[str | None, list[Connection]] = {}

    async def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Accept connections until a client or a signal stops the supervisor. Returns once all CLIs have exited.

        If SIGHUP is ignored at the start, as with ``nohup``, it stays ignored.

        Args:
            started: called as soon as clients can connect.

        Raises:
            OSError: the socket cannot be created, or the folder cannot be read.
        """
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        # A session needs seven descriptors, and a client needs one.
        raise_descriptors()
        self._sessions.recover()
        self._spare = socket.socket(socket.AF_UNIX)
        self._listener = _listen(self._folder.socket)
        handler = self._loop.get_exception_handler()
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._loop.set_exception_handler(partial(self._on_error, handler))
        try:
            for number in numbers:
                self._loop.add_signal_handler(number, self._stop_all)
            self._loop.add_reader(self._listener, self._on_connection)
            self._folder.announce()
            self._folder.log("started", pid=os.getpid(), sessions=len(self._sessions.infos()))
            self._tick()
            started()
            await self._over
        finally:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._spare.close()
            self._loop.set_exception_handler(handler)
            for number in numbers:
                self._loop.remove_signal_handler(number)
            for connection in list(self._connections):
                connection.close()
            self._sessions.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, self._descriptors)
            self._folder.log("ended")

    def _on_error(self, handler: Any, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an unexpected exception in a callback. The supervisor keeps running."""
        if isinstance(context.get("exception"), Exception):
            self._folder.log_error(context["exception"])
        if handler is None:
            loop.default_exception_handler(context)
        else:
            handler(loop, context)

    # --- connections

    def _on_connection(self) -> None:
        try:
            client, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                return  # the client has already disconnected
            self._folder.log("no-descriptors", error=error.strerror)
            self._loop.remove_reader(self._listener)
            self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again)
            self._refuse_with_spare()
            return
        client.setblocking(False)
        refused = ""
        if user_of(client) != os.geteuid():
            refused = "this supervisor serves its own user only"
        elif len(self._connections) >= self._limits.connections:
            refused = f"{self._limits.connections} clients are connected, and no more are taken"
        if refused:
            self._folder.log("client-refused", reason=refused)
            _refuse(client, "refused", refused)
            return
        self._connections.add(Connection(client, self))

    def _refuse_with_spare(self) -> None:
        """Free the spare descriptor to accept the oldest waiting client, and refuse it. No other descriptor is free."""
        self._spare.close()
        with suppress(OSError):
            client, _ = self._listener.accept()
            _refuse(client, "limit", "the supervisor has no descriptor left for another client: try again later")
        with suppress(OSError):
            self._spare = socket.socket(socket.AF_UNIX)

    def _accept_again(self) -> None:
        if not self._over.done():
            self._loop.add_reader(self._listener, self._on_connection)

    def closed(self, connection: Connection) -> None:
        """Forget a closed connection. Close its session's files if the session has ended and has no other client."""
        self._connections.discard(connection)
        for waiting in self._waiting.values():
            if connection in waiting:
                waiting.remove(connection)
        if connection.managed is not None:
            self._sessions.let_go(connection.managed)

    def journal_damaged(self, connection: Connection) -> None:
        """Log that a session's journal lost bytes before a client got them."""
        assert connection.managed is not None
        self._folder.log("journal-damaged", session=connection.managed.id)

    def _tick(self) -> None:
        if not self._over.done():
            self._loop.call_later(TICK_SECONDS, self._tick)
        by_age = sorted(self._sessions.running, key=attrgetter("journal.last.unordered_since"))
        for managed in by_age[:SESSIONS_PER_TICK]:
            managed.write_order()
        now = self._loop.time()
        for connection in list(self._connections):
            if connection.is_stalled(now):
                self._folder.log("client-cut", reason="stalled")
                connection.disconnect_slow("the client has read nothing for too long")
            elif connection.is_gone:
                connection.close()
        if not self._over.done() and self._folder.is_lost:
            self._listen_again()

    def _listen_again(self) -> None:
        """Recreate ``socket`` and ``supervisor.json`` after a temporary-file cleaner removed one of them."""
        with suppress(OSError):
            with suppress(FileNotFoundError):
                os.unlink(self._folder.socket)
            listener = _listen(self._folder.socket)
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = listener
            self._loop.add_reader(listener, self._on_connection)
            self._folder.announce()
            self._folder.log("found-again")

    # --- commands

    def command(self, connection: Connection, line: bytes) -> None:
        """Carry out a command and answer it."""
        command: Command | None = None
        try:
            command = _decode(line)
            self._carry_out(connection, command)
        except SupervisorError as error:
            connection.send_frame(Failed(error.error, str(error), error.line, error.first))
        except OSError as error:
            self._folder.log("failed", command=type(command).__name__, error=error.strerror)
            what = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
            connection.send_frame(Failed(error="system", message=what))
        except Exception as error:
            self._folder.log_error(error)
            connection.send_frame(Failed(error="system", message=f"the supervisor failed: {type(error).__name__}"))

    def _carry_out(self, connection: Connection, command: Command) -> None:
        match command:
            case Create():
                self._create(connection, command)
            case Attach():
                self._attach(connection, command)
            case Resume():
                self._resume(connection, command)
            case Stop():
                self._stop(connection, command)
            case List():
                connection.send_frame(self._listed())
            case Remove():
                self._sessions.remove(command.remove)
                connection.send_frame(self._listed())
            case Rename():
                self._sessions.rename(command.rename, command.name)
                connection.send_frame(self._listed())
            case Prewarm():
                self._sessions.prewarm(command.prewarm, command.count)
                connection.send_frame(self._listed())

    def _listed(self) -> Listed:
        return Listed(sessions=self._sessions.infos(), version=VERSION, package=version("claude-wire"), pid=os.getpid())

    def _create(self, connection: Connection, command: Create) -> None:
        if command.after is not None:
            raise SupervisorError("command", "a new session has no lines yet: leave out after")
        self._answer(connection, self._sessions.create(command.create), command)

    def _attach(self, connection: Connection, command: Attach) -> None:
        managed = self._sessions.open(command.attach)
        try:
            self._follow(connection, managed, command)
        finally:
            self._sessions.let_go(managed)

    def _answer(self, connection: Connection, managed: ManagedSession, command: Create | Resume) -> None:
        if command.detach:
            connection.send_frame(managed.info)
        else:
            self._follow(connection, managed, command)

    def _place(self, managed: ManagedSession, command: Create | Attach | Resume) -> tuple[int, Place]:
        """Return the number of the first line for a client that attaches, and the line's place in the journal.

        Raises:
            SupervisorError: another client is the driver, or the journal does not have the lines.
        """
        journal, after = managed.journal, command.after
        if command.role == "driver" and managed.driver is not None and not command.take:
            raise SupervisorError("driver", "another client drives the session: attach with take, or as a viewer")
        if after is not None and after.id != managed.id:
            raise SupervisorError("command", f"the cursor belongs to another session, {after.id!r}")
        if after is not None and (after.epoch != managed.epoch or not 0 <= after.line < managed.next_line):
            last = managed.next_line - 1
            message = f"lines were lost, or the cursor is of another journal; the session ends with line {last}"
            raise SupervisorError("epoch", message, line=last)
        tail, before = (command.tail, command.before) if isinstance(command, Attach) else (UNSET, UNSET)
        if tail is UNSET and before is not UNSET:
            raise SupervisorError("command", "before needs tail")
        if tail is not UNSET and after is not None:
            raise SupervisorError("command", "pass tail or after, not both")
        if before is not UNSET and before > managed.next_line:
            last = managed.next_line - 1
            raise SupervisorError("epoch", f"this line does not exist; the session ends with line {last}", line=last)
        try:
            line = journal.first if after is None else after.line + 1
            if tail is not UNSET:
                line = journal.tail(tail, managed.next_line if before is UNSET else before)
            place = journal.place_of(line)
            if not journal.is_whole:
                self._folder.log("journal-damaged", session=managed.id)
                raise SupervisorError("system", "the journal of the session is damaged: somebody has changed its files")
            return line, place
        except GoneError as gone:
            message = f"these lines were removed for the byte budget; the first that is there is {gone.first}"
            raise SupervisorError("gone", message, first=gone.first) from None

    def _follow(self, connection: Connection, managed: ManagedSession, command: Create | Attach | Resume) -> None:
        line, place = self._place(managed, command)
        drives = command.role == "driver"
        connection.follow(managed, place, managed.attached(after=line - 1, drives=drives))
        if connection.managed is managed:
            managed.add(connection, drives=command.serves if drives else None)
            self._folder.log("attached", session=managed.id, role=command.role, after=line - 1)

    def _resume(self, connection: Connection, command: Resume) -> None:
        managed = self._sessions.open(command.resume)
        try:
            if not command.detach and not managed.runs:
                self._place(managed, command)  # refuse before starting the CLI
            self._sessions.resume(managed, command.env)
            self._answer(connection, managed, command)
        finally:
            self._sessions.let_go(managed)

    # --- the end of sessions

    def _stop(self, connection: Connection, command: Stop) -> None:
        if command.stop is None:
            self._wait_for_end(None, connection)
            self._stop_all(command.grace)
            return
        managed = self._sessions.find(command.stop)
        if managed is None or not managed.runs:
            connection.send_frame(self._listed())
            return
        self._wait_for_end(managed.id, connection)
        managed.stop(command.grace)

    def _wait_for_end(self, id: str | None, connection: Connection) -> None:
        self._waiting.setdefault(id, []).append(connection)
        connection.await_answer(awaits=True)

    def _answer_waiting(self, id: str | None) -> None:
        for connection in self._waiting.pop(id, []):
            connection.send_frame(self._listed())
            connection.await_answer(awaits=False)

    def _stop_all(self, grace: float = 5.0) -> None:
        self._waiting.setdefault(None, [])
        self._sessions.is_ending = True
        for managed in self._sessions.running:
            managed.stop(grace)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if None in self._waiting and not self._sessions.running:
            self._answer_waiting(None)
            if not self._over.done():
                self._over.set_result(None)

    def _on_end(self, managed: ManagedSession) -> None:
        self._answer_waiting(managed.id)
        self._end_if_over()


class _Versioned(msgspec.Struct):
    version: int = VERSION


def _decode(line: bytes) -> Command:
    """Decode a command.

    Raises:
        SupervisorError: the client has another version of the protocol, or the line is not a command.
    """
    try:
        spoken = msgspec.json.decode(line, type=_Versioned).version
        if spoken == VERSION:
            return command_of(line)
    except (ValueError, RecursionError) as error:
        raise SupervisorError("command", f"the line is not a command: {error}") from None
    raise SupervisorError(
        "version", f"this supervisor speaks version {VERSION}, the client version {spoken}: use the same of both"
    )


def _listen(path: str) -> socket.socket:
    """Create a listening Unix socket that only its owner may connect to."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _refuse(client: socket.socket, error: str, message: str) -> None:
    """Tell a client why the supervisor refuses it, and close the connection."""
    with client, suppress(OSError):
        client.setblocking(False)
        client.send(line_of(Failed(error, message)))
