"""DOC module notices"""

from __future__ import annotations

from typing import Any

from claude_wire.messages._base import Number, Wire, null

__all__ = [
    "ActiveGoal",
    "ActiveGoalMessage",
    "AuthCredential",
    "AuthMessage",
    "AuthStatusMessage",
    "CommandLifecycleMessage",
    "ConversationResetMessage",
    "KeepAlive",
    "PromptSuggestionMessage",
    "RateLimitEvent",
    "RateLimitInfo",
    "SubagentRetry",
    "ToolProgressMessage",
    "ToolUseSummaryMessage",
    "TranscriptMirrorMessage",
    "UpdateEnvironmentVariablesMessage",
]


class KeepAlive(Wire, tag_field="type", tag="keep_alive", frozen=True):
    """DOC KeepAlive"""


class SubagentRetry(Wire, kw_only=True, frozen=True):
    """DOC SubagentRetry"""

    agent_id: str
    attempt: int
    max_retries: int
    retry_delay_ms: Number
    error_status: int | None = null()
    error_category: str


class ToolProgressMessage(Wire, tag_field="type", tag="tool_progress", kw_only=True, frozen=True):
    """DOC ToolProgressMessage"""

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


class AuthStatusMessage(Wire, tag_field="type", tag="auth_status", kw_only=True, frozen=True):
    """DOC AuthStatusMessage"""

    isAuthenticating: bool
    output: list[str] | str
    error: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class ToolUseSummaryMessage(Wire, tag_field="type", tag="tool_use_summary", kw_only=True, frozen=True):
    """DOC ToolUseSummaryMessage"""

    summary: str
    preceding_tool_use_ids: list[str]
    uuid: str | None = None
    session_id: str | None = None


class RateLimitInfo(Wire, kw_only=True, frozen=True):
    """DOC RateLimitInfo"""

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
    surpassedThreshold: int | None = None
    # one of service, channel, group_pool
    limitScope: str | None = None
    errorCode: str | None = None
    canUserPurchaseCredits: bool | None = None
    hasChargeableSavedPaymentMethod: bool | None = None


class RateLimitEvent(Wire, tag_field="type", tag="rate_limit_event", kw_only=True, frozen=True):
    """DOC RateLimitEvent"""

    rate_limit_info: RateLimitInfo
    uuid: str | None = None
    session_id: str | None = None


class PromptSuggestionMessage(Wire, tag_field="type", tag="prompt_suggestion", kw_only=True, frozen=True):
    """DOC PromptSuggestionMessage"""

    suggestion: str
    uuid: str | None = None
    session_id: str | None = None


class ConversationResetMessage(Wire, tag_field="type", tag="conversation_reset", kw_only=True, frozen=True):
    """DOC ConversationResetMessage"""

    new_conversation_id: str
    # one of clear, plan_mode_exit, fresh_session, onboarding
    trigger: str | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class ActiveGoal(Wire, kw_only=True, frozen=True):
    """DOC ActiveGoal"""

    condition: str
    iterations: int
    set_at: int
    tokens_at_start: int
    last_reason: str | None = None


class ActiveGoalMessage(Wire, tag_field="type", tag="active_goal", kw_only=True, frozen=True):
    """DOC ActiveGoalMessage"""

    value: ActiveGoal | None = null()
    uuid: str | None = None
    session_id: str | None = None


class CommandLifecycleMessage(Wire, tag_field="type", tag="command_lifecycle", kw_only=True, frozen=True):
    """DOC CommandLifecycleMessage"""

    command_uuid: str | None = None
    state: str | None = None
    uuid: str | None = None
    session_id: str | None = None


class TranscriptMirrorMessage(Wire, tag_field="type", tag="transcript_mirror", kw_only=True, frozen=True):
    """DOC TranscriptMirrorMessage"""

    filePath: str | None = None
    entries: list[Any] | None = None


class AuthCredential(Wire, kw_only=True, frozen=True):
    """DOC AuthCredential"""

    type: str
    token: str


class AuthMessage(Wire, tag_field="type", tag="auth", kw_only=True, frozen=True):
    """DOC AuthMessage"""

    credential: AuthCredential


class UpdateEnvironmentVariablesMessage(
    Wire, tag_field="type", tag="update_environment_variables", kw_only=True, frozen=True
):
    """DOC UpdateEnvironmentVariablesMessage"""

    variables: dict[str, str] | None = None
