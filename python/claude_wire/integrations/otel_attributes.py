"""The spans' attributes, according to OpenTelemetry's semantic conventions for generative AI (version 1.41)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import Span, StatusCode

from claude_wire import messages as m
from claude_wire.codec.encoder import encode_value
from claude_wire.errors import EncodeError
from claude_wire.support.plain_json import fields_of, items_of
from claude_wire.support.text import one_line

__all__ = [
    "CONTENT_CHARS",
    "MAX_NUMBER",
    "answered",
    "as_json",
    "asked",
    "captures_content",
    "count",
    "end",
    "failed",
    "name_of",
    "named",
    "part",
    "put_tokens",
    "why",
]

#: The environment variable that enables content, and the values that enable it on spans.
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ON_SPANS = frozenset(("true", "span_only", "span_and_event"))

#: Maximum length of a name or id in characters. Longer names and ids are cut.
NAME_CHARS = 128

#: Maximum length of text, input or results as JSON, in characters. A longer value is omitted.
CONTENT_CHARS = 100_000

#: The largest number that exporters can send: a signed 64-bit integer.
MAX_NUMBER = 2**63 - 1

#: The API's three counts of input tokens. Each input token is in exactly one of them.
INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

#: The API's stop reason -> the conventions' finish reason.
FINISHES = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_call"}


def captures_content() -> bool:
    """Return True if the environment enables content on spans."""
    return os.environ.get(CAPTURE, "").strip().lower() in ON_SPANS


def name_of(text: str) -> str:
    """Make a name or id from untrusted input safe for any exporter."""
    return one_line(text, NAME_CHARS)


def named(operation: str, about: Mapping[str, str | None]) -> dict[str, str]:
    """Return a span's attributes. Names in ``about`` get the prefix ``gen_ai.``; None and empty values are omitted."""
    known = {f"gen_ai.{key}": name_of(value) for key, value in about.items() if value}
    return {"gen_ai.operation.name": operation, "gen_ai.provider.name": "anthropic", **known}


def as_json(value: Any) -> str | None:
    """Return content as JSON; None if it is too long, or cannot be encoded as JSON."""
    try:
        text = encode_value(value).decode()
    except EncodeError:
        return None
    return text if len(text) <= CONTENT_CHARS else None


def asked(prompt: str) -> list[dict[str, Any]]:
    """Return the value of ``gen_ai.input.messages`` for a prompt."""
    return [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]


def answered(parts: list[str], stop: str | None) -> str:
    """Return the value of ``gen_ai.output.messages`` for an answer, as JSON. The parts are also JSON."""
    finish = as_json(FINISHES.get(stop or "", stop or "error"))
    return f'[{{"role":"assistant","parts":[{",".join(parts)}],"finish_reason":{finish}}}]'


def failed(span: Span, error: str) -> None:
    """Mark a span as failed. ``error`` is a short code such as ``interrupted``."""
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)


def end(span: Span, at: int, error: str | None) -> None:
    """End a span at a time in nanoseconds since 1970."""
    if error is not None:
        failed(span, error)
    span.end(at)


def why(message: m.UserMessage, result: m.ToolResultBlock) -> str | None:
    """Return why a tool call failed, as a short code; None if it succeeded."""
    about = map(fields_of, items_of(message.tool_result_meta))
    kind = next((each.get("non_execution_kind") for each in about if each.get("id") == result.tool_use_id), None)
    return name_of(kind) if isinstance(kind, str) else "tool_error" if result.is_error else None


def count(counts: dict[str, int], usage: m.Usage | m.MessageDeltaUsage, *, final: bool) -> None:
    """Update an answer's counts. As in the CLI, an input count that is missing or 0 changes nothing.

    Args:
        final: whether ``usage`` has the final count of output tokens.
    """
    for name in INPUT:
        counts[name] = getattr(usage, name) or counts.get(name, 0)
    if final:
        details = usage.output_tokens_details or None
        counts["output_tokens"] = usage.output_tokens or 0
        if details is not None and details.thinking_tokens:
            counts["reasoning.output_tokens"] = details.thinking_tokens


def put_tokens(span: Span, counts: dict[str, int]) -> None:
    """Add token counts to a span. In the conventions, input includes cached tokens, which the API counts separately."""
    if not counts:
        return
    new, read, written = (counts.pop(name) for name in INPUT)
    counts |= {"input_tokens": new + read + written, "cache_read.input_tokens": read}
    counts["cache_creation.input_tokens"] = written
    for name, number in counts.items():
        if 0 <= number <= MAX_NUMBER:
            span.set_attribute(f"gen_ai.usage.{name}", number)


def part(block: m.ContentBlock) -> dict[str, Any] | None:
    """Return a content block as a message part of the conventions; None if they do not define such a part."""
    match block:
        case m.TextBlock(text=text):
            return {"type": "text", "content": text}
        case m.ThinkingBlock(thinking=thinking):
            return {"type": "reasoning", "content": thinking}
        case m.ToolUseBlock():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.input}
        case _:
            return None
