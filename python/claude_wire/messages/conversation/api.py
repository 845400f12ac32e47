"""Objects of the Messages API: the ``message`` of ``assistant`` and ``user`` lines, and its parts."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire, null
from claude_wire.messages.blocks.content import ContentBlock
from claude_wire.messages.conversation.usage import Usage
from claude_wire.messages.unknown import OrUnknownObject


class Container(Wire, frozen=True):
    """The container in which the API ran code."""

    id: str
    expires_at: str
    """When the container expires, in ISO 8601."""
    skills: list[ContainerSkill] | UnsetType | None = UNSET
    """The skills in the container."""


class ContainerSkill(Wire, frozen=True):
    """A skill in the container."""

    skill_id: str
    # one of anthropic, custom
    type: str
    """``anthropic`` for a skill by Anthropic, ``custom`` for a user's skill."""
    version: str
    """The version of the skill; a version id for a custom skill."""


class ClearToolUsesEdit(Wire, tag_field="type", tag="clear_tool_uses_20250919", frozen=True):
    """The API dropped old tool calls from the context."""

    cleared_input_tokens: int
    """The input tokens that the edit saved."""
    cleared_tool_uses: int
    """The number of dropped tool calls."""


class ClearThinkingEdit(Wire, tag_field="type", tag="clear_thinking_20251015", frozen=True):
    """The API dropped old thinking from the context."""

    cleared_input_tokens: int
    """The input tokens that the edit saved."""
    cleared_thinking_turns: int
    """The number of turns whose thinking the API dropped."""


ContextEdit: TypeAlias = ClearToolUsesEdit | ClearThinkingEdit | OrUnknownObject


class ContextManagementResponse(Wire, frozen=True):
    """The API's edits of the request's context."""

    applied_edits: list[ContextEdit]
    """The edits, in order."""


class _CacheMiss(Wire, tag_field="type", frozen=True):
    cache_missed_input_tokens: int
    """An estimate of the tokens that a cache hit would have read."""


class CacheMissModelChanged(_CacheMiss, tag="model_changed", frozen=True):
    """The prompt cache missed because the model changed."""


class CacheMissSystemChanged(_CacheMiss, tag="system_changed", frozen=True):
    """The prompt cache missed because the system prompt changed."""


class CacheMissToolsChanged(_CacheMiss, tag="tools_changed", frozen=True):
    """The prompt cache missed because the tools changed."""


class CacheMissMessagesChanged(_CacheMiss, tag="messages_changed", frozen=True):
    """The prompt cache missed because earlier messages changed."""


class CacheMissPreviousMessageNotFound(Wire, tag_field="type", tag="previous_message_not_found", frozen=True):
    """The API does not know why the prompt cache missed, because it does not have the previous message."""


class CacheMissUnavailable(Wire, tag_field="type", tag="unavailable", frozen=True):
    """The API does not know why the prompt cache missed."""


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
    """Why the prompt cache missed. Present only if the request asked for diagnostics."""

    cache_miss_reason: CacheMissReason | UnsetType | None = UNSET
    """Why the prompt cache missed; null if the API did not know yet."""


class RefusalStopDetails(Wire, tag_field="type", tag="refusal", kw_only=True, frozen=True):
    """Why the model refused, with the ``stop_reason`` ``refusal``."""

    # one of cyber, bio, frontier_llm, reasoning_extraction, general_harms
    category: str | UnsetType | None = UNSET
    """The kind of possible harm, or null for a kind without a name."""
    explanation: str | UnsetType | None = UNSET
    """The reason as human-readable text; the wording may change; null if there is none."""
    fallback_credit_token: str | UnsetType | None = UNSET
    """An opaque code that pays for the lost cache if a fallback model retries within five minutes."""
    fallback_has_prefill_claim: bool | UnsetType | None = UNSET
    """Whether the retry may continue the refused answer's partial text."""
    recommended_model: str | UnsetType | None = UNSET
    """The fallback model for a retry, if the API itself could not retry; null otherwise."""


class _ThinkingTransformation(Wire, tag_field="type", frozen=True):
    path: str
    """The block's path in the request, such as ``messages.2.content.0``."""
    # one of model_binding_mismatch, prefix_binding_mismatch, organization_binding_mismatch, end_user_binding_mismatch
    reason: str
    """What differs: the model, the earlier conversation, the organization or the end user."""


class ThinkingDroppedInputTransformation(_ThinkingTransformation, tag="thinking_dropped", frozen=True):
    """The API dropped a thinking block that is bound to another model, conversation, organization or user."""


class ThinkingMismatchAllowedInputTransformation(_ThinkingTransformation, tag="thinking_mismatch_allowed", frozen=True):
    """The API kept a thinking block, although it is bound to another model, conversation, organization or user."""


InputTransformation: TypeAlias = (
    ThinkingDroppedInputTransformation | ThinkingMismatchAllowedInputTransformation | OrUnknownObject
)


class ApiMessage(Wire, kw_only=True, frozen=True):
    """A message of the model, as the API returned it. Each :class:`AssistantMessage` has one block of the message.

    Dialects omit all fields except ``content``.
    """

    id: str | None = None
    """The id of the answer, which all lines of the answer share."""
    type: str | None = None
    """``message``."""
    role: str | None = None
    """``assistant``."""
    model: str | None = None
    """The model that answered; ``<synthetic>`` if the CLI wrote the text, such as an API error."""
    content: list[ContentBlock]
    """The content blocks, such as text, thinking and tool calls."""
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    """Why the model stopped; null in an :class:`AssistantMessage` of a stream, even with the last block."""
    stop_sequence: str | None = null()
    """The stop sequence that ended the answer; null if another reason ended it."""
    usage: Usage | None = None
    """The token counts when the answer began."""
    context_management: ContextManagementResponse | UnsetType | None = UNSET
    """The API's edits of the request's context; null if there are none."""
    stop_details: RefusalStopDetails | OrUnknownObject | UnsetType | None = UNSET
    """Why the model refused; null with another ``stop_reason``."""
    container: Container | UnsetType | None = UNSET
    """The container of the API's code execution; null if none ran."""
    diagnostics: Diagnostics | UnsetType | None = UNSET
    """Why the prompt cache missed, if the request asked for it; null if the cache did not miss."""
    input_transformations: list[InputTransformation] | UnsetType | None = UNSET
    """The request's thinking blocks that are bound to something else: dropped, or kept anyway."""
    error: str | None = None
    """Why the API refused, in some dialects; read :attr:`AssistantMessage.error_reason` instead."""


class MessageParam(Wire, frozen=True):
    """A message to the model."""

    # one of user, assistant, system
    role: str | UnsetType
    """``user`` from a host, otherwise the CLI exits with an error; UNSET, if absent, counts as ``user``."""
    content: str | list[ContentBlock]
    """A string or a list of blocks."""
