"""What a supervisor says to its clients between the lines of the CLI: one JSON object a line.

Knows the shapes, and which lines have them; not who says when what. Commands, and what answers them, are in
:mod:`claude_wire.supervisor.frames`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "END_INPUT",
    "INITIALIZE_ID",
    "NOTHING",
    "Accepted",
    "Attached",
    "Blocked",
    "Cursor",
    "Cut",
    "Driver",
    "Ended",
    "Life",
    "Limited",
    "Refused",
    "Serves",
    "SessionFrame",
    "Started",
    "Stderr",
    "end_of_frames",
    "frame_of",
]

#: The id of the supervisor's own ``initialize``.
INITIALIZE_ID = "claude_wire_supervisor_initialize"
#: The type of the line by which a driver ends the input of the CLI.
END_INPUT = "supervisor_end_input"

#: JSON's ``null``.
NOTHING = msgspec.Raw(b"null")


class Cursor(msgspec.Struct, frozen=True):
    """Where a client stands in the output of a session: all that it must remember.

    Attributes:
        id: of the session, the supervisor's own.
        epoch: of the journal. It changes if the journal lost lines.
        line: the number of the last line that was taken; 0 before the first.
    """

    id: str
    epoch: int = 1
    line: int = 0


class Life(Enum):
    """What a session does.

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
    """What a driver answers.

    Attributes:
        hooks: the ids of its hooks, as they stand in ``initialize``.
        mcp: the names of its MCP servers.
    """

    hooks: list[str] = []
    mcp: list[str] = []


class Started(Serves, frozen=True, kw_only=True):
    """What the CLI of a session was started with, which no later driver can change.

    Attributes:
        hooks, mcp: the hooks that the CLI calls, and the MCP servers that it asks a driver for.
        asks: whether the command line has it ask a driver for permission.
    """

    asks: bool = False


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="supervisor_ended"):
    """The CLI has ended.

    Attributes:
        exit_code: as :mod:`subprocess` has it; None if it ended with its supervisor.
        unfinished: where its output ended, in words: in a turn, or while a subagent worked. Empty between runs.
        owed: uuids of prompts without a result. They are never run again by themselves.
        died: ids of questions that nobody answered.
        calls: ids of tool calls without a result: they were perhaps done.
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
    initialized: msgspec.Raw = NOTHING
    handshakes: dict[str, list[dict[str, Any]]] = {}
    ended: Ended | None = None
    started: Started | None = None
    mark: str = ""


class Accepted(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_accepted"):
    """So many lines of this connection count: they are in the journal, or were before."""

    lines: int


class Refused(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_refused"):
    """A line of this connection, by its number, was not written, and why."""

    line: int
    reason: str


class Driver(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_driver"):
    """The role of this client has changed: another one drives, or nobody does."""

    role: Literal["viewer", "driver"]
    driver: bool


class Cut(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_cut"):
    """The connection ends, because the client read too slowly. It can attach again behind ``cursor``."""

    cursor: Cursor
    message: str


class Blocked(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_blocked"):
    """The journal cannot be written, so nothing is read from the CLI; ``message`` is empty when it goes on."""

    message: str


class Limited(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_limited"):
    """A limit of the session was reached, and what was done; with its name and its value."""

    limit: str
    value: float
    message: str


class Stderr(msgspec.Struct, frozen=True, tag_field="type", tag="supervisor_stderr"):
    """What the CLI has written to its standard error since the client has attached."""

    text: str


#: What stands between the lines of a session.
SessionFrame: TypeAlias = Accepted | Refused | Driver | Cut | Blocked | Limited | Stderr | Ended

_decoder: msgspec.json.Decoder[SessionFrame] = msgspec.json.Decoder(SessionFrame)


def end_of_frames(mark: str) -> bytes:
    """How each frame of a connection ends, without its line feed.

    A CLI can write a line that looks like a frame. It cannot know the mark, which is made for each connection.
    """
    return b',"mark":"%b"}' % mark.encode() if mark else b""


def frame_of(line: bytes) -> SessionFrame | None:
    """The frame that a line is; None for one of a later version."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
