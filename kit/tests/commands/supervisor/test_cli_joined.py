"""``claude-wire supervisor attach`` and ``claude-wire run --attach`` show a supervised session at the terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

from screens import AtTerminal, terminal_environment
from shown import in_order
from supervised import SECONDS, Commands, Talker

END_OF_INPUT, INTERRUPT = "\x04", "\x03"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        commands.serve()
        yield commands


def at_terminal(supervisor: Commands, *arguments: str) -> AtTerminal:
    environment = terminal_environment(NO_COLOR="1", CLAUDE_WIRE_SUPERVISOR=os.fspath(supervisor.folder))
    return AtTerminal([sys.executable, "-m", "claude_wire_kit", *arguments], environment)


def state(supervisor: Commands) -> tuple[str, bool]:
    (session,) = supervisor.sessions()
    return session["life"], session["driver"]


# --- supervisor attach ------------------------------------------------------------------------------------------------


def test_a_viewer_sees_what_was_said_and_what_comes_up_to_the_end(supervisor: Commands) -> None:
    id = supervisor.create(lines=1)
    with supervisor.start("supervisor", "attach", id) as viewer:
        assert viewer.stdout is not None
        while b"= ok" not in viewer.stdout.readline():
            pass
        supervisor.said("supervisor", "stop", id)
        out, err = viewer.communicate(timeout=SECONDS)
    assert (viewer.returncode, err) == (0, b"")
    assert out.endswith(b"* the CLI ended with exit code 0\n")


def test_a_driver_types_prompts_answers_questions_and_leaves(supervisor: Commands) -> None:
    supervisor.create("--name", "mine", lines=1)
    with at_terminal(supervisor, "supervisor", "attach", "mine", "--drive") as screen:
        screen.type_when("> ", json.dumps({"ask": "q1"}) + "\n")
        screen.type_when("allow? [", "y\n")
        screen.until('answered {"behavior": "allow"')
        screen.until("= ok", 2)
        screen.type_when("> ", "a second one\n", 2)
        screen.until("0 a second one")
        screen.until("= ok", 3)
        screen.type_when("> ", END_OF_INPUT, 3)
        assert screen.process.wait(SECONDS) == 0
        screen.until("* left; the session goes on")
        in_order(screen.screen.text(), '0 {"lines": 1}', "= ok", "> ", "? may Bash run?", "? allowed", "* left")
    assert state(supervisor) == ("idle", False)


def test_a_question_that_was_open_is_asked_again(supervisor: Commands) -> None:
    id = supervisor.create(ask="q1")
    with Talker(supervisor.folder) as viewer:
        viewer.ask({"attach": id})
        viewer.until("control_request")
    with at_terminal(supervisor, "supervisor", "attach", id, "--drive") as screen:
        screen.type_when("allow? [", "n not now\n")
        screen.until("answered ")
        screen.type_when("> ", END_OF_INPUT)
        assert screen.process.wait(SECONDS) == 0
        assert "not now" in screen.screen.text()


def test_ctrl_c_interrupts_and_the_second_one_leaves(supervisor: Commands) -> None:
    id = supervisor.create(hang=True)
    with at_terminal(supervisor, "supervisor", "attach", id, "--drive") as screen:
        screen.until('0 {"hang": true}')
        screen.type_when('0 {"hang": true}', INTERRUPT)
        screen.type_when("! interrupted; Ctrl-C once more leaves the session", INTERRUPT)
        assert screen.process.wait(SECONDS) == 130
        screen.until("leaving the session, which goes on")
    life, driver = state(supervisor)
    assert life != "ended"
    assert not driver


def test_who_is_replaced_is_told_when_he_types(supervisor: Commands) -> None:
    id = supervisor.create()
    with at_terminal(supervisor, "supervisor", "attach", id, "--drive") as screen:
        screen.until("> ")
        with Talker(supervisor.folder) as other:
            assert other.ask({"attach": id, "role": "driver", "take": True})["role"] == "driver"
            screen.type_when("> ", "still me\n")
            screen.until("another client drives this session now")
            assert screen.process.wait(SECONDS) == 1


def test_the_end_of_the_cli_ends_it(supervisor: Commands) -> None:
    id = supervisor.create()
    with at_terminal(supervisor, "supervisor", "attach", id, "--drive") as screen:
        screen.until("> ")
        supervisor.said("supervisor", "stop", id)
        screen.until("* the CLI has ended")
        assert screen.process.wait(SECONDS) == 0
    with at_terminal(supervisor, "supervisor", "attach", id, "--drive") as screen:
        screen.until("* the CLI has ended")
        assert screen.process.wait(SECONDS) == 0


def test_who_drives_sits_at_a_terminal(supervisor: Commands) -> None:
    id = supervisor.create()
    assert "--drive needs a terminal" in supervisor.refused("supervisor", "attach", id, "--drive")
    assert "--take needs --drive" in supervisor.refused("supervisor", "attach", id, "--take")


# --- run --attach -----------------------------------------------------------------------------------------------------


def test_a_prompt_is_sent_to_a_session_which_goes_on(supervisor: Commands) -> None:
    id = supervisor.create("--name", "mine", lines=3)
    with Talker(supervisor.folder) as viewer:
        viewer.ask({"attach": id})
        viewer.until("result")
    out = supervisor.said("run", "--attach", "mine", "--", "hello")
    in_order(out, "> hello\n", "0 hello\n", "= ok", "in all, exit code 0\n")
    assert "lines" not in out
    assert state(supervisor) == ("idle", False)


def test_the_exit_code_is_that_of_the_run(supervisor: Commands) -> None:
    supervisor.create("--name", "mine")
    code, out, _ = supervisor.run("run", "--attach", "mine", "--", json.dumps({"exit": 3, "stderr": "no disk"}))
    assert code == 1
    in_order(out, "! ", "exited with code 3", "no disk")
    with Talker(supervisor.folder) as driver:
        supervisor.create("--name", "driven")
        driven = next(session["id"] for session in supervisor.sessions() if session["name"] == "driven")
        driver.drive(driven)
        code, out, _ = supervisor.run("run", "--attach", "driven", "--", "hello")
        assert code == 1
        assert "another client drives the session" in out
    assert "there is no session 'other'" in supervisor.refused("run", "--attach", "other", "--", "hello")


def test_what_is_for_a_cli_that_is_started_is_refused(supervisor: Commands) -> None:
    said = supervisor.refused("run", "--attach", "x", "--model", "opus", "--", "hello")
    assert "--model cannot be used with --attach" in said
    assert "flags cannot be used" in supervisor.refused("run", "--attach", "x", "--", "hello", "--verbose")
    assert "--ssh needs --attach" in supervisor.refused("run", "--ssh", "x", "--", "hello")


def test_with_ssh_the_session_is_elsewhere(supervisor: Commands, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nshift 4\nexec "$@"\n')
    program.chmod(0o700)
    path = os.pathsep.join([os.fspath(program.parent), os.path.dirname(sys.executable), os.environ["PATH"]])
    supervisor.environment["PATH"] = path
    supervisor.create("--name", "mine")
    in_order(
        supervisor.said("run", "--attach", "mine", "--ssh", "far", "--", "hello"), "> hello\n", "0 hello\n", "= ok"
    )
    assert (tmp_path / "asked").read_text() == "-T -o ServerAliveInterval=15 far claude-wire supervisor stdio\n"
    assert "is not a valid host name" in supervisor.refused("run", "--attach", "mine", "--ssh", "-oX=y", "--", "hello")
