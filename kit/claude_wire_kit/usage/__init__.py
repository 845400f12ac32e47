"""Count tokens and cost: for a stream, from its results; for the sessions on disk, from the model's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.support import later

#: The module of each name. A module is imported when one of its names is first used, because a command that finds its
#: sums in the index does not need message classes, which take long to import.
_LATER = {
    "Answer": "answers",
    "AnswerTotals": "tokens",
    "Answers": "answers",
    "MAX_MODELS": "meter",
    "MAX_SESSIONS": "meter",
    "ModelTotals": "meter",
    "OTHERS": "sums",
    "OwnCost": "index",
    "PRICES": "prices",
    "Price": "prices",
    "Prices": "prices",
    "Tokens": "tokens",
    "Totals": "meter",
    "UsageIndex": "index",
    "UsageMeter": "meter",
}

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from claude_wire_kit.usage.answers import Answer as Answer
    from claude_wire_kit.usage.answers import Answers as Answers
    from claude_wire_kit.usage.index import OwnCost as OwnCost
    from claude_wire_kit.usage.index import UsageIndex as UsageIndex
    from claude_wire_kit.usage.meter import MAX_MODELS as MAX_MODELS
    from claude_wire_kit.usage.meter import MAX_SESSIONS as MAX_SESSIONS
    from claude_wire_kit.usage.meter import ModelTotals as ModelTotals
    from claude_wire_kit.usage.meter import Totals as Totals
    from claude_wire_kit.usage.meter import UsageMeter as UsageMeter
    from claude_wire_kit.usage.prices import PRICES as PRICES
    from claude_wire_kit.usage.prices import Price as Price
    from claude_wire_kit.usage.prices import Prices as Prices
    from claude_wire_kit.usage.sums import OTHERS as OTHERS
    from claude_wire_kit.usage.tokens import AnswerTotals as AnswerTotals
    from claude_wire_kit.usage.tokens import Tokens as Tokens
else:
    __all__ = sorted(_LATER)

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = later(__name__, _LATER)
