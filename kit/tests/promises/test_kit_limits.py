"""The pages of the kit list its bounds. Every row has a test, and every number equals the number in the code."""

from __future__ import annotations

import pytest

from claude_wire_kit import events
from claude_wire_kit.events import tools
from claude_wire_kit.events.conversation import MAX_STREAMED
from claude_wire_kit.events.todos import MAX_TODOS
from claude_wire_kit.supervisor import frames, session, unacknowledged
from claude_wire_kit.supervisor import lines as frame_lines
from claude_wire_kit.usage import meter
from claude_wire_kit.usage import tokens as usage_tokens
from folders import ROOT
from pages import kept

#: Page -> first words of each row in its table of bounds -> the tests that check this row.
ROWS: dict[str, dict[str, list[str]]] = {
    "usage.md": {
        "sums of a `UsageMeter`": ["tests/promises/test_limits.py"],
        "answers of an `Answers`": ["kit/tests/usage/test_usage_answers.py"],
        "the index of a `UsageIndex`, on disk": ["kit/tests/usage/test_usage_index.py"],
    },
    "events.md": {
        "tool calls of a `Bridge`": ["kit/tests/events/test_bridge_bounds.py"],
        "subagents of a `Bridge`": ["kit/tests/events/test_bridge_bounds.py"],
        "permission questions of a `Bridge`": ["kit/tests/events/test_bridge_bounds.py"],
        "conversations of a `Bridge`": ["kit/tests/events/test_bridge_bounds.py"],
        "ids of a `Bridge`": ["kit/tests/events/test_bridge_bounds.py"],
        "sums of a `Bridge`": ["tests/promises/test_limits.py"],
    },
    "supervisor.md": {
        "a client's line or command": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "frames for a client": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "a client that reads nothing": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "connected clients": ["kit/tests/supervisor/test_supervisor.py"],
        "running CLIs": ["kit/tests/supervisor/test_supervisor.py"],
        "open questions of a CLI": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "one question of a CLI": ["kit/tests/supervisor/test_ledger_tables.py"],
        "sessions, including ended ones": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "MCP handshakes": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "ids of prompts and of settled questions": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "input for a CLI": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "the journal of a session": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "the standard error of a CLI": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "tool calls without a result": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "the log": ["kit/tests/supervisor/test_supervisor_bounds.py"],
        "in a client: unacknowledged prompts and answers": ["kit/tests/supervisor/test_session_attached.py"],
        "in a client: a frame": [
            "kit/tests/supervisor/test_forged_frames.py",
            "kit/tests/supervisor/test_session_attached.py",
        ],
        "in a client: the answer": ["kit/tests/supervisor/test_attach.py"],
    },
    "web.md": {
        "events of a session": ["kit/tests/web/test_serve_events.py"],
        "the head of a request": ["kit/tests/web/test_serve_attacks.py"],
        "the body of a request": ["kit/tests/web/test_serve_attacks.py", "kit/tests/web/test_serve_sessions.py"],
        "sessions on disk": ["kit/tests/web/test_serve_settings.py"],
        "a page of events": ["kit/tests/web/test_serve_windows.py"],
        "commands and models of a session": ["kit/tests/web/test_serve_settings.py"],
        "a connection whose client reads nothing": ["kit/tests/web/test_serve_attacks.py"],
        "open connections": ["kit/tests/web/test_serve_attacks.py"],
        "data for a connection": ["kit/tests/web/test_serve_attacks.py"],
        "pongs of a WebSocket": ["kit/tests/web/test_serve_floods.py"],
        "log lines": ["kit/tests/web/test_serve_floods.py"],
        "acts of all clients": ["kit/tests/web/test_serve_attacks.py"],
        "a session on the page": ["kit/tests/page/test_page_long.py", "kit/tests/page/test_page_hostile.py"],
    },
    "how-to/tap.md": {
        "output of a CLI behind `claude-wire tap`": ["kit/tests/tap/test_tap.py"],
        "what waits to be redacted": ["kit/tests/tap/test_tap_redaction.py"],
        "a recording of `claude-wire tap`": ["kit/tests/tap/test_tap_recording.py"],
    },
    "how-to/fleet.md": {
        "what the actor of a `Fleet` has read": ["kit/tests/fleet/test_fleet_node.py"],
        "what a client of a `Fleet` has sent": ["kit/tests/fleet/test_fleet_node.py"],
        "losses of nodes that a `Fleet` has not reported": ["kit/tests/fleet/test_fleet.py"],
    },
    "how-to/command-line.md": {"a page of `claude-wire view --html`": ["kit/tests/html/test_html_page.py"]},
}


@pytest.mark.parametrize("page", ROWS)
def test_each_row_of_a_page_has_its_test(page: str) -> None:
    rows = kept(page)
    assert [next((name for name in ROWS[page] if row.startswith(f"| {name}")), row) for row in rows] == list(ROWS[page])
    for name in (test for tests in ROWS[page].values() for test in tests):
        assert (ROOT / name).exists(), name


def test_the_numbers_of_the_pages_are_those_of_the_code() -> None:
    """The test formats the numbers of the code and looks them up on the pages, so neither can change alone."""
    from claude_wire_kit.web import access, app, feed, server
    from claude_wire_kit.web import service as http

    text = "\n".join(row for page in ROWS for row in kept(page))
    tokens_bits = usage_tokens.MAX_TOKENS.bit_length() - 1
    for number in (
        f"prompts and answers | {unacknowledged.MAX_UNACKNOWLEDGED_BYTES >> 20} MiB in a session; each line counts "
        f"{unacknowledged.ENTRY_BYTES} bytes more",
        f"of its CLI | {frame_lines.MAX_FRAME_LINE_BYTES >> 20} MiB; the last {session.KEPT_STDERR_BYTES >> 10} KiB",
        f"to a command | {frames.MAX_ANSWER_BYTES >> 20} MiB",
        f"{events.MAX_OPERATIONS:,}; paths and commands cut to {tools.TEXT_CHARS:,} characters",
        f"titles to {tools.TITLE_CHARS}",
        f"{events.MAX_SUBAGENTS:,}; summaries cut to {tools.TEXT_CHARS:,} characters",
        f"{events.MAX_QUESTIONS:,}, and {events.MAX_QUESTION_BYTES >> 20} MiB",
        f"{events.MAX_CONVERSATIONS}, each with at most {MAX_TODOS} tasks",
        f"the ids of {MAX_STREAMED} streamed blocks",
        f"{meter.MAX_SESSIONS:,} sessions, {meter.MAX_MODELS} models in a session",
        f"{meter.MAX_ROWS:,} models in all sessions",
        f"of names with at most {meter.MAX_NAME_CHARS} characters",
        f"ids of {meter.MAX_RESULTS:,} results",
        f"{feed.MAX_KEPT >> 20} MiB for a session, and {http.MAX_KEPT_IN_ALL >> 20} MiB for all sessions",
        f"{http.MAX_IDLE_FEEDS} more sessions without a connection",
        f"again, for {feed.MAX_OLDER} connections of a session at a time",
        f"{server.MAX_HEAD_BYTES >> 10} KiB, in {server.HEAD_SECONDS:g} seconds",
        f"{app.MAX_BODY_BYTES >> 20} MiB, in {app.BODY_SECONDS:g} seconds",
        f"{server.STALLED_SECONDS:g} seconds | it ends; the client reconnects",
        f"{server.MAX_CONNECTIONS:,} connections | further ones are closed",
        f"{(server.MAX_WAITING_BYTES + feed.MAX_AT_ONCE) >> 10} KiB, or one event",
        f"{server.LOG_BURST} at once, then one in {1 / server.LOG_RATE:g} seconds",
        f"{access.RATE:g} a second, and {access.BURST} at once",
        f"names cut to {usage_tokens.MAX_CHARS:,} characters, numbers of tokens to 2^{tokens_bits}",
    ):
        assert number in text, number
