"""The folders of the tests, of their data and of the project."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
DATA = TESTS / "data"
ROOT = TESTS.parent
KIT_TESTS = ROOT / "kit" / "tests"
