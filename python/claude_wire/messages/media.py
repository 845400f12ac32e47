"""DOC module media"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire
from claude_wire.messages.text import CacheControl, CitationsConfig, TextBlock
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "Base64ImageSource",
    "Base64PdfSource",
    "ContentBlockSource",
    "DocumentBlock",
    "DocumentSource",
    "FileDocumentSource",
    "FileImageSource",
    "ImageBlock",
    "ImageSource",
    "ImageTransformations",
    "PlainTextSource",
    "SearchResultBlock",
    "SourceContent",
    "UrlImageSource",
    "UrlPdfSource",
]


class Base64ImageSource(Wire, tag_field="type", tag="base64", frozen=True):
    """DOC Base64ImageSource"""

    # one of image/jpeg, image/png, image/gif, image/webp
    media_type: str
    data: str


class UrlImageSource(Wire, tag_field="type", tag="url", frozen=True):
    """DOC UrlImageSource"""

    url: str


class FileImageSource(Wire, tag_field="type", tag="file", frozen=True):
    """DOC FileImageSource"""

    file_id: str


KnownImageSource: TypeAlias = Base64ImageSource | UrlImageSource | FileImageSource
if TYPE_CHECKING:
    ImageSource: TypeAlias = KnownImageSource | UnknownObject
else:
    ImageSource = KnownImageSource


class ImageTransformations(Wire, frozen=True):
    """DOC ImageTransformations"""

    # one of error, downsize
    oversized_image: str | None = None


class ImageBlock(Wire, tag_field="type", tag="image", frozen=True):
    """DOC ImageBlock"""

    source: ImageSource
    cache_control: CacheControl | None | UnsetType = UNSET
    transformations: ImageTransformations | None | UnsetType = UNSET


class Base64PdfSource(Wire, tag_field="type", tag="base64", frozen=True):
    """DOC Base64PdfSource"""

    media_type: str
    data: str


class PlainTextSource(Wire, tag_field="type", tag="text", frozen=True):
    """DOC PlainTextSource"""

    data: str
    media_type: str


class ContentBlockSource(Wire, tag_field="type", tag="content", frozen=True):
    """DOC ContentBlockSource"""

    content: str | list[SourceContent]


class UrlPdfSource(Wire, tag_field="type", tag="url", frozen=True):
    """DOC UrlPdfSource"""

    url: str


class FileDocumentSource(Wire, tag_field="type", tag="file", frozen=True):
    """DOC FileDocumentSource"""

    file_id: str


KnownDocumentSource: TypeAlias = (
    Base64PdfSource | PlainTextSource | ContentBlockSource | UrlPdfSource | FileDocumentSource
)
if TYPE_CHECKING:
    DocumentSource: TypeAlias = KnownDocumentSource | UnknownObject
else:
    DocumentSource = KnownDocumentSource


class DocumentBlock(Wire, tag_field="type", tag="document", kw_only=True, frozen=True):
    """DOC DocumentBlock"""

    source: DocumentSource
    cache_control: CacheControl | None | UnsetType = UNSET
    citations: CitationsConfig | None | UnsetType = UNSET
    context: str | None | UnsetType = UNSET
    title: str | None | UnsetType = UNSET


class SearchResultBlock(Wire, tag_field="type", tag="search_result", kw_only=True, frozen=True):
    """DOC SearchResultBlock"""

    content: list[TextBlock]
    source: str
    title: str
    cache_control: CacheControl | None | UnsetType = UNSET
    citations: CitationsConfig | None = None


KnownSourceContent: TypeAlias = TextBlock | ImageBlock
if TYPE_CHECKING:
    SourceContent: TypeAlias = KnownSourceContent | UnknownObject
else:
    SourceContent = KnownSourceContent
