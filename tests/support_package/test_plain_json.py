"""JSON objects that every reader reads alike."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire.support.plain_json import plain_object

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
