"""Run commands and compare their output."""

from __future__ import annotations

import io
import re
from contextlib import closing
from typing import Any

from click.testing import CliRunner
from rich.console import Console

from claude_wire import Decoder
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page

__all__ = ["RUNNER", "decoded", "in_order", "viewed", "words"]

try:  # click before 8.2 mixes stderr into stdout by default
    RUNNER = CliRunner(mix_stderr=False)
except TypeError:  # click 8.2 separates them, and has no such argument
    RUNNER = CliRunner()


def in_order(shown: str, *parts: str) -> None:
    """Assert that the parts are shown in this order. Adjacent parts may share the line feeds between them."""
    at = 0
    for part in parts:
        found = shown.find(part, at)
        assert found >= 0, f"{part!r} is not in {shown[at:]!r}"
        at = found + len(part.rstrip("\n"))


def viewed(messages: list[Any]) -> str:
    """Return the text that a live view shows for these messages."""
    shown = io.StringIO()
    with closing(Page(Console(file=shown, markup=False, highlight=False, emoji=False))) as page:
        live = LiveView(page)
        for message in messages:
            live.show(message)
    return shown.getvalue()


def decoded(data: bytes) -> list[Any]:
    """Decode a whole stream."""
    decoder = Decoder()
    return [*decoder.feed(data), *decoder.close()]


def words(text: str) -> list[str]:
    """Split a text into words. Each Chinese or Japanese character is a word, because a line may break after it."""
    return re.findall(r"[\u3001-\u9fff]|[^\s\u3001-\u9fff]+", text)
