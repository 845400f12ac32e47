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

:func:`decode` and :func:`encode` are for one line, :class:`Decoder` and :class:`Encoder` for a stream,
:class:`LineSplitter` for the bare lines, :func:`read` for a file. :class:`MessageStream` reads any source of bytes
asynchronously, and :func:`open_process` runs a process, whose arguments :class:`ClaudeOptions` makes.
:class:`Accumulator` makes whole messages of stream events. :func:`open_session` runs the CLI with everything that a
host does: prompts, permission, hooks, MCP servers and control requests; :func:`ask` does so for one prompt.
:mod:`claude_wire.sync` has both for code that is not async. Every message class is importable from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire import codec, errors, messages, moved
from claude_wire.codec import *
from claude_wire.codec.kinds import Kind as Kind
from claude_wire.codec.kinds import peek as peek
from claude_wire.codec.kinds import peek_lines as peek_lines
from claude_wire.errors import *
from claude_wire.io import read as _read
from claude_wire.io.read import *
from claude_wire.native.line_splitter import LineSplitter as LineSplitter

__version__ = "0.2.0"

#: The version of the CLI whose protocol the message classes describe.
PROTOCOL_VERSION = "2.1.331"

#: Packages that are imported by their own names only.
_APART = frozenset({"agent", "dialects", "integrations", "tables", "testing", "transcripts"})

#: Names of claude-agent-sdk, and what to write instead.
_ELSEWHERE = {
    "ClaudeAgentOptions": "; it is ClaudeOptions here, and callbacks, cwd and env go beside it: open_session(...)",
    "ClaudeSDKClient": "; it is open_session(ClaudeOptions(...)) here",
    "query": "; it is ask(prompt, options) here, or session.query(prompt) in a session",
}

# All that is not decoding is imported when it is first asked for: whoever only decodes should not pay for it.
_LATER = {
    "Accumulator": "accumulate",
    "Batches": "io.message_stream",
    "ClaudeOptions": "process.options",
    "DrainStats": "native.overflow",
    "Guard": "session",
    "HookMatcher": "session",
    "McpServer": "session",
    "MessageStream": "io.message_stream",
    "Process": "process.process",
    "ask": "session",
    "byte_budget": "native.budget",
    "find_cli": "process.find_cli",
    "PartialBlock": "accumulate",
    "PartialMessage": "accumulate",
    "Session": "session",
    "SessionBatches": "session",
    "SessionMessages": "session",
    "open_process": "process.process",
    "open_session": "session",
    "set_byte_budget": "native.budget",
}

if TYPE_CHECKING:
    from claude_wire import sync as sync

    # Without an `__all__`, which they do not follow here, type checkers see every name that is handed on.
    from claude_wire.accumulate import *
    from claude_wire.io.message_stream import Batches as Batches
    from claude_wire.io.message_stream import MessageStream as MessageStream
    from claude_wire.messages import *
    from claude_wire.native.budget import byte_budget as byte_budget
    from claude_wire.native.budget import set_byte_budget as set_byte_budget
    from claude_wire.native.overflow import DrainStats as DrainStats
    from claude_wire.process.find_cli import *
    from claude_wire.process.options import ClaudeOptions as ClaudeOptions
    from claude_wire.process.process import Process as Process
    from claude_wire.process.process import open_process as open_process
    from claude_wire.session import *
else:
    __all__ = ["PROTOCOL_VERSION", "Kind", "LineSplitter", "__version__", "peek", "peek_lines", *_LATER]
    __all__ += codec.__all__
    __all__ += errors.__all__
    __all__ += _read.__all__
    __all__ += messages.__all__
    # Without those that `messages` itself imports when they are first asked for.
    globals().update({name: vars(messages)[name] for name in messages.__all__ if name in vars(messages)})


def __getattr__(name: str) -> Any:
    if name == "sync":  # which `import claude_wire` alone does not import
        import claude_wire.sync

        return claude_wire.sync
    module = _LATER.get(name) or ("messages" if name in globals()["__all__"] else None)
    if module is None:
        hint = f"; import {__name__}.{name} first" if name in _APART else _ELSEWHERE.get(name) or moved.place(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *globals()["__all__"]})
