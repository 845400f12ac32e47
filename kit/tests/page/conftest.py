"""Fixtures that all tests of the page share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chromium import running_chromium
from page_server import PageServer, serve_page


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A running Chromium, started once for all tests."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def server() -> Iterator[PageServer]:
    """A fake service for the page, without sessions."""
    with serve_page() as running:
        yield running
