"""The page in the middle of a turn fits a wide and a narrow screen, in the light and the dark theme.

With ``CLAUDE_WIRE_PICTURES`` set, the tests take the screenshots of the documentation again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guided_page import Guided, guided

DOCS = Path(__file__).resolve().parents[3] / "docs"
PICTURES = bool(os.environ.get("CLAUDE_WIRE_PICTURES"))

#: Name of a screen -> its width, height and colour scheme.
SCREENS = {
    "1600-light": (1600, 900, "light"),
    "1600-dark": (1600, 900, "dark"),
    "360-light": (360, 740, "light"),
    "360-dark": (360, 740, "dark"),
}
#: The names of the screenshots that the documentation uses.
TAKEN = {"question-1600-light", "question-360-dark", "streaming-1600-dark", "reconnected-1600-light"}


@contextmanager
def _screen(browser: Any, folder: Path, name: str) -> Iterator[Guided]:
    width, height, scheme = SCREENS[name]
    with guided(browser, folder, width=width, height=height, color_scheme=scheme) as shop:
        for other in ("Write the release notes", "Update the start page"):
            shop.client.post("/sessions", json={"profile": "agent", "name": other})
        shop.page.locator("#sessions .session").nth(2).wait_for(state="attached")
        yield shop


def _take(shop: Guided, name: str) -> None:
    """Check that nothing extends beyond the screen. Take the screenshot if the documentation uses it."""
    page = shop.page
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    if PICTURES and name in TAKEN:
        # Replace the long path of the test's folder by a realistic one.
        page.evaluate(
            """(folder) => {
              const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
              while (walker.nextNode()) {
                walker.currentNode.data = walker.currentNode.data.replaceAll(folder, "/home/user/shop");
              }
            }""",
            os.fspath(shop.folder),
        )
        page.screenshot(path=str(DOCS / f"page-{name}.png"))


@pytest.mark.parametrize("screen", SCREENS)
def test_a_question_about_a_change(browser: Any, tmp_path: Path, screen: str) -> None:
    with _screen(browser, tmp_path, screen) as shop:
        shop.say("Fix the bug")
        shop.page.wait_for_selector("#questions .main")
        question = shop.page.locator("#questions .question")
        box = question.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= shop.page.viewport_size["height"]
        assert question.locator(".options button").count() == 3
        _take(shop, f"question-{screen}")


@pytest.mark.parametrize("screen", SCREENS)
def test_an_answer_that_is_being_written(browser: Any, tmp_path: Path, screen: str) -> None:
    with _screen(browser, tmp_path, screen) as shop:
        shop.say("review")
        shop.tab.wait_for_turns(1)
        shop.say("A long answer, please")
        shop.page.locator(".response.live").get_by_text("Part 2", exact=True).wait_for()
        assert shop.page.is_visible("#stop")
        _take(shop, f"streaming-{screen}")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_turn_that_went_on_while_the_service_was_away(browser: Any, tmp_path: Path, screen: str) -> None:
    with _screen(browser, tmp_path, screen) as shop:
        shop.say("markdown")
        shop.tab.wait_for_turns(1)
        shop.say("A long answer, please")
        shop.page.locator(".response.live").get_by_text("Part 2", exact=True).wait_for()
        shop.program.stop()
        shop.page.wait_for_selector("#link[data-state=lost]")
        shop.program.start()
        shop.tab.wait_for_text("#link-text", "Live · reconnected once")
        shop.tab.wait_for_turns(2)
        assert _parts(shop) == [f"Part {number}" for number in range(1, 13)]
        _take(shop, f"reconnected-{screen}")


def _parts(shop: Guided) -> list[str]:
    headings: list[str] = shop.page.locator("#log .response").last.get_by_role("heading").all_text_contents()
    return headings
