"""``claude-wire run`` with the real CLI, and the other commands on the recordings that it makes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from claude_wire import CanUseToolRequest, Decoder, ResultMessage, open_session
from claude_wire.messages import (
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    KeepAlive,
    PermissionResult,
    SessionStateChangedMessage,
)
from claude_wire.testing import Recording, Replay
from places import CLI, Place
from screens import AtTerminal
from shown import in_order
from through_sdk import DEADLINE

COMMAND = [sys.executable, "-m", "claude_wire_kit"]


def command(place: Place, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, name, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=place.environment,
        check=False,
    )


def flags(place: Place, prompt: str, *arguments: str) -> list[str]:
    """Return the arguments of ``claude-wire run``. It records into ``folder(place)``."""
    where = ["--cli", str(CLI), "--cwd", str(place.work), "--record", str(folder(place))]
    return [*where, *arguments, "--", prompt, "--system-prompt", ""]


def folder(place: Place) -> Path:
    return place.home / "recording"


def at_terminal(place: Place, prompt: str, *arguments: str) -> AtTerminal:
    environment = {**place.environment, "TERM": "xterm-256color", "NO_COLOR": "1"}
    return AtTerminal([*COMMAND, "run", *flags(place, prompt, *arguments)], environment)


async def replayed(recording: Recording, allow: tuple[str, ...] = ()) -> list[Any]:
    """Return the messages of a session that replays the recording. The host allows commands that contain `allow`."""

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        allowed = any(word in json.dumps(request.input) for word in allow)
        return request.allow() if allowed else request.deny("not today")

    with anyio.fail_after(DEADLINE):
        argv = [*Replay(recording).argv(), "--permission-prompt-tool", "stdio"]
        async with open_session(argv, can_use_tool=ask) as session:
            await session.query("again")
            messages = [message async for message in session.receive_run()]
            await session.end_input()
            return [*messages, *[message async for message in session]]


def for_iterations(recording: Recording) -> list[Any]:
    """Return the messages of a recording that a session yields to its user."""
    decoder = Decoder()
    return [
        message
        for message in [*decoder.feed(recording.stdout), *decoder.close()]
        if not isinstance(message, (ControlRequest, ControlResponse, ControlCancelRequest, KeepAlive))
        and not (isinstance(message, SessionStateChangedMessage) and message.sdk_host_only)
    ]


def test_a_turn_is_shown_recorded_and_played_again(place: Place) -> None:
    shown = command(place, "run", *flags(place, "[[thinking]] please"))
    assert (shown.returncode, shown.stderr) == (0, "")
    in_order(
        shown.stdout,
        "> [[thinking]] please\n* claude-",
        "\nFirst this, then that.\nDone thinking.\n= ok, $",
        "in all, exit code 0\n",
    )
    assert shown.stdout.count("Done thinking.") == 1
    recording = Recording.load(folder(place))
    assert recording.exit_code == 0
    assert b"stream_event" in recording.stdout

    viewed = command(place, "view", str(folder(place)))
    *lines, total = shown.stdout.splitlines(keepends=True)
    assert (viewed.returncode, viewed.stdout) == (0, "".join(lines))
    checked = json.loads(command(place, "check", "--json", str(folder(place))).stdout)["total"]
    assert (checked["invalid"], checked["unknown"]) == (0, [])
    stats = json.loads(command(place, "stats", "--json", str(folder(place))).stdout)["total"]
    assert stats["turns"]["ok"] == 1
    assert stats["turns"]["unfinished"] == 0
    assert stats["bytes"] == len(recording.stdout)
    assert f"${stats['usd']:.6f} in all" in total
    again = command(place, "replay", str(folder(place)))
    assert (again.returncode, again.stdout.encode()) == (0, recording.stdout)
    assert anyio.run(replayed, recording) == for_iterations(recording)


def test_questions_are_asked_at_the_terminal_and_the_answers_hold(place: Place) -> None:
    with at_terminal(place, "[[permission]]") as host:
        host.type_when("allow? [", "y\n")
        host.type_when("allow? [", "n not today\n", times=2)
        host.type_when("allow? [", "yes\n", times=3)
        shown, code = host.end()
    assert code == 0
    in_order(
        shown,
        "+ Bash touch allowed && echo made\n",
        "? allowed\n",
        "  = made\n",
        "+ Bash touch refused && echo made\n",
        "? denied: not today\n",
        "  = not today",
        "+ Write",
        "? allowed\n",
        "All three asked.\n= ok, $",
    )
    assert {path.name for path in place.work.iterdir()} >= {"allowed", "changed.txt"}
    assert not (place.work / "refused").exists()
    recording = Recording.load(folder(place))
    stats = json.loads(command(place, "stats", "--json", str(folder(place))).stdout)["total"]
    assert stats["tools"]["Bash"] == {"calls": 2, "errors": 1, "denied": 1, "unanswered": 0}
    assert anyio.run(replayed, recording, ("allowed", "changed")) == for_iterations(recording)


@pytest.mark.parametrize(
    ("number", "suggested", "questions"),
    [("1", "allow Bash(touch first *)", 2), ("3", "switch to permission mode acceptEdits", 1)],
    ids=["rule", "mode"],
)
def test_a_number_grants_that_suggestion_alone(place: Place, number: str, suggested: str, questions: int) -> None:
    with at_terminal(place, "[[permission_kept]]") as host:
        host.type_when("allow? [", f"{number}\n")
        if questions > 1:
            host.type_when("allow? [", "n\n", times=2)
        shown, code = host.end()
    assert code == 0
    in_order(
        shown, f"\n    {number}: yes, and {suggested}", "allow? [", f"? allowed\n    and {suggested}", "Asked once.\n"
    )
    assert shown.count("allow? [") == questions
    assert (place.work / "first").exists()
    assert (place.work / "second").exists() == (questions == 1)


def test_an_error_of_the_api_is_1(place: Place) -> None:
    shown = command(place, "run", *flags(place, "[[error_400]]"))
    assert (shown.returncode, shown.stderr) == (1, "")
    in_order(shown.stdout, "This cannot be done", "\n= not ok (", "exit code 1\n")
    assert shown.stdout.count("= not ok (") == 1


def test_a_session_that_is_not_there_is_1_and_says_so(place: Place) -> None:
    nowhere = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
    shown = command(place, "run", *flags(place, "[[simple]]", "--resume", nowhere))
    assert shown.returncode == 1
    in_order(shown.stdout, "No conversation found", "= not ok (", "exit code 1\n")


def test_ctrl_c_interrupts_the_turn_which_ends_with_its_result(place: Place) -> None:
    with at_terminal(place, "[[stall]]") as host:
        host.type_when("One two ", "\x03")
        shown, code = host.end()
    assert code == 130
    in_order(shown, "! interrupted", "= not ok (aborted_streaming)", "in all, exit code 130\n")
    messages = for_iterations(Recording.load(folder(place)))
    results = [message for message in messages if isinstance(message, ResultMessage)]
    assert [result.terminal_reason for result in results] == ["aborted_streaming"]


def test_ctrl_c_withdraws_a_question_that_is_open(place: Place) -> None:
    with at_terminal(place, "[[permission_open]]") as host:
        host.type_when("allow? [", "\x03")
        shown, code = host.end()
    assert code == 130
    in_order(shown, "allow? [", "! interrupted", "= not ok (aborted_tools)", "in all, exit code 130\n")
    assert not (place.work / "refused").exists()


def test_the_second_ctrl_c_ends_a_cli_that_does_not_answer(place: Place) -> None:
    with at_terminal(place, "[[stall]]") as host:
        host.until("One two ")
        pid = host.process.pid
        [child] = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        os.kill(child, signal.SIGSTOP)
        host.type_when("One two ", "\x03")
        host.type_when("! interrupted; Ctrl-C once more ends the CLI", "\x03")
        shown, code = host.end()
    assert code == 130
    assert "Traceback" not in shown
    assert not Path(f"/proc/{child}").exists()
    ended = json.loads((folder(place) / "exit.json").read_text())
    assert (ended["rc"], ended["how"]) == (-signal.SIGKILL, "signal")
    stats = json.loads(command(place, "stats", "--json", str(folder(place))).stdout)["total"]
    assert stats["turns"]["unfinished"] == 1
