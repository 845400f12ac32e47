"""Run a child process that speaks the protocol: its pipes, standard error and exit, and how the host terminates it.

A :class:`Process` is a :class:`~claude_wire.MessageStream` over a child's standard output. On Linux, the output is read
even while nobody iterates. For the control protocol's requests and callbacks, use a :class:`~claude_wire.Session`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from claude_wire.codec.encoder import encode
from claude_wire.errors import HandleError
from claude_wire.limits import DEFAULT_SPILL_BYTES
from claude_wire.native.overflow import DrainOptions, Overflow, OverflowArguments
from claude_wire.process.child import Settings
from claude_wire.process.exchange import Exchange, NotStarted
from claude_wire.process.tracing import join_trace, trace_context
from claude_wire.streams.message_stream import MessageStream, receiver_of
from claude_wire.streams.receiver import Receiver, require_decoder
from claude_wire.support.arguments import (
    require_function,
    require_seconds,
    shown,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self, Unpack

    from claude_wire.codec.decoder import Decoder
    from claude_wire.messages import InvalidLine, Message
    from claude_wire.process.child import StderrTo, StrPath


T = TypeVar("T")

#: Default ``grace``, in seconds. claude-agent-sdk gives the CLI the same time to write its session file.
GRACE_SECONDS = 5.0


class ProcessArguments(OverflowArguments, total=False):
    """The keyword arguments of :func:`open_process`, to annotate functions that pass them on."""

    cwd: StrPath | None
    env: Mapping[str, str] | None
    extra_env: Mapping[str, str] | None
    user: str | int | None
    stderr: StderrTo
    grace: float
    start_new_session: bool


@overload
def open_process(
    argv: Sequence[StrPath], decoder: None = None, **arguments: Unpack[ProcessArguments]
) -> Process[Message | InvalidLine]: ...
@overload
def open_process(argv: Sequence[StrPath], decoder: Decoder[T], **arguments: Unpack[ProcessArguments]) -> Process[T]: ...
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

    Entering the block spawns the process. Leaving the block, even because of an exception, terminates the process.

    Args:
        argv: the program and its arguments. :class:`~claude_wire.ClaudeOptions` builds them for the Claude Code CLI.
        decoder: turns lines into messages; None: ``Decoder()``. Do not use the decoder for anything else.
        cwd: the working directory; None: the host's.
        env: the whole environment, which replaces the host's; None: the host's.
        extra_env: variables to merge into the environment. Without ``env``, the active OpenTelemetry span is also
            added, as claude-agent-sdk does: ``TRACEPARENT``, ``TRACESTATE``, and other propagated values such as
            ``BAGGAGE``. Variables in ``extra_env`` take precedence. No other variable is added or removed.
        user: the name or number of the user to run as (POSIX).
        stderr: where the standard error goes. None: the last 64 KiB are kept for :attr:`Process.stderr_tail` and for
            errors. A function: it is also called with each line, in the event loop's thread. The line is decoded as
            UTF-8, with invalid bytes replaced, and has no line feed; a line longer than 64 KiB is split. If the
            function raises, the exception's type is logged. ``"inherit"``: the host's standard error.
        overflow, spill_limit: for the standard output, as for :class:`~claude_wire.MessageStream`.
        grace: seconds to wait for the process to exit, first after closing its input, and again after SIGTERM.
        start_new_session: run the process in a new session (POSIX), so that Ctrl-C interrupts only the host.

    Raises:
        CLINotFoundError: on entering the block, if the program does not exist.
        OSError: on entering the block, if the process cannot be spawned, for example because the working directory does
            not exist (``FileNotFoundError``), a permission is missing (``PermissionError``), or too many files are
            open. No process or descriptor remains.
        TypeError: ``argv`` is empty or not a list of arguments, or ``decoder`` is not a :class:`~claude_wire.Decoder`.
        ValueError: ``stderr``, ``overflow``, ``spill_limit`` or ``grace`` has a value other than those above.
        NotImplementedError: ``overflow`` is not ``"pause"``, and the system is not Linux.
    """
    if isinstance(argv, (str, bytes)):
        raise TypeError("argv must be a list of arguments, not one string; use shlex.split() to split it")
    if isinstance(argv, (Mapping, Set)) or not isinstance(argv, Iterable):
        raise TypeError(f"argv must be a list of arguments, as ClaudeOptions.argv() gives it, not {type_of(argv)}")
    if isinstance(stderr, str) and stderr != "inherit":
        raise ValueError(f"stderr must be None, 'inherit' or a function, not {shown(stderr)}")
    if not (stderr is None or isinstance(stderr, str)):
        require_function("stderr", stderr, "each line", awaited=False)
    output = DrainOptions(overflow, spill_limit)
    require_seconds("grace", grace, or_zero=True, or_none=False)
    require_environment("env", env)
    require_environment("extra_env", extra_env)
    if not isinstance(cwd, (str, os.PathLike, type(None))):
        raise TypeError(f"cwd must be a path, not {type_of(cwd)}")
    try:
        command = [os.fspath(argument) for argument in argv]
    except TypeError as error:
        raise TypeError(f"argv must be a list of str or paths: {error}") from None
    if not command:
        raise TypeError("argv is empty")
    environment: dict[str, str] | None = None
    trace = trace_context() if env is None else {}
    if env is not None or extra_env is not None or trace:
        environment = {**(os.environ if env is None else env), **(extra_env or {})}
        join_trace(environment, trace, extra_env or ())
    settings = Settings(command, cwd, environment, user, stderr, output, grace, start_new_session)
    return Process(settings, require_decoder(decoder))


def require_environment(name: str, env: object) -> None:
    """Check that a process's environment is a dict of strings, or None.

    Raises:
        TypeError: ``env`` is anything else.
    """
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise TypeError(f"{name} must be a dict, not {type_of(env)}")
    for key, value in cast("Mapping[object, object]", env).items():
        for text in key, value:
            if not isinstance(text, (str, bytes, os.PathLike)):
                raise TypeError(f"{name}[{shown(key)}] must be a str, not {type_of(text)}")


class Process(MessageStream[T], Generic[T]):
    """A child process and its messages. :func:`open_process` returns it.

    ``async for`` and :meth:`batches` work as for :class:`~claude_wire.MessageStream`. After the last message, the
    iteration waits at most ``grace`` seconds until the process exits. Then it raises once:

    * :class:`~claude_wire.UnfinishedTurnError`, whatever the exit code, if the output ended in the middle of a turn or
      line, or if a prompt was sent but no turn followed it;
    * otherwise :class:`~claude_wire.ProcessError`, if the exit code is not 0.

    A turn begins with an ``init``, ``assistant``, ``user`` or ``stream_event`` message (unless it is from a subagent or
    a replay), and ends with its ``result``. If the decoder has ``only``, this check only sees the kinds in ``only``; if
    ``result`` is not one of them, no turn counts as unfinished. On Linux, the output ends when the process has exited
    and its whole output was read, even if another process that it started still holds the pipe open.

    At the end of ``async with``, the process's input is closed; ``grace`` seconds later the process gets SIGTERM, and
    after ``grace`` more seconds SIGKILL. If the host is killed, the system closes the process's input: the CLI then
    exits, but a child that ignores the end of its input keeps running. After a fork, only the parent may use the
    object.
    """

    def __init__(self, settings: Settings, decoder: Decoder[T]) -> None:
        self._exchange = Exchange(settings, sees_results=decoder.only is None or "result" in decoder.only)
        self._receiver = Receiver(decoder, self._exchange)
        self._receiver.chunks = NotStarted()
        self._ready = self._receiver.ready

    def __repr__(self) -> str:
        child = self._exchange.child
        if child is None:
            state = "not started"
        else:
            # Do not ask the system for a newer exit code, because this would reap the process.
            code = child.popen.returncode
            state = f"pid {child.popen.pid} {'running' if code is None else f'exited with {code}'}"
        return f"<{type(self).__name__} {state}: {self.stats.summary()}>"

    # --- state

    @property
    def pid(self) -> int:
        """The process id."""
        return self._exchange.started().popen.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; minus the signal number if a signal killed the process; None while the process is running."""
        return self._exchange.started().popen.poll()

    @property
    def stderr_tail(self) -> bytes:
        """The last 64 KiB of the standard error; empty with ``stderr="inherit"``."""
        return self._exchange.started().stderr_tail()

    @property
    def last_result(self) -> Any:
        """The last result message that was decoded, or None."""
        return self._exchange.last_result

    # --- input

    async def send(self, message: Message | dict[str, Any]) -> None:
        """Encode a message and write its line to the standard input. Several tasks may send; their lines never mix.

        If the pipe is full because the process does not read, the call waits. On Linux, the output is read during the
        wait. On other systems, another task must iterate; otherwise the host and the process may wait for each other.
        If a send is cancelled before its first byte is written, nothing is sent. If it is cancelled later, the next
        send or :meth:`end_input` completes the line.

        Raises:
            ProcessInputError: the process has exited or closed its input, or the host closed it.
            TypeError, EncodeError: see :func:`~claude_wire.encode`.
        """
        await self.send_bytes(encode(message))

    async def send_bytes(self, lines: bytes) -> None:
        """Write encoded lines, with their line feeds, like :meth:`send`."""
        await self._exchange.write(lines)

    async def end_input(self) -> None:
        """Close the standard input. The CLI then finishes its work and exits. A second call does nothing.

        If a send is running, the call waits for the send. If a sender was cancelled in the middle of its line, the call
        first writes the rest of the line, for at most one second. If this call is cancelled, the input stays open until
        the end of the block.
        """
        await self._exchange.started().stdin.end()

    # --- end

    async def wait(self) -> int:
        """Wait until the process exits, and return its exit code.

        A process cannot exit while its output pipe is full, so another task should iterate. If no task iterates, Linux
        only reads ahead until the byte budget is used up, and other systems do not read at all.
        """
        child = self._exchange.started()
        while not await child.wait(3600.0):
            pass
        return cast("int", child.popen.returncode)

    async def aclose(self) -> None:
        """Terminate the process, as leaving the block does, and release its resources. A second call does nothing.

        Cancellation does not cut the call short, but is raised at its end. KeyboardInterrupt cuts it short: a thread
        then terminates the process, as it does for a Process that is dropped without being closed.
        """
        self._receiver.forget()
        await self._exchange.close()

    async def __aenter__(self) -> Self:
        if self._exchange.child is not None or self._receiver.closed:
            raise HandleError("a process can be entered only once; create another one")
        self._receiver.chunks = self._exchange.start().chunks
        return self


def exchange_of(process: Process[Any]) -> Exchange:
    """Return a process's :class:`Exchange`, through which a session writes to the process."""
    observer = receiver_of(process).observer
    assert isinstance(observer, Exchange)
    return observer
