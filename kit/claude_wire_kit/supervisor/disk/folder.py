"""A supervisor's state folder, with its lock, address and log.

============================  ====================================================================
``lock``                      locked by the running supervisor, like the folder itself
``supervisor.json``           describes the running supervisor: see :class:`Supervision`
``socket``                    the socket for clients
``log.ndjson``, ``log.1``     the log and the previous log, without any text from the conversations
``sessions/ID/``              a folder for each session: ``session.json``, and ``parts`` with its journal
============================  ====================================================================
"""

from __future__ import annotations

import fcntl
import os
import time
import traceback
from contextlib import suppress

import msgspec

from claude_wire_kit.supervisor.child import began_at, is_alive
from claude_wire_kit.supervisor.disk.files import open_private, private_folder, write_whole
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import VERSION

#: Size limit of the log in bytes. A full log replaces ``log.1``, and the supervisor starts a new one.
LOG_BYTES = 4 * 1024 * 1024
#: The longest socket path on Linux, in bytes.
SOCKET_PATH_BYTES = 107


def default_folder() -> str:
    """Return ``$CLAUDE_WIRE_SUPERVISOR``, or ``claude-wire/supervisor`` below ``$XDG_STATE_HOME`` (by default
    ``~/.local/state``).
    """
    chosen = os.environ.get("CLAUDE_WIRE_SUPERVISOR")
    if chosen:
        return os.path.abspath(chosen)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "claude-wire", "supervisor")


#: Clients find the supervisor with these files.
_FOUND_BY = ("supervisor.json", "socket")


class Supervision(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor that runs a state folder.

    Attributes:
        pid, pid_began: the process id, and the start time from :func:`~claude_wire_kit.supervisor.child.began_at`. A
            later process with the same id has another start time.
        version: the version of the supervisor protocol.
        package: the version of claude-wire.
        socket: the path of its socket.
    """

    pid: int
    pid_began: int | None
    version: int
    package: str
    socket: str


class StateFolder:
    """The folder of one supervisor.

    Args:
        path: the folder; :func:`default_folder` if None.
        makes: create the folder if it is missing.

    Raises:
        OSError: the folder cannot be created, is a symbolic link, belongs to another user, or others may write to it.
        SupervisorError: the path is too long for a socket.
    """

    def __init__(self, path: str | None = None, *, makes: bool = True) -> None:
        self.path: str = os.path.abspath(path or default_folder())
        self.socket: str = os.path.join(self.path, "socket")
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            raise SupervisorError(
                "folder",
                f"the path of the socket is too long: choose a folder of at most {SOCKET_PATH_BYTES - 7} bytes",
            )
        if makes or os.path.lexists(self.path):
            private_folder(self.path)
        self._locks: list[int] = []
        self._log: int | None = None

    @property
    def sessions(self) -> str:
        """The folder ``sessions``. Reading this attribute creates the folder if it is missing."""
        return private_folder(os.path.join(self.path, "sessions"))

    def supervision(self) -> Supervision | None:
        """Return the supervisor that is running for this folder, or None."""
        try:
            with open(os.path.join(self.path, "supervisor.json"), "rb", opener=open_private) as file:
                found = msgspec.json.decode(file.read(), type=Supervision)
        except (OSError, ValueError):
            return None
        return found if is_alive(found.pid, found.pid_began) else None

    # --- for the supervisor

    def take(self) -> None:
        """Lock the folder for this process, until :meth:`release` or the exit of the process.

        Raises:
            SupervisorError: another supervisor has locked it.
            OSError: a file cannot be written.
        """
        # Lock the folder too, because a temporary-file cleaner may remove the locked file ``lock``. Some network file
        # systems cannot lock a folder. There, supervisor.json must not name a running supervisor.
        self._locks = [open_private(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT)]
        try:
            self._locks.append(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
            fcntl.flock(self._locks[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(self._locks[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                if self.supervision() is not None:
                    raise BlockingIOError from None
        except BlockingIOError:
            self._unlock()
            other = self.supervision()
            who = f" (pid {other.pid})" if other else ""
            raise SupervisorError("running", f"another supervisor{who} runs the folder {self.path}") from None
        except BaseException:
            self._unlock()
            raise
        with suppress(FileNotFoundError):
            os.unlink(self.socket)

    def _unlock(self) -> None:
        while self._locks:
            os.close(self._locks.pop())

    def announce(self) -> None:
        """Write ``supervisor.json``. Call this after the socket exists."""
        from importlib.metadata import version  # a slow import that clients do not need

        pid = os.getpid()
        mine = Supervision(
            pid=pid, pid_began=began_at(pid), version=VERSION, package=version("claude-wire"), socket=self.socket
        )
        write_whole(os.path.join(self.path, "supervisor.json"), msgspec.json.encode(mine))

    @property
    def is_lost(self) -> bool:
        """True if ``socket`` or ``supervisor.json`` was removed while the folder still exists."""
        try:
            is_ours = os.path.samestat(os.stat(self.path), os.fstat(self._locks[-1]))
        except OSError:
            return False
        return is_ours and not all(os.path.lexists(os.path.join(self.path, name)) for name in _FOUND_BY)

    def log(self, event: str, **fields: object) -> None:
        """Add a line to the log. Ignore a failed write, such as on a full disk."""
        line = msgspec.json.encode({"at": round(time.time(), 3), "event": event, **fields}) + b"\n"
        path = os.path.join(self.path, "log.ndjson")
        with suppress(OSError):
            if self._log is None:
                self._log = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(self._log, line)
            if os.fstat(self._log).st_size > LOG_BYTES:
                os.replace(path, os.path.join(self.path, "log.1"))
                os.close(self._log)
                self._log = None

    def log_error(self, error: BaseException, **fields: object) -> None:
        """Log an unexpected exception: its type and the lines in its traceback, but not its text."""
        frames = traceback.extract_tb(error.__traceback__)
        place = [f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in frames[-8:]]
        self.log("error", error=type(error).__name__, place=place, **fields)

    def release(self) -> None:
        """Unlock the folder, and close the log. A second call does nothing."""
        if self._locks:
            for name in _FOUND_BY:
                with suppress(OSError):
                    os.unlink(os.path.join(self.path, name))
            self._unlock()
        if self._log is not None:
            os.close(self._log)
            self._log = None
