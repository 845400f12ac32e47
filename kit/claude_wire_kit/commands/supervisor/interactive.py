"""Talk to a supervisor's session in the terminal: ``claude-wire supervisor attach --drive`` and ``run --attach``."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import anyio

from claude_wire.support import one_line
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.supervisor.client import failures, found_session
from claude_wire_kit.supervisor import Cursor, Supervisor, connect
from claude_wire_kit.terminal.attached import AttachedTerminalSession
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.page import Page

#: Time limit in seconds for ssh to connect and the supervisor to answer.
SSH_SECONDS = 30.0


def talk(name: str, folder: str | None, *, take: bool) -> int:
    """Show a session from its first line, and send the lines that the user types as prompts. Returns the exit code.

    Raises:
        Failure: standard input or output is not a terminal, no session has this name, or no supervisor is running.
    """
    supervisor = connect(folder)
    with closing(Page(Output(), row=True)) as page:
        guest = AttachedTerminalSession(page)
        if not guest.is_at_terminal:
            raise Failure('--drive needs a terminal; programs use "claude-wire supervisor stdio ID --drive"')
        id = _found(supervisor, name).id
        return anyio.run(guest.talk, partial(supervisor.attach, id, take=take))


def ask(name: str, prompt: str, ssh: str | None) -> int:
    """Send one prompt to a session, and show its run. Returns the exit code.

    Raises:
        Failure: no session has this name, or no supervisor is running.
    """
    supervisor = connect()
    if ssh is not None:
        if ssh.startswith("-"):
            raise Failure(f"{one_line(ssh)!r} is not a valid host name")
        command = ["ssh", "-T", "-o", "ServerAliveInterval=15", ssh, "claude-wire", "supervisor", "stdio"]
        supervisor = connect(command=command, timeout=SSH_SECONDS)
    place = _found(supervisor, name)
    with closing(Page(Output(), row=True)) as page:
        guest = AttachedTerminalSession(page)
        return anyio.run(guest.ask, partial(supervisor.attach, place), prompt)


def _found(supervisor: Supervisor, name: str) -> Cursor:
    """Return a cursor at the last line of the session with this name."""
    with failures():
        found = found_session(anyio.run(supervisor.list).sessions, name)
    return Cursor(found.id, found.epoch, found.line)
