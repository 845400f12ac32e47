"""The page, served with the demo's agent, which works on its project in a folder of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from browsing import Tab, open_page
from claude_wire_kit.commands.guide import command
from claude_wire_kit.commands.guide.project import write_project
from served import TOKEN
from served_program import ServedProgram, run_service

__all__ = ["Guided", "guided"]


class Guided:
    """A browser tab that shows a session with the demo's agent."""

    def __init__(self, tab: Tab, folder: Path, client: httpx.Client, program: ServedProgram) -> None:
        self.tab = tab
        self.program = program
        self.page = tab.page
        self.folder = folder
        self.client = client

    def say(self, text: str) -> None:
        """Type a prompt and press Enter."""
        self.page.fill("#prompt", text)
        self.page.press("#prompt", "Enter")

    def wait_for(self, text: str) -> None:
        """Wait until the conversation contains this text."""
        self.page.locator("#log").get_by_text(text).first.wait_for()

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("/sessions").json()["sessions"]
        return found


@contextmanager
def guided(browser: Any, folder: Path, script: str = "", **context: Any) -> Iterator[Guided]:
    """Open a page with a new session for a block.

    Args:
        script: JavaScript to run in the page before the page's own scripts.
    """
    write_project(folder)
    with (
        run_service(folder, command()) as program,
        httpx.Client(
            base_url=program.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30, trust_env=False
        ) as client,
    ):
        made = client.post("/sessions", json={"profile": "agent", "name": "The shop"})
        assert made.status_code == 201, made.text
        with open_page(browser, "about:blank", **context) as tab:
            tab.page.add_init_script(script)
            tab.page.goto(f"{program.url}/#token={TOKEN}")
            tab.wait_level()
            yield Guided(tab, folder, client, program)
