"""A browser for the tests of the page: Debian's, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["another", "running_chromium"]

#: The browser, given by ``make test-page`` and ``make e2e``. Without it the tests are skipped if there is none, or no
#: Playwright.
GIVEN = os.environ.get("CLAUDE_WIRE_BROWSER")


@contextmanager
def running_chromium() -> Iterator[Any]:
    """Chromium for a block. While it runs, no other event loop can run in this thread."""
    path = GIVEN or shutil.which("chromium")
    if path is None:
        pytest.skip("there is no Chromium")
    name = "playwright.sync_api"
    sync_api = importlib.import_module(name) if GIVEN else pytest.importorskip(name)
    with sync_api.sync_playwright() as playwright:
        yield _launch(playwright.chromium, path)


@contextmanager
def another(browser: Any) -> Iterator[Any]:
    """One more process of the same browser for a block, which shares nothing with the first."""
    second = _launch(browser.browser_type, GIVEN or shutil.which("chromium"))
    try:
        yield second
    finally:
        second.close()


def _launch(kind: Any, path: str | None) -> Any:
    # Its sandbox needs rights that containers and root do not have. It shows pages of ours only.
    return kind.launch(executable_path=path, args=["--no-sandbox"])
