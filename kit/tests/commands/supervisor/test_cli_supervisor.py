"""``claude-wire supervisor``: start, find and stop a supervisor; create, list and show its sessions."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")
if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)

import msgspec

from claude_wire_kit.commands.supervisor import table
from claude_wire_kit.commands.supervisor.logs import log_line
from claude_wire_kit.supervisor.child import began_at, is_alive
from claude_wire_kit.supervisor.disk.files import write_whole
from claude_wire_kit.supervisor.disk.folder import StateFolder, Supervision
from claude_wire_kit.supervisor.frames import VERSION, Life, SessionInfo
from claude_wire_kit.terminal.columns import cell_count
from shown import in_order
from supervised import SECONDS, Commands, Talker, journal, prompt


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        yield commands


# --- the supervisor ---------------------------------------------------------------------------------------------------


def test_a_supervisor_that_is_there_is_found_and_used(supervisor: Commands) -> None:
    pid = supervisor.serve()
    assert supervisor.said("supervisor", "start") == f"supervisor {pid} serves already {supervisor.folder}\n"
    code, out, err = supervisor.run("supervisor", "start", "--sessions", "3")
    assert (code, out) == (0, f"supervisor {pid} serves already {supervisor.folder}\n")
    assert "its limits do not change" in err


def test_of_two_that_are_started_at_once_one_serves(supervisor: Commands) -> None:
    starts = [supervisor.start("supervisor", "start") for _ in range(3)]
    said = [start.communicate(timeout=SECONDS) for start in starts]
    assert [start.returncode for start in starts] == [0, 0, 0], said
    assert len({out.split()[1] for out, _ in said}) == 1
    assert sum(b"serves already" not in out for out, _ in said) == 1


def test_it_is_in_a_session_of_its_own_and_holds_no_output(supervisor: Commands) -> None:
    pid = supervisor.serve()
    assert os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}


def test_it_has_ended_when_stop_returns(supervisor: Commands) -> None:
    pid = supervisor.serve()
    began = began_at(pid)
    id = supervisor.create()
    assert supervisor.said("supervisor", "stop", "--all") == f"supervisor {pid} has ended\n"
    assert not is_alive(pid, began)
    assert "no supervisor is running" in supervisor.said("supervisor", "stop", "--all")
    supervisor.serve()
    assert [(session["id"], session["life"]) for session in supervisor.sessions()] == [(id, "ended")]


def test_what_it_says_is_shown_if_it_cannot_start(supervisor: Commands) -> None:
    StateFolder(os.fspath(supervisor.folder))
    (supervisor.folder / "sessions").symlink_to("/tmp")
    said = supervisor.refused("supervisor", "start")
    in_order(said, "ended while it started, with exit code 2; it said:\n", "sessions", "a link")


@pytest.mark.parametrize("command", [("ps",), ("logs", "x"), ("stop", "x"), ("rm", "x"), ("run", "--", "true")])
def test_without_a_supervisor_a_command_says_how_to_start_one(supervisor: Commands, command: tuple[str, ...]) -> None:
    assert f'no supervisor is running in {supervisor.folder}. "claude-wire supervisor start' in supervisor.refused(
        "supervisor", *command
    )


def test_only_what_starts_a_supervisor_makes_its_folder(supervisor: Commands) -> None:
    supervisor.refused("supervisor", "ps")
    supervisor.refused("supervisor", "stdio", "x")
    assert "no supervisor is running" in supervisor.said("supervisor", "stop", "--all")
    assert "the log cannot be read: this folder was never used by a supervisor" in supervisor.refused(
        "supervisor", "logs"
    )
    assert not supervisor.folder.exists()
    supervisor.serve()
    assert supervisor.folder.is_dir()


def test_in_the_foreground_it_says_that_it_serves_and_ends_by_a_signal(supervisor: Commands) -> None:
    with supervisor.start("supervisor", "start", "--foreground") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"supervisor {process.pid} serves {supervisor.folder}\n".encode()
        id = supervisor.create()
        process.terminate()
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"", b"")
    supervisor.serve()
    assert [(session["id"], session["life"]) for session in supervisor.sessions()] == [(id, "ended")]


def test_a_mistake_of_its_own_is_in_the_log_without_what_it_says(tmp_path: Path) -> None:
    folder = StateFolder(os.fspath(tmp_path / "h"))
    try:
        json.loads("a secret")
    except ValueError as error:
        folder.log_error(error)
    folder.release()
    (line,) = (tmp_path / "h" / "log.ndjson").read_text().splitlines()
    assert json.loads(line)["error"] == "JSONDecodeError"
    assert json.loads(line)["place"][-1].startswith("decoder.py:")
    assert "secret" not in line


def test_one_that_does_not_answer_is_named(supervisor: Commands) -> None:
    folder, pid = StateFolder(os.fspath(supervisor.folder)), os.getpid()
    deaf = Supervision(pid=pid, pid_began=began_at(pid), version=VERSION, package="1", socket=folder.socket)
    write_whole(os.path.join(folder.path, "supervisor.json"), msgspec.json.encode(deaf))
    assert f"the supervisor (pid {pid}) cannot be reached: " in supervisor.refused("supervisor", "ps")
    os.unlink(os.path.join(folder.path, "supervisor.json"))


def test_a_folder_whose_path_is_too_long_is_refused(supervisor: Commands) -> None:
    assert "the path of the socket is too long" in supervisor.refused(
        "supervisor", "ps", "--folder", "/tmp/" + "x" * 200
    )


@pytest.mark.parametrize("command", [("start",), ("ps",), ("stop", "--all")])
def test_one_of_another_version_is_named_with_both_versions(supervisor: Commands, command: tuple[str, ...]) -> None:
    folder, pid = StateFolder(os.fspath(supervisor.folder)), os.getpid()
    other = Supervision(pid=pid, pid_began=began_at(pid), version=99, package="9.9", socket=folder.socket)
    write_whole(os.path.join(folder.path, "supervisor.json"), msgspec.json.encode(other))
    in_order(
        supervisor.refused("supervisor", *command),
        f"pid {pid}",
        "9.9",
        "version 99",
        f"version {VERSION}",
        f'"kill {pid}" ends it',
    )
    os.unlink(os.path.join(folder.path, "supervisor.json"))


def test_limits_are_those_of_the_options(supervisor: Commands) -> None:
    supervisor.serve("--sessions", "1", "--journal-bytes", "64k", "--fsync", "line")
    supervisor.create()
    assert "1 CLIs are running, which is the limit" in supervisor.refused("supervisor", "run", "--", sys.executable)
    supervisor.said("supervisor", "stop", "--all")
    supervisor.serve("--memory", "1")
    supervisor.create()
    assert "(limit: memory)" in supervisor.refused("supervisor", "run", "--", sys.executable)
    assert "is not a size" in supervisor.refused("supervisor", "start", "--memory", "much")


# --- its sessions -----------------------------------------------------------------------------------------------------


def test_a_session_is_created_listed_shown_stopped_and_removed(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create("--name", "mine", lines=2)
    assert supervisor.said("supervisor", "ps", "-q") == f"{id}\n"
    with supervisor.start("supervisor", "logs", "-f", "mine") as following:
        assert following.stdout is not None
        while b"= ok" not in following.stdout.readline():  # the turn is over
            pass
        assert supervisor.said("supervisor", "stop", "mine") == f"{id}\n"
        rest, err = following.communicate(timeout=SECONDS)
    assert (following.returncode, err) == (0, b"")
    assert rest.decode().endswith("* the CLI ended with exit code 0\n")
    assert supervisor.said("supervisor", "ps", "-q") == ""
    assert [(session["name"], session["life"], session["line"]) for session in supervisor.sessions()] == [
        ("mine", "ended", 6)
    ]
    in_order(
        supervisor.said("supervisor", "logs", id[:6]), '0 {"lines": 2}', '1 {"lines": 2}', "= ok", "* the CLI ended"
    )
    lines = [json.loads(line) for line in supervisor.said("supervisor", "logs", "mine", "--json").splitlines()]
    assert [line["type"] for line in lines] == [
        *("control_response", "user", "system", "assistant", "assistant", "result")
    ]
    assert json.loads(supervisor.said("supervisor", "logs", "mine", "--json", "-n", "1"))["type"] == "result"
    assert supervisor.said("supervisor", "rm", "mine") == f"{id}\n"
    assert supervisor.sessions() == []


def test_a_line_longer_than_a_frame_may_be_is_shown_as_it_is(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create()
    with Talker(supervisor.folder) as client:
        client.drive(id)
        client.send(prompt("p1", text='{"type":"supervisor_' + "x" * 5_000_000))
        client.until("result")
    assert (
        supervisor.said("supervisor", "logs", id, "--json") == journal(supervisor.folder, id, "stdout.ndjson").decode()
    )
    in_order(supervisor.said("supervisor", "logs", id), "xxx", "= ok")


def test_a_session_that_runs_is_removed_by_force_alone(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create()
    assert "stop it first" in supervisor.refused("supervisor", "rm", id)
    assert supervisor.said("supervisor", "rm", "-f", id) == f"{id}\n"
    assert supervisor.sessions() == []


def test_a_session_that_has_ended_is_resumed(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create("--name", "mine", lines=1)
    assert "is already running" in supervisor.refused("supervisor", "resume", "mine")
    supervisor.said("supervisor", "stop", "mine")
    supervisor.said("supervisor", "stop", "--all")
    supervisor.serve()
    assert supervisor.said("supervisor", "resume", "mine") == f"{id}\n"
    (session,) = supervisor.sessions()
    assert session["pid"] is not None
    assert "> again" in supervisor.said("run", "--attach", "mine", "--", "again")


def test_nothing_is_done_to_any_if_one_of_them_is_not_there(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create("--name", "one")
    assert "there is no session 'two'" in supervisor.refused("supervisor", "stop", "one", "two")
    assert "there is no session ''" in supervisor.refused("supervisor", "stop", "")
    assert [session["life"] == "ended" for session in supervisor.sessions()] == [False]
    supervisor.create("--name", "one")
    assert "2 sessions are named 'one'" in supervisor.refused("supervisor", "stop", "one")
    assert supervisor.said("supervisor", "stop", id) == f"{id}\n"


def test_how_a_cli_has_ended_is_shown(supervisor: Commands) -> None:
    supervisor.serve()
    id = supervisor.create(call="c1", stderr="no more disk\n", exit=3)
    with supervisor.start("supervisor", "logs", "-f", id) as following:
        out, _ = following.communicate(timeout=SECONDS)
    said = out.decode().splitlines()[-1]
    in_order(said, "! the CLI ended with exit code 3; ", "1 tool calls without a result were perhaps done")
    assert "no more disk" in said


def test_a_program_that_cannot_be_run_is_named_with_the_reason(
    supervisor: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(program: str) -> str:
        return supervisor.refused("supervisor", "run", "--", program)

    supervisor.serve()
    monkeypatch.chdir(tmp_path)
    agent = tmp_path / "agent.py"
    agent.write_text("")
    assert "'no-such-cli' cannot be run: there is no such program" in refused("no-such-cli")
    assert "cannot be run: it is a folder" in refused(os.fspath(supervisor.folder))
    assert "'agent.py' cannot be run: it is not executable" in refused("agent.py")
    agent.chmod(0o700)
    assert "'agent.py' cannot be run: it is not in PATH; say ./agent.py" in refused("agent.py")


def test_the_log_of_the_supervisor_tells_what_it_did(supervisor: Commands) -> None:
    pid = supervisor.serve()
    id = supervisor.create()
    said = supervisor.said("supervisor", "logs")
    in_order(said, f" started pid={pid} sessions=0\n", f" process-started session={id} pid=")
    events = [json.loads(line)["event"] for line in supervisor.said("supervisor", "logs", "--json").splitlines()]
    assert events[:2] == ["started", "process-started"]
    assert log_line(b"\x1b no json\n") == "\\x1b no json"


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_has_80_columns_at_most() -> None:
    def info(**fields: object) -> SessionInfo:
        common = {"epoch": 1, "pid": 1, "cli_session_id": None, "clients": 13, "driver": True}
        return SessionInfo(**{**common, **fields})

    large = info(
        id="0123456789ab",
        name="a name\x1b\u4e2d" * 30,
        life=Life.STARTING,
        cwd="/" + "folder\n" * 30,
        line=123_456_789,
        began=time.time() - 9.9e6,
        bytes=987_654_321,
    )
    small = info(id="0123456789ac", name=None, life=Life.LOST, cwd="/", line=0, began=time.time(), bytes=0, clients=1)
    lines = table.rows([large, small])
    assert [cell_count(line) for line in lines if cell_count(line) > 80] == []
    assert all(line.isprintable() for line in lines)
    assert lines[1].split()[:6] == ["0123456789ab", "starting", "115d", "123.5M", "987.7M", "driver+12"]
    assert lines[2].split() == ["0123456789ac", "lost", "0s", "0", "0", "driver", "-", "/"]
