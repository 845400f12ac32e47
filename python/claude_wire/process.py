"""A child process that speaks the protocol: its pipes, its standard error, its exit, and how it is ended.

Knows processes and when a turn is over; not the control protocol. What the process writes is a
:class:`~claude_wire.MessageStream` over its standard output, so nothing is lost while nobody iterates.
"""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import threading
import weakref
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast, get_args, overload

from anyio import Event, sleep, to_thread

from claude_wire._arguments import kind_of, require_function, require_int, require_one_of, require_seconds, shown
from claude_wire._tasks import Home, set_event, spawn
from claude_wire._turn import Turn
from claude_wire._waiting import Lock, Readiness, cancel_scope, closing_coroutine, move_on_after
from claude_wire.codec import encode
from claude_wire.draining import DEFAULT_SPILL_BYTES, Drain, Overflow, ThreadDrain, open_drain
from claude_wire.errors import (
    CLINotFoundError,
    HandleError,
    ProcessError,
    ProcessInputError,
    UnfinishedTurnError,
    describe_end,
    describe_exit,
)
from claude_wire.framing import BLOCK_BYTES
from claude_wire.stream import Drained, MessageStream, Slices

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from claude_wire.codec import Decoder
    from claude_wire.messages import InvalidLine, Message

    StrPath = str | os.PathLike[str]
    StderrTo = str | Callable[[str], object] | None

__all__ = ["Process", "open_process"]

T = TypeVar("T")

#: What is kept of the standard error, in bytes.
STDERR_TAIL_BYTES = 64 * 1024
#: Default for ``grace``, in seconds: what claude-agent-sdk allows the CLI to write its session file.
GRACE_SECONDS = 5.0
#: Longest wait, in seconds, for the rest of the standard error of a process that has ended, and at interpreter exit for
#: a process that was told to end.
LAST_SECONDS = 1.0


@overload
def open_process(
    argv: Sequence[StrPath],
    decoder: None = None,
    *,
    cwd: StrPath | None = ...,
    env: Mapping[str, str] | None = ...,
    extra_env: Mapping[str, str] | None = ...,
    user: str | int | None = ...,
    stderr: StderrTo = ...,
    overflow: Overflow = ...,
    spill_limit: int = ...,
    grace: float = ...,
    start_new_session: bool = ...,
) -> Process[Message | InvalidLine]: ...
@overload
def open_process(
    argv: Sequence[StrPath],
    decoder: Decoder[T],
    *,
    cwd: StrPath | None = ...,
    env: Mapping[str, str] | None = ...,
    extra_env: Mapping[str, str] | None = ...,
    user: str | int | None = ...,
    stderr: StderrTo = ...,
    overflow: Overflow = ...,
    spill_limit: int = ...,
    grace: float = ...,
    start_new_session: bool = ...,
) -> Process[T]: ...
def open_process(
    argv: Sequence[StrPath],
    decoder: Decoder[Any] | None = None,
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    extra_env: Mapping[str, str] | None = None,
    user: str | int | None = None,
    stderr: StderrTo = None,
    overflow: Overflow = "pause",
    spill_limit: int = DEFAULT_SPILL_BYTES,
    grace: float = GRACE_SECONDS,
    start_new_session: bool = False,
) -> Process[Any]:
    """Run a process that speaks the protocol: ``async with open_process(argv) as process``.

    It is spawned at the beginning of the block and has ended at its end, however the block is left.

    Args:
        argv: the program and its arguments; :class:`~claude_wire.ClaudeOptions` makes them for the Claude Code CLI.
        decoder: says what messages become; ``Decoder()`` if not given. It must not be used otherwise.
        cwd: the working directory; the host's if None.
        env: the whole environment, in place of the host's; the host's if None.
        extra_env: merged into the one or the other. Nothing else is added, and nothing is taken away.
        user: name or number of the user to run as (POSIX).
        stderr: what becomes of the standard error. It is always read. ``None`` keeps the last 64 KiB, for
            :attr:`Process.stderr_tail` and for errors; a function is called with each line besides (without its end,
            decoded as UTF-8, wrong bytes replaced; above 64 KiB in pieces) in the event loop's thread, and the type of
            what it raises is logged; ``"inherit"`` leaves it to the host's own standard error.
        overflow, spill_limit: as for :class:`~claude_wire.MessageStream`, for the standard output.
        grace: seconds that the process is given to end, first after the end of its input, then after SIGTERM.
        start_new_session: keep the signals of the host's terminal from it (POSIX): Ctrl-C is the host's alone then.

    Raises:
        CLINotFoundError: by entering the block, there is no such program.
        OSError: by entering the block, the process cannot be spawned: there is no such working directory
            (``FileNotFoundError``), ``PermissionError``, or too many open files. Nothing is left over then.
        TypeError: ``argv`` is no list of arguments, or empty, or ``decoder`` is no :class:`~claude_wire.Decoder`.
        ValueError: ``stderr``, ``overflow``, ``spill_limit`` or ``grace`` is none of the above.
    """
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv must be a list of arguments, not one string; shlex.split() makes one of it")
    if isinstance(argv, (Mapping, Set)) or not isinstance(argv, Iterable):
        raise TypeError(f"argv must be a list of arguments, as ClaudeOptions.argv() gives it, not {kind_of(argv)}")
    if isinstance(stderr, str) and stderr != "inherit":
        raise ValueError(f"stderr must be None, 'inherit' or a function, not {shown(stderr)}")
    if not (stderr is None or isinstance(stderr, str)):
        require_function("stderr", stderr, "each line", awaited=False)
    require_one_of("overflow", overflow, get_args(Overflow))
    require_seconds("grace", grace, or_zero=True, or_none=False)
    require_environment("env", env)
    require_environment("extra_env", extra_env)
    if not isinstance(cwd, (str, os.PathLike, type(None))):
        raise TypeError(f"cwd must be a path, not {kind_of(cwd)}")
    require_int("spill_limit", spill_limit, 1)
    try:
        command = [os.fspath(argument) for argument in argv]
    except TypeError as error:
        raise TypeError(f"argv must be a list of str or paths: {error}") from None
    if not command:
        raise TypeError("argv is empty")
    environment = _environment(env, extra_env)
    settings = _Settings(command, cwd, environment, user, stderr, overflow, spill_limit, grace, start_new_session)
    return Process(settings, decoder)


def require_environment(name: str, env: object) -> None:
    """Refuse what cannot be the environment of a process. None is allowed.

    Raises:
        TypeError: it is no dict of texts.
    """
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise TypeError(f"{name} must be a dict, not {kind_of(env)}")
    for key, value in cast("Mapping[object, object]", env).items():
        for text in key, value:
            if not isinstance(text, (str, bytes, os.PathLike)):
                raise TypeError(f"{name}[{shown(key)}] must be a str, not {kind_of(text)}")


class _Settings(NamedTuple):
    """The arguments of :func:`open_process`, checked."""

    argv: list[str]
    cwd: StrPath | None
    env: dict[str, str] | None
    user: str | int | None
    stderr: StderrTo
    overflow: Overflow
    spill_limit: int
    grace: float
    start_new_session: bool


def _environment(env: Mapping[str, str] | None, extra_env: Mapping[str, str] | None) -> dict[str, str] | None:
    if extra_env is None:
        return None if env is None else dict(env)
    return {**(os.environ if env is None else env), **extra_env}


class Process(MessageStream[T], Generic[T]):
    """A running process, and an iteration over what it says; made by :func:`open_process`.

    ``async for`` and :meth:`batches` are those of :class:`~claude_wire.MessageStream`. When the output has ended and
    all was given, the next step waits until the process has ended (for at most ``grace`` seconds) and raises, once:

    * :class:`~claude_wire.UnfinishedTurnError`, if the output ended in the middle of a turn or of a line, or if a
      prompt was sent and no turn came after it, whatever the exit code;
    * else :class:`~claude_wire.ProcessError`, if the exit code is not 0.

    A turn is open from its first ``init``, ``assistant``, ``user`` or ``stream_event`` message, those of subagents and
    replays aside, until its ``result``. A decoder with ``only`` shows as much of it as it lets through, and nothing
    without results. On Linux the output also ends when the process does, though another that it started may still hold
    the pipe: when nothing is in it any more, so that what it wrote itself has all been read.

    The process ends by the end of its input, SIGTERM and SIGKILL, with ``grace`` seconds between them, when the block
    is left. A host that is killed closes the pipe, too, and the CLI ends at the end of its input; a child that ignores
    that outlives such a host. After a fork, only the parent may use this.
    """

    def __init__(self, settings: _Settings, decoder: Decoder[T] | None) -> None:
        self._begin(decoder)
        self._chunks = _NotStarted()
        self._settings = settings
        self._child: _Child | None = None
        self._turn = Turn()
        # Whether the output ended in the middle of a line; whether how it ended was said.
        self._cut = self._told = False

    def _state(self) -> str:
        if self._child is None:
            return "not started"
        # The exit code may be out of date: asking the system for it would reap the process.
        popen = self._child.popen
        code = popen.returncode
        return f"pid {popen.pid} {'running' if code is None else f'exited with {code}'}"

    # --- what is known of it

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the number of the signal that ended the process, or None while it runs."""
        return self._started().popen.poll()

    @property
    def stderr_tail(self) -> bytes:
        """The last 64 KiB of its standard error so far; nothing with ``stderr="inherit"``."""
        return self._started().stderr_tail()

    @property
    def last_result(self) -> Any:
        """The last result message that was decoded, or None."""
        return self._turn.last_result

    # --- its input

    async def send(self, message: Message | dict[str, Any]) -> None:
        """Encode a message and write its line to the standard input. Several tasks may send; lines never mix.

        Waits while the process does not read and its pipe is full; its output is read meanwhile. If a send is
        cancelled before its first byte was written, nothing is sent; after that, the line is completed by the next
        send or by :meth:`end_input`.

        Raises:
            ProcessInputError: the process is gone or has closed its input, or the input was ended.
            TypeError, EncodeError: as :func:`~claude_wire.encode`.
        """
        await self.send_bytes(encode(message))

    async def send_bytes(self, lines: bytes) -> None:
        """Write lines that are encoded already, with their line feeds; otherwise as :meth:`send`."""
        await self._write(lines, None, is_answer=False)

    async def _write(self, lines: bytes, begun: Callable[[], object] | None, *, is_answer: bool) -> None:
        """``begun`` is called with the first byte that was written: from then on the lines are as good as sent.

        An answer to a control request is no prompt, and its task, new as it is, need not let others go first.
        """

        def first() -> None:
            if not is_answer:
                self._turn.sent(lines)
            if begun is not None:
                begun()

        await self._started().stdin.write(lines, first, is_answer)

    def _write_in_turn(self, line: bytes) -> bool:
        """Write a line if a turn is under way or asked for, by what was sent and decoded. This never waits.

        Returns whether the line was written. An input that is ended, full, or in use by a sender takes none.
        """
        child = self._child
        return bool(self._turn.unfinished()) and child is not None and not child.foreign and child.stdin.write_now(line)

    async def end_input(self) -> None:
        """Close the standard input, which tells the CLI to finish and end. May be called again.

        Waits for a send that is under way. The rest of a line whose sender was cancelled is given a second.
        """
        await self._started().stdin.end()

    # --- its end

    async def wait(self) -> int:
        """Wait until the process has ended, and return its exit code.

        It ends only if its output is taken: by an iteration, or up to the byte budget by the drain.
        """
        child = self._started()
        while not await child.wait(3600.0):
            pass
        return cast("int", child.popen.returncode)

    async def aclose(self) -> None:
        """End the process if it runs, as described above, and give back all that it holds. May be called again.

        Cancellation does not cut this short, and is passed on afterwards. KeyboardInterrupt does: then a thread goes on
        with it, as it does for a process that was dropped without being closed.
        """
        self._forget()
        if self._child is not None and not self._child.foreign:
            await self._child.close(self._settings.grace)

    async def __aenter__(self) -> Self:
        if self._child is not None or self._closed:
            raise HandleError("a process can be entered only once; make another one")
        self._child = _Child(self._settings)
        self._chunks = self._child.chunks
        return self

    # --- what the iteration calls

    def _saw(self, batch: list[T]) -> None:
        self._turn.see(batch)

    def _end_of_data(self) -> tuple[list[T], bool]:
        invalid = self.stats.invalid
        try:
            return super()._end_of_data()
        finally:
            self._cut = self._cut or self.stats.invalid > invalid

    async def _finish(self) -> None:
        child = self._started()
        if self._told or child.closed:
            return
        await child.wait(self._settings.grace)
        await child.read_stderr()
        if child.closed:  # in the meantime, by another task: how it ended is its own doing
            return
        self._told = True
        code = child.popen.returncode
        details = code, self.stderr_tail, self.last_result
        only = self._inbox.decoder.only
        sees_results = only is None or "result" in only
        where = "in the middle of a line" if self._cut else self._turn.unfinished() if sees_results else ""
        if where:
            end = describe_end(code, details[1])
            raise UnfinishedTurnError(*details, message=f"the output ended {where}; the process {end}")
        if code:
            raise ProcessError(*details)

    def _started(self) -> _Child:
        if self._child is None:
            raise HandleError("this process is not started: use it as `async with open_process(...) as process`")
        if self._child.foreign:
            raise HandleError("this process was started before a fork: only the parent may use it")
        return self._child


def _not_found(settings: _Settings, error: FileNotFoundError) -> FileNotFoundError:
    """The error for the one that is missing: the working directory, the program, or the interpreter of a script."""
    program = settings.argv[0]
    if settings.cwd is not None and error.filename == os.fspath(settings.cwd):
        return FileNotFoundError(error.errno, "the working directory (cwd) does not exist", error.filename)
    if os.path.exists(os.path.join(settings.cwd or "", program)):
        return CLINotFoundError(f"{program!r} cannot be run: the interpreter that its first line names is not there")
    where = "" if os.path.dirname(program) else " in PATH"
    return CLINotFoundError(
        f"there is no program {program!r}{where}; ClaudeOptions(cli_path=...) says where the CLI is, and without it "
        "the CLI is looked for"
    )


class _NotStarted:
    final: tuple[type[Exception], ...] = ()

    async def receive(self) -> bytes:
        raise HandleError("this process is not started: use it as `async with open_process(...) as process`")

    async def aclose(self) -> None:
        pass


# --- the child and its pipes ------------------------------------------------------------------------------------------


class _Child:
    """A spawned process with its pipes: whoever makes one closes it."""

    def __init__(self, settings: _Settings) -> None:
        stderr = settings.stderr
        self.closed = False
        self._stderr: Drain | ThreadDrain | _StderrLines | None = None
        self._host = os.getpid()
        self._home = Home()
        # Spawned in the loop's thread, as asyncio does it: a cancelled task could leave behind what a thread spawns.
        try:
            self.popen = popen = subprocess.Popen(
                settings.argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if stderr == "inherit" else subprocess.PIPE,
                cwd=settings.cwd,
                env=settings.env,
                user=settings.user,
                start_new_session=settings.start_new_session,
            )
        except FileNotFoundError as error:
            raise _not_found(settings, error) from error
        _children.add(popen)
        self._last_stderr = b""
        self._pidfd: int | None = None
        drain: Drain | ThreadDrain | None = None
        try:
            assert popen.stdin is not None
            assert popen.stdout is not None
            self.stdin = _Stdin(popen)
            drain = open_drain(popen.stdout.fileno(), overflow=settings.overflow, spill_limit=settings.spill_limit)
            self.chunks = Drained(drain)
            popen.stdout.close()
            self._pidfd = _pidfd(popen.pid)
            if self._pidfd is not None and isinstance(drain, Drain):
                drain.watch(self._pidfd)
            if popen.stderr is not None:
                if callable(stderr):
                    self._stderr = _StderrLines(popen.stderr.fileno(), stderr)
                else:
                    self._stderr = open_drain(popen.stderr.fileno(), keep_last=STDERR_TAIL_BYTES)
                popen.stderr.close()
        except BaseException:
            _end_at_once(popen)
            if drain is not None:
                drain.close()
            if self._pidfd is not None:
                os.close(self._pidfd)
            raise
        self._abandon = weakref.finalize(self, _end_in_thread, popen, self._pidfd, settings.grace)
        self._abandon.atexit = False  # see _end_all

    @property
    def foreign(self) -> bool:
        """Whether this is the copy in a forked child, where it has nothing to say and nothing to end."""
        return os.getpid() != self._host

    def stderr_tail(self) -> bytes:
        return self._last_stderr if self._stderr is None else self._stderr.tail()

    async def read_stderr(self) -> None:
        """Wait, not for long, until all is read that a process that has ended wrote, and the callback has it."""
        stderr = self._stderr
        if isinstance(stderr, _StderrLines):
            await stderr.wait(LAST_SECONDS)
        elif isinstance(stderr, ThreadDrain):
            # It queues nothing, so it is ready when it has read the end. A Drain reads what is there when it is asked.
            with move_on_after(LAST_SECONDS):
                while self._stderr is stderr and not stderr.ready:
                    await sleep(0.001)

    async def wait(self, seconds: float) -> bool:
        """Wait until the process has ended; false if it has not after so many seconds."""
        until = monotonic() + seconds
        pause = 0.001
        while self.popen.poll() is None:
            left = until - monotonic()
            if left <= 0:
                return False
            pidfd = _pidfd(self.popen.pid)  # one for each that waits
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
        """EOF, SIGTERM, SIGKILL, with ``grace`` seconds between them; then let go of everything."""
        import asyncio

        first, self.closed = not self.closed, True
        cancelled: BaseException | None = None
        try:
            if first:
                self.chunks.stop()
                with suppress(HandleError):  # it was collected, as this is being
                    self.chunks.drain.discard()
                self.stdin.close()
            if not await self._home.can_wait():
                return
            # The shield holds off cancellation by anyio and trio, but not Task.cancel().
            with cancel_scope(shield=True):
                ladder = (None, grace), (self.popen.terminate, grace), (self.popen.kill, max(grace, LAST_SECONDS))
                for insist, seconds in ladder:
                    if first and insist is not None:  # who comes second waits for as long
                        insist()
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
            # It has ended, if nothing else was raised: KeyboardInterrupt, or GeneratorExit where no loop runs any more.
            if first:
                self._let_go()
        if cancelled is not None:
            raise cancelled

    def _let_go(self) -> None:
        if self._stderr is not None:
            with suppress(HandleError):
                self._last_stderr = self._stderr.tail()
            self._stderr.close()
            self._stderr = None
        self.chunks.drain.close()
        self._abandon()

    def __del__(self) -> None:
        # While the loop runs, the callback gets the lines up to the end of the process.
        if isinstance(self._stderr, _StderrLines) and not self._home.foreign:
            self._stderr.abandon()


def _pidfd(pid: int) -> int | None:
    """A descriptor that is readable once the process has ended, where the system has such."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


class _Stdin:
    """The standard input: whole lines, one at a time."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._pipe = cast("io.FileIO", popen.stdin)
        # Readiness says nothing about pipes of Windows; there, each write has a thread.
        self._blocking = os.name == "nt"
        os.set_blocking(self._pipe.fileno(), self._blocking)
        self._room = Readiness(self._pipe.fileno(), writable=True)
        self._lock = Lock()
        self._slices = Slices()
        # The rest of a line whose sender was cancelled.
        self._unsent = b""

    async def write(self, lines: bytes, begun: Callable[[], object], is_answer: bool) -> None:
        async with self._lock:
            if self._unsent:
                await self._write(self._unsent)
                self._unsent = b""
            await self._write(lines, begun, is_answer)

    def write_now(self, line: bytes) -> bool:
        # A pipe that blocks, as those of Windows do, could keep the caller waiting.
        if self._blocking or self._unsent or self._pipe.closed or self._lock.locked() or len(line) > select.PIPE_BUF:
            return False
        try:
            return os.write(self._pipe.fileno(), line) == len(line)  # all or nothing, up to PIPE_BUF
        except OSError:  # it is full, or nobody reads it any more
            return False

    async def end(self) -> None:
        async with self._lock:
            try:
                if self._unsent:
                    with move_on_after(LAST_SECONDS):
                        await self._write(self._unsent)
            except ProcessInputError:
                pass  # it is gone, and so is its input
            finally:
                self.close()

    def close(self) -> None:
        if not self._pipe.closed:
            self._room.close()
            self._pipe.close()

    async def _write(self, lines: bytes, begun: Callable[[], object] | None = None, is_answer: bool = False) -> None:
        view = memoryview(lines)
        written = 0
        try:
            while written < len(view):
                if written or not is_answer:
                    await self._slices.pause()
                if self._pipe.closed:
                    raise ProcessInputError("the input of the process was ended")
                if self._popen.poll() is not None:
                    raise self._gone()
                before = written
                try:
                    if self._blocking:
                        written += await to_thread.run_sync(self._pipe.write, view[written:]) or 0
                    else:
                        written += os.write(self._pipe.fileno(), view[written:])
                    if not before and written and begun is not None:
                        begun()
                except BlockingIOError:
                    # Bounded, because the end of the process is not seen here while another holds its end of the pipe.
                    with move_on_after(LAST_SECONDS):
                        await self._room.wait()
        except BrokenPipeError as error:
            raise (error if isinstance(error, ProcessInputError) else self._gone()) from None
        finally:
            if 0 < written < len(view) or lines is self._unsent:
                self._unsent = bytes(view[written:])

    def _gone(self) -> ProcessInputError:
        code = self._popen.poll()
        return ProcessInputError(
            "the process has closed its input" if code is None else f"the process {describe_exit(code)}"
        )


class _StderrLines:
    """Calls back with each line of the standard error, and keeps the tail."""

    def __init__(self, fd: int, callback: Callable[[str], object]) -> None:
        self._chunks = Drained(open_drain(fd))
        self._callback = callback
        self._tail = bytearray()
        self._ended = Event()
        self._home = Home()
        self._task = spawn(self._run, name="claude-wire-stderr")

    def tail(self) -> bytes:
        return bytes(self._tail)

    async def wait(self, seconds: float) -> None:
        with move_on_after(seconds):
            await self._ended.wait()

    def close(self) -> None:
        self._chunks.stop()
        self._chunks.drain.close()

    def abandon(self) -> None:
        """Release the task and the pipe, unless the loop runs."""
        if not self._home.call_soon(lambda: None):
            self._task.abandon()
            self.close()

    async def _run(self) -> None:
        unfinished = b""
        try:
            while data := await self._chunks.receive():
                self._tail += data
                del self._tail[:-STDERR_TAIL_BYTES]
                *lines, unfinished = (unfinished + data).split(b"\n")
                if len(unfinished) > BLOCK_BYTES:  # a line without end is given in pieces
                    lines.append(unfinished)
                    unfinished = b""
                for line in lines:
                    self._emit(line)
        except OSError:
            pass
        finally:
            if unfinished and not closing_coroutine():
                self._emit(unfinished)
            set_event(self._ended)

    def _emit(self, line: bytes) -> None:
        try:
            self._callback(line.removesuffix(b"\r").decode("utf-8", "replace"))
        except Exception as error:
            import logging

            logging.getLogger("claude_wire").warning("the stderr callback raised %s", type(error).__name__)


# --- processes that nobody closed -------------------------------------------------------------------------------------

#: All that run, so that none outlives this interpreter.
_children: set[subprocess.Popen[bytes]] = set()


def _in_child() -> None:
    """A forked child has nothing to end, and must not keep open what tells a process to end."""
    for popen in _children:
        assert popen.stdin is not None
        with suppress(OSError):
            popen.stdin.close()
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _end_at_once(popen: subprocess.Popen[bytes]) -> None:
    """Kill and reap, and close the pipes."""
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe is not None:
            pipe.close()
    popen.kill()
    with suppress(subprocess.TimeoutExpired):
        popen.wait(LAST_SECONDS)
    _children.discard(popen)


def _end_in_thread(popen: subprocess.Popen[bytes], pidfd: int | None, grace: float) -> None:
    """End a process whose owner is gone, if it has not ended, without holding anybody up."""
    if popen not in _children:  # a copy in a forked child
        return
    if pidfd is not None:
        os.close(pidfd)
    assert popen.stdin is not None
    popen.stdin.close()
    if popen.poll() is not None:
        _children.discard(popen)
        return
    with suppress(RuntimeError):  # at interpreter exit no thread starts; then _end_all follows
        threading.Thread(target=_end_patiently, args=(popen, grace), name="claude-wire-reaper", daemon=True).start()


def _end_patiently(popen: subprocess.Popen[bytes], grace: float) -> None:
    for insist, seconds in (None, grace), (popen.terminate, grace), (popen.kill, max(grace, LAST_SECONDS)):
        if insist is not None:
            insist()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(seconds)
            break
    _children.discard(popen)


@atexit.register
def _end_all() -> None:
    """At interpreter exit: SIGTERM to all that still run, and SIGKILL to those that ignore it."""
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
            popen.stdin.close()  # else the interpreter warns of a file that nobody closed
    _children.clear()
