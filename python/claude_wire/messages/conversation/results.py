"""The ``result`` messages, which end turns, and the exceptions for failed turns.

Background tasks may delay results. The results of several turns then arrive together.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import MessageBase, Number, Wire, constant, null
from claude_wire.messages.conversation.origins import MessageOrigin
from claude_wire.messages.conversation.usage import ModelUsage, Usage
from claude_wire.support.errors import ClaudeWireError, is_name
from claude_wire.support.text import quoted


class PermissionDenial(Wire, kw_only=True, frozen=True):
    """A tool call that was refused."""

    tool_name: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    tool_input: dict[str, Any]
    """The input of the call, as the model wrote it."""


class DeferredToolUse(Wire, kw_only=True, frozen=True):
    """The tool call that a hook deferred, which ended the turn with ``terminal_reason`` ``tool_deferred``."""

    id: str
    """The ``id`` of the tool call."""
    name: str
    """The name of the tool."""
    input: dict[str, Any]
    """The input of the call, as the model wrote it."""


class InvalidConfigFile(Wire, kw_only=True, frozen=True):
    """The configuration file that kept the session from starting."""

    path: str
    """The file that is not valid JSON."""
    is_global: bool
    """True for the CLI's global configuration, the only file with backups."""
    backup_searched: bool
    """True if the CLI looked for a backup, even if it found none."""
    backup_path: str | None = None
    """The backup, if the CLI found one; the backup may also be broken."""


class ErrorInfo(Wire, kw_only=True, frozen=True):
    """An error as text and code, in the ``permission_request`` dialect."""

    message: str
    """The error as human-readable text."""
    code: str
    """A code for the error, such as ``auth_error`` or ``budget_exceeded``."""


class ResultMessage(MessageBase, tag="result", kw_only=True, frozen=True):
    """Ends a turn, and reports its outcome, cost and duration. The base class of all results.

    Read :attr:`ok`, not ``subtype``. If the API failed, the ``subtype`` is ``success``, ``is_error`` is true, and
    ``result`` has the text. If the CLI failed, ``errors`` has the error messages, and there is no ``result``.

    ``total_cost_usd`` and ``modelUsage`` are running totals of the session, which continue when a session is resumed or
    forked: do not add them up. ``usage`` and ``model_usage_since_last_result`` are for this turn only.
    """

    repr_first: ClassVar[tuple[str, ...]] = ("result", "errors", "num_turns", "total_cost_usd", "stop_reason")

    duration_api_ms: Number | None = None
    """Milliseconds of waiting for the API: a running total of the session, which may exceed ``duration_ms``."""
    stop_reason: str | None = null()
    """The ``stop_reason`` of the model's last message."""
    session_id: str | None = None
    """The id of the session; ``ClaudeOptions(resume=)`` takes it."""
    total_cost_usd: Number | None = None
    """A running total of the session in US dollars, not the cost of this turn."""
    usage: Usage | None = None
    """The usage of this turn's main loop, excluding subagents."""
    modelUsage: dict[str, ModelUsage] | None = None
    """Running totals of the session by model, including subagents, not the usage of this turn."""
    permission_denials: list[PermissionDenial] | None = None
    """The tool calls that were refused."""
    # one of blocking_limit, rapid_refill_breaker, prompt_too_long, image_error, model_error, api_error,
    # malformed_tool_use_exhausted, aborted_streaming, aborted_tools, stop_hook_prevented, hook_stopped,
    # tool_deferred, max_turns, background_requested, completed, budget_exhausted, structured_output_retry_exhausted,
    # tool_deferred_unavailable, turn_setup_failed
    terminal_reason: str | None = None
    """Why the turn ended."""
    # one of off, cooldown, on
    fast_mode_state: str | None = None
    """Whether fast mode is on; ``cooldown`` if a rate limit paused it."""
    # one of unknown, free, preference, extra_usage_disabled, network_error, not_first_party, disabled_by_env,
    # model_not_allowed, sdk_opt_in_required, pending
    fast_mode_disabled_reason: str | None = None
    """Why fast mode is off."""
    origin: MessageOrigin | None = None
    """The cause of the turn, if it was not a prompt of the host."""
    subagent_stats: dict[str, Any] | None = None
    """Counts of subagents: spawned, completed, failed, killed, refused, and by type."""
    safety_stops: int | None = None
    """The number of answers that a safety classifier stopped: a running total of the session."""
    is_error: bool | None = None
    """True if the turn failed, even if ``subtype`` is ``success``; read :attr:`ok` instead."""
    num_turns: int | None = None
    """How often the model answered in this turn."""
    subtype: str | UnsetType = UNSET
    """How the turn ended, such as ``success`` or ``error_max_turns``; UNSET if absent."""
    api_error_status: int | UnsetType | None = UNSET
    """The HTTP status, if the API failed."""
    api_error_type: str | None = None
    """The API's type of the error, such as ``rate_limit_error``; None if the API did not fail."""
    result: str | None = None
    """The last text of the turn, or the text of an API failure."""
    structured_output: Any = None
    """The output that matches the JSON schema, as plain objects; None without a schema or a match."""
    ttft_ms: Number | None = None
    """Milliseconds from the start of the turn to the first token."""
    duration_ms: Number | None = None
    """The duration of this turn in milliseconds, including waits for permission."""
    uuid: str | None = None
    """The id of this message."""
    begun_message_ids: list[str] | None = None
    """The API's ids of the answers that began to stream in this turn."""
    ttft_stream_ms: Number | None = None
    """Milliseconds from the start of the turn to the first event of the answer."""
    time_to_request_ms: Number | None = None
    """Milliseconds from the start of the turn to its first API request."""
    first_content_frame_ms: Number | None = None
    """Milliseconds from the start of the turn to the first content of the answer."""
    user_message_uuid: str | None = None
    """The uuid of the prompt that this turn answers."""
    user_message_uuids: list[str] | None = None
    """The uuids of all prompts that this turn answers, including merged ones."""
    local_command: str | None = None
    """The local command that ran instead of the model, without the slash."""
    request_sent_wall_ms: Number | None = None
    """When the first API request was sent, in milliseconds since 1970-01-01 UTC."""
    first_request_input_tokens: int | None = None
    """``input_tokens`` of the turn's first API request."""
    first_request_cache_read_input_tokens: int | None = None
    """``cache_read_input_tokens`` of the turn's first API request."""
    queued_turn_count: int | None = None
    """The number of prompts that are still waiting for a turn."""
    result_index: int | None = None
    """The 0-based number of this result in the process; a gap means that a result was lost."""
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    """The usage since the previous result by model, including subagents, which you may add up; None in older CLIs."""
    errors: list[str] | None = None
    """The errors as strings; a string that begins with ``[ede_diagnostic]`` is for the CLI's developers."""
    error: ErrorInfo | None = None
    """The error, in the ``permission_request`` dialect."""
    resume_reason: str | None = None
    """Why the turn continues after a restart of the worker, such as ``interrupted_turn``; None in other turns."""
    first_stream_post_ms: Number | None = None
    """Milliseconds until a remote session uploaded its first stream event."""
    first_stream_post_ack_ms: Number | None = None
    """Milliseconds until the server acknowledged the first uploaded stream event."""
    first_stream_post_queue_wait_ms: Number | None = None
    """Milliseconds that the upload of the first stream event waited in the queue."""
    # one of durable_post, ephemeral_post, retry_backoff, hold, none
    first_stream_post_queued_behind: str | None = None
    """What the upload of the first stream event waited for."""
    first_stream_post_wall_ms: Number | None = None
    """When the first stream event was uploaded, in milliseconds since 1970-01-01 UTC."""
    first_text_post_ms: Number | None = None
    """Milliseconds until a remote session uploaded its first text."""
    first_text_post_queue_wait_ms: Number | None = None
    """Milliseconds that the upload of the first text waited in the queue."""
    # one of durable_post, ephemeral_post, retry_backoff, hold, none
    first_text_post_queued_behind: str | None = None
    """What the upload of the first text waited for."""
    first_text_post_wall_ms: Number | None = None
    """When the first text was uploaded, in milliseconds since 1970-01-01 UTC."""
    time_to_request_from_spawn_ms: Number | None = None
    """Milliseconds from the start of the process to the first API request."""
    warm_spare_claimed: bool | None = None
    """True if the session uses a process that was started in advance."""
    time_origin_ms: Number | None = None
    """When the process started, in milliseconds since 1970-01-01 UTC."""
    deferred_tool_use: DeferredToolUse | None = None
    """The tool call that a hook deferred, if that ended the turn."""
    # The CLI rarely writes these diagnostics of its process.
    time_to_request_phases_ms: dict[str, Any] | None = None
    """Milliseconds of each phase before the first API request."""
    turn_start_resume_kind: str | None = None
    handoff_intake_phases_ms: dict[str, Any] | None = None
    process_turn_index: int | None = None
    """The number of this turn in the process."""
    time_to_request_cpu_ms: Number | None = None
    """Milliseconds of processor time before the first API request."""
    time_to_request_loop_lag_ms: Number | None = None
    """Milliseconds by which the event loop was late before the first API request."""
    time_to_request_major_faults: int | None = None
    """The number of major page faults before the first API request."""
    process_rss_mib_turn_start: Number | None = None
    """The resident memory of the CLI at the start of the turn, in MiB."""
    process_anon_mib_turn_start: Number | None = None
    """The anonymous memory of the CLI at the start of the turn, in MiB."""
    process_rss_mib_result: Number | None = None
    """The resident memory of the CLI when it wrote the result, in MiB."""
    process_anon_mib_result: Number | None = None
    """The anonymous memory of the CLI when it wrote the result, in MiB."""
    process_peak_rss_mib: Number | None = None
    """The maximum resident memory of the CLI so far, in MiB."""
    process_cpu_ms_between_turns: Number | None = None
    """Milliseconds of processor time of the CLI between the previous turn and this one."""
    process_wall_ms_between_turns: Number | None = None
    """Milliseconds between the previous turn and this one."""
    process_cpu_ms_turn: Number | None = None
    """Milliseconds of processor time of the CLI in this turn."""
    process_wall_ms_turn: Number | None = None
    """Milliseconds of this turn."""
    shell_cpu_ms_turn: Number | None = None
    """Milliseconds of processor time of shell commands in this turn."""
    shell_cpu_ms_since_last_result: Number | None = None
    """Milliseconds of processor time of shell commands since the previous result."""
    shell_wall_ms_since_last_result: Number | None = None
    """Milliseconds that shell commands ran since the previous result."""
    process_cpu_ms_streaming: Number | None = None
    """Milliseconds of processor time of the CLI while answers streamed."""
    process_wall_ms_streaming: Number | None = None
    """Milliseconds in which answers streamed."""
    main_stream_count: int | None = None
    """The number of streamed answers of the main conversation."""
    main_stream_event_count: int | None = None
    """The number of events in the streamed answers of the main conversation."""
    main_stream_chunk_count: int | None = None
    """The number of chunks in which the streamed answers of the main conversation arrived."""
    tool_pool_build_count: int | None = None
    tool_pool_build_lapsed_count: int | None = None
    tool_pool_moved_at_lapse_count: int | None = None
    tool_pool_limit_ms: Number | None = None
    process_turn_states: dict[str, Any] | None = None
    process_turn_threads: dict[str, Any] | None = None
    input_attachments_detail: dict[str, Any] | None = None
    memory_check_detail: dict[str, Any] | None = None
    resume_store_confirm_detail: dict[str, Any] | None = None
    tool_schema_build_detail: dict[str, Any] | None = None
    message_normalization_detail: dict[str, Any] | None = None
    request_build_detail: dict[str, Any] | None = None
    user_message_server_received_wall_ms: Number | None = None
    """When the server received the prompt, in milliseconds since 1970-01-01 UTC."""
    frame_received_wall_ms: Number | None = None
    """When the CLI received the prompt, in milliseconds since 1970-01-01 UTC."""
    frame_enqueued_wall_ms: Number | None = None
    """When the CLI put the prompt into its queue, in milliseconds since 1970-01-01 UTC."""
    turn_started_wall_ms: Number | None = None
    """When the turn began, in milliseconds since 1970-01-01 UTC."""
    frame_intake_phases_ms: dict[str, Any] | None = None
    """Milliseconds of each phase from receiving the prompt to queueing it."""
    turn_start_phases_ms: dict[str, Any] | None = None
    """Milliseconds of each startup phase of the turn."""
    turn_start_control_requests_ms: Number | None = None
    """Milliseconds that control requests took at the start of the turn."""
    text_post_count: int | None = None
    """The number of uploads of text in a remote session."""
    text_post_gap_over_500ms_count: int | None = None
    """The number of gaps of more than 500 milliseconds between uploads of text."""
    text_post_flush_timer_max_late_ms: Number | None = None
    flag_fetch_kick: str | None = None
    process_start_tuning: int | None = None
    process_start_purge_delay_ms: Number | None = None
    process_garbage_collections: dict[str, Any] | None = None
    api_error_code: str | None = None
    api_error_origin: str | None = None
    api_error: str | None = None
    """The CLI's name for the API's error; observed: ``usage_limit_reached``."""
    interrupted_by_shutdown: bool | None = None
    """True if the turn ended because the process shut down."""
    restored_rewind: dict[str, Any] | None = None
    stopped_by_permission_check: bool | None = None
    runner_exit: dict[str, Any] | None = None
    message_undelivered: str | None = None
    policy_answer: str | None = None
    policy_answer_reason: str | None = None
    credential_expires_at: str | None = None
    """An estimate of when the claude.ai login finally expires, in ISO 8601; None for other credentials."""
    # one of org_pin_api_key_conflict, provider_not_allowed, org_verify_failed, org_pin_mismatch,
    # managed_settings_invalid, remote_settings_required_unavailable, gateway_signin_required, gateway_access_denied,
    # proxy_invalid, temp_dir_unusable, cwd_unavailable, shell_tool_missing, session_held_by_background,
    # worktree_resume_refused, worktree_unverified, cli_version_too_old, bypass_root, org_config_required_unavailable,
    # org_config_refused, sandbox_required_unavailable, initialize_not_first, config_file_invalid,
    # managed_settings_not_delivered, initialize_fields_not_delivered, sideload_flags_disabled
    startup_failure_reason: str | None = None
    """Why the session could not start; ``errors`` has the text."""
    invalid_config_file: InvalidConfigFile | None = None
    """The broken file, with the ``startup_failure_reason`` ``config_file_invalid``."""

    @property
    def ok(self) -> bool:
        """True if the turn succeeded.

        A :attr:`cancelled` turn did not succeed. For other turns, ``is_error`` decides. In a dialect without
        ``is_error``, a turn succeeded if its ``subtype`` is ``success`` and it has no ``error`` and no ``errors``.
        """
        if self.cancelled:
            return False
        if self.is_error is None:
            return self.subtype == "success" and not (self.error or self.errors)
        return not self.is_error

    @property
    def cancelled(self) -> bool:
        """True if the turn was interrupted, whatever ``is_error`` says.

        The CLI reports an interrupt by the ``terminal_reason`` ``aborted_streaming`` or ``aborted_tools``, miriad-code
        by the ``subtype`` ``cancelled``, and other dialects by the ``subtype`` ``interrupted``. If the CLI is older
        than ``terminal_reason``, this is False.
        """
        return self.subtype in ("cancelled", "interrupted") or self.terminal_reason in (
            "aborted_streaming",
            "aborted_tools",
        )

    def to_error(
        self, reason: str | None = None, resets_at: float | None = None, *, structured: bool = False
    ) -> TurnError | None:
        """Return the exception for this result; None if the turn succeeded.

        Args:
            reason: :attr:`AssistantMessage.error_reason` of the turn's last message. Without credentials, the CLI makes
                no request, so the result has no ``api_error_status``, and only ``reason`` explains the failure.
            resets_at: ``resetsAt`` of the last :class:`RateLimitEvent` whose ``status`` is ``rejected``, for
                :attr:`RateLimitError.resets_at`.
            structured: true if the session has a JSON schema. Then a success without ``structured_output`` is a
                :class:`StructuredOutputError`, unless the turn did not call the model (``num_turns`` is 0).
        """
        if self.ok:
            unmet = structured and self.structured_output is None and self.num_turns != 0
            return StructuredOutputError(self) if unmet else None
        if self.cancelled:
            return TurnCancelledError(self)
        named = _BY_SUBTYPE.get(self.subtype or "") or _BY_CODE.get(self.error.code if self.error is not None else "")
        if named is not None:
            return named(self)
        if self.subtype != "success":
            not_found = any(text.startswith(_NOT_FOUND) for text in self.errors or ())
            return SessionNotFoundError(self) if not_found else ExecutionError(self)
        for cls, signs in _API_ERRORS.items():
            if not signs.isdisjoint((self.api_error_status, self.api_error_type, reason)):
                return RateLimitError(self, resets_at) if cls is RateLimitError else cls(self)
        return ApiError(self)

    def raise_for_error(self, *, structured: bool = False) -> None:
        """Raise the exception from :meth:`to_error` if the turn failed.

        Args:
            structured: as for :meth:`to_error`.

        Raises:
            TurnError: the subclass that fits the failure.
        """
        error = self.to_error(structured=structured)
        if error is not None:
            raise error


class TurnError(ClaudeWireError):
    """A turn ended with a result that is an error. :meth:`~claude_wire.ResultMessage.to_error` returns this exception.

    The text quotes the CLI's error (see :mod:`claude_wire.errors`), and says what to do.

    Attributes:
        result: the whole :class:`~claude_wire.ResultMessage`, with its text and cost.
    """

    _remedy = ""

    def __init__(self, result: ResultMessage) -> None:
        words = quoted(words_of(result))
        who = "the CLI" if result.error is None else "the agent"
        said = f'{who} says "{words}"' if words else ""
        # The model may have written this text, so it is not quoted.
        if not words and result.result and not result.ok and not result.cancelled:
            said = "its text is in .result.result"
        super().__init__("; ".join(filter(None, (self._describe(result), said, self._advise(result)))))
        self.result = result

    def _describe(self, result: ResultMessage) -> str:
        subtype = result.subtype if result.subtype and is_name(result.subtype) else "an error"
        return f"the turn ended with {subtype}{self._why(result)}"

    @staticmethod
    def _why(result: ResultMessage) -> str:
        code = result.error.code if result.error is not None else None
        reason = result.terminal_reason or result.startup_failure_reason or code
        return f" ({reason})" if is_name(reason) else ""

    def _advise(self, result: ResultMessage) -> str:
        return self._remedy


class ApiError(TurnError):
    """The API refused a request, or failed even after the CLI's retries. The result's ``subtype`` is ``success``.

    Attributes:
        status: the HTTP status, or None if there was no answer.
        error_type: the name of the error, such as ``"invalid_request_error"``, or None.
    """

    def __init__(self, result: ResultMessage) -> None:
        self.status: int | None = result.api_error_status or None
        self.error_type: str | None = result.api_error_type or (result.error.code if result.error is not None else None)
        super().__init__(result)

    def _describe(self, result: ResultMessage) -> str:
        error_type = self.error_type if is_name(self.error_type) else None
        details = [str(detail) for detail in (self.status, error_type) if detail]
        return "the API failed" + (f": {' '.join(details)}" if details else "")

    def _advise(self, result: ResultMessage) -> str:
        if self._remedy:
            return self._remedy
        if result.terminal_reason in ("prompt_too_long", "blocking_limit", "rapid_refill_breaker"):
            return "the context is full: send the prompt /compact, or begin a new session"
        if self.status == 413 or result.terminal_reason == "image_error":
            return "send fewer or smaller images and attachments, or begin a new session"
        if self.status == 404:
            return "choose a model that this account has: ClaudeOptions(model=...) or session.set_model()"
        if self.status is not None and self.status >= 500:
            return "try again later"
        if self.status is None and result.terminal_reason == "api_error":
            return "there was no answer from the API: check the login, the network, proxies and ANTHROPIC_BASE_URL"
        return ""


class AuthenticationError(ApiError):
    """The credentials are missing, wrong, or do not allow the request (HTTP 401 and 403)."""

    def _advise(self, result: ResultMessage) -> str:
        if result.error is not None:  # from an agent with a dialect other than the CLI's
            return "give the agent credentials that may do this"
        return "log in (run `claude`, then /login), or give the CLI a key that may do this, in ANTHROPIC_API_KEY"


class BillingError(ApiError):
    """The account has no credit (HTTP 402)."""

    _remedy = "add credit to the account, or use another one"


class RateLimitError(ApiError):
    """Too many requests, or the API is overloaded (HTTP 429 and 529). Try again later.

    Args:
        resets_at: when the limit ends, in seconds since 1970-01-01 UTC.

    Attributes:
        resets_at: when the limit ends, in UTC, or None. A session takes the time from the last
            :class:`~claude_wire.messages.RateLimitEvent` with the ``status`` ``rejected``, which the CLI sends for
            subscriptions. None for the limit of an API key, for an overloaded API, and from
            :meth:`~claude_wire.ResultMessage.raise_for_error`.
    """

    _remedy = "try again later"

    def __init__(self, result: ResultMessage, resets_at: float | None = None) -> None:
        self.resets_at: datetime | None = None
        if resets_at is not None:
            with suppress(OverflowError, ValueError, OSError):  # not a valid time
                self.resets_at = datetime.fromtimestamp(resets_at, timezone.utc)
        super().__init__(result)

    def _advise(self, result: ResultMessage) -> str:
        return self._remedy if self.resets_at is None else f"try again after {self.resets_at:%Y-%m-%d %H:%M:%S} UTC"


class MaxTurnsError(TurnError):
    """The run stopped because it reached the turn limit (``--max-turns``)."""

    _remedy = "allow more with ClaudeOptions(max_turns=...), or go on with another prompt"


class MaxBudgetError(TurnError):
    """The session reached the spending limit (``--max-budget-usd``)."""

    _remedy = "allow more with ClaudeOptions(max_budget_usd=...)"


class StructuredOutputError(TurnError):
    """The model's output did not match the JSON schema in any attempt, or the model made no attempt.

    Without an attempt, the result is a ``success`` without ``structured_output``, and ``result`` is the model's text.
    """

    _remedy = ".result.errors has the last reason; ask for less, or loosen the schema"

    def _describe(self, result: ResultMessage) -> str:
        if result.ok:
            return "the turn succeeded, but has no structured_output, which json_schema asks for"
        return super()._describe(result)

    def _advise(self, result: ResultMessage) -> str:
        return "the prompt must ask for what the schema describes" if result.ok else self._remedy


class TurnCancelledError(TurnError):
    """The turn was interrupted, by :meth:`~claude_wire.Session.interrupt`, a signal, or a refusal with ``interrupt``.

    ``terminal_reason`` of the result says what was interrupted: ``aborted_streaming`` or ``aborted_tools``.
    """

    def _describe(self, result: ResultMessage) -> str:
        return f"the turn was cancelled{self._why(result)}"


class SubagentStoppedError(TurnError):
    """The CLI stopped background subagents before they reported, and no turn followed. The turns did not fail.

    The CLI stops all subagents when one exceeds ``max_budget_usd``, and when it is interrupted between two turns.

    Attributes:
        result: the last result before the subagents were stopped.
        count: the number of stopped subagents.
    """

    _remedy = "allow more with ClaudeOptions(max_budget_usd=...), if the budget is spent"

    def __init__(self, result: ResultMessage, count: int) -> None:
        self.count: int = count
        super().__init__(result)

    def _describe(self, result: ResultMessage) -> str:
        subagents = "a subagent was" if self.count == 1 else f"{self.count} subagents were"
        return f"{subagents} stopped in the background, by a budget or an interrupt, and no turn came of that"


class ExecutionError(TurnError):
    """The turn failed for another reason. For example, the session could not start."""


class SessionNotFoundError(ExecutionError):
    """The conversation to resume does not exist: it was removed, or belongs to another directory, user or machine.

    The CLI removes conversations after 30 days (``cleanupPeriodDays`` of its settings).

    Attributes:
        folder: the path of the searched folder; None if unknown. The CLI searches only the subfolder of its working
            directory.
        result: the CLI's result. If the session did not start the CLI, the result that the CLI would have written.
    """

    def __init__(self, result: ResultMessage, folder: str | None = None) -> None:
        self.folder: str | None = folder
        super().__init__(result)

    def _describe(self, result: ResultMessage) -> str:
        return "the session to resume does not exist" + (f" in {self.folder}" if self.folder else "")

    def _advise(self, result: ResultMessage) -> str:
        return (
            "begin a new session, or give the cwd and the CLAUDE_CONFIG_DIR or HOME that it had; "
            "claude_wire.transcripts.find_sessions() lists those that there are"
        )


#: How the CLI's error messages for an unknown conversation begin.
_NOT_FOUND = ("No conversation found", "No session found")


def words_of(result: ResultMessage) -> str:
    """Return the CLI's error text. Do not use a result's other text, which the model may have written."""
    if result.subtype == "success" and result.is_error and result.result:
        return result.result
    if result.error:
        return result.error.message
    # The CLI writes diagnostics for its developers, such as "[ede_diagnostic] …", in each interrupted turn.
    return next((text for text in result.errors or () if not text.startswith("[ede_diagnostic]")), "")


_BY_SUBTYPE: dict[str, type[TurnError]] = {
    "error_max_turns": MaxTurnsError,
    "error_max_budget_usd": MaxBudgetError,
    "error_max_structured_output_retries": StructuredOutputError,
}
#: ``error.code`` in the ``permission_request`` dialect, in which all failed turns have the subtype ``error``.
_BY_CODE: dict[str, type[TurnError]] = {"auth_error": AuthenticationError, "budget_exceeded": MaxBudgetError}
#: Exception -> the HTTP statuses, the API's error types, and the ``error`` values of assistant messages that cause it.
_API_ERRORS: dict[type[ApiError], frozenset[object]] = {
    AuthenticationError: frozenset(
        (
            *(401, 403, "authentication_error", "permission_error", "authentication_failed", "oauth_org_not_allowed"),
            *("account_on_hold", "verification_required", "cloud_credential_error"),
        )
    ),
    BillingError: frozenset((402, "billing_error")),
    RateLimitError: frozenset((429, 529, "rate_limit_error", "overloaded_error", "rate_limit", "overloaded")),
}


class ResultSuccess(ResultMessage, kw_only=True, frozen=True):
    """The turn ended normally, or the API failed. Check ``is_error`` before you use ``result``.

    After a local command such as ``/clear``, ``num_turns`` is 0, and ``local_command`` usually has its name.
    """

    subtype: Literal["success"] = constant("success")


class ResultErrorDuringExecution(ResultMessage, kw_only=True, frozen=True):
    """The turn was interrupted (see :attr:`ResultMessage.cancelled`) or failed, or the session could not start.

    If the session could not start, all counts are 0, and ``startup_failure_reason`` may say why.
    """

    subtype: Literal["error_during_execution"] = constant("error_during_execution")


class ResultErrorMaxTurns(ResultMessage, kw_only=True, frozen=True):
    """The turn reached the limit of ``--max-turns``. ``num_turns`` may be one more than the limit."""

    subtype: Literal["error_max_turns"] = constant("error_max_turns")


class ResultErrorMaxBudgetUsd(ResultMessage, kw_only=True, frozen=True):
    """The session's cost reached the limit of ``--max-budget-usd``.

    The cost may exceed the limit, because the CLI knows the cost only after each answer.
    """

    subtype: Literal["error_max_budget_usd"] = constant("error_max_budget_usd")


class ResultErrorMaxStructuredOutputRetries(ResultMessage, kw_only=True, frozen=True):
    """The model's output did not match the JSON schema in any attempt. ``errors`` has the last reason."""

    subtype: Literal["error_max_structured_output_retries"] = constant("error_max_structured_output_retries")


class ResultError(ResultMessage, kw_only=True, frozen=True):
    """A failed turn in miriad-code's dialect, with counts, or in the ``permission_request`` dialect, with ``error``."""

    subtype: Literal["error"] = constant("error")


class ResultCancelled(ResultMessage, kw_only=True, frozen=True):
    """An interrupted turn in miriad-code's dialect. The CLI sends :class:`ResultErrorDuringExecution` instead."""

    subtype: Literal["cancelled"] = constant("cancelled")
