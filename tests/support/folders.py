"""Where the tests, their data and the project are."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
DATA = TESTS / "data"
ROOT = TESTS.parent
KIT_TESTS = ROOT / "kit" / "tests"
