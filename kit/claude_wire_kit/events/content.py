"""Convert content blocks to the parts of an event, and JSON values to text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from claude_wire import messages as m
from claude_wire_kit.events.events import Part
from claude_wire_kit.events.names import tag


def parts_of(content: str | Iterable[m.ContentBlock] | None) -> list[Part]:
    """Return the content of a message or a tool result as parts."""
    if isinstance(content, str):
        return [Part(text=content)]
    return [_part(block) for block in content or ()]


def _part(block: m.ContentBlock) -> Part:
    match block:
        case m.TextBlock(text=text):
            return Part(text=text)
        case m.ImageBlock(source=m.Base64ImageSource(media_type=type, data=data)):
            return Part(name="image", mediaType=type, data=data)
        case _:
            return Part(name=block_name(block))


def has_content(parts: Iterable[Part]) -> bool:
    """Return True if any part is visible: text that is not blank, or a block of another type."""
    return any(part.text is None or part.text.strip() for part in parts)


def text_of(parts: Iterable[Part] | None) -> str:
    """Join parts into one string. Parts without text become ``[name]``. Escape the result before printing."""
    return "\n".join(f"[{part.name}]" if part.text is None else part.text for part in parts or ())


def block_name(block: m.ContentBlock) -> str:
    """Return the ``type`` of a block as received. Escape it before printing."""
    return tag(block) or "unknown"


def plain_json(value: Any) -> str:
    """Return a JSON value as one line of text. Escape it before printing."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply)"
