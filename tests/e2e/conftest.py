"""Collect the end-to-end tests only inside the network namespace that ``run.py`` creates.

An ordinary ``pytest`` run skips them. Outside of the namespace they refuse to run.
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
        """A new place (home, working directory and API) for one CLI."""
        return new_place(tmp_path / "cli", api)

    @pytest.fixture
    def places(tmp_path: Path) -> Iterator[Callable[[str], Place]]:
        """A function that makes a place by name, each with a separate fake API."""
        apis: list[FakeAPI] = []

        def make(name: str) -> Place:
            apis.append(fresh_api().__enter__())
            return new_place(tmp_path / name, apis[-1])

        yield make
        for api in apis:
            api.__exit__()
