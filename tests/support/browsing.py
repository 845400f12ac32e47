"""Open the page in a browser, and compare the page with the events that it should show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

from claude_wire_kit.events.notices import FOR_ALL
from claude_wire_kit.html.markdown import markdown
from page_server import Event

__all__ = ["MAX_ANSWER", "Shown", "open_page", "read_markdown", "shown_of"]

#: The page renders this many characters of an answer as Markdown: ``MAX_ANSWER`` in conversation.js.
MAX_ANSWER = 256 * 1024

#: A script that returns the page's content by kind. It leaves out text that is still folded.
SHOWN = """() => {
  const of = (kind, give) => [...document.querySelectorAll(`[data-kind="${kind}"]`)].map(give);
  const text = (one, selector) => {
    const found = one.querySelector(selector)?.cloneNode(true);
    for (const more of found?.querySelectorAll(".more") ?? []) more.remove();
    return found?.textContent ?? null;
  };
  return {
    texts: of("response", (one) => text(one, ".body")),
    prompts: of("prompt", (one) => text(one, ".body")),
    calls: of("operation", (one) => [one.dataset.id, text(one, ".row > .name"), one.dataset.state]),
    questions: of("question", (one) => [one.dataset.id, text(one, ".tool"), one.dataset.outcome ?? "open"]),
    agents: of("agent", (one) => [one.dataset.agent, text(one, ".row > .name"), one.dataset.state]),
    notices: of("notice", (one) => text(one, ".body")),
    turns: of("turn", (one) => one.dataset.ok === "true"),
  };
}"""

Shown = dict[str, list[Any]]


def read_markdown(text: str) -> str:
    """Return the text that the Python renderer shows for Markdown, with all whitespace as single spaces."""
    parser, read = HTMLParser(), list[str]()
    parser.handle_data = read.append  # type: ignore[method-assign] # nothing else of a parser is needed
    parser.feed(markdown(text))
    parser.close()
    return " ".join("".join(read).split())


def _read_answer(text: str) -> str:
    """Return the page's text for an answer. Text above MAX_ANSWER (in UTF-16 units) is shown as plain text."""
    units = text.encode("utf-16-le", "surrogatepass")
    first, rest = (
        part.decode("utf-16-le", "surrogatepass") for part in (units[: 2 * MAX_ANSWER], units[2 * MAX_ANSWER :])
    )
    return " ".join([*read_markdown(first).split(), *rest.split()])


def shown_of(events: list[Event]) -> Shown:
    """Return the content that a page must show for these events, each item once."""
    texts: dict[object, str] = {}
    calls: dict[str, list[str]] = {}
    questions: dict[str, list[str]] = {}
    agents: dict[str, list[str]] = {}
    for number, event in enumerate(events):
        kind = event["type"]
        if kind == "claude_response" and "agentId" not in event:
            id = event.get("id", number)
            texts[id] = texts.get(id, "") + event["content"] if event.get("partial") else event["content"]
        elif kind == "operation":
            calls.setdefault(event["id"], [event["id"], event["title"] or "Result", ""])[2] = event["state"]
        elif kind == "permission_request":
            questions[str(event["requestId"])] = [str(event["requestId"]), event["tool"], "open"]
        elif kind == "permission_cancelled":
            decided = {True: "allowed", False: "denied"}.get(event.get("allowed"), event["reason"])
            questions[str(event["requestId"])][2] = decided
        elif kind == "subagent_progress":
            agents[event["agentId"]] = [event["agentId"], event["name"], event["status"]]
    return {
        "texts": [_read_answer(text) for text in texts.values() if text.strip()],
        "prompts": [
            event["content"]
            for event in events
            if event["type"] == "user_prompt" and not {"agentId", "origin"} & event.keys()
        ],
        "calls": sorted(calls.values()),
        "questions": list(questions.values()),
        "agents": list(agents.values()),
        "notices": [event["text"] for event in events if event["type"] == "notice" and event["kind"] in FOR_ALL],
        "turns": [event["ok"] for event in events if event["type"] == "turn_complete"],
    }


class Tab:
    """A browser tab with the page. It collects the errors and warnings of the browser."""

    def __init__(self, page: Any) -> None:
        self.page: Any = page
        #: Errors, warnings and violations of the Content-Security-Policy.
        self.faults: list[str] = []
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: Any) -> None:
        # A test makes requests fail on purpose, and the page itself reports the failure.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.faults.append(message.text)

    def shown(self) -> Shown:
        """Return the page's current content."""
        shown: Shown = self.page.evaluate(SHOWN)
        shown["texts"] = [" ".join(text.split()) for text in shown["texts"]]
        shown["calls"].sort()
        return shown

    def wait_level(self) -> None:
        """Wait until the page shows everything that had happened before it was opened."""
        self.page.wait_for_selector("#log[aria-busy=false]")

    def wait_for_turns(self, count: int) -> None:
        """Wait until the page shows the end of ``count`` turns."""
        self.page.locator("[data-kind=turn]").nth(count - 1).wait_for()

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until an element has exactly this text, even if the element is not visible."""
        pattern = re.compile(f"^{re.escape(text)}$")
        self.page.locator(selector).filter(has_text=pattern).wait_for(state="attached")

    def unfold(self, most: int = 200) -> None:
        """Click "more" until all long texts are shown in full."""
        more = self.page.locator("#log .body > .more")
        for _ in range(most):
            if not more.count():
                return
            more.first.click()
        raise AssertionError("there is always more")

    def link(self, state: str) -> str:
        """Wait for a state of the connection, and return the page's text about it."""
        self.page.wait_for_selector(f"#link[data-state={state}]")
        return str(self.page.text_content("#link-text"))


@contextmanager
def open_page(browser: Any, url: str, *, width: int = 1280, height: int = 800, **context: Any) -> Iterator[Tab]:
    """Open the page in a new browser profile. Check at the end that the browser reported no fault."""
    opened = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **context)
    try:
        tab = Tab(opened.new_page())
        tab.page.goto(url)
        yield tab
        assert tab.faults == []
    finally:
        opened.close()
