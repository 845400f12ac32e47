"""DOC module context_usage"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Number, Wire, null
from claude_wire.messages.usage import ContextMemoryFile, ExtraUsage, SessionUsage

__all__ = [
    "ContextAgent",
    "ContextApiUsage",
    "ContextCategory",
    "ContextDeferredTool",
    "ContextGridCell",
    "ContextMcpInstructions",
    "ContextMcpTool",
    "ContextMessageBreakdown",
    "ContextNamedTokens",
    "ContextSkill",
    "ContextSkills",
    "ContextSlashCommands",
    "ContextToolCalls",
    "GetContextUsageResponse",
    "GetUsageResponse",
    "ModelRateLimitWindow",
    "RateLimitWindow",
    "RateLimits",
    "UsageBehavior",
    "UsageBehaviors",
    "UsageFix",
    "UsagePeriod",
    "UsageRecommendation",
    "UsageShare",
]


class ContextCategory(Wire, kw_only=True, frozen=True):
    """DOC ContextCategory"""

    # one of skills, system_prompt, system_tools, mcp_tools, mcp_instructions, mcp_tools_deferred,
    # system_tools_deferred, custom_agents, memory_files, messages, autocompact_buffer, compact_buffer, free_space
    id: str | None = None
    name: str
    tokens: int
    color: str
    isDeferred: bool | None = None
    # one of free, used, buffer, deferred
    kind: str | None = None


class ContextGridCell(Wire, kw_only=True, frozen=True):
    """DOC ContextGridCell"""

    color: str
    isFilled: bool
    categoryName: str
    tokens: int
    percentage: Number
    squareFullness: Number


class ContextMcpTool(Wire, kw_only=True, frozen=True):
    """DOC ContextMcpTool"""

    name: str
    serverName: str
    tokens: int
    isLoaded: bool | None = None


class ContextMcpInstructions(Wire, kw_only=True, frozen=True):
    """DOC ContextMcpInstructions"""

    serverName: str
    tokens: int


class ContextDeferredTool(Wire, kw_only=True, frozen=True):
    """DOC ContextDeferredTool"""

    name: str
    tokens: int
    isLoaded: bool


class ContextNamedTokens(Wire, kw_only=True, frozen=True):
    """DOC ContextNamedTokens"""

    name: str
    tokens: int


class ContextAgent(Wire, kw_only=True, frozen=True):
    """DOC ContextAgent"""

    agentType: str
    source: str
    pluginId: str | None = None
    path: str | None = None
    tokens: int


class ContextSlashCommands(Wire, kw_only=True, frozen=True):
    """DOC ContextSlashCommands"""

    totalCommands: int
    includedCommands: int
    tokens: int


class ContextSkill(Wire, kw_only=True, frozen=True):
    """DOC ContextSkill"""

    name: str
    source: str
    pluginName: str | None = None
    pluginId: str | None = None
    path: str | None = None
    tokens: int


class ContextSkills(Wire, kw_only=True, frozen=True):
    """DOC ContextSkills"""

    totalSkills: int
    includedSkills: int
    tokens: int
    skillFrontmatter: list[ContextSkill]


class ContextToolCalls(Wire, kw_only=True, frozen=True):
    """DOC ContextToolCalls"""

    name: str
    callTokens: int
    resultTokens: int


class ContextMessageBreakdown(Wire, kw_only=True, frozen=True):
    """DOC ContextMessageBreakdown"""

    toolCallTokens: int
    toolResultTokens: int
    attachmentTokens: int
    assistantMessageTokens: int
    userMessageTokens: int
    redirectedContextTokens: int
    unattributedTokens: int
    toolCallsByType: list[ContextToolCalls]
    attachmentsByType: list[ContextNamedTokens]


class ContextApiUsage(Wire, kw_only=True, frozen=True):
    """DOC ContextApiUsage"""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int


class GetContextUsageResponse(Wire, kw_only=True, frozen=True):
    """DOC GetContextUsageResponse"""

    categories: list[ContextCategory] | None = None
    totalTokens: int | None = None
    maxTokens: int | None = None
    rawMaxTokens: int | None = None
    percentage: Number | None = None
    gridRows: list[list[ContextGridCell]] | None = None
    model: str | None = None
    memoryFiles: list[ContextMemoryFile] | None = None
    mcpTools: list[ContextMcpTool] | None = None
    mcpInstructions: list[ContextMcpInstructions] | None = None
    deferredBuiltinTools: list[ContextDeferredTool] | None = None
    systemTools: list[ContextNamedTokens] | None = None
    systemPromptSections: list[ContextNamedTokens] | None = None
    agents: list[ContextAgent] | None = None
    slashCommands: ContextSlashCommands | None = None
    skills: ContextSkills | None = None
    autoCompactThreshold: int | None = None
    isAutoCompactEnabled: bool | None = None
    messageBreakdown: ContextMessageBreakdown | None = None
    apiUsage: ContextApiUsage | None = null()


class RateLimitWindow(Wire, kw_only=True, frozen=True):
    """DOC RateLimitWindow"""

    utilization: Number | None = null()
    resets_at: str | None = null()


class ModelRateLimitWindow(Wire, kw_only=True, frozen=True):
    """DOC ModelRateLimitWindow"""

    display_name: str
    utilization: Number | None = null()
    resets_at: str | None = null()


class RateLimits(Wire, kw_only=True, frozen=True):
    """DOC RateLimits"""

    five_hour: RateLimitWindow | None | UnsetType = UNSET
    seven_day: RateLimitWindow | None | UnsetType = UNSET
    seven_day_oauth_apps: RateLimitWindow | None | UnsetType = UNSET
    seven_day_opus: RateLimitWindow | None | UnsetType = UNSET
    seven_day_sonnet: RateLimitWindow | None | UnsetType = UNSET
    model_scoped: list[ModelRateLimitWindow] | None = None
    extra_usage: ExtraUsage | None | UnsetType = UNSET


class UsageBehavior(Wire, kw_only=True, frozen=True):
    """DOC UsageBehavior"""

    # one of cache_miss, long_context, subagent_heavy, high_parallel, cron, max_effort, workflow, always_on_context,
    # large_tool_results
    key: str
    pct: Number
    count: int


class UsageRecommendation(Wire, kw_only=True, frozen=True):
    """DOC UsageRecommendation"""

    key: str
    pct: Number
    title: str
    detail: str | None = None


class UsageFix(Wire, kw_only=True, frozen=True):
    """DOC UsageFix"""

    keys: list[str]
    messages: list[str]


class UsageShare(Wire, kw_only=True, frozen=True):
    """DOC UsageShare"""

    name: str
    pct: Number


class UsagePeriod(Wire, kw_only=True, frozen=True):
    """DOC UsagePeriod"""

    request_count: int
    session_count: int
    behaviors: list[UsageBehavior]
    recommendations: list[UsageRecommendation] | None = None
    fix: UsageFix | None = None
    agents: list[UsageShare]
    skills: list[UsageShare]
    plugins: list[UsageShare]
    mcp_servers: list[UsageShare]


class UsageBehaviors(Wire, kw_only=True, frozen=True):
    """DOC UsageBehaviors"""

    day: UsagePeriod
    week: UsagePeriod


class GetUsageResponse(Wire, kw_only=True, frozen=True):
    """DOC GetUsageResponse"""

    session: SessionUsage | None = None
    subscription_type: str | None = null()
    rate_limits_available: bool | None = None
    rate_limits: RateLimits | None = null()
    behaviors: UsageBehaviors | None = null()
