"""Messages that do not belong to the conversation, are not results, and do not have the type ``system``."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Sender, Wire, null


class KeepAlive(MessageBase, tag="keep_alive", frozen=True):
    """Keeps the connection open. Either side may send this message, and the reader ignores it."""

    sent_by: ClassVar[Sender] = "both"

    startup_mark: str | None = None
    """The startup step that the CLI just finished; only for an SDK that asks for these marks."""


class SubagentRetry(Wire, kw_only=True, frozen=True):
    """A subagent's API request failed, and the CLI repeats it."""

    agent_id: str
    """The id of the subagent."""
    attempt: int
    """The 1-based number of this retry."""
    max_retries: int
    """The number of retries after which the CLI gives up."""
    retry_delay_ms: Number
    """Milliseconds until the retry."""
    error_status: int | None = null()
    """The HTTP status; null if there was no HTTP answer."""
    error_category: str
    """The kind of error."""


class ToolProgressMessage(MessageBase, tag="tool_progress", kw_only=True, frozen=True):
    """A tool call is still running."""

    tool_use_id: str
    """The ``id`` of the tool call; made up if ``heartbeat`` is true."""
    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    parent_tool_use_id: str | None = null()
    """The call whose subagent calls the tool; in a heartbeat, the running call itself."""
    elapsed_time_seconds: Number
    """Seconds since the start of the call, perhaps with a fraction."""
    task_id: str | None = None
    heartbeat: bool | None = None
    """True for a sign of life from a long call, such as ``Bash`` after 30 seconds."""
    subagent_type: str | None = None
    """The type of the subagent, such as ``general-purpose``."""
    subagent_retry: SubagentRetry | None = None
    """Present while the subagent waits for a retry of its request to the API."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


class AuthStatusMessage(MessageBase, tag="auth_status", kw_only=True, frozen=True):
    """Reports the progress of a sign-in."""

    isAuthenticating: bool
    output: list[str] | str
    """The lines of text so far; in CLI 2.1.7 one string."""
    error: str | UnsetType | None = UNSET
    """Why signing in failed."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


class ToolUseSummaryMessage(MessageBase, tag="tool_use_summary", kw_only=True, frozen=True):
    """A short summary of some tool calls."""

    summary: str
    preceding_tool_use_ids: list[str]
    """The ids of the summarized tool calls."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None
    timestamp: str | None = None
    """When the message was written, in ISO 8601."""


class UnifiedRateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of one limit window is used."""

    utilization: Number
    """The fraction of the limit that is used, such as ``0.55``."""
    resetsAt: Number
    """When the window ends, in seconds since 1970-01-01 UTC."""
    # one of allowed, allowed_warning, rejected
    status: str | None = None
    surpassedThreshold: Number | None = None
    """The fraction whose crossing caused a warning, such as ``0.9``."""


class RateLimitInfo(Wire, kw_only=True, frozen=True):
    """The rate limit that matters most now, and how much of it is used. Keys are camelCase.

    The CLI may also write values that are not listed.
    """

    # one of allowed, allowed_warning, rejected
    status: str
    """Whether the API still accepts requests."""
    resetsAt: Number | None = None
    """When the limit resets, in seconds since 1970-01-01 UTC."""
    # one of five_hour, seven_day, seven_day_opus, seven_day_sonnet, seven_day_overage_included, overage
    rateLimitType: str | None = None
    """The limit that ``status`` and ``resetsAt`` describe."""
    utilization: Number | None = None
    """The fraction of the limit that is used, such as ``0.92``."""
    # one of allowed, allowed_warning, rejected
    overageStatus: str | None = None
    """Whether the account may exceed its limit, at extra cost."""
    overageResetsAt: Number | None = None
    """When the limit of this extra usage resets, in seconds since 1970-01-01 UTC."""
    # one of unknown, overage_not_provisioned, org_level_disabled, org_level_disabled_until, out_of_credits,
    # seat_tier_level_disabled, member_level_disabled, seat_tier_zero_credit_limit, group_zero_credit_limit,
    # member_zero_credit_limit, org_service_level_disabled, no_limits_configured, fetch_error
    overageDisabledReason: str | None = None
    """Why extra usage is not possible."""
    isUsingOverage: bool | None = None
    """True if requests are now charged as extra usage."""
    overageInUse: bool | None = None
    """The official SDK treats this field like ``isUsingOverage``."""
    overageEnabled: bool | None = None
    surpassedThreshold: Number | None = None
    """The fraction whose crossing caused a warning, such as ``0.9``."""
    # one of service, channel, group_pool
    limitScope: str | None = None
    """The spending limit that blocks, if it is not the member's: ``group_pool`` is a team's budget."""
    errorCode: str | None = None
    """The API's code for the refusal, such as ``credits_required``."""
    canUserPurchaseCredits: bool | None = None
    """True if the user may buy credits."""
    hasChargeableSavedPaymentMethod: bool | None = None
    """True if the account has a payment method that can be charged."""
    unifiedWindows: dict[str, UnifiedRateLimitWindow] | None = None
    """All windows, by name: ``five_hour``, ``seven_day``, ``seven_day_overage_included``."""
    dailyCapPaused: bool | None = None
    rateLimitGraceActive: bool | None = None


class RateLimitEvent(MessageBase, tag="rate_limit_event", kw_only=True, frozen=True):
    """Reports that a claude.ai subscription's rate limits changed."""

    rate_limit_info: RateLimitInfo
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


class PromptSuggestionMessage(MessageBase, tag="prompt_suggestion", kw_only=True, frozen=True):
    """A guess at the user's next prompt, after a result. See :attr:`InitializeRequest.promptSuggestions`."""

    suggestion: str
    """The text of the prompt."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


class ConversationResetMessage(MessageBase, tag="conversation_reset", kw_only=True, frozen=True):
    """The conversation starts over, for example after ``/clear``. The model no longer sees earlier messages.

    The running totals in results restart at 0.
    """

    new_conversation_id: str
    """The id of the new conversation; observed: the same as ``uuid``."""
    # one of clear, plan_mode_exit, fresh_session, onboarding
    trigger: str | None = None
    """The cause; treat an unknown value like None."""
    user_message_uuid: str | None = None
    """The uuid of the ``/clear`` prompt; None for other triggers."""
    timestamp: str | None = None
    """When the conversation was reset, in ISO 8601."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None
    """The id of the old session; the next :class:`InitMessage` has the new id."""
    user_message_from_human: bool | None = None


class ActiveGoal(Wire, kw_only=True, frozen=True):
    """The session's goal, and how often it was checked."""

    condition: str
    """The condition under which the agent may stop, in the user's words."""
    iterations: int
    """How often the goal was checked and not met."""
    set_at: Number
    """When the goal was set; the unit is not known."""
    tokens_at_start: int
    """The tokens that the session had used when the goal was set."""
    last_reason: str | None = None
    """Why the goal was not met at the last check."""


class ActiveGoalMessage(MessageBase, tag="active_goal", kw_only=True, frozen=True):
    """The session's goal was set, checked or removed."""

    value: ActiveGoal | None = null()
    """The goal; null after it was met or removed."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None


class CommandLifecycleMessage(MessageBase, tag="command_lifecycle", kw_only=True, frozen=True):
    """The state of a prompt that has a ``uuid``."""

    command_uuid: str | None = None
    """The uuid of the prompt."""
    state: str | None = None
    """First ``queued``, then ``started``, then ``completed``; or another value."""
    uuid: str | None = None
    """The id of this message."""
    session_id: str | None = None
    wakeup_source: str | None = None
    scheduled_for: Number | None = None
    ran_ahead: bool | None = None


class TranscriptMirrorMessage(MessageBase, tag="transcript_mirror", kw_only=True, frozen=True):
    """Lines that the CLI added to its transcript, for a host that keeps a copy. Sent only with ``--session-mirror``."""

    filePath: str | None = None
    """The path of the transcript."""
    entries: list[Any] | None = None
    """The lines, as JSON objects: decode them to records."""


class AuthCredential(Wire, kw_only=True, frozen=True):
    """A token for access to the host. Keep the token out of logs."""

    type: str
    token: str
    """The secret itself."""


class AuthMessage(MessageBase, tag="auth", kw_only=True, frozen=True):
    """The host's first message on a WebSocket connection; never sent on stdin."""

    sent_by: ClassVar[Sender] = "host"

    credential: AuthCredential


class UpdateEnvironmentVariablesMessage(MessageBase, tag="update_environment_variables", kw_only=True, frozen=True):
    """The host sets environment variables of the running CLI."""

    sent_by: ClassVar[Sender] = "host"

    variables: dict[str, str] | None = None
    """The new value of each variable."""
    request_id: str | None = None
