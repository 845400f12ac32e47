"""A user works with the demo agent: choices, reasons, notifications, settings, names, and queued prompts."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from claude_wire_kit.commands.guide.project import BROKEN, FIXED, PICTURE, SOURCE
from guided_page import Guided, guided
from past_sessions import keep_session

#: Script that makes the page look hidden, and records its notifications.
AWAY = """
document.hasFocus = () => false;
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "granted";
  constructor(title) { super(); told.push(title); }
};
"""


def test_deny_with_a_reason(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        shop.say("Run the tests")
        shop.page.fill("#questions .reason", "Not on a Friday.")
        shop.page.press("#questions .reason", "Enter")
        shop.wait_for("Then I do not run them.")
        assert shop.page.text_content("#log .outcome") == "Denied: Not on a Friday."
        id = shop.sessions()[0]["id"]
        with shop.client.stream("GET", f"/sessions/{id}/events?raw=1") as lines:
            assert any("Not on a Friday." in line for line in lines.iter_lines() if "tool_result" in line)


def test_an_edit_is_allowed_and_done(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        shop.say("Fix the bug")
        shop.page.click("#questions .main")
        shop.tab.wait_for_turns(1)
        assert FIXED in (tmp_path / SOURCE).read_text()
        assert BROKEN not in (tmp_path / SOURCE).read_text()


def test_choices(browser: Any, tmp_path: Path) -> None:
    """Questions with one choice, several choices and free text. The Answer button works once each is answered."""
    with guided(browser, tmp_path) as shop:
        shop.say("Ask me a question")
        answer = shop.page.get_by_role("button", name="Answer", exact=False).first
        shop.page.get_by_label("Half up").check()
        assert answer.is_disabled()
        shop.page.get_by_label("Yen").check()
        shop.page.locator(".own").nth(1).fill("Shells")
        answer.click()
        shop.wait_for("You have decided:")
        shop.tab.wait_for_turns(1)
        said = shop.tab.shown()["texts"][-1]
        assert "Half up" in said
        assert "Yen, Shells" in said
        assert shop.page.text_content("#log .outcome") == "Half up · Yen, Shells"


def test_choices_by_keyboard(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        shop.say("question")
        shop.page.wait_for_selector("#questions .choices")
        for key in ["Escape", "ArrowDown", "Tab", "Tab", "Space", "Enter"]:
            shop.page.keyboard.press(key)
        shop.wait_for("You have decided:")
        assert shop.page.text_content("#log .outcome") == "Half to even · Dollar"


def test_title_icon_and_notification(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path, AWAY) as shop:
        assert shop.page.title() == "The shop · claude_wire"
        shop.say("Run the tests")
        shop.page.wait_for_selector("#questions .main")
        shop.page.wait_for_function("() => document.title === '? The shop · claude_wire'")
        assert shop.page.get_attribute("link[rel=icon]", "href") == "icon-asks.svg"
        shop.page.click("#questions .main")
        shop.page.wait_for_function("() => document.title === '✓ The shop · claude_wire'")
        assert shop.page.get_attribute("link[rel=icon]", "href") == "icon-done.svg"
        assert shop.page.evaluate("told") == ["The shop asks you", "The shop is done"]
        shop.page.evaluate("dispatchEvent(new Event('focus'))")
        assert shop.page.title() == "The shop · claude_wire"


def test_done_is_the_run_and_not_the_turn(browser: Any, tmp_path: Path) -> None:
    """The page does not say "done" while a subagent works in the background. Its end starts the last turn."""
    with guided(browser, tmp_path, AWAY) as shop:
        shop.say("background")
        shop.tab.wait_for_turns(1)
        shop.page.wait_for_selector("#now .agent-line")
        assert shop.page.title() == "The shop · claude_wire"
        assert shop.page.evaluate("told") == []
        assert shop.page.text_content("[data-kind=turn] .facts").startswith("Turn done")
        shop.wait_for("My subagent is back from the background: The README has no links.")
        shop.page.wait_for_function("() => told.length")
        assert shop.page.evaluate("told") == ["The shop is done"]
        assert shop.page.locator("[data-kind=turn]").count() == 2
        assert shop.page.locator("#now .agent-line").count() == 0
        assert shop.tab.shown()["prompts"] == ["background"]


#: The same script for a visible page: it only records the notifications.
HERE = AWAY.replace("document.hasFocus = () => false;", "")


def _open_questions(shop: Guided, id: str) -> list[Any]:
    with shop.client.stream("GET", f"/sessions/{id}/events?last=50") as events:
        for line in events.iter_lines():
            state = json.loads(line[6:]) if line.startswith("data: ") else {}
            if state.get("type") == "session_state":
                return list(state["open"])
    raise AssertionError("the events have ended")


def test_a_session_that_is_not_shown_asks_and_is_done(browser: Any, tmp_path: Path) -> None:
    """The title, the icon, a notification and the list show this until the user opens the session."""
    with guided(browser, tmp_path, HERE) as shop:
        id = shop.client.post("/sessions", json={"profile": "agent", "name": "Books"}).json()["id"]
        shop.client.post(f"/sessions/{id}/prompts", json={"text": "Run the tests"})
        shop.page.wait_for_function("() => document.title === '? Books · claude_wire'")
        assert shop.page.get_attribute("link[rel=icon]", "href") == "icon-asks.svg"
        (question,) = _open_questions(shop, id)
        shop.client.post(f"/sessions/{id}/answers", json={"requestId": question, "allow": True})
        shop.page.wait_for_function("() => document.title === '✓ Books · claude_wire'")
        assert shop.page.get_attribute("link[rel=icon]", "href") == "icon-done.svg"
        assert shop.page.text_content("#name") == "The shop"
        told = shop.page.evaluate("told")
        assert told == ["Books asks you", "Books is done"]
        row = shop.page.locator("#sessions .session", has_text="Books")
        assert row.locator(".life").text_content() == "done"
        row.click()
        shop.tab.wait_level()
        shop.page.wait_for_function("() => document.title === 'Books · claude_wire'")
        assert shop.page.evaluate("told") == told


def test_a_session_that_is_not_shown_is_not_done_while_work_goes_on(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path, HERE) as shop:
        id = shop.client.post("/sessions", json={"profile": "agent", "name": "Books"}).json()["id"]
        shop.client.post(f"/sessions/{id}/prompts", json={"text": "background"})
        row = shop.page.locator("#sessions .session", has_text="Books").locator(".life")
        row.get_by_text("working").wait_for()
        with shop.client.stream("GET", f"/sessions/{id}/events") as events:
            for line in events.iter_lines():
                if '"turn_complete"' in line:
                    break
        assert shop.page.evaluate("told") == []
        row.get_by_text("done").wait_for()
        assert shop.page.evaluate("told") == ["Books is done"]
        with shop.client.stream("GET", f"/sessions/{id}/events") as events:
            found = [line for line in _until_state(events) if '"turn_complete"' in line]
        assert ['"background":1' in line for line in found] == [True, False]


def _until_state(events: httpx.Response) -> Iterator[str]:
    for line in events.iter_lines():
        if line == "event: session_state":
            return
        yield line


def test_model_and_mode(browser: Any, tmp_path: Path) -> None:
    """The page changes the model and the mode, and shows changes by other clients."""
    with guided(browser, tmp_path) as shop:
        shop.page.locator("#model option", has_text="Guide mini").wait_for(state="attached")
        shop.page.select_option("#model", "guide-mini")
        shop.page.select_option("#mode", "plan")
        shop.page.wait_for_function("() => document.getElementById('mode').value === 'plan'")
        shop.say("Fix the bug")
        shop.page.click("#questions .main")
        shop.page.wait_for_selector("#questions .tool:text-is('Edit')")
        id = shop.sessions()[0]["id"]
        assert shop.client.post(f"/sessions/{id}/settings", json={"permissionMode": "acceptEdits"}).status_code == 204
        shop.page.wait_for_function("() => document.getElementById('mode').value === 'acceptEdits'")
        shop.page.reload()
        shop.page.wait_for_function("() => document.getElementById('model').value === 'guide-mini'")
        assert shop.page.input_value("#mode") == "acceptEdits"


def test_rename_end_and_delete(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        shop.page.click("#manage-open")
        shop.page.get_by_label("Title").fill("Cents")
        shop.page.keyboard.press("Enter")
        shop.tab.wait_for_text("#name", "Cents")
        assert shop.page.locator("#sessions .name").all_text_contents() == ["Cents"]
        shop.page.click("#manage-open")
        shop.page.get_by_role("button", name="End", exact=True).click()
        shop.page.wait_for_selector("#resume:not([hidden])")
        shop.page.click("#manage-open")
        shop.page.get_by_role("button", name="Delete …").click()
        assert len(shop.sessions()) == 1
        shop.page.get_by_role("button", name="Delete for good").click()
        shop.tab.wait_for_text("#name", "No session")
        assert shop.sessions() == []
        shop.page.wait_for_selector("#no-sessions:not([hidden])")


def test_the_queue_is_seen_and_edited(browser: Any, tmp_path: Path) -> None:
    """Another tab shows the queued prompts as well. The agent answers those that remain together, each shown once."""
    with guided(browser, tmp_path) as shop:
        shop.say("Run the tests")
        shop.page.wait_for_selector("#questions .main")
        for prompt in ("a picture", "a review", "Which model?"):
            shop.say(prompt)
        shop.page.locator("#queue .queued").nth(2).wait_for()
        assert shop.page.locator("#queue .text").all_text_contents() == ["a picture", "a review", "Which model?"]
        other = shop.page.context.new_page()
        other.goto(shop.page.url)
        other.locator("#queue .queued").nth(2).wait_for()
        shop.page.get_by_role("button", name="Remove").nth(1).click()
        other.locator("#queue .queued").nth(2).wait_for(state="detached")
        shop.page.get_by_role("button", name="Edit").nth(0).click()
        shop.page.wait_for_function("() => document.getElementById('prompt').value === 'a picture'")
        assert shop.page.locator("#queue .text").all_text_contents() == ["Which model?"]
        shop.page.press("#prompt", "Enter")
        shop.page.locator("#queue .queued").nth(1).wait_for()
        shop.page.click("#questions .main")
        shop.tab.wait_for_turns(2)
        assert shop.tab.shown()["prompts"] == ["Run the tests", "Which model?", "a picture"]
        assert shop.page.is_hidden("#queue")


def test_commands_in_a_menu(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        shop.page.locator("#model option", has_text="Guide mini").wait_for(state="attached")
        shop.page.focus("#prompt")
        shop.page.keyboard.type("/m")
        names = shop.page.locator("#complete .name")
        assert [one.strip() for one in names.all_text_contents()] == ["/markdown", "/model"]
        shop.page.keyboard.press("ArrowDown")
        assert shop.page.get_attribute("#prompt", "aria-activedescendant") == "complete-1"
        shop.page.keyboard.press("Enter")
        assert shop.page.input_value("#prompt") == "/model "
        assert shop.page.is_hidden("#complete")
        shop.page.keyboard.press("Enter")
        shop.wait_for("I am guide")
        shop.page.keyboard.type("/fi")
        shop.page.wait_for_selector("#complete li")
        shop.page.keyboard.press("Escape")
        assert shop.page.is_hidden("#complete")
        assert shop.page.input_value("#prompt") == "/fi"


def test_files_in_a_menu(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        (tmp_path / "two words.txt").write_text("")
        shop.page.focus("#prompt")
        shop.page.keyboard.type("Look at @cart")
        row = shop.page.locator("#complete li", has_text="shop/cart.py")
        row.click()
        assert shop.page.input_value("#prompt") == "Look at @shop/cart.py "
        shop.page.keyboard.type("and @two")
        shop.page.locator("#complete li", has_text="two words.txt").wait_for()
        shop.page.keyboard.press("Tab")
        assert shop.page.input_value("#prompt") == 'Look at @shop/cart.py and @"two words.txt" '
        assert shop.page.evaluate("document.activeElement.id") == "prompt"


def test_a_menu_whose_new_rows_are_on_their_way_has_only_rows_that_fit(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        (tmp_path / "two words.txt").write_text("")
        shop.page.focus("#prompt")
        shop.page.keyboard.type("@")
        shop.page.locator("#complete li", has_text="README.md").wait_for()
        shop.page.route("**/files?*", lambda route: None)  # the request stays unanswered
        shop.page.keyboard.type("two")
        assert shop.page.locator("#complete li").all_text_contents() == ["two words.txt"]
        shop.page.keyboard.press("Tab")
        assert shop.page.input_value("#prompt") == '@"two words.txt" '
        shop.page.keyboard.type("@nowhere")
        assert shop.page.is_hidden("#complete")


#: Dispatch a "paste" or "drop" event with a file, given its media type and base64 data.
GIVE = """([kind, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], `a.${type.split("/")[1]}`, { type }));
  const more = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent("paste", { ...more, clipboardData: given })
    : new DragEvent("drop", { ...more, dataTransfer: given });
  document.getElementById("prompt").dispatchEvent(event);
}"""


def test_images_by_paste_and_drop(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        logo = base64.b64encode(PICTURE).decode()
        for kind, type in (("paste", "image/png"), ("drop", "image/png"), ("drop", "image/svg+xml")):
            shop.page.evaluate(GIVE, [kind, type, logo])
        assert shop.page.locator("#images .image").count() == 2
        shop.page.wait_for_function("() => document.querySelector('#images canvas').width === 64")
        shop.page.get_by_text("a.svg+xml cannot be used").wait_for()
        shop.page.get_by_role("button", name="Remove a.png").first.click()
        shop.page.focus("#prompt")
        shop.page.keyboard.press("Enter")
        shop.wait_for("You sent 1 image.")
        assert shop.page.is_hidden("#images")


def test_the_theme_is_kept_in_the_browser(browser: Any, tmp_path: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with guided(browser, tmp_path, color_scheme="light") as shop:
        light = shop.page.evaluate(ground)
        shop.page.select_option("#theme", "dark")
        dark = shop.page.evaluate(ground)
        assert dark != light
        shop.page.reload()
        shop.tab.wait_level()
        assert (shop.page.evaluate(ground), shop.page.input_value("#theme")) == (dark, "dark")
        shop.page.select_option("#theme", "")
        assert shop.page.evaluate(ground) == light
        assert shop.page.evaluate("JSON.stringify(localStorage)") == "{}"


def test_search_over_names_and_texts(browser: Any, tmp_path: Path) -> None:
    with guided(browser, tmp_path) as shop:
        for name, prompt in (("Pens", "Which model?"), ("Books", "a picture")):
            id = shop.client.post("/sessions", json={"profile": "agent", "name": name}).json()["id"]
            shop.client.post(f"/sessions/{id}/prompts", json={"text": prompt})
            with shop.client.stream("GET", f"/sessions/{id}/events") as events:
                assert any('"turn_complete"' in line for line in events.iter_lines())
        shop.page.reload()
        names = shop.page.locator("#sessions .name")
        names.nth(2).wait_for()
        shop.page.fill("#search", "PENS")
        assert names.all_text_contents() == ["Pens"]
        shop.page.fill("#search", "logo OF")
        assert names.all_text_contents() == []
        assert shop.page.is_visible("#search-hint")
        shop.page.press("#search", "Enter")
        shop.page.locator("#sessions .excerpt").wait_for()
        assert shop.page.is_hidden("#search-hint")
        assert names.all_text_contents() == ["Books"]
        assert shop.page.text_content("#sessions .excerpt") == "This is the logo of the shop."
        shop.page.press("#search", "Escape")
        assert names.count() == 3


def test_sessions_of_the_cli_on_disk(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user opens a session of the CLI to read it, and then continues it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", os.fspath(tmp_path / "cli"))
    keep_session(tmp_path / "cli", tmp_path)
    with guided(browser, tmp_path) as shop:
        shop.page.get_by_text("Earlier, on disk").click()
        shop.page.locator("#past .session", has_text="Count the pens").click()
        shop.wait_for("There are three pens.")
        assert shop.page.text_content("#name") == "Count the pens"
        assert shop.tab.shown()["prompts"] == ["Count the pens"]
        assert shop.page.is_disabled("#prompt")
        shop.page.get_by_role("button", name="Resume").click()
        shop.page.wait_for_selector("#prompt:focus:enabled")
        shop.say("Which model?")
        shop.tab.wait_for_turns(1)
        assert [one["name"] for one in shop.sessions()] == ["The shop", "Count the pens"]


def test_all_that_the_agent_offers_is_seen(browser: Any, tmp_path: Path) -> None:
    """One session shows every feature in the demo agent's list, for example steps, subagents, a plan and an image."""
    with guided(browser, tmp_path) as shop:
        page = shop.page
        shop.say("Hello!")
        page.locator("#log table").get_by_text("choices for you").wait_for()
        shop.say("review")
        shop.tab.wait_for_turns(2)
        assert page.locator("#log .agent").count() == 2
        assert page.locator("#log .agent [data-kind=operation]").count() == 2
        shop.say("plan")
        page.locator("#questions .tool").get_by_text("ExitPlanMode").wait_for()
        page.locator("#questions .deny").click()
        shop.wait_for("Then I change nothing.")
        shop.say("picture")
        shop.tab.wait_for_turns(4)
        page.locator("#log .call summary").last.click()
        page.wait_for_function("() => document.querySelector('#log canvas')?.width === 64")
        shop.say("markdown")
        page.locator("#log .response input[type=checkbox]").nth(1).wait_for()
        shop.tab.wait_for_turns(5)
        shop.say("count")
        page.locator("#log .live").get_by_text("1 2 3 4").wait_for()
        page.click("#stop")
        shop.tab.wait_for_turns(6)
        shop.say("error")
        page.click("#questions .main")
        shop.tab.wait_for_turns(7)
        facts = page.locator("[data-kind=turn] .facts").all_text_contents()
        assert [one.split(" · ")[0] for one in facts] == ["Done"] * 5 + ["Stopped", "Failed"]
        page.get_by_text("exit code 1").first.wait_for()
        page.get_by_text("The visitor wanted to see an error").first.wait_for()
