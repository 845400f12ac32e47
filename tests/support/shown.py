"""What commands show."""

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

try:  # click before 8.2 mixes stderr into stdout unless told
    RUNNER = CliRunner(mix_stderr=False)
except TypeError:  # click 8.2 keeps them apart, and has no such argument
    RUNNER = CliRunner()


def in_order(shown: str, *parts: str) -> None:
    """Assert that each part is shown, one behind the other; the line feeds at an end may be the next part's, too."""
    at = 0
    for part in parts:
        found = shown.find(part, at)
        assert found >= 0, f"{part!r} is not in {shown[at:]!r}"
        at = found + len(part.rstrip("\n"))


def viewed(messages: list[Any]) -> str:
    """What a live view shows of messages."""
    shown = io.StringIO()
    with closing(Page(Console(file=shown, markup=False, highlight=False, emoji=False))) as page:
        live = LiveView(page)
        for message in messages:
            live.show(message)
    return shown.getvalue()


def decoded(data: bytes) -> list[Any]:
    """The messages of a whole stream."""
    decoder = Decoder()
    return [*decoder.feed(data), *decoder.close()]


def words(text: str) -> list[str]:
    """The words of a text. A character of Chinese or Japanese is one: a line may be broken behind each."""
    return re.findall(r"[\u3001-\u9fff]|[^\s\u3001-\u9fff]+", text)
