"""The supervisor of a state folder: takes connections, and does what its clients ask for.

Knows commands and who is connected; not what goes over the sessions. It runs in one thread, and that thread
starts the CLIs, for the kernel ends them when it ends (see :mod:`claude_wire.host.child`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import socket
import struct
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.host.connection import Connection
from claude_wire.host.disk.journal import GoneError
from claude_wire.host.frames import (
    VERSION,
    Attach,
    Create,
    Failed,
    List,
    Listed,
    Prewarm,
    Remove,
    Resume,
    Stop,
    command_of,
    line_of,
)
from claude_wire.host.sessions import Limits, RefusedError, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_wire.host.disk.folder import StateFolder
    from claude_wire.host.frames import Command
    from claude_wire.host.hosted import Hosted

__all__ = ["Limits", "Supervisor"]

#: Connections that are taken at once.
BACKLOG = 128
#: Seconds between two looks for clients that take nothing, and between two tries to take connections without
#: descriptors.
TICK_SECONDS = 5.0
ACCEPT_AGAIN_SECONDS = 1.0


class Supervisor:
    """Runs the sessions of a state folder.

    Args:
        folder: which this process has taken.
        limits: what it takes on.
        syncs: whether each line is on the disk before anybody gets to know it, so that nothing is lost with the power.
    """

    def __init__(self, folder: StateFolder, *, limits: Limits | None = None, syncs: bool = False) -> None:
        self._folder = folder
        self._limits = limits or Limits()
        self._sessions = Sessions(folder, self._limits, syncs=syncs, ended=self._on_end)
        self._connections: set[Connection] = set()
        # Who waits for the end of a session, or for the end of all (None).
        self._waiting: dict[str | None, list[Connection]] = {}
        self._carry_out: dict[type[Any], Callable[[Connection, Any], None]] = {
            Create: self._create,
            Attach: self._attach,
            Resume: self._resume,
            List: self._list,
            Stop: self._stop,
            Remove: self._remove,
            Prewarm: self._prewarm,
        }

    async def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Take connections until it is stopped: by a client, SIGTERM or SIGINT. All CLIs have ended then.

        Args:
            started: is called when clients can connect.

        Raises:
            OSError: the socket cannot be made, or the folder not be read.
        """
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        _raise_descriptors()
        self._sessions.recover()
        listener = _listen(self._folder.socket)
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._stop_all)
            self._listener = listener
            self._loop.add_reader(listener, self._on_connection)
            self._tick()
            self._folder.announce()
            self._folder.log("started", pid=os.getpid(), sessions=len(self._sessions.infos()))
            started()
            await self._over
        finally:
            self._loop.remove_reader(listener)
            listener.close()
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.remove_signal_handler(number)
            for connection in list(self._connections):
                connection.close()
            self._sessions.close()
            self._folder.log("ended")

    # --- connections

    def _on_connection(self) -> None:
        try:
            client, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS):
                return  # the client has gone away in the meantime
            self._folder.log("no-descriptors", error=error.strerror)
            self._loop.remove_reader(self._listener)
            self._loop.call_later(ACCEPT_AGAIN_SECONDS, self._accept_again)
            return
        client.setblocking(False)
        refused = ""
        if _user_of(client) != os.geteuid():
            refused = "this supervisor serves its own user only"
        elif len(self._connections) >= self._limits.connections:
            refused = f"{self._limits.connections} clients are connected, and no more are taken"
        if refused:
            self._folder.log("client-refused", reason=refused)
            with suppress(OSError):
                client.send(line_of(Failed(error="refused", message=refused)))
            client.close()
            return
        self._connections.add(Connection(client, self))

    def _accept_again(self) -> None:
        if not self._over.done():
            self._loop.add_reader(self._listener, self._on_connection)

    def closed(self, connection: Connection) -> None:
        """A connection is closed: its session is let go if nobody else needs it."""
        self._connections.discard(connection)
        if connection.hosted is not None:
            self._sessions.let_go(connection.hosted)

    def _tick(self) -> None:
        now = self._loop.time()
        for connection in list(self._connections):
            if connection.is_stalled(now):
                self._folder.log("client-cut", reason="stalled")
                connection.cut("the client has taken nothing for a while")
        if not self._over.done():
            self._loop.call_later(TICK_SECONDS, self._tick)

    # --- commands

    def command(self, connection: Connection, line: bytes) -> None:
        """Carry out a command, and answer it."""
        try:
            spoken = msgspec.json.decode(line, type=_Versioned).version
            if spoken != VERSION:
                raise RefusedError(
                    "version",
                    f"this supervisor speaks version {VERSION}, the client version {spoken}: use the same of both",
                )
            command: Command = command_of(line)
        except RefusedError as error:
            connection.tell(error.answer)
            return
        except (ValueError, RecursionError) as error:
            connection.tell(Failed(error="command", message=f"the line is no command: {error}"))
            return
        try:
            self._carry_out[type(command)](connection, command)
        except RefusedError as error:
            connection.tell(error.answer)
        except OSError as error:
            self._folder.log("failed", command=type(command).__name__, error=error.strerror)
            what = f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror or error)
            connection.tell(Failed(error="system", message=what))

    def _list(self, connection: Connection, command: List) -> None:
        connection.tell(self._listed())

    def _listed(self) -> Listed:
        return Listed(sessions=self._sessions.infos(), version=VERSION, package=version("claude-wire"), pid=os.getpid())

    def _create(self, connection: Connection, command: Create) -> None:
        self._answer(connection, self._sessions.create(command.create), command)

    def _attach(self, connection: Connection, command: Attach) -> None:
        hosted = self._sessions.open(command.attach)
        try:
            self._follow(connection, hosted, command)
        finally:
            self._sessions.let_go(hosted)

    def _answer(self, connection: Connection, hosted: Hosted, command: Create | Resume) -> None:
        if command.detach:
            connection.tell(hosted.info)
        else:
            self._follow(connection, hosted, command)

    def _follow(self, connection: Connection, hosted: Hosted, command: Create | Attach | Resume) -> None:
        journal, after = hosted.journal, command.after
        drives = command.role == "driver"
        if drives and hosted.driver is not None and not command.take:
            raise RefusedError("driver", "another client drives the session: attach with take, or as a viewer")
        if after is not None and after.id != hosted.id:
            raise RefusedError("command", f"the cursor is of another session, {after.id!r}")
        if after is not None and (after.epoch != hosted.epoch or not 0 <= after.line < journal.next):
            raise RefusedError(
                "epoch",
                f"lines were lost, or the cursor is of another journal; the session ends with line {journal.next - 1}",
                line=journal.next - 1,
            )
        try:
            line = journal.first if after is None else after.line + 1
            place = journal.place_of(line)
        except GoneError as gone:
            message = f"these lines were removed for the byte budget; the first that is there is {gone.first}"
            raise RefusedError("gone", message, first=gone.first) from None
        connection.follow(hosted, place, hosted.attached(after=line - 1, drives=drives))
        if connection.hosted is hosted:
            hosted.add(connection, drives=command.serves if drives else None)
            self._folder.log("attached", session=hosted.id, role=command.role, after=line - 1)

    def _resume(self, connection: Connection, command: Resume) -> None:
        self._answer(connection, self._sessions.resume(command.resume, command.env), command)

    def _remove(self, connection: Connection, command: Remove) -> None:
        self._sessions.remove(command.remove)
        connection.tell(self._listed())

    def _prewarm(self, connection: Connection, command: Prewarm) -> None:
        self._sessions.prewarm(command.prewarm, command.count)
        connection.tell(self._listed())

    # --- the end of sessions

    def _stop(self, connection: Connection, command: Stop) -> None:
        if command.stop is None:
            self._waiting.setdefault(None, []).append(connection)
            self._stop_all(command.grace)
            return
        hosted = self._sessions.find(command.stop)
        if hosted is None or not hosted.runs:
            connection.tell(self._listed())
            return
        self._waiting.setdefault(hosted.id, []).append(connection)
        hosted.stop(command.grace)

    def _stop_all(self, grace: float = 5.0) -> None:
        self._waiting.setdefault(None, [])
        for hosted in self._sessions.running:
            hosted.stop(grace)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if None in self._waiting and not self._sessions.running:
            for connection in self._waiting.pop(None):
                connection.tell(self._listed())
            if not self._over.done():
                self._over.set_result(None)

    def _on_end(self, hosted: Hosted) -> None:
        for connection in self._waiting.pop(hosted.id, []):
            connection.tell(self._listed())
        self._end_if_over()


class _Versioned(msgspec.Struct):
    version: int = VERSION


def _listen(path: str) -> socket.socket:
    """A listening socket that only its owner may connect to."""
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


def _user_of(client: socket.socket) -> int:
    """Which user is at the other end of a unix socket."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


def _raise_descriptors() -> None:
    """Take as many descriptors as the system allows: a session has seven, a client one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
