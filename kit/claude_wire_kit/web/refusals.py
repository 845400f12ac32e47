"""Create the reply to a refused request: an HTTP status, and JSON with ``error`` and ``message``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.errors import SupervisorError

#: ``SupervisorError.error`` -> HTTP status. Other errors get 502.
_STATUS = {
    "profile": 404,
    "unknown": 404,
    "driver": 409,
    "environment": 409,
    "ended": 409,
    "refused": 409,
    "running": 409,
    "taken": 409,
    "unreadable": 409,
    "epoch": 410,
    "gone": 410,
    "absent": 503,
    "limit": 503,
    "timeout": 504,
}


def refusal(status: int, error: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the reply to a refused request.

    Args:
        error: the reason in one word, for programs.
        message: the reason, for people.
    """
    return JSONResponse({"error": error, "message": message}, status, headers)


def too_many() -> JSONResponse:
    """Return the reply to a request above the rate limit."""
    return refusal(429, "rate", "too many requests", {"retry-after": "1"})


def supervisor_refusal(error: SupervisorError) -> JSONResponse:
    return refusal(_STATUS.get(error.error, 502), error.error, str(error))
