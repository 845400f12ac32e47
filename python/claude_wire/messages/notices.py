"""Messages that are neither of the conversation nor results nor of the type ``system``."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Sender, Wire, null


class KeepAlive(MessageBase, tag="keep_alive", frozen=True):
    """Keeps the connection open. Either side may send it, and the reader ignores it."""

    sent_by: ClassVar[Sender] = "both"

    startup_mark: str | None = None


class SubagentRetry(Wire, kw_only=True, frozen=True):
    """A subagent's request to the API has failed, and is repeated after ``retry_delay_ms`` milliseconds.

    A null ``error_status`` means that there was no HTTP answer.
    """

    agent_id: str
    attempt: int
    max_retries: int
    retry_delay_ms: Number
    error_status: int | None = null()
    error_category: str


class ToolProgressMessage(MessageBase, tag="tool_progress", kw_only=True, frozen=True):
    """A tool call is still running.

    ``elapsed_time_seconds`` is in seconds and may be fractional. On a ``heartbeat`` the ``tool_use_id`` is made up,
    and ``parent_tool_use_id`` names the call.
    """

    tool_use_id: str
    tool_name: str
    parent_tool_use_id: str | None = null()
    elapsed_time_seconds: Number
    task_id: str | None = None
    heartbeat: bool | None = None
    subagent_type: str | None = None
    subagent_retry: SubagentRetry | None = None
    uuid: str | None = None
    session_id: str | None = None


class AuthStatusMessage(MessageBase, tag="auth_status", kw_only=True, frozen=True):
    """Progress of signing in.

    ``output`` is a list of lines, but one string in the 2.1.7 CLI's dialect. ``isAuthenticating`` is camelCase.
    """

    isAuthenticating: bool
    output: list[str] | str
    error: str | UnsetType | None = UNSET
    uuid: str | None = None
    session_id: str | None = None


class ToolUseSummaryMessage(MessageBase, tag="tool_use_summary", kw_only=True, frozen=True):
    """A short summary of the tool calls named in ``preceding_tool_use_ids``."""

    summary: str
    preceding_tool_use_ids: list[str]
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None


class UnifiedRateLimitWindow(Wire, kw_only=True, frozen=True):
    """How much of one window of the limits is used. ``resetsAt`` is Unix time; the other numbers are fractions."""

    utilization: Number
    resetsAt: Number
    # one of allowed, allowed_warning, rejected
    status: str | None = None
    surpassedThreshold: Number | None = None


class RateLimitInfo(Wire, kw_only=True, frozen=True):
    """The rate limit that matters most now and how far it is used up; all keys are camelCase.

    ``resetsAt`` and ``overageResetsAt`` are Unix times; ``utilization`` and ``surpassedThreshold`` are fractions of the
    limit. The CLI may write other words than the listed ones.
    """

    # one of allowed, allowed_warning, rejected
    status: str
    resetsAt: Number | None = None
    # one of five_hour, seven_day, seven_day_opus, seven_day_sonnet, seven_day_overage_included, overage
    rateLimitType: str | None = None
    utilization: Number | None = None
    # one of allowed, allowed_warning, rejected
    overageStatus: str | None = None
    overageResetsAt: Number | None = None
    # one of unknown, overage_not_provisioned, org_level_disabled, org_level_disabled_until, out_of_credits,
    # seat_tier_level_disabled, member_level_disabled, seat_tier_zero_credit_limit, group_zero_credit_limit,
    # member_zero_credit_limit, org_service_level_disabled, no_limits_configured, fetch_error
    overageDisabledReason: str | None = None
    isUsingOverage: bool | None = None
    overageInUse: bool | None = None
    overageEnabled: bool | None = None
    surpassedThreshold: Number | None = None
    # one of service, channel, group_pool
    limitScope: str | None = None
    errorCode: str | None = None
    canUserPurchaseCredits: bool | None = None
    hasChargeableSavedPaymentMethod: bool | None = None
    # by window: five_hour, seven_day, seven_day_overage_included
    unifiedWindows: dict[str, UnifiedRateLimitWindow] | None = None
    dailyCapPaused: bool | None = None
    rateLimitGraceActive: bool | None = None


class RateLimitEvent(MessageBase, tag="rate_limit_event", kw_only=True, frozen=True):
    """Reports the state of the account's rate limits."""

    rate_limit_info: RateLimitInfo
    uuid: str | None = None
    session_id: str | None = None


class PromptSuggestionMessage(MessageBase, tag="prompt_suggestion", kw_only=True, frozen=True):
    """A guess at the user's next prompt, after the result of a turn.

    Sent only if the host asks for it, for example with ``promptSuggestions`` in ``initialize``.
    """

    suggestion: str
    uuid: str | None = None
    session_id: str | None = None


class ConversationResetMessage(MessageBase, tag="conversation_reset", kw_only=True, frozen=True):
    """The conversation starts again, for instance after ``/clear``. The model no longer sees earlier messages.

    ``session_id`` names the old session, and the next :class:`InitMessage` has the new one. The running
    totals in results start at zero again.
    """

    new_conversation_id: str
    # one of clear, plan_mode_exit, fresh_session, onboarding
    trigger: str | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    user_message_from_human: bool | None = None


class ActiveGoal(Wire, kw_only=True, frozen=True):
    """The goal of the session, and how often it was checked.

    ``tokens_at_start`` is the session's usage when the goal was set.
    """

    condition: str
    iterations: int
    set_at: Number
    tokens_at_start: int
    last_reason: str | None = None


class ActiveGoalMessage(MessageBase, tag="active_goal", kw_only=True, frozen=True):
    """The session has a new goal, or has no goal any more (``value`` is null)."""

    value: ActiveGoal | None = null()
    uuid: str | None = None
    session_id: str | None = None


class CommandLifecycleMessage(MessageBase, tag="command_lifecycle", kw_only=True, frozen=True):
    """The state of a prompt with a ``uuid``, which is repeated here as ``command_uuid``.

    ``state`` is first ``queued``, then ``started``, then ``completed``; or another word.
    """

    command_uuid: str | None = None
    state: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    wakeup_source: str | None = None
    scheduled_for: Number | None = None
    ran_ahead: bool | None = None


class TranscriptMirrorMessage(MessageBase, tag="transcript_mirror", kw_only=True, frozen=True):
    """Lines that the CLI has just added to its transcript file, for a host that keeps a copy.

    Sent only with ``--session-mirror``; ``filePath`` is camelCase, ``entries`` are the file's own records.
    """

    filePath: str | None = None
    entries: list[Any] | None = None


class AuthCredential(Wire, kw_only=True, frozen=True):
    """A token for access to the host. Keep it out of logs."""

    type: str
    token: str


class AuthMessage(MessageBase, tag="auth", kw_only=True, frozen=True):
    """The host's first message on a WebSocket connection; never sent on stdin."""

    sent_by: ClassVar[Sender] = "host"

    credential: AuthCredential


class UpdateEnvironmentVariablesMessage(MessageBase, tag="update_environment_variables", kw_only=True, frozen=True):
    """The host sets environment variables of the running CLI."""

    sent_by: ClassVar[Sender] = "host"

    variables: dict[str, str] | None = None
    request_id: str | None = None
