"""axe-core finds no serious accessibility violation on the page, in any state, in the light and dark theme."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest

from browsing import open_page
from markdown_samples import SAMPLES
from page_server import PageServer

pytest.importorskip("axe_playwright_python", reason="the group page of pyproject.toml has axe-core")
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
#: Run axe-core. Return the impact and id of each violation, with up to five of its elements.
FOUND = """async () => {
  const { violations } = await axe.run();
  return violations.map(({ id, impact, nodes }) => [impact, id, nodes.slice(0, 5).map((one) => one.html)]);
}"""

EDIT = {"type": "operation", "id": "e", "kind": "file_edit", "title": "Edit"}
SHOWN: list[dict[str, Any]] = [
    {"type": "user_prompt", "content": "Look"},
    {"type": "thinking", "content": "Hm."},
    {"type": "operation", "id": "t", "kind": "command", "title": "Test", "command": "make test", "state": "started"},
    {"type": "operation", "id": "t", "kind": "command", "title": "Test", "state": "failed", "exitCode": 2},
    {**EDIT, "change": ["-a", "+b"], "state": "started"},
    {**EDIT, "content": [{"text": "x\n" * 99}], "state": "denied"},
    {"type": "subagent_progress", "agentId": "a", "name": "tests", "status": "running", "lastTool": "Bash"},
    {"type": "claude_response", "content": "It works.", "agentId": "a"},
    *({"type": "claude_response", "content": text} for text in SAMPLES.values()),
    *({"type": "notice", "kind": kind, "text": "Text."} for kind in ("error", "retry", "auth", "info", "hook")),
    {"type": "turn_complete", "ok": False, "error": "It failed."},
    {"type": "claude_response", "id": "m", "content": "I *begin", "partial": True},
    {"type": "progress_update", "currentStep": "Test", "completedSteps": 1, "totalSteps": 2, "percentage": 50.0},
    {"type": "permission_request", "requestId": "q", "tool": "Bash", "input": {"command": "ls"}, "options": ["once"]},
]  # fmt: skip


#: Expected violations: on a narrow screen the list of sessions, which contains the heading, is hidden.
KNOWN = {"page-has-heading-one"}


def barriers(tab: Any) -> list[Any]:
    tab.page.evaluate(AXE)
    return [one for one in tab.page.evaluate(FOUND) if one[0] != "minor" and one[1] not in KNOWN]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1600])
def test_a_session(browser: Any, server: PageServer, scheme: str, width: int) -> None:
    server.add("one", *SHOWN)
    server.add("two", ended=True)
    with open_page(browser, f"{server.url}#session=one", width=width, color_scheme=scheme) as tab:
        tab.page.goto(f"{server.entry}&session=one")
        tab.wait_level()
        tab.page.wait_for_selector("#questions .main")
        for summary in tab.page.locator("#log details:not([open]) > summary").all():
            summary.click()
        assert barriers(tab) == []


def test_nothing_and_a_dialog(browser: Any, server: PageServer) -> None:
    with open_page(browser, server.entry) as tab:
        tab.page.locator("#no-sessions").wait_for()
        assert barriers(tab) == []
        tab.page.click("#new")
        tab.page.locator("#create").wait_for()
        assert barriers(tab) == []
