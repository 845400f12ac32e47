"""A browser for the tests of the page: Debian's, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["another", "running_chromium"]

#: The browser, given by ``make test-page`` and ``make e2e``. Without it the tests are skipped: tests that come after
#: them in the same process could run no event loop.
GIVEN = os.environ.get("CLAUDE_WIRE_BROWSER")


@contextmanager
def running_chromium() -> Iterator[Any]:
    """Chromium for a block. While it runs, no other event loop can run in this thread."""
    if not GIVEN:
        pytest.skip("make test-page says which browser is used")
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        yield _launch(playwright.chromium, GIVEN)


@contextmanager
def another(browser: Any) -> Iterator[Any]:
    """One more process of the same browser for a block, which shares nothing with the first."""
    second = _launch(browser.browser_type, GIVEN)
    try:
        yield second
    finally:
        second.close()


def _launch(kind: Any, path: str | None) -> Any:
    # Its sandbox needs rights that containers and root do not have. It shows pages of ours only.
    return kind.launch(executable_path=path, args=["--no-sandbox"])
