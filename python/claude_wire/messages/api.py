"""DOC module api"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire, null
from claude_wire.messages.content import ContentBlock
from claude_wire.messages.unknown import UnknownObject
from claude_wire.messages.usage import Usage

__all__ = [
    "ApiMessage",
    "CacheMissMessagesChanged",
    "CacheMissModelChanged",
    "CacheMissPreviousMessageNotFound",
    "CacheMissReason",
    "CacheMissSystemChanged",
    "CacheMissToolsChanged",
    "CacheMissUnavailable",
    "ClearThinkingEdit",
    "ClearToolUsesEdit",
    "Container",
    "ContainerSkill",
    "ContextEdit",
    "ContextManagementResponse",
    "Diagnostics",
    "InputTransformation",
    "MessageParam",
    "RefusalStopDetails",
    "ThinkingDroppedInputTransformation",
    "ThinkingMismatchAllowedInputTransformation",
]


class Container(Wire, frozen=True):
    """DOC Container"""

    id: str
    expires_at: str
    skills: list[ContainerSkill] | None | UnsetType = UNSET


class ContainerSkill(Wire, frozen=True):
    """DOC ContainerSkill"""

    skill_id: str
    # one of anthropic, custom
    type: str
    version: str


class ClearToolUsesEdit(Wire, tag_field="type", tag="clear_tool_uses_20250919", frozen=True):
    """DOC ClearToolUsesEdit"""

    cleared_input_tokens: int
    cleared_tool_uses: int


class ClearThinkingEdit(Wire, tag_field="type", tag="clear_thinking_20251015", frozen=True):
    """DOC ClearThinkingEdit"""

    cleared_input_tokens: int
    cleared_thinking_turns: int


KnownContextEdit: TypeAlias = ClearToolUsesEdit | ClearThinkingEdit
if TYPE_CHECKING:
    ContextEdit: TypeAlias = KnownContextEdit | UnknownObject
else:
    ContextEdit = KnownContextEdit


class ContextManagementResponse(Wire, frozen=True):
    """DOC ContextManagementResponse"""

    applied_edits: list[ContextEdit]


class CacheMissModelChanged(Wire, tag_field="type", tag="model_changed", frozen=True):
    """DOC CacheMissModelChanged"""

    cache_missed_input_tokens: int


class CacheMissSystemChanged(Wire, tag_field="type", tag="system_changed", frozen=True):
    """DOC CacheMissSystemChanged"""

    cache_missed_input_tokens: int


class CacheMissToolsChanged(Wire, tag_field="type", tag="tools_changed", frozen=True):
    """DOC CacheMissToolsChanged"""

    cache_missed_input_tokens: int


class CacheMissMessagesChanged(Wire, tag_field="type", tag="messages_changed", frozen=True):
    """DOC CacheMissMessagesChanged"""

    cache_missed_input_tokens: int


class CacheMissPreviousMessageNotFound(Wire, tag_field="type", tag="previous_message_not_found", frozen=True):
    """DOC CacheMissPreviousMessageNotFound"""


class CacheMissUnavailable(Wire, tag_field="type", tag="unavailable", frozen=True):
    """DOC CacheMissUnavailable"""


KnownCacheMissReason: TypeAlias = (
    CacheMissModelChanged
    | CacheMissSystemChanged
    | CacheMissToolsChanged
    | CacheMissMessagesChanged
    | CacheMissPreviousMessageNotFound
    | CacheMissUnavailable
)
if TYPE_CHECKING:
    CacheMissReason: TypeAlias = KnownCacheMissReason | UnknownObject
else:
    CacheMissReason = KnownCacheMissReason


class Diagnostics(Wire, frozen=True):
    """DOC Diagnostics"""

    cache_miss_reason: CacheMissReason | None | UnsetType = UNSET


class RefusalStopDetails(Wire, tag_field="type", tag="refusal", kw_only=True, frozen=True):
    """DOC RefusalStopDetails"""

    # one of cyber, bio, frontier_llm, reasoning_extraction, general_harms
    category: str | None | UnsetType = UNSET
    explanation: str | None | UnsetType = UNSET
    fallback_credit_token: str | None | UnsetType = UNSET
    fallback_has_prefill_claim: bool | None | UnsetType = UNSET
    recommended_model: str | None | UnsetType = UNSET


class ThinkingDroppedInputTransformation(Wire, tag_field="type", tag="thinking_dropped", frozen=True):
    """DOC ThinkingDroppedInputTransformation"""

    path: str
    # one of model_binding_mismatch, prefix_binding_mismatch, organization_binding_mismatch, end_user_binding_mismatch
    reason: str


class ThinkingMismatchAllowedInputTransformation(Wire, tag_field="type", tag="thinking_mismatch_allowed", frozen=True):
    """DOC ThinkingMismatchAllowedInputTransformation"""

    path: str
    # one of model_binding_mismatch, prefix_binding_mismatch, organization_binding_mismatch, end_user_binding_mismatch
    reason: str


KnownInputTransformation: TypeAlias = ThinkingDroppedInputTransformation | ThinkingMismatchAllowedInputTransformation
if TYPE_CHECKING:
    InputTransformation: TypeAlias = KnownInputTransformation | UnknownObject
else:
    InputTransformation = KnownInputTransformation


class ApiMessage(Wire, kw_only=True, frozen=True):
    """DOC ApiMessage"""

    role: str | None = None
    content: list[ContentBlock]
    model: str | None = None
    id: str | None = None
    type: str | None = None
    container: Container | None | UnsetType = UNSET
    context_management: ContextManagementResponse | None | UnsetType = UNSET
    diagnostics: Diagnostics | None | UnsetType = UNSET
    stop_details: RefusalStopDetails | None | UnsetType = UNSET
    # one of end_turn, max_tokens, stop_sequence, tool_use, pause_turn, compaction, refusal,
    # model_context_window_exceeded
    stop_reason: str | None = null()
    stop_sequence: str | None = null()
    usage: Usage | None = None
    input_transformations: list[InputTransformation] | None | UnsetType = UNSET
    error: str | None = None


class MessageParam(Wire, frozen=True):
    """DOC MessageParam"""

    # one of user, assistant, system
    role: str
    content: str | list[ContentBlock]
