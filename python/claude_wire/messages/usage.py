"""DOC module usage"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Number, Wire, null
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "AdvisorMessageIterationUsage",
    "CacheCreation",
    "CompactionIterationUsage",
    "ContextMemoryFile",
    "ContextOverLimit",
    "ContextUsage",
    "ContextUsageAgent",
    "ContextUsageCategory",
    "ContextUsageMcpTool",
    "ContextUsageSkill",
    "DisplayName",
    "ExtraUsage",
    "FallbackCreditNotApplied",
    "FallbackCreditRedeemed",
    "FallbackCreditStatus",
    "FallbackCreditUsage",
    "FallbackMessageIterationUsage",
    "MessageDeltaUsage",
    "MessageIterationUsage",
    "ModelUsage",
    "OutputTokensDetails",
    "ServerToolUsage",
    "SessionUsage",
    "TaskUsage",
    "Usage",
    "UsageIteration",
    "UsageLimit",
    "UsageLimitScope",
    "UsageReport",
    "UsageReportLimits",
]


class CacheCreation(Wire, frozen=True):
    """DOC CacheCreation"""

    ephemeral_1h_input_tokens: int
    ephemeral_5m_input_tokens: int


class ServerToolUsage(Wire, frozen=True):
    """DOC ServerToolUsage"""

    web_fetch_requests: int
    web_search_requests: int


class OutputTokensDetails(Wire, frozen=True):
    """DOC OutputTokensDetails"""

    thinking_tokens: int


class FallbackCreditRedeemed(Wire, tag_field="type", tag="redeemed", frozen=True):
    """DOC FallbackCreditRedeemed"""


class FallbackCreditNotApplied(Wire, tag_field="type", tag="not_applied", frozen=True):
    """DOC FallbackCreditNotApplied"""

    # one of body_mismatch, continuation_excluded, continuation_only, expired, invalid_target_model, not_enabled,
    # reprice_unavailable, temporarily_unavailable, variant_fields_present, wrong_organization, wrong_platform,
    # wrong_workspace
    reason: str
    remove_to_redeem: list[str] | None | UnsetType = UNSET


KnownFallbackCreditStatus: TypeAlias = FallbackCreditRedeemed | FallbackCreditNotApplied
if TYPE_CHECKING:
    FallbackCreditStatus: TypeAlias = KnownFallbackCreditStatus | UnknownObject
else:
    FallbackCreditStatus = KnownFallbackCreditStatus


class FallbackCreditUsage(Wire, frozen=True):
    """DOC FallbackCreditUsage"""

    status: FallbackCreditStatus


class MessageIterationUsage(Wire, tag_field="type", tag="message", kw_only=True, frozen=True):
    """DOC MessageIterationUsage"""

    cache_creation: CacheCreation | None | UnsetType = UNSET
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    input_tokens: int
    model: str | None | UnsetType = UNSET
    output_tokens: int


class CompactionIterationUsage(Wire, tag_field="type", tag="compaction", kw_only=True, frozen=True):
    """DOC CompactionIterationUsage"""

    cache_creation: CacheCreation | None | UnsetType = UNSET
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    input_tokens: int
    output_tokens: int


class AdvisorMessageIterationUsage(Wire, tag_field="type", tag="advisor_message", kw_only=True, frozen=True):
    """DOC AdvisorMessageIterationUsage"""

    cache_creation: CacheCreation | None | UnsetType = UNSET
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    input_tokens: int
    model: str
    output_tokens: int


class FallbackMessageIterationUsage(Wire, tag_field="type", tag="fallback_message", kw_only=True, frozen=True):
    """DOC FallbackMessageIterationUsage"""

    cache_creation: CacheCreation | None | UnsetType = UNSET
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    input_tokens: int
    model: str
    output_tokens: int


KnownUsageIteration: TypeAlias = (
    MessageIterationUsage | CompactionIterationUsage | AdvisorMessageIterationUsage | FallbackMessageIterationUsage
)
if TYPE_CHECKING:
    UsageIteration: TypeAlias = KnownUsageIteration | UnknownObject
else:
    UsageIteration = KnownUsageIteration


class Usage(Wire, kw_only=True, frozen=True):
    """DOC Usage"""

    cache_creation: CacheCreation | None | UnsetType = UNSET
    cache_creation_input_tokens: int | None | UnsetType = UNSET
    cache_read_input_tokens: int | None | UnsetType = UNSET
    fallback_credit: FallbackCreditUsage | None | UnsetType = UNSET
    inference_geo: str | None | UnsetType = UNSET
    input_tokens: int | None = None
    iterations: list[UsageIteration] | None | UnsetType = UNSET
    output_tokens: int | None = None
    output_tokens_details: OutputTokensDetails | None | UnsetType = UNSET
    server_tool_use: ServerToolUsage | None | UnsetType = UNSET
    # one of standard, priority, batch
    service_tier: str | None | UnsetType = UNSET
    # one of standard, fast
    speed: str | None | UnsetType = UNSET


class MessageDeltaUsage(Wire, kw_only=True, frozen=True):
    """DOC MessageDeltaUsage"""

    cache_creation_input_tokens: int | None | UnsetType = UNSET
    cache_read_input_tokens: int | None | UnsetType = UNSET
    fallback_credit: FallbackCreditUsage | None | UnsetType = UNSET
    input_tokens: int | None | UnsetType = UNSET
    iterations: list[UsageIteration] | None | UnsetType = UNSET
    output_tokens: int | None = None
    output_tokens_details: OutputTokensDetails | None | UnsetType = UNSET
    server_tool_use: ServerToolUsage | None | UnsetType = UNSET


class ModelUsage(Wire, kw_only=True, frozen=True):
    """DOC ModelUsage"""

    inputTokens: int | None = None
    outputTokens: int | None = None
    thinkingTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheCreationInputTokens: int | None = None
    cacheCreationEphemeral5mInputTokens: int | None = None
    cacheCreationEphemeral1hInputTokens: int | None = None
    webSearchRequests: int | None = None
    costUSD: Number | None = None
    contextWindow: int | None = None
    maxOutputTokens: int | None = None
    canonicalModel: str | None = None
    provider: str | None = None
    # one of unknown, list, managed
    costBasis: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class TaskUsage(Wire, frozen=True):
    """DOC TaskUsage"""

    total_tokens: int
    tool_uses: int
    duration_ms: Number


class SessionUsage(Wire, kw_only=True, frozen=True):
    """DOC SessionUsage"""

    total_cost_usd: Number
    total_api_duration_ms: Number
    total_duration_ms: Number
    total_lines_added: int
    total_lines_removed: int
    model_usage: dict[str, ModelUsage]


class ExtraUsage(Wire, kw_only=True, frozen=True):
    """DOC ExtraUsage"""

    is_enabled: bool
    monthly_limit: Number | None = null()
    used_credits: Number | None = null()
    utilization: Number | None = null()
    currency: str | None | UnsetType = UNSET


class DisplayName(Wire, frozen=True):
    """DOC DisplayName"""

    display_name: str


class UsageLimitScope(Wire, frozen=True):
    """DOC UsageLimitScope"""

    model: DisplayName | None | UnsetType = UNSET
    surface: DisplayName | None | UnsetType = UNSET


class UsageLimit(Wire, kw_only=True, frozen=True):
    """DOC UsageLimit"""

    kind: str
    group: str
    percent: Number
    resets_at: str | None = null()
    scope: UsageLimitScope | None | UnsetType = UNSET
    severity: str
    is_active: bool


class UsageReportLimits(Wire, frozen=True):
    """DOC UsageReportLimits"""

    limits: list[UsageLimit] | None = null()
    extra_usage: ExtraUsage | None | UnsetType = UNSET


class UsageReport(Wire, frozen=True):
    """DOC UsageReport"""

    session: SessionUsage
    rate_limits: UsageReportLimits | None = null()


class ContextOverLimit(Wire, frozen=True):
    """DOC ContextOverLimit"""

    tokens_over: int
    # one of hard_limit, compaction_window
    kind: str


class ContextUsageCategory(Wire, frozen=True):
    """DOC ContextUsageCategory"""

    name: str
    tokens: int
    # one of free, used, buffer, deferred
    kind: str


class ContextUsageMcpTool(Wire, frozen=True):
    """DOC ContextUsageMcpTool"""

    name: str
    server_name: str
    tokens: int


class ContextMemoryFile(Wire, frozen=True):
    """DOC ContextMemoryFile"""

    path: str
    type: str
    tokens: int


class ContextUsageAgent(Wire, frozen=True):
    """DOC ContextUsageAgent"""

    agent_type: str
    source: str
    tokens: int


class ContextUsageSkill(Wire, kw_only=True, frozen=True):
    """DOC ContextUsageSkill"""

    name: str
    source: str
    plugin_name: str | None = None
    tokens: int


class ContextUsage(Wire, kw_only=True, frozen=True):
    """DOC ContextUsage"""

    model: str
    total_tokens: int
    raw_max_tokens: int
    percentage: Number
    over_limit: ContextOverLimit | None = None
    categories: list[ContextUsageCategory]
    mcp_tools: list[ContextUsageMcpTool]
    memory_files: list[ContextMemoryFile]
    agents: list[ContextUsageAgent]
    skills: list[ContextUsageSkill] | None = None
