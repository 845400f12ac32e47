"""A session's record: ``session.json`` in the session's folder. It never contains the CLI's environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from claude_wire.messages import InitializeRequest, from_dict
from claude_wire.process.command_line import asks_host
from claude_wire_kit.supervisor.disk.files import open_private, write_whole
from claude_wire_kit.supervisor.frames import Ended, Life, SessionInfo, Started

#: Flags that name the session to start or resume -> True if a value follows the flag.
_SESSION_FLAGS = {"--session-id": True, "--resume": True, "-r": True, "--continue": False, "-c": False} | {
    "--fork-session": False,
    "--resume-session-at": True,
}
#: Maximum characters in all hook ids and MCP server names together. With more, ``supervisor_attached`` does not list
#: them.
MAX_STARTED_CHARS = 1024 * 1024


class Record(msgspec.Struct, kw_only=True):
    """The record of a session.

    Attributes:
        id: the id of the session in the supervisor.
        name: the name in lists.
        created: in seconds since 1970.
        argv, cwd, initialize, mcp, cost_usd: see :class:`~claude_wire_kit.supervisor.frames.Spec`.
        epoch: the epoch of the journal. It changes when the journal may have lost lines.
        boot: the :func:`boot_id` when the last CLI was started.
        runs: whether the last CLI was running when the supervisor wrote this file.
        is_warm: whether the CLI is prewarmed and no client has its session yet.
        cli_session_id: the last session id that the CLI reported.
        ended: how the last CLI exited.
        line, bytes: the number of the journal's last line and the size of the journal when the last CLI exited.
    """

    id: str
    name: str | None
    created: float
    argv: list[str]
    cwd: str
    initialize: dict[str, Any] = {}
    mcp: dict[str, dict[str, Any]] = {}
    cost_usd: float | None = None
    epoch: int = 1
    boot: str = ""
    runs: bool = True
    is_warm: bool = False
    cli_session_id: str | None = None
    ended: Ended | None = None
    line: int = 0
    bytes: int = 0

    @property
    def life(self) -> Life:
        """The state of the session while no CLI runs."""
        return Life.LOST if self.ended is not None and self.ended.exit_code is None else Life.ENDED

    @property
    def info(self) -> SessionInfo:
        """The session's entry in ``supervisor_list`` while no CLI runs and no client is attached."""
        return SessionInfo(
            id=self.id,
            name=self.name,
            life=self.life,
            cwd=self.cwd,
            epoch=self.epoch,
            line=self.line,
            pid=None,
            cli_session_id=self.cli_session_id,
            began=self.created,
            clients=0,
            driver=False,
            bytes=self.bytes,
        )

    @property
    def started(self) -> Started | None:
        """The callbacks in ``initialize``. None if ``initialize`` is invalid or the names are too long."""
        try:
            request = from_dict(InitializeRequest, self.initialize)
        except ValueError:
            return None
        events = (request.hooks or {}).values()
        hooks = [id for matchers in events for matcher in matchers for id in matcher.hookCallbackIds]
        mcp = request.sdkMcpServers or []
        if sum(map(len, (*hooks, *mcp))) > MAX_STARTED_CHARS:
            return None
        return Started(hooks=hooks, mcp=mcp, asks=asks_host(self.argv))


def load(folder: str) -> Record:
    """Read the record in the folder of a session.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is invalid.
    """
    with open(os.path.join(folder, "session.json"), "rb", opener=open_private) as file:
        return msgspec.json.decode(file.read(), type=Record)


def save(folder: str, record: Record) -> None:
    """Replace the record in the folder of a session.

    Raises:
        OSError: the file cannot be written. The old record stays.
    """
    write_whole(os.path.join(folder, "session.json"), msgspec.json.encode(record))


def resumed(argv: Sequence[str], cli_session_id: str | None) -> list[str]:
    """Return the command line that resumes a session; ``argv`` itself if the CLI never reported a session id."""
    if cli_session_id is None:
        return list(argv)
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word not in _SESSION_FLAGS and word.partition("=")[0] not in _SESSION_FLAGS:
            kept.append(word)
        elif _SESSION_FLAGS.get(word):
            following = next(words, None)
            # `--resume` may have no value: the next argument is then another flag.
            if following is not None and following.startswith("-"):
                kept.append(following)
    return [*kept, f"--resume={cli_session_id}"]


def boot_id() -> str:
    """Return the kernel's random id of this boot, or an empty string if it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
