"""Messages of the Messages API, which ``assistant`` and ``user`` lines contain."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire, null
from claude_wire.messages.blocks.content import ContentBlock
from claude_wire.messages.conversation.usage import Usage
from claude_wire.messages.unknown import OrUnknownObject


class Container(Wire, frozen=True):
    """The container in which the API's code execution ran. ``expires_at`` is a time as text."""

    id: str
    expires_at: str
    skills: list[ContainerSkill] | UnsetType | None = UNSET


class ContainerSkill(Wire, frozen=True):
    """A skill loaded into the container, one of Anthropic's or a custom one."""

    skill_id: str
    # one of anthropic, custom
    type: str
    version: str


class ClearToolUsesEdit(Wire, tag_field="type", tag="clear_tool_uses_20250919", frozen=True):
    """The API dropped old tool calls from the context. The fields count the calls and the saved tokens."""

    cleared_input_tokens: int
    cleared_tool_uses: int


class ClearThinkingEdit(Wire, tag_field="type", tag="clear_thinking_20251015", frozen=True):
    """The API dropped old thinking from the context. The fields count the turns and the saved tokens."""

    cleared_input_tokens: int
    cleared_thinking_turns: int


ContextEdit: TypeAlias = ClearToolUsesEdit | ClearThinkingEdit | OrUnknownObject


class ContextManagementResponse(Wire, frozen=True):
    """The edits that the API made to the context of this request."""

    applied_edits: list[ContextEdit]


class _CacheMiss(Wire, tag_field="type", frozen=True):
    cache_missed_input_tokens: int


class CacheMissModelChanged(_CacheMiss, tag="model_changed", frozen=True):
    """The prompt cache was missed because the model has changed.

    ``cache_missed_input_tokens`` is about how many tokens a hit would have read. Other reasons have this field, too.
    """


class CacheMissSystemChanged(_CacheMiss, tag="system_changed", frozen=True):
    """The prompt cache was missed because the system prompt has changed."""


class CacheMissToolsChanged(_CacheMiss, tag="tools_changed", frozen=True):
    """The prompt cache was missed because the tools have changed."""


class CacheMissMessagesChanged(_CacheMiss, tag="messages_changed", frozen=True):
    """The prompt cache was missed because earlier messages were changed."""


class CacheMissPreviousMessageNotFound(Wire, tag_field="type", tag="previous_message_not_found", frozen=True):
    """The reason for the cache miss is not known, because the message to compare with is not known."""


class CacheMissUnavailable(Wire, tag_field="type", tag="unavailable", frozen=True):
    """The reason for the cache miss is not known."""


CacheMissReason: TypeAlias = (
    CacheMissModelChanged
    | CacheMissSystemChanged
    | CacheMissToolsChanged
    | CacheMissMessagesChanged
    | CacheMissPreviousMessageNotFound
    | CacheMissUnavailable
    | OrUnknownObject
)


class Diagnostics(Wire, frozen=True):
    """Why the prompt cache could not be used in full, when the request asked for it.

    ``cache_miss_reason`` is null if there is nothing to report yet.
    """

    cache_miss_reason: CacheMissReason | UnsetType | None = UNSET


class RefusalStopDetails(Wire, tag_field="type", tag="refusal", kw_only=True, frozen=True):
    """Why the model refused. Comes with the ``stop_reason`` ``refusal``.

    ``category`` may have values not known today, and every field may be null. ``fallback_credit_token`` is opaque and
    short-lived; ``recommended_model`` names a model worth a retry.
    """

    # one of cyber, bio, frontier_llm, reasoning_extraction, general_harms
    category: str | UnsetType | None = UNSET
    explanation: str | UnsetType | None = UNSET
    fallback_credit_token: str | UnsetType | None = UNSET
    fallback_has_prefill_claim: bool | UnsetType | None = UNSET
    recommended_model: str | UnsetType | None = UNSET


class _ThinkingTransformation(Wire, tag_field="type", frozen=True):
    path: str
    # one of model_binding_mismatch, prefix_binding_mismatch, organization_binding_mismatch, end_user_binding_mismatch
    reason: str


class ThinkingDroppedInputTransformation(_ThinkingTransformation, tag="thinking_dropped", frozen=True):
    """The API dropped a thinking block of the request that is bound to something else.

    ``path`` locates the block in the request; ``reason`` says what did not match: model, prefix, organization or end
    user.
    """


class ThinkingMismatchAllowedInputTransformation(_ThinkingTransformation, tag="thinking_mismatch_allowed", frozen=True):
    """The API kept a thinking block of the request although it is bound to something else.

    ``path`` and ``reason`` are those of :class:`ThinkingDroppedInputTransformation`.
    """


InputTransformation: TypeAlias = (
    ThinkingDroppedInputTransformation | ThinkingMismatchAllowedInputTransformation | OrUnknownObject
)


class ApiMessage(Wire, kw_only=True, frozen=True):
    """A message of the model, as the API returned it.

    Only ``content`` is always there: dialects leave out the rest. In an :class:`AssistantMessage` it holds one
    finished block at a time, several lines sharing ``id``; ``stop_reason`` then stays null, even with the last block.
    ``model`` is ``<synthetic>`` on messages that the CLI wrote itself, such as API errors and the output of commands.
    """

    id: str | None = None
    """The id of the answer. Lines with one block each share it."""
    type: str | None = None
    role: str | None = None
    """``assistant``."""
    model: str | None = None
    """The model that answered; ``<synthetic>`` if the CLI wrote the text."""
    content: list[ContentBlock]
    """The blocks: texts, thinking, uses of tools."""
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    """Why the model stopped; null in an :class:`AssistantMessage` of a stream."""
    stop_sequence: str | None = null()
    usage: Usage | None = None
    """The tokens, as known when the answer began."""
    context_management: ContextManagementResponse | UnsetType | None = UNSET
    stop_details: RefusalStopDetails | OrUnknownObject | UnsetType | None = UNSET
    container: Container | UnsetType | None = UNSET
    diagnostics: Diagnostics | UnsetType | None = UNSET
    input_transformations: list[InputTransformation] | UnsetType | None = UNSET
    error: str | None = None


class MessageParam(Wire, frozen=True):
    """A message to the model: its role and its content.

    ``content`` is a string or a list of blocks, in both directions. The CLI ends with an error when the host sends a
    ``role`` other than ``user``, or none. A received message without a ``role`` has ``UNSET``; it counts as the user's.
    """

    # one of user, assistant, system
    role: str | UnsetType
    content: str | list[ContentBlock]
