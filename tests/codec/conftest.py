"""Fixtures of the tests of decoding."""

from __future__ import annotations

import pytest

from claude_wire.codec import lines
from claude_wire.codec.engines import Engine


@pytest.fixture
def by_msgspec(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let msgspec decode what new decoders are fed with."""
    monkeypatch.setattr(lines, "engine_of", lambda vocabulary: Engine(vocabulary, {}))
