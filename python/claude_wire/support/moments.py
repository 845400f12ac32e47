"""Read the times in messages."""

from __future__ import annotations

from datetime import datetime, timezone

#: A stamp of ISO 8601 has no more characters.
MAX_CHARS = 40


def moment(stamp: str | None) -> datetime | None:
    """The time that a stamp of ISO 8601 names, in UTC; one without an offset is in UTC. None if it names none."""
    try:
        # Python 3.10 does not know the letter, and no number of digits but three and six.
        found = datetime.fromisoformat((stamp or "")[:MAX_CHARS].replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
