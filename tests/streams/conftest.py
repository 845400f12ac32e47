"""Fixtures that check that a test of streams leaves no descriptors and no threads behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from async_backends import BACKENDS
from claude_wire import MessageStream


@pytest.fixture(scope="module")
def first_stream() -> Iterator[None]:
    # The first stream may open descriptors that all later streams share.
    from stream_sources import RESULT, collect

    async def main() -> None:
        readable, writable = os.pipe()
        os.write(writable, RESULT)
        os.close(writable)
        assert len(await collect(MessageStream(readable))) == 1
        os.close(readable)

    for backend in BACKENDS:
        with suppress(pytest.skip.Exception):
            backend.run(main)
    # The drains share a thread and its descriptors, which exist as long as any drain does.
    readable, writable = os.pipe()
    lasting = MessageStream(readable)
    yield
    del lasting
    os.close(readable)
    os.close(writable)


@pytest.fixture
def no_descriptor_leaks(first_stream: None) -> Iterator[None]:
    from stream_sources import descriptors, opened_since

    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert opened_since(before) == {}
