"""The client of a supervisor: list sessions, create them, attach to them and stop them. An attached session is a
:class:`~claude_wire.Session`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec

from claude_wire import ClaudeOptions
from claude_wire.codec import encode
from claude_wire.messages import InitializeRequest
from claude_wire.process.process import require_environment
from claude_wire.session.open import STATE_VARIABLE, command_line
from claude_wire.support import require_one_of, require_seconds, type_of
from claude_wire_kit.supervisor.attachment import Attachment, Connection
from claude_wire_kit.supervisor.disk.folder import default_folder
from claude_wire_kit.supervisor.frames import (
    Attach,
    Create,
    Cursor,
    List,
    Listed,
    Prewarm,
    Remove,
    Rename,
    Resume,
    SessionInfo,
    Spec,
    Stop,
)
from claude_wire_kit.supervisor.session import AttachedSession
from claude_wire_kit.supervisor.transport import CommandTransport, SocketTransport, Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from claude_wire.process.child import StrPath
    from claude_wire.session import CallbackArguments
    from claude_wire_kit.supervisor.attachment import Following
    from claude_wire_kit.supervisor.frames import Command

__all__ = ["Attachment", "Supervisor", "connect", "spec_of"]

#: Time limit in seconds for the supervisor's answer to a command that does not start a CLI.
ANSWER_SECONDS = 10.0
#: Time limit in seconds for the answer to a command that starts a CLI.
START_SECONDS = 60.0

A = TypeVar("A")
Role: TypeAlias = Literal["viewer", "driver"]


def connect(
    folder: StrPath | None = None, *, command: Sequence[StrPath] | None = None, timeout: float = ANSWER_SECONDS
) -> Supervisor:
    """Return a client for a supervisor. The client opens a new connection for each command.

    Args:
        folder: the supervisor's state folder. If None, ``$CLAUDE_WIRE_SUPERVISOR`` or the user's default folder.
        command: instead of a folder, a command line whose standard streams are connected to the supervisor:
            ``["ssh", "-T", "-o", "ServerAliveInterval=15", "HOST", "claude-wire", "supervisor", "stdio"]``.
        timeout: time limit in seconds for connecting and getting the answer. For commands that start a CLI: 60 seconds.

    Raises:
        TypeError: both ``folder`` and ``command`` are given, or an argument has the wrong type.
    """
    if folder is not None and command is not None:
        raise TypeError("connect() takes a folder or a command, not both")
    if isinstance(command, (str, bytes)):
        raise TypeError("command must be a list of arguments; shlex.split() makes one of a command line")
    require_seconds("timeout", timeout, or_none=False)
    return Supervisor(folder, command, timeout)


def spec_of(
    options: ClaudeOptions | Sequence[StrPath],
    *,
    initialize: InitializeRequest | None = None,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    name: str | None = None,
    mcp: Mapping[str, Mapping[str, Any]] | None = None,
    cost_usd: float | None = None,
    asks: bool = True,
) -> Spec:
    """Describe a CLI for a supervisor, with all defaults filled in. The arguments have the same meaning as in
    :func:`~claude_wire.open_session`.

    Args:
        options: the CLI's flags, or a whole command line.
        cwd, env: the working directory and the whole environment; None for this process's own.
        name: the session's name in lists.
        mcp: MCP server -> method (``initialize``, ``tools/list``, …) -> the result that the supervisor sends while no
            client serves this MCP server.
        cost_usd: limit in US dollars. When the session's cost reaches it, the supervisor interrupts the turn.
        asks: make the CLI ask for permission, unless the :class:`~claude_wire.ClaudeOptions` already decide this.
            The questions wait for a driver.
    """
    require_environment("env", env)
    require_environment("extra_env", extra_env)
    request = initialize or InitializeRequest()
    return Spec(
        argv=[os.fspath(argument) for argument in command_line(options, asks=asks)],
        cwd=os.path.abspath(os.fspath(cwd or os.getcwd())),
        env={STATE_VARIABLE: "1", **(os.environ if env is None else env), **(extra_env or {})},
        initialize=msgspec.json.decode(encode(request)),
        mcp={server: dict(results) for server, results in (mcp or {}).items()},
        name=name,
        cost_usd=cost_usd,
    )


class Supervisor:
    """The client of a supervisor. :func:`connect` returns it.

    Each command opens and closes one connection. Use a session from :meth:`attach`, :meth:`create` or :meth:`resume`
    with ``async with``. Leaving the block closes the connection, and the CLI keeps running.

    Raises:
        SupervisorError: raised by each command, and by entering a session. ``error`` is the reason: ``absent`` if no
            supervisor runs, ``timeout`` if the supervisor did not answer in time, ``lost`` if the connection ended
            before the answer. Otherwise the supervisor refused the command.
    """

    def __init__(self, folder: StrPath | None, command: Sequence[StrPath] | None, timeout: float) -> None:
        self.folder: str | None = None
        if command is None:
            self.folder = os.path.abspath(os.fspath(folder or default_folder()))
        self._command = command
        self._timeout = timeout

    def __repr__(self) -> str:
        where = f"folder {self.folder!r}" if self._command is None else f"command {os.fspath(self._command[0])!r}"
        return f"<Supervisor: {where}>"

    # --- sessions

    def attach(
        self,
        session: str | Cursor,
        *,
        role: Role = "driver",
        take: bool = False,
        **arguments: Unpack[CallbackArguments],
    ) -> AttachedSession:
        """Return an existing session, for ``async with``.

        Args:
            session: the session's id, to get all lines in its journal; or a cursor, to get the lines after it.
            role: a driver sends prompts and answers questions; a viewer only reads.
            take: replace the current driver, which becomes a viewer. Without ``take``, an existing driver is an error.

        The other arguments are callbacks, as in :func:`~claude_wire.open_session`.
        """
        require_one_of("role", role, ("viewer", "driver"))
        id, after = _place(session)
        return AttachedSession(self.open(Attach(attach=id, after=after, role=role, take=take)), **arguments)

    def create(self, spec: Spec, *, role: Role = "driver", **arguments: Unpack[CallbackArguments]) -> AttachedSession:
        """Return a new session, for ``async with``. Entering it starts the CLI, with these hooks and MCP servers.

        Args:
            spec: the CLI to start, from :func:`spec_of`.
        """
        return AttachedSession(self.open(Create(create=spec, role=role)), **arguments)

    def resume(
        self,
        session: str | Cursor,
        *,
        env: Mapping[str, str] | None = None,
        role: Role = "driver",
        **arguments: Unpack[CallbackArguments],
    ) -> AttachedSession:
        """Return an ended session, for ``async with``. Entering it starts a CLI that resumes the session.

        Args:
            session: as for :meth:`attach`.
            env: the CLI's whole environment; None for the environment of the session's last CLI. The supervisor never
                writes an environment to disk, so None works only if this supervisor started the last CLI.
        """
        id, after = _place(session)
        command = Resume(resume=id, after=after, role=role, env=None if env is None else dict(env))
        return AttachedSession(self.open(command), **arguments)

    def open(self, command: Following) -> Attachment:
        """Return a raw connection to a session: ``async with supervisor.open(Attach(attach=id)) as raw``."""
        seconds = self._timeout if isinstance(command, Attach) else START_SECONDS
        return Attachment(self._transport(command), command, seconds)

    # --- other commands

    async def stop(self, session: str | None, *, grace: float = 5.0) -> Listed:
        """Stop a session's CLI, and wait for its exit. With None, stop all CLIs and the supervisor.

        Args:
            grace: seconds between closing the CLI's input and SIGTERM, and between SIGTERM and SIGKILL.
        """
        return await self._ask(Stop(stop=session, grace=grace), Listed, self._timeout + 3 * grace)

    async def remove(self, session: str) -> Listed:
        """Remove an ended session and its journal."""
        return await self._ask(Remove(remove=session), Listed)

    async def rename(self, session: str, name: str | None) -> Listed:
        """Change the name of a session; None removes the name."""
        return await self._ask(Rename(rename=session, name=name), Listed)

    async def prewarm(self, spec: Spec, count: int = 1) -> Listed:
        """Keep ``count`` CLIs ready for :meth:`create` with an equal spec."""
        return await self._ask(Prewarm(prewarm=spec, count=count), Listed, START_SECONDS)

    async def start(self, spec: Spec) -> SessionInfo:
        """Start a CLI in a new session, without attaching to it."""
        return await self._ask(Create(create=spec, detach=True), SessionInfo, START_SECONDS)

    async def restart(self, session: str, *, env: Mapping[str, str] | None = None) -> SessionInfo:
        """Start a CLI that resumes an ended session, without attaching to it. ``env`` is as for :meth:`resume`."""
        command = Resume(resume=session, env=None if env is None else dict(env), detach=True)
        return await self._ask(command, SessionInfo, START_SECONDS)

    async def list(self) -> Listed:
        """Return the list of all sessions."""
        return await self._ask(List(list={}), Listed)

    async def _ask(self, command: Command, kind: type[A], seconds: float | None = None) -> A:
        connection = Connection(self._transport(command))
        try:
            return await connection.ask(command, kind, self._timeout if seconds is None else seconds)
        finally:
            await connection.aclose()

    def _transport(self, command: Command) -> Transport:
        if self._command is not None:
            return CommandTransport(self._command)
        assert self.folder is not None
        return SocketTransport(os.path.join(self.folder, "socket"), self.folder)


def _place(session: str | Cursor) -> tuple[str, Cursor | None]:
    """Return the session's id, and the cursor after the lines that the client already has, or None.

    Raises:
        TypeError: the argument is neither an id nor a cursor.
    """
    if isinstance(session, Cursor):
        return session.id, session
    if not isinstance(session, str):
        raise TypeError(f"session must be an id or a Cursor, not {type_of(session)}")
    return session, None
