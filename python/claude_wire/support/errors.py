"""Exceptions that do not have a message as an attribute. Each other exception is next to its message's class."""

from __future__ import annotations

from typing import Any, TypeVar

from claude_wire.support.text import quoted, reason_in

E = TypeVar("E", bound="ClaudeWireError")


class ClaudeWireError(Exception):
    """The base class of all exceptions in this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, pickle and copy call the class with only the text. Restore text and attributes without calling it.
        return _blank, (type(self),), {"args": self.args, **vars(self)}


class LineTooLongError(ClaudeWireError, ValueError):
    """A line was longer than ``max_line_bytes``, or did not fit into memory, and was dropped.

    Attributes:
        lines: the lines before this line in the same call. The next call returns the lines after this line.
        head: the line's first bytes, at most 1024.
        length: the whole line's length in bytes, without its line feed.
        line_number: the line's number in the stream, counted from 1.
        offset: the byte offset at which the line starts in the stream.
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
    """The other side's dialect cannot express a message or request. Nothing was sent.

    Attributes:
        dialect: the dialect's name, such as ``"miriad"``.
    """

    def __init__(self, dialect: str, problem: str) -> None:
        super().__init__(f"the dialect {dialect} {problem}")
        self.dialect = dialect


class PayloadError(ClaudeWireError, ValueError):
    """A control response's payload does not fit the request that it answers.

    Attributes:
        payload: the payload as received, as plain Python objects.
    """

    def __init__(self, message: str, payload: Any = None) -> None:
        super().__init__(message)
        self.payload = payload


class HandleError(ClaudeWireError, RuntimeError):
    """An object was used by two threads or tasks at the same time, after it was closed, or in a forked child.

    A decoder, splitter, stream, process or session belongs to one thread (and one task) at a time, and to the process
    that created it. Create a new decoder for each stream.
    """


class ByteBudgetError(ClaudeWireError):
    """More unread bytes are waiting than :func:`~claude_wire.streams.set_byte_budget` allows (``overflow="error"``).

    No bytes are lost: the writer must wait, and the next step of the iteration continues.

    Attributes:
        limit: this process's byte budget.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes wait to be read in this process")
        self.limit = limit


class CLINotFoundError(ClaudeWireError, FileNotFoundError):
    """The Claude Code CLI was not found. The message says where the search looked, and how to install the CLI."""


class ProcessInputError(ClaudeWireError, BrokenPipeError):
    """A message cannot be sent, because the process exited or closed its standard input, or the host closed it."""


class ProcessError(ClaudeWireError):
    """A process exited with a nonzero code or was killed by a signal, although its host did not terminate it.

    Attributes:
        returncode: the exit code, or minus the signal number if a signal killed the process, as in :mod:`subprocess`.
            None if the process closed its output but is still running.
        signal: the signal number, even if the process handled the signal and exited with 128 plus its number (143 for
            SIGTERM). None without a signal.
        stderr_tail: the last 64 KiB of the standard error, as bytes. They usually say why the process failed.
        last_result: the process's last result message, or None.
        calls: ids of tool calls that have no result; the tools may have run. Only set if another program owns the CLI.

    The Claude Code CLI (2.1.331) exits with 0 if the last result has ``is_error: false``, after an interrupt, and when
    the input ends; with 1 if the last result has ``is_error: true``, or if a flag or an input line is invalid; with 130
    after SIGINT; and with 143 after SIGTERM. An agent with the dialect CLASSIC exits with 2 if its arguments are
    invalid, and with 130 after an interrupt.
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
    """A process's output ended in the middle of a turn or line. It has the attributes of :class:`ProcessError`.

    If another program owns the CLI, a session also raises this if a background subagent was working at the CLI's exit.

    The exit code may be 0: if nobody reads its output for 2 seconds, the CLI exits with 0 and loses the unwritten rest.
    """


class RequestError(ClaudeWireError):
    """A control request got no answer, or an answer that is an error.

    Attributes:
        subtype: the request's subtype, such as ``"set_model"``.
    """

    def __init__(self, subtype: str, problem: str) -> None:
        super().__init__(f"{subtype}: {problem}")
        self.subtype = subtype


def initialize_hint(subtype: str) -> str:
    """Return a hint for an error from ``initialize``: a program that is not an agent fails at this first request."""
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
    """A control request or a prompt will not get an answer, because the session or the output ended.

    If a process exited, ``__cause__`` is a :class:`ProcessError` with the exit code and the standard error.
    """


class AnswerError(ClaudeWireError):
    """A permission question cannot be answered.

    Attributes:
        settled: True if the question was already answered, withdrawn or dropped. False if no question has this id.
    """

    def __init__(self, settled: bool) -> None:
        self.settled = settled
        super().__init__(
            "the permission question is settled: it was answered, withdrawn or dropped before"
            if settled
            else "no permission question has this id: pass the requestId of a permission_request"
        )


class PromptError(ClaudeWireError):
    """No turn will answer the prompt that :meth:`~claude_wire.Session.ask` sent.

    Attributes:
        uuid: the prompt's uuid; None if it has no uuid.
    """

    def __init__(self, uuid: str | None, problem: str) -> None:
        super().__init__(problem)
        self.uuid = uuid


class PromptAnsweredError(PromptError):
    """The agent already had a prompt with this uuid before the session was resumed, so it does not start a turn.

    The answer is in the resumed conversation. To ask again, send the prompt with a new uuid.
    """


class PromptCancelledError(PromptError):
    """The agent removed the prompt from its queue, because the prompt was cancelled, an interrupt emptied the queue, or
    the agent refused the prompt.
    """


def is_name(reason: str | None) -> bool:
    """Return True if a reason looks like a protocol name, such as ``rate_limit``. Other texts may be content."""
    return reason is not None and len(reason) <= 64 and reason.isascii() and reason.isidentifier()


def _blank(cls: type[E]) -> E:
    return cls.__new__(cls)


def exit_signal(returncode: int | None) -> int | None:
    """Return the signal number in an exit code from :mod:`subprocess` (-15) or a shell (143); else None."""
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
