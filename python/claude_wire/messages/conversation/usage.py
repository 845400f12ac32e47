"""Usage: tokens per message, model and task, cost, and the content of the context window.

Token counts are whole numbers, money is in US dollars unless a ``currency`` says otherwise, and fields in ``_ms`` are
milliseconds.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, null
from claude_wire.messages.unknown import OrUnknownObject


class CacheCreation(Wire, frozen=True):
    """Tokens written to the prompt cache, split by how long they are kept: one hour or five minutes.

    The two add up to ``cache_creation_input_tokens``.
    """

    ephemeral_1h_input_tokens: int
    ephemeral_5m_input_tokens: int


class ServerToolUsage(Wire, frozen=True):
    """The number of web searches and web fetches that the API made."""

    web_fetch_requests: int
    web_search_requests: int


class OutputTokensDetails(Wire, frozen=True):
    """The number of output tokens that were thinking. They are included in ``output_tokens``."""

    thinking_tokens: int


class FallbackCreditRedeemed(Wire, tag_field="type", tag="redeemed", frozen=True):
    """The credit was applied: the retry is billed as if its model had run the conversation all along."""


class FallbackCreditNotApplied(Wire, tag_field="type", tag="not_applied", frozen=True):
    """The credit was not applied; ``reason`` says why.

    ``remove_to_redeem`` names the request fields to remove before another try.
    """

    # one of body_mismatch, continuation_excluded, continuation_only, expired, invalid_target_model, not_enabled,
    # reprice_unavailable, temporarily_unavailable, variant_fields_present, wrong_organization, wrong_platform,
    # wrong_workspace
    reason: str
    remove_to_redeem: list[str] | UnsetType | None = UNSET


FallbackCreditStatus: TypeAlias = FallbackCreditRedeemed | FallbackCreditNotApplied | OrUnknownObject


class FallbackCreditUsage(Wire, frozen=True):
    """The outcome of the fallback credit that the request presented.

    Such a credit comes with a refusal (:class:`RefusalStopDetails`) and pays for the cache that a retry on another
    model loses.
    """

    status: FallbackCreditStatus


class _IterationUsage(Wire, tag_field="type", kw_only=True, frozen=True):
    cache_creation: CacheCreation | UnsetType | None = UNSET
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    input_tokens: int
    output_tokens: int


class MessageIterationUsage(_IterationUsage, tag="message", kw_only=True, frozen=True):
    """Token counts for one sampling pass of the requested model.

    Where fallback is in play, a pass that ended in a refusal is counted here.
    """

    model: str | UnsetType | None = UNSET


class CompactionIterationUsage(_IterationUsage, tag="compaction", kw_only=True, frozen=True):
    """Tokens of a pass in which the API summarised earlier messages."""


class AdvisorMessageIterationUsage(_IterationUsage, tag="advisor_message", kw_only=True, frozen=True):
    """Tokens of a pass in which the advisor, ``model``, was asked."""

    model: str


class FallbackMessageIterationUsage(_IterationUsage, tag="fallback_message", kw_only=True, frozen=True):
    """Tokens of the pass in which a fallback model, ``model``, wrote the answer.

    Its presence in ``iterations`` shows that a fallback model wrote the message.
    """

    model: str


UsageIteration: TypeAlias = (
    MessageIterationUsage
    | CompactionIterationUsage
    | AdvisorMessageIterationUsage
    | FallbackMessageIterationUsage
    | OrUnknownObject
)


class Usage(Wire, kw_only=True, frozen=True):
    """The tokens of one API message; in a result, those of one turn.

    On an assistant message of a streamed answer the counts are those known at the start, so ``output_tokens`` is far
    too low; the :class:`MessageDeltaEvent` and the result have the final ones. On a result it covers the turn's main
    loop without subagents, and may be zero when the turn was cut off. ``input_tokens`` does not include tokens that
    the cache counters count.
    """

    input_tokens: int | None = None
    """Tokens read, without those of the cache."""
    cache_creation_input_tokens: int | UnsetType | None = UNSET
    """Tokens written to the prompt cache."""
    cache_read_input_tokens: int | UnsetType | None = UNSET
    """Tokens read from the prompt cache."""
    cache_creation: CacheCreation | UnsetType | None = UNSET
    output_tokens: int | None = None
    """Tokens written by the model."""
    output_tokens_details: OutputTokensDetails | UnsetType | None = UNSET
    server_tool_use: ServerToolUsage | UnsetType | None = UNSET
    # one of standard, priority, batch
    service_tier: str | UnsetType | None = UNSET
    inference_geo: str | UnsetType | None = UNSET
    iterations: list[UsageIteration] | UnsetType | None = UNSET
    # one of standard, fast
    speed: str | UnsetType | None = UNSET
    fallback_credit: FallbackCreditUsage | UnsetType | None = UNSET


class MessageDeltaUsage(Wire, kw_only=True, frozen=True):
    """Tokens of a message so far, at the end of its stream.

    The counts are totals, not increments, and replace those of the message start. All but ``output_tokens`` may be
    null.
    """

    output_tokens: int | None = None
    input_tokens: int | UnsetType | None = UNSET
    cache_creation_input_tokens: int | UnsetType | None = UNSET
    cache_read_input_tokens: int | UnsetType | None = UNSET
    server_tool_use: ServerToolUsage | UnsetType | None = UNSET
    fallback_credit: FallbackCreditUsage | UnsetType | None = UNSET
    output_tokens_details: OutputTokensDetails | UnsetType | None = UNSET
    iterations: list[UsageIteration] | UnsetType | None = UNSET


class ModelUsage(Wire, kw_only=True, frozen=True):
    """The usage of one model, including subagents, with its cost in USD.

    In ``modelUsage`` of a result these are running totals of the session, which go on when it is resumed or forked: do
    not add them up over results. In ``model_usage_since_last_result`` they count from the previous result.
    ``contextWindow`` and ``maxOutputTokens`` are limits of the model, not uses. Keys are camelCase; ``input_tokens``
    and ``output_tokens`` are the spelling of the 2.1.7 CLI's dialect.
    """

    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheCreationInputTokens: int | None = None
    webSearchRequests: int | None = None
    costUSD: Number | None = None
    contextWindow: int | None = None
    maxOutputTokens: int | None = None
    thinkingTokens: int | None = None
    cacheCreationEphemeral5mInputTokens: int | None = None
    cacheCreationEphemeral1hInputTokens: int | None = None
    canonicalModel: str | None = None
    provider: str | None = None
    # one of unknown, list, managed
    costBasis: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class TaskUsage(Wire, frozen=True):
    """The usage of a task so far: tokens, tool calls and milliseconds."""

    total_tokens: int
    tool_uses: int
    duration_ms: Number


class SessionUsage(Wire, kw_only=True, frozen=True):
    """The usage of the session so far: cost in USD, time in milliseconds, lines of code.

    ``total_api_duration_ms`` is time spent waiting for the API, ``total_duration_ms`` time altogether.
    """

    total_cost_usd: Number
    total_api_duration_ms: Number
    total_duration_ms: Number
    total_lines_added: int
    total_lines_removed: int
    model_usage: dict[str, ModelUsage]


class ExtraUsage(Wire, kw_only=True, frozen=True):
    """Paid usage beyond the plan: whether it is enabled, its monthly limit and what is used of it.

    A limit, credit or utilization is null if it does not exist.
    """

    is_enabled: bool
    monthly_limit: Number | None = null()
    used_credits: Number | None = null()
    utilization: Number | None = null()
    currency: str | UnsetType | None = UNSET


class DisplayName(Wire, frozen=True):
    """A name for display."""

    display_name: str


class UsageLimitScope(Wire, frozen=True):
    """The scope of a usage limit: one model or one surface."""

    model: DisplayName | UnsetType | None = UNSET
    surface: DisplayName | UnsetType | None = UNSET


class UsageLimit(Wire, kw_only=True, frozen=True):
    """One usage limit of the plan and how far it is used up.

    ``kind``, ``group`` and ``severity`` may have values not known today; ``resets_at`` is a time as text, or null.
    """

    kind: str
    group: str
    percent: Number
    resets_at: str | None = null()
    scope: UsageLimitScope | UnsetType | None = UNSET
    severity: str
    is_active: bool


class UsageReportLimits(Wire, frozen=True):
    """The usage limits of the plan, and the paid usage beyond it."""

    limits: list[UsageLimit] | None = null()
    extra_usage: ExtraUsage | UnsetType | None = UNSET


class UsageReport(Wire, frozen=True):
    """The data of a usage report that the CLI printed as an assistant message.

    ``rate_limits`` is null where no plan limits apply.
    """

    session: SessionUsage
    rate_limits: UsageReportLimits | None = null()


class ContextOverLimit(Wire, frozen=True):
    """How much the conversation exceeds a limit: the model's, or that of the compaction window."""

    tokens_over: int
    # one of hard_limit, compaction_window
    kind: str


class ContextUsageCategory(Wire, frozen=True):
    """One category of content in the context window and its tokens.

    ``kind`` is ``used`` for tokens in use, ``free`` or ``buffer`` for room, and ``deferred`` for tools that are not
    loaded yet.
    """

    name: str
    tokens: int
    # one of free, used, buffer, deferred
    kind: str


class ContextUsageMcpTool(Wire, frozen=True):
    """Tokens that the description of one MCP tool takes."""

    name: str
    server_name: str
    tokens: int


class ContextMemoryFile(Wire, frozen=True):
    """Tokens that one memory file takes, such as a ``CLAUDE.md``."""

    path: str
    type: str
    tokens: int


class ContextUsageAgent(Wire, frozen=True):
    """Tokens that the description of one agent type takes."""

    agent_type: str
    source: str
    tokens: int


class ContextUsageSkill(Wire, kw_only=True, frozen=True):
    """Tokens that the description of one skill takes."""

    name: str
    source: str
    plugin_name: str | None = None
    tokens: int


class ContextUsage(Wire, kw_only=True, frozen=True):
    """The content of the context window: the data for the output of ``/context``.

    It is part of the assistant message with that text. ``percentage`` runs from 0 to 100. The answer to a
    ``get_context_usage`` request has more detail and camelCase keys.
    """

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
