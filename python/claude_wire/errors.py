"""Every exception that this package raises on purpose.

    ClaudeWireError
    ├── InvalidLineError (ValueError)   a line that is not one JSON object
    ├── LineTooLongError (ValueError)   a line above ``max_line_bytes`` (LineSplitter only)
    ├── EncodeError (ValueError)        a value that JSON cannot carry
    ├── DialectError (ValueError)       a message or a request that a dialect has no words for
    ├── PayloadError (ValueError)       an answer that does not fit the request it answers
    ├── HandleError (RuntimeError)      an object used by two threads at once, after its end, or in a forked child
    ├── ByteBudgetError                 more bytes wait to be read than the process allows (overflow="error" only)
    ├── CLINotFoundError (FileNotFoundError)    there is no Claude Code CLI to be found
    ├── ProcessInputError (BrokenPipeError)     a message for a process that is gone or reads no more
    ├── ProcessError                    a process ended with an exit code that is not 0, or by a signal
    │   └── UnfinishedTurnError         its output ended in the middle of a turn or a line, whatever the exit code
    ├── RequestError                    a control request got no answer that can be used
    │   ├── RequestRefusedError         the other side answered that it failed
    │   ├── RequestTimeoutError (TimeoutError)  it did not answer in time
    │   └── SessionEndedError           it cannot answer any more: the output has ended, or the session was closed
    ├── AnswerError                     a permission question that cannot be answered: unknown, or settled before
    ├── PromptError                     no turn will answer a prompt
    │   ├── PromptAnsweredError         it was answered before: the resumed session has its uuid already
    │   └── PromptCancelledError        it was taken out of the queue, or refused
    └── TurnError                       a turn ended with a result that is an error
        ├── ApiError                    the API refused or failed
        │   ├── AuthenticationError     the credentials are missing, wrong, or not allowed to do this
        │   ├── BillingError            there is no credit
        │   └── RateLimitError          too many requests, or the API is overloaded
        ├── MaxTurnsError               the limit of turns is reached
        ├── MaxBudgetError              the limit of dollars is reached
        ├── StructuredOutputError       the model did not give what the JSON schema asks for
        ├── TurnCancelledError          the turn was interrupted
        └── ExecutionError              anything else, a failed start among it

A wrong argument (a ``str`` where bytes belong, an unknown option) is an ordinary ``TypeError`` or ``ValueError``.

``str(error)`` and ``repr(error)`` have no content of a conversation in them: it carries prompts and secrets, and errors
go to logs. The content is in attributes. What the CLI itself says of a failure is in the text, between quotation marks,
as one line of at most 80 characters. It is taken from:

* ``result`` of a result with ``subtype`` ``success`` and ``is_error`` true, which the CLI writes when the API failed.
  Of any other result that field is the model's answer, and never shown;
* ``errors`` and ``error`` of a failed result;
* ``error`` of the answer to a control request;
* the standard error of a process that has ended with another exit code than 0.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from claude_wire.foundation.printable import quoted, reason_in

if TYPE_CHECKING:
    from claude_wire.messages import InvalidLine, ResultMessage

__all__ = [
    "AnswerError",
    "ApiError",
    "AuthenticationError",
    "BillingError",
    "ByteBudgetError",
    "CLINotFoundError",
    "ClaudeWireError",
    "DialectError",
    "EncodeError",
    "ExecutionError",
    "HandleError",
    "InvalidLineError",
    "LineTooLongError",
    "MaxBudgetError",
    "MaxTurnsError",
    "PayloadError",
    "ProcessError",
    "ProcessInputError",
    "PromptAnsweredError",
    "PromptCancelledError",
    "PromptError",
    "RateLimitError",
    "RequestError",
    "RequestRefusedError",
    "RequestTimeoutError",
    "SessionEndedError",
    "StructuredOutputError",
    "TurnCancelledError",
    "TurnError",
    "UnfinishedTurnError",
]

E = TypeVar("E", bound="ClaudeWireError")

_SIGNALS = {int(number): number.name for number in signal.Signals}


class ClaudeWireError(Exception):
    """The root of every exception of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy has the text and the attributes. The default would call the class with the text alone.
        return _blank, (type(self),), {"args": self.args, **vars(self)}


class InvalidLineError(ClaudeWireError, ValueError):
    """A line is not one JSON object, and the caller asked for an exception.

    Attributes:
        line: the :class:`~claude_wire.InvalidLine`, with its bytes, number, offset and reason.
        messages: what the same call had decoded before it, in order; none from ``read()``, which yields them first.
            What comes after it is not lost: the next call of ``feed`` or ``close`` returns it.
    """

    def __init__(self, line: InvalidLine, messages: list[Any] | None = None) -> None:
        super().__init__(f"line {line.line_number} at byte {line.offset} is not one JSON object: {line.reason}")
        self.line = line
        self.messages: list[Any] = [] if messages is None else messages


class LineTooLongError(ClaudeWireError, ValueError):
    """A line was longer than ``max_line_bytes``, or more than there was memory for, and was dropped.

    Attributes:
        lines: what the same call had split before it, in order. What comes after it is returned by the next call.
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
    """A message holds a value that JSON has no form for, such as an object of a foreign class."""


class DialectError(ClaudeWireError, ValueError):
    """The dialect that the other side speaks has no words for this. Nothing was sent.

    Attributes:
        dialect: its name, such as ``"miriad"``.
    """

    def __init__(self, dialect: str, problem: str) -> None:
        super().__init__(f"the dialect {dialect} {problem}")
        self.dialect = dialect


class PayloadError(ClaudeWireError, ValueError):
    """The payload of a control response does not fit the request that it answers.

    Attributes:
        payload: what came instead, as plain Python objects.
    """

    def __init__(self, message: str, payload: Any = None) -> None:
        super().__init__(message)
        self.payload = payload


class HandleError(ClaudeWireError, RuntimeError):
    """A decoder, splitter or stream was used by two at once, after it was closed, or in a forked child.

    Each belongs to one thread (and one task) at a time and to the process that made it; make a new one per stream.
    """


class ByteBudgetError(ClaudeWireError):
    """More bytes wait to be read than :func:`~claude_wire.set_byte_budget` allows, and ``overflow="error"`` was chosen.

    Nothing is lost by it: the writer is held up, and the next step of the iteration goes on.

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
    """A process ended with another exit code than 0, or by a signal, and its host did not end it.

    Attributes:
        returncode: the exit code; minus the number of the signal that ended the process, as :mod:`subprocess` has it;
            None if it has closed its output and still runs.
        signal: the number of that signal, also where the process caught it and said so (143 is 128 + SIGTERM), or None.
        stderr_tail: the last 64 KiB of its standard error, as bytes: mostly what says why.
        last_result: the last result message that it sent, or None.

    What the Claude Code CLI means (2.1.330, by the transcripts): 0, its last result has ``is_error: false``, or it was
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


class UnfinishedTurnError(ProcessError):
    """The output of a process ended in the middle of a turn, or in the middle of a line; attributes as ProcessError.

    The exit code may be 0: the CLI ends so when nobody reads its output for 2 seconds, and what it had not written is
    gone.
    """


class RequestError(ClaudeWireError):
    """A control request was not answered, or not as it can be used.

    Attributes:
        subtype: what was asked for, such as ``"set_model"``.
    """

    def __init__(self, subtype: str, problem: str) -> None:
        super().__init__(f"{subtype}: {problem}")
        self.subtype = subtype


class RequestRefusedError(RequestError):
    """The other side answered a control request with an error.

    Attributes:
        error: its text, for people.
        error_code: such as ``"unsupported_request"``, or None: an open set, and often absent.
    """

    def __init__(self, subtype: str, error: str, error_code: str | None = None) -> None:
        code = f" ({error_code})" if _is_name(error_code) else ""
        words = quoted(error)
        super().__init__(subtype, f"the request was refused{code}" + (f': "{words}"' if words else ""))
        self.error = error
        self.error_code = error_code


class RequestTimeoutError(RequestError, TimeoutError):
    """A control request was not answered in time; it has been withdrawn.

    Attributes:
        seconds: how long the answer was waited for.
    """

    def __init__(self, subtype: str, seconds: float) -> None:
        super().__init__(subtype, f"no answer within {seconds:g} seconds")
        self.seconds = seconds


class SessionEndedError(RequestError):
    """A control request, or a turn, that cannot be answered any more.

    ``__cause__`` is a :class:`ProcessError` with the exit code and the standard error if a process has ended.
    """


class AnswerError(ClaudeWireError):
    """A permission question that cannot be answered.

    Attributes:
        settled: whether it is one that was answered, withdrawn or dropped before. False if there was none with this id.
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
    """The agent had a prompt with this uuid already, from before the session was resumed, and starts no turn for it.

    The answer is in the conversation that was resumed. To ask again, send the prompt with a new uuid.
    """


class PromptCancelledError(PromptError):
    """The agent took the prompt out of its queue: it was cancelled there, swept by an interrupt, or refused."""


class TurnError(ClaudeWireError):
    """A turn ended with a result that is an error; :meth:`~claude_wire.ResultMessage.to_error` makes the fitting one.

    Its text says what the CLI says of it (see the top of this module), and what to do.

    Attributes:
        result: the :class:`~claude_wire.ResultMessage`, with the whole text, the cost and all else.
    """

    _remedy = ""

    def __init__(self, result: ResultMessage) -> None:
        words = quoted(words_of(result))
        who = "the CLI" if result.error is None else "the agent"
        said = f'{who} says "{words}"' if words else ""
        super().__init__("; ".join(filter(None, (self._describe(result), said, self._advise(result)))))
        self.result = result

    def _describe(self, result: ResultMessage) -> str:
        subtype = result.subtype if _is_name(result.subtype) else "an error"
        return f"the turn ended with {subtype}{self._why(result)}"

    @staticmethod
    def _why(result: ResultMessage) -> str:
        code = result.error.code if result.error is not None else None
        reason = result.terminal_reason or result.startup_failure_reason or code
        return f" ({reason})" if _is_name(reason) else ""

    def _advise(self, result: ResultMessage) -> str:
        """What to do, in words."""
        return self._remedy


class ApiError(TurnError):
    """The API refused a request or failed, also after the CLI had tried again.

    The result of the CLI has the ``subtype`` ``success``.

    Attributes:
        status: the HTTP status, or None if there was no answer.
        error_type: the name that the API or a dialect gives to it, such as ``"invalid_request_error"``, or None.
    """

    def __init__(self, result: ResultMessage) -> None:
        self.status: int | None = result.api_error_status or None
        self.error_type: str | None = result.api_error_type or (result.error.code if result.error is not None else None)
        super().__init__(result)

    def _describe(self, result: ResultMessage) -> str:
        error_type = self.error_type if _is_name(self.error_type) else None
        details = [str(detail) for detail in (self.status, error_type) if detail]
        return "the API failed" + (f": {' '.join(details)}" if details else "")

    def _advise(self, result: ResultMessage) -> str:
        if self._remedy:
            return self._remedy
        if result.terminal_reason in ("prompt_too_long", "blocking_limit", "rapid_refill_breaker"):
            return "the context is full: send the prompt /compact, or begin a new session"
        if self.status == 413 or result.terminal_reason == "image_error":
            return "send fewer or smaller images and attachments, or begin a new session"
        if self.status == 404:
            return "choose a model that this account has: ClaudeOptions(model=...) or session.set_model()"
        if self.status is not None and self.status >= 500:
            return "try again later"
        if self.status is None and result.terminal_reason == "api_error":
            return "there was no answer from the API: check the login, the network, proxies and ANTHROPIC_BASE_URL"
        return ""


class AuthenticationError(ApiError):
    """The credentials are missing or wrong, or may not do this (HTTP 401 and 403)."""

    def _advise(self, result: ResultMessage) -> str:
        if result.error is not None:  # of an agent of another dialect than the CLI's
            return "give the agent credentials that may do this"
        return "log in (run `claude`, then /login), or give the CLI a key that may do this, in ANTHROPIC_API_KEY"


class BillingError(ApiError):
    """There is no credit (HTTP 402)."""

    _remedy = "add credit to the account, or use another one"


class RateLimitError(ApiError):
    """Too many requests, or the API is overloaded (HTTP 429 and 529). Trying later may help.

    Args:
        resets_at: when the limit ends, in seconds since 1970-01-01 UTC.

    Attributes:
        resets_at: when the limit ends, in UTC, or None. A session knows it from ``resetsAt`` of the last
            :class:`~claude_wire.RateLimitEvent`, if the ``status`` of that was ``rejected``. The CLI reports the limits
            of subscriptions so. For a limit of an API key, for an overloaded API, and in an error that is made of a
            result alone, it is None: a result does not say it.
    """

    _remedy = "try again later"

    def __init__(self, result: ResultMessage, resets_at: float | None = None) -> None:
        self.resets_at: datetime | None = None
        if resets_at is not None:
            with suppress(OverflowError, ValueError, OSError):  # it is no time
                self.resets_at = datetime.fromtimestamp(resets_at, timezone.utc)
        super().__init__(result)

    def _advise(self, result: ResultMessage) -> str:
        return self._remedy if self.resets_at is None else f"try again after {self.resets_at:%Y-%m-%d %H:%M:%S} UTC"


class MaxTurnsError(TurnError):
    """The turns that were allowed are used up (``--max-turns``)."""

    _remedy = "allow more with ClaudeOptions(max_turns=...), or go on with another prompt"


class MaxBudgetError(TurnError):
    """The dollars that were allowed are spent (``--max-budget-usd``)."""

    _remedy = "allow more with ClaudeOptions(max_budget_usd=...)"


class StructuredOutputError(TurnError):
    """The model did not give what the JSON schema asks for, in as many tries as it has."""

    _remedy = ".result.errors has the last reason; ask for less, or loosen the schema"


class TurnCancelledError(TurnError):
    """The turn was interrupted: by :meth:`~claude_wire.Session.interrupt`, a signal, or a refusal that ends it.

    ``terminal_reason`` of the result says what it was doing, ``aborted_streaming`` or ``aborted_tools``.
    """

    def _describe(self, result: ResultMessage) -> str:
        return f"the turn was cancelled{self._why(result)}"


class ExecutionError(TurnError):
    """The turn failed otherwise: the session could not start, for instance."""


def words_of(result: ResultMessage) -> str:
    """What the CLI says of a failed turn, in its own words. Whatever else a result has may be the model's."""
    if result.subtype == "success" and result.is_error and result.result:
        return result.result
    if result.error:
        return result.error.message
    # The CLI writes such diagnostics, which are for its makers, for every interrupted turn.
    return next((text for text in result.errors or () if not text.startswith("[ede_diagnostic]")), "")


def _is_name(reason: str | None) -> bool:
    """Whether it looks like a name of the protocol. These sets are open, and what is no name may be content."""
    return reason is not None and len(reason) <= 64 and reason.isascii() and reason.isidentifier()


def _blank(cls: type[E]) -> E:
    return cls.__new__(cls)


def exit_signal(returncode: int | None) -> int | None:
    """The signal that an exit code tells of, as :mod:`subprocess` (-15) or as shells (143) have it, or None."""
    if returncode is None:
        return None
    if returncode < 0:
        return -returncode
    return returncode - 128 if returncode in (130, 143) else None


def describe_exit(returncode: int | None) -> str:
    """How a process ended, in words: ``exited with code 1``, ``was ended by SIGTERM (exit code 143)``."""
    if returncode is None:
        return "still runs"
    number = exit_signal(returncode)
    if number is None:
        return f"exited with code {returncode}" + (" (invalid arguments)" if returncode == 2 else "")
    return f"was ended by {_SIGNALS.get(number, f'signal {number}')} (exit code {returncode})"


def describe_end(returncode: int | None, stderr: bytes) -> str:
    """How a process ended and, if it failed, the reason in its standard error, at most 80 characters of it."""
    words = reason_in(stderr) if returncode else ""
    return describe_exit(returncode) + (f'; on its standard error: "{words}"' if words else "")
