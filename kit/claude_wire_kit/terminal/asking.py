"""Ask permission questions in the terminal."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import anyio

from claude_wire.messages import CanUseToolRequest, PermissionResult
from claude_wire_kit.events.permissions import suggestion
from claude_wire_kit.terminal.excerpts import WHOLE, fields
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page

if sys.platform != "win32":
    import termios

#: Maximum seconds to wait for the tool call to appear on the page before the question about it.
SECONDS_TO_SHOW = 1.0


class Terminal:
    """Asks the person in the terminal. Without a terminal, it denies every question.

    Args:
        page, live: show the questions and answers.
    """

    def __init__(self, page: Page, live: LiveView) -> None:
        self._page = page
        self._live = live
        # Not on Windows, where select() cannot wait for a terminal.
        self.is_there: bool = sys.platform != "win32" and bool(sys.stdin) and sys.stdin.isatty() and page.is_terminal
        #: Held by the task that writes to the page or asks a question. Notified after each shown message.
        self.turn: anyio.Condition = anyio.Condition()

    async def ask(self, request: CanUseToolRequest) -> PermissionResult:
        """Show a question, and return the answer."""
        async with self.turn:
            with anyio.move_on_after(SECONDS_TO_SHOW):
                while request.tool_use_id is not None and self._live.input_of(request.tool_use_id) is None:
                    await self.turn.wait()
            self._live.ask(request)
            not_shown = self._not_shown(request)
            if not_shown:
                self._indented(fields(not_shown))
            result = await self._answer(request)
            self._live.decide(result)
            return result

    def _not_shown(self, request: CanUseToolRequest) -> dict[str, Any]:
        """Return the fields of the question's input that differ from the input shown with the call.

        They may differ because the CLI makes paths absolute, and because a hook can change the input.
        """
        shown = self._live.input_of(request.tool_use_id or "")
        if not isinstance(shown, dict):
            return request.input
        before = cast("dict[str, Any]", shown)
        return {name: value for name, value in request.input.items() if name not in before or before[name] != value}

    async def _answer(self, request: CanUseToolRequest) -> PermissionResult:
        if not self.is_there:
            return request.deny("No user is available to grant permission.")
        suggestions = [] if request.suppress_always_allow_rule else request.permission_suggestions or []
        numbered = {str(number): update for number, update in enumerate(suggestions, 1)}
        for number, update in numbered.items():
            self._page.line(f"    {number}: yes, and {suggestion(update)}")
        whole = fields(request.input, WHOLE)
        is_cut = whole != fields(request.input)
        choices = ", ".join(["y", "n", "n REASON", *numbered, *(["s (show all of it)"] if is_cut else [])])
        while True:
            # Discard the text that the user typed before the question appeared: it is not an answer.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            typed = await self.line(f"  allow? [{choices}] ")
            word, _, reason = typed.strip().partition(" ")
            match word.lower(), reason.strip():
                case "y" | "yes", "":
                    return request.allow()
                case number, "" if number in numbered:
                    return request.allow(updated_permissions=[numbered[number]])
                case "n" | "no", reason:
                    return request.deny(reason or "The user does not want this tool to run.")
                case "s" | "show", "" if is_cut:
                    self._indented(whole)
                case _:
                    if not typed:
                        return request.deny("The user gave no answer.")

    def _indented(self, lines: list[str]) -> None:
        self._page.line("\n".join(f"    {line}" for line in lines), "cyan")

    async def line(self, prompt: str) -> str:
        """Return a line typed by the user, or "" at end of input. The wait can be cancelled."""
        descriptor = sys.stdin.fileno()
        self._page.text(prompt, "bold")
        self._page.flush()
        await anyio.wait_readable(descriptor)
        # One read from a terminal returns one line.
        line = os.read(descriptor, 65536).decode("utf-8", "replace")
        if line.endswith("\n"):
            self._page.typed()
        return line
