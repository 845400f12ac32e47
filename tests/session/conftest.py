"""A fixture that checks that a test of sessions leaves nothing in the queues."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from claude_wire.streams import byte_budget, set_byte_budget
from session_peer import queued_bytes


@pytest.fixture
def nothing_is_queued() -> Iterator[None]:
    """Fail a test that leaves bytes in the queues, and restore the byte budget after the test."""
    gc.collect()
    before, limit = queued_bytes(), byte_budget()
    yield
    set_byte_budget(limit)
    gc.collect()
    assert queued_bytes() == before
