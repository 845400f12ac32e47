"""The requests ``get_context_usage`` and ``get_usage``, and their answers.

``get_context_usage`` reports the content of the context window, with camelCase keys. ``get_usage`` reports costs and
limits, with snake_case keys.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.control.request_body import ControlRequestBody
from claude_wire.messages.conversation.usage import ContextMemoryFile, ExtraUsage, SessionUsage


class ContextCategory(Wire, kw_only=True, frozen=True):
    """One category of content in the context window. ``id`` and ``kind`` may have values that are not listed."""

    # one of skills, system_prompt, system_tools, mcp_tools, mcp_instructions, mcp_tools_deferred,
    # system_tools_deferred, custom_agents, memory_files, messages, autocompact_buffer, compact_buffer, free_space
    id: str | None = None
    """The category, which unlike ``name`` never changes; None from older CLIs."""
    name: str
    """The name for display, such as ``Messages``."""
    tokens: int
    color: str
    """The name of a theme colour, such as ``promptBorder``."""
    isDeferred: bool | None = None
    """True for tools that are not loaded; their tokens are outside the window."""
    # one of free, used, buffer, deferred
    kind: str | None = None
    """``used``: content; ``free`` and ``buffer``: unused space; ``deferred``: tools that are not loaded."""


class ContextGridCell(Wire, kw_only=True, frozen=True):
    """One square of the grid that ``/context`` draws."""

    color: str
    """The name of a theme colour, such as ``promptBorder``."""
    isFilled: bool
    """Observed: always true, even for free space."""
    categoryName: str
    """The ``name`` of the square's :class:`ContextCategory`."""
    tokens: int
    """The tokens of the whole category."""
    percentage: Number
    """The percentage of the window that the whole category takes, 0 to 100."""
    squareFullness: Number
    """The fraction of this square that the category fills, 0 to 1."""


class ContextMcpTool(Wire, kw_only=True, frozen=True):
    """The tokens that one MCP tool takes up."""

    name: str
    """The full name, such as ``mcp__linear__create_issue``."""
    serverName: str
    """The server's name within tool names, which may differ from its configured name."""
    tokens: int
    """The tokens of the tool's description."""
    isLoaded: bool | None = None
    """False if the tool is not loaded; its tokens are then outside the window."""


class ContextMcpInstructions(Wire, kw_only=True, frozen=True):
    """The tokens that the instructions of one MCP server take up."""

    serverName: str
    """The configured name of the server, unlike in :class:`ContextMcpTool`."""
    tokens: int
    """The tokens of the instructions, estimated from their length."""


class ContextDeferredTool(Wire, kw_only=True, frozen=True):
    """The tokens of a built-in tool that is loaded only when needed."""

    name: str
    tokens: int
    """The tokens of the tool's description."""
    isLoaded: bool
    """False if the tool is not loaded; its tokens are then outside the window."""


class ContextNamedTokens(Wire, kw_only=True, frozen=True):
    """The tokens of a system tool, a section of the system prompt, or a type of attachment."""

    name: str
    """The name of the tool, section or type."""
    tokens: int
    """The tokens of everything with this name."""


class ContextAgent(Wire, kw_only=True, frozen=True):
    """The tokens that the description of one subagent takes up."""

    agentType: str
    """The name of the agent type, such as ``code-reviewer``."""
    source: str
    """Where the agent is defined, such as ``projectSettings``, ``userSettings`` or ``plugin``."""
    pluginId: str | None = None
    """The plugin that provides the agent: its name and marketplace."""
    path: str | None = None
    """The agent's file on the CLI's machine, if it has a file."""
    tokens: int
    """The tokens of the agent's description."""


class ContextSlashCommands(Wire, kw_only=True, frozen=True):
    """The number of slash commands, and their tokens."""

    totalCommands: int
    """The number of slash commands."""
    includedCommands: int
    """The number of slash commands that the prompt lists."""
    tokens: int
    """The tokens of the list of slash commands."""


class ContextSkill(Wire, kw_only=True, frozen=True):
    """The tokens that the listing of one skill takes up."""

    name: str
    source: str
    """Where the skill is defined, such as ``built-in``, ``userSettings`` or ``plugin``."""
    pluginName: str | None = None
    """The name of the plugin that provides the skill; unique only within a marketplace."""
    pluginId: str | None = None
    """The plugin that provides the skill: its name and marketplace."""
    path: str | None = None
    """The skill's file on the CLI's machine, if it has a file."""
    tokens: int
    """The tokens of the skill's description."""


class ContextSkills(Wire, kw_only=True, frozen=True):
    """The number of skills, and their tokens."""

    totalSkills: int
    """The number of skills."""
    includedSkills: int
    """The number of skills that the prompt lists."""
    tokens: int
    """The tokens of the list of skills."""
    skillFrontmatter: list[ContextSkill]
    """The tokens of each skill."""


class ContextToolCalls(Wire, kw_only=True, frozen=True):
    """The tokens of all calls of one tool, and of their results."""

    name: str
    """The name of the tool."""
    callTokens: int
    """The tokens of all calls of the tool."""
    resultTokens: int
    """The tokens of the results of all calls of the tool."""


class ContextMessageBreakdown(Wire, kw_only=True, frozen=True):
    """The tokens of the conversation itself."""

    toolCallTokens: int
    """The tokens of all tool calls."""
    toolResultTokens: int
    """The tokens of all tool results."""
    attachmentTokens: int
    """The tokens of all attachments, such as memory files and reminders that the CLI adds."""
    assistantMessageTokens: int
    """The tokens of the model's text."""
    userMessageTokens: int
    """The tokens of the prompts."""
    redirectedContextTokens: int
    """Observed: always 0."""
    unattributedTokens: int
    """The tokens that no other field counts; observed: always 0."""
    toolCallsByType: list[ContextToolCalls]
    """The tokens of calls and results, by tool."""
    attachmentsByType: list[ContextNamedTokens]
    """The tokens of attachments, by type."""


class ContextApiUsage(Wire, kw_only=True, frozen=True):
    """The token counts of the last API response."""

    input_tokens: int
    """Tokens read, excluding cached tokens."""
    output_tokens: int
    """Tokens written by the model."""
    cache_creation_input_tokens: int
    """Tokens written to the prompt cache."""
    cache_read_input_tokens: int
    """Tokens read from the prompt cache."""


class GetContextUsageResponse(Wire, kw_only=True, frozen=True):
    """The content of the context window, in tokens. Keys are camelCase."""

    categories: list[ContextCategory] | None = None
    """The categories of content and their tokens, including free space."""
    totalTokens: int | None = None
    """The tokens in use."""
    maxTokens: int | None = None
    """The size of the window in tokens."""
    rawMaxTokens: int | None = None
    """The size of the window in tokens; observed: always the same as ``maxTokens``."""
    percentage: Number | None = None
    """``totalTokens`` as a percentage of ``maxTokens``, 0 to 100."""
    gridRows: list[list[ContextGridCell]] | None = None
    """The grid that ``/context`` draws, row by row."""
    model: str | None = None
    """The model that the tokens were counted for."""
    memoryFiles: list[ContextMemoryFile] | None = None
    """The tokens of each memory file."""
    mcpTools: list[ContextMcpTool] | None = None
    """The tokens of each MCP tool."""
    mcpInstructions: list[ContextMcpInstructions] | None = None
    """The tokens of the instructions of each MCP server."""
    deferredBuiltinTools: list[ContextDeferredTool] | None = None
    """The tokens of each built-in tool that is loaded only when needed."""
    systemTools: list[ContextNamedTokens] | None = None
    """The tokens of each built-in tool."""
    systemPromptSections: list[ContextNamedTokens] | None = None
    """The tokens of each section of the system prompt."""
    agents: list[ContextAgent] | None = None
    """The tokens of each agent type, excluding the built-in types."""
    slashCommands: ContextSlashCommands | None = None
    """The number of slash commands and their tokens."""
    skills: ContextSkills | None = None
    """The number of skills and the tokens of each."""
    autocompactSource: str | None = None
    """The source of the threshold; observed: ``auto``, ``model-default``, ``unknown-model``."""
    autoCompactThreshold: int | None = None
    """The number of tokens at which the CLI compacts the conversation."""
    isAutoCompactEnabled: bool | None = None
    """Whether the CLI compacts the conversation automatically."""
    messageBreakdown: ContextMessageBreakdown | None = None
    """The tokens of the conversation by kind of content."""
    apiUsage: ContextApiUsage | None = null()
    """The token counts of the last API response; null before the first one."""


class GetContextUsageRequest(
    ControlRequestBody[GetContextUsageResponse], tag="get_context_usage", kw_only=True, frozen=True
):
    """Asks for the content of the context window."""

    # one of summary, full
    detail: str | None = None
    """``full``, the default, counts tokens with API requests; ``summary`` estimates them without API requests."""


class RateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of one rate limit window of the plan is used."""

    utilization: Number | None = null()
    """The percentage used, 0 to 100 (a fraction in :class:`RateLimitInfo`); null if unknown."""
    resets_at: str | None = null()
    """When the window resets, in ISO 8601 (seconds in :class:`RateLimitInfo`); null if unknown."""


class ModelRateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of the weekly window of one model is used."""

    display_name: str
    """The server's label for the model, such as ``Opus``; not a model id."""
    utilization: Number | None = null()
    """The percentage used, 0 to 100; null if unknown."""
    resets_at: str | None = null()
    """When the window resets, in ISO 8601; null if unknown."""


class RateLimits(Wire, kw_only=True, frozen=True):
    """The rate limits of a claude.ai plan. Each window may be absent or null."""

    five_hour: RateLimitWindow | UnsetType | None = UNSET
    """The window of five hours."""
    seven_day: RateLimitWindow | UnsetType | None = UNSET
    """The window of seven days, for all models."""
    seven_day_oauth_apps: RateLimitWindow | UnsetType | None = UNSET
    """The window of seven days for apps that sign in with OAuth."""
    seven_day_opus: RateLimitWindow | UnsetType | None = UNSET
    """The window of seven days for Opus models."""
    seven_day_sonnet: RateLimitWindow | UnsetType | None = UNSET
    """The window of seven days for Sonnet models."""
    model_scoped: list[ModelRateLimitWindow] | None = None
    """The weekly windows of individual models; empty if the account has none, None if unknown."""
    extra_usage: ExtraUsage | UnsetType | None = UNSET
    """Paid usage beyond the plan."""


class UsageBehavior(Wire, kw_only=True, frozen=True):
    """A habit that causes usage, such as long contexts. Habits overlap, so shares do not add up to 100."""

    # one of cache_miss, long_context, subagent_heavy, high_parallel, cron, max_effort, workflow, always_on_context,
    # large_tool_results
    key: str
    """The habit; other values are possible."""
    pct: Number
    """The share of the usage in percent, 0 to 100, by weight."""
    count: int
    """The number of requests with this habit."""


class UsageRecommendation(Wire, kw_only=True, frozen=True):
    """Advice on how to use less, as text for display."""

    key: str
    """The ``key`` of a :class:`UsageBehavior`, or ``agent``, ``skill``, ``plugin`` or ``mcp_server``."""
    pct: Number
    """The share of the usage that the advice is about, in percent, 0 to 100."""
    title: str
    """What to do."""
    detail: str | None = None
    """What the CLI observed, or the command to run."""


class UsageFix(Wire, kw_only=True, frozen=True):
    """Prompts that carry out recommendations. A host may send them."""

    keys: list[str]
    """The keys of these recommendations."""
    messages: list[str]
    """The prompts to send, in order, each with priority ``later``."""


class UsageShare(Wire, kw_only=True, frozen=True):
    """The share of the usage of one agent, skill, plugin or MCP server."""

    name: str
    pct: Number
    """The share of the usage in percent, 0 to 100."""


class UsagePeriod(Wire, kw_only=True, frozen=True):
    """The causes of the usage in one period.

    The CLI estimates them from the transcripts on this machine, not on other devices.
    """

    request_count: int
    """The number of API requests in the transcripts."""
    session_count: int
    """The number of sessions in the transcripts."""
    behaviors: list[UsageBehavior]
    """The habits that cause the usage."""
    recommendations: list[UsageRecommendation] | None = None
    """Advice on how to use less, the largest share first."""
    fix: UsageFix | None = None
    """The prompts that carry out recommendations; None if the session cannot fix anything."""
    agents: list[UsageShare]
    """The share of each agent type."""
    skills: list[UsageShare]
    """The share of each skill."""
    plugins: list[UsageShare]
    """The share of each plugin."""
    mcp_servers: list[UsageShare]
    """The share of each MCP server."""


class UsageBehaviors(Wire, kw_only=True, frozen=True):
    """The causes of the usage."""

    day: UsagePeriod
    """The last 24 hours."""
    week: UsagePeriod
    """The last 7 days."""


class GetUsageResponse(Wire, kw_only=True, frozen=True):
    """The cost of the session, and how much of the plan's limits is used.

    Experimental: the fields may change. Keys are snake_case, but camelCase inside ``model_usage``. With an API key,
    ``subscription_type``, ``rate_limits`` and ``behaviors`` are null.
    """

    session: SessionUsage | None = None
    """The cost and usage of the session."""
    subscription_type: str | None = null()
    """The plan: ``pro``, ``max``, ``team`` or ``enterprise``; null without a subscription."""
    rate_limits_available: bool | None = None
    """False if no limits of a plan apply, as with an API key."""
    rate_limits: RateLimits | None = null()
    """The limits of the plan; null if none apply or the CLI could not fetch them."""
    behaviors: UsageBehaviors | None = null()
    """The causes of the usage; null without a subscription, or with ``skip_behaviors``."""


class GetUsageRequest(ControlRequestBody[GetUsageResponse], tag="get_usage", kw_only=True, frozen=True):
    """Asks for the cost of the session and the usage of the plan's limits, as numbers. Experimental."""

    skip_behaviors: bool | None = None
    """True omits ``behaviors``, so the CLI need not read seven days of transcripts."""
