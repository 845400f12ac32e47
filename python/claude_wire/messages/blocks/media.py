"""Content blocks for images, documents and search results."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.blocks.text import CacheControl, CitationsConfig, TextBlock
from claude_wire.messages.unknown import OrUnknownBlock, OrUnknownObject


class Base64ImageSource(Wire, tag_field="type", tag="base64", frozen=True):
    """An image inside the message. The line can be megabytes long."""

    # one of image/jpeg, image/png, image/gif, image/webp
    media_type: str
    data: str
    """The bytes in base64."""


class UrlImageSource(Wire, tag_field="type", tag="url", frozen=True):
    """An image that the API fetches from a URL."""

    url: str
    """The address from which the API fetches the image."""


class FileImageSource(Wire, tag_field="type", tag="file", frozen=True):
    """An image uploaded earlier through the Files API."""

    file_id: str
    """The file's id in the Files API."""


#: The source of an image.
ImageSource: TypeAlias = Base64ImageSource | UrlImageSource | FileImageSource | OrUnknownObject


class ImageTransformations(Wire, frozen=True):
    """Tells the API to refuse or to downsize an image that is too large."""

    # one of error, downsize
    oversized_image: str | None = None
    """``error``: the API refuses the request; ``downsize``, the default: the API makes the image smaller."""


class ImageBlock(Wire, tag_field="type", tag="image", frozen=True):
    """An image for the model, in a prompt or in a tool result.

    The model never writes this block. If a tool reads an image file, this block is in ``content`` of the
    :class:`ToolResultBlock`.
    """

    source: ImageSource
    """The image itself, or where the API finds it."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
    transformations: ImageTransformations | UnsetType | None = UNSET
    """How the API handles an image that is too large."""


class Base64PdfSource(Wire, tag_field="type", tag="base64", frozen=True):
    """A PDF inside the message."""

    media_type: str
    """Always ``application/pdf``."""
    data: str
    """The bytes in base64."""


class PlainTextSource(Wire, tag_field="type", tag="text", frozen=True):
    """A document as plain text."""

    data: str
    """The text itself, not base64."""
    media_type: str
    """Always ``text/plain``."""


class ContentBlockSource(Wire, tag_field="type", tag="content", frozen=True):
    """A document as text or as a list of content blocks.

    Citations of a list point to whole blocks (:class:`CitationContentBlockLocation`).
    """

    content: str | list[SourceContent]


class UrlPdfSource(Wire, tag_field="type", tag="url", frozen=True):
    """A PDF that the API fetches from a URL."""

    url: str
    """The address from which the API fetches the document."""


class FileDocumentSource(Wire, tag_field="type", tag="file", frozen=True):
    """A document uploaded earlier through the Files API."""

    file_id: str
    """The file's id in the Files API."""


#: The source of a document.
DocumentSource: TypeAlias = (
    Base64PdfSource | PlainTextSource | ContentBlockSource | UrlPdfSource | FileDocumentSource | OrUnknownObject
)


class DocumentBlock(Wire, tag_field="type", tag="document", kw_only=True, frozen=True):
    """A document that the model can read and, if ``citations`` says so, cite.

    The model never writes this block. A :class:`WebFetchResultBlock` also contains one.
    """

    source: DocumentSource
    """The document itself, or where the API finds it."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
    citations: CitationsConfig | UnsetType | None = UNSET
    """Whether the model may cite from the document."""
    context: str | UnsetType | None = UNSET
    """Text about the document, which the model reads but cannot cite."""
    title: str | UnsetType | None = UNSET
    """The title, which citations repeat."""


class SearchResultBlock(Wire, tag_field="type", tag="search_result", kw_only=True, frozen=True):
    """A search result that the host or a tool gives to the model.

    The API's own web search returns :class:`WebSearchResultBlock` instead.
    """

    content: list[TextBlock | OrUnknownBlock]
    """The text of the result."""
    source: str
    """Where the result is from, such as a URL."""
    title: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""
    citations: CitationsConfig | None = None
    """Whether the model may cite from the result."""


SourceContent: TypeAlias = TextBlock | ImageBlock | OrUnknownObject
