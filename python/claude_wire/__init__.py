"""Codec for the NDJSON (stream-json) protocol of the Claude Code CLI: fast, typed, losing nothing.

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
:class:`LineSplitter` for the bare lines, :func:`read` for a file. Every message class is importable from here.
"""

from __future__ import annotations

from claude_wire import codec, errors, messages, reading
from claude_wire.codec import *
from claude_wire.errors import *
from claude_wire.framing import LineSplitter
from claude_wire.messages import *
from claude_wire.reading import *

__version__ = "0.1.0"

#: The version of the CLI whose protocol the message classes describe.
PROTOCOL_VERSION = "2.1.330"

__all__ = ["PROTOCOL_VERSION", "LineSplitter", "__version__"]
__all__ += codec.__all__
__all__ += errors.__all__
__all__ += messages.__all__
__all__ += reading.__all__
