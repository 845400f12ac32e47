"""What a client gets whose request is refused: a status, and JSON with ``error`` and ``message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.errors import SupervisorError

#: The status of a refusal of the supervisor; 502 for others.
_STATUS = {
    "unknown": 404,
    "driver": 409,
    "environment": 409,
    "ended": 409,
    "refused": 409,
    "running": 409,
    "epoch": 410,
    "gone": 410,
    "absent": 503,
    "limit": 503,
    "timeout": 504,
}


def refusal(status: int, error: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """A refusal.

    Args:
        error: what is wrong, in a word.
        message: the same for people.
    """
    return JSONResponse({"error": error, "message": message}, status, headers)


def too_many() -> JSONResponse:
    """A client asks more often than :class:`~claude_wire_kit.web.access.Rate` lets pass."""
    return refusal(429, "rate", "too many requests", {"retry-after": "1"})


def supervisor_refusal(error: SupervisorError) -> JSONResponse:
    """What the supervisor has refused."""
    return refusal(_STATUS.get(error.error, 502), error.error, str(error))
