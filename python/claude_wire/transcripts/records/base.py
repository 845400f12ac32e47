"""The base class of all records, and the envelope of the records in the tree."""

from __future__ import annotations

from claude_wire.messages.base import null
from claude_wire.messages.vocabulary import Family

__all__ = ["Entry", "Record"]


class Record(Family, tag_field="type", kw_only=True, frozen=True):
    """A line of a transcript. ``Decoder(Record)`` decodes lines to records, and unknown types to ``UnknownMessage``.

    Fields have their names on disk, in camelCase. To add a type, write a subclass with its tag and, if the type has
    subtypes, a constant ``subtype``.
    """

    sessionId: str | None = None


class Entry(Record, kw_only=True, frozen=True):
    """A record of the tree, with the envelope."""

    uuid: str
    """The record's id."""
    parentUuid: str | None = null()
    """The uuid of the previous record in the conversation; null for a root."""
    isSidechain: bool | None = None
    """True if a subagent wrote the record."""
    agentId: str | None = None
    """The subagent's id; None in the main conversation."""
    timestamp: str | None = None
    """When the record was written, in ISO 8601. A later line may have an earlier time."""
    # one of external
    userType: str | None = None
    """The kind of user."""
    # one of sdk-cli, sdk-py, sdk-ts, cli
    entrypoint: str | None = None
    """The program that started the CLI: a shell (``cli``, ``sdk-cli``) or one of the SDKs."""
    cwd: str | None = None
    """The working directory, which can change within a file."""
    version: str | None = None
    """The CLI's version."""
    gitBranch: str | None = None
    """The git branch in ``cwd``; ``HEAD`` or empty if ``cwd`` is not on a branch."""
    slug: str | None = None
    """The name of the session's plan."""
