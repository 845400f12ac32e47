"""The command ``claude-wire supervisor stdio``: connect standard streams to the supervisor's socket."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress

import click
import msgspec

from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.options import takes_state_folder
from claude_wire_kit.commands.supervisor.client import connect, failures, folder_of, found_session
from claude_wire_kit.supervisor.frames import Attach

CHUNK_BYTES = 256 * 1024


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@takes_state_folder
@click.option("--drive", is_flag=True, help="With ID: send prompts and answers, too.")
@click.option("--take", is_flag=True, help="With --drive: replace the client that drives.")
def stdio(name: str | None, folder: str | None, drive: bool, take: bool) -> None:
    """Connect standard streams to the supervisor's socket.

    This is for programs. A client on another machine runs "ssh -T -o ServerAliveInterval=15 HOST claude-wire supervisor
    stdio", and uses its streams like the supervisor's socket; docs/supervisor.md describes the lines. With ID, this
    command first sends the command to attach to that session. It passes all other bytes on unchanged. The end of the
    input ends the connection, not the session.

    People use "claude-wire supervisor attach ID".

    Exit code: 0 when the connection has ended; 2 if there was no connection.
    """
    if (drive or take) and name is None:
        raise click.UsageError("--drive and --take need an ID.")
    if sys.stdin.isatty() and sys.stdout.isatty():
        raise Failure('this command is for programs; at a terminal use "claude-wire supervisor attach ID"')
    state = folder_of(folder)
    with failures():
        first = b""
        if name is not None:
            with connect(state) as client:
                id = found_session(client.listed().sessions, name).id
            command = Attach(attach=id, role="driver" if drive else "viewer", take=take)
            first = msgspec.json.encode(command) + b"\n"
        client = connect(state)
        client.send_line(first)
    with client:
        _relay(client.socket)


def _relay(connection: socket.socket) -> None:
    """Pass bytes on in both directions until the connection ends or the output cannot be written."""
    threading.Thread(target=_send_input, args=[connection], daemon=True).start()
    with suppress(OSError):
        while data := connection.recv(CHUNK_BYTES):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
    with suppress(OSError):  # ends the thread's sendall(); the process does not wait for a daemon thread
        connection.shutdown(socket.SHUT_RDWR)


def _send_input(connection: socket.socket) -> None:
    with suppress(OSError):
        while data := os.read(0, CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
