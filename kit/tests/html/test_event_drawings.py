"""The terminal, the page of a session and the web page each show every event, or its row says that they do not."""

from __future__ import annotations

import io
import re
from contextlib import closing
from typing import get_args

import pytest
from rich.console import Console

from claude_wire_kit.events import (
    Activity,
    Answer,
    ClaudeResponse,
    Notice,
    Operation,
    Part,
    PermissionCancelled,
    PermissionRequest,
    ProgressUpdate,
    SessionStarted,
    SubagentProgress,
    Thinking,
    TurnComplete,
    UiEvent,
    UserPrompt,
)
from claude_wire_kit.html.document import document
from claude_wire_kit.html.story import Story
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.page import Page
from folders import ROOT

PAGE = (ROOT / "kit" / "claude_wire_kit" / "web" / "page" / "conversation.js").read_text(encoding="utf-8")
ON_PAGE = set(re.findall(r'case "(\w+)":', PAGE))

#: An event, its text at the terminal, its text on the page of a session, and whether the web page shows it.
ROWS: list[tuple[UiEvent, str, str, bool]] = [
    (UserPrompt(content="Hi", parts=[Part(text="Hi")]), "> Hi\n", "Hi", True),
    (ClaudeResponse(content="Ho"), "Ho\n", "Ho", True),
    (Thinking(content="Hm."), "Hm.\n", "Thinking", True),
    (Answer(model="a-model"), "", "a-model", False),
    (ProgressUpdate(currentStep="Test", completedSteps=1, totalSteps=2, percentage=50), "", "", True),
    (Operation(id="a", kind="command", title="Run ls", state="started", name="Bash"), "+ Bash null\n", "Bash", True),
    (SubagentProgress(agentId="a", name="tests", status="started"), "", "", True),
    (PermissionRequest(requestId="r", tool="Bash", input={}, options=[]), "? Bash\n", "Bash", True),
    (PermissionCancelled(requestId="r", reason="withdrawn"), "", "", True),
    (TurnComplete(ok=True, turns=2), "= ok, answers: 2\n", "ok, answers: 2", True),
    (Notice(kind="error", text="no"), "! no\n", "no", True),
    (SessionStarted(model="m", folder="/d"), "* m in /d\n", "/d", False),
    (Activity(what="thinking"), "", "", False),
]


def test_every_event_has_a_row() -> None:
    assert [type(event) for event, *_ in ROWS if type(event) not in get_args(UiEvent)] == []
    assert {cls.__name__ for cls in get_args(UiEvent)} == {type(event).__name__ for event, *_ in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row[0]).__name__)
def test_an_event_is_drawn_where_its_row_says(row: tuple[UiEvent, str, str, bool]) -> None:
    event, printed, on_html, on_page = row
    shown = io.StringIO()
    with closing(Page(Console(file=shown, markup=False, highlight=False, emoji=False))) as page:
        LiveView(page).draw(event)
    assert shown.getvalue() == printed
    story, empty = Story(transcript=False), Story(transcript=False)
    story.draw(event)
    drawn, nothing = ("".join(document(each)) for each in (story, empty))
    assert on_html in drawn
    assert (drawn != nothing) == bool(on_html)
    assert (str(type(event).__struct_config__.tag) in ON_PAGE) == on_page
