"""The API's stream events and their deltas. A :class:`StreamEvent` line contains one event."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire, null
from claude_wire.messages.blocks.content import ContentBlock
from claude_wire.messages.blocks.text import Citation
from claude_wire.messages.conversation.api import (
    ApiMessage,
    Container,
    ContextManagementResponse,
    InputTransformation,
    RefusalStopDetails,
)
from claude_wire.messages.conversation.usage import MessageDeltaUsage
from claude_wire.messages.unknown import OrUnknownDelta, OrUnknownEvent, OrUnknownObject


class TextDelta(Wire, tag_field="type", tag="text_delta", frozen=True):
    """The next piece of a text block."""

    text: str


class InputJsonDelta(Wire, tag_field="type", tag="input_json_delta", frozen=True):
    """The next piece of a tool call's input. Join the block's pieces, then parse the result. No pieces mean ``{}``."""

    partial_json: str
    """A piece of JSON text, such as ``{"comm``."""


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta", frozen=True):
    """The next piece of a thinking block."""

    thinking: str
    """The text; empty if the thinking is not shown."""
    estimated_tokens: int | UnsetType | None = UNSET
    """An estimate of the new thinking tokens, for a progress display; null if there is none."""


class SignatureDelta(Wire, tag_field="type", tag="signature_delta", frozen=True):
    """The signature of a thinking block, at its end."""

    signature: str
    """Opaque; send it back unchanged."""


class CitationsDelta(Wire, tag_field="type", tag="citations_delta", frozen=True):
    """One more citation for a text block."""

    citation: Citation


class CompactionDelta(Wire, tag_field="type", tag="compaction_delta", frozen=True):
    """The content of a compaction block."""

    content: str | UnsetType | None = UNSET
    """The summary; null if the API could not make one."""
    encrypted_content: str | UnsetType | None = UNSET
    """Opaque; send it back unchanged."""


#: What a :class:`ContentBlockDeltaEvent` adds to its block.
Delta: TypeAlias = (
    TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | CompactionDelta | OrUnknownDelta
)


class MessageStartEvent(Wire, tag_field="type", tag="message_start", frozen=True):
    """A message of the model begins."""

    message: ApiMessage
    """The message, with an empty ``content`` and the token counts so far."""


class ContentBlockStartEvent(Wire, tag_field="type", tag="content_block_start", frozen=True):
    """Block ``index`` of the message begins. The block is empty, and deltas fill it.

    A block of a kind without deltas, such as redacted thinking or a server tool's result, is complete.
    """

    index: int
    """The 0-based index of the block in the message's ``content``."""
    content_block: ContentBlock
    """The block: empty, or complete if its kind has no deltas."""


class ContentBlockDeltaEvent(Wire, tag_field="type", tag="content_block_delta", frozen=True):
    """The next piece of block ``index``."""

    index: int
    """The 0-based index of the block in the message's ``content``."""
    delta: Delta
    """The piece to append to the block."""


class ContentBlockStopEvent(Wire, tag_field="type", tag="content_block_stop", frozen=True):
    """Block ``index`` is complete. The ``assistant`` line with the finished block arrives just before this event."""

    index: int
    """The 0-based index of the block in the message's ``content``."""


class MessageDelta(Wire, kw_only=True, frozen=True):
    """The fields of a message that the API knows only at its end."""

    container: Container | UnsetType | None = UNSET
    """The container of the API's code execution; null if none ran."""
    stop_details: RefusalStopDetails | OrUnknownObject | UnsetType | None = UNSET
    """Why the model refused; null with another ``stop_reason``."""
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    """Why the model stopped; in a streamed answer, only this field and the result have the reason."""
    stop_sequence: str | None = null()
    """The stop sequence that ended the answer; null if another reason ended it."""


class MessageDeltaEvent(Wire, tag_field="type", tag="message_delta", kw_only=True, frozen=True):
    """Adds the stop reason and the final token counts, before the message ends."""

    context_management: ContextManagementResponse | UnsetType | None = UNSET
    """The edits that the API made to the context of the request; null if the API made no edits."""
    delta: MessageDelta
    """The fields that the API knows only now."""
    usage: MessageDeltaUsage
    """The tokens of the whole message: totals, not increments."""
    input_transformations: list[InputTransformation] | UnsetType | None = UNSET
    """Replaces the list in ``message_start``, if a fallback model took over during the stream."""


class MessageStopEvent(Wire, tag_field="type", tag="message_stop", frozen=True):
    """The message is complete."""


class PingEvent(Wire, tag_field="type", tag="ping", frozen=True):
    """Keeps the stream alive. It has no content."""


class ApiErrorInfo(Wire, frozen=True):
    """An error of the API."""

    type: str | None = None
    """The kind of error, such as ``overloaded_error``."""
    message: str | None = None
    """The error as human-readable text."""


class ErrorEvent(Wire, tag_field="type", tag="error", frozen=True):
    """The stream ended with an error of the API.

    The CLI rarely writes this event. It writes an :class:`ApiRetryMessage` or a result instead.
    """

    error: ApiErrorInfo
    request_id: str | UnsetType | None = UNSET
    """The API's id of the request."""


#: A stream event of the Messages API.
Event: TypeAlias = (
    MessageStartEvent
    | ContentBlockStartEvent
    | ContentBlockDeltaEvent
    | ContentBlockStopEvent
    | MessageDeltaEvent
    | MessageStopEvent
    | PingEvent
    | ErrorEvent
    | OrUnknownEvent
)
