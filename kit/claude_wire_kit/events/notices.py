"""What a person should see beside the conversation: which messages, and in what words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claude_wire import messages as m
from claude_wire_kit.events.events import NoticeKind

__all__ = ["NOTICES"]


def _auth(message: m.AuthStatusMessage) -> str:
    return message.error or (message.output if isinstance(message.output, str) else "\n".join(message.output))


def _retry(message: m.ApiRetryMessage) -> str:
    return f"{message.error}: attempt {message.attempt} of {message.max_retries}"


def _rate_limit(message: m.RateLimitEvent) -> str:
    status = message.rate_limit_info.status
    return "" if status == "allowed" else f"rate limit: {status}"


def _error(message: m.SystemErrorMessage) -> str:
    return (message.error.message if message.error else message.message) or "error"


def _stream_error(message: m.StreamEvent) -> str:
    event = message.event
    return (event.error.message or event.error.type or "") if isinstance(event, m.ErrorEvent) else ""


#: The kind of notice that a message gives, and its words; it gives none if there are no words.
NOTICES: dict[type, tuple[NoticeKind, Callable[[Any], str]]] = {
    m.ApiRetryMessage: ("retry", _retry),
    m.AuthStatusMessage: ("auth", _auth),
    m.InformationalMessage: ("info", lambda message: message.content),
    m.LocalCommandOutputMessage: ("info", lambda message: message.content),
    m.ModelFallbackMessage: ("retry", lambda message: message.content or "another model answers"),
    m.ModelRefusalFallbackMessage: ("retry", lambda message: message.content),
    m.ModelRefusalNoFallbackMessage: ("error", lambda message: message.content),
    m.NotificationMessage: ("info", lambda message: message.text),
    m.RateLimitEvent: ("rate_limit", _rate_limit),
    m.StreamEvent: ("error", _stream_error),
    m.SystemErrorMessage: ("error", _error),
}
