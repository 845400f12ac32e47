"""What a client and the supervisor say to each other besides the CLI's lines: one JSON object a line.

Knows their shapes; those that a session needs as well are in :mod:`claude_wire.control.supervisor_frames`. A client
sends commands, each with one answer. The key of a command says which it is: ``create``, ``attach``, ``resume``,
``list``, ``stop``, ``remove`` or ``prewarm``. After ``attach`` (also as a part of ``create`` and ``resume``) the lines
of the CLI follow as they are, each once, and the lines of a driver go to the CLI. What the supervisor itself says
between them has a type that begins with ``supervisor_``, and has no number.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from claude_wire.control.supervisor_frames import (
    Accepted,
    Attached,
    Blocked,
    Cursor,
    Cut,
    Driver,
    Ended,
    Life,
    Limited,
    Refused,
    Serves,
    Started,
    Stderr,
)

__all__ = [
    "MAX_ANSWER_BYTES",
    "VERSION",
    "Accepted",
    "Attach",
    "Attached",
    "Blocked",
    "Command",
    "Create",
    "Cursor",
    "Cut",
    "Driver",
    "EndInput",
    "Ended",
    "Failed",
    "Frame",
    "Limited",
    "Listed",
    "Prewarm",
    "Refused",
    "Remove",
    "Resume",
    "SessionInfo",
    "Spec",
    "Started",
    "Stderr",
    "Stop",
    "command_of",
    "line_of",
]

#: The version of these frames. A supervisor of another one says so, and does nothing else.
VERSION = 2
#: Bytes of an answer, which may have all questions that are open.
MAX_ANSWER_BYTES = 96 * 1024 * 1024


# --- what a client asks


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CLI as it is started.

    Attributes:
        argv: the command line, the CLI's path first.
        cwd: the working directory.
        env: the whole environment. It is kept in memory only, never on disk.
        initialize: the payload of the ``initialize`` that the supervisor sends, with its hooks and MCP servers.
        mcp: by MCP server and method (``initialize``, ``tools/list``, …), the result that is given while nobody serves
            it.
        name: for lists.
        cost_usd: the turn is interrupted when the session has cost so much; None for no limit.
    """

    argv: Annotated[list[str], msgspec.Meta(min_length=1)]
    cwd: Annotated[str, msgspec.Meta(max_length=4096)]
    env: dict[str, str]
    initialize: dict[str, Any] = {}
    mcp: dict[str, dict[str, Any]] = {}
    name: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    cost_usd: float | None = None


class _Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a client attaches.

    Attributes:
        after: the lines behind it are sent; None for all that there are.
        role: a driver sends lines and answers questions; a viewer does neither.
        take: whether a driver that is there is replaced. Without it there is the error ``driver`` then.
        serves: the hooks and MCP servers of a driver, as the CLI knows them.
    """

    after: Cursor | None = None
    role: Literal["viewer", "driver"] = "viewer"
    take: bool = False
    serves: Serves = Serves()
    version: int = VERSION


class Attach(_Role, frozen=True):
    """Get the lines of a session, and perhaps drive it. The answer is :class:`Attached`."""

    attach: str


class Create(_Role, frozen=True):
    """Start a CLI in a session of its own, and attach to it at once. The answer is :class:`Attached`.

    With ``detach`` the answer is :class:`SessionInfo`, and the connection takes other commands.
    """

    create: Spec
    detach: bool = False


class Resume(_Role, frozen=True):
    """Start a CLI that goes on with a session that has ended; the rest is as for :class:`Create`.

    Attributes:
        env: the whole environment, since none is kept on disk; None for that of before, if the supervisor has it.
    """

    resume: str
    env: dict[str, str] | None = None
    detach: bool = False


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = VERSION


class List(_Request, frozen=True):
    """Which sessions there are. The answer is :class:`Listed`."""

    list: dict[str, Any]


class Stop(_Request, frozen=True):
    """End the CLI of a session, or the supervisor with all of them for None. The answer is :class:`Listed`, at the end.

    Attributes:
        grace: seconds between the end of its input, SIGTERM and SIGKILL.
    """

    stop: str | None
    grace: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 5.0


class Remove(_Request, frozen=True):
    """Remove a session that has ended, and its journal. The answer is :class:`Listed`."""

    remove: str


class Prewarm(_Request, frozen=True):
    """Keep so many CLIs ready for a :class:`Create` with an equal spec. The answer is :class:`Listed`."""

    prewarm: Spec
    count: Annotated[int, msgspec.Meta(ge=0)] = 1


Command: TypeAlias = Create | Attach | Resume | List | Stop | Remove | Prewarm

_COMMANDS: dict[str, type[Command]] = {
    "create": Create,
    "attach": Attach,
    "resume": Resume,
    "list": List,
    "stop": Stop,
    "remove": Remove,
    "prewarm": Prewarm,
}


def command_of(line: bytes) -> Command:
    """The command that a line is.

    Raises:
        ValueError: it is none, or has a field that there is not. The message says what is wrong.
    """
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    names = [name for name in _COMMANDS if name in fields]
    if len(names) != 1:
        raise ValueError(f"a command has one of these keys: {', '.join(_COMMANDS)}")
    return msgspec.json.decode(line, type=_COMMANDS[names[0]])


# --- what a driver says besides lines for the CLI


class EndInput(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_end_input"):
    """From a driver: the CLI gets no more input, so it finishes and ends. Counts as a line."""


# --- what it is answered


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_session"):
    """A session, as lists have it."""

    id: str
    name: str | None
    life: Life
    cwd: str
    epoch: int
    line: int
    pid: int | None
    cli_session_id: str | None
    began: float
    clients: int
    driver: bool
    bytes: int


class Listed(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_list"):
    """The sessions of a supervisor."""

    sessions: list[SessionInfo]
    version: int
    package: str
    pid: int


class Failed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="supervisor_error"):
    """Why a command cannot be carried out. The connection takes the next one.

    Attributes:
        error: ``epoch`` (with ``line``, the last one that there is), ``gone`` (with ``first``, the first that there
            is), ``unknown`` (no such session), ``driver`` (there is one), ``running`` (its CLI runs), ``environment``
            (none is known), ``start``, ``limit``, ``version``, ``command`` (the line is none), ``refused``, ``system``.
        message: the same for people.
    """

    error: str
    message: str
    line: int | None = None
    first: int | None = None


Frame: TypeAlias = (
    SessionInfo | Listed | Attached | Failed | Accepted | Refused | Driver | Cut | Blocked | Limited | Stderr | Ended
)


def line_of(frame: Frame | Cursor) -> bytes:
    """A frame as a line, with its line feed."""
    return msgspec.json.encode(frame) + b"\n"
