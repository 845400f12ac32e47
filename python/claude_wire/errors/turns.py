"""The exceptions for turns whose result is an error."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from claude_wire.support.text import quoted

if TYPE_CHECKING:
    from claude_wire.messages import ResultMessage

from claude_wire.errors.base import ClaudeWireError, is_name


class TurnError(ClaudeWireError):
    """A turn ended with a result that is an error; :meth:`~claude_wire.ResultMessage.to_error` makes the fitting one.

    Its text says what the CLI says of it (see the top of this module), and what to do.

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
        subtype = result.subtype if is_name(result.subtype) else "an error"
        return f"the turn ended with {subtype}{self._why(result)}"

    @staticmethod
    def _why(result: ResultMessage) -> str:
        code = result.error.code if result.error is not None else None
        reason = result.terminal_reason or result.startup_failure_reason or code
        return f" ({reason})" if is_name(reason) else ""

    def _advise(self, result: ResultMessage) -> str:
        """Return advice in words."""
        return self._remedy


class ApiError(TurnError):
    """The API refused a request or failed, also after the CLI had tried again.

    The result of the CLI has the ``subtype`` ``success``.

    Attributes:
        status: the HTTP status, or None if there was no answer.
        error_type: the error's name in the API or a dialect, such as ``"invalid_request_error"``, or None.
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
    """The credentials are missing, wrong, or not allowed to do this (HTTP 401 and 403)."""

    def _advise(self, result: ResultMessage) -> str:
        if result.error is not None:  # from an agent of another dialect than the CLI's
            return "give the agent credentials that may do this"
        return "log in (run `claude`, then /login), or give the CLI a key that may do this, in ANTHROPIC_API_KEY"


class BillingError(ApiError):
    """The account has no credit (HTTP 402)."""

    _remedy = "add credit to the account, or use another one"


class RateLimitError(ApiError):
    """Too many requests, or the API is overloaded (HTTP 429 and 529). Trying later may help.

    Args:
        resets_at: when the limit ends, in seconds since 1970-01-01 UTC.

    Attributes:
        resets_at: when the limit ends, in UTC, or None. A session takes it from the last
            :class:`~claude_wire.messages.RateLimitEvent` if its ``status`` is ``rejected``; the CLI reports the limits
            of subscriptions like this. It is None for the limit of an API key, for an overloaded API, and in an error
            that was made from a result alone.
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
    """The allowed number of turns is used up (``--max-turns``)."""

    _remedy = "allow more with ClaudeOptions(max_turns=...), or go on with another prompt"


class MaxBudgetError(TurnError):
    """The allowed dollars are spent (``--max-budget-usd``)."""

    _remedy = "allow more with ClaudeOptions(max_budget_usd=...)"


class StructuredOutputError(TurnError):
    """The model gave no output that fits the JSON schema, in all its tries, or did not try.

    The result is then a ``success`` without ``structured_output``, and its ``result`` is the model's text.
    """

    _remedy = ".result.errors has the last reason; ask for less, or loosen the schema"

    def _describe(self, result: ResultMessage) -> str:
        if result.ok:
            return "the turn succeeded, but has no structured_output, which json_schema asks for"
        return super()._describe(result)

    def _advise(self, result: ResultMessage) -> str:
        return "the prompt must ask for what the schema describes" if result.ok else self._remedy


class TurnCancelledError(TurnError):
    """The turn was interrupted: by :meth:`~claude_wire.Session.interrupt`, a signal, or a refusal that ends it.

    ``terminal_reason`` of the result says what was interrupted: ``aborted_streaming`` or ``aborted_tools``.
    """

    def _describe(self, result: ResultMessage) -> str:
        return f"the turn was cancelled{self._why(result)}"


class SubagentStoppedError(TurnError):
    """Subagents in the background were stopped before they had reported, and the agent began no turn about that.

    The CLI stops all subagents when one of them exceeds ``max_budget_usd``, and when it is interrupted between two
    turns. The turns themselves did not fail.

    Args:
        count: how many were stopped.

    Attributes:
        result: the last result before that.
        count: as above.
    """

    _remedy = "allow more with ClaudeOptions(max_budget_usd=...), if the budget is spent"

    def __init__(self, result: ResultMessage, count: int) -> None:
        self.count: int = count
        super().__init__(result)

    def _describe(self, result: ResultMessage) -> str:
        subagents = "a subagent was" if self.count == 1 else f"{self.count} subagents were"
        return f"{subagents} stopped in the background, by a budget or an interrupt, and no turn came of that"


class ExecutionError(TurnError):
    """The turn failed for another reason: for instance, the session could not start."""


class SessionNotFoundError(ExecutionError):
    """There is no conversation to resume: it was removed, or belongs to another directory, user or machine.

    The CLI removes conversations after 30 days (``cleanupPeriodDays`` of its settings).

    Attributes:
        folder: path of the folder that was searched; None if it is not known. The CLI itself searches only the
            subfolder of its working directory.
        result: the CLI's result. If the session has not started the CLI, the result that the CLI would have written.
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


#: The CLI's errors for a conversation that it does not have.
_NOT_FOUND = ("No conversation found", "No session found")


def is_not_found(result: ResultMessage) -> bool:
    """Return True if the CLI says that there is no conversation to resume."""
    return any(text.startswith(_NOT_FOUND) for text in result.errors or ())


def words_of(result: ResultMessage) -> str:
    """Return the CLI's own words about a failed turn. Other texts of a result may be the model's."""
    if result.subtype == "success" and result.is_error and result.result:
        return result.result
    if result.error:
        return result.error.message
    # The CLI writes such diagnostics, which are for its developers, for every interrupted turn.
    return next((text for text in result.errors or () if not text.startswith("[ede_diagnostic]")), "")
