"""Every exception that this package raises on purpose.

    ClaudeWireError
    ├── InvalidLineError (ValueError)   a line that is not one JSON object
    ├── LineTooLongError (ValueError)   a line above ``max_line_bytes`` (LineSplitter only)
    ├── EncodeError (ValueError)        a value that JSON cannot express
    ├── DialectError (ValueError)       a message or a request that a dialect does not have
    ├── PayloadError (ValueError)       an answer that does not fit its request
    ├── HandleError (RuntimeError)      an object was used by two threads at once, after its end, or in a forked child
    ├── ByteBudgetError                 more unread bytes wait than the process allows (overflow="error" only)
    ├── CLINotFoundError (FileNotFoundError)    the Claude Code CLI was not found
    ├── ProcessInputError (BrokenPipeError)     a message for a process that is gone or has closed its input
    ├── ProcessError                    a process ended with an exit code that is not 0, or by a signal
    │   └── UnfinishedTurnError         the output ended in the middle of a turn or a line, with any exit code
    ├── RequestError                    a control request got no answer, or an error
    │   ├── RequestRefusedError         the answer is an error
    │   ├── RequestTimeoutError (TimeoutError)  no answer came in time
    │   └── SessionEndedError           the output has ended, or the session was closed, before the answer
    ├── AnswerError                     a permission question cannot be answered: unknown, or settled before
    ├── PromptError                     no turn will answer a prompt
    │   ├── PromptAnsweredError         the prompt was answered before the session was resumed
    │   └── PromptCancelledError        the prompt was removed from the queue, or refused
    └── TurnError                       a turn ended with a result that is an error
        ├── ApiError                    the API refused the request, or failed
        │   ├── AuthenticationError     the credentials are missing, wrong, or do not allow the request
        │   ├── BillingError            the account has no credit
        │   └── RateLimitError          too many requests, or the API is overloaded
        ├── MaxTurnsError               the limit for turns was reached
        ├── MaxBudgetError              the limit for costs was reached
        ├── StructuredOutputError       the output of the model does not fit the JSON schema
        ├── SubagentStoppedError        subagents were stopped, and no turn followed
        ├── TurnCancelledError          the turn was interrupted
        └── ExecutionError              any other error, also of the start of the CLI
            └── SessionNotFoundError    the conversation to resume does not exist

A wrong argument (a ``str`` instead of bytes, an unknown option) raises a ``TypeError`` or ``ValueError`` of Python.

``str(error)`` and ``repr(error)`` show no content of a conversation, because it has prompts and secrets, and errors go
to logs. The content is in attributes. But the text does quote what the CLI says about a failure, as one line of at most
80 characters in quotation marks. The quotation is from:

* ``result`` of a result with ``subtype`` ``success`` and ``is_error`` true, which the CLI writes when the API has
  failed. In other results this field is the model's answer, which is never shown;
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
