"""The end-to-end tests are collected only where they may run: inside of what ``run.py`` makes.

So an ordinary ``pytest`` passes them by, and one that was told to take them elsewhere fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

collect_ignore_glob = [] if "CLAUDE_WIRE_E2E" in os.environ else ["*"]

if not collect_ignore_glob:
    from offline import sandbox
    from offline.fake_api import FakeAPI
    from places import Place, fresh_api, new_place

    sandbox.require()

    @pytest.fixture
    def api() -> Iterator[FakeAPI]:
        """The fake Messages API."""
        with fresh_api() as api:
            yield api

    @pytest.fixture
    def place(api: FakeAPI, tmp_path: Path) -> Place:
        """Where one CLI runs."""
        return new_place(tmp_path / "cli", api)

    @pytest.fixture
    def places(tmp_path: Path) -> Iterator[Callable[[str], Place]]:
        """Makes places by name, each with an API of its own."""
        apis: list[FakeAPI] = []

        def make(name: str) -> Place:
            apis.append(fresh_api().__enter__())
            return new_place(tmp_path / name, apis[-1])

        yield make
        for api in apis:
            api.__exit__()
