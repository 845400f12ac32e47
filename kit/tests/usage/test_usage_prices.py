"""``claude_wire_kit.usage.prices`` computes the same costs as the CLI. A model without a price has no cost."""

from __future__ import annotations

import json
import os
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from claude_wire import Decoder
from claude_wire.transcripts import CostStateRecord, Record
from claude_wire_kit.usage import PRICES, Price, Prices, Tokens
from claude_wire_kit.usage.meter import models_of
from claude_wire_kit.usage.prices import step_of
from sessions import scenarios, transcripts


def cost_states() -> list[CostStateRecord]:
    files = [data for scenario in scenarios() for data in transcripts(scenario).values()]
    records = [record for data in files for record in Decoder(Record, only={"cost-state"}).feed(data)]
    return [record for record in records if isinstance(record, CostStateRecord)]


def test_the_table_gives_what_the_cli_reckons_for_every_model_of_the_recordings() -> None:
    checked: set[str] = set()
    for state in cost_states():
        for model, totals in models_of(state.modelUsage).items():
            price = PRICES.of(model)
            assert price is not None
            assert price.cost(totals) == pytest.approx(totals.cost_usd, rel=1e-12)
            checked.add(model)
    assert checked == {"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}
    assert "2026-11-22" in PRICES.name


def test_a_model_is_found_by_its_name_with_a_date_or_a_provider_and_no_other_is_guessed() -> None:
    opus = PRICES.models["claude-opus-4-5"]
    for name in ("claude-opus-4-5-20251101", "us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5[1m]"):
        assert PRICES.of(name) == opus
    assert PRICES.of("anthropic/claude-sonnet-4@20250514") == PRICES.models["claude-sonnet-4"]
    for name in ("", "?", "claude", "claude-opus", "claude-opus-9", "claude-opus-4-5-turbo", "gpt-5"):
        assert PRICES.of(name) is None


def test_tokens_whose_time_in_the_cache_is_not_said_cost_as_for_five_minutes() -> None:
    price = Price(1, 0, 10, 100, 0)
    assert price.cost(Tokens(cache_creation_input_tokens=3_000_000)) == 30
    split = Tokens(cache_creation_input_tokens=3_000_000, cache_creation_5m=2_000_000, cache_creation_1h=1_000_000)
    assert price.cost(split) == 20 + 100


def test_a_long_prompt_costs_what_its_step_says() -> None:
    assert [step_of(tokens) for tokens in (0, 100_000, 100_001, 200_000, 200_001)] == [0, 0, 100_000, 100_000, 200_000]
    haiku = PRICES.models["claude-haiku-5-5"]
    million = Tokens(input_tokens=1_000_000)
    assert [haiku.cost(million, step) for step in (0, 100_000, 200_000)] == [0.1, 0.5, 0.5]
    late = Price(1, 1, 1, 1, 1, (200_000, Price(2, 2, 2, 2, 2)))
    assert [late.cost(million, step) for step in (0, 100_000, 200_000)] == [1, 1, 2]


def row(**others: Any) -> dict[str, Any]:
    return {
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
        "cache_creation_input_token_cost": 3.75e-06,
        "cache_read_input_token_cost": 3e-07,
        **others,
    }


def test_a_file_of_litellm_is_read(tmp_path: Path) -> None:
    long = {f"{name}_above_200k_tokens": 2 * value for name, value in row().items()}
    table = {
        "plain": row(),
        "hour": row(cache_creation_input_token_cost_above_1hr=7e-06),
        "long": row(**long),
        "no-cache": {name: value for name, value in row().items() if "cache" not in name},
        "null": row(input_cost_per_token=None),
        "free": row(**dict.fromkeys(row(), 0)),
        "sample_spec": "text",
    }
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(table))
    os.utime(path, (1767323045, 1767323045))
    prices = Prices.load(path)
    plain = Price(3, 15, 3.75, 6, 0.3)
    assert prices == (
        "prices.json of 2026-01-02",
        {
            "plain": plain,
            "hour": plain._replace(cache_creation_1h=7),
            "free": Price(0, 0, 0, 0, 0),
            "long": plain._replace(long=(200_000, Price(6, 30, 7.5, 12, 0.6))),
        },
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{torn", b"\xff", b'{"a":1', b"[" * 100_000])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(content)
    with pytest.raises(ValueError):  # noqa: PT011 - the parser words the error
        Prices.load(path)


ODD = {"negative": -1e-6, "by the million": 3, "NaN": nan, "infinite": inf, "text": "3e-06", "true": True, "list": [1]}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_an_odd_price_in_a_file_is_refused_by_the_names_of_model_and_price(tmp_path: Path, value: Any) -> None:
    """This includes the price of a long prompt, and a price of a model whose other prices are missing."""
    path = tmp_path / "prices.json"
    rows = row(output_cost_per_token=value), {"output_cost_per_token_above_200k_tokens": value}
    for number, each in enumerate(rows):
        path.write_text(json.dumps({"good": row(), f"odd-{number}": each}))
        with pytest.raises(ValueError, match=f"^output_cost_per_token.* of 'odd-{number}' is .* below 1$") as refused:
            Prices.load(path)
        assert repr(value) in str(refused.value)


def test_an_odd_price_is_told_in_one_short_line(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"\x1b[2J" * 1000: row(input_cost_per_token="\x1b[2J\n" * 1000)}))
    with pytest.raises(ValueError, match="not a number") as refused:
        Prices.load(path)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [-1, nan, inf, "3", None, True])
def test_an_odd_price_of_a_table_is_refused_where_it_is_asked_for(value: Any) -> None:
    price = Price(1, 1, 1, 1, 1)
    prices = Prices("mine", {"good": price, "odd": price._replace(cache_read=value), "long": price._replace(long=None)})
    assert prices.of("good") == prices.of("long") == price
    with pytest.raises(ValueError, match=r"^cache_read of 'odd' is .*, not a price$"):
        prices.of("odd")
    long = price._replace(long=(200_000, price._replace(output=value)))
    with pytest.raises(ValueError, match=r"^output of 'x' is .*, not a price$"):
        Prices("mine", {"x": long}).of("x")
