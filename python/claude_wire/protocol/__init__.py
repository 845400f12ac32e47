"""The host's side of the protocol as state machines, without input and output; see :class:`HostProtocol`.

For an SDK with a transport of its own: it gives each decoded message to :meth:`HostProtocol.receive` and acts on the
events, and says what it sends. A :class:`~claude_wire.Session` is made of the same parts.
"""

from claude_wire.protocol.host import (
    CallbackWanted,
    CallbackWithdrawn,
    HostEvent,
    HostProtocol,
    MessageReceived,
    PromptFinished,
    RequestAnswered,
    RunFinished,
)
from claude_wire.protocol.questions import Question
from claude_wire.protocol.requests import SentRequest
from claude_wire.protocol.run import Run, SentPrompt

__all__ = [
    "CallbackWanted",
    "CallbackWithdrawn",
    "HostEvent",
    "HostProtocol",
    "MessageReceived",
    "PromptFinished",
    "Question",
    "RequestAnswered",
    "Run",
    "RunFinished",
    "SentPrompt",
    "SentRequest",
]
