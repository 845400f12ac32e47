"""What tests of streams must not leave behind."""

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
    # The first of its kind may open what all later ones share.
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
    # It and the thread live as long as there is any drain.
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
