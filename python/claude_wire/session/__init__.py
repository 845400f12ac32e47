"""A live session with the CLI: the host's side of the protocol."""

from __future__ import annotations

from claude_wire.control.guards import Guard, Registered
from claude_wire.session.arguments import McpServer
from claude_wire.session.callbacks import HookMatcher
from claude_wire.session.iterators import SessionBatches, SessionMessages
from claude_wire.session.open import CallbackArguments, ask, open_session
from claude_wire.session.session import Session
from claude_wire.session.takeover import RunningCLI, SessionPort, SessionTransport

__all__ = [
    "CallbackArguments",
    "Guard",
    "HookMatcher",
    "McpServer",
    "Registered",
    "RunningCLI",
    "Session",
    "SessionBatches",
    "SessionMessages",
    "SessionPort",
    "SessionTransport",
    "ask",
    "open_session",
]
