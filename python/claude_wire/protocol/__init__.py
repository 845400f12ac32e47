"""The host's side of the protocol as state machines, without input and output. See :class:`HostProtocol`.

Use this package for an SDK that has its own transport. Pass each decoded message to :meth:`HostProtocol.receive`, act
on the returned events, and report each prompt, request and answer that you send. :class:`~claude_wire.Session` uses the
same classes.
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
