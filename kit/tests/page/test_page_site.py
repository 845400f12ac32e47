"""The documentation's site works from disk without loading anything else, fits a narrow window, and can be searched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from folders import ROOT

pytest.importorskip("mkdocs")

#: What a reader types -> a page that the search must list.
SEARCHES = {
    "cassette": "how-to/testing.html",
    "kubectl": "how-to/streams.html",
    "zombie": "faq.html",
    "max_line_bytes": "limits.html",
}
PAGES = ["index", "faq", "limits", "benchmarks", "benchmarks-all", "reference/session", "how-to/command-line"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_search_of_a_site_on_disk_finds_what_people_search_for(browser: Any, site: Path) -> None:
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "reference" / "session.html").as_uri())
    for word, wanted in SEARCHES.items():
        page.fill("input.md-search__input", "")
        page.type("input.md-search__input", word)  # the search reacts to keys
        page.wait_for_selector(f'.md-search-result__link[href*="{wanted}"]')
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()


@pytest.mark.parametrize("width", [360, 1600])
def test_a_page_is_not_wider_than_its_window(browser: Any, site: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
    assert faults == []
    page.close()
