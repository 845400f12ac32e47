"""The names of messages and their parts, and why a turn has failed."""

from __future__ import annotations

from collections.abc import Iterator

from claude_wire.messages import (
    ContentBlockDeltaEvent,
    ControlRequest,
    ControlResponse,
    HookCallbackRequest,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    Unknown,
)
from claude_wire.messages.base import Wire

__all__ = ["message_name", "tag", "why_failed"]


def tag(value: Wire | Unknown) -> str:
    """What tells a value of a union from the others, as it is on the wire, where anybody may have made it up.

    Empty if there is none.
    """
    if isinstance(value, Unknown):
        return value.type or ""
    found = type(value).__struct_config__.tag
    return found if isinstance(found, str) else ""


def message_name(message: Message) -> str:
    """A message's type and what else tells it apart: ``stream_event/content_block_delta/text_delta``.

    Each step is known to a class, or is ``unknown``: a name has no text of the line, and the number of names is fixed.
    """
    return "/".join(_steps(message))


def why_failed(result: ResultMessage) -> str:
    """Why a turn failed, in the most telling word that its result has; not yet safe to print."""
    if result.terminal_reason not in (None, "completed"):
        return str(result.terminal_reason)
    return "api_error" if result.api_error_status else result.startup_failure_reason or result.subtype


def _steps(message: Message) -> Iterator[str]:
    match message:
        case Unknown():
            yield "unknown"
        case SystemMessage(subtype=subtype):
            yield from ("system", subtype)
        case ResultMessage(subtype=subtype):
            yield from ("result", "unknown" if type(message) is ResultMessage else subtype)
        case StreamEvent(event=event):
            yield from ("stream_event", _known(event))
            if isinstance(event, ContentBlockDeltaEvent):
                yield _known(event.delta)
        case ControlRequest(request=request):
            yield from ("control_request", _known(request))
            if isinstance(request, HookCallbackRequest):
                yield _known(request.input)
        case ControlResponse(response=response):
            yield from ("control_response", _known(response))
        case _:
            yield _known(message)


def _known(value: Wire | Unknown) -> str:
    return "unknown" if isinstance(value, Unknown) else tag(value) or type(value).__name__
