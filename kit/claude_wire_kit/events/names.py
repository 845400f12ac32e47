"""Name messages and their parts, and say why a turn failed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from claude_wire import messages
from claude_wire.messages import Message
from claude_wire.transcripts import AttachmentRecord, Record, SystemRecord


def tag(value: msgspec.Struct | messages.Unknown) -> str:
    """Return the tag of a union member as received, or an empty string. Untrusted input: escape it before printing."""
    if isinstance(value, messages.Unknown):
        return value.type or ""
    found = type(value).__struct_config__.tag
    return found if isinstance(found, str) else ""


def message_name(message: Message | Record) -> str:
    """Return the type of a message or record and its subtypes, as in ``stream_event/content_block_delta/text_delta``.

    A type without a class becomes ``unknown``, so a name never contains text from the line, and the number of names
    is limited.
    """
    return "/".join(_steps(message))


def why_failed(result: messages.ResultMessage) -> str:
    """Return why a turn failed, from the most specific field of its result. Escape the text before printing."""
    if result.terminal_reason not in (None, "completed"):
        return str(result.terminal_reason)
    return "api_error" if result.api_error_status else result.startup_failure_reason or result.subtype or ""


def _steps(message: Message | Record) -> Iterator[str]:
    match message:
        case messages.Unknown():
            yield "unknown"
        case messages.SystemMessage(subtype=subtype) | SystemRecord(subtype=subtype):
            yield from ("system", subtype)
        case messages.ResultMessage(subtype=subtype):
            yield from ("result", "unknown" if type(message) is messages.ResultMessage else subtype or "")
        case messages.StreamEvent(event=event):
            yield from ("stream_event", _known(event))
            if isinstance(event, messages.ContentBlockDeltaEvent):
                yield _known(event.delta)
        case messages.ControlRequest(request=request):
            yield from ("control_request", _known(request))
            if isinstance(request, messages.HookCallbackRequest):
                yield _known(request.input)
        case messages.ControlResponse(response=response):
            yield from ("control_response", _known(response))
        case AttachmentRecord(attachment=attachment):
            yield from ("attachment", _known(attachment))
        case _:
            yield _known(message)


def _known(value: msgspec.Struct | messages.Unknown) -> str:
    return "unknown" if isinstance(value, messages.Unknown) else tag(value) or type(value).__name__
