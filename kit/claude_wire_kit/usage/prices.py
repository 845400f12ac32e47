"""Calculate the cost of tokens with this module's small price table, or with a file in LiteLLM's format.

Prices are in US dollars per million tokens. ``PRICES`` has the prices that CLI 2.1.331 uses to calculate ``costUSD``.
They are the prices of the API's standard tier, without batch discount, surcharges for fast mode or a region, and web
searches.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from math import inf
from typing import Any, NamedTuple, cast

from claude_wire.support import NAME_CHARS, one_line
from claude_wire_kit.usage.tokens import Tokens

#: A model may have higher prices for a prompt with more than one of these numbers of tokens.
PROMPT_STEPS = 100_000, 200_000

#: Maximum size in bytes of a price file. LiteLLM's own file is 1.6 MB.
MAX_BYTES = 64 * 1024 * 1024

_DATE = re.compile(r"[-@](\d{8}|latest)$")
_PROVIDER = re.compile(r"^(?:(?:us|eu|apac|global)\.)?anthropic[./]|-v\d+(?::\d+)?$|\[1m\]$")


class Price(NamedTuple):
    """A model's prices, per million tokens of each kind."""

    input: float
    output: float
    cache_creation_5m: float
    cache_creation_1h: float
    cache_read: float
    long: tuple[int, Price] | None = None
    """The number of tokens above which a prompt is long, and the prices for long prompts.

    The number is one of :data:`PROMPT_STEPS`.
    """

    def cost(self, tokens: Tokens, step: int = 0) -> float:
        """Return the cost of ``tokens``, for requests whose prompts all had the same :func:`step_of`."""
        if self.long is not None and step >= self.long[0]:
            return self.long[1].cost(tokens)
        # CLIs that do not report how long tokens stay in the cache keep them for five minutes.
        short = tokens.cache_creation_input_tokens - tokens.cache_creation_1h
        return (
            tokens.input_tokens * self.input
            + tokens.output_tokens * self.output
            + short * self.cache_creation_5m
            + tokens.cache_creation_1h * self.cache_creation_1h
            + tokens.cache_read_input_tokens * self.cache_read
        ) / 1_000_000


def step_of(prompt_tokens: int) -> int:
    """Return the highest of :data:`PROMPT_STEPS` that a prompt exceeds, or 0."""
    if prompt_tokens <= PROMPT_STEPS[0]:
        return 0
    return max(step for step in PROMPT_STEPS if prompt_tokens > step)


class Prices(NamedTuple):
    """A price table, and its name, which is shown with each sum."""

    name: str
    """The table's name, such as ``list prices of 2026-11-22``. For a file, its name and date."""
    models: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """Return a model's price, or None for an unknown model.

        The name may begin with a provider and end with a date.

        Raises:
            ValueError: one of the model's prices is negative, not finite, or not a number.
        """
        plain = _PROVIDER.sub("", model)
        names = model, plain, _DATE.sub("", plain)
        found = next((self.models[name] for name in names if name in self.models), None)
        if found is not None:
            _require_prices(model, found)
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Prices:
        """Read a file in the format of LiteLLM's ``model_prices_and_context_window.json``.

        These fields of each model are used: ``input_cost_per_token``, ``output_cost_per_token``,
        ``cache_creation_input_token_cost``, ``cache_read_input_token_cost``, and
        ``cache_creation_input_token_cost_above_1hr``, which by default is twice the first one. The same fields with
        ``_above_100k_tokens`` or ``_above_200k_tokens`` have the prices of long prompts. A model that lacks another
        of these fields, or has null in it, has no price.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is not a JSON object, or is larger than 64 MiB, or one of these prices is not at least
                0 and below 1. The text names the model and the field.
        """
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
            date = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, timezone.utc).date()
        if len(data) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES:,} bytes")
        try:
            # NaN is accepted here, so its error can name the model.
            table = json.loads(data)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error
        if not isinstance(table, dict):
            raise ValueError("it is not a JSON object")
        rows = cast("dict[str, Any]", table).items()
        found = {name: _listed(name, cast("dict[str, Any]", row)) for name, row in rows if isinstance(row, dict)}
        return cls(f"{os.path.basename(path)} of {date}", {name: price for name, price in found.items() if price})


def _listed(model: str, row: dict[str, Any]) -> Price | None:
    base = _listed_at(model, row, "")
    for step in PROMPT_STEPS:
        above = _listed_at(model, row, f"_above_{step // 1000}k_tokens")
        if base is not None and above is not None:
            return base._replace(long=(step, above))
    return base


def _listed_at(model: str, row: dict[str, Any], end: str) -> Price | None:
    def cost(name: str) -> float | None:
        return _million(model, name + end, row.get(name + end))

    input, read = cost("input_cost_per_token"), cost("cache_read_input_token_cost")
    output, short = cost("output_cost_per_token"), cost("cache_creation_input_token_cost")
    hour = cost("cache_creation_input_token_cost_above_1hr")
    if input is None or output is None or short is None or read is None:
        return None
    return Price(input, output, short, 2 * input if hour is None else hour, read)


def _million(model: str, name: str, value: Any) -> float | None:
    """Convert a price per token to a price per million tokens. Return None if the file does not have the price."""
    if value is None:
        return None
    if not _is_number(value) or not 0 <= value < 1:
        raise ValueError(f"{name} of {one_line(model)!r} is {_shown(value)}, not a number from 0 to below 1")
    millions: float = round(value * 1_000_000, 9)
    return millions


def _require_prices(model: str, price: Price) -> None:
    """Raise a ValueError for an invalid price, such as NaN or a string."""
    for name, value in zip(Price._fields, price[:5], strict=False):
        if not _is_number(value) or not 0 <= value < inf:
            raise ValueError(f"{name} of {one_line(model)!r} is {_shown(value)}, not a price")
    if price.long is not None:
        _require_prices(model, price.long[1])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return one_line(repr(value[:NAME_CHARS] if isinstance(value, str) else value))


def _price(input: float, output: float, read: float) -> Price:
    # Five minutes in the cache cost a quarter more than input, and one hour twice as much as input.
    return Price(input, output, 1.25 * input, 2 * input, read)


_OPUS_4, _OPUS = _price(15, 75, 1.5), _price(5, 25, 0.5)
_SONNET, _SONNET_5 = _price(3, 15, 0.3), _price(2, 10, 0.2)
_FABLE, _FABLE_5_1, _FABLE_5_2 = _price(10, 50, 1), _price(10, 50, 0.25), _price(8, 40, 0.2)

PRICES: Prices = Prices(
    "list prices of 2026-11-22",
    {
        "claude-3-5-haiku": _price(0.8, 4, 0.08),
        "claude-haiku-4-5": _price(1, 5, 0.1),
        "claude-haiku-5-5": _price(0.1, 0.5, 0.01)._replace(long=(100_000, _price(0.5, 2.5, 0.05))),
        "claude-3-5-sonnet": _SONNET,
        "claude-3-7-sonnet": _SONNET,
        "claude-sonnet-4": _SONNET,
        "claude-sonnet-4-0": _SONNET,
        "claude-sonnet-4-5": _SONNET,
        "claude-sonnet-4-6": _SONNET,
        "claude-sonnet-5": _SONNET_5,
        "claude-sonnet-5-5": _price(2, 10, 0.1),
        "claude-opus-4": _OPUS_4,
        "claude-opus-4-0": _OPUS_4,
        "claude-opus-4-1": _OPUS_4,
        "claude-opus-4-5": _OPUS,
        "claude-opus-4-6": _OPUS,
        "claude-opus-4-7": _OPUS,
        "claude-opus-4-8": _OPUS,
        "claude-opus-5": _OPUS,
        "claude-opus-5-5": _price(4, 20, 0.2),
        "claude-fable-5": _FABLE,
        "claude-fable-5-1": _FABLE_5_1,
        "claude-fable-5-2": _FABLE_5_2,
        "claude-mythos-5": _FABLE,
        "claude-mythos-5-1": _FABLE_5_1,
        "claude-mythos-5-2": _FABLE_5_2,
    },
)
