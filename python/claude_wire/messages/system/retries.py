"""Retries of requests to the API, and models that take over from others."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Number, Wire, constant, null
from claude_wire.messages.system.base import SystemMessage


class NoResponse(Wire, frozen=True):
    """The API gave no answer for ``waited_ms``; the next try comes after ``retry_wait_ms``."""

    waited_ms: Number
    retry_wait_ms: Number


class ApiRetryMessage(SystemMessage, kw_only=True, frozen=True):
    """A request to the API failed and will be tried again after ``retry_delay_ms`` milliseconds.

    ``attempt`` counts from 1 up to ``max_retries``. A null ``error_status`` means that no HTTP answer came at all;
    ``error`` is an open set.
    """

    subtype: Literal["api_retry"] = constant("api_retry")
    attempt: int
    max_retries: int
    retry_delay_ms: Number
    error_status: int | None = null()
    # one of those of AssistantMessage.error
    error: str
    no_response: NoResponse | None = None


class ModelRefusalFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model refused, and the session moved between it and a fallback model, as ``direction`` says.

    The messages named in ``retracted_message_uuids`` are withdrawn and should vanish from view. ``content`` is text
    for display; ``api_refusal_category`` is an open set.
    """

    subtype: Literal["model_refusal_fallback"] = constant("model_refusal_fallback")
    trigger: str
    # one of retry, revert, sticky
    direction: str
    # one of session, local
    scope: str | None = None
    original_model: str
    fallback_model: str
    request_id: str | None = null()
    api_refusal_category: str | UnsetType | None = UNSET
    api_refusal_explanation: str | UnsetType | None = UNSET
    retracted_message_uuids: list[str] | None = None
    refused_user_message_uuid: str | UnsetType | None = UNSET
    content: str
    saw_cyber_refusal: bool | None = None
    api_refusal_cyber_verification: dict[str, Any] | None = None


class ModelRefusalNoFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model refused and no fallback model took over; ``content`` is text for display."""

    subtype: Literal["model_refusal_no_fallback"] = constant("model_refusal_no_fallback")
    original_model: str
    request_id: str | None = null()
    api_refusal_category: str | UnsetType | None = UNSET
    api_refusal_explanation: str | UnsetType | None = UNSET
    refused_user_message_uuid: str | UnsetType | None = UNSET
    content: str


class ModelFallbackMessage(SystemMessage, kw_only=True, frozen=True):
    """The model was not to be had, and the fallback model answers instead.

    It comes after the retries, before the fallback model's answer; ``trigger`` names the reason, such as
    ``overloaded``.
    """

    subtype: Literal["model_fallback"] = constant("model_fallback")
    trigger: str | None = None
    original_model: str | None = None
    fallback_model: str | None = None
    content: str | None = None
