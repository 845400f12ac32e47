"""The base class of all records, and the envelope of the records in the tree."""

from __future__ import annotations

from claude_wire.messages.base import null
from claude_wire.messages.vocabulary import Family

__all__ = ["Entry", "Record"]


class Record(Family, tag_field="type", kw_only=True, frozen=True):
    """A line of a transcript. ``Decoder(Record)`` decodes lines to records, and unknown types to ``UnknownMessage``.

    Field names are those on disk, in camelCase. To add a type, write a subclass with its tag and, if the type has
    subtypes, with the constant of its ``subtype``.
    """

    sessionId: str | None = None


class Entry(Record, kw_only=True, frozen=True):
    """A record of the tree, with the envelope.

    ``parentUuid`` is the uuid of the previous record in the conversation; null for a root. In the file of a subagent,
    ``isSidechain`` is true, and ``agentId`` is the id of the subagent. ``timestamp`` is ISO 8601; the timestamps of
    lines need not ascend. ``slug`` is the name of the session's plan.
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
