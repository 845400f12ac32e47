"""The exceptions that have no message as an attribute. Those that have one are in the module of the message's class."""

from __future__ import annotations

from typing import Any, TypeVar

from claude_wire.support.text import quoted, reason_in

E = TypeVar("E", bound="ClaudeWireError")


class ClaudeWireError(Exception):
    """The root of every exception of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Keep the text and the attributes in a copy. By default, the class would be called with the text alone.
        return _blank, (type(self),), {"args": self.args, **vars(self)}


class LineTooLongError(ClaudeWireError, ValueError):
    """A line was longer than ``max_line_bytes``, or did not fit into memory, and was dropped.

    Attributes:
        lines: the lines that the same call had split before it. The next call returns those after it.
        head: the first bytes of the line, at most 1024.
        length: the line's true length in bytes, without its line feed.
        line_number: 1 for the stream's first line.
        offset: of the line's first byte in the stream, in bytes.
    """

    def __init__(self, lines: list[bytes], head: bytes, length: int, line_number: int, offset: int) -> None:
        super().__init__(f"line {line_number} at byte {offset} is too long to keep: {length} bytes")
        self.lines = lines
        self.head = head
        self.length = length
        self.line_number = line_number
        self.offset = offset


class EncodeError(ClaudeWireError, ValueError):
    """A message has a value that JSON cannot express, such as an object of a foreign class."""


class DialectError(ClaudeWireError, ValueError):
    """The dialect of the other side cannot express a message or a request. Nothing was sent.

    Attributes:
        dialect: its name, such as ``"miriad"``.
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
    """A decoder, splitter or stream was used by two threads or tasks at once, when closed, or in a forked child.

    Each belongs to one thread (and one task) at a time and to the process that made it; make a new one per stream.
    """


class ByteBudgetError(ClaudeWireError):
    """More bytes wait to be read than :func:`~claude_wire.streams.set_byte_budget` allows, and ``overflow="error"`` was
    chosen.

    Nothing is lost: the writer has to wait, and the next step of the iteration goes on.

    Attributes:
        limit: the budget, in bytes.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes wait to be read in this process")
        self.limit = limit


class CLINotFoundError(ClaudeWireError, FileNotFoundError):
    """No Claude Code CLI was found; the message says where it was looked for, and how to get it."""


class ProcessInputError(ClaudeWireError, BrokenPipeError):
    """A message cannot be sent: the process has exited or closed its standard input, or its input was ended."""


class ProcessError(ClaudeWireError):
    """A process ended with an exit code other than 0, or by a signal, and not because its host ended it.

    Attributes:
        returncode: the exit code; minus the number of the signal that ended the process, as :mod:`subprocess` has it;
            None if it has closed its output and still runs.
        signal: the number of that signal, also where the process caught it and said so (143 is 128 + SIGTERM), or None.
        stderr_tail: the last 64 KiB of its standard error, as bytes. They usually have the reason.
        last_result: the last result message that it sent, or None.
        calls: ids of tool calls without a result. The tools may have run. Only if another program owns the CLI.

    The exit codes of the Claude Code CLI (2.1.331) mean: 0, its last result has ``is_error: false``, or it was
    interrupted, or its input ended; 1, the last result has ``is_error: true``, or a flag or a line of its input is not
    acceptable; 130 and 143, ended by SIGINT and SIGTERM. Agents of the dialect CLASSIC say by 2 that their arguments
    are invalid, and by 130 that they were interrupted.
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
    """The output of a process ended in the middle of a turn, or in the middle of a line; attributes as ProcessError.

    Where another program owns the CLI, a session raises it also if a subagent worked in the background when the CLI
    ended.

    The exit code may be 0: the CLI ends so when nobody reads its output for 2 seconds, and what it had not written is
    gone.
    """


class RequestError(ClaudeWireError):
    """A control request got no usable answer.

    Attributes:
        subtype: the subtype of the request, such as ``"set_model"``.
    """

    def __init__(self, subtype: str, problem: str) -> None:
        super().__init__(f"{subtype}: {problem}")
        self.subtype = subtype


def initialize_hint(subtype: str) -> str:
    """A hint for error texts of ``initialize``. The first request fails if the program is ``echo`` or ``cat``."""
    return "; is the program an agent that speaks stream-json?" if subtype == "initialize" else ""


class RequestRefusedError(RequestError):
    """The other side answered a control request with an error.

    Attributes:
        error: its text, for people.
        error_code: such as ``"unsupported_request"``, or None: an open set, and often absent.
    """

    def __init__(self, subtype: str, error: str, error_code: str | None = None) -> None:
        code = f" ({error_code})" if is_name(error_code) else ""
        words = quoted(error)
        hint = initialize_hint(subtype) if error_code == "unsupported_request" else ""
        super().__init__(subtype, f"the request was refused{code}" + (f': "{words}"' if words else "") + hint)
        self.error = error
        self.error_code = error_code


class RequestTimeoutError(RequestError, TimeoutError):
    """A control request was not answered in time; it has been withdrawn.

    Attributes:
        seconds: how long the answer was waited for.
    """

    def __init__(self, subtype: str, seconds: float) -> None:
        super().__init__(subtype, f"no answer within {seconds:g} seconds{initialize_hint(subtype)}")
        self.seconds = seconds


class SessionEndedError(RequestError):
    """A control request or a prompt cannot be answered any more.

    ``__cause__`` is a :class:`ProcessError` with the exit code and the standard error if a process has ended.
    """


class AnswerError(ClaudeWireError):
    """A permission question cannot be answered.

    Attributes:
        settled: True if the question was answered, withdrawn or dropped before. False if there was none with this id.
    """

    def __init__(self, settled: bool) -> None:
        self.settled = settled
        super().__init__(
            "the permission question is settled: it was answered, withdrawn or dropped before"
            if settled
            else "there is no permission question with this id: it takes the requestId of a permission_request"
        )


class PromptError(ClaudeWireError):
    """No turn will answer a prompt of :meth:`~claude_wire.Session.ask`.

    Attributes:
        uuid: of the prompt, or None if it had none.
    """

    def __init__(self, uuid: str | None, problem: str) -> None:
        super().__init__(problem)
        self.uuid = uuid


class PromptAnsweredError(PromptError):
    """The agent already had a prompt with this uuid before the session was resumed, so it starts no turn.

    The answer is in the conversation that was resumed. To ask again, send the prompt with a new uuid.
    """


class PromptCancelledError(PromptError):
    """The agent took the prompt out of its queue: it was cancelled there, swept by an interrupt, or refused."""


def is_name(reason: str | None) -> bool:
    """Return True if a reason looks like a name of the protocol, an open set. Anything else may be content."""
    return reason is not None and len(reason) <= 64 and reason.isascii() and reason.isidentifier()


def _blank(cls: type[E]) -> E:
    return cls.__new__(cls)


def exit_signal(returncode: int | None) -> int | None:
    """Return the signal in an exit code, in the form of :mod:`subprocess` (-15) or of shells (143), or None."""
    if returncode is None:
        return None
    if returncode < 0:
        return -returncode
    return returncode - 128 if returncode in (130, 143) else None


def describe_exit(returncode: int | None) -> str:
    """Say how a process ended: ``exited with code 1``, ``was ended by SIGTERM (exit code 143)``."""
    if returncode is None:
        return "still runs"
    number = exit_signal(returncode)
    if number is None:
        return f"exited with code {returncode}" + (" (invalid arguments)" if returncode == 2 else "")
    import signal  # only needed here, so that `import claude_wire` is fast

    names = {int(known): known.name for known in signal.Signals}
    return f"was ended by {names.get(number, f'signal {number}')} (exit code {returncode})"


def describe_end(returncode: int | None, stderr: bytes) -> str:
    """Say how a process ended and, if it failed, add the reason from its standard error, in at most 80 characters."""
    words = reason_in(stderr) if returncode else ""
    return describe_exit(returncode) + (f'; on its standard error: "{words}"' if words else "")
