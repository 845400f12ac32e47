"""All recorded sessions as one folder, with what the API had answered in all of them; and packages that read tables."""

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

#: Set by ``make test-tables``: what these packages are tested with is there, and not skipped.
REQUIRED = bool(os.environ.get("CLAUDE_WIRE_TABLES"))

#: By model, how often it answered, and its tokens by kind.
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
    """The package. Without it the test is skipped, unless it is required."""
    return importlib.import_module(package) if REQUIRED else pytest.importorskip(package)


def unpack_all(folder: Path) -> Path:
    """Write the transcripts of all scenarios below a folder."""
    for scenario in sessions.measured_scenarios():
        sessions.unpack(scenario, folder / scenario)
    return folder


def wanted() -> Sums:
    """What the API had answered, of all that a transcript holds."""
    models: dict[str, Counter[str]] = {}
    for scenario in sessions.measured_scenarios():
        for model, counts in sessions.truth(scenario)["sums"]["expected_from_transcripts"].items():
            models.setdefault(model, Counter()).update(counts)
    return {model: dict(counts) for model, counts in models.items()}


def sums(tables: Any) -> Sums:
    """What tables ``usage`` come to, each answer once."""
    models: dict[str, Counter[str]] = {}
    for row in rows(usage.combine(tables)):
        if row["model"] != "<synthetic>":
            models.setdefault(row["model"], Counter(answers=0)).update(answers=1, **{n: row[n] or 0 for n in _TOKENS})
    return {model: dict(counts) for model, counts in models.items()}
