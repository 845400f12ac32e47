"""Text blocks, their citations, and :class:`CacheControl`, which any block sent to the API may have."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import OrUnknownObject


class CacheControl(Wire, tag_field="type", tag="ephemeral", frozen=True):
    """Marks the end of a prompt prefix for the API to cache. Only blocks sent to the API have this mark."""

    # one of 5m, 1h
    ttl: str | None = None
    """How long the API keeps the prefix; None means five minutes."""


class CitationsConfig(Wire, frozen=True):
    """Whether the model may cite from this document or search result."""

    enabled: bool | None = None
    """True if the model may cite."""


class _DocumentCitation(Wire, tag_field="type", kw_only=True, frozen=True):
    cited_text: str
    """The quoted text."""
    document_index: int
    """The 0-based index of the document in the request."""
    document_title: str | UnsetType | None = UNSET
    """The title of the document; null if it has none."""


class CitationCharLocation(_DocumentCitation, tag="char_location", kw_only=True, frozen=True):
    """Points to a span of characters in a plain-text document."""

    end_char_index: int
    """The index after the last character."""
    file_id: str | UnsetType | None = UNSET
    """The file's id in the Files API; null if the document has none."""
    start_char_index: int
    """The 0-based index of the first character."""


class CitationPageLocation(_DocumentCitation, tag="page_location", kw_only=True, frozen=True):
    """Points to a range of pages in a PDF document."""

    end_page_number: int
    """The number after the last page: 4 for a quote from page 3."""
    file_id: str | UnsetType | None = UNSET
    """The file's id in the Files API; null if the document has none."""
    start_page_number: int
    """The 1-based number of the first page."""


class CitationContentBlockLocation(_DocumentCitation, tag="content_block_location", kw_only=True, frozen=True):
    """Points to a range of blocks in a document whose source is a list of content blocks."""

    end_block_index: int
    """The index after the last block."""
    file_id: str | UnsetType | None = UNSET
    """The file's id in the Files API; null if the document has none."""
    start_block_index: int
    """The 0-based index of the first block."""


class CitationWebSearchResultLocation(
    Wire, tag_field="type", tag="web_search_result_location", kw_only=True, frozen=True
):
    """Points to a page that the API's web search returned."""

    cited_text: str
    """The quoted text."""
    encrypted_index: str
    """Opaque; send it back unchanged."""
    title: str | UnsetType | None = UNSET
    """The title of the page; null if it has none."""
    url: str


class CitationSearchResultLocation(Wire, tag_field="type", tag="search_result_location", kw_only=True, frozen=True):
    """Points to a range of blocks in a ``search_result`` block of the request."""

    cited_text: str
    """The whole text of the blocks."""
    end_block_index: int
    """The index after the last block."""
    search_result_index: int
    """The 0-based index of the block among the request's ``search_result`` blocks."""
    source: str
    """The ``source`` of the block."""
    start_block_index: int
    """The 0-based index of the first block."""
    title: str | UnsetType | None = UNSET
    """The ``title`` of the block."""


#: The source of a passage of text.
Citation: TypeAlias = (
    CitationCharLocation
    | CitationPageLocation
    | CitationContentBlockLocation
    | CitationWebSearchResultLocation
    | CitationSearchResultLocation
    | OrUnknownObject
)


class TextBlock(Wire, tag_field="type", tag="text", frozen=True):
    """Plain text, written by the model, by the user or by a tool."""

    text: str
    """The text; empty in a streamed block start, before its deltas."""
    citations: list[Citation] | UnsetType | None = UNSET
    """The sources of the text; if there are none, null from the API and absent from most other writers."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
