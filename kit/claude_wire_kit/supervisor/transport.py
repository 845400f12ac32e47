"""Connect a client to a supervisor through its socket, or through the standard streams of a command such as ssh."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from anyio import sleep

from claude_wire.errors import ProcessInputError
from claude_wire.native.overflow import DrainOptions
from claude_wire.process.child import Child, Settings
from claude_wire.streams.sources import open_source
from claude_wire.support import Readiness, describe_end
from claude_wire_kit.supervisor.child import require_own
from claude_wire_kit.supervisor.errors import SupervisorError

if TYPE_CHECKING:
    from claude_wire.process.child import StrPath
    from claude_wire.streams import Chunks

#: Seconds between attempts to connect while the queue of the supervisor's socket is full.
AGAIN_SECONDS = 0.01
#: To stop a command, the client closes the command's input, sends SIGTERM this many seconds later, and SIGKILL this
#: many seconds after SIGTERM.
GRACE_SECONDS = 2.0
#: After a command closed its output, wait this many seconds for its exit, so the error can name the exit code.
WHY_SECONDS = 1.0


class Transport(Protocol):
    """One connection to a supervisor."""

    #: The bytes that the supervisor sends.
    chunks: Chunks

    async def open(self) -> None:
        """Connect. Raises SupervisorError."""
        ...

    async def send(self, data: bytes) -> None:
        """Send bytes. Only one task may send at a time. Raises OSError."""
        ...

    async def why_ended(self) -> str:
        """Say why the connection ended, such as "the command 'ssh' exited with code 255". Empty if unknown."""
        ...

    def drop(self) -> None:
        """Release the connection without waiting. May be called from any thread. A second call does nothing."""
        ...

    async def aclose(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class SocketTransport:
    """Connects to the Unix socket of a supervisor on this machine.

    Args:
        path: the path of the socket.
        folder: the state folder, for error messages.
    """

    chunks: Chunks

    def __init__(self, path: str, folder: str) -> None:
        self._path = path
        self._folder = folder
        self._socket: socket.socket | None = None
        self._room: Readiness | None = None

    async def open(self) -> None:
        try:
            await self._connect()
        except (FileNotFoundError, ConnectionRefusedError):
            raise SupervisorError(
                "absent", f"no supervisor is running for {self._folder}; `claude-wire supervisor start` starts one"
            ) from None
        except OSError as error:  # for example, no descriptor is left
            raise SupervisorError("absent", f"the supervisor of {self._folder} cannot be reached: {error}") from error

    async def _connect(self) -> None:
        self._socket = connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        while True:
            try:
                connection.connect(self._path)
                break
            except BlockingIOError:  # its socket's queue is full
                await sleep(AGAIN_SECONDS)
        require_own(connection)
        self.chunks = open_source(connection.fileno(), DrainOptions())
        self._room = Readiness(connection.fileno(), writable=True)

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._socket is None or self._room is None:
                raise BrokenPipeError("the connection with the supervisor is closed")
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                await self._room.wait()

    async def why_ended(self) -> str:
        return ""

    def drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def aclose(self) -> None:
        if self._room is not None:
            self._room.close()
            await self.chunks.aclose()
        self.drop()


class CommandTransport:
    """Runs a command, such as ssh, that connects its standard streams to a supervisor."""

    chunks: Chunks

    def __init__(self, argv: Sequence[StrPath]) -> None:
        self._argv = [os.fspath(argument) for argument in argv]
        self._child: Child | None = None

    async def open(self) -> None:
        settings = Settings(self._argv, None, None, None, None, DrainOptions(), GRACE_SECONDS, start_new_session=True)
        try:
            self._child = Child(settings)
        except OSError as error:
            raise SupervisorError("absent", f"the command {self._argv[0]!r} cannot be run: {error}") from error
        self.chunks = self._child.chunks

    async def send(self, data: bytes) -> None:
        if self._child is None:
            raise ProcessInputError("the command is not running")
        await self._child.stdin.write(data, None, is_answer=False)

    async def why_ended(self) -> str:
        if self._child is None or not await self._child.wait(WHY_SECONDS):
            return ""
        await self._child.read_stderr()
        how = describe_end(self._child.popen.returncode, self._child.stderr_tail())
        return f"the command {self._argv[0]!r} {how}"

    def drop(self) -> None:
        self._child = None  # a thread terminates a child that is no longer referenced

    async def aclose(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close(GRACE_SECONDS)
