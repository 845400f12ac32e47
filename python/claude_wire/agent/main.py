"""Run an agent as a program, with the arguments, standard streams, signals and exit codes of CLI 2.1.331."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from functools import partial
from time import monotonic
from typing import Any, NoReturn

import anyio
from anyio.abc import ByteSendStream

from claude_wire.agent.options import FLAGS, AgentOptions
from claude_wire.agent.service import Service, print_exception
from claude_wire.codec.decoder import Decoder
from claude_wire.codec.encoder import encode, encode_value
from claude_wire.dialects import Dialect
from claude_wire.messages import MessageParam, ResultMessage, UserMessage

#: Exit code of an agent that could not start.
FAILED = 1
#: The exit code that a shell reports if SIGINT killed a process.
INTERRUPTED = 128 + 2

HELP = """\
Usage: {name} [FLAGS] [PROMPT]

An agent. With a PROMPT it gives one answer. Without one, a host speaks with it over the standard streams.

  -p, --print             give one answer; without a PROMPT, read it from the standard input
  --output-format FORMAT  print the answer as text, json or stream-json
  --input-format FORMAT   text, or stream-json for a host
  -v, --version           print the version
  -h, --help              print this

The flags of the Claude Code CLI are read, too. What they do is up to the agent:

{flags}
"""

#: How many seconds to wait before exit for running threads.
THREAD_SECONDS = 1.0

_taken: tuple[int, int] | None = None


def take_standard_streams() -> tuple[int, int]:
    """Reserve standard input and output for the protocol. Every call returns the same two descriptors.

    Descriptor 0 becomes an empty input, and descriptor 1 the standard error. So a ``print``, a library or a child
    process can neither read a line nor write between two lines.
    """
    global _taken
    if _taken is None:
        if sys.stdout is not None:  # None if the program was started with a closed output
            sys.stdout.flush()
        nothing = os.open(os.devnull, os.O_RDWR)
        while nothing <= 2:  # open the descriptors 0 to 2 that the program was started without
            nothing = os.dup(nothing)
        _taken = os.dup(0), os.dup(1)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)  # the same buffering as the standard error
    return _taken


def run_program(
    make_service: Callable[[AgentOptions], Service], dialect: Dialect, version: str, argv: Sequence[str], backend: str
) -> int:
    """Run an agent as this process's program, and return its exit code.

    Args:
        make_service: creates the service for a parsed command line.
        dialect, version: the agent's dialect and version.
        argv: the command line, starting with the program.
        backend: ``"asyncio"`` or ``"trio"``.
    """
    stdin, stdout = take_standard_streams()
    if hasattr(signal, "SIGPIPE"):
        # If the host stops reading, a write fails with an error. The agent then exits without a traceback.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        options = AgentOptions.parse(argv)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return dialect.usage_code
    name = os.path.basename(argv[0])
    if options.version:
        _write(stdout, f"{version} ({name})\n".encode())
        return 0
    if options.help:
        flags = textwrap.fill(" ".join(FLAGS), 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        _write(stdout, HELP.format(name=name, flags=flags).encode())
        return 0
    service = make_service(options)
    if options.input_format == "stream-json" or not (options.print or options.prompt is not None):
        if os.isatty(stdin):
            print(f"{name} waits for a host's lines of JSON; {name} PROMPT gives one answer", file=sys.stderr)
        return anyio.run(_serve, service, stdin, stdout, backend=backend)
    prompt = options.prompt
    if prompt is None:
        with open(stdin, "rb", closefd=False) as file:
            prompt = file.read().decode(errors="replace")
    source: Any = _prompt_line(prompt, dialect)
    if options.output_format == "stream-json":
        return anyio.run(_serve, service, source, stdout, backend=backend)
    printed = _Results(dialect)
    code = anyio.run(_serve, service, source, printed, backend=backend)
    for result in printed.results:
        _write(stdout, encode(result) if options.output_format == "json" else _text(result).encode(errors="replace"))
    return code


def leave(code: int) -> NoReturn:
    """Exit the process, even if a thread is still running. (``sys.exit`` would wait for a thread that never ends.)"""
    deadline = monotonic() + THREAD_SECONDS
    others = [one for one in threading.enumerate() if not one.daemon and one is not threading.current_thread()]
    for thread in others:
        thread.join(max(deadline - monotonic(), 0))
    if any(thread.is_alive() for thread in others):
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _serve(service: Service, stdin: Any, stdout: Any) -> int:
    # Windows has no signals for an event loop: Ctrl-C raises KeyboardInterrupt there.
    signals = (signal.SIGINT, signal.SIGTERM)
    code = FAILED
    receiver: Any = nullcontext() if os.name == "nt" else anyio.open_signal_receiver(*signals)
    with receiver as received:
        async with anyio.create_task_group() as group:
            if received is not None:
                group.start_soon(partial(_handle_signals, service, received))
            try:
                code = await service.run(stdin, stdout)
            except Exception as error:
                print_exception(error)
            if service.left_behind and not isinstance(stdout, _Results):
                _leave_at_once(code)  # otherwise the event loop would wait for the agent's function
            group.cancel_scope.cancel()
    return code


async def _handle_signals(service: Service, received: AsyncIterator[signal.Signals]) -> None:
    async for number in received:
        if number == signal.SIGINT:
            service.interrupt()
        else:
            service.terminate()


async def _prompt_line(prompt: str, dialect: Dialect) -> AsyncIterator[bytes]:
    """Yield one line with the prompt, as the input of an agent that got its prompt as an argument."""
    yield dialect.connect().to_agent(UserMessage(message=MessageParam("user", prompt)))


class _Results(ByteSendStream):
    """Receives an agent's output, and keeps only the results."""

    def __init__(self, dialect: Dialect) -> None:
        self.results: list[ResultMessage] = []
        self._decoder = Decoder()
        self._connection = dialect.connect()

    async def send(self, item: bytes) -> None:
        for line in self._decoder.feed(item):
            messages = self._connection.from_agent(line)
            self.results += [message for message in messages if isinstance(message, ResultMessage)]

    async def aclose(self) -> None:
        pass


def _text(result: ResultMessage) -> str:
    if result.result is not None:
        return f"{result.result}\n"
    if result.structured_output is not None:
        return f"{encode_value(result.structured_output).decode()}\n"
    return "".join(f"{error}\n" for error in result.errors or [""])


def _write(fd: int, data: bytes) -> None:
    """Write to the original standard output. Ignore errors, because the reader may have closed the pipe."""
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
    except OSError:
        pass
