"""The page with the real service: a supervisor, a fake CLI, and HTTP between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import page_server
from browsing import Tab, open_page, shown_of
from claude_wire_kit.web.access import POLICY
from served import TOKEN
from served_program import ServedProgram, run_service


class Service:
    """The running service, and an HTTP client for it besides the browser."""

    def __init__(self, program: ServedProgram) -> None:
        self.program: ServedProgram = program
        self._client = httpx.Client(
            base_url=program.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30, trust_env=False
        )

    @property
    def entry(self) -> str:
        return f"{self.program.url}/#token={TOKEN}"

    def create(self, *prompts: dict[str, Any]) -> str:
        id: str = self._client.post("/sessions", json={"profile": "agent"}).json()["id"]
        for prompt in prompts:
            sent = self._client.post(f"/sessions/{id}/prompts", json={"text": json.dumps(prompt)})
            assert sent.status_code == 202, sent.text
        return id

    def events(self, id: str, turns: int) -> list[dict[str, Any]]:
        """Return the events of a session until `turns` turns have ended."""
        found: list[dict[str, Any]] = []
        with self._client.stream("GET", f"/sessions/{id}/events?details=1") as reply:
            for line in reply.iter_lines():
                event = json.loads(line[6:]) if line.startswith("data: ") else {"type": "session_state"}
                if event["type"] != "session_state":
                    found.append(event)
                if event["type"] == "turn_complete":
                    turns -= 1
                if not turns:
                    break
        return found

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with run_service(tmp_path) as program:
        running = Service(program)
        yield running
        running.close()


def send(tab: Tab, **prompt: Any) -> None:
    tab.page.fill("#prompt", json.dumps(prompt))
    tab.page.press("#prompt", "Enter")


def test_from_a_new_session_to_its_answers(browser: Any, service: Service) -> None:
    """A user starts a session, prompts and answers on the page. Each event appears once, also after a reload."""
    with open_page(browser, service.entry) as tab:
        tab.page.click("#new")
        tab.page.get_by_label("Name").fill("By the page")
        tab.page.keyboard.press("Enter")
        tab.wait_for_text("#name", "By the page")
        tab.wait_level()
        send(tab, lines=3)
        tab.wait_for_turns(1)
        send(tab, ask="q1", tool="t1")
        tab.page.wait_for_selector("#questions .main")
        tab.page.keyboard.press("Escape")
        tab.page.keyboard.press("Enter")
        tab.wait_for_turns(2)
        id = tab.page.evaluate("location.hash").removeprefix("#session=")
        wanted = shown_of(service.events(id, 2))
        assert len(wanted["texts"]) == 7  # the result of each turn adds a text
        assert [json.loads(text) for text in wanted["prompts"]] == [{"lines": 3}, {"ask": "q1", "tool": "t1"}]
        assert wanted["questions"] == [["q1", "Bash", "allowed"]]
        assert tab.shown() == wanted
        tab.page.reload()
        tab.wait_for_turns(2)
        tab.wait_level()
        assert tab.shown() == wanted


def test_a_prompt_is_sent_also_if_the_page_is_left_at_once(browser: Any, service: Service) -> None:
    service.create()
    with open_page(browser, service.entry) as tab:
        tab.wait_level()
        send(tab, lines=1)
        tab.page.reload()
        tab.wait_for_turns(1)
        assert [json.loads(text) for text in tab.shown()["prompts"]] == [{"lines": 1}]


def test_two_tabs_of_one_question(browser: Any, service: Service) -> None:
    service.create({"ask": "q1", "tool": "t1"})
    with open_page(browser, service.entry) as tab:
        tab.page.wait_for_selector("#questions .main")
        other = tab.page.context.new_page()
        other.goto(tab.page.url)
        other.wait_for_selector("#questions .main")
        tab.page.get_by_role("button", name="Deny").click()
        for page in (tab.page, other):
            page.wait_for_selector("#log [data-id=q1]")
            page.wait_for_selector("[data-kind=turn]")
            assert page.locator("[data-id=q1]").count() == 1
            assert page.locator("[data-kind=response]").count() == 3
            assert page.get_attribute("[data-id=q1]", "data-outcome") == "denied"
            assert page.locator("[data-kind=prompt]").count() == 1


def test_the_service_restarts_under_the_page(browser: Any, service: Service) -> None:
    """The page reconnects by itself after its last event, and shows each event once."""
    id = service.create({"lines": 2})
    with open_page(browser, service.entry) as tab:
        tab.wait_for_turns(1)
        service.program.stop()
        tab.link("lost")
        service.program.start()
        tab.link("live")
        send(tab, lines=2)
        tab.wait_for_turns(2)
        assert tab.shown() == shown_of(service.events(id, 2))
        assert "reconnected" in tab.link("live")


def test_interrupt(browser: Any, service: Service) -> None:
    service.create({"hang": True})
    with open_page(browser, service.entry) as tab:
        tab.page.wait_for_selector("[data-kind=response]")
        tab.wait_level()
        tab.page.click("#stop")
        tab.page.wait_for_selector("[data-kind=turn]")


def test_without_the_token(browser: Any, service: Service) -> None:
    service.create({"lines": 1})
    with open_page(browser, service.entry.partition("#")[0]) as tab:
        tab.page.get_by_text("it contains the token for this page").wait_for()
        assert tab.shown()["texts"] == []


def test_what_ends(browser: Any, service: Service) -> None:
    service.create({"exit": 3, "ask": "q1"})
    with open_page(browser, service.entry) as tab:
        tab.page.get_by_text("The session has ended with exit code 3.").wait_for()
        assert tab.page.is_disabled("#prompt")


def test_a_session_that_has_ended_goes_on(browser: Any, service: Service) -> None:
    """A tab that did not resume the session shows the new turns as well, and each old text once."""
    id = service.create({"lines": 2}, {"exit": 3})
    with open_page(browser, service.entry) as tab:
        tab.page.get_by_text("The session has ended with exit code 3.").wait_for()
        other = tab.page.context.new_page()
        other.goto(tab.page.url)
        other.wait_for_selector("#resume:not([hidden])")
        tab.page.get_by_role("button", name="Resume").click()
        tab.page.wait_for_selector("#prompt:focus")
        send(tab, lines=1)
        tab.wait_for_turns(2)
        other.locator("[data-kind=turn]").nth(1).wait_for()
        assert other.is_enabled("#prompt")
        assert tab.shown() == shown_of(service.events(id, 2))


def test_files_of_the_page(service: Service) -> None:
    """Each file has its media type and the security policy. Other files do not exist, and only GET is allowed."""
    with httpx.Client(base_url=service.program.url, trust_env=False) as client:
        page = client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        names = ["page.css", "page.js", "conversation.js", "icon.svg"]
        kinds = [client.get(f"/{name}").headers["content-type"].partition(";")[0] for name in names]
        assert kinds == ["text/css", "text/javascript", "text/javascript", "image/svg+xml"]
        for reply in (page, client.get("/page.js"), client.head("/")):
            assert reply.status_code == 200
            assert reply.headers["content-security-policy"] == POLICY
            assert reply.headers["x-content-type-options"] == "nosniff"
        assert POLICY == page_server.POLICY
        for path in ("/page", "/../app.py", "/%2e%2e/app.py", "/page/../app.py", "/sessions"):
            assert client.get(path).status_code == 401
        assert client.post("/").status_code == 405
