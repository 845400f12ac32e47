"""Every exception that this package raises on purpose.

    ClaudeWireError
    ├── InvalidLineError (ValueError)   a line that is not one JSON object
    ├── LineTooLongError (ValueError)   a line above ``max_line_bytes`` (LineSplitter only)
    ├── EncodeError (ValueError)        a value that JSON cannot express
    ├── DialectError (ValueError)       a message or request that a dialect cannot express
    ├── PayloadError (ValueError)       an answer that does not fit its request
    ├── HandleError (RuntimeError)      an object is closed, in use by another thread, or from another process
    ├── ByteBudgetError                 more unread bytes than the byte budget (overflow="error" only)
    ├── CLINotFoundError (FileNotFoundError)    the Claude Code CLI was not found
    ├── ProcessInputError (BrokenPipeError)     the process exited or closed its input before it got a message
    ├── ProcessError                    a process exited with a nonzero code, or a signal killed it
    │   └── UnfinishedTurnError         the output ended in the middle of a turn or a line, with any exit code
    ├── RequestError                    a control request got no answer, or an error
    │   ├── RequestRefusedError         the answer is an error
    │   ├── RequestTimeoutError (TimeoutError)  no answer arrived in time
    │   └── SessionEndedError           the output ended, or the session was closed, before the answer arrived
    ├── AnswerError                     a permission question is unknown or already settled
    ├── PromptError                     no turn will answer a prompt
    │   ├── PromptAnsweredError         the prompt was answered before the session was resumed
    │   └── PromptCancelledError        the prompt was removed from the queue, or refused
    └── TurnError                       a turn ended with a result that is an error
        ├── ApiError                    the API refused the request, or failed
        │   ├── AuthenticationError     the credentials are missing, wrong, or do not allow the request
        │   ├── BillingError            the account has no credit
        │   └── RateLimitError          too many requests, or the API is overloaded
        ├── MaxTurnsError               the turn limit was reached
        ├── MaxBudgetError              the cost limit was reached
        ├── StructuredOutputError       the model's output does not match the JSON schema
        ├── SubagentStoppedError        subagents were stopped, and no turn followed
        ├── TurnCancelledError          the turn was interrupted
        └── ExecutionError              any other error, such as a failure to start the CLI
            └── SessionNotFoundError    the conversation to resume does not exist

A wrong argument (a ``str`` instead of bytes, an unknown option) raises Python's ``TypeError`` or ``ValueError``.

``str(error)`` and ``repr(error)`` never show a conversation's content, because programs log errors, and a conversation
contains prompts and secrets. The content is in attributes. The text may quote the CLI's own error, as one line of at
most 80 characters in quotation marks:

* ``result`` of a result with ``subtype`` ``success`` and ``is_error`` true, which the CLI writes when the API
  failed. In other results this field is the model's answer, which is never shown;
* ``errors`` and ``error`` of a failed result;
* ``error`` of the answer to a control request;
* the standard error of a process that exited with a code other than 0.
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
