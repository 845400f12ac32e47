"""What results have used: cost and tokens by turn, model and session. Sans-IO."""

from __future__ import annotations

from claude_wire.usage.meter import MOST_MODELS, MOST_SESSIONS, OTHERS, ModelTotals, Tokens, Totals, UsageMeter

__all__ = ["MOST_MODELS", "MOST_SESSIONS", "OTHERS", "ModelTotals", "Tokens", "Totals", "UsageMeter"]
