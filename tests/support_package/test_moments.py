"""Times as messages say them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from claude_wire.support.moments import moment

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
