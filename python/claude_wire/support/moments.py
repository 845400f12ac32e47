"""Read the time stamps in messages."""

from __future__ import annotations

from datetime import datetime, timezone

#: Maximum number of characters in an ISO 8601 time stamp.
MAX_CHARS = 40


def moment(stamp: str | None) -> datetime | None:
    """Convert an ISO 8601 stamp to a UTC time, or None if it is invalid. A stamp without an offset is in UTC."""
    try:
        # Python 3.10 does not accept "Z". (It also accepts only three or six decimal places for the seconds.)
        found = datetime.fromisoformat((stamp or "")[:MAX_CHARS].replace("Z", "+00:00"))
        return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
