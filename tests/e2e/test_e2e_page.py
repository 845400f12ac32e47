"""The page in Chromium, with ``claude-wire serve`` and the real CLI, shows each entry of the journal once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from browsing import MAX_ANSWER, Tab, open_page, read_markdown
from chromium import another, running_chromium
from offline.fake_api import FakeAPI
from page_scripts import FOUND, HOSTILE, LONG, LOOK, MENDED, SCRIPTS, make_folder
from page_service import PageService


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for this file only: while Playwright runs, other tests cannot run an event loop."""
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def service() -> Iterator[PageService]:
    """A running service. Its folder is the temporary home of the tests, to keep the paths in screenshots short."""
    with FakeAPI(SCRIPTS) as api:
        service = PageService(Path.home(), api)
        try:
            yield service
        finally:
            service.close()


def type_prompt(tab: Tab, text: str) -> None:
    """Wait until the page shows all of the journal, then type a prompt and press Enter."""
    tab.wait_level()
    tab.page.wait_for_selector("#prompt:enabled")
    tab.page.focus("#prompt")
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Enter")


def asked(tab: Tab, text: str) -> None:
    """Wait until the page shows an open question with this text."""
    tab.page.locator("#questions .question", has_text=text).wait_for()


def live_text(tab: Tab, text: str) -> None:
    """Wait until the unfinished answer shows exactly this text, apart from white space at both ends."""
    so_far = re.compile(rf"^\s*{re.escape(text.strip())}\s*$")
    tab.page.locator(".response.live .body").filter(has_text=so_far).wait_for(state="attached")


def test_a_typed_prompt_streams(browser: Any, service: PageService) -> None:
    make_folder(service.projects / "shop", "streams")
    with open_page(browser, service.entry, color_scheme="dark") as tab:
        tab.page.click("#new")
        tab.page.get_by_label("Folder").fill("shop")
        tab.page.get_by_label("Name").fill("Where is the sum?")
        tab.page.keyboard.press("Enter")
        tab.wait_for_text("#name", "Where is the sum?")
        session = service.session(tab.page.evaluate("location.hash").removeprefix("#session="))
        type_prompt(tab, "Where is the total of the cart added up?")
        # The page shows part of each text while the CLI has not ended its turn.
        live_text(tab, LOOK)
        session.is_shown(tab)
        service.api.open("streams-0")
        live_text(tab, "The sum is right, but each item is rounded ")
        session.is_shown(tab)
        assert tab.shown()["texts"] == [read_markdown(LOOK + FOUND), "The sum is right, but each item is rounded"]
        assert session.said("result") == []
        tab.wait_for_text("#progress-step", "Reading the tests")
        service.api.open("streams-1")
        tab.wait_for_turns(1)
        session.is_shown(tab)
        type_prompt(tab, "Thank you.")
        tab.wait_for_turns(2)
        session.is_shown(tab)
        kinds = [row[0] for row in session.rows()]
        assert kinds == ["prompt", "text", "tool", "tool", "text", "turn", "prompt", "text", "turn"]


def test_answers_by_mouse_and_by_keyboard(browser: Any, service: PageService) -> None:
    """Allow one question by mouse, allow one with the CLI's suggestion, and deny one. The CLI follows the answers."""
    session = service.create("cart", "The cart is one cent off")
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, "The total of the cart is one cent too high for some customers. Please mend it.")
        asked(tab, "Allow Edit?")
        tab.wait_for_text("#sessions [aria-current] .life", "asks you")
        session.is_shown(tab)
        tab.page.get_by_role("button", name="Allow once").click()
        asked(tab, "Run the tests of the cart")
        assert (session.folder / "cart.py").read_text() == MENDED
        session.is_shown(tab)
        # Key 2 accepts the CLI's suggested rule, so the CLI runs the same command again without a question.
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("2")
        asked(tab, "Remove what the last build has left")
        session.is_shown(tab)
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("ArrowUp")
        tab.page.keyboard.press("Enter")
        tab.wait_for_turns(1)
        session.is_shown(tab)
        assert tab.page.evaluate("document.activeElement.id") == "prompt"
    assert (session.folder / "build").is_dir()
    once, rule, never = session.answers()
    assert (once, never) == (("allow", None), ("deny", None))
    assert rule[0] == "allow"
    assert rule[1][0]["rules"] == [{"toolName": "Bash", "ruleContent": "python3 -m unittest -q"}]
    *_, first, second, denied = session.results()
    assert [is_error for _, is_error in (first, second, denied)] == [False, False, True]
    assert "Ran 1 test" in first[0]
    assert "Ran 1 test" in second[0]
    assert [row[3] for row in session.rows() if row[0] == "tool"] == [*["succeeded"] * 4, "denied"]


def test_reload_in_mid_turn(browser: Any, service: PageService) -> None:
    """Reload with an open question and in the middle of a text. The page loses nothing and repeats nothing."""
    session = service.create("reloaded", "Write the first file", folder="stock")
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, "Write the first file, please.")
        asked(tab, "Allow Write?")
        session.is_shown(tab)
        tab.page.reload()
        asked(tab, "Allow Write?")
        tab.wait_level()
        session.is_shown(tab)
        tab.page.get_by_role("button", name="Allow once").click()
        live_text(tab, "The first half, ")
        tab.page.reload()
        live_text(tab, "The first half, ")
        tab.wait_level()
        session.is_shown(tab)
        assert session.said("result") == []
        service.api.open("reloaded")
        tab.wait_for_turns(1)
        session.is_shown(tab)
    assert (session.folder / "first.txt").read_text() == "first\n"
    assert session.answers() == [("allow", None)]


def test_two_tabs_and_another_browser(browser: Any, service: PageService) -> None:
    """Three tabs show the same rows. An answer in one closes the question in all. Of two answers one counts."""
    session = service.create("tabs", "Make three files")
    with ExitStack() as stack:
        first = stack.enter_context(open_page(browser, session.entry))
        second = Tab(first.page.context.new_page())
        second.page.goto(first.page.url)
        elsewhere = stack.enter_context(another(browser))
        third = stack.enter_context(open_page(elsewhere, session.entry))
        tabs = [first, second, third]

        def all_show() -> None:
            for tab in tabs:
                session.is_shown(tab)

        for tab in tabs:
            tab.wait_level()
        type_prompt(first, "Make three files.")
        for tab in tabs:
            asked(tab, "Make the first file")
        all_show()
        second.page.get_by_role("button", name="Deny").click()
        for tab in tabs:
            asked(tab, "Make the second file")
        all_show()
        third.page.get_by_role("button", name="Allow once").click()
        for tab in tabs:
            asked(tab, "Make the third file")
        all_show()
        # Answer the same question in both tabs at the same time.
        first.page.evaluate("document.querySelector('#questions .main').click()")
        third.page.evaluate("document.querySelector('#questions .deny')?.click()")
        for tab in tabs:
            tab.wait_for_turns(1)
        all_show()
        answers = [behavior for behavior, _ in session.answers()]
        assert answers[:2] == ["deny", "allow"]
        assert len(answers) == 3
        made = [(session.folder / name).exists() for name in ("first", "second", "third")]
        assert made == [behavior == "allow" for behavior in answers]
        type_prompt(second, "Once more.")
        for tab in tabs:
            tab.wait_for_turns(2)
        all_show()
        assert second.faults == []


def test_narrow_screen(browser: Any, service: PageService) -> None:
    """On a screen 360 pixels wide nothing scrolls sideways, and a tap answers a question."""
    session = service.create("narrow", "Write the release notes", folder="notes")
    with open_page(
        browser, session.entry, width=360, height=740, has_touch=True, is_mobile=True, color_scheme="dark"
    ) as tab:
        type_prompt(tab, "Write the release notes into a file.")
        asked(tab, "Allow Write?")
        session.is_shown(tab)
        assert sideways(tab) == 0
        allow = tab.page.get_by_role("button", name="Allow once")
        assert is_in_view(tab, "#questions .main")
        assert is_in_view(tab, "#prompt")
        allow.tap()
        tab.wait_for_turns(1)
        session.is_shown(tab)
        assert sideways(tab) == 0
    assert len(list(session.folder.rglob("release-notes-*.md"))) == 1
    assert session.answers() == [("allow", None)]


def sideways(tab: Tab) -> int:
    """Return by how many pixels the page, the conversation or the questions overflow to the right."""
    return int(
        tab.page.evaluate(
            "[document.documentElement, document.getElementById('main'), document.getElementById('questions')]"
            ".reduce((most, one) => Math.max(most, one.scrollWidth - one.clientWidth), 0)"
        )
    )


def is_in_view(tab: Tab, selector: str) -> bool:
    """Return whether the whole element is inside the window and nothing covers its center."""
    return bool(
        tab.page.locator(selector).evaluate(
            "(one) => { const { left, right, top, bottom } = one.getBoundingClientRect();"
            " const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);"
            " return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && one.contains(found); }"
        )
    )


def test_the_service_restarts_in_mid_turn(browser: Any, service: PageService) -> None:
    """The page reports when it loses the service and when it reconnects. The CLI keeps running meanwhile."""
    session = service.create("restarted", "Why does the test fail?", folder="checkout")
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, "Why does the test of the cart fail?")
        live_text(tab, LOOK)
        assert tab.link("live") == "Live"
        service.stop()
        assert tab.link("lost").endswith("trying again")
        service.api.open("restarted-0")
        session.waits_for("control_request", 1)
        assert tab.shown()["texts"] == [LOOK.rstrip()]
        service.start()
        assert tab.link("live") == "Live · reconnected once"
        asked(tab, "Allow Bash?")
        session.is_shown(tab)
        # The user can repeat an answer that did not reach the service, and the CLI receives it once.
        service.stop()
        tab.link("lost")
        tab.page.get_by_role("button", name="Allow once").click()
        tab.page.get_by_text("The answer was not sent: The service cannot be reached.").wait_for()
        service.start()
        assert tab.link("live") == "Live · reconnected 2 times"
        tab.page.get_by_role("button", name="Allow once").click()
        live_text(tab, "The test fails: each item is rounded on its own. ")
        session.is_shown(tab)
        assert session.said("result") == []
        service.api.open("restarted-1")
        tab.wait_for_turns(1)
        session.is_shown(tab)
        assert session.answers() == [("allow", None)]
        type_prompt(tab, "Thank you.")
        tab.wait_for_turns(2)
        session.is_shown(tab)
    assert "FAILED" in (session.folder / "result.txt").read_text()


def test_a_session_that_ends_in_mid_turn_is_resumed(browser: Any, service: PageService) -> None:
    """The page shows earlier messages once, the interrupted turn stays ended, and the CLI remembers the first turn."""
    session = service.create("resumed", "Look at the cart")
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, "Look at the cart.")
        tab.wait_for_turns(1)
        type_prompt(tab, "Once more.")
        live_text(tab, "This never ")
        session.is_shown(tab)
        # A killed CLI loses what it has not yet written to the transcript, and the resumed session needs the tool call.
        session.is_transcribed("tool_result")
        service.end(session.id)
        tab.page.get_by_text("The session has ended").first.wait_for()
        session.is_shown(tab)
        assert tab.page.is_disabled("#prompt")
        tab.page.click("#resume")
        type_prompt(tab, "Do you still know it?")
        tab.wait_for_turns(2)
        session.is_shown(tab)
        tab.page.reload()
        tab.wait_for_turns(2)
        tab.wait_level()
        session.is_shown(tab)
        assert tab.shown()["texts"][-2:] == ["This never", "I still know the cart."]
    assert "I have seen the cart." in str(service.api.asked("resumed")[-1].body["messages"])


def test_hostile_content_is_text(browser: Any, service: PageService) -> None:
    """The page shows HTML as text in answers, tool inputs and results, prompts, and the session's name and folder."""
    folder = HOSTILE["script"].replace("/", "")
    session = service.create("hostile", HOSTILE["script"] + HOSTILE["bidi"], folder=folder)
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, HOSTILE["frame"])
        for tool in ("Bash", "Write"):
            asked(tab, f"Allow {tool}?")
            is_text(tab)
            session.is_shown(tab)
            assert HOSTILE["bidi"][0] not in tab.page.text_content("#questions")
            # The progress line is the only place where the page shows a command's output.
            tab.wait_for_text("#progress-step", HOSTILE["script"][:60])
            tab.page.get_by_role("button", name="Allow once").click()
        tab.wait_for_turns(1)
        session.is_shown(tab)
        is_text(tab)
        tab.page.reload()
        tab.wait_for_turns(1)
        tab.wait_level()
        session.is_shown(tab)
        is_text(tab)
        assert tab.page.text_content("#name") == HOSTILE["script"] + HOSTILE["bidi"]
        assert tab.page.text_content("#folder") == str(session.folder)
    read, output, failed, _ = session.results()
    assert HOSTILE["frame"] in read[0]
    assert HOSTILE["script"] in output[0]
    assert failed[1]
    assert session.rows()[-2][1].endswith(read_markdown(f"**{HOSTILE['bidi']}**"))


def is_text(tab: Tab) -> None:
    """Check that no content became an element or ran as a script, and that each text isolates its direction."""
    found = tab.page.evaluate("[...document.querySelectorAll('*')].map((one) => one.localName)")
    assert not {"img", "svg", "iframe", "style", "base", "b"} & set(found)
    assert (found.count("script"), found.count("a")) == (1, 1)
    assert tab.page.evaluate("window.hit") is None
    styles = "(all) => all.map((one) => getComputedStyle(one).unicodeBidi)"
    for selector in (".foreign", "#name", "#folder", "#progress-step"):
        assert set(tab.page.locator(selector).evaluate_all(styles)) == {"isolate"}


def test_five_million_characters(browser: Any, service: PageService) -> None:
    """The page shows the start of a very long text once, before and after a reload, and a button shows more."""
    session = service.create("long", "A long answer")
    with open_page(browser, session.entry) as tab:
        type_prompt(tab, "Say a lot.")
        tab.wait_for_turns(1)
        is_shown_in_part(tab)
        tab.page.reload()
        tab.wait_for_turns(1)
        is_shown_in_part(tab)
    assert session.rows() == [["prompt", "Say a lot."], ["text", LONG.rstrip()], ["turn", True]]


def is_shown_in_part(tab: Tab) -> None:
    """Check that the page shows the first MAX_ANSWER characters, and that the button shows 100,000 more."""
    tab.wait_level()
    tab.page.locator(".response .more").wait_for()  # after a reload the page fetches the text as an older entry
    assert tab.shown()["texts"] == [LONG[:MAX_ANSWER]]
    tab.page.click(".response .more")
    tab.page.get_by_text("4,637,856 characters are left").wait_for()
    assert tab.shown()["texts"] == [LONG[: MAX_ANSWER + 100_000]]
