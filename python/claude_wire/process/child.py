"""Spawn a process, manage its pipes, wait for its exit, and terminate it.

If a process's owner does not close it, a thread terminates the process, or the interpreter does at exit.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import subprocess
import threading
import weakref
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from anyio import sleep

from claude_wire.errors import CLINotFoundError, HandleError
from claude_wire.native.drain import Drain
from claude_wire.native.overflow import DrainOptions
from claude_wire.process.long_arguments import ArgumentFiles, arguments_too_long
from claude_wire.process.stderr import STDERR_TAIL_BYTES, StderrLines
from claude_wire.process.stdin import LAST_SECONDS, Stdin
from claude_wire.streams.sources import PipeChunks, PlainPipe, open_pipe
from claude_wire.streams.tasks import EventLoopRef
from claude_wire.support.waiting import Readiness, cancel_scope, move_on_after

if TYPE_CHECKING:
    from collections.abc import Callable

    StrPath = str | os.PathLike[str]
    StderrTo = str | Callable[[str], object] | None

_log = logging.getLogger("claude_wire")

_STDERR = DrainOptions(keep_last=STDERR_TAIL_BYTES)


class Settings(NamedTuple):
    """The checked arguments of :func:`open_process`, and the source of the program's name."""

    argv: list[str]
    cwd: StrPath | None
    env: dict[str, str] | None
    user: str | int | None
    stderr: StderrTo
    output: DrainOptions
    grace: float
    start_new_session: bool
    #: True if the program is the ``cli_path`` of :class:`~claude_wire.ClaudeOptions`.
    has_cli_path: bool = False


class Child:
    """A spawned process with its pipes. Its owner closes it."""

    popen: subprocess.Popen[bytes]
    stdin: Stdin
    chunks: PipeChunks
    closed: bool

    def __init__(self, settings: Settings) -> None:
        stderr = settings.stderr
        self.closed = False
        self._stderr: Drain | StderrLines | None = None
        self._home = EventLoopRef()
        files = ArgumentFiles(settings.argv, settings.user)
        # Spawn in the event loop's thread, as asyncio does. If another thread spawned the process, cancelling this task
        # at the same time could leave a process without an owner.
        try:
            self.popen = popen = subprocess.Popen(
                files.argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if stderr == "inherit" else subprocess.PIPE,
                cwd=settings.cwd,
                env=settings.env,
                user=settings.user,
                start_new_session=settings.start_new_session,
            )
        except BaseException as error:
            files.remove()
            if isinstance(error, FileNotFoundError):
                raise _not_found(settings, error) from error
            if isinstance(error, PermissionError):
                raise _not_permitted(settings, error) from error
            if isinstance(error, OSError) and error.errno == errno.E2BIG:
                raise arguments_too_long(settings.argv, settings.env) from error
            raise
        _log.debug("process %d started: %s", popen.pid, settings.argv[0])
        _children.add(popen)
        self._last_stderr = b""
        self._pidfd: int | None = None
        output: Drain | PlainPipe | None = None
        try:
            assert popen.stdin is not None
            assert popen.stdout is not None
            self.stdin = Stdin(popen)
            output = open_pipe(popen.stdout.fileno(), settings.output)
            self.chunks = PipeChunks(output)
            popen.stdout.close()
            self._pidfd = _pidfd(popen.pid)
            if self._pidfd is not None and isinstance(output, Drain):
                output.watch(self._pidfd)
            if popen.stderr is not None:
                if callable(stderr):
                    self._stderr = StderrLines(PipeChunks(open_pipe(popen.stderr.fileno())), stderr)
                else:
                    errors = open_pipe(popen.stderr.fileno(), _STDERR)
                    self._stderr = errors if isinstance(errors, Drain) else StderrLines(PipeChunks(errors))
                popen.stderr.close()
        except BaseException:
            files.remove()
            _end_at_once(popen)
            if output is not None:
                output.close()
            if self._pidfd is not None:
                os.close(self._pidfd)
            raise
        # The process reads these files when it starts, and may watch them later. Keep them until the process exits.
        self._files = weakref.finalize(self, files.remove)
        self._abandon = weakref.finalize(self, _end_in_thread, popen, self._pidfd, settings.grace)
        self._abandon.atexit = False  # see _end_all

    @property
    def foreign(self) -> bool:
        """True in a forked child, which must not use or terminate the process."""
        return self._home.foreign

    def stderr_tail(self) -> bytes:
        return self._last_stderr if self._stderr is None else self._stderr.tail()

    async def read_stderr(self) -> None:
        """Read the rest of the standard error after the process has exited."""
        if isinstance(self._stderr, StderrLines):  # a Drain reads the rest in tail()
            await self._stderr.wait(LAST_SECONDS)

    async def wait(self, seconds: float) -> bool:
        """Wait until the process exits. Return False if it is still running after ``seconds``."""
        until = monotonic() + seconds
        pause = 0.001
        while self.popen.poll() is None:
            left = until - monotonic()
            if left <= 0:
                return False
            pidfd = _pidfd(self.popen.pid)  # a new one for each waiting task
            if pidfd is None:
                await sleep(min(pause, left))
                pause = min(2 * pause, 0.05)
                continue
            try:
                with move_on_after(left):
                    await Readiness(pidfd).wait()
            finally:
                os.close(pidfd)
        return True

    async def close(self, grace: float) -> None:
        """Close the process's input, then send SIGTERM, then SIGKILL, ``grace`` seconds apart. Close all pipes.

        A second caller waits until the first call finishes.
        """
        import asyncio

        first, self.closed = not self.closed, True
        cancelled: BaseException | None = None
        try:
            if first:
                self.chunks.discard()
                self.stdin.close()
            if not await self._home.can_wait():
                return
            # The shield stops cancellation by anyio and trio, but it does not stop asyncio's Task.cancel().
            with cancel_scope(shield=True):
                ladder = (None, grace), (self.popen.terminate, grace), (self.popen.kill, max(grace, LAST_SECONDS))
                for send_signal, seconds in ladder:
                    if first and send_signal is not None:
                        send_signal()
                    until = monotonic() + seconds
                    ended = False
                    while not ended and monotonic() < until:
                        try:
                            ended = await self.wait(until - monotonic())
                        except asyncio.CancelledError as error:
                            cancelled = error
                    if ended:
                        break
                await self.read_stderr()
        except asyncio.CancelledError as error:
            cancelled = error
        finally:
            # The process has exited, unless KeyboardInterrupt (or GeneratorExit without a running loop) was raised.
            if first:
                self._release()
        if cancelled is not None:
            raise cancelled

    def _release(self) -> None:
        _log.debug("process %d ended: exit code %s", self.popen.pid, self.popen.poll())
        if self._stderr is not None:
            with suppress(HandleError):
                self._last_stderr = self._stderr.tail()
            self._stderr.close()
            self._stderr = None
        self.chunks.close()
        self._files()
        self._abandon()

    def __del__(self) -> None:
        # If the loop is still running, the task continues, and the callback gets lines until the process exits.
        if isinstance(self._stderr, StderrLines) and not self._home.foreign:
            self._stderr.abandon()


def _not_permitted(settings: Settings, error: PermissionError) -> PermissionError:
    """Return the error for a program that may not be run, with a hint on how to fix it."""
    program = settings.argv[0]
    path = os.path.join(settings.cwd or "", program)
    if os.path.isfile(path) and not os.access(path, os.X_OK):
        hint = f"the program is not executable: chmod +x {program}, or put its interpreter before it"
        return PermissionError(error.errno, hint, program)
    if os.path.isdir(path):
        return PermissionError(error.errno, "the program is a directory", program)
    return error


def _pidfd(pid: int) -> int | None:
    """Open a descriptor that becomes readable when the process exits. None if the system does not support pidfds."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _not_found(settings: Settings, error: FileNotFoundError) -> FileNotFoundError:
    """Return the error that names the missing file: the working directory, the program, or a script's interpreter."""
    program = settings.argv[0]
    if settings.cwd is not None and error.filename == os.fspath(settings.cwd):
        return FileNotFoundError(error.errno, "the working directory (cwd) does not exist", error.filename)
    if os.path.exists(os.path.join(settings.cwd or "", program)):
        return CLINotFoundError(f"{program!r} cannot be run: the interpreter in its first line does not exist")
    in_path = not os.path.dirname(program)
    if settings.has_cli_path:
        advice = "correct ClaudeOptions(cli_path=...), or leave it out to search for the CLI"
    elif in_path:
        advice = (
            "correct the first argument of the command, or write the program's whole path: the programs of a virtual "
            "environment are in PATH only while it is active"
        )
    else:
        advice = "correct the first argument of the command"
    return CLINotFoundError(f"there is no program {program!r}{' in PATH' if in_path else ''}; {advice}")


# --- processes that nobody closed -------------------------------------------------------------------------------------

#: All running children. :func:`_end_all` terminates them at interpreter exit.
_children: set[subprocess.Popen[bytes]] = set()


def _in_child() -> None:
    """Close all CLIs' inputs in a forked child, because a CLI's input only ends when all copies are closed."""
    for popen in _children:
        assert popen.stdin is not None
        with suppress(OSError):
            popen.stdin.close()
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _end_at_once(popen: subprocess.Popen[bytes]) -> None:
    """Close the pipes, kill the process, and reap it."""
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()
    popen.kill()
    with suppress(subprocess.TimeoutExpired):
        popen.wait(LAST_SECONDS)
    _end_in_thread(popen, None, LAST_SECONDS)  # if it is still running


def _end_in_thread(popen: subprocess.Popen[bytes], pidfd: int | None, grace: float) -> None:
    """Start a thread that terminates a process whose owner was garbage collected. The call does not wait."""
    if popen not in _children:  # a forked child
        return
    if pidfd is not None:
        os.close(pidfd)
    assert popen.stdin is not None
    popen.stdin.close()
    if popen.poll() is not None:
        _children.discard(popen)
        return
    with suppress(RuntimeError):  # no thread can be started at interpreter exit; _end_all then terminates it
        threading.Thread(target=_end_patiently, args=(popen, grace), name="claude-wire-reaper", daemon=True).start()


def _end_patiently(popen: subprocess.Popen[bytes], grace: float) -> None:
    # Wait without a limit after SIGKILL, because the process may take a while to exit. Otherwise a zombie could remain.
    for send_signal, seconds in (None, grace), (popen.terminate, grace), (popen.kill, None):
        if send_signal is not None:
            send_signal()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(seconds)
            break
    _children.discard(popen)


@atexit.register
def _end_all() -> None:
    """At interpreter exit, send SIGTERM to all running children, and SIGKILL to those that ignore it."""
    running = [popen for popen in list(_children) if popen.poll() is None]
    for popen in running:
        popen.terminate()
    until = monotonic() + LAST_SECONDS
    for popen in running:
        with suppress(subprocess.TimeoutExpired):
            popen.wait(max(until - monotonic(), 0.01))
            continue
        popen.kill()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(LAST_SECONDS)
    for popen in list(_children):
        if popen.stdin is not None:
            popen.stdin.close()  # otherwise the interpreter warns about an unclosed file
    _children.clear()
