"""A browser for the tests of the page: Debian's, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from page_server import PageServer, serve_page

#: The browser, given by ``make test-page``. Without it the tests are skipped where there is none, or no Playwright.
GIVEN = os.environ.get("CLAUDE_WIRE_BROWSER")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, once for all tests."""
    path = GIVEN or shutil.which("chromium")
    if path is None:
        pytest.skip("there is no Chromium")
    name = "playwright.sync_api"
    sync_api = importlib.import_module(name) if GIVEN else pytest.importorskip(name)
    with sync_api.sync_playwright() as playwright:
        # Its sandbox needs rights that containers and root do not have. It shows pages of ours only.
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


@pytest.fixture
def server() -> Iterator[PageServer]:
    """A service without sessions."""
    with serve_page() as running:
        yield running
