"""Read the time stamps in messages."""

from __future__ import annotations

from datetime import datetime, timezone

#: An ISO 8601 time stamp has at most this many characters.
MAX_CHARS = 40


def moment(stamp: str | None) -> datetime | None:
    """Return the time of an ISO 8601 stamp in UTC, or None if it is invalid. Without an offset it is in UTC."""
    try:
        # Python 3.10 does not accept a Z, and only three or six digits of a second.
        found = datetime.fromisoformat((stamp or "")[:MAX_CHARS].replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
