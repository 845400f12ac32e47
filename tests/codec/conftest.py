"""Fixtures for the tests of the decoder."""

from __future__ import annotations

import pytest

from claude_wire.codec import lines
from claude_wire.codec.engines import Engine


@pytest.fixture
def by_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new decoders use the msgspec engine instead of the native reader."""
    monkeypatch.setattr(lines, "engine_of", lambda vocabulary: Engine(vocabulary, {}))
