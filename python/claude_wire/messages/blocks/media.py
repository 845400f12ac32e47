"""Content blocks for images, documents and search results."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.blocks.text import CacheControl, CitationsConfig, TextBlock
from claude_wire.messages.unknown import OrUnknownBlock, OrUnknownObject


class Base64ImageSource(Wire, tag_field="type", tag="base64", frozen=True):
    """Image bytes in the message itself, as base64 in ``data``.

    Such a source can make one line megabytes long.
    """

    # one of image/jpeg, image/png, image/gif, image/webp
    media_type: str
    data: str


class UrlImageSource(Wire, tag_field="type", tag="url", frozen=True):
    """An image that the API fetches from a URL."""

    url: str


class FileImageSource(Wire, tag_field="type", tag="file", frozen=True):
    """An image uploaded earlier through the Files API."""

    file_id: str


#: The source of an image.
ImageSource: TypeAlias = Base64ImageSource | UrlImageSource | FileImageSource | OrUnknownObject


class ImageTransformations(Wire, frozen=True):
    """Tells the API to refuse or to downsize an image that is too large."""

    # one of error, downsize
    oversized_image: str | None = None


class ImageBlock(Wire, tag_field="type", tag="image", frozen=True):
    """An image that the model is shown, in a prompt or inside a tool result.

    Models never write one. When a tool reads an image file, the block comes inside the ``content`` of the
    :class:`ToolResultBlock`.
    """

    source: ImageSource
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    transformations: ImageTransformations | UnsetType | None = UNSET


class Base64PdfSource(Wire, tag_field="type", tag="base64", frozen=True):
    """PDF bytes in the message itself, as base64 in ``data``."""

    media_type: str
    data: str


class PlainTextSource(Wire, tag_field="type", tag="text", frozen=True):
    """A document given as plain text; ``data`` is the text itself, not base64."""

    data: str
    media_type: str


class ContentBlockSource(Wire, tag_field="type", tag="content", frozen=True):
    """A document given as text or as a list of content blocks.

    With a list, citations point to whole blocks (:class:`CitationContentBlockLocation`).
    """

    content: str | list[SourceContent]


class UrlPdfSource(Wire, tag_field="type", tag="url", frozen=True):
    """A PDF that the API fetches from a URL."""

    url: str


class FileDocumentSource(Wire, tag_field="type", tag="file", frozen=True):
    """A document uploaded earlier through the Files API."""

    file_id: str


#: The source of a document.
DocumentSource: TypeAlias = (
    Base64PdfSource | PlainTextSource | ContentBlockSource | UrlPdfSource | FileDocumentSource | OrUnknownObject
)


class DocumentBlock(Wire, tag_field="type", tag="document", kw_only=True, frozen=True):
    """A document that the model is given to read and, if ``citations`` allows, to cite.

    Models never write one themselves; it also comes inside a :class:`WebFetchResultBlock`. ``context`` is text about
    the document that cannot be cited.
    """

    source: DocumentSource
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    citations: CitationsConfig | UnsetType | None = UNSET
    context: str | UnsetType | None = UNSET
    title: str | UnsetType | None = UNSET


class SearchResultBlock(Wire, tag_field="type", tag="search_result", kw_only=True, frozen=True):
    """One search result that the host or a tool hands to the model, with its source and title.

    Not to be confused with :class:`WebSearchResultBlock`, which the API's own web search returns.
    """

    content: list[TextBlock | OrUnknownBlock]
    source: str
    title: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    citations: CitationsConfig | None = None


SourceContent: TypeAlias = TextBlock | ImageBlock | OrUnknownObject
