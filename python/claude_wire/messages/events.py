"""DOC module events"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire, null
from claude_wire.messages.api import (
    ApiMessage,
    Container,
    ContextManagementResponse,
    InputTransformation,
    RefusalStopDetails,
)
from claude_wire.messages.content import ContentBlock
from claude_wire.messages.text import Citation
from claude_wire.messages.unknown import UnknownDelta, UnknownEvent
from claude_wire.messages.usage import MessageDeltaUsage

__all__ = [
    "ApiErrorInfo",
    "CitationsDelta",
    "CompactionDelta",
    "ContentBlockDeltaEvent",
    "ContentBlockStartEvent",
    "ContentBlockStopEvent",
    "Delta",
    "ErrorEvent",
    "Event",
    "InputJsonDelta",
    "MessageDelta",
    "MessageDeltaEvent",
    "MessageStartEvent",
    "MessageStopEvent",
    "PingEvent",
    "SignatureDelta",
    "TextDelta",
    "ThinkingDelta",
]


class TextDelta(Wire, tag_field="type", tag="text_delta", frozen=True):
    """DOC TextDelta"""

    text: str


class InputJsonDelta(Wire, tag_field="type", tag="input_json_delta", frozen=True):
    """DOC InputJsonDelta"""

    partial_json: str


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta", frozen=True):
    """DOC ThinkingDelta"""

    thinking: str
    estimated_tokens: int | None | UnsetType = UNSET


class SignatureDelta(Wire, tag_field="type", tag="signature_delta", frozen=True):
    """DOC SignatureDelta"""

    signature: str


class CitationsDelta(Wire, tag_field="type", tag="citations_delta", frozen=True):
    """DOC CitationsDelta"""

    citation: Citation


class CompactionDelta(Wire, tag_field="type", tag="compaction_delta", frozen=True):
    """DOC CompactionDelta"""

    content: str | None | UnsetType = UNSET
    encrypted_content: str | None | UnsetType = UNSET


KnownDelta: TypeAlias = TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | CompactionDelta
if TYPE_CHECKING:
    Delta: TypeAlias = KnownDelta | UnknownDelta
else:
    Delta = KnownDelta


class MessageStartEvent(Wire, tag_field="type", tag="message_start", frozen=True):
    """DOC MessageStartEvent"""

    message: ApiMessage


class ContentBlockStartEvent(Wire, tag_field="type", tag="content_block_start", frozen=True):
    """DOC ContentBlockStartEvent"""

    index: int
    content_block: ContentBlock


class ContentBlockDeltaEvent(Wire, tag_field="type", tag="content_block_delta", frozen=True):
    """DOC ContentBlockDeltaEvent"""

    index: int
    delta: Delta


class ContentBlockStopEvent(Wire, tag_field="type", tag="content_block_stop", frozen=True):
    """DOC ContentBlockStopEvent"""

    index: int


class MessageDelta(Wire, kw_only=True, frozen=True):
    """DOC MessageDelta"""

    container: Container | None = null()
    stop_details: RefusalStopDetails | None = null()
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    stop_sequence: str | None = null()


class MessageDeltaEvent(Wire, tag_field="type", tag="message_delta", kw_only=True, frozen=True):
    """DOC MessageDeltaEvent"""

    context_management: ContextManagementResponse | None | UnsetType = UNSET
    delta: MessageDelta
    usage: MessageDeltaUsage
    input_transformations: list[InputTransformation] | None | UnsetType = UNSET


class MessageStopEvent(Wire, tag_field="type", tag="message_stop", frozen=True):
    """DOC MessageStopEvent"""


class PingEvent(Wire, tag_field="type", tag="ping", frozen=True):
    """DOC PingEvent"""


class ApiErrorInfo(Wire, frozen=True):
    """DOC ApiErrorInfo"""

    type: str | None = None
    message: str | None = None


class ErrorEvent(Wire, tag_field="type", tag="error", frozen=True):
    """DOC ErrorEvent"""

    error: ApiErrorInfo
    request_id: str | None | UnsetType = UNSET


KnownEvent: TypeAlias = (
    MessageStartEvent
    | ContentBlockStartEvent
    | ContentBlockDeltaEvent
    | ContentBlockStopEvent
    | MessageDeltaEvent
    | MessageStopEvent
    | PingEvent
    | ErrorEvent
)
if TYPE_CHECKING:
    Event: TypeAlias = KnownEvent | UnknownEvent
else:
    Event = KnownEvent
