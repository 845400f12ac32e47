"""Content blocks as markup: text, pictures, and the names of all others. Knows blocks; not where they stand."""

from __future__ import annotations

from collections.abc import Iterable

from claude_wire import messages
from claude_wire_kit.html.markup import folded, inline, picture, prose
from claude_wire_kit.terminal.excerpts import block_name

__all__ = ["block_markup", "content_markup"]


def content_markup(content: str | Iterable[messages.ContentBlock], *, plain: bool) -> str:
    """The content of a message or of a tool's result; empty if it shows nothing.

    Args:
        plain: show text line by line, in a fixed-width font.
    """
    blocks = [messages.TextBlock(content)] if isinstance(content, str) else content
    return "".join(block_markup(block, plain=plain) for block in blocks)


def block_markup(block: messages.ContentBlock, *, plain: bool) -> str:
    """One block; empty for a blank text."""
    match block:
        case messages.TextBlock(text=text):
            return (folded if plain else prose)(text) if text.strip() else ""
        case messages.ImageBlock(source=messages.Base64ImageSource(media_type=type, data=data)):
            return picture(type, data)
        case _:
            return f"<p class=quiet>[{inline(block_name(block))}]</p>"
