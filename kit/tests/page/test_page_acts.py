"""Actions of a user on the page, by mouse and by keyboard, and the requests that the service receives."""

from __future__ import annotations

from typing import Any

import pytest

from browsing import open_page
from page_server import PageServer

OPTIONS = ["allow once", "allow Bash(ls:*) (localSettings)", "switch to permission mode acceptEdits (session)"]


def question(id: str | int, **fields: Any) -> dict[str, Any]:
    return {
        "type": "permission_request",
        "requestId": id,
        "tool": "Bash",
        "description": "List files",
        "input": {"command": "ls -la"},
        "options": OPTIONS,
        **fields,
    }


def answer(id: str | int, allow: bool, option: int = 0) -> tuple[str, Any]:
    return "answers", {"requestId": id, "allow": allow, "option": option}


@pytest.mark.parametrize(
    ("button", "body", "words"),
    [
        ("Allow once", answer("q", True, 0), "Allow once"),
        ("Allow Bash(ls:*) (localSettings)", answer("q", True, 1), "Allow Bash(ls:*) (localSettings)"),
        ("Deny", answer("q", False), "Denied"),
    ],
)
def test_answer_by_mouse(browser: Any, server: PageServer, button: str, body: Any, words: str) -> None:
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_role("button", name=button).click()
        tab.page.wait_for_selector("#log [data-id=q]")
        assert session.wait_for_posts(1) == [body]
        assert tab.page.text_content("[data-id=q] .outcome") == words
        assert tab.page.evaluate("document.activeElement.id") == "prompt"


@pytest.mark.parametrize(
    ("keys", "body"),
    [
        (["Escape", "Enter"], answer(7, True, 0)),
        (["Escape", "2"], answer(7, True, 1)),
        (["Escape", "ArrowDown", "ArrowDown", "Space"], answer(7, True, 2)),
        (["Escape", "ArrowUp", "Enter"], answer(7, False)),
        (["Shift+Tab", "Enter"], answer(7, False)),
    ],
)
def test_answer_by_keyboard(browser: Any, server: PageServer, keys: list[str], body: Any) -> None:
    """A user reaches a question from the prompt, answers and returns by keyboard. A numeric id stays a number."""
    session = server.add("one", question(7))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        tab.wait_level()
        tab.page.focus("#prompt")
        for key in keys:
            tab.page.keyboard.press(key)
        tab.page.wait_for_selector('#log [data-id="7"]')
        assert session.wait_for_posts(1) == [body]
        assert tab.page.evaluate("document.activeElement.id") == "prompt"


def test_typing_answers_nothing(browser: Any, server: PageServer) -> None:
    """A question that arrives while a user types takes neither the focus nor a keystroke."""
    session = server.add("one")
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.focus("#prompt")
        tab.page.keyboard.type("1")
        session.publish(question("q"))
        tab.page.wait_for_selector("#questions .main")
        tab.page.keyboard.type("2 3")
        assert tab.page.input_value("#prompt") == "12 3"
        assert tab.page.locator("#questions [data-id=q]").count() == 1
        assert session.posts == []


def test_answered_elsewhere(browser: Any, server: PageServer) -> None:
    """The service refuses the second of two answers, and the page says so."""
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        session.open.clear()
        tab.page.click("#questions .main")
        assert tab.page.text_content("#log [data-id=q] .outcome") == "Answered elsewhere"


def test_answered_elsewhere_while_the_answer_is_on_its_way(browser: Any, server: PageServer) -> None:
    """The event with the other client's answer arrives before the service refuses this one."""
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        on_their_way: list[Any] = []
        tab.page.route("**/answers", lambda route: on_their_way.append(route))
        with tab.page.expect_request("**/answers"):
            tab.page.click("#questions .main")
        cancelled = {"type": "permission_cancelled", "requestId": "q", "reason": "answered", "allowed": False}
        session.publish(cancelled, {"type": "notice", "kind": "info", "text": "It was denied."})
        tab.page.get_by_text("It was denied.", exact=True).wait_for()
        on_their_way[0].fulfill(status=409, json={"error": "settled", "message": "the question is settled"})
        tab.page.wait_for_selector("#log [data-id=q]")
        assert tab.page.text_content("#log [data-id=q] .outcome") == "Denied"


def test_question_settled_by_another_client(browser: Any, server: PageServer) -> None:
    session = server.add("one", question("q"), question("r"))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions [data-id=r]")
        session.settle("q")
        tab.page.wait_for_selector("#log [data-id=q]")
        session.publish({"type": "permission_cancelled", "requestId": "r", "reason": "withdrawn"})
        tab.page.wait_for_selector("#log [data-id=r]")
        assert [row[2] for row in tab.shown()["questions"]] == ["answered", "withdrawn"]


def test_a_question_is_placed_before_the_calls_that_follow_it(browser: Any, server: PageServer) -> None:
    """The next call may arrive before the page learns that the question was answered."""
    calls = [{"type": "operation", "id": id, "name": "Bash", "title": id, "state": "started"} for id in ("one", "two")]
    session = server.add("one", calls[0], question("q"), calls[1])
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#log [data-id=two]")
        session.settle("q")
        tab.page.wait_for_selector("#log [data-id=q]")
        ids = "(all) => all.map((one) => one.dataset.id)"
        assert tab.page.locator("#log [data-id]").evaluate_all(ids) == ["one", "q", "two"]


@pytest.mark.parametrize(("allowed", "words"), [(True, "Allowed"), (False, "Denied")])
def test_how_another_client_has_answered(browser: Any, server: PageServer, allowed: bool, words: str) -> None:
    """The page first shows only "answered". The later event shows whether the tool was allowed, also after a reload."""
    session = server.add("one", question(7), question("7"))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector('#questions [data-key="7"]')
        session.settle(7)
        tab.page.wait_for_selector('#log [data-key="7"]')
        assert [row[2] for row in tab.shown()["questions"]] == ["answered", "open"]
        session.publish({"type": "permission_cancelled", "requestId": 7, "reason": "answered", "allowed": allowed})
        for _ in range(2):
            tab.page.wait_for_selector(f'#log [data-key="7"][data-outcome="{words.lower()}"]')
            assert tab.page.text_content("#log .outcome") == words
            assert tab.page.locator("#questions .question").count() == 1
            tab.page.reload()


def test_the_option_that_was_chosen_here_stays(browser: Any, server: PageServer) -> None:
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_role("button", name=OPTIONS[2]).click()
        tab.page.wait_for_selector("#log [data-id=q]")
        session.publish(
            {"type": "permission_cancelled", "requestId": "q", "reason": "answered", "allowed": True},
            {"type": "claude_response", "content": "Done."},
        )
        tab.page.locator("#log").get_by_text("Done.").wait_for()
        assert tab.page.text_content("[data-id=q] .outcome").lower() == OPTIONS[2].lower()


def test_a_question_that_is_open_when_the_session_ends_was_not_answered(browser: Any, server: PageServer) -> None:
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        session.end()
        tab.page.wait_for_selector("#log [data-id=q]")
        assert tab.page.text_content("[data-id=q] .outcome") == "The session has ended"


def test_an_answer_that_is_refused_can_be_given_again(browser: Any, server: PageServer) -> None:
    session = server.add("one", question("q"), refusal=(504, "timeout", "no time"))
    with open_page(browser, server.entry) as tab:
        tab.page.click("#questions .main")
        tab.page.get_by_text("The answer was not sent: no time").wait_for()
        session.refusal = None
        tab.page.click("#questions .main")
        tab.page.wait_for_selector("#log [data-id=q]")
        assert session.wait_for_posts(2) == [answer("q", True)] * 2


def test_prompt_and_interrupt_by_keyboard(browser: Any, server: PageServer) -> None:
    session = server.add("one")
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.focus("#prompt")
        tab.page.keyboard.type("One")
        tab.page.keyboard.press("Shift+Enter")
        tab.page.keyboard.type("two")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#stop:not([hidden])")
        assert tab.page.input_value("#prompt") == ""
        tab.page.keyboard.press("Escape")
        (first, body), second = session.wait_for_posts(2)
        assert (first, body["text"], second) == ("prompts", "One\ntwo", ("interrupt", None))
        session.publish({"type": "turn_complete", "ok": False, "error": "interrupted"})
        tab.page.wait_for_selector("#stop", state="hidden")


def test_an_interrupt_overtakes_no_prompt(browser: Any, server: PageServer) -> None:
    session = server.add("one")
    on_their_way: list[Any] = []
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.route("**/prompts", lambda route: on_their_way.append(route))
        tab.page.fill("#prompt", "Hello")
        tab.page.press("#prompt", "Enter")
        tab.page.click("#stop")
        tab.page.evaluate("() => fetch('sessions').then((reply) => reply.json())")  # sent after the others
        assert session.posts == []
        on_their_way[0].continue_()
        assert [what for what, _ in session.wait_for_posts(2)] == ["prompts", "interrupt"]


def test_a_prompt_that_is_refused_comes_back(browser: Any, server: PageServer) -> None:
    server.add("one", refusal=(409, "ended", "the CLI of the session has ended"))
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.fill("#prompt", "Hello")
        tab.page.press("#prompt", "Enter")
        tab.page.get_by_text("The prompt was not sent: the CLI of the session has ended").wait_for()
        assert tab.page.input_value("#prompt") == "Hello"
        assert tab.shown()["prompts"] == []
        tab.page.reload()
        tab.wait_level()
        assert tab.shown()["prompts"] == []


def test_new_session(browser: Any, server: PageServer) -> None:
    server.add("one", {"type": "claude_response", "content": "An old text."}, ended=True)
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("An old text.").wait_for()
        tab.page.click("#new")
        tab.page.get_by_label("Folder").fill("shop")
        tab.page.get_by_label("Name").fill("The shop")
        tab.page.keyboard.press("Enter")
        tab.wait_for_text("#name", "The shop")
        assert server.created == [{"profile": "work", "folder": "shop", "name": "The shop"}]
        assert tab.shown()["texts"] == []
        assert tab.page.evaluate("location.hash") == "#session=made-1"
        tab.page.wait_for_selector("#prompt:focus")


def test_sessions_by_keyboard(browser: Any, server: PageServer) -> None:
    for name in ("first", "second"):
        server.add(name, {"type": "claude_response", "content": f"Text of the {name}."})
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("Text of the second.").wait_for()
        tab.page.locator("#sessions button", has_text="first").focus()
        tab.page.keyboard.press("Enter")
        tab.page.get_by_text("Text of the first.").wait_for()
        assert tab.shown()["texts"] == ["Text of the first."]
        assert tab.page.locator("[aria-current=true] .name").text_content() == "first"
        tab.page.reload()
        tab.page.get_by_text("Text of the first.").wait_for()


def test_ended_session(browser: Any, server: PageServer) -> None:
    session = server.add("one", question("q"))
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        session.end()
        tab.page.get_by_text("The session has ended with exit code 0.").wait_for()
        assert tab.page.is_disabled("#prompt")
        assert tab.page.locator("#questions > *").count() == 0


def test_an_ended_session_is_resumed_by_keyboard(browser: Any, server: PageServer) -> None:
    """A user reaches the button by keyboard, and the focus then moves to the prompt."""
    session = server.add("one")
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        session.end()
        button = tab.page.locator("#resume:not([hidden])")
        button.wait_for()
        assert tab.page.is_hidden("#send")
        tab.page.focus("#log")
        while tab.page.evaluate("document.activeElement.id") != "resume":
            tab.page.keyboard.press("Tab")
            assert tab.page.evaluate("document.activeElement !== document.body")
        tab.page.keyboard.press("Enter")
        assert session.wait_for_posts(1) == [("resume", {})]
        button.wait_for(state="hidden")
        tab.page.wait_for_selector("#prompt:focus")
        tab.page.keyboard.type("Go on")
        tab.page.keyboard.press("Enter")
        assert session.wait_for_posts(2)[1][1]["text"] == "Go on"


def test_a_session_that_ends_again_at_once_can_be_resumed_again(
    browser: Any, server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = server.add("one")
    monkeypatch.setattr(session, "resume", session.end)
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        session.end()
        for count in (1, 2):
            tab.page.locator("#resume:enabled").click()
            assert len(session.wait_for_posts(count)) == count


@pytest.mark.parametrize("profiles", [["work"], ["work", "play"]])
def test_a_session_without_its_environment_is_resumed_by_the_only_profile(
    browser: Any, server: PageServer, profiles: list[str]
) -> None:
    server.profiles = profiles
    session = server.add("one", refusal=(409, "environment", "the environment is not stored on disk"))
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        session.end()
        tab.page.click("#resume")
        tab.page.get_by_text("The session was not resumed: the environment is not stored on disk").wait_for()
        assert session.posts == [("resume", {}), ("resume", {"profile": "work"})][: 3 - len(profiles)]
        assert tab.page.is_enabled("#resume")


def test_token(browser: Any, server: PageServer) -> None:
    """The page exchanges the token for a cookie and removes it from the URL. Without a token, it asks for one."""
    server.add("one", {"type": "claude_response", "content": "Welcome."})
    with open_page(browser, server.url) as tab:
        tab.page.get_by_text("it contains the token for this page").wait_for()
        assert "Welcome." not in tab.page.content()
        tab.page.goto(server.entry)
        tab.page.get_by_text("Welcome.").wait_for()
        assert tab.page.evaluate("location.href") == f"{server.url}#session=one"
        assert tab.page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"
        tab.page.reload()
        tab.page.get_by_text("Welcome.").wait_for()


def test_what_a_profile_lets_one_choose(browser: Any, server: PageServer) -> None:
    """The dialog of a new session offers the profile's choices. Settings without a choice keep the profile's value."""
    server.choices = {"permission_mode": ["default", "plan"], "model": ["sonnet", "opus"], "max_turns": [1, 5]}
    server.options = {"model": "sonnet"}
    with open_page(browser, server.entry) as tab:
        tab.page.click("#new")
        dialog = tab.page.get_by_role("dialog")
        assert dialog.get_by_label("Model").locator("option").all_text_contents() == [
            "Profile default: sonnet",
            "sonnet",
            "opus",
        ]
        modes = dialog.get_by_label("Permission mode").locator("option").all_text_contents()
        assert modes == ["CLI default", "Ask before changes", "Plan first"]
        dialog.get_by_label("Model").select_option("opus")
        dialog.get_by_label("Max turns").select_option("5")
        tab.page.get_by_role("button", name="Start").click()
        tab.page.wait_for_selector("#prompt:focus")
        assert server.created == [{"profile": "work", "folder": "", "options": {"model": "opus", "max_turns": 5}}]
