"""Messages of the Messages API, which ``assistant`` and ``user`` lines contain."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire, null
from claude_wire.messages.blocks.content import ContentBlock
from claude_wire.messages.conversation.usage import Usage
from claude_wire.messages.unknown import OrUnknownObject


class Container(Wire, frozen=True):
    """The container in which the API's code execution ran."""

    id: str
    expires_at: str
    """When the container expires, in ISO 8601."""
    skills: list[ContainerSkill] | UnsetType | None = UNSET
    """The skills that are loaded into the container."""


class ContainerSkill(Wire, frozen=True):
    """A skill loaded into the container."""

    skill_id: str
    # one of anthropic, custom
    type: str
    """``anthropic`` for a skill of Anthropic, ``custom`` for one of a user."""
    version: str
    """The version that was loaded; a version id for a custom skill."""


class ClearToolUsesEdit(Wire, tag_field="type", tag="clear_tool_uses_20250919", frozen=True):
    """The API dropped old tool calls from the context."""

    cleared_input_tokens: int
    """The input tokens that the edit saved."""
    cleared_tool_uses: int
    """The number of tool calls that were dropped."""


class ClearThinkingEdit(Wire, tag_field="type", tag="clear_thinking_20251015", frozen=True):
    """The API dropped old thinking from the context."""

    cleared_input_tokens: int
    """The input tokens that the edit saved."""
    cleared_thinking_turns: int
    """The number of turns whose thinking was dropped."""


ContextEdit: TypeAlias = ClearToolUsesEdit | ClearThinkingEdit | OrUnknownObject


class ContextManagementResponse(Wire, frozen=True):
    """The edits that the API made to the context of this request."""

    applied_edits: list[ContextEdit]
    """The edits, in the order in which they were made."""


class _CacheMiss(Wire, tag_field="type", frozen=True):
    cache_missed_input_tokens: int
    """About how many tokens a hit would have read from the cache."""


class CacheMissModelChanged(_CacheMiss, tag="model_changed", frozen=True):
    """The prompt cache was missed because the model has changed."""


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
    """Why the prompt cache could not be used in full. Present only if the request asked for diagnostics."""

    cache_miss_reason: CacheMissReason | UnsetType | None = UNSET
    """Why the cache was missed; null if the API did not know yet when it answered."""


class RefusalStopDetails(Wire, tag_field="type", tag="refusal", kw_only=True, frozen=True):
    """Why the model refused. Comes with the ``stop_reason`` ``refusal``."""

    # one of cyber, bio, frontier_llm, reasoning_extraction, general_harms
    category: str | UnsetType | None = UNSET
    """The kind of harm that the request could do; null for another kind. New values may come."""
    explanation: str | UnsetType | None = UNSET
    """The reason as text for people; its wording may change. Null if there is none."""
    fallback_credit_token: str | UnsetType | None = UNSET
    """An opaque code that pays for the lost cache if a fallback model gets a retry within five minutes."""
    fallback_has_prefill_claim: bool | UnsetType | None = UNSET
    """Whether the retry may continue the partial text of the refused answer."""
    recommended_model: str | UnsetType | None = UNSET
    """The fallback model to retry with, if the API could not do it; null otherwise."""


class _ThinkingTransformation(Wire, tag_field="type", frozen=True):
    path: str
    """The place of the block in the request, such as ``messages.2.content.0``."""
    # one of model_binding_mismatch, prefix_binding_mismatch, organization_binding_mismatch, end_user_binding_mismatch
    reason: str
    """The check that failed: the model, the conversation before, the organization or the end user differs."""


class ThinkingDroppedInputTransformation(_ThinkingTransformation, tag="thinking_dropped", frozen=True):
    """The API dropped a thinking block of the request that is bound to something else."""


class ThinkingMismatchAllowedInputTransformation(_ThinkingTransformation, tag="thinking_mismatch_allowed", frozen=True):
    """The API kept a thinking block of the request although it is bound to another conversation."""


InputTransformation: TypeAlias = (
    ThinkingDroppedInputTransformation | ThinkingMismatchAllowedInputTransformation | OrUnknownObject
)


class ApiMessage(Wire, kw_only=True, frozen=True):
    """A message of the model, as the API returned it.

    Only ``content`` is always there: dialects leave out the rest. An :class:`AssistantMessage` has one finished block
    of the message at a time.
    """

    id: str | None = None
    """The id of the answer. Lines with one block each share it."""
    type: str | None = None
    """``message``."""
    role: str | None = None
    """``assistant``."""
    model: str | None = None
    """The model that answered; ``<synthetic>`` if the CLI wrote the text, such as an API error."""
    content: list[ContentBlock]
    """The blocks: texts, thinking, uses of tools."""
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    """Why the model stopped; null in an :class:`AssistantMessage` of a stream, even with the last block."""
    stop_sequence: str | None = null()
    """The stop sequence that ended the answer; null if another reason ended it."""
    usage: Usage | None = None
    """The tokens, as known when the answer began."""
    context_management: ContextManagementResponse | UnsetType | None = UNSET
    """The edits that the API made to the context of the request; null if it made none."""
    stop_details: RefusalStopDetails | OrUnknownObject | UnsetType | None = UNSET
    """Why the model refused; null with another ``stop_reason``."""
    container: Container | UnsetType | None = UNSET
    """The container of the API's code execution; null if none ran."""
    diagnostics: Diagnostics | UnsetType | None = UNSET
    """Why the prompt cache was missed, if the request asked for it; null if it was not missed."""
    input_transformations: list[InputTransformation] | UnsetType | None = UNSET
    """The thinking blocks of the request that the API dropped, or kept though they did not match."""
    error: str | None = None
    """Why the API refused, in dialects that put it here. Use :attr:`AssistantMessage.error_reason`."""


class MessageParam(Wire, frozen=True):
    """A message to the model: its role and its content."""

    # one of user, assistant, system
    role: str | UnsetType
    """The role. The CLI ends with an error unless the host sends ``user``. UNSET, if absent, counts as ``user``."""
    content: str | list[ContentBlock]
    """A string or a list of blocks, in both directions."""
