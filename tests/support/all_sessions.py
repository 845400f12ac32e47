"""Unpack all recorded sessions into one folder, and compare usage tables with the tokens that the API counted."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sessions
from arrow_reader import rows
from claude_wire.columns import usage

__all__ = ["REQUIRED", "Sums", "needed", "sums", "unpack_all", "wanted"]

#: ``make test-tables`` sets CLAUDE_WIRE_TABLES. Then a missing package fails the test instead of skipping it.
REQUIRED = bool(os.environ.get("CLAUDE_WIRE_TABLES"))

#: Model -> its number of answers, and its tokens by kind.
Sums = dict[str, dict[str, int]]

_TOKENS = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_creation_5m",
    "cache_creation_1h",
    "cache_read_input_tokens",
]


def needed(package: str) -> Any:
    """Import a package. If it is not installed, skip the test, unless the packages are REQUIRED."""
    return importlib.import_module(package) if REQUIRED else pytest.importorskip(package)


def unpack_all(folder: Path) -> Path:
    """Write the transcripts of every scenario into its own subfolder."""
    for scenario in sessions.measured_scenarios():
        sessions.unpack(scenario, folder / scenario)
    return folder


def wanted() -> Sums:
    """Return the API's own counts of the answers that the transcripts contain."""
    models: dict[str, Counter[str]] = {}
    for scenario in sessions.measured_scenarios():
        for model, counts in sessions.truth(scenario)["sums"]["expected_from_transcripts"].items():
            models.setdefault(model, Counter()).update(counts)
    return {model: dict(counts) for model, counts in models.items()}


def sums(tables: Any) -> Sums:
    """Return the totals of ``usage`` tables, with each answer counted once."""
    models: dict[str, Counter[str]] = {}
    for row in rows(usage.combine(tables)):
        if row["model"] != "<synthetic>":
            models.setdefault(row["model"], Counter(answers=0)).update(answers=1, **{n: row[n] or 0 for n in _TOKENS})
    return {model: dict(counts) for model, counts in models.items()}
