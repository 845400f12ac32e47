"""The requests ``get_context_usage`` and ``get_usage``, and their answers with all their rows.

The first reports the content of the context window, and its keys are camelCase. The second reports costs and limits,
and its keys are snake_case.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.conversation.usage import ContextMemoryFile, ExtraUsage, SessionUsage


class ContextCategory(Wire, kw_only=True, frozen=True):
    """One category of content in the context window.

    To tell categories apart, use ``id`` and ``kind``; both may have values not known today. ``name`` is text for
    display, ``color`` the name of a theme colour. Rows of the kind ``deferred`` are outside the window; ``free`` and
    ``buffer`` are parts of the window that nothing fills.
    """

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
    """A square of the grid that ``/context`` draws.

    ``tokens`` and ``percentage`` (0 to 100) are those of the whole category. ``squareFullness`` (0 to 1) is how much
    of this square the category fills.
    """

    color: str
    isFilled: bool
    categoryName: str
    tokens: int
    percentage: Number
    squareFullness: Number


class ContextMcpTool(Wire, kw_only=True, frozen=True):
    """The tokens that one MCP tool takes up.

    ``serverName`` is in the form used inside tool names, which may differ from the configured name. A tool that is
    not loaded is outside the window.
    """

    name: str
    serverName: str
    tokens: int
    isLoaded: bool | None = None


class ContextMcpInstructions(Wire, kw_only=True, frozen=True):
    """The tokens that the instructions of one MCP server take up, estimated by length.

    ``serverName`` is the configured name, unlike the one in :class:`ContextMcpTool`.
    """

    serverName: str
    tokens: int


class ContextDeferredTool(Wire, kw_only=True, frozen=True):
    """The tokens of a built-in tool that is loaded only when needed."""

    name: str
    tokens: int
    isLoaded: bool


class ContextNamedTokens(Wire, kw_only=True, frozen=True):
    """A name, and its number of tokens.

    Used for system tools, sections of the system prompt and types of attachments.
    """

    name: str
    tokens: int


class ContextAgent(Wire, kw_only=True, frozen=True):
    """The tokens that the description of one subagent takes up.

    ``path`` is on the machine where the CLI runs, and absent for an agent without a file.
    """

    agentType: str
    source: str
    pluginId: str | None = None
    path: str | None = None
    tokens: int


class ContextSlashCommands(Wire, kw_only=True, frozen=True):
    """How many slash commands there are, how many the prompt lists, and their tokens."""

    totalCommands: int
    includedCommands: int
    tokens: int


class ContextSkill(Wire, kw_only=True, frozen=True):
    """The tokens that the listing of one skill takes up.

    ``pluginName`` is not unique across marketplaces, ``pluginId`` is.
    """

    name: str
    source: str
    pluginName: str | None = None
    pluginId: str | None = None
    path: str | None = None
    tokens: int


class ContextSkills(Wire, kw_only=True, frozen=True):
    """How many skills there are, how many the prompt lists, and the tokens of each."""

    totalSkills: int
    includedSkills: int
    tokens: int
    skillFrontmatter: list[ContextSkill]


class ContextToolCalls(Wire, kw_only=True, frozen=True):
    """The tokens of all calls of one tool, and of their results."""

    name: str
    callTokens: int
    resultTokens: int


class ContextMessageBreakdown(Wire, kw_only=True, frozen=True):
    """The tokens of the conversation itself: tool calls, tool results, attachments and messages."""

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
    """The token counts of the last API response."""

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int


class GetContextUsageResponse(Wire, kw_only=True, frozen=True):
    """The content of the context window at this moment, in tokens.

    Members are camelCase. ``percentage`` is 0 to 100 of ``maxTokens``; ``autoCompactThreshold`` is in tokens.
    ``apiUsage`` may be null.
    """

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
    autocompactSource: str | None = None
    autoCompactThreshold: int | None = None
    isAutoCompactEnabled: bool | None = None
    messageBreakdown: ContextMessageBreakdown | None = None
    apiUsage: ContextApiUsage | None = null()


class GetContextUsageRequest(
    ControlRequestBody[GetContextUsageResponse], tag="get_context_usage", kw_only=True, frozen=True
):
    """Asks what fills the context window.

    The default ``full`` counts tokens with API requests; ``summary`` estimates from the last response and makes none.
    """

    # one of summary, full
    detail: str | None = None


class RateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of one rate limit window of the plan is used.

    ``utilization`` is a percentage, 0 to 100, though it is a fraction in :class:`RateLimitInfo`; ``resets_at`` is an
    ISO 8601 string, not a Unix time. Either may be null.
    """

    utilization: Number | None = null()
    resets_at: str | None = null()


class ModelRateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of the weekly window of one model is used.

    ``display_name`` is a label made by the server, not a model id. Units are those of :class:`RateLimitWindow`.
    """

    display_name: str
    utilization: Number | None = null()
    resets_at: str | None = null()


class RateLimits(Wire, kw_only=True, frozen=True):
    """The rate limits of a claude.ai plan, window by window.

    A window may be absent or null. An empty ``model_scoped`` list says that the account has no such window, an absent
    one that this is not known.
    """

    five_hour: RateLimitWindow | UnsetType | None = UNSET
    seven_day: RateLimitWindow | UnsetType | None = UNSET
    seven_day_oauth_apps: RateLimitWindow | UnsetType | None = UNSET
    seven_day_opus: RateLimitWindow | UnsetType | None = UNSET
    seven_day_sonnet: RateLimitWindow | UnsetType | None = UNSET
    model_scoped: list[ModelRateLimitWindow] | None = None
    extra_usage: ExtraUsage | UnsetType | None = UNSET


class UsageBehavior(Wire, kw_only=True, frozen=True):
    """A habit that causes a part of the usage, such as long contexts or many subagents.

    ``key`` may have values not known today. ``pct`` is 0 to 100 of the usage by weight, ``count`` the number of
    requests. Habits overlap: the shares do not add up to 100.
    """

    # one of cache_miss, long_context, subagent_heavy, high_parallel, cron, max_effort, workflow, always_on_context,
    # large_tool_results
    key: str
    pct: Number
    count: int


class UsageRecommendation(Wire, kw_only=True, frozen=True):
    """A proposal for using less, as text for display.

    ``key`` is that of a :class:`UsageBehavior`, or ``agent``, ``skill``, ``plugin`` or ``mcp_server``; ``pct`` (0 to
    100) is the share it concerns.
    """

    key: str
    pct: Number
    title: str
    detail: str | None = None


class UsageFix(Wire, kw_only=True, frozen=True):
    """User messages that a host may send to carry out recommendations.

    Send each as a separate prompt, in order and with priority ``later``. ``keys`` are the keys of the recommendations
    that they carry out. Absent when the session can fix nothing.
    """

    keys: list[str]
    messages: list[str]


class UsageShare(Wire, kw_only=True, frozen=True):
    """The share of the usage, 0 to 100, of one agent, skill, plugin or MCP server."""

    name: str
    pct: Number


class UsagePeriod(Wire, kw_only=True, frozen=True):
    """The causes of the usage in one period.

    The CLI computes them from the transcripts on this machine: they are approximate, and leave out other devices.
    """

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
    """The causes of the usage in the last 24 hours and in the last 7 days."""

    day: UsagePeriod
    week: UsagePeriod


class GetUsageResponse(Wire, kw_only=True, frozen=True):
    """The cost of the session, and how much of the plan's limits is used.

    Experimental: the shape may change. Keys are snake_case, except inside the values of ``model_usage``, where they
    are camelCase. With an
    API key ``subscription_type``, ``rate_limits`` and ``behaviors`` are null and ``rate_limits_available`` is false.
    """

    session: SessionUsage | None = None
    subscription_type: str | None = null()
    rate_limits_available: bool | None = None
    rate_limits: RateLimits | None = null()
    behaviors: UsageBehaviors | None = null()


class GetUsageRequest(ControlRequestBody[GetUsageResponse], tag="get_usage", kw_only=True, frozen=True):
    """Asks for the cost of the session and the use of the plan's limits, as numbers.

    With ``skip_behaviors``, the CLI need not read all transcripts of the last seven days. Experimental.
    """

    skip_behaviors: bool | None = None
