"""Result lines for the tests of usage."""

from __future__ import annotations

from typing import Any

__all__ = ["model", "result"]


def model(tokens: int, cost: float) -> dict[str, Any]:
    """Return a value of ``modelUsage`` in which each kind of token has a different count."""
    return {
        "inputTokens": tokens,
        "outputTokens": 2 * tokens,
        "cacheReadInputTokens": 3 * tokens,
        "cacheCreationInputTokens": 4 * tokens,
        "costUSD": cost,
    }


def result(total: float, tokens: int, *, session: str = "s", recent: Any = None, **others: Any) -> dict[str, Any]:
    """Return a result with these running totals. ``recent`` is its ``model_usage_since_last_result``."""
    message: dict[str, Any] = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "session_id": session,
        "total_cost_usd": total,
        "modelUsage": {"m": model(tokens, total)},
        **others,
    }
    return message if recent is None else {**message, "model_usage_since_last_result": recent}
