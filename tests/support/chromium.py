"""The browser for the tests of the page: Debian's Chromium, driven by Playwright, which downloads nothing."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["another", "running_chromium"]

#: The path of the browser, set by ``make test-page`` and ``make e2e``. Other runs skip the tests of the page: while the
#: browser runs, later tests in the same process could not run an event loop.
GIVEN = os.environ.get("CLAUDE_WIRE_BROWSER")


@contextmanager
def running_chromium() -> Iterator[Any]:
    """Run Chromium for a block. Meanwhile no other event loop can run in this thread."""
    if not GIVEN:
        pytest.skip("make test-page says which browser is used")
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        yield _launch(playwright.chromium, GIVEN)


@contextmanager
def another(browser: Any) -> Iterator[Any]:
    """Run a second, independent process of the same browser for a block."""
    second = _launch(browser.browser_type, GIVEN)
    try:
        yield second
    finally:
        second.close()


def _launch(kind: Any, path: str | None) -> Any:
    # Chromium's sandbox needs rights that containers and root do not have. The browser opens only our own pages.
    # On an overloaded machine it takes 27 of the 30 seconds that Playwright allows by default.
    return kind.launch(executable_path=path, args=["--no-sandbox"], timeout=120_000)
