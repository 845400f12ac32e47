"""Text blocks with their citations, and the cache mark that any input block may have."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.unknown import OrUnknownObject


class CacheControl(Wire, tag_field="type", tag="ephemeral", frozen=True):
    """Marks the end of a prompt prefix that the API is to cache.

    Only blocks sent to the API have it. ``ttl`` is ``5m`` or ``1h``; without it the API takes five minutes.
    """

    # one of 5m, 1h
    ttl: str | None = None


class CitationsConfig(Wire, frozen=True):
    """Whether the model may cite from this document or search result."""

    enabled: bool | None = None


class CitationCharLocation(Wire, tag_field="type", tag="char_location", kw_only=True, frozen=True):
    """Points to a span of characters in a plain-text document.

    ``start_char_index`` counts from 0 and ``end_char_index`` is exclusive. ``document_index`` counts from 0 over the
    documents of the request; ``document_title`` and ``file_id`` are null when the document has none.
    """

    cited_text: str
    document_index: int
    document_title: str | UnsetType | None = UNSET
    end_char_index: int
    file_id: str | UnsetType | None = UNSET
    start_char_index: int


class CitationPageLocation(Wire, tag_field="type", tag="page_location", kw_only=True, frozen=True):
    """Points to a range of pages in a PDF document.

    Pages count from 1, and ``end_page_number`` is exclusive: a quote from page 3 runs from 3 to 4.
    """

    cited_text: str
    document_index: int
    document_title: str | UnsetType | None = UNSET
    end_page_number: int
    file_id: str | UnsetType | None = UNSET
    start_page_number: int


class CitationContentBlockLocation(Wire, tag_field="type", tag="content_block_location", kw_only=True, frozen=True):
    """Points to a range of blocks in a document that was given as content blocks.

    Block indices count from 0, and ``end_block_index`` is exclusive.
    """

    cited_text: str
    document_index: int
    document_title: str | UnsetType | None = UNSET
    end_block_index: int
    file_id: str | UnsetType | None = UNSET
    start_block_index: int


class CitationWebSearchResultLocation(
    Wire, tag_field="type", tag="web_search_result_location", kw_only=True, frozen=True
):
    """Points to a page that the API's web search returned.

    ``encrypted_index`` is opaque, and must be sent back unchanged with the conversation.
    """

    cited_text: str
    encrypted_index: str
    title: str | UnsetType | None = UNSET
    url: str


class CitationSearchResultLocation(Wire, tag_field="type", tag="search_result_location", kw_only=True, frozen=True):
    """Points to a range of blocks in a ``search_result`` block of the request.

    All indices count from 0, and ``end_block_index`` is exclusive. ``search_result_index`` counts search result
    blocks only: not documents, and not the results of the API's own web search.
    """

    cited_text: str
    end_block_index: int
    search_result_index: int
    source: str
    start_block_index: int
    title: str | UnsetType | None = UNSET


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
    """Plain text, written by the model, by the user or by a tool.

    ``citations`` is null or absent when nothing was cited; the API sends null, most other writers leave the key out.
    In a streamed block start ``text`` is empty and text deltas fill it.
    """

    text: str
    """The text."""
    citations: list[Citation] | UnsetType | None = UNSET
    """The sources of the text, if any are cited."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
