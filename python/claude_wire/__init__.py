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
host does: prompts, permission, hooks, MCP servers and control requests. Every message class is importable from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire import codec, errors, messages, reading
from claude_wire.codec import *
from claude_wire.errors import *
from claude_wire.framing import LineSplitter
from claude_wire.kinds import Kind, peek, peek_lines
from claude_wire.reading import *

__version__ = "0.1.0"

#: The version of the CLI whose protocol the message classes describe.
PROTOCOL_VERSION = "2.1.330"

__all__ = ["PROTOCOL_VERSION", "Kind", "LineSplitter", "__version__", "peek", "peek_lines"]
__all__ += ["Accumulator", "Batches", "ClaudeOptions", "DrainStats", "HookMatcher", "McpServer", "MessageStream"]
__all__ += ["PartialBlock", "PartialMessage", "Process", "Session", "SessionBatches", "SessionMessages"]
__all__ += ["byte_budget", "find_cli", "open_process", "open_session", "set_byte_budget"]
__all__ += codec.__all__
__all__ += errors.__all__
__all__ += messages.__all__
__all__ += reading.__all__

if TYPE_CHECKING:
    from claude_wire.messages import *
else:
    # Without those that `messages` itself imports when they are first asked for.
    globals().update({name: vars(messages)[name] for name in messages.__all__ if name in vars(messages)})

if TYPE_CHECKING:
    from claude_wire.accumulate import Accumulator as Accumulator
    from claude_wire.accumulate import PartialBlock as PartialBlock
    from claude_wire.accumulate import PartialMessage as PartialMessage
    from claude_wire.draining import DrainStats as DrainStats
    from claude_wire.draining import byte_budget as byte_budget
    from claude_wire.draining import set_byte_budget as set_byte_budget
    from claude_wire.options import ClaudeOptions as ClaudeOptions
    from claude_wire.options import find_cli as find_cli
    from claude_wire.process import Process as Process
    from claude_wire.process import open_process as open_process
    from claude_wire.session import HookMatcher as HookMatcher
    from claude_wire.session import McpServer as McpServer
    from claude_wire.session import Session as Session
    from claude_wire.session import SessionBatches as SessionBatches
    from claude_wire.session import SessionMessages as SessionMessages
    from claude_wire.session import open_session as open_session
    from claude_wire.stream import Batches as Batches
    from claude_wire.stream import MessageStream as MessageStream

# All that is not decoding is imported when it is first asked for: whoever only decodes should not pay for it.
_LATER = {
    "Accumulator": "accumulate",
    "Batches": "stream",
    "ClaudeOptions": "options",
    "DrainStats": "draining",
    "HookMatcher": "session",
    "McpServer": "session",
    "MessageStream": "stream",
    "Process": "process",
    "byte_budget": "draining",
    "find_cli": "options",
    "PartialBlock": "accumulate",
    "PartialMessage": "accumulate",
    "Session": "session",
    "SessionBatches": "session",
    "SessionMessages": "session",
    "open_process": "process",
    "open_session": "session",
    "set_byte_budget": "draining",
}


def __getattr__(name: str) -> Any:
    module = "messages" if name in messages.__all__ else _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
