"""Permission questions at the terminal.

Knows questions, a page and a terminal; not how an answer gets to the CLI.
"""

from __future__ import annotations

import os
import sys

import anyio

from claude_wire.cli.excerpts import fields
from claude_wire.cli.live import LiveView
from claude_wire.cli.page import Page
from claude_wire.cli.questions import answer, permission_question, suggestion
from claude_wire.messages import CanUseToolRequest, ControlResponse, PermissionResult

__all__ = ["Terminal"]

#: So long a question waits for the call that it is about to be shown before it.
SECONDS_TO_SHOW = 1.0


class Terminal:
    """Asks whoever sits at the terminal; where there is none, everything is denied.

    Args:
        page, live: where questions and answers are shown.
    """

    def __init__(self, page: Page, live: LiveView) -> None:
        self._page = page
        self._live = live
        self.is_there = sys.stdin is not None and sys.stdin.isatty() and page.is_terminal
        #: Held by who shows something, while a question is open, too; who has shown a message notifies it.
        self.turn = anyio.Condition()

    async def ask(self, request: CanUseToolRequest) -> PermissionResult:
        """Show a question, and return the answer."""
        async with self.turn:
            with anyio.move_on_after(SECONDS_TO_SHOW):
                while request.tool_use_id is not None and not self._live.has_shown(request.tool_use_id):
                    await self.turn.wait()
            told = permission_question(request)
            self._page.line(told.text, told.style)
            if request.tool_use_id is None or not self._live.has_shown(request.tool_use_id):
                self._page.line("\n".join(f"    {line}" for line in fields(request.input)), "cyan")
            try:
                result = await self._answer(request)
            finally:
                self._page.end_text()
            given = answer("can_use_tool", ControlResponse.success("", result))
            if given is not None:
                self._page.line(given.text, given.style)
            return result

    async def _answer(self, request: CanUseToolRequest) -> PermissionResult:
        if not self.is_there:
            return request.deny("Nobody is there to be asked for permission.")
        suggestions = request.permission_suggestions or []
        if request.suppress_always_allow_rule:
            suggestions = []
        for update in suggestions:
            self._page.line(f"    always: {suggestion(update)}")
        choices = "y, n, n REASON" + (", a (always)" if suggestions else "")
        while True:
            typed = await self._line(f"  allow? [{choices}] ")
            word, _, reason = typed.strip().partition(" ")
            match word.lower():
                case "y" | "yes":
                    return request.allow()
                case "a" | "always" if suggestions:
                    return request.allow(updated_permissions=suggestions)
                case "n" | "no":
                    return request.deny(reason.strip() or "The user does not want this tool to run.")
                case "" if not typed:  # the end of the input
                    return request.deny("The user gave no answer.")
                case _:
                    pass

    async def _line(self, prompt: str) -> str:
        """A line that the user types; empty at the end of the input. Can be cancelled while it waits."""
        self._page.text(prompt, "bold")
        self._page.flush()
        descriptor = sys.stdin.fileno()
        await anyio.wait_readable(descriptor)
        # A terminal gives one line at a time.
        line = os.read(descriptor, 65536).decode("utf-8", "replace")
        if line.endswith("\n"):
            self._page.typed()
        return line
