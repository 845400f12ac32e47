"""The exceptions without a message as an attribute. The others are in the module of their message's class."""

from __future__ import annotations

from typing import Any, TypeVar

from claude_wire.support.text import quoted, reason_in

E = TypeVar("E", bound="ClaudeWireError")


class ClaudeWireError(Exception):
    """The root of every exception of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, pickle and copy call the class with only the text. Restore text and attributes without a call.
        return _blank, (type(self),), {"args": self.args, **vars(self)}


class LineTooLongError(ClaudeWireError, ValueError):
    """A line was longer than ``max_line_bytes``, or did not fit into memory, and was dropped.

    Attributes:
        lines: the lines before this line in the same call. The next call returns the lines after it.
        head: the first bytes of the line, at most 1024.
        length: the length of the whole line in bytes, without its line feed.
        line_number: number of the line in the stream, from 1.
        offset: offset of the line's first byte in the stream, in bytes.
    """

    def __init__(self, lines: list[bytes], head: bytes, length: int, line_number: int, offset: int) -> None:
        super().__init__(f"line {line_number} at byte {offset} is too long to keep: {length} bytes")
        self.lines = lines
        self.head = head
        self.length = length
        self.line_number = line_number
        self.offset = offset


class EncodeError(ClaudeWireError, ValueError):
    """A message has a value that JSON cannot express, such as an object of another class, or is nested too deeply."""


class DialectError(ClaudeWireError, ValueError):
    """The dialect of the other side cannot express a message or a request. Nothing was sent.

    Attributes:
        dialect: name of the dialect, such as ``"miriad"``.
    """

    def __init__(self, dialect: str, problem: str) -> None:
        super().__init__(f"the dialect {dialect} {problem}")
        self.dialect = dialect


class PayloadError(ClaudeWireError, ValueError):
    """The payload of a control response does not fit the request that it answers.

    Attributes:
        payload: the payload as received, as plain Python objects.
    """

    def __init__(self, message: str, payload: Any = None) -> None:
        super().__init__(message)
        self.payload = payload


class HandleError(ClaudeWireError, RuntimeError):
    """An object was used by two threads or tasks at the same time, after it was closed, or in a forked child.

    A decoder, splitter, stream, process or session belongs to one thread (and one task) at a time, and to the process
    that made it. Make a new decoder for each stream.
    """


class ByteBudgetError(ClaudeWireError):
    """More unread bytes wait than :func:`~claude_wire.streams.set_byte_budget` allows, with ``overflow="error"``.

    No bytes are lost: the writer has to wait, and the next step of the iteration continues.

    Attributes:
        limit: the byte budget of this process.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes wait to be read in this process")
        self.limit = limit


class CLINotFoundError(ClaudeWireError, FileNotFoundError):
    """The Claude Code CLI was not found. The message says where it was searched, and how to install it."""


class ProcessInputError(ClaudeWireError, BrokenPipeError):
    """A message cannot be sent: the process has exited or closed its standard input, or its input was ended."""


class ProcessError(ClaudeWireError):
    """A process ended with an exit code other than 0, or by a signal, and not because its host ended it.

    Attributes:
        returncode: the exit code. Minus the number of the signal if a signal ended the process, as in
            :mod:`subprocess`. None if the process has closed its output and still runs.
        signal: the number of this signal; also if the process handled the signal and exited with 128 + its number (143
            for SIGTERM). None without a signal.
        stderr_tail: the last 64 KiB of the standard error, as bytes. They usually say why the process failed.
        last_result: the last result message of the process, or None.
        calls: ids of tool calls without a result; the tools may have run. Only set if another program owns the CLI.

    Exit codes of the Claude Code CLI (2.1.331): 0 if the last result has ``is_error: false``, after an interrupt, and
    when the input ends; 1 if the last result has ``is_error: true``, or if a flag or a line of the input is invalid;
    130 after SIGINT; 143 after SIGTERM. An agent of the dialect CLASSIC exits with 2 if its arguments are invalid, and
    with 130 after an interrupt.
    """

    def __init__(
        self, returncode: int | None, stderr_tail: bytes = b"", last_result: Any = None, *, message: str | None = None
    ) -> None:
        super().__init__(message or f"the process {describe_end(returncode, stderr_tail)}")
        self.returncode = returncode
        self.signal: int | None = exit_signal(returncode)
        self.stderr_tail = stderr_tail
        self.last_result = last_result
        self.calls: list[str] = []


class UnfinishedTurnError(ProcessError):
    """The output of a process ended in the middle of a turn or of a line. Attributes as in :class:`ProcessError`.

    If another program owns the CLI, a session also raises this if a subagent worked in the background when the CLI
    ended.

    The exit code may be 0: if its output is not read for 2 seconds, the CLI exits with 0, and the unwritten rest is
    lost.
    """


class RequestError(ClaudeWireError):
    """A control request got no answer, or an answer that is an error.

    Attributes:
        subtype: the subtype of the request, such as ``"set_model"``.
    """

    def __init__(self, subtype: str, problem: str) -> None:
        super().__init__(f"{subtype}: {problem}")
        self.subtype = subtype


def initialize_hint(subtype: str) -> str:
    """Return a hint for errors of ``initialize``, the first request, which fails if the program is not an agent."""
    return "; is the program an agent that speaks stream-json?" if subtype == "initialize" else ""


class RequestRefusedError(RequestError):
    """The other side answered a control request with an error.

    Attributes:
        error: the error text in the answer.
        error_code: the error code in the answer, such as ``"unsupported_request"``; None if the answer has no code.
    """

    def __init__(self, subtype: str, error: str, error_code: str | None = None) -> None:
        code = f" ({error_code})" if is_name(error_code) else ""
        words = quoted(error)
        hint = initialize_hint(subtype) if error_code == "unsupported_request" else ""
        super().__init__(subtype, f"the request was refused{code}" + (f': "{words}"' if words else "") + hint)
        self.error = error
        self.error_code = error_code


class RequestTimeoutError(RequestError, TimeoutError):
    """A control request was not answered in time, and was withdrawn.

    Attributes:
        seconds: the timeout, in seconds.
    """

    def __init__(self, subtype: str, seconds: float) -> None:
        super().__init__(subtype, f"no answer within {seconds:g} seconds{initialize_hint(subtype)}")
        self.seconds = seconds


class SessionEndedError(RequestError):
    """A control request or a prompt gets no answer, because the session or the output has ended.

    If a process has ended, ``__cause__`` is a :class:`ProcessError` with the exit code and the standard error.
    """


class AnswerError(ClaudeWireError):
    """A permission question cannot be answered.

    Attributes:
        settled: True if the question was answered, withdrawn or dropped before. False if no question had this id.
    """

    def __init__(self, settled: bool) -> None:
        self.settled = settled
        super().__init__(
            "the permission question is settled: it was answered, withdrawn or dropped before"
            if settled
            else "no permission question has this id: pass the requestId of a permission_request"
        )


class PromptError(ClaudeWireError):
    """No turn will answer a prompt of :meth:`~claude_wire.Session.ask`.

    Attributes:
        uuid: uuid of the prompt; None if it has no uuid.
    """

    def __init__(self, uuid: str | None, problem: str) -> None:
        super().__init__(problem)
        self.uuid = uuid


class PromptAnsweredError(PromptError):
    """The agent already had a prompt with this uuid before the session was resumed, so it starts no turn.

    The answer is in the conversation that was resumed. To ask again, send the prompt with a new uuid.
    """


class PromptCancelledError(PromptError):
    """The agent removed the prompt from its queue: the prompt was cancelled, an interrupt emptied the queue, or the
    agent refused the prompt.
    """


def is_name(reason: str | None) -> bool:
    """Return True if a reason looks like a name of the protocol, such as ``rate_limit``. Other texts may be content."""
    return reason is not None and len(reason) <= 64 and reason.isascii() and reason.isidentifier()


def _blank(cls: type[E]) -> E:
    return cls.__new__(cls)


def exit_signal(returncode: int | None) -> int | None:
    """Return the number of the signal in an exit code of :mod:`subprocess` (-15) or of a shell (143); else None."""
    if returncode is None:
        return None
    if returncode < 0:
        return -returncode
    return returncode - 128 if returncode in (130, 143) else None


def describe_exit(returncode: int | None) -> str:
    """Describe how a process ended: ``exited with code 1``, ``was ended by SIGTERM (exit code 143)``."""
    if returncode is None:
        return "still runs"
    number = exit_signal(returncode)
    if number is None:
        return f"exited with code {returncode}" + (" (invalid arguments)" if returncode == 2 else "")
    import signal  # imported here to keep `import claude_wire` fast

    names = {int(known): known.name for known in signal.Signals}
    return f"was ended by {names.get(number, f'signal {number}')} (exit code {returncode})"


def describe_end(returncode: int | None, stderr: bytes) -> str:
    """Describe how a process ended. If it failed, add the reason from its standard error, in at most 80 characters."""
    words = reason_in(stderr) if returncode else ""
    return describe_exit(returncode) + (f'; on its standard error: "{words}"' if words else "")
