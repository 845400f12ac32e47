"""After a lost connection the page says so, reconnects, and continues after the last event."""

from __future__ import annotations

from typing import Any

from browsing import open_page, shown_of
from page_server import PageServer, events_of

TIMES = ["", "once", "2 times", "3 times", "4 times"]


def test_comes_back(browser: Any, server: PageServer) -> None:
    events = events_of("15_subagent_partial")
    session = server.add("one", *events[:7])
    with open_page(browser, server.entry) as tab:
        assert tab.link("live") == "Live"
        session.wait_for_connections(1)
        tab.wait_level()
        rest = events[7:]
        for times in range(4):
            session.publish(*rest[:3])
            del rest[:3]
            tab.wait_for_text("#link-text", f"Live · reconnected {TIMES[times]}" if times else "Live")
            session.cut()
            session.wait_for_connections(times + 2)
        session.publish(*rest)
        tab.wait_for_turns(1)
        assert tab.shown() == shown_of(events)
        assert "reconnected" in tab.link("live")


def test_service_is_away(browser: Any, server: PageServer) -> None:
    session = server.add("one", {"type": "claude_response", "content": "Before."})
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("Before.", exact=True).wait_for()
        server.is_away.set()
        session.cut()
        assert tab.link("lost").endswith("trying again")
        session.publish({"type": "claude_response", "content": "Meanwhile."})
        server.is_away.clear()
        tab.page.get_by_text("Meanwhile.", exact=True).wait_for()
        assert tab.link("live") == "Live · reconnected once"
        assert session.wait_for_connections(2) == [None, "1.1.0"]
        assert tab.page.text_content("#say") in ("Live · reconnected once", "Claude: Meanwhile.")
        assert tab.shown()["texts"] == ["Before.", "Meanwhile."]


def test_another_journal(browser: Any, server: PageServer) -> None:
    """If the service no longer knows the page's last event, the page loads all events again and shows each once."""
    session = server.add("one", {"type": "claude_response", "content": "Lost."})
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("Lost.", exact=True).wait_for()
        session.epoch, session.events[:] = 2, []
        session.publish({"type": "claude_response", "content": "Of the new journal."})
        session.cut()
        tab.page.get_by_text("Of the new journal.", exact=True).wait_for()
        assert tab.shown()["texts"] == ["Of the new journal."]
        assert "conversation was reloaded" in tab.page.text_content("#fault")
        assert session.wait_for_connections(3) == [None, "1.1.0", None]
