"""The events of a streamed model message, and their deltas.

They are the API's own. A :class:`StreamEvent` line contains one event.
"""

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
    """The next piece of a tool call's input, as JSON text.

    A piece is not valid JSON by itself: join all pieces of the block, then parse. No piece at all means ``{}``.
    """

    partial_json: str
    """The piece of text; not valid JSON by itself."""


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta", frozen=True):
    """The next piece of a thinking block."""

    thinking: str
    """The piece of text; empty if the thinking is not shown."""
    estimated_tokens: int | UnsetType | None = UNSET
    """About how many more tokens were thought, for a progress display; null when there is no count."""


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
    """The summary; null if it failed."""
    encrypted_content: str | UnsetType | None = UNSET
    """Opaque; send it back unchanged."""


#: The addition that one content block delta makes.
Delta: TypeAlias = (
    TextDelta | InputJsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | CompactionDelta | OrUnknownDelta
)


class MessageStartEvent(Wire, tag_field="type", tag="message_start", frozen=True):
    """A model message begins; its ``content`` is empty and its usage is not final."""

    message: ApiMessage
    """The message with an empty ``content`` and the tokens known so far."""


class ContentBlockStartEvent(Wire, tag_field="type", tag="content_block_start", frozen=True):
    """Block ``index`` of the message begins, still empty; deltas fill it.

    Blocks that have no deltas, such as redacted thinking and server tool results, are complete here.
    """

    index: int
    """The index of the block in ``content`` of the message, from 0."""
    content_block: ContentBlock
    """The block, empty unless it is of a kind that has no deltas."""


class ContentBlockDeltaEvent(Wire, tag_field="type", tag="content_block_delta", frozen=True):
    """One more piece of block ``index``."""

    index: int
    """The index of the block in ``content`` of the message, from 0."""
    delta: Delta
    """The piece to append to the block."""


class ContentBlockStopEvent(Wire, tag_field="type", tag="content_block_stop", frozen=True):
    """Block ``index`` is complete.

    The ``assistant`` line with the finished block comes just before this event, not after it.
    """

    index: int
    """The index of the block in ``content`` of the message, from 0."""


class MessageDelta(Wire, kw_only=True, frozen=True):
    """How the message ended: why it stopped and at which stop sequence."""

    container: Container | UnsetType | None = UNSET
    """The container of the API's code execution; null if none ran."""
    stop_details: RefusalStopDetails | OrUnknownObject | UnsetType | None = UNSET
    """Why the model refused; null with another ``stop_reason``."""
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    """Why the model stopped. In a streamed answer, nothing else has it before the result. New values may come."""
    stop_sequence: str | None = null()
    """The stop sequence that ended the answer; null if another reason ended it."""


class MessageDeltaEvent(Wire, tag_field="type", tag="message_delta", kw_only=True, frozen=True):
    """The message is about to end. The event has its stop reason and final token counts."""

    context_management: ContextManagementResponse | UnsetType | None = UNSET
    """The edits that the API made to the context of the request; null if it made none."""
    delta: MessageDelta
    """The fields of the message that are known only now."""
    usage: MessageDeltaUsage
    """The tokens of the whole message: totals, not increments."""
    input_transformations: list[InputTransformation] | UnsetType | None = UNSET
    """Replaces the list in the message start; only if a fallback model took over during the stream."""


class MessageStopEvent(Wire, tag_field="type", tag="message_stop", frozen=True):
    """The message is complete."""


class PingEvent(Wire, tag_field="type", tag="ping", frozen=True):
    """Keeps the stream alive. It has no content."""


class ApiErrorInfo(Wire, frozen=True):
    """An error of the API."""

    type: str | None = None
    """The kind of error, such as ``overloaded_error``."""
    message: str | None = None
    """The error as text for people."""


class ErrorEvent(Wire, tag_field="type", tag="error", frozen=True):
    """The stream broke off with an error of the API.

    Rarely seen on the CLI's output, which mostly turns such errors into :class:`ApiRetryMessage` or a result.
    """

    error: ApiErrorInfo
    request_id: str | UnsetType | None = UNSET
    """The API's id of the request."""


#: An event of the Messages API's stream.
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
