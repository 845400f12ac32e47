"""The cancel scopes on asyncio use internals of anyio, and raise a clear error if an anyio version changes these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import anyio
import pytest

from async_backends import ASYNCIO
from claude_wire.support import waiting
from claude_wire.support.waiting import TESTED_ANYIO, cancel_scope, move_on_after


class Moved:
    """A cancel scope of an anyio version with different internals."""

    def __init__(self, **_: Any) -> None:
        self.deadline = 0.0


@pytest.fixture(autouse=True)
def made_anew() -> Iterator[None]:
    waiting._asyncio_kind.cache_clear()
    yield
    waiting._asyncio_kind.cache_clear()


def test_with_other_internals_the_scopes_are_those_of_anyio(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(anyio, "CancelScope", Moved)
            scopes: list[Any] = [cancel_scope(), cancel_scope(shield=True), move_on_after(1.0)]
        assert {type(scope) for scope in scopes} == {Moved}

    ASYNCIO.run(main)
    (record,) = caplog.records
    said = record.getMessage()
    assert f"tested up to anyio {TESTED_ANYIO}; in anyio {version('anyio')}, Moved has no _cancel_handle, _host" in said


def test_the_newest_version_that_was_tested_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with cancel_scope():
            pass

    ASYNCIO.run(main)
    assert not caplog.records
    installed, named = (tuple(map(int, re.findall(r"\d+", text))) for text in (version("anyio"), TESTED_ANYIO))
    assert installed <= named
