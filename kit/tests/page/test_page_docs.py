"""Run the JavaScript example of docs/web.md in a browser. It shows each text of a conversation once."""

from __future__ import annotations

from typing import Any

import pytest

from browsing import open_page, shown_of
from folders import ROOT
from page_server import PageServer, events_of
from pages import blocks

(PROGRAM,) = (block.text for block in blocks(ROOT / "docs" / "web.md") if block.language == "js")

SHOWS = """(texts) => {
  const shown = [...document.querySelectorAll("body > p")].map((one) => one.textContent);
  return JSON.stringify(shown) === JSON.stringify(texts);
}"""


@pytest.mark.parametrize("recording", ["04_tools_bypass_partial", "05_perm_allow_deny"])
def test_the_lines_of_the_document_show_each_text_once(browser: Any, server: PageServer, recording: str) -> None:
    """This holds even if the connection is lost in the middle."""
    events = events_of(recording)
    first = events[: len(events) // 2]
    session = server.add("one", *first)
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.goto(f"{server.url}sessions")  # same origin, but none of the page's scripts
        tab.page.evaluate(f"(id) => {{ {PROGRAM} }}", "one")
        session.wait_for_connections(2)
        tab.page.wait_for_function(SHOWS, arg=shown_of(first)["texts"])
        session.cut()
        assert session.wait_for_connections(3)[2] is not None
        session.publish(*events[len(first) :])
        tab.page.wait_for_function(SHOWS, arg=shown_of(events)["texts"])
