"""Inputs and outputs of tools, thinking, images and truncated texts are folded on the page and open on a click."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from browsing import open_page
from page_server import PageServer, events_of

HIDDEN = "a\u202eb\x1b[31m"


def call(id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "operation", "id": id, "kind": "command", "title": id, "state": "started", **fields}


def text(*lines: str) -> list[dict[str, str]]:
    return [{"text": "\n".join(lines)}]


def png(width: int, height: int) -> str:
    """Return a PNG image of one colour, as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x20\x80\x40" * width) * height)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def test_the_output_of_a_command_opens(browser: Any, server: PageServer) -> None:
    """The output shows its first and last lines, and a button between them shows the others."""
    lines = [f"line {number}" for number in range(1, 101)]
    started = call("t", title="Run the tests", command="make test", input={"command": "make test", "timeout": 5000})
    server.add("one", started, call("t", command="make test", state="succeeded", content=text(*lines)))
    with open_page(browser, server.entry) as tab:
        opened = tab.page.locator("[data-id=t] details")
        assert opened.locator("summary").text_content() == "Output, 100 lines"
        assert opened.get_attribute("open") is None
        assert opened.locator("pre").count() == 0
        opened.locator("summary").click()
        assert opened.locator(".fields dt").all_text_contents() == ["timeout"]
        first, last = (one.split("\n") for one in opened.locator(".output pre").all_text_contents())
        assert (first, last) == (lines[:12], lines[-6:])
        opened.get_by_role("button", name="82 more lines").click()
        assert opened.locator(".output pre").all_text_contents() == ["\n".join(lines)]
        assert tab.page.evaluate("document.activeElement.localName") == "pre"


def test_a_command_that_failed_stands_open_with_its_exit_code(browser: Any, server: PageServer) -> None:
    server.add("one", call("t"), call("t", state="failed", content=text("Exit code 2", HIDDEN), exitCode=2))
    with open_page(browser, server.entry) as tab:
        tab.page.locator("[data-id=t] details[open]").wait_for()
        assert tab.page.text_content("[data-id=t] .state") == "failed · exit code 2"
        assert tab.page.text_content("[data-id=t] pre") == "Exit code 2\na\\u202eb\\u001b[31m"


def test_a_change_of_a_file_is_a_comparison(browser: Any, server: PageServer) -> None:
    """The page first shows the requested change, and after the result the actual change with line numbers."""
    asked = ["-old <b>", "+new"]
    session = server.add("one", call("t", kind="file_edit", path="a.py", input={"file_path": "a.py"}, change=asked))
    with open_page(browser, server.entry) as tab:
        tab.page.locator("[data-id=t] details[open]").wait_for()
        assert tab.page.locator("[data-id=t] del").all_text_contents() == ["-old <b>\n"]
        assert tab.page.locator("[data-id=t] ins").all_text_contents() == ["+new\n"]
        done = ["@@ -3 +3 @@", " same", *asked]
        session.publish(call("t", kind="file_edit", path="a.py", state="succeeded", content=text("ok"), change=done))
        tab.page.locator("[data-id=t] b").wait_for()
        assert tab.page.text_content("[data-id=t] .diff pre") == "".join(f"{line}\n" for line in done)
        assert tab.page.locator("[data-id=t] details").count() == 1
        assert tab.page.locator("[data-id=t] .fields").count() == 0


def test_a_task_list_and_questions_are_lines_as_in_the_document(browser: Any, server: PageServer) -> None:
    """Values of another shape are JSON, and so is everything that a person decides on."""
    todos = [{"content": "Look", "status": "completed"}, {"content": "Sum <b>up</b>", "status": "pending"}]
    asked = [{"question": "Which?", "options": [{"label": "A", "description": "first"}, {"label": "B"}]}]
    server.add(
        "one",
        call("t", name="TodoWrite", input={"todos": todos}),
        call("t", name="TodoWrite", state="succeeded", content=text("ok")),
        call("a", name="AskUserQuestion", input={"questions": asked}),
        call("o", name="Other", input={"todos": ["Look"], "questions": []}),
        {"type": "permission_request", "requestId": "q", "tool": "O", "input": {"todos": todos}, "options": ["once"]},
    )
    with open_page(browser, server.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        assert tab.page.text_content("[data-id=t] summary") == "1 of 2 tasks done"
        for summary in tab.page.locator("#log summary").all():
            summary.click()
        assert tab.page.text_content("[data-id=t] .fields pre") == "[x] Look\n[ ] Sum <b>up</b>"
        assert tab.page.text_content("[data-id=a] .fields pre") == "Which?\n  - A: first\n  - B"
        tab.page.wait_for_selector("[data-id=o] .fields pre")  # all_text_contents does not wait
        assert tab.page.locator("[data-id=o] .fields pre").all_text_contents() == ['[\n  "Look"\n]', "[]"]
        assert '"status": "completed"' in tab.page.text_content("#questions .input")


def test_what_a_person_has_folded_stays_folded(browser: Any, server: PageServer) -> None:
    session = server.add("one", call("t", kind="file_write", input={}, change=["+x"]))
    with open_page(browser, server.entry) as tab:
        tab.page.locator("[data-id=t] summary").click()
        session.publish(call("t", kind="file_write", state="succeeded", content=text("ok"), change=["+x"]))
        tab.page.locator("[data-id=t][data-state=succeeded]").wait_for()
        assert tab.page.get_attribute("[data-id=t] details", "open") is None


def test_thinking_is_folded_and_grows(browser: Any, server: PageServer) -> None:
    piece = {"type": "thinking", "id": "m.0", "partial": True}
    session = server.add("one", {**piece, "content": "First, "})
    with open_page(browser, server.entry) as tab:
        thinking = tab.page.locator("[data-kind=thinking]")
        thinking.locator("summary").click()
        thinking.get_by_text("First,").wait_for()
        session.publish({**piece, "content": "**look**."})
        thinking.get_by_text("look").wait_for()
        session.publish({"type": "thinking", "id": "m.0", "content": "First, **look**."})
        thinking.get_by_text("16 characters").wait_for()
        assert thinking.locator("strong").text_content() == "look"
        session.publish({"type": "thinking", "content": "", "redacted": True})
        tab.page.get_by_text("not shown").wait_for()
        assert tab.shown()["texts"] == []


def test_pictures_of_prompts_and_results_are_drawn(browser: Any, server: PageServer) -> None:
    picture = {"name": "image", "mediaType": "image/png", "data": png(40, 20)}
    torn = {"name": "image", "mediaType": "image/png", "data": "AAAA"}
    prompt = {"type": "user_prompt", "content": "Look", "parts": [{"text": "Look"}, picture], "attachments": 1}
    other = [{"name": "image", "mediaType": "image/svg+xml", "data": "AAAA"}, {"name": "document"}, torn]
    server.add("one", prompt, call("t"), call("t", state="failed", content=[picture, *text("seen"), *other]))
    with open_page(browser, server.entry) as tab:
        # The page's policy forbids to evaluate an expression again, but not to call a function again.
        drawn = "[...document.querySelectorAll('canvas')].filter((one) => one.width === 40)"
        tab.page.wait_for_function(f"() => {drawn}.length === 2")
        tab.page.get_by_text("[image/png that cannot be shown]").wait_for()
        assert tab.page.get_by_role("img", name="A picture of the conversation").count() == 2
        hints = tab.page.locator("[data-id=t] .output .hint").all_text_contents()
        assert hints == ["[image]", "[document]", "[image/png that cannot be shown]"]
        colour = "[...document.querySelector('canvas').getContext('2d').getImageData(5, 5, 1, 1).data]"
        assert tab.page.evaluate(colour) == [0x20, 0x80, 0x40, 255]


def test_a_subagents_words_stand_in_its_card(browser: Any, server: PageServer) -> None:
    agent = {"type": "subagent_progress", "agentId": "a", "name": "tests", "status": "running"}
    server.add(
        "one",
        {"type": "claude_response", "content": "I ask another."},
        agent,
        {"type": "user_prompt", "content": "Test it", "agentId": "a", "parts": [{"text": "Test it"}]},
        {"type": "thinking", "content": "Hm.", "agentId": "a"},
        {"type": "claude_response", "content": "It **works**.", "agentId": "a"},
        {"type": "turn_complete", "ok": True},
    )
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        kinds = "(all) => all.map((one) => one.dataset.kind)"
        assert tab.page.locator("[data-agent=a] .list > *").evaluate_all(kinds) == ["added", "thinking", "said"]
        assert tab.page.text_content("[data-kind=said] strong") == "works"
        assert tab.shown()["texts"] == ["I ask another."]
        assert tab.shown()["prompts"] == []


def test_the_summary_of_a_subagent_stands_in_its_card_alone(browser: Any, server: PageServer) -> None:
    """The card shows that the subagent has ended. Notices about other tasks remain."""
    ended = {
        "type": "subagent_progress",
        "agentId": "a",
        "name": "tests",
        "status": "completed",
        "summary": "All pass.",
    }
    server.add(
        "one",
        {**ended, "status": "running", "lastTool": "Bash"},
        ended,
        *({"type": "notice", "kind": "status", "text": f"task completed: {text}"} for text in ("All pass.", "Built.")),
    )
    with open_page(browser, server.entry) as tab:
        tab.wait_level()
        assert tab.page.text_content("[data-agent=a] .detail") == "All pass."
        assert tab.page.locator("[data-kind=note]").all_text_contents() == ["task completed: Built."]


def test_where_a_turn_was_cut(browser: Any, server: PageServer) -> None:
    server.add(
        "one",
        {"type": "claude_response", "id": "m", "content": "I beg", "partial": True},
        {"type": "notice", "kind": "cut_off", "text": "cut off"},
        {"type": "user_prompt", "content": "[Request interrupted by user]", "origin": "interruption"},
        {"type": "notice", "kind": "hook", "text": "hook Stop: done", "detail": "its output"},
        {"type": "turn_complete", "ok": False, "error": "interrupted", "output": {"a": 1}},
    )
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        notes = tab.page.locator("[data-kind=note] > span").all_text_contents()
        assert notes == ["Cut off", "Stopped by the user", "hook Stop: done"]
        tab.page.locator("[data-kind=note] summary").click()
        assert tab.page.text_content("[data-kind=note] pre") == "its output"
        assert tab.page.text_content("[data-kind=turn] pre") == '{\n  "a": 1\n}'
        assert tab.shown()["prompts"] == tab.shown()["notices"] == []


def test_what_a_recorded_session_has(browser: Any, server: PageServer) -> None:
    """Each tool call has a part that opens and contains the text of its result."""
    events = events_of("04_tools_bypass_partial", details=True)
    server.add("one", *events, ended=True)
    results = {event["id"]: event["content"] for event in events if event.get("content") and "state" in event}
    assert results
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        for id, parts in results.items():
            box = tab.page.locator(f"[data-id={id}] details")
            if box.get_attribute("open") is None:
                box.locator("summary").first.click()
                box.locator(".output").wait_for()
            for part in parts:
                assert part["text"].rstrip("\n").split("\n")[0] in (box.text_content() or "")
