"""The base class of all records, and the envelope of the records in the tree."""

from __future__ import annotations

from claude_wire.messages.base import null
from claude_wire.messages.vocabulary import Family

__all__ = ["Entry", "Record"]


class Record(Family, tag_field="type", kw_only=True, frozen=True):
    """A line of a transcript. ``Decoder(Record)`` decodes them. A line of an unknown type is an ``UnknownMessage``.

    Field names are those on disk, camelCase. A new type is one subclass: with its tag and, for a type that has
    subtypes, with the constant of its ``subtype``.
    """

    sessionId: str | None = None


class Entry(Record, kw_only=True, frozen=True):
    """A record of the tree, with the envelope.

    ``parentUuid`` names the previous record; it is null for a root. ``isSidechain`` is true in the file of a subagent,
    whose id is ``agentId``. ``timestamp`` is ISO 8601; it may go back from line to line. ``slug`` names the session's
    plan.
    """

    uuid: str
    parentUuid: str | None = null()
    isSidechain: bool | None = None
    agentId: str | None = None
    timestamp: str | None = None
    # one of external
    userType: str | None = None
    # one of sdk-cli, sdk-py, sdk-ts, cli
    entrypoint: str | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    slug: str | None = None
