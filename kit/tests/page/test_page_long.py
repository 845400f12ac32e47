"""A session of 100 MB opens at its end. Scrolling up loads older entries, and the page keeps a bounded number."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from browsing import Tab, open_page
from long_session import BYTES, TURNS, keep_long_session, long_agent
from page_server import PageServer
from past_sessions import PAST
from served import TOKEN
from served_program import ServedProgram, run_service

#: Bytes that may be sent to a browser before it shows the end of a session.
MAX_OPENED = 4 * 1024 * 1024
#: The limits of kept.js, with a margin for one more event.
MAX_ENTRIES, MAX_NODES = 1_000, 60_000

#: Return the first visible answer: its number, and its position in pixels.
SEEN = """() => {
  const main = document.getElementById("main").getBoundingClientRect();
  for (const one of document.querySelectorAll("#log [data-kind=response]")) {
    const box = one.getBoundingClientRect();
    if (box.top >= main.top) return [one.textContent.trim(), Math.round(box.top)];
  }
}"""
ANSWERS = "[...document.querySelectorAll('#log [data-kind=response] .body')].map((one) => one.textContent.trim())"


@contextmanager
def _session(folder: Path) -> Iterator[tuple[ServedProgram, httpx.Client, str]]:
    """Start a service with a session of 100 MB, whose agent waits for a prompt."""
    with run_service(folder, long_agent(folder)) as program:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=program.url, headers=headers, timeout=60, trust_env=False) as client:
            id = client.post("/sessions", json={"profile": "agent", "name": "Long"}).json()["id"]
            client.post(f"/sessions/{id}/prompts", json={"text": "go on"})
            _wait_idle(client, TURNS * 5)
            yield program, client, id


def _wait_idle(client: httpx.Client, lines: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        (one,) = client.get("/sessions").json()["sessions"]
        if one["life"] == "idle" and one["line"] >= lines:
            return
        time.sleep(0.02)
    raise AssertionError(f"the session has not come: {one}")


@contextmanager
def _counting(tab: Tab) -> Iterator[list[int]]:
    """Count the bytes that a tab receives."""
    got = [0]
    cdp = tab.page.context.new_cdp_session(tab.page)
    cdp.send("Network.enable")
    cdp.on("Network.dataReceived", lambda event: got.__setitem__(0, got[0] + event["dataLength"]))
    yield got
    cdp.detach()


def _scroll_up(tab: Tab) -> None:
    """Scroll up until the page loads older entries. Check that the visible entries do not move."""
    first = tab.page.evaluate(f"{ANSWERS}[0]")
    tab.page.evaluate("document.getElementById('main').scrollTop = 200")
    before = tab.page.evaluate(SEEN)
    tab.page.wait_for_function(f"(first) => {ANSWERS}[0] !== first", arg=first)
    after = tab.page.evaluate(
        "(words) => Math.round([...document.querySelectorAll('#log [data-kind=response]')]"
        ".find((one) => one.textContent.trim() === words).getBoundingClientRect().top)",
        before[0],
    )
    assert abs(after - before[1]) <= 1


def _nodes(tab: Tab) -> int:
    cdp = tab.page.context.new_cdp_session(tab.page)
    cdp.send("Performance.enable")
    cdp.send("HeapProfiler.collectGarbage")
    metrics = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
    cdp.detach()
    return int(metrics["Nodes"])


def test_a_session_of_100_mb(browser: Any, tmp_path: Path) -> None:
    with _session(tmp_path) as (program, client, id):
        assert client.get("/sessions").json()["sessions"][0]["line"] >= TURNS * 5
        # Restart the service, so that it has read nothing of the session.
        program.stop()
        program.start()
        client.base_url = httpx.URL(program.url)
        with open_page(browser, "about:blank") as tab, _counting(tab) as got:
            tab.page.goto(f"{program.url}/#token={TOKEN}")
            tab.page.get_by_text(f"Answer {TURNS - 1}", exact=True).wait_for()
            tab.wait_level()
            assert 0 < got[0] < MAX_OPENED
            assert tab.page.text_content("#cost") == f"${TURNS - 1}.00"
            for _ in range(18):
                _scroll_up(tab)
                answers = tab.page.evaluate(ANSWERS)
                numbers = [int(answer.split()[1]) for answer in answers if answer.startswith("Answer")]
                assert numbers == sorted(set(numbers))
                assert tab.page.locator("#log > .entry").count() <= MAX_ENTRIES
            assert numbers[0] < TURNS - 80
            assert _nodes(tab) < MAX_NODES
            # The page removed entries in the middle. One gap marks them, and the last entries are still there.
            assert tab.page.locator("#log .gap").count() == 1
            assert numbers[-1] == TURNS - 1
            # The end of the log still updates while the user reads far above, and the visible entries do not move.
            seen = tab.page.evaluate(SEEN)
            client.post(f"/sessions/{id}/prompts", json={"text": "once more"})
            tab.page.get_by_text("0 once more").wait_for(state="attached")
            assert tab.page.evaluate(SEEN) == seen
            tab.page.click("#down")
            tab.page.wait_for_function("() => !document.querySelector('#log .gap')")
            answers = tab.page.evaluate(ANSWERS)
            assert answers.count("0 once more") == 1
            numbers = [int(answer.split()[1]) for answer in answers if answer.startswith("Answer")]
            assert numbers == list(range(numbers[0], TURNS))
            _scroll_up(tab)


def test_a_session_of_100_mb_on_disk(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", os.fspath(tmp_path / "cli"))
    keep_long_session(tmp_path / "cli", tmp_path, PAST)
    assert (tmp_path / "cli" / "projects" / "shop" / f"{PAST}.jsonl").stat().st_size > 0.9 * BYTES
    with run_service(tmp_path) as program, open_page(browser, "about:blank") as tab, _counting(tab) as got:
        tab.page.goto(f"{program.url}/#token={TOKEN}")
        tab.page.get_by_text("Earlier, on disk").click()
        tab.page.locator("#past .session").click()
        tab.page.get_by_text(f"Answer {TURNS - 1}", exact=True).wait_for()
        assert 0 < got[0] < MAX_OPENED
        for _ in range(10):
            _scroll_up(tab)
        answers = tab.page.evaluate(ANSWERS)
        assert answers == [f"Answer {number}" for number in range(TURNS - len(answers), TURNS)]
        assert len(answers) > 40


def _call(number: int, state: str, **fields: Any) -> dict[str, Any]:
    call = {"type": "operation", "id": f"t{number}", "kind": "command", "title": f"Run {number}", "state": state}
    return {**call, **fields}


def test_what_began_in_older_events_and_ended_later_is_one(browser: Any, server: PageServer) -> None:
    """A call, a subagent with its calls, a text and a question each begin on one page and end on the next."""
    question = {"requestId": "q", "tool": "Bash", "input": {"command": "ls"}, "options": ["allow once"]}
    agent = {"type": "subagent_progress", "agentId": "a", "name": "tests"}
    older = [
        {"type": "user_prompt", "content": "Begin", "id": "p"},
        _call(1, "started", command="ls"),
        {**agent, "status": "started"},
        _call(2, "started", agentId="a"),
        {"type": "permission_request", **question},
        {"type": "claude_response", "id": "m", "content": "Good ", "partial": True},
    ]
    later = [
        {"type": "claude_response", "id": "m", "content": "Good morning."},
        {"type": "permission_cancelled", "requestId": "q", "reason": "answered", "allowed": False},
        _call(1, "succeeded", title="", content=[{"text": "a.txt"}]),
        _call(2, "failed", title="", agentId="a"),
        _call(3, "succeeded", agentId="a"),
        {**agent, "status": "completed", "summary": "All is well"},
        {"type": "turn_complete", "ok": True},
    ]
    session = server.add("one", *older, *later, at_once=len(later))
    session.open.clear()
    with open_page(browser, server.entry) as tab:
        tab.wait_for_turns(1)
        tab.page.get_by_text("Begin", exact=True).wait_for()
        shown = tab.shown()
        assert shown["texts"] == ["Good morning."]
        assert shown["calls"] == [["t1", "Run 1", "succeeded"], ["t2", "Run 2", "failed"], ["t3", "Run 3", "succeeded"]]
        assert shown["agents"] == [["a", "tests", "completed"]]
        assert shown["questions"] == [["q", "Bash", "denied"]]
        assert tab.page.locator("[data-agent=a] [data-kind=operation]").count() == 2
        assert tab.page.get_by_text("Output, 1 line").count() == 1
        assert tab.page.locator("#log .left").count() == 0


def test_older_entries_go_and_come_again(browser: Any, server: PageServer) -> None:
    """The page keeps MAX_ENTRIES entries. For keyboard users, a button loads older ones as scrolling does."""
    notices = ({"type": "notice", "kind": "info", "text": str(number)} for number in range(3_200))
    server.add("one", *notices, at_once=500)
    with open_page(browser, server.entry) as tab:
        tab.page.get_by_text("3199", exact=True).wait_for()
        tab.wait_level()
        assert tab.shown()["notices"] == [str(number) for number in range(2_700, 3_200)]
        for first in (2_500, 2_300, 2_100):
            tab.page.get_by_role("button", name="Show older entries").press("Enter")
            tab.page.get_by_text(str(first), exact=True).wait_for(state="attached")
        assert len(tab.shown()["notices"]) == MAX_ENTRIES
        tab.page.click("#down")
        tab.page.wait_for_function("() => !document.querySelector('#log .gap')")
        shown = [int(one) for one in tab.shown()["notices"]]
        assert shown == list(range(shown[0], 3_200))
