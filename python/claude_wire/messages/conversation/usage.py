"""Usage: tokens by message, model and task, costs, and the content of the context window.

Costs are in US dollars unless there is a ``currency``. Fields that end with ``_ms`` are in milliseconds.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.unknown import OrUnknownObject


class CacheCreation(Wire, frozen=True):
    """Tokens written to the prompt cache, by lifetime. The sum is ``cache_creation_input_tokens``."""

    ephemeral_1h_input_tokens: int
    """Tokens that the cache keeps for one hour."""
    ephemeral_5m_input_tokens: int
    """Tokens that the cache keeps for five minutes."""


class ServerToolUsage(Wire, frozen=True):
    """The number of web searches and web fetches that the API made."""

    web_fetch_requests: int
    """The number of web fetches."""
    web_search_requests: int
    """The number of web searches."""


class OutputTokensDetails(Wire, frozen=True):
    """A breakdown of ``output_tokens``."""

    thinking_tokens: int
    """Thinking tokens, which ``output_tokens`` includes; the thinking text may be shorter."""


class FallbackCreditRedeemed(Wire, tag_field="type", tag="redeemed", frozen=True):
    """The credit was applied: the retry costs as much as if its model had run the whole conversation."""


class FallbackCreditNotApplied(Wire, tag_field="type", tag="not_applied", frozen=True):
    """The credit was not applied."""

    # one of body_mismatch, continuation_excluded, continuation_only, expired, invalid_target_model, not_enabled,
    # reprice_unavailable, temporarily_unavailable, variant_fields_present, wrong_organization, wrong_platform,
    # wrong_workspace
    reason: str
    """Why the credit was not applied."""
    remove_to_redeem: list[str] | UnsetType | None = UNSET
    """The request fields to remove before a retry; only with ``variant_fields_present``."""


FallbackCreditStatus: TypeAlias = FallbackCreditRedeemed | FallbackCreditNotApplied | OrUnknownObject


class FallbackCreditUsage(Wire, frozen=True):
    """Whether the request's fallback credit was applied.

    A refusal (:class:`RefusalStopDetails`) grants the credit, which pays for the cache that a retry on another model
    loses.
    """

    status: FallbackCreditStatus
    """Whether the credit was applied."""


class _IterationUsage(Wire, tag_field="type", kw_only=True, frozen=True):
    cache_creation: CacheCreation | UnsetType | None = UNSET
    """The tokens written to the prompt cache, by lifetime."""
    cache_creation_input_tokens: int
    """Tokens written to the prompt cache."""
    cache_read_input_tokens: int
    """Tokens read from the prompt cache."""
    input_tokens: int
    """Tokens read, excluding cached tokens."""
    output_tokens: int
    """Tokens written by the model."""


class MessageIterationUsage(_IterationUsage, tag="message", kw_only=True, frozen=True):
    """Tokens of a pass of the requested model, even if the pass ended with a refusal."""

    model: str | UnsetType | None = UNSET
    """The model of this pass."""


class CompactionIterationUsage(_IterationUsage, tag="compaction", kw_only=True, frozen=True):
    """Tokens of a pass in which the API summarized earlier messages."""


class AdvisorMessageIterationUsage(_IterationUsage, tag="advisor_message", kw_only=True, frozen=True):
    """Tokens of a pass in which the model asked an advisor."""

    model: str
    """The advisor's model."""


class FallbackMessageIterationUsage(_IterationUsage, tag="fallback_message", kw_only=True, frozen=True):
    """Tokens of the pass in which a fallback model wrote the message."""

    model: str


UsageIteration: TypeAlias = (
    MessageIterationUsage
    | CompactionIterationUsage
    | AdvisorMessageIterationUsage
    | FallbackMessageIterationUsage
    | OrUnknownObject
)


class Usage(Wire, kw_only=True, frozen=True):
    """The tokens of an API message, or of a turn in a result.

    In an assistant message of a streamed answer, these are the counts at the start, so ``output_tokens`` is far too
    low. :class:`MessageDeltaEvent` and the result have the final counts. The counts in a result do not include
    subagents, and may be 0 if the turn was cut off.
    """

    input_tokens: int | None = None
    """Tokens read, excluding cached tokens."""
    cache_creation_input_tokens: int | UnsetType | None = UNSET
    """Tokens written to the prompt cache."""
    cache_read_input_tokens: int | UnsetType | None = UNSET
    """Tokens read from the prompt cache."""
    cache_creation: CacheCreation | UnsetType | None = UNSET
    """The tokens written to the prompt cache, by lifetime."""
    output_tokens: int | None = None
    """Tokens written by the model."""
    output_tokens_details: OutputTokensDetails | UnsetType | None = UNSET
    """The thinking tokens among ``output_tokens``."""
    server_tool_use: ServerToolUsage | UnsetType | None = UNSET
    """The number of web searches and fetches that the API made."""
    # one of standard, priority, batch
    service_tier: str | UnsetType | None = UNSET
    """The request's service tier."""
    inference_geo: str | UnsetType | None = UNSET
    """The region where the model ran; observed: ``not_available`` or empty."""
    iterations: list[UsageIteration] | UnsetType | None = UNSET
    """The usage of each pass, if the API ran the model several times for this message."""
    # one of standard, fast
    speed: str | UnsetType | None = UNSET
    """The speed mode of the request."""
    fallback_credit: FallbackCreditUsage | UnsetType | None = UNSET
    """Whether a fallback credit was applied; only if the request presented one."""


class MessageDeltaUsage(Wire, kw_only=True, frozen=True):
    """The tokens of a message at the end of its stream: totals, which replace the counts of ``message_start``."""

    output_tokens: int | None = None
    """Tokens written by the model."""
    input_tokens: int | UnsetType | None = UNSET
    """Tokens read, excluding cached tokens."""
    cache_creation_input_tokens: int | UnsetType | None = UNSET
    """Tokens written to the prompt cache."""
    cache_read_input_tokens: int | UnsetType | None = UNSET
    """Tokens read from the prompt cache."""
    server_tool_use: ServerToolUsage | UnsetType | None = UNSET
    """The number of web searches and fetches that the API made."""
    fallback_credit: FallbackCreditUsage | UnsetType | None = UNSET
    """Whether a fallback credit was applied; only if the request presented one."""
    output_tokens_details: OutputTokensDetails | UnsetType | None = UNSET
    """The thinking tokens among ``output_tokens``."""
    iterations: list[UsageIteration] | UnsetType | None = UNSET
    """The usage of each pass, if the API ran the model several times for this message."""


class ModelUsage(Wire, kw_only=True, frozen=True):
    """The usage and cost of one model, including subagents. Keys are camelCase.

    In ``modelUsage`` of a result, these are running totals of the session, which continue when a session is resumed or
    forked: do not add them up. In ``model_usage_since_last_result``, they count from the previous result.
    """

    inputTokens: int | None = None
    """Tokens read, excluding cached tokens."""
    outputTokens: int | None = None
    """Tokens written by the model."""
    cacheReadInputTokens: int | None = None
    """Tokens read from the prompt cache."""
    cacheCreationInputTokens: int | None = None
    """Tokens written to the prompt cache."""
    webSearchRequests: int | None = None
    """The number of web searches that the API made."""
    costUSD: Number | None = None
    """The CLI's estimate of the cost in US dollars."""
    contextWindow: int | None = None
    """The size of the model's context window in tokens."""
    maxOutputTokens: int | None = None
    """The maximum number of tokens in an answer."""
    thinkingTokens: int | None = None
    """Thinking tokens, excluding turns of older CLIs; ``outputTokens`` includes them."""
    cacheCreationEphemeral5mInputTokens: int | None = None
    """Tokens that the cache keeps for five minutes, included in ``cacheCreationInputTokens``."""
    cacheCreationEphemeral1hInputTokens: int | None = None
    """Tokens that the cache keeps for one hour, included in ``cacheCreationInputTokens``."""
    canonicalModel: str | None = None
    """The model id in the price table, such as ``claude-opus-4-7``."""
    provider: str | None = None
    """The API that served the model, such as ``firstParty``, ``bedrock`` or ``vertex``."""
    # one of unknown, list, managed
    costBasis: str | None = None
    """The price table of the last request; with ``unknown``, ``costUSD`` is a guess."""
    input_tokens: int | None = None
    """``inputTokens`` in the dialect of CLI 2.1.7."""
    output_tokens: int | None = None
    """``outputTokens`` in the dialect of CLI 2.1.7."""


class TaskUsage(Wire, frozen=True):
    """The usage of a task so far."""

    total_tokens: int
    """The tokens of the task so far."""
    tool_uses: int
    """The number of tool calls."""
    duration_ms: Number
    """Milliseconds since the task began."""


class SessionUsage(Wire, kw_only=True, frozen=True):
    """The usage of the session so far."""

    total_cost_usd: Number
    """The CLI's estimate of the cost in US dollars."""
    total_api_duration_ms: Number
    """Milliseconds of waiting for the API."""
    total_duration_ms: Number
    """Milliseconds that the session has run."""
    total_lines_added: int
    """The number of lines that tools added to files."""
    total_lines_removed: int
    """The number of lines that tools removed from files."""
    model_usage: dict[str, ModelUsage]
    """The usage by model, including subagents."""


class ExtraUsage(Wire, kw_only=True, frozen=True):
    """Paid usage beyond the plan."""

    is_enabled: bool
    """False if extra usage cannot pay for requests now."""
    monthly_limit: Number | None = null()
    """The monthly spending limit in minor units of ``currency`` (cents for USD); null if there is none."""
    used_credits: Number | None = null()
    """The amount spent in the billing period, in minor units of ``currency``; null if unknown."""
    utilization: Number | None = null()
    """How much of ``monthly_limit`` is used; null without a limit."""
    currency: str | UnsetType | None = UNSET
    """The currency code, such as ``USD``."""


class DisplayName(Wire, frozen=True):
    """A name for display."""

    display_name: str


class UsageLimitScope(Wire, frozen=True):
    """The scope of a usage limit: one model or one surface."""

    model: DisplayName | UnsetType | None = UNSET
    """The model that the limit is for."""
    surface: DisplayName | UnsetType | None = UNSET
    """The product or interface that the limit is for."""


class UsageLimit(Wire, kw_only=True, frozen=True):
    """A usage limit of the plan, and how much of it is used."""

    kind: str
    """The kind of limit, such as ``session``, ``weekly_all`` or ``weekly_scoped``."""
    group: str
    """The heading to show the limit under, such as ``session`` or ``weekly``."""
    percent: Number
    """The percentage of the limit that is used, 0 to 100."""
    resets_at: str | None = null()
    """When the limit resets, in ISO 8601; null if unknown."""
    scope: UsageLimitScope | UnsetType | None = UNSET
    """The model or surface that the limit is for; None for all."""
    severity: str
    """How urgent the limit is, such as ``normal``, ``warning`` or ``critical``."""
    is_active: bool
    """True for the limit to show if there is room for only one."""


class UsageReportLimits(Wire, frozen=True):
    """The usage limits of the plan, and the paid usage beyond it."""

    limits: list[UsageLimit] | None = null()
    """The limits in the server's order; null if the server did not list them."""
    extra_usage: ExtraUsage | UnsetType | None = UNSET
    """Paid usage beyond the plan; None if the plan has none."""


class UsageReport(Wire, frozen=True):
    """The data of a usage report that the CLI wrote as an assistant message."""

    session: SessionUsage
    """The cost and usage of the session."""
    rate_limits: UsageReportLimits | None = null()
    """The limits of the plan; null if none apply or the CLI could not fetch them."""


class ContextOverLimit(Wire, frozen=True):
    """By how much the conversation exceeds a limit."""

    tokens_over: int
    """The number of tokens above the limit."""
    # one of hard_limit, compaction_window
    kind: str
    """The limit: the model's, or the smaller limit at which the CLI compacts."""


class ContextUsageCategory(Wire, frozen=True):
    """One category of content in the context window."""

    name: str
    """The name for display, such as ``Messages``."""
    tokens: int
    # one of free, used, buffer, deferred
    kind: str
    """``used``: content; ``free`` and ``buffer``: unused space; ``deferred``: tools that are not loaded."""


class ContextUsageMcpTool(Wire, frozen=True):
    """The tokens of one MCP tool."""

    name: str
    """The full name, such as ``mcp__linear__create_issue``."""
    server_name: str
    """The name of the MCP server."""
    tokens: int
    """The tokens of the tool's description."""


class ContextMemoryFile(Wire, frozen=True):
    """The tokens of one memory file, such as a ``CLAUDE.md``."""

    path: str
    """The path of the file."""
    type: str
    """The label of the file's source, such as ``Project`` or ``User``."""
    tokens: int


class ContextUsageAgent(Wire, frozen=True):
    """The tokens of one agent type."""

    agent_type: str
    """The name of the agent type, such as ``code-reviewer``."""
    source: str
    """Where the agent is defined, such as ``projectSettings``, ``userSettings`` or ``plugin``."""
    tokens: int
    """The tokens of the agent's description."""


class ContextUsageSkill(Wire, kw_only=True, frozen=True):
    """The tokens of one skill."""

    name: str
    source: str
    """Where the skill is defined, such as ``built-in``, ``userSettings`` or ``plugin``."""
    plugin_name: str | None = None
    """The name of the plugin that provides the skill."""
    tokens: int
    """The tokens of the skill's description."""


class ContextUsage(Wire, kw_only=True, frozen=True):
    """The content of the context window, in the assistant message with the output of ``/context``.

    :class:`GetContextUsageResponse` has more details and camelCase keys.
    """

    model: str
    """The model that the tokens were counted for."""
    total_tokens: int
    """An estimate of the tokens in use, which may exceed ``raw_max_tokens``."""
    raw_max_tokens: int
    """The size of the window in tokens: the model's limit, or the smaller one at which the CLI compacts."""
    percentage: Number
    """``total_tokens`` as a percentage of ``raw_max_tokens``, rounded; may exceed 100."""
    over_limit: ContextOverLimit | None = None
    """The excess, if ``total_tokens`` is more than ``raw_max_tokens``."""
    categories: list[ContextUsageCategory]
    """The categories of content and their tokens, including free space."""
    mcp_tools: list[ContextUsageMcpTool]
    """The tokens of each MCP tool."""
    memory_files: list[ContextMemoryFile]
    """The tokens of each memory file."""
    agents: list[ContextUsageAgent]
    """The tokens of each agent type, excluding the built-in types."""
    skills: list[ContextUsageSkill] | None = None
    """The tokens of each skill; None if no skill takes tokens."""
