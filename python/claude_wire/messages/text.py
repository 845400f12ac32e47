"""DOC module text"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "CacheControl",
    "Citation",
    "CitationCharLocation",
    "CitationContentBlockLocation",
    "CitationPageLocation",
    "CitationSearchResultLocation",
    "CitationWebSearchResultLocation",
    "CitationsConfig",
    "TextBlock",
]


class CacheControl(Wire, tag_field="type", tag="ephemeral", frozen=True):
    """DOC CacheControl"""

    # one of 5m, 1h
    ttl: str | None = None


class CitationsConfig(Wire, frozen=True):
    """DOC CitationsConfig"""

    enabled: bool | None = None


class CitationCharLocation(Wire, tag_field="type", tag="char_location", kw_only=True, frozen=True):
    """DOC CitationCharLocation"""

    cited_text: str
    document_index: int
    document_title: str | None | UnsetType = UNSET
    end_char_index: int
    file_id: str | None | UnsetType = UNSET
    start_char_index: int


class CitationPageLocation(Wire, tag_field="type", tag="page_location", kw_only=True, frozen=True):
    """DOC CitationPageLocation"""

    cited_text: str
    document_index: int
    document_title: str | None | UnsetType = UNSET
    end_page_number: int
    file_id: str | None | UnsetType = UNSET
    start_page_number: int


class CitationContentBlockLocation(Wire, tag_field="type", tag="content_block_location", kw_only=True, frozen=True):
    """DOC CitationContentBlockLocation"""

    cited_text: str
    document_index: int
    document_title: str | None | UnsetType = UNSET
    end_block_index: int
    file_id: str | None | UnsetType = UNSET
    start_block_index: int


class CitationWebSearchResultLocation(
    Wire, tag_field="type", tag="web_search_result_location", kw_only=True, frozen=True
):
    """DOC CitationWebSearchResultLocation"""

    cited_text: str
    encrypted_index: str
    title: str | None | UnsetType = UNSET
    url: str


class CitationSearchResultLocation(Wire, tag_field="type", tag="search_result_location", kw_only=True, frozen=True):
    """DOC CitationSearchResultLocation"""

    cited_text: str
    end_block_index: int
    search_result_index: int
    source: str
    start_block_index: int
    title: str | None | UnsetType = UNSET


KnownCitation: TypeAlias = (
    CitationCharLocation
    | CitationPageLocation
    | CitationContentBlockLocation
    | CitationWebSearchResultLocation
    | CitationSearchResultLocation
)
if TYPE_CHECKING:
    Citation: TypeAlias = KnownCitation | UnknownObject
else:
    Citation = KnownCitation


class TextBlock(Wire, tag_field="type", tag="text", frozen=True):
    """DOC TextBlock"""

    text: str
    citations: list[Citation] | None | UnsetType = UNSET
    cache_control: CacheControl | None | UnsetType = UNSET
