"""The page shows every value of an event as text, never as markup."""

from __future__ import annotations

from typing import Any

import pytest

from browsing import MAX_ANSWER, open_page, read_markdown
from page_server import PageServer
from unseen import unseen

HOSTILE = {
    "script": "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'><svg onload='window.hit = 1'>",
    "frame": "<iframe srcdoc='<p>hit'></iframe><style>*{display:none}</style><base href='//evil.example/'>",
    "link": "[press](javascript:window.hit=1) <a href='javascript:window.hit=1'>press</a> &lt;b&gt; {{7*7}} ${7*7}",
    "bidi": "\u202egnp.exe\u2066\u2067\u202a abc \u05d0\u05d1\u05d2",
    "marks": "```\n<b>`**`\n" + "`" * 50 + "**" * 50 + "\n# \n- \n" + "\n```html <i>\n</code></pre><b>hit",
    "controls": "\x00\x07\x1b[31m\x7f\u2028\u2029\ufeff\ud83d\ude00 \udbff",
}
#: The names of all elements that the page itself creates, in its head and in its body.
OURS = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "nav", "div", "h1", "h2", "h3", "span", "button"),
    *("ul", "li", "p", "header", "dl", "dt", "dd", "aside", "section", "progress", "main", "footer", "form", "label"),
    *("textarea", "kbd", "dialog", "select", "option", "input", "noscript", "article", "code", "pre"),
    *("details", "summary"),
    # Elements that Markdown creates. Links and tables are left out, because the hostile texts must not create any.
    *("strong", "em", "br", "hr", "h4", "h5", "h6", "ol", "blockquote"),
}
ELEMENTS = "[...document.querySelectorAll('*')].map((one) => one.localName)"


def everywhere(text: str) -> list[dict[str, Any]]:
    """Return an event of each type, with `text` in every field that accepts it."""
    call = {"type": "operation", "id": text, "kind": "command", "title": text, "command": f"{text} ", "path": text}
    asked = {
        "type": "permission_request",
        "tool": text,
        "description": text,
        "input": {text: text, "more": {text: [text]}},
    }
    return [
        {"type": "claude_response", "id": text, "content": text, "partial": True},
        {"type": "claude_response", "id": text, "content": text},
        {"type": "claude_response", "id": f"{text}2", "content": text, "partial": True},
        {**call, "state": "started"},
        {**call, "state": "failed"},
        {"type": "operation", "id": "p", "kind": text, "title": "path", "path": text, "state": text},
        {
            "type": "subagent_progress",
            "agentId": text,
            "name": text,
            "status": "running",
            "lastTool": text,
            "summary": text,
        },
        {"type": "subagent_progress", "agentId": "o", "name": text, "status": text, "lastTool": text, "summary": text},
        {**asked, "requestId": text, "options": [text, text]},
        {**asked, "requestId": f"{text}2", "options": [text]},
        {"type": "permission_cancelled", "requestId": f"{text}2", "reason": text},
        {"type": "notice", "kind": text, "text": text},
        {"type": "turn_complete", "ok": False, "error": text},
        {"type": "progress_update", "currentStep": text, "completedSteps": 1, "totalSteps": 2, "percentage": 50.0},
        {"type": text, "content": text},
        {"type": "user_prompt", "content": text, "id": text},
    ]


@pytest.mark.parametrize("kind", HOSTILE)
def test_text_stays_text(browser: Any, server: PageServer, kind: str) -> None:
    text = HOSTILE[kind]
    server.add("one", *everywhere(text), name=text, cwd=f"/home/{text}")
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#now")
        assert set(tab.page.evaluate(ELEMENTS)) <= OURS
        assert tab.page.evaluate("window.hit") is None
        assert tab.page.locator("script").count() == 1
        assert tab.page.locator("a").count() == 1
        wanted = text.replace("\ud83d\ude00", "\U0001f600")
        assert tab.shown()["texts"] == [read_markdown(wanted)] * 2
        assert tab.page.text_content("#name") == wanted
        # Foreign text is isolated, so that its right-to-left characters cannot reorder the text around it.
        for selector in (".foreign", "#name", "#progress-step"):
            styles = tab.page.locator(selector).evaluate_all(
                "(all) => all.map((one) => getComputedStyle(one).unicodeBidi)"
            )
            assert styles
            assert set(styles) == {"isolate"}
        assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_a_person_decides_on_hides_nothing(browser: Any, server: PageServer) -> None:
    """Questions and calls show invisible and reordering characters as escapes, such as ``\\u202e``."""
    command = "rm -r \u202e\u2066build\u2069\u200b\u00a0\u0007 \U0001f600 caf\u00e9\n\t\u05d0"
    seen = "rm -r \\u202e\\u2066build\\u2069\\u200b\\u00a0\\u0007 \U0001f600 caf\u00e9\n\t\u05d0"
    call = {"type": "operation", "id": "t", "kind": "command", "title": "Clean up", "state": "started"}
    asked = {"type": "permission_request", "requestId": "q", "tool": command, "options": ["allow once"]}
    server.add("one", {**call, "command": command}, {**asked, "input": {command: command, "more": [command]}})
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        for selector in (".call code", ".question .tool", ".input dt >> nth=0", ".input dd >> nth=0"):
            assert tab.page.text_content(selector) == seen, selector
        assert tab.page.text_content(".input dd >> nth=1").count("\\u202e") == 1


#: Return the characters that ``exact`` should escape but does not, and those that it escapes without a reason: their
#: Unicode category is neither C nor Z. The full list of escaped characters would have a million entries.
ESCAPED = """async (unseen) => {
  const { exact } = await import("/text.js");
  const missing = new Set(unseen), more = [];
  for (let number = 0; number < 0x110000; number++) {
    const one = String.fromCodePoint(number);
    if (exact(one) === one) continue;
    const digits = number.toString(16);
    const escape = number > 0xffff ? "\\\\U" + digits.padStart(8, "0") : "\\\\u" + digits.padStart(4, "0");
    if (exact(`a${one}b`) !== `a${escape}b`) throw new Error(digits);
    if (!missing.delete(number) && !/[\\p{C}\\p{Z}]/u.test(one)) more.push(number);
  }
  return [[...missing], more];
}"""


def test_what_is_drawn_as_nothing_is_an_escape_on_the_page_as_at_the_terminal(browser: Any, server: PageServer) -> None:
    with open_page(browser, server.entry) as tab:
        assert tab.page.evaluate(ESCAPED, sorted(unseen())) == [[], []]


def test_a_question_hides_nothing_in_any_of_its_texts(browser: Any, server: PageServer) -> None:
    hidden = "rm build\u3164\u2800\U000e0100/"
    seen = "rm build\\u3164\\u2800\\U000e0100/"
    asked = {"type": "permission_request", "requestId": "q", "tool": hidden, "description": hidden}
    server.add("one", {**asked, "input": {hidden: hidden}, "options": [hidden]})
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        for selector in (".question .tool", ".description", ".input dt", ".input dd", ".options .foreign >> nth=0"):
            assert (tab.page.text_content(selector) or "").lower() == seen.lower(), selector


def test_refusals_of_the_service_stay_text(browser: Any, server: PageServer) -> None:
    text = HOSTILE["script"]
    server.add("one", refusal=(500, text, text))
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.fill("#prompt", text)
        tab.page.press("#prompt", "Enter")
        tab.page.get_by_text("The prompt was not sent").wait_for()
        assert text in tab.page.text_content("#fault")
        assert set(tab.page.evaluate(ELEMENTS)) <= OURS


LONG = 5_000_000
#: Count in ``window.looks`` how often a timer of the page runs.
LOOKS = """() => {
  window.looks = 0;
  const look = () => { window.looks += 1; setTimeout(look); };
  look();
}"""


@pytest.mark.parametrize("unit", ["x", "word ", "**a** `b`\n", "\U0001f600"])
def test_five_megabytes(browser: Any, server: PageServer, unit: str) -> None:
    """The page cuts a long text wherever it appears, and a button shows more of it."""
    text = unit * (LONG // len(unit.encode()))
    session = server.add("one")
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        session.publish(
            {"type": "claude_response", "id": "m", "content": text, "partial": True},
            {"type": "claude_response", "id": "m", "content": text},
            {"type": "notice", "kind": "error", "text": text},
            {
                "type": "permission_request",
                "requestId": "q",
                "tool": "Bash",
                "input": {"command": text},
                "options": ["allow once"],
            },
            {"type": "turn_complete", "ok": False, "error": text},
        )
        tab.wait_for_turns(1)
        shown = tab.page.evaluate("document.body.textContent.length")
        assert shown < MAX_ANSWER + 3 * 20_000 + 5_000
        button = tab.page.locator("[data-kind=response] .more")
        assert "characters are left" in button.text_content()
        button.click()
        given = tab.page.evaluate(
            "[...document.querySelectorAll('[data-kind=response] .plain')].map((one) => one.textContent).join('')"
        )
        units = text.encode("utf-16-le")[2 * MAX_ANSWER :]
        assert units.startswith(given.encode("utf-16-le"))
        assert len(given.encode("utf-16-le")) // 2 in (100_000, 99_999)


def test_long_text_does_not_hold_up_the_page(browser: Any, server: PageServer) -> None:
    """Timers of the page continue to run between the events."""
    piece = {"type": "claude_response", "id": "m", "content": "word " * 100, "partial": True}
    session = server.add("one")
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.evaluate(LOOKS)
        session.publish(*[piece] * 10_000)
        tab.wait_for_text(".more-to-come", "4,737,856 more characters so far")
        assert tab.page.evaluate("window.looks") > 10
        session.publish({"type": "turn_complete", "ok": True})
        tab.page.get_by_text("4,737,856 characters are left").wait_for()
        assert len(tab.shown()["texts"][0]) == MAX_ANSWER
