"""The supervisor protocol's frames: the lines that clients and the supervisor exchange besides the CLI's lines.

Each frame is a JSON object on one line. A client sends commands such as ``{"list":{}}``, and the supervisor answers
each command with one frame. One key names the command: ``create``, ``attach``, ``resume``, ``list``, ``stop``,
``remove``, ``rename`` or ``prewarm``. After the answer to ``attach``, ``create`` or ``resume``, the client gets each of
the CLI's lines once, unchanged, and the lines of a driver go to the CLI. Between the CLI's lines, the supervisor sends
frames whose type begins with ``supervisor_``. These frames have no line number.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec

#: The version of this protocol. A supervisor refuses a command of another version, and its error names both.
VERSION = 2
#: Maximum size in bytes of an answer, which may contain all open questions.
MAX_ANSWER_BYTES = 96 * 1024 * 1024

#: The request id of the supervisor's own ``initialize``.
INITIALIZE_ID = "claude_wire_supervisor_initialize"
#: The type of the line that a driver sends to close the CLI's input.
END_INPUT = "supervisor_end_input"

NOTHING = msgspec.Raw(b"null")


class Cursor(msgspec.Struct, frozen=True):
    """A client's position in a session's output. A client that attaches again with its cursor misses no line.

    Attributes:
        id: the session's id in the supervisor.
        epoch: the epoch of the journal. It changes if the journal may have lost lines.
        line: the number of the last line that the client handled; 0 before the first.
    """

    id: str
    epoch: int = 1
    line: int = 0


class Life(Enum):
    """The state of a session.

    ========  ==============================================================================================
    STARTING  The CLI is running, but has not answered ``initialize`` yet.
    IDLE      No turn is under way, no subagent is working in the background, and no question is open.
    RUNNING   A turn is under way, a prompt is waiting, or a subagent is working in the background.
    ASKING    A question of the CLI is open.
    ENDED     The CLI exited by itself, or a client stopped it. Clients can resume the session.
    LOST      The CLI died with its supervisor. Clients can resume the session. ``Ended`` reports an interrupted turn.
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
    """The callbacks that ``initialize`` registered with a session's CLI. Later drivers cannot change them.

    Attributes:
        hooks, mcp: the hooks that the CLI calls, and the MCP servers that it asks a driver for.
        asks: whether the CLI asks a driver for permission, according to its command line.
    """

    asks: bool = False


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_ended"):
    """The CLI has exited.

    Attributes:
        exit_code: the exit code, negative if a signal killed the CLI; None if the CLI died with its supervisor.
        unfinished: the work that the exit interrupted, such as "in the middle of a turn". Empty between runs.
        owed: uuids of prompts without a result. The supervisor does not send them again.
        died: ids of questions that nobody answered.
        calls: ids of tool calls without a result. The tools may have run.
        stderr: the last part of the CLI's standard error.
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
        line: the number of the journal's last line. Questions up to this line are settled unless ``open`` has them.
        role: the role of the client.
        driver: whether the session has a driver.
        life: the state of the session.
        turn: whether a turn is under way.
        subagents: ids of the subagents in the background, without ids of more than 128 characters.
        open: the CLI's unanswered questions, as control requests.
        settled: ids of the newest questions that no longer need an answer.
        owed: uuids of prompts without a result.
        model, permission_mode: the CLI's model and permission mode; None until one of its messages names them.
        initialized: the CLI's answer to ``initialize``, or JSON's ``null`` before it.
        handshakes: MCP server -> the CLI's ``initialize`` and ``notifications/initialized`` messages to this server.
        ended: how the CLI exited; None while it is running.
        started: the callbacks that ``initialize`` registered with the CLI. None from an older supervisor, or if the
            names together have more than 1,048,576 characters.
        mark: a random string at the end of each frame of this connection. The CLI does not know the mark, so its lines
            cannot pass for frames (see :func:`end_of_frames`).
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
    """The supervisor wrote the first ``lines`` lines of this connection to the journal, except the refused ones."""

    lines: int


class Refused(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_refused"):
    """The supervisor refused a line of this connection. Neither the journal nor the CLI gets the line."""

    line: int
    reason: str


class Driver(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_driver"):
    """The session's driver changed or left. ``role`` is the role of this client from now on."""

    role: Literal["viewer", "driver"]
    driver: bool


class Cut(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_cut"):
    """The supervisor disconnects a client that read too slowly. The client can attach again at ``cursor``."""

    cursor: Cursor
    message: str


class Blocked(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_blocked"):
    """The supervisor cannot write the journal, for example because the disk is full, so it does not read from the CLI.

    Attributes:
        message: the reason. Empty when the supervisor reads again.
    """

    message: str


class Limited(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_limited"):
    """The session reached a limit, such as ``cost_usd``. ``value`` is the current value; ``message`` is for people."""

    limit: str
    value: float
    message: str


class Stderr(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_stderr"):
    """A piece of text that the CLI wrote to its standard error."""

    text: str


# --- commands


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CLI, and how to start it.

    Attributes:
        argv: the command line, starting with the CLI's path.
        cwd: the working directory.
        env: the whole environment. The supervisor keeps it in memory, and never writes it to disk.
        initialize: the payload of the ``initialize`` request that the supervisor sends to the CLI, such as its hooks.
        mcp: MCP server -> method (``initialize``, ``tools/list``, …) -> the result to send while no client serves this
            MCP server.
        name: the session's name in lists.
        cost_usd: limit in US dollars, at which the supervisor interrupts the turn; None for no limit.
    """

    argv: Annotated[list[str], msgspec.Meta(min_length=1)]
    cwd: Annotated[str, msgspec.Meta(max_length=4096)]
    env: dict[str, str]
    initialize: dict[str, Any] = {}
    mcp: dict[str, dict[str, Any]] = {}
    name: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    cost_usd: float | None = None

    def __repr__(self) -> str:
        """Omit everything that can contain a secret: arguments, environment, requests."""
        return f"Spec({self.argv[0]!r} with {len(self.argv) - 1} arguments, cwd={self.cwd!r}, name={self.name!r})"


class _Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that :class:`Attach`, :class:`Create` and :class:`Resume` share.

    Attributes:
        after: send the lines after this cursor; None for all lines.
        role: a driver sends lines and answers questions; a viewer does neither.
        take: replace the current driver. Without ``take``, an existing driver causes the error ``driver``.
        serves: the hooks and MCP servers that a driver offers.
    """

    after: Cursor | None = None
    role: Literal["viewer", "driver"] = "viewer"
    take: bool = False
    serves: Serves = Serves()
    version: int = VERSION


class Attach(_Role, frozen=True):
    """Attach to a session, as a viewer or as its driver. The answer is :class:`Attached`.

    Attributes:
        tail: instead of ``after``: begin with the first line that starts in the last ``tail`` bytes of the journal. If
            the last line is longer, begin with the last line.
        before: count the bytes of ``tail`` back from the line with this number instead of the end of the journal.
    """

    attach: str
    # UNSET fields are not encoded, because an older supervisor refuses unknown fields.
    tail: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    before: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET


class Create(_Role, frozen=True):
    """Start a CLI in a new session, and attach to it. The answer is :class:`Attached`.

    With ``detach``, only start the CLI: the answer is :class:`SessionInfo`, and the connection accepts more commands.
    """

    create: Spec
    detach: bool = False


class Resume(_Role, frozen=True):
    """Start a CLI that resumes an ended session, and attach to it. The answers are the same as for :class:`Create`.

    Attributes:
        env: the CLI's whole environment. None for the previous environment. A restarted supervisor does not have it.
    """

    resume: str
    env: dict[str, str] | None = None
    detach: bool = False

    def __repr__(self) -> str:
        """Omit the environment, which can contain secrets."""
        return f"Resume({self.resume!r}, after={self.after!r}, role={self.role!r}, detach={self.detach!r})"


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = VERSION


class List(_Request, frozen=True):
    """List the sessions. The answer is :class:`Listed`."""

    list: dict[str, Any]


class Stop(_Request, frozen=True):
    """Stop a session's CLI; with None, stop all CLIs and the supervisor. The answer is :class:`Listed`, sent after the
    exit. ``grace`` is the time in seconds between closing the CLI's input and SIGTERM, and between SIGTERM and SIGKILL.
    """

    stop: str | None
    grace: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 5.0


class Remove(_Request, frozen=True):
    """Remove an ended session and its journal. The answer is :class:`Listed`."""

    remove: str


class Rename(_Request, frozen=True):
    """Change the name of a session; None removes the name. The answer is :class:`Listed`."""

    rename: str
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None


class Prewarm(_Request, frozen=True):
    """Keep ``count`` CLIs ready for a :class:`Create` with an equal spec. The answer is :class:`Listed`."""

    prewarm: Spec
    count: Annotated[int, msgspec.Meta(ge=0)] = 1


Command: TypeAlias = Create | Attach | Resume | List | Stop | Remove | Rename | Prewarm

#: The key that names the command -> its class.
_COMMANDS: dict[str, type[Command]] = {command.__name__.lower(): command for command in get_args(Command)}


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


# --- answers


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_session"):
    """A session's state. :class:`Listed` has one for each session.

    Attributes:
        epoch, line: the journal's epoch, and the number of its last line.
        pid: the CLI's process id; None if the CLI is not running.
        cli_session_id: the session id that the CLI reported.
        began: when the session was created, in seconds since 1970.
        clients, driver: the number of attached clients, and whether one of them is the driver.
        bytes: the size of the journal.
    """

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
    """A supervisor's sessions, protocol version, package version and process id."""

    sessions: list[SessionInfo]
    version: int
    package: str
    pid: int


class Failed(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="supervisor_error"):
    """The supervisor cannot carry out a command. The connection is ready for the next command.

    Attributes:
        error: ``epoch`` (with ``line``, the journal's last line), ``gone`` (with ``first``, the journal's first line),
            ``unknown`` (no session has this id), ``driver`` (another client is the driver), ``running`` (the session's
            CLI runs), ``environment`` (the supervisor does not know the CLI's environment), ``start``, ``limit``,
            ``version``, ``command`` (the line is not a command), ``refused``, ``system``.
        message: the reason, for people.
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
        ValueError: the line is not an answer.
    """
    return _answer_decoder.decode(line)


#: A frame between the lines of a session.
SessionFrame: TypeAlias = Accepted | Refused | Driver | Cut | Blocked | Limited | Stderr | Ended
Frame: TypeAlias = Answer | SessionFrame


def line_of(frame: Frame | Cursor) -> bytes:
    """Encode a frame as a line, including the line feed."""
    return msgspec.json.encode(frame) + b"\n"


# --- frames within a stream

#: The beginning of each frame between the lines of a session.
FRAME_BEGIN = b'{"type":"supervisor_'

_decoder: msgspec.json.Decoder[SessionFrame] = msgspec.json.Decoder(SessionFrame)


def end_of_frames(mark: str) -> bytes:
    """Return the bytes that end each frame of a connection, without the line feed.

    The bytes contain the connection's random mark. Without a mark, a CLI could write a line that passes for a frame.
    """
    return b',"mark":"%b"}' % mark.encode() if mark else b""


def is_frame(line: bytes, end: bytes) -> bool:
    """Return True if a line of a session, without its line feed, is a frame. ``end`` is from :func:`end_of_frames`."""
    return line.startswith(FRAME_BEGIN) and line.endswith(end)


def frame_of(line: bytes) -> SessionFrame | None:
    """Decode a frame. Returns None for a frame that this version does not know."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
