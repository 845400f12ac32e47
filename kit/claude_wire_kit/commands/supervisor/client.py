"""A blocking client for a supervisor, for commands that send one command and wait for the answer.

Commands start fast, because the client does not use an event loop: the imports of ``claude-wire supervisor ps`` take
0.20 CPU seconds. With the asynchronous client from ``claude_wire_kit.supervisor`` they would take 0.34.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import Any

import msgspec

from claude_wire.support import one_line, printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.supervisor.child import began_at, require_own
from claude_wire_kit.supervisor.disk.folder import StateFolder, Supervision, default_folder
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import (
    MAX_ANSWER_BYTES,
    VERSION,
    Attached,
    Failed,
    List,
    Listed,
    SessionInfo,
    answer_of,
    end_of_frames,
    is_frame,
)

#: Time limit in seconds for an answer. Commands that wait until a CLI exits have another limit.
ANSWER_SECONDS = 60.0


class Client:
    """A connection to a supervisor.

    Args:
        path: the path to the supervisor's socket.

    Raises:
        OSError: the connection fails.
        SupervisorError: the supervisor runs as another user.
    """

    def __init__(self, path: str) -> None:
        #: The socket. :class:`Client` reads nothing from it before :meth:`ask`.
        self.socket: socket.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)
            require_own(self.socket)
        except BaseException:
            self.socket.close()
            raise
        self._frame_end = b""
        self._file: BufferedReader = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send_line(self, line: bytes) -> None:
        """Send a line, which must end with a line feed.

        Raises:
            OSError: the connection ended.
        """
        try:
            self.socket.sendall(line)
        except BrokenPipeError as error:  # raise another type: BrokenPipeError means that the command's output broke
            raise ConnectionAbortedError(error.errno, "the supervisor has closed the connection") from error

    def line(self, most: int = MAX_ANSWER_BYTES) -> bytes:
        """Return the next line with its line feed, or the first ``most`` bytes of it; b"" at the end of the connection.

        Raises:
            OSError: the connection failed.
        """
        return self._file.readline(most)

    def ask(self, command: Any, seconds: float | None = ANSWER_SECONDS) -> Any:
        """Send a command, and return the answer.

        Raises:
            SupervisorError: the command was refused, or the connection ended before the answer.
            OSError: the connection failed. TimeoutError: there was no answer within ``seconds``.
        """
        self.socket.settimeout(seconds)
        self.send_line(msgspec.json.encode(command) + b"\n")
        line = self.line()
        self.socket.settimeout(None)
        if not line:
            raise SupervisorError("lost", "the supervisor has ended the connection without an answer")
        answer = answer_of(line)
        if isinstance(answer, Failed):
            raise SupervisorError.of(answer)
        if isinstance(answer, Attached):
            self._frame_end = end_of_frames(answer.mark)
        return answer

    def is_frame(self, line: bytes) -> bool:
        """Return True if a session's line is one of the supervisor's frames. ``line`` includes its line feed."""
        return is_frame(line.removesuffix(b"\n"), self._frame_end)

    def listed(self) -> Listed:
        """Return the supervisor's version and its sessions, the newest first.

        Raises:
            SupervisorError, OSError: as :meth:`ask`.
        """
        listed: Listed = self.ask(List(list={}))
        listed.sessions.sort(key=lambda session: session.began, reverse=True)
        return listed


def folder_of(path: str | None, *, makes: bool = False) -> StateFolder:
    """Return the state folder with this path; None for the default one. With ``makes``, create it if it is missing."""
    try:
        return StateFolder(path, makes=makes)
    except OSError as error:
        where = printable(os.fsdecode(error.filename or path or default_folder()), keep="")
        raise Failure(f"{where}: {error.strerror}") from error
    except SupervisorError as error:
        raise Failure(str(error)) from error


def running(folder: StateFolder) -> Supervision | None:
    """Return the supervisor that is running for a folder, or None.

    Raises:
        SupervisorError: the supervisor speaks another version of the protocol.
    """
    found = folder.supervision()
    if found is not None and found.version != VERSION:
        from claude_wire import __version__

        raise SupervisorError(
            "version",
            f"the supervisor (pid {found.pid}) belongs to claude-wire {one_line(found.package)} and speaks version "
            f"{found.version} of the protocol; this is claude-wire {__version__}, which speaks version {VERSION}. "
            f'"kill {found.pid}" ends it with its sessions; a supervisor of this version can resume them',
        )
    return found


def connect(folder: StateFolder) -> Client:
    """Connect to a folder's supervisor.

    Raises:
        SupervisorError: no supervisor is running, or it speaks another version of the protocol.
    """
    found = running(folder)
    if found is None:
        where = "" if folder.path == default_folder() else f" --folder {printable(folder.path, keep='')}"
        raise SupervisorError(
            "absent",
            f"no supervisor is running in {printable(folder.path, keep='')}. "
            f'"claude-wire supervisor start{where}" starts one',
        )
    try:
        return Client(found.socket)
    except OSError as error:
        raise SupervisorError(
            "absent", f"the supervisor (pid {found.pid}) cannot be reached: {error.strerror}"
        ) from error


@contextmanager
def failures() -> Generator[None, None, None]:
    """Turn a supervisor's refusal or a lost connection into a command failure."""
    try:
        yield
    except SupervisorError as error:
        raise Failure(printable(str(error))) from error
    except TimeoutError as error:
        raise Failure(f"the supervisor has not answered in {ANSWER_SECONDS:.0f} s") from error
    except BrokenPipeError:  # nobody reads our output
        raise
    except (ConnectionError, FileNotFoundError) as error:
        raise Failure(f"the connection with the supervisor failed: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise Failure(f"this version cannot read the answer of the supervisor: {error}") from error


def found_session(sessions: list[SessionInfo], name: str) -> SessionInfo:
    """Return the session with this id or name, or whose id begins with ``name``.

    Raises:
        SupervisorError: no session matches, or several match.
    """
    found = [session for session in sessions if session.id == name]
    found = found or [session for session in sessions if session.name == name]
    found = found or [session for session in sessions if name and session.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    shown = one_line(name)
    if found:
        raise SupervisorError("unknown", f"{len(found)} sessions are named {shown!r}: use an id instead")
    raise SupervisorError("unknown", f'there is no session {shown!r}; "claude-wire supervisor ps -a" lists all')


def wait_for_end(pid: int, began: int | None, seconds: float) -> bool:
    """Wait until a process with this start time exits. Returns False if it is still running after ``seconds``."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if began_at(pid) == began:
                return bool(select.select([descriptor], [], [], seconds)[0])
        finally:
            os.close(descriptor)
    return True
