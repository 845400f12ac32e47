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
        ├── SubagentStoppedError        subagents were stopped, and no turn came of that
        ├── TurnCancelledError          the turn was interrupted
        └── ExecutionError              anything else, a failed start among it
            └── SessionNotFoundError    there is no conversation to resume

A wrong argument (a ``str`` where bytes belong, an unknown option) is an ordinary ``TypeError`` or ``ValueError``.

``str(error)`` and ``repr(error)`` have no content of a conversation in them: it carries prompts and secrets, and errors
go to logs. The content is in attributes. What the CLI itself says of a failure is in the text, between quotation marks,
as one line of at most 80 characters. It is taken from:

* ``result`` of a result with ``subtype`` ``success`` and ``is_error`` true, which the CLI writes when the API failed.
  Of any other result that field is the model's answer, and never shown;
* ``errors`` and ``error`` of a failed result;
* ``error`` of the answer to a control request;
* the standard error of a process that ended with an exit code other than 0.
"""

from __future__ import annotations

from claude_wire.messages.conversation.results import (
    ApiError,
    AuthenticationError,
    BillingError,
    ExecutionError,
    MaxBudgetError,
    MaxTurnsError,
    RateLimitError,
    SessionNotFoundError,
    StructuredOutputError,
    SubagentStoppedError,
    TurnCancelledError,
    TurnError,
)
from claude_wire.messages.invalid import InvalidLineError
from claude_wire.support.errors import (
    AnswerError,
    ByteBudgetError,
    ClaudeWireError,
    CLINotFoundError,
    DialectError,
    EncodeError,
    HandleError,
    LineTooLongError,
    PayloadError,
    ProcessError,
    ProcessInputError,
    PromptAnsweredError,
    PromptCancelledError,
    PromptError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
    UnfinishedTurnError,
)

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
    "SessionNotFoundError",
    "StructuredOutputError",
    "SubagentStoppedError",
    "TurnCancelledError",
    "TurnError",
    "UnfinishedTurnError",
]
