"""Codec and transport for the NDJSON (stream-json) protocol of the Claude Code CLI: fast, typed, losing nothing.

::

    from claude_wire import Decoder, StreamEvent, AssistantMessage, ResultMessage

    decoder = Decoder()
    for message in decoder.feed(chunk):
        match message:
            case StreamEvent(text_delta=str(text)):
                print(text, end="")
            case AssistantMessage():
                print(message.tool_uses)
            case ResultMessage():
                print(message.ok, message.total_cost_usd)

:func:`decode` and :func:`encode` handle one line, :class:`Decoder` and :class:`Encoder` a stream, :func:`read` a file.
:class:`LineSplitter` only splits a stream into lines. :class:`MessageStream` reads any source of bytes asynchronously.
:func:`open_process` runs a process, and :class:`ClaudeOptions` builds its arguments. :class:`Accumulator` builds whole
messages from stream events. :func:`open_session` runs the CLI with prompts, permission callbacks, hooks, MCP servers
and control requests; :func:`ask` runs it for one prompt. :mod:`claude_wire.sync` has both for code without async. All
message classes are in :mod:`claude_wire.messages`, all errors in :mod:`claude_wire.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire import moved
from claude_wire.codec import Decoder, Encoder, decode, encode
from claude_wire.codec.kinds import Kind, peek
from claude_wire.errors import (
    ClaudeWireError,
    CLINotFoundError,
    EncodeError,
    HandleError,
    InvalidLineError,
    MaxBudgetError,
    ProcessError,
    ProcessInputError,
    PromptError,
    RateLimitError,
    RequestError,
    RequestRefusedError,
    RequestTimeoutError,
    SessionEndedError,
    TurnError,
    UnfinishedTurnError,
)
from claude_wire.messages import (
    AssistantMessage,
    AsyncHookOutput,
    CanUseToolRequest,
    ControlRequest,
    ControlResponse,
    ElicitationRequest,
    ElicitationResponse,
    HookCallbackRequest,
    HookOutput,
    InitMessage,
    InvalidLine,
    Message,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UnknownMessage,
    UserDialogCancelled,
    UserDialogCompleted,
    UserMessage,
)
from claude_wire.messages.version import PROTOCOL_VERSION
from claude_wire.native.line_splitter import LineSplitter
from claude_wire.streams.read import read

if TYPE_CHECKING:
    from claude_wire import sync as sync
    from claude_wire.accumulate import Accumulator
    from claude_wire.process.find_cli import find_cli
    from claude_wire.process.options import ClaudeOptions
    from claude_wire.process.process import Process, open_process
    from claude_wire.session import HookMatcher, McpServer, Session, ask, open_session
    from claude_wire.streams.message_stream import MessageStream

__all__ = [
    "PROTOCOL_VERSION",
    "Accumulator",
    "AssistantMessage",
    "AsyncHookOutput",
    "CLINotFoundError",
    "CanUseToolRequest",
    "ClaudeOptions",
    "ClaudeWireError",
    "ControlRequest",
    "ControlResponse",
    "Decoder",
    "ElicitationRequest",
    "ElicitationResponse",
    "EncodeError",
    "Encoder",
    "HandleError",
    "HookCallbackRequest",
    "HookMatcher",
    "HookOutput",
    "InitMessage",
    "InvalidLine",
    "InvalidLineError",
    "Kind",
    "LineSplitter",
    "MaxBudgetError",
    "McpServer",
    "Message",
    "MessageStream",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "Process",
    "ProcessError",
    "ProcessInputError",
    "PromptError",
    "RateLimitError",
    "RequestError",
    "RequestRefusedError",
    "RequestTimeoutError",
    "ResultMessage",
    "Session",
    "SessionEndedError",
    "StreamEvent",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "TurnError",
    "UnfinishedTurnError",
    "UnknownMessage",
    "UserDialogCancelled",
    "UserDialogCompleted",
    "UserMessage",
    "__version__",
    "ask",
    "decode",
    "encode",
    "find_cli",
    "open_process",
    "open_session",
    "peek",
    "read",
]

__version__ = "0.2.0"

# Name -> module. All names except those for decoding are imported on first use, so programs that only decode start
# fast.
_LATER = {
    "Accumulator": "accumulate",
    "ClaudeOptions": "process.options",
    "HookMatcher": "session",
    "McpServer": "session",
    "MessageStream": "streams.message_stream",
    "Process": "process.process",
    "Session": "session",
    "ask": "session",
    "find_cli": "process.find_cli",
    "open_process": "process.process",
    "open_session": "session",
}

#: Packages that need an explicit ``import claude_wire.NAME``.
_APART = frozenset({"agent", "columns", "dialects", "integrations", "testing", "transcripts"})

#: Names of claude-agent-sdk, and what to write instead.
_ELSEWHERE = {
    "ClaudeAgentOptions": "; use ClaudeOptions, and pass callbacks, cwd and env to open_session(...)",
    "ClaudeSDKClient": "; it is open_session(ClaudeOptions(...)) here",
    "query": "; it is ask(prompt, options) here, or session.query(prompt) in a session",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "sync":  # `import claude_wire` does not import this package
        return import_module("claude_wire.sync")
    if name in _LATER:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value
    if name in _APART:
        hint = f"; import {__name__}.{name} first"
    else:
        hint = _ELSEWHERE.get(name) or moved.place(name) or _package_of(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def _package_of(name: str) -> str:
    """Return a hint that says which package has the unknown name, or an empty string."""
    from importlib import import_module

    for package in ("messages", "errors", "codec", "session", "accumulate", "streams"):
        if name in import_module(f"{__name__}.{package}").__all__:
            return f"; it is {__name__}.{package}.{name}"
    return ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
