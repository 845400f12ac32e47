"""Start a supervisor: in this process, or in the background."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from claude_wire.support import printable
from claude_wire_kit.commands.shared import signals
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.supervisor.client import Client, running
from claude_wire_kit.supervisor.disk.folder import StateFolder, Supervision
from claude_wire_kit.supervisor.errors import SupervisorError

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.sessions import Limits

#: Time limit in seconds for a new supervisor to accept clients.
START_SECONDS = 30.0
#: Seconds between two checks of a supervisor that is starting or exiting.
LOOK_SECONDS = 0.05
#: Maximum bytes of a starting supervisor's output to keep for an error message.
WORDS_BYTES = 64 * 1024
#: The exit code of a background supervisor if another one is already running.
TAKEN = 3


def in_background(folder: StateFolder, options: Sequence[str]) -> tuple[Supervision, bool]:
    """Start a supervisor unless one is running, and wait until it accepts clients. Returns it, and True if it is new.

    Args:
        options: options for ``claude-wire supervisor start``.

    Raises:
        SupervisorError: a supervisor with another protocol version is running.
        Failure: the supervisor cannot be started. The text contains its output.
    """
    deadline = time.monotonic() + START_SECONDS
    is_new = False
    while True:
        found = running(folder)
        if found is not None and _answers(found):
            return found, is_new
        if time.monotonic() > deadline:
            raise Failure(f"the supervisor does not serve after {START_SECONDS:.0f} s")
        if found is None and not is_new:
            is_new = _start(folder, options, deadline)
        time.sleep(LOOK_SECONDS)  # the supervisor, or another one, is starting or exiting


def _answers(found: Supervision) -> bool:
    try:
        Client(found.socket).close()
    except OSError:  # the supervisor is exiting
        return False
    return True


def _start(folder: StateFolder, options: Sequence[str], deadline: float) -> bool:
    """Start the process, and wait until it accepts clients. Returns False if another supervisor is already running."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "claude_wire_kit",
            "supervisor",
            "start",
            "--detached",
            "--folder",
            folder.path,
            *options,
        ],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    words = b""
    with process.stdout as output:
        while select.select([output], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            data = os.read(output.fileno(), WORDS_BYTES)
            if not data:  # the supervisor accepts clients and closed its output, or it exited
                break
            words = (words + data)[-WORDS_BYTES:]
        else:
            process.kill()
            process.wait()
            raise Failure(f"the supervisor does not serve after {START_SECONDS:.0f} s{_words(words)}")
    found = running(folder)
    if found is not None and found.pid == process.pid:
        process.returncode = 0  # the process keeps running, so Popen must not wait for it
        return True
    if process.wait() == TAKEN:
        return False
    raise Failure(f"the supervisor has ended while it started, with exit code {process.returncode}{_words(words)}")


def _words(words: bytes) -> str:
    text = printable(words.decode(errors="replace").strip())
    return f"; it said:\n{text}" if text else ""


def in_foreground(folder: StateFolder, limits: Limits, *, syncs: bool, detached: bool) -> None:
    """Run a supervisor in this process until it is stopped.

    Args:
        detached: close the output once clients can connect. The command that started this process waits until then.

    Raises:
        Failure: the supervisor cannot be started.
    """
    from claude_wire_kit.supervisor.daemon import Daemon
    from claude_wire_kit.supervisor.loop import SupervisorLoop

    try:
        folder.take()
    except SupervisorError as error:
        if detached:
            sys.exit(TAKEN)
        raise Failure(str(error)) from error
    try:
        supervisor = Daemon(folder, limits=limits, syncs=syncs)
        with closing(SupervisorLoop()) as loop:
            loop.run_until_complete(supervisor.run(_let_go_of_output if detached else lambda: _say(folder)))
    except OSError as error:
        raise Failure(f"{printable(os.fsdecode(error.filename or folder.path), keep='')}: {error.strerror}") from error
    except Exception as error:
        folder.log_error(error)
        raise
    finally:
        folder.release()


def _say(folder: StateFolder) -> None:
    signals.announce(f"supervisor {os.getpid()} serves {printable(folder.path, keep='')}")


def _let_go_of_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)
