"""The frames of the supervisor protocol, which clients and the supervisor exchange besides the CLI's lines.

Each frame is one JSON object on a line. A client sends commands, and each gets one answer. The first key names the
command: ``create``, ``attach``, ``resume``, ``list``, ``stop``, ``remove`` or ``prewarm``. After ``attach`` (also as a
part of ``create`` and ``resume``) the CLI's lines follow unchanged, each once, and the lines of a driver go to the CLI.
Between them are the supervisor's own frames. Their type begins with ``supervisor_``, and they are not counted as lines.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

#: The version of this protocol. A supervisor of another version reports its version, and refuses the command.
VERSION = 2
#: The size limit of an answer, which may contain all open questions.
MAX_ANSWER_BYTES = 96 * 1024 * 1024

#: The request id of the supervisor's own ``initialize``.
INITIALIZE_ID = "claude_wire_supervisor_initialize"
#: The type of the line with which a driver ends the input of the CLI.
END_INPUT = "supervisor_end_input"

#: JSON's ``null``.
NOTHING = msgspec.Raw(b"null")


class Cursor(msgspec.Struct, frozen=True):
    """A client's position in the output of a session. This is all that a client must remember.

    Attributes:
        id: the session's id in the supervisor.
        epoch: of the journal. It changes if the journal lost lines.
        line: the number of the last line that the client has taken; 0 before the first.
    """

    id: str
    epoch: int = 1
    line: int = 0


class Life(Enum):
    """The state of a session.

    ========  ==============================================================================================
    STARTING  Its process runs, and has not answered ``initialize``.
    IDLE      No turn is under way, no subagent works in the background, and no question is open.
    RUNNING   A turn is under way, a prompt waits for one, or a subagent works in the background.
    ASKING    A question is open.
    ENDED     Its process has ended by itself, or was stopped. It can be resumed.
    LOST      Its process ended with its supervisor. It can be resumed; a turn that was cut is reported.
    ========  ==============================================================================================
    """

    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    ASKING = "asking"
    ENDED = "ended"
    LOST = "lost"


class Serves(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks that a driver offers.

    Attributes:
        hooks: the ids of its hooks, as in ``initialize``.
        mcp: the names of its MCP servers.
    """

    hooks: list[str] = []
    mcp: list[str] = []


class Started(Serves, frozen=True, kw_only=True):
    """The callbacks that the CLI of a session was started with. No later driver can change them.

    Attributes:
        hooks, mcp: the hooks that the CLI calls, and the MCP servers that it asks a driver for.
        asks: whether the CLI asks a driver for permission, according to its command line.
    """

    asks: bool = False


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_ended"):
    """The CLI has ended.

    Attributes:
        exit_code: as :mod:`subprocess` has it; None if it ended with its supervisor.
        unfinished: where its output ended, in words: in a turn, or while a subagent worked. Empty between runs.
        owed: uuids of prompts without a result. They are never run again automatically.
        died: ids of questions that nobody answered.
        calls: ids of tool calls without a result. The tools may have run.
        stderr: the end of its standard error.
    """

    exit_code: int | None
    unfinished: str = ""
    owed: list[str] = []
    died: list[str] = []
    calls: list[str] = []
    stderr: str = ""


class Attached(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_attached"):
    """The answer to ``attach``: the position in the journal, and the state of the session.

    Attributes:
        id, epoch: the id of the session, and the epoch of its journal.
        after: the number of the line before the first line that the client gets.
        line: the number of the journal's last line. Questions up to this line that are not in ``open`` are settled.
        role: the role of the client.
        driver: whether the session has a driver.
        life: the state of the session.
        turn: whether a turn is under way.
        subagents: ids of the subagents in the background, without very long ids.
        open: the CLI's questions without an answer, as control requests.
        settled: ids of the newest questions that no longer need an answer.
        owed: uuids of prompts without a result.
        model, permission_mode: the settings of the process; None until it has named them.
        initialized: the CLI's answer to ``initialize``; JSON's ``null`` while there is none.
        handshakes: MCP server -> the first messages of the CLI to this server.
        ended: how the CLI has ended; None while it runs.
        started: the callbacks that the CLI was started with. None from an older supervisor, or if the names have more
            than 1 MiB.
        mark: the end of each frame of this connection, unknown to the CLI (see :func:`end_of_frames`).
    """

    id: str
    epoch: int
    after: int
    line: int
    role: Literal["viewer", "driver"]
    driver: bool
    life: Life
    turn: bool = False
    subagents: list[str] = []
    open: list[msgspec.Raw] = []
    settled: list[str] = []
    owed: list[str] = []
    model: str | None = None
    permission_mode: str | None = None
    initialized: msgspec.Raw = NOTHING
    handshakes: dict[str, list[dict[str, Any]]] = {}
    ended: Ended | None = None
    started: Started | None = None
    mark: str = ""


class Accepted(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_accepted"):
    """This many lines of the connection count: they are in the journal, or were there already."""

    lines: int


class Refused(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_refused"):
    """A line of the connection was not written. The frame has its number and the reason."""

    line: int
    reason: str


class Driver(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_driver"):
    """The role of this client has changed: another client drives now, or nobody does."""

    role: Literal["viewer", "driver"]
    driver: bool


class Cut(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_cut"):
    """The connection ends because the client read too slowly. It can attach again after ``cursor``."""

    cursor: Cursor
    message: str


class Blocked(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_blocked"):
    """The journal cannot be written, so nothing is read from the CLI. ``message`` is empty when it goes on."""

    message: str


class Limited(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_limited"):
    """The session has reached a limit. The frame names the limit, its value, and what was done."""

    limit: str
    value: float
    message: str


class Stderr(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_stderr"):
    """What the CLI has written to its standard error since the client attached."""

    text: str


# --- what a client asks


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CLI, and how to start it.

    Attributes:
        argv: the command line, the CLI's path first.
        cwd: the working directory.
        env: the whole environment. It is kept in memory only, never on disk.
        initialize: the payload of the ``initialize`` that the supervisor sends, with its hooks and MCP servers.
        mcp: MCP server -> method (``initialize``, ``tools/list``, …) -> the result to send while no client serves it.
        name: for lists.
        cost_usd: the turn is interrupted when the session has cost this much; None for no limit.
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
        after: the client gets the lines after this cursor; None for all lines.
        role: a driver sends lines and answers questions; a viewer does neither.
        take: replace an existing driver. Without it, an existing driver leads to the error ``driver``.
        serves: the hooks and MCP servers of a driver, by the names that the CLI uses.
    """

    after: Cursor | None = None
    role: Literal["viewer", "driver"] = "viewer"
    take: bool = False
    serves: Serves = Serves()
    version: int = VERSION


class Attach(_Role, frozen=True):
    """Get the lines of a session, and perhaps drive it. The answer is :class:`Attached`.

    Attributes:
        tail: in place of ``after``: begin with the first line in this many bytes at the end of the journal, or with the
            last line.
        before: count the bytes of ``tail`` from the line with this number back, and not from the end of the journal.
    """

    attach: str
    # Left out when not used: a supervisor that was started before an update does not know them.
    tail: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    before: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET


class Create(_Role, frozen=True):
    """Start a CLI in a new session, and attach to it. The answer is :class:`Attached`.

    With ``detach`` the answer is :class:`SessionInfo`, and the connection takes other commands.
    """

    create: Spec
    detach: bool = False


class Resume(_Role, frozen=True):
    """Start a CLI that resumes an ended session. Everything else is as for :class:`Create`.

    Attributes:
        env: the whole environment, because none is kept on disk; None for the previous one, if the supervisor has it.
    """

    resume: str
    env: dict[str, str] | None = None
    detach: bool = False


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = VERSION


class List(_Request, frozen=True):
    """List the sessions. The answer is :class:`Listed`."""

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


class Rename(_Request, frozen=True):
    """Give a session another name, or none. The answer is :class:`Listed`."""

    rename: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None


class Prewarm(_Request, frozen=True):
    """Keep ``count`` CLIs ready for a :class:`Create` with an equal spec. The answer is :class:`Listed`."""

    prewarm: Spec
    count: Annotated[int, msgspec.Meta(ge=0)] = 1


Command: TypeAlias = Create | Attach | Resume | List | Stop | Remove | Rename | Prewarm

_COMMANDS: dict[str, type[Command]] = {
    "create": Create,
    "attach": Attach,
    "resume": Resume,
    "list": List,
    "stop": Stop,
    "remove": Remove,
    "rename": Rename,
    "prewarm": Prewarm,
}


def command_of(line: bytes) -> Command:
    """Decode a command.

    Raises:
        ValueError: the line is not a command, or has an unknown field. The message says what is wrong.
    """
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    names = [name for name in _COMMANDS if name in fields]
    if len(names) != 1:
        raise ValueError(f"a command has one of these keys: {', '.join(_COMMANDS)}")
    return msgspec.json.decode(line, type=_COMMANDS[names[0]])


# --- what it is answered


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_session"):
    """A session, as in lists."""

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
    """A command cannot be carried out. The connection takes the next command.

    Attributes:
        error: ``epoch`` (with ``line``, the last line), ``gone`` (with ``first``, the first line), ``unknown`` (no such
            session), ``driver`` (there is one), ``running`` (its CLI runs), ``environment`` (none is known), ``start``,
            ``limit``, ``version``, ``command`` (the line is not a command), ``refused``, ``system``.
        message: the reason for people.
    """

    error: str
    message: str
    line: int | None = None
    first: int | None = None


#: The answers to commands.
Answer: TypeAlias = Attached | SessionInfo | Listed | Failed
_answer_decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def answer_of(line: bytes) -> Answer:
    """Decode an answer.

    Raises:
        ValueError: the line is no answer.
    """
    return _answer_decoder.decode(line)


#: A frame between the lines of a session.
SessionFrame: TypeAlias = Accepted | Refused | Driver | Cut | Blocked | Limited | Stderr | Ended
Frame: TypeAlias = Answer | SessionFrame


def line_of(frame: Frame | Cursor) -> bytes:
    """Encode a frame as a line, with its line feed."""
    return msgspec.json.encode(frame) + b"\n"


# --- frames within a stream

_decoder: msgspec.json.Decoder[SessionFrame] = msgspec.json.Decoder(SessionFrame)


def end_of_frames(mark: str) -> bytes:
    """Return the end of each frame of a connection, without its line feed.

    A CLI can write a line that looks like a frame. It cannot know the mark, because each connection has its own.
    """
    return b',"mark":"%b"}' % mark.encode() if mark else b""


def is_frame(line: bytes, end: bytes) -> bool:
    """Return True if a line of a session, without its line feed, is a frame. ``end`` is from :func:`end_of_frames`."""
    return line.startswith(b'{"type":"supervisor_') and line.endswith(end)


def frame_of(line: bytes) -> SessionFrame | None:
    """Decode a frame. None for a frame of a later version."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
