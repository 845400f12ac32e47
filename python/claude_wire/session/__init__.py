"""A live session with the CLI: the host's side of the protocol."""

from __future__ import annotations

from claude_wire.control.guards import Guard
from claude_wire.session.callbacks import HookMatcher, McpServer
from claude_wire.session.iterators import SessionBatches, SessionMessages
from claude_wire.session.open import ask, open_session
from claude_wire.session.session import Session

__all__ = ["Guard", "HookMatcher", "McpServer", "Session", "SessionBatches", "SessionMessages", "ask", "open_session"]
