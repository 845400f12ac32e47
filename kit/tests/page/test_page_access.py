"""Accessibility of the page: keyboard, screen reader, narrow screens and contrast."""

from __future__ import annotations

import os
from typing import Any

import pytest

from browsing import open_page
from folders import ROOT
from page_scene import scene
from page_server import PageServer

DOCS = ROOT / "docs"
#: If this environment variable is set, the tests take the screenshots of the documentation again.
PICTURES = bool(os.environ.get("CLAUDE_WIRE_PICTURES"))

#: Return each visible text and the ratio of its contrast with the background, as WCAG 2.2 defines it.
CONTRASTS = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const [r, g, b, alpha = 1] = channels(getComputedStyle(one).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("noscript, .hidden, .skip, :disabled")) continue;
    const [front, back] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    found.push([text.slice(0, 40), Math.round(ratio * 100) / 100]);
  }
  return found;
}"""
#: Return the elements that extend beyond the right edge of the window.
STICKING_OUT = """() => [...document.querySelectorAll("body *")]
  .filter((one) => one.checkVisibility() && !one.closest("pre, .skip"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
  .map((one) => one.outerHTML.slice(0, 100))"""
#: Return the controls and landmarks that have no name for a screen reader.
UNNAMED = """() => [...document.querySelectorAll(
  "button, input, select, textarea, progress, [role], nav, main, aside, section, dialog")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute("aria-label") || one.getAttribute("aria-labelledby") || one.labels?.length ||
    (one.localName === "button" && one.textContent.trim()) || ["status", "alert"].includes(one.getAttribute("role"))))
  .map((one) => one.outerHTML.slice(0, 120))"""
#: Return duplicate ids, and ids in attributes such as ``aria-labelledby`` that no element has.
BROKEN = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  const named = ["for", "aria-labelledby", "aria-describedby", "aria-controls"].flatMap((name) =>
    [...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name)));
  return [...twice, ...named.filter((id) => !document.getElementById(id))];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(360, 740), (1600, 900)])
def test_looks(browser: Any, server: PageServer, scheme: str, width: int, height: int) -> None:
    """Nothing extends beyond the window, all text has enough contrast, and every control has a name."""
    scene(server)
    with open_page(browser, server.entry, width=width, height=height, color_scheme=scheme) as tab:
        tab.page.wait_for_selector("#questions .main")
        tab.wait_level()
        assert tab.page.evaluate("document.documentElement.scrollWidth") == width
        assert tab.page.evaluate(STICKING_OUT) == []
        contrasts = tab.page.evaluate(CONTRASTS)
        assert len(contrasts) > 30
        assert [one for one in contrasts if one[1] < 4.5] == []
        assert tab.page.evaluate(UNNAMED) == []
        assert tab.page.evaluate(BROKEN) == []
        if PICTURES:
            tab.page.screenshot(path=str(DOCS / f"page-{width}-{scheme}.png"))


@pytest.mark.parametrize("text", ["x" * 3000, "\u05d0" * 3000, "a/b" * 1000])
def test_narrow_screen_with_long_words(browser: Any, server: PageServer, text: str) -> None:
    server.add(
        "one",
        {"type": "claude_response", "content": f"{text} `{text[:400]}`\n```\n{text}\n```\n- {text}\n# {text}"},
        {
            "type": "operation",
            "id": "t",
            "kind": "command",
            "title": text[:120],
            "command": text[:1000],
            "state": "started",
        },
        {
            "type": "subagent_progress",
            "agentId": "a",
            "name": text,
            "status": "running",
            "lastTool": text,
            "summary": text,
        },
        {"type": "progress_update", "currentStep": text, "completedSteps": 1, "totalSteps": 2, "percentage": 50.0},
        {"type": "notice", "kind": "error", "text": text},
        {"type": "permission_request", "requestId": "q", "tool": text, "input": {text: text}, "options": [text]},
        name=text,
        cwd=text,
    )
    with open_page(browser, server.entry, width=360, height=740) as tab:
        tab.page.wait_for_selector("#questions .main")
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 360
        assert tab.page.evaluate("document.getElementById('main').scrollWidth") <= 360
        assert tab.page.evaluate("document.getElementById('prompt').getBoundingClientRect().bottom") <= 740


@pytest.mark.parametrize("width", [360, 1600])
def test_nothing_covers_the_buttons_of_a_long_question_or_a_text(browser: Any, server: PageServer, width: int) -> None:
    """The buttons stay in view while the choices scroll, and the button that copies an answer is not on its text."""
    options = [{"label": f"Choice {number}", "description": "A few words. " * 9} for number in range(20)]
    asked = {"questions": [{"question": "Which?", "options": options}]}
    server.add(
        "one",
        {"type": "claude_response", "content": "word " * 99},
        {
            "type": "permission_request",
            "requestId": "q",
            "tool": "AskUserQuestion",
            "input": asked,
            "options": ["once"],
        },
    )
    with open_page(browser, server.entry, width=width, height=740) as tab:
        tab.page.wait_for_selector("#questions .options")
        tab.page.get_by_role("button", name="Do not answer").click(trial=True)
        assert tab.page.evaluate("document.getElementById('questions').scrollTop") == 0
        label, about = (tab.page.locator(f".choice .{name}").last.bounding_box() for name in ("name", "about"))
        assert about["x"] == label["x"]
        text, copy = (tab.page.locator(f"#log .response > .{name}").bounding_box() for name in ("body", "copy"))
        assert copy["x"] >= text["x"] + text["width"] or copy["y"] >= text["y"] + text["height"]
        assert copy["x"] + copy["width"] <= width


def test_landmarks(browser: Any, server: PageServer) -> None:
    scene(server)
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        for role in ("navigation", "banner", "main", "complementary", "contentinfo", "log", "form"):
            assert tab.page.get_by_role(role).count() == 1, role
        assert tab.page.get_by_role("heading", level=1).count() == 1
        assert tab.page.evaluate("document.documentElement.lang") == "en"


def test_told_to_a_screen_reader(browser: Any, server: PageServer) -> None:
    """A screen reader announces new texts when they are complete, and does not announce old ones."""
    session = server.add("one", {"type": "claude_response", "content": "Old."})
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("Old.", exact=True).wait_for()
        tab.wait_level()
        assert "Old." not in tab.page.text_content("#say")
        session.publish({"type": "claude_response", "id": "m", "content": "Ne", "partial": True})
        session.publish({"type": "claude_response", "id": "m", "content": "New."})
        tab.wait_for_text("#say", "Claude: New.")
        session.publish(
            {"type": "permission_request", "requestId": "q", "tool": "Bash", "input": {}, "options": ["allow once"]}
        )
        tab.wait_for_text("#ask", "A question: allow Bash?")
        live = tab.page.evaluate("['say', 'ask'].map((id) => document.getElementById(id).getAttribute('aria-live'))")
        assert live == ["polite", "assertive"]


@pytest.mark.parametrize("width", [360, 1280])
def test_focus_order(browser: Any, server: PageServer, width: int) -> None:
    """The Tab key reaches every control in reading order, and the focus is visible."""
    scene(server)
    with open_page(browser, server.entry, width=width) as tab:
        tab.page.wait_for_selector("#questions .main")
        tab.page.evaluate("document.body.focus()")
        reached = []
        while True:
            tab.page.keyboard.press("Tab")
            one = tab.page.evaluate(
                "() => { const one = document.activeElement; if (one === document.body) return null;"
                " const isSeen = [one, one.form ?? one].some((it) => getComputedStyle(it).outlineStyle !== 'none');"
                " return [one.id || one.textContent.slice(0, 30), isSeen || one.matches('.skip')]; }"
            )
            if one is None or (reached and one == reached[0]):
                break
            reached.append(one)
            assert len(reached) < 60
        names = [name for name, _ in reached]
        assert [name for name, is_seen in reached if not is_seen] == []
        order = [names.index(name) for name in ("log", "1 Allow once", "prompt", "stop")]
        assert order == sorted(order)
        assert ("side-open" in names) == (width == 360)
        assert ("new" in names) == (width != 360)


def test_list_of_sessions_on_a_narrow_screen(browser: Any, server: PageServer) -> None:
    """The dialog covers the page and keeps the focus, and Escape closes it."""
    server.add("first", {"type": "claude_response", "content": "Text of the first."})
    server.add("second")
    with open_page(browser, server.entry, width=360, height=740) as tab:
        tab.wait_level()
        assert not tab.page.is_visible("#side")
        tab.page.focus("#side-open")
        tab.page.keyboard.press("Enter")
        assert tab.page.is_visible("#side")
        assert tab.page.evaluate("document.activeElement.closest('#side') !== null")
        tab.page.keyboard.press("Escape")
        assert not tab.page.is_visible("#side")
        assert tab.page.evaluate("document.activeElement.id") == "side-open"
        tab.page.keyboard.press("Enter")
        tab.page.click("#sessions button >> text=first")
        tab.page.get_by_text("Text of the first.").wait_for()
        assert not tab.page.is_visible("#side")
