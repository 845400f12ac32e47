"""What tests of sessions must not leave behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from claude_wire.streams import byte_budget, set_byte_budget
from session_peer import queued_bytes


@pytest.fixture
def nothing_is_queued() -> Iterator[None]:
    """Fails a test that leaves bytes in the queues; whatever byte budget it sets ends with it."""
    gc.collect()
    before, limit = queued_bytes(), byte_budget()
    yield
    set_byte_budget(limit)
    gc.collect()
    assert queued_bytes() == before
