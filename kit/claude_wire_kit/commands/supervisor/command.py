"""The commands ``claude-wire supervisor …``."""

from __future__ import annotations

import os
import re
import sys
from contextlib import closing

import click

from claude_wire.support import one_line, printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.groups import SuggestingGroup
from claude_wire_kit.commands.shared.json_output import print_json
from claude_wire_kit.commands.shared.options import PASSES_FLAGS, takes_json, takes_state_folder
from claude_wire_kit.commands.supervisor.client import (
    Client,
    connect,
    failures,
    folder_of,
    found_session,
    running,
    wait_for_end,
)
from claude_wire_kit.commands.supervisor.stdio import stdio
from claude_wire_kit.commands.supervisor.table import is_over, rows, session_as_json
from claude_wire_kit.supervisor.disk.folder import StateFolder
from claude_wire_kit.supervisor.frames import Create, Cursor, Remove, Resume, SessionInfo, Stop

#: After the grace periods, wait this many seconds for a stopped CLI to exit.
END_SECONDS = 30.0
#: Suffix of a size -> its number of bytes.
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def _bytes(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse a number of bytes with an optional suffix k, m, g or t."""
    if value is None:
        return None
    match = re.fullmatch(r"([1-9]\d{0,14})([kmgt]?)(i?b)?", value.strip().lower())
    if match is None:
        raise click.BadParameter(f"{one_line(value)!r} is not a size, such as 512m or 4g.", context, parameter)
    return int(match[1]) * UNITS[match[2]]


@click.group(cls=SuggestingGroup)
def supervisor() -> None:
    """Run sessions that outlive their clients.

    A supervisor in the background owns the CLIs, and writes their output to disk before a client gets it. Clients can
    attach and leave at any time. ID is the id of a session, the beginning of its id, or its name.
    """
    if not sys.platform.startswith("linux"):
        raise Failure("claude-wire supervisor needs Linux, whose kernel ends the CLIs if the supervisor is killed")


supervisor.add_command(stdio)


@supervisor.command()
@takes_state_folder
@click.option("--foreground", is_flag=True, help="Run in the foreground.")
@click.option("--detached", is_flag=True, hidden=True)
@click.option("--sessions", type=click.IntRange(1), metavar="N", help="Maximum number of running CLIs (default: 256).")
@click.option(
    "-m", "--memory", callback=_bytes, metavar="SIZE", help="Start no CLI while the running CLIs use more memory."
)
@click.option(
    "--journal-bytes", callback=_bytes, metavar="SIZE", help="Maximum size of a session's journal (default: 256m)."
)
@click.option("--fsync", type=click.Choice(["line"]), help="Lose no line in a power failure (slower).")
def start(
    folder: str | None,
    foreground: bool,
    detached: bool,
    sessions: int | None,
    memory: int | None,
    journal_bytes: int | None,
    fsync: str | None,
) -> None:
    """Start the supervisor, unless it is already running.

    Returns when clients can connect to it.

    Exit code: 0, even if it was already running; 2 if it cannot be started.
    """
    from claude_wire_kit.commands.supervisor.starting import in_background, in_foreground

    state = folder_of(folder, makes=True)
    if foreground or detached:
        from claude_wire_kit.supervisor.sessions import Limits

        given = {"sessions": sessions, "memory_bytes": memory, "journal_bytes": journal_bytes}
        limits = Limits(**{name: value for name, value in given.items() if value is not None})
        in_foreground(state, limits, syncs=fsync is not None, detached=detached)
        return
    options = {"--sessions": sessions, "--memory": memory, "--journal-bytes": journal_bytes, "--fsync": fsync}
    words = [f"{name}={value}" for name, value in options.items() if value is not None]
    with failures():
        found, is_new = in_background(state, words)
    how = "serves" if is_new else "serves already"
    click.echo(f"supervisor {found.pid} {how} {printable(state.path, keep='')}")
    if words and not is_new:
        click.echo("note: its limits do not change; to use these limits, stop it and start it again", err=True)


@supervisor.command(context_settings=PASSES_FLAGS)
@click.argument("command", metavar="[-- CLI [FLAGS...]]", nargs=-1, type=click.UNPROCESSED)
@takes_state_folder
@click.option("--name", help="The name of the session.")
@click.option(
    "-w", "--cwd", type=click.Path(exists=True, file_okay=False, resolve_path=True), help="Working directory."
)
@click.option("--cost-usd", type=click.FloatRange(min=0, min_open=True), help="Interrupt the session at this cost.")
@click.option("-p", "--prompt", help="First prompt.")
def run(
    command: tuple[str, ...],
    folder: str | None,
    name: str | None,
    cwd: str | None,
    cost_usd: float | None,
    prompt: str | None,
) -> None:
    """Start a session in the background, and print its id.

    Without CLI, the command searches for it. It adds the flags that the supervisor needs, unless FLAGS contain
    --input-format. The CLI gets the environment of this command. The supervisor does not write it to disk.

    Exit code: 0; 2 if the CLI cannot be started.
    """
    from claude_wire_kit.commands.supervisor.creating import send_prompt, spec_of

    spec = spec_of(command, name=name, cwd=cwd, cost_usd=cost_usd)
    with failures(), connect(folder_of(folder)) as client:
        id: str = client.ask(Create(create=spec, role="driver", detach=prompt is None)).id
        if prompt is not None:
            send_prompt(client, prompt)
    click.echo(id)


@supervisor.command()
@takes_state_folder
@click.option("-a", "--all", "show_all", is_flag=True, help="Also show sessions whose CLI has ended.")
@click.option("-q", "--quiet", is_flag=True, help="Print ids only.")
@takes_json
def ps(folder: str | None, show_all: bool, quiet: bool, as_json: bool) -> None:
    """List the sessions whose CLI is running.

    \b
    STATE     starting, idle, running (a turn), asking (a question is open),
              ended, or lost (ended with its supervisor)
    LINES     lines that the CLI has written
    SIZE      size of the journal, in bytes
    CLIENTS   "driver" is the client that answers; the others only watch

    Exit code: 0; 2 if no supervisor is running.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    with failures(), connect(folder_of(folder)) as client:
        listed = client.listed()
    sessions = [session for session in listed.sessions if show_all or not is_over(session)]
    if as_json:
        about = {"pid": listed.pid, "package": listed.package, "version": listed.version}
        print_json({"supervisor": about, "sessions": [session_as_json(session) for session in sessions]})
        return
    if not (sessions or quiet):
        click.echo("note: no sessions" if show_all else "note: no CLI runs; -a shows all sessions", err=True)
    for line in [session.id for session in sessions] if quiet else rows(sessions):
        click.echo(line)


@supervisor.command()
@click.argument("name", metavar="[ID]", required=False)
@takes_state_folder
@click.option("-f", "--follow", is_flag=True, help="Continue with new output until the CLI ends.")
@click.option("-n", "--tail", type=click.IntRange(0), help="Show only the last N lines.")
@click.option("--json", "as_lines", is_flag=True, help="Print the lines unchanged.")
def logs(name: str | None, folder: str | None, follow: bool, tail: int | None, as_lines: bool) -> None:
    """Show what a session or the supervisor has written.

    Without ID, show the log of the supervisor, which contains no prompts, no output and no command lines.

    Exit code: 0; 2 if no session has this ID, if no supervisor is running, or if there is no log.
    """
    from claude_wire_kit.commands.supervisor.logs import log_line, own_log

    state = folder_of(folder)
    if name is None:
        if follow:
            raise click.UsageError("-f needs the ID of a session.")
        try:
            own_log(state.path, tail, lambda line: click.echo(line if as_lines else log_line(line), nl=not as_lines))
        except BrokenPipeError:  # nobody reads the output
            raise
        except OSError as error:
            raise Failure(f"the log cannot be read: {error.strerror}") from error
        return
    _show(name, state, follow=follow, tail=tail, as_lines=as_lines)


def _show(name: str, folder: StateFolder, *, follow: bool, tail: int | None = None, as_lines: bool = False) -> None:
    from claude_wire_kit.commands.supervisor.logs import raw, shown
    from claude_wire_kit.terminal.output import Output
    from claude_wire_kit.terminal.page import Page

    with failures(), connect(folder) as client:
        session = found_session(client.listed().sessions, name)
        after = None if tail is None else Cursor(session.id, session.epoch, max(session.line - tail, 0))
        if as_lines:
            raw(client, session.id, after, follow=follow)
            return
        with closing(Page(Output(), row=follow)) as page:
            shown(client, session.id, after, page, follow=follow)


@supervisor.command()
@click.argument("name", metavar="ID")
@takes_state_folder
@click.option("--drive", is_flag=True, help="Send your prompts and answers.")
@click.option("--take", is_flag=True, help="With --drive: replace the client that drives.")
def attach(name: str, folder: str | None, drive: bool, take: bool) -> None:
    """Show a session live; with --drive, talk to it.

    With --drive, each line that you type is a prompt, and permission questions are asked as in "claude-wire run".
    Ctrl-C interrupts the turn. A second Ctrl-C, or the end of the input (Ctrl-D), leaves the session, which continues.

    Exit code: 0; 1 if the CLI or the connection failed; 2 if no session has this ID, or no supervisor is running; 130
    after Ctrl-C.
    """
    if take and not drive:
        raise click.UsageError("--take needs --drive.")
    if not drive:
        _show(name, folder_of(folder), follow=True)
        return
    from claude_wire_kit.commands.supervisor.interactive import talk

    click.get_current_context().exit(talk(name, folder, take=take))


@supervisor.command()
@click.argument("names", metavar="ID...", nargs=-1)
@takes_state_folder
@click.option("--all", "stop_all", is_flag=True, help="Stop all sessions, and the supervisor.")
@click.option(
    "-t", "--grace", type=click.FloatRange(0, 3600), default=5.0, show_default=True, help="Seconds between two steps."
)
def stop(names: tuple[str, ...], folder: str | None, stop_all: bool, grace: float) -> None:
    """Stop the CLIs of sessions.

    The supervisor first closes the input of a CLI, then sends SIGTERM, then SIGKILL. You can still show and resume a
    stopped session. With --all, the supervisor also exits.

    Exit code: 0; 2 if no session has this ID, or no supervisor is running.
    """
    if bool(names) is stop_all:
        raise click.UsageError("pass the sessions to stop, or --all.")
    state = folder_of(folder)
    if stop_all:
        _stop_supervisor(state, grace)
        return
    with failures(), connect(state) as client:
        for session in _named(client, names):
            client.ask(Stop(stop=session.id, grace=grace), 2 * grace + END_SECONDS)
            click.echo(session.id)


def _stop_supervisor(folder: StateFolder, grace: float) -> None:
    with failures():
        found = running(folder)
        if found is None:
            click.echo(f"no supervisor is running in {printable(folder.path, keep='')}")
            return
        with Client(found.socket) as client:
            client.ask(Stop(stop=None, grace=grace), 2 * grace + END_SECONDS)
    if not wait_for_end(found.pid, found.pid_began, END_SECONDS):
        raise Failure(f"the supervisor (pid {found.pid}) has not ended in {END_SECONDS:.0f} s")
    click.echo(f"supervisor {found.pid} has ended")


@supervisor.command()
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@takes_state_folder
def resume(names: tuple[str, ...], folder: str | None) -> None:
    """Start CLIs that resume ended sessions.

    The CLIs get the environment of this command. No prompt is sent again. "claude-wire supervisor logs" shows what was
    interrupted.

    Exit code: 0; 2 if no session has this ID, if its CLI is running or cannot be started, or if no supervisor is
    running.
    """
    from claude_wire.session.open import STATE_VARIABLE

    with failures(), connect(folder_of(folder)) as client:
        for session in _named(client, names):
            client.ask(Resume(resume=session.id, env={STATE_VARIABLE: "1", **os.environ}, detach=True))
            click.echo(session.id)


@supervisor.command()
@click.argument("names", metavar="ID...", nargs=-1, required=True)
@takes_state_folder
@click.option("-f", "--force", is_flag=True, help="Stop running CLIs first.")
def rm(names: tuple[str, ...], folder: str | None, force: bool) -> None:
    """Remove sessions that have ended, and their journals.

    Exit code: 0; 2 if no session has this ID, its CLI is running, or no supervisor is running.
    """
    with failures(), connect(folder_of(folder)) as client:
        for session in _named(client, names):
            if force and not is_over(session):
                client.ask(Stop(stop=session.id, grace=0.0), END_SECONDS)
            client.ask(Remove(remove=session.id))
            click.echo(session.id)


def _named(client: Client, names: tuple[str, ...]) -> list[SessionInfo]:
    """Return the named sessions, each once. Look all of them up first: with a wrong name, the command does nothing."""
    sessions = client.listed().sessions
    return list({found.id: found for found in (found_session(sessions, name) for name in names)}.values())
