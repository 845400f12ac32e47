"""The base of all ``system`` messages."""

from __future__ import annotations

from claude_wire.messages.base import MessageBase

__all__ = [
    "SystemMessage",
]


class SystemMessage(MessageBase, tag="system", kw_only=True, frozen=True):
    """The base of every ``system`` message; ``subtype`` says which it is, and each subtype has a class of its own."""

    subtype: str
    uuid: str | None = None
    session_id: str | None = None
