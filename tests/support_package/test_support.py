"""The helpers of claude_wire.support: invisible characters, times, JSON, and the advice for missing packages."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire.support.extras import install_extra
from claude_wire.support.moments import moment
from claude_wire.support.plain_json import plain_object
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


# --- Times as messages say them ---------------------------------------------------------------------------------------


HERE = datetime(2026, 11, 22, 19, 55, 52, 122000, timezone.utc)


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-11-22T19:55:52.122Z",
        "2026-11-22T19:55:52.122",
        "2026-11-22T19:55:52.122000+00:00",
        "2026-11-22T21:55:52.122+02:00",
    ],
)
def test_a_stamp_is_a_time_in_utc(stamp: str) -> None:
    assert moment(stamp) == HERE
    assert moment(stamp).tzinfo is timezone.utc


@pytest.mark.parametrize("stamp", [None, "", "now", "2026-13-01", "0001-01-01T00:00:00+23:59", "9" * 10_000, "\ud800"])
def test_what_names_no_time_is_none(stamp: str | None) -> None:
    assert moment(stamp) is None


# --- JSON objects that every reader reads alike -----------------------------------------------------------------------


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FORMS = st.sampled_from([(",", ":", True), (",", ":", False), (", ", ": ", True), (" ,\r", "\t:", False)])


@given(st.dictionaries(st.text(), VALUES, max_size=4), FORMS, st.sampled_from(["", "\n", "\r\n"]))
def test_an_object_is_read_in_every_form(value: dict[str, object], form: tuple[str, str, bool], end: str) -> None:
    text = json.dumps(value, separators=form[:2], ensure_ascii=form[2])
    try:
        line = (text + end).encode()
    except UnicodeEncodeError:
        return
    assert plain_object(line) == json.loads(text)


@pytest.mark.parametrize("feed", ["", "\n"])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a":1,"a":1}', "a key twice"),
        ('{"a":1,"\\u0061":1}', "a key twice"),
        ('{"b":[{"a":{"c":1,"d":2,"c":1}}]}', "a key twice"),
        ('{"a":1,"b":2,"a":1} ', "a key twice"),
        ("[1]", "not an object"),
        ("1", "not an object"),
        ("{}{}", "Extra data"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
    ],
)
def test_what_is_read_in_more_than_one_way_is_refused(line: str, reason: str, feed: str) -> None:
    with pytest.raises(ValueError, match=reason):
        plain_object((line + feed).encode())


# --- The advice for a missing optional package ------------------------------------------------------------------------


def test_the_advice_names_the_extra_and_a_command_that_needs_no_index_with_claude_wire() -> None:
    assert install_extra("otel") == (
        "install the extra 'otel' of claude-wire, or: pip install \"opentelemetry-api>=1.28\""
    )
    _, command = install_extra("serve", distribution="claude-wire-kit").split("pip install ")
    assert "claude-wire" not in command


@pytest.mark.parametrize("marker", ["python_version < '3.11'", "(python_version < '3.11')"])
@pytest.mark.parametrize(("version", "packages"), [((3, 10), '"tomli>=2" "uvicorn>=1"'), ((3, 11), '"uvicorn>=1"')])
def test_a_requirement_for_older_pythons_is_left_out(
    version: tuple[int, int], packages: str, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = [f"tomli>=2; {marker} and extra == 'serve'", "uvicorn>=1; extra == 'serve'"]
    monkeypatch.setattr(metadata, "requires", lambda _: requirements)
    monkeypatch.setattr(sys, "version_info", version)
    assert install_extra("serve") == f"install the extra 'serve' of claude-wire, or: pip install {packages}"


def test_another_marker_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda _: ["uvloop>=1; sys_platform == 'linux' and extra == 'serve'"])
    assert install_extra("serve").endswith("pip install \"uvloop>=1; sys_platform == 'linux'\"")


def test_a_package_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert install_extra("mcp") == "pip install '.[mcp]' in a clone of claude_wire"
    of_the_kit = install_extra("serve", distribution="claude-wire-kit", folder="./kit")
    assert of_the_kit == "pip install './kit[serve]' in a clone of claude_wire"
