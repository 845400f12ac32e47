"""The page shows each text, tool call, question, subagent and notice of the events once."""

from __future__ import annotations

from typing import Any

import pytest

from browsing import open_page, shown_of
from page_server import PageServer, events_of

RECORDED = [
    "02_long_partial",
    "04_tools_bypass_partial",
    "05_perm_allow_deny",
    "06_hooks",
    "08_interrupt",
    "09_err429_retries",
    "09_max_turns_bidi",
    "10_unicode",
    "13_struct_bidi",
    "15_subagent",
    "15_subagent_background",
    "15_subagent_partial",
    "16_slash_context",
    "17_sdk_client_full",
]


@pytest.mark.parametrize("details", [False, True], ids=["plain", "details"])
@pytest.mark.parametrize("recording", RECORDED)
def test_each_event_once(browser: Any, server: PageServer, recording: str, details: bool) -> None:
    events = events_of(recording, details=details)
    wanted = shown_of(events)
    server.add("one", *events, ended=True)
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.unfold()
        assert tab.shown() == wanted
        cost = sum(event.get("costUsd", 0) for event in events)
        assert float(tab.page.text_content("#cost")[1:]) == pytest.approx(cost, abs=0.006)


def test_events_as_they_come(browser: Any, server: PageServer) -> None:
    """After each event the page shows everything so far. A complete text replaces its pieces."""
    session = server.add("one")
    text = {"type": "claude_response", "id": "m.0"}
    steps = [
        {**text, "content": "Good ", "partial": True},
        {**text, "content": "morn", "partial": True},
        {"type": "operation", "id": "t", "kind": "command", "title": "List", "command": "ls", "state": "started"},
        {**text, "content": "Good morning."},
        {"type": "operation", "id": "t", "kind": "command", "title": "List", "command": "ls", "state": "succeeded"},
        {"type": "turn_complete", "ok": True},
    ]
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        for count, step in enumerate(steps, 1):
            session.publish(step)
            # A marker after the step. When the page shows the marker, it has also processed the step.
            session.publish({"type": "notice", "kind": "info", "text": f"step {count}"})
            tab.page.get_by_text(f"step {count}", exact=True).wait_for()
            wanted = shown_of(steps[:count])
            assert {**tab.shown(), "notices": []} == wanted


def test_reload_in_a_turn(browser: Any, server: PageServer) -> None:
    events = events_of("15_subagent_partial")
    session = server.add("one", *events[:9])
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        tab.page.reload()
        session.publish(*events[9:])
        tab.wait_for_turns(1)
        assert tab.shown() == shown_of(events)


def test_two_tabs(browser: Any, server: PageServer) -> None:
    """Both tabs show the same, including a prompt that one of them sent. A question is answered once."""
    session = server.add("one", *events_of("05_perm_allow_deny"))
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        other = tab.page.context.new_page()
        other.goto(server.url)
        other.wait_for_selector("[data-kind=turn]")
        tab.page.fill("#prompt", "Once more")
        tab.page.press("#prompt", "Enter")
        other.wait_for_selector("[data-kind=prompt]")
        question = {"requestId": "q", "tool": "Bash", "input": {"command": "ls"}, "options": ["allow once"]}
        session.publish({"type": "permission_request", **question})
        for page in (tab.page, other):
            page.wait_for_selector("#questions [data-id=q]")
        tab.page.click("#questions .main")
        for page in (tab.page, other):
            page.wait_for_selector("#log [data-id=q]")
            assert page.locator("#questions > *").count() == 0
            assert page.locator("[data-id=q]").count() == 1
            assert page.locator("[data-kind=prompt] .body").all_text_contents() == ["Once more"]
        assert [what for what, _ in session.wait_for_posts(2)] == ["prompts", "answers"]


def test_prompt_stays_after_reload(browser: Any, server: PageServer) -> None:
    """After a reload, a prompt keeps its place after the events that preceded it."""
    session = server.add("one", {"type": "claude_response", "content": "Welcome."})
    order = "[...document.querySelectorAll('#log .body')].map((one) => one.textContent.trimEnd())"
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("Welcome.").wait_for()
        tab.page.fill("#prompt", "Hello\nyou")
        tab.page.press("#prompt", "Enter")
        ((what, body),) = session.wait_for_posts(1)
        assert (what, body["text"]) == ("prompts", "Hello\nyou")
        session.publish({"type": "claude_response", "content": "Hello."}, {"type": "turn_complete", "ok": True})
        tab.wait_for_turns(1)
        assert tab.page.evaluate(order) == ["Welcome.", "Hello\nyou", "Hello."]
        tab.page.reload()
        tab.wait_for_turns(1)
        assert tab.page.evaluate(order) == ["Welcome.", "Hello\nyou", "Hello."]


def test_progress_and_subagents_under_way(browser: Any, server: PageServer) -> None:
    session = server.add(
        "one",
        {
            "type": "progress_update",
            "currentStep": "Running tests",
            "completedSteps": 5,
            "totalSteps": 20,
            "percentage": 25.0,
        },
        {"type": "subagent_progress", "agentId": "a", "name": "tests", "status": "running", "lastTool": "Bash"},
        {"type": "operation", "id": "t", "kind": "command", "title": "List", "state": "started", "agentId": "a"},
    )
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#now .agent-line")
        assert tab.page.get_by_role("progressbar").evaluate("(bar) => bar.value") == 25
        assert tab.page.text_content("#progress-count") == "5 of 20"
        assert tab.page.locator("[data-agent=a] [data-id=t]").count() == 1
        session.publish(
            {"type": "subagent_progress", "agentId": "a", "name": "tests", "status": "completed"},
            {"type": "turn_complete", "ok": True},
        )
        tab.wait_for_turns(1)
        tab.page.wait_for_selector("#now", state="hidden")
        assert tab.shown()["agents"] == [["a", "tests", "completed"]]


def test_a_settled_question_keeps_its_input(browser: Any, server: PageServer) -> None:
    server.add("one", *events_of("05_perm_allow_deny"))
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        question = tab.page.locator("[data-kind=question]").first
        assert not question.locator(".input").is_visible()
        question.get_by_role("button", name="Show input").click()
        assert "touch a.txt && echo made" in question.locator(".input").inner_text()


def test_an_error_that_is_a_text_stands_there_once(browser: Any, server: PageServer) -> None:
    (error,) = (event["error"] for event in events_of("09_err400") if event["type"] == "turn_complete")
    server.add("one", *events_of("09_err400"), {"type": "turn_complete", "ok": False, "error": "Another."})
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(2)
        assert tab.page.text_content("#log").count(error) == 1
        assert tab.page.locator(".turn .error").all_text_contents() == ["Another."]


def test_prompts_of_other_clients(browser: Any, server: PageServer) -> None:
    """Each prompt of any client appears once, at the place where the CLI took it, also after a reload."""
    session = server.add("one", {"type": "user_prompt", "content": "From a program"})
    order = "[...document.querySelectorAll('#log .body')].map((one) => one.textContent.trimEnd())"
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("From a program").wait_for()
        session.repeats = False
        tab.page.fill("#prompt", "From here")
        tab.page.press("#prompt", "Enter")
        ((_, body),) = session.wait_for_posts(1)
        session.publish({"type": "claude_response", "content": "Still busy."})
        tab.page.locator("#log").get_by_text("Still busy.").wait_for()
        assert tab.page.evaluate(order) == ["From a program", "Still busy."]
        assert tab.page.locator("#queue .text").all_text_contents() == ["From here"]
        session.publish(
            {"type": "user_prompt", "content": "From here", "id": body["uuid"]},
            {"type": "user_prompt", "content": "", "attachments": 2, "id": "x"},
            {"type": "turn_complete", "ok": True},
        )
        for _ in range(2):
            tab.wait_for_turns(1)
            assert tab.page.evaluate(order) == ["From a program", "Still busy.", "From here", ""]
            assert tab.page.locator("#queue .text").count() == 0
            tab.page.get_by_text("2 attachments").wait_for()
            tab.page.reload()


def test_a_description_stands_in_a_question_once(browser: Any, server: PageServer) -> None:
    asked = {"type": "permission_request", "requestId": "q", "tool": "Bash", "options": ["allow once"]}
    server.add("one", {**asked, "description": "List", "input": {"command": "ls", "description": "List"}})
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        assert tab.page.locator("#questions dt").all_text_contents() == ["command"]
        assert tab.page.text_content("#questions .description") == "List"


def test_the_list_says_what_the_conversation_knows(browser: Any, server: PageServer) -> None:
    """The list of sessions follows the events, although the service last reported the session as idle."""
    session = server.add("one", life="idle")
    asked = {"type": "permission_request", "requestId": "q", "tool": "Bash", "input": {}, "options": ["allow once"]}
    agent = {"type": "subagent_progress", "agentId": "a", "name": "tests"}
    steps = [
        ({"type": "claude_response", "id": "m", "content": "I", "partial": True}, "working"),
        (asked, "asks you"),
        ({"type": "permission_cancelled", "requestId": "q", "reason": "withdrawn"}, "working"),
        ({"type": "turn_complete", "ok": True}, "ready"),
        ({**agent, "status": "running"}, "working"),
        ({"type": "turn_complete", "ok": True, "background": 1}, "working"),
        ({**agent, "status": "completed"}, "ready"),
    ]
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        for step, words in steps:
            session.publish(step)
            tab.wait_for_text("#sessions .life", words)
        turns = tab.page.locator("[data-kind=turn] .facts").all_text_contents()
        assert turns == ["Done", "Turn done · 1 agent goes on"]


def test_input_with_many_fields(browser: Any, server: PageServer) -> None:
    asked = {"type": "permission_request", "requestId": "q", "tool": "Bash", "options": ["allow once"]}
    server.add("one", {**asked, "input": {f"field {number}": number for number in range(20)}})
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        assert tab.page.locator("#questions dt").count() == 12
        tab.page.get_by_text("and 8 more fields").wait_for()


def test_a_turn_that_a_person_stopped_is_no_failure(browser: Any, server: PageServer) -> None:
    server.add(
        "one",
        {"type": "turn_complete", "ok": False, "error": "interrupted", "durationMs": 3200},
        {"type": "turn_complete", "ok": True, "durationMs": 0, "costUsd": 0.5},
        {"type": "turn_complete", "ok": True, "durationMs": 12},
    )
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(3)
        facts = tab.page.locator("[data-kind=turn] .facts").all_text_contents()
        assert facts == ["Stopped · 3.2 s", "Done · $0.50", "Done · 12 ms"]
        assert tab.page.locator(".turn.failed, .turn .error").count() == 0


@pytest.mark.parametrize("width", [360, 1000, 1280, 1600])
def test_the_conversation_stays_where_it_is_when_work_begins(browser: Any, server: PageServer, width: int) -> None:
    session = server.add("one", {"type": "claude_response", "content": "Hello."})
    where = (
        "() => { const box = document.querySelector('#log').getBoundingClientRect(); return [box.left, box.width]; }"
    )
    step = {"currentStep": "Testing", "completedSteps": 1, "totalSteps": 2, "percentage": 50.0}
    with open_page(browser, server.entry, width=width) as tab:
        tab.wait_level()
        before = tab.page.evaluate(where)
        session.publish({"type": "progress_update", **step})
        tab.page.wait_for_selector("#now")
        assert tab.page.evaluate(where) == before


#: Scroll to the end as the page does, then make the conversation longer before the browser reports the scrolling.
LONGER = """() => new Promise((done) => {
  const main = document.getElementById("main");
  const longer = () =>
    document.getElementById("log").append(Object.assign(document.createElement("p"), { style: "height: 500px" }));
  longer();
  main.scrollTop = main.scrollHeight;
  longer();
  requestAnimationFrame(() => requestAnimationFrame(done));
})"""
#: Return the pixels of the conversation below the view.
GAP = """() => {
  const main = document.getElementById("main");
  return main.scrollHeight - main.scrollTop - main.clientHeight;
}"""


def test_the_view_follows_the_conversation_until_a_person_scrolls_up(browser: Any, server: PageServer) -> None:
    """Only a person's scrolling stops the view from following, and scrolling back to the end starts it again."""
    session = server.add("one", {"type": "claude_response", "content": "Line.\n\n" * 100})
    with open_page(browser, server.entry) as tab:
        tab.wait_level()

        def publish(text: str) -> None:
            session.publish({"type": "claude_response", "content": f"{text}\n\n" * 20})
            tab.page.get_by_text(text, exact=True).first.wait_for(state="attached")

        tab.page.evaluate(LONGER)
        publish("First")
        tab.page.wait_for_function(f"() => ({GAP})() < 1")
        assert tab.page.is_hidden("#down")
        tab.page.evaluate("document.getElementById('main').scrollBy(0, -30)")
        tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        publish("Second")
        # The page set its timer first, so this timer ends after the page's.
        tab.page.evaluate("new Promise((done) => setTimeout(done))")
        assert tab.page.evaluate(GAP) > 100
        tab.page.click("#down")
        publish("Third")
        tab.page.wait_for_function(f"() => ({GAP})() < 1")
