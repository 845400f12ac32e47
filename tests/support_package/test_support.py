"""A text that a person decides on hides nothing; one that is read keeps its emoji and its words."""

from __future__ import annotations

import sys

import pytest

from claude_wire.support.text import is_seen, one_line, printable, prose
from claude_wire_kit.html.markup import prose as html_prose
from unseen import unseen


def test_whatever_is_drawn_as_nothing_is_an_escape() -> None:
    for number in unseen():
        command = f"rm -rf build{chr(number)}/"
        assert not is_seen(command)
        for shown in (printable(command), one_line(command), prose(command)):
            assert shown == f"rm -rf build{chr(number).encode('unicode_escape').decode()}/"


def test_nothing_else_is() -> None:
    """Of what Python can print, the list has all that is escaped."""
    hidden = unseen()
    for number in range(sys.maxunicode + 1):
        if chr(number).isprintable():
            assert is_seen(chr(number)) == (number not in hidden), hex(number)


@pytest.mark.parametrize(
    "text",
    [
        "a heart on fire \u2764\ufe0f\u200d\U0001f525",
        "a family \U0001f468\u200d\U0001f469\u200d\U0001f467, \U0001f44d\U0001f3fd",
        "key 1\ufe0f\u20e3, \u26a0\ufe0f, \u00a9\ufe0f, text \u2764\ufe0e",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 and \u0915\u094d\u200d\u0937",
    ],
)
def test_prose_keeps_emoji_and_words_and_a_command_does_not(text: str) -> None:
    assert prose(text) == one_line(text, 80, prose) == text
    assert text in html_prose(text)
    assert printable(text) != text
    assert is_seen(printable(text))


def test_prose_in_pieces_is_that_of_the_whole() -> None:
    text = "\U0001f468\u200d\U0001f469 \u26a0\ufe0f"
    for cut in range(len(text)):
        assert prose(text[:cut]) + prose(text[cut:]) == text


@pytest.mark.parametrize(
    "hidden", ["a\u200db", "\u00e9\u200d\u200d", "\u00e9\u200d\ufe0f\ufe0f", " \ufe0f", "\U0001f3f4\U000e0067"]
)
def test_prose_hides_nothing_but_one_joiner_after_a_character(hidden: str) -> None:
    assert "\\" in prose(hidden)
