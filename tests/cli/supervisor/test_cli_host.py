"""``claude-wire host``: a supervisor is started, found and stopped; its sessions are created, listed and shown."""

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

from claude_wire.cli.show.columns import cell_count
from claude_wire.cli.supervisor import starting, table
from claude_wire.cli.supervisor.following import log_line
from claude_wire.control.host_frames import Life
from claude_wire.host.child import began_at, is_alive
from claude_wire.host.disk.files import write_whole
from claude_wire.host.disk.folder import StateFolder, Supervision
from claude_wire.host.frames import VERSION, SessionInfo
from shown import in_order
from supervised import SECONDS, Commands, Talker, journal, prompt


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        yield commands


# --- the supervisor ---------------------------------------------------------------------------------------------------


def test_a_supervisor_that_is_there_is_found_and_used(host: Commands) -> None:
    pid = host.serve()
    assert host.said("host", "start") == f"supervisor {pid} serves already {host.folder}\n"
    code, out, err = host.run("host", "start", "--sessions", "3")
    assert (code, out) == (0, f"supervisor {pid} serves already {host.folder}\n")
    assert "its own limits" in err


def test_of_two_that_are_started_at_once_one_serves(host: Commands) -> None:
    starts = [host.start("host", "start") for _ in range(3)]
    said = [start.communicate(timeout=SECONDS) for start in starts]
    assert [start.returncode for start in starts] == [0, 0, 0], said
    assert len({out.split()[1] for out, _ in said}) == 1
    assert sum(b"serves already" not in out for out, _ in said) == 1


def test_it_is_in_a_session_of_its_own_and_holds_no_output(host: Commands) -> None:
    pid = host.serve()
    assert os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}


def test_it_has_ended_when_stop_returns(host: Commands) -> None:
    pid = host.serve()
    began = began_at(pid)
    id = host.create()
    assert host.said("host", "stop", "--all") == f"supervisor {pid} has ended\n"
    assert not is_alive(pid, began)
    assert "no supervisor runs" in host.said("host", "stop", "--all")
    host.serve()
    assert [(session["id"], session["life"]) for session in host.sessions()] == [(id, "ended")]


def test_what_it_says_is_shown_if_it_cannot_start(host: Commands) -> None:
    StateFolder(os.fspath(host.folder))
    (host.folder / "sessions").symlink_to("/tmp")
    said = host.refused("host", "start")
    in_order(said, "ended while it started, with exit code 2; it said:\n", "sessions", "a link")


@pytest.mark.parametrize("command", [("ps",), ("logs", "x"), ("stop", "x"), ("rm", "x"), ("run", "--", "true")])
def test_without_a_supervisor_a_command_says_how_to_start_one(host: Commands, command: tuple[str, ...]) -> None:
    assert f'no supervisor runs in {host.folder}. "claude-wire host start' in host.refused("host", *command)


def test_only_what_starts_a_supervisor_makes_its_folder(host: Commands) -> None:
    host.refused("host", "ps")
    host.refused("attach", "x")
    assert "no supervisor runs" in host.said("host", "stop", "--all")
    assert "the log cannot be read: no supervisor has ever run with this folder" in host.refused("host", "logs")
    assert not host.folder.exists()
    host.serve()
    assert host.folder.is_dir()


def test_in_the_foreground_it_says_that_it_serves_and_ends_by_a_signal(host: Commands) -> None:
    with host.start("host", "start", "--foreground") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"supervisor {process.pid} serves {host.folder}\n".encode()
        id = host.create()
        process.terminate()
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (0, b"", b"")
    host.serve()
    assert [(session["id"], session["life"]) for session in host.sessions()] == [(id, "ended")]


def test_a_mistake_of_its_own_is_in_the_log_without_what_it_says(tmp_path: Path) -> None:
    folder = StateFolder(os.fspath(tmp_path / "h"))
    try:
        json.loads("a secret")
    except ValueError as error:
        starting.note(folder, error)
    folder.release()
    (line,) = (tmp_path / "h" / "log.ndjson").read_text().splitlines()
    assert json.loads(line)["error"] == "JSONDecodeError"
    assert json.loads(line)["at"][-1].startswith("decoder.py:")
    assert "secret" not in line


def test_one_that_does_not_answer_is_named(host: Commands) -> None:
    folder, pid = StateFolder(os.fspath(host.folder)), os.getpid()
    deaf = Supervision(pid=pid, pid_began=began_at(pid), version=VERSION, package="1", socket=folder.socket)
    write_whole(os.path.join(folder.path, "supervisor.json"), msgspec.json.encode(deaf))
    assert f"the supervisor (pid {pid}) cannot be reached: " in host.refused("host", "ps")
    os.unlink(os.path.join(folder.path, "supervisor.json"))


def test_a_folder_whose_path_is_too_long_is_refused(host: Commands) -> None:
    assert "the path of the socket is too long" in host.refused("host", "ps", "--folder", "/tmp/" + "x" * 200)


@pytest.mark.parametrize("command", [("start",), ("ps",), ("stop", "--all")])
def test_one_of_another_version_is_named_with_both_versions(host: Commands, command: tuple[str, ...]) -> None:
    folder, pid = StateFolder(os.fspath(host.folder)), os.getpid()
    other = Supervision(pid=pid, pid_began=began_at(pid), version=99, package="9.9", socket=folder.socket)
    write_whole(os.path.join(folder.path, "supervisor.json"), msgspec.json.encode(other))
    in_order(host.refused("host", *command), f"pid {pid}", "9.9", "version 99", "version 1", f'"kill {pid}" ends it')
    os.unlink(os.path.join(folder.path, "supervisor.json"))


def test_limits_are_those_of_the_options(host: Commands) -> None:
    host.serve("--sessions", "1", "--journal-bytes", "64k", "--fsync", "line")
    host.create()
    assert "1 CLIs run, and no more are started" in host.refused("host", "run", "--", sys.executable)
    host.said("host", "stop", "--all")
    host.serve("--memory", "1")
    host.create()
    assert "(limit: memory)" in host.refused("host", "run", "--", sys.executable)
    assert "is no size" in host.refused("host", "start", "--memory", "much")


# --- its sessions -----------------------------------------------------------------------------------------------------


def test_a_session_is_created_listed_shown_stopped_and_removed(host: Commands) -> None:
    host.serve()
    id = host.create("--name", "mine", lines=2)
    assert host.said("host", "ps", "-q") == f"{id}\n"
    with host.start("host", "logs", "-f", "mine") as following:
        assert following.stdout is not None
        while b"= ok" not in following.stdout.readline():  # the turn is over
            pass
        assert host.said("host", "stop", "mine") == f"{id}\n"
        rest, err = following.communicate(timeout=SECONDS)
    assert (following.returncode, err) == (0, b"")
    assert rest.decode().endswith("* the CLI ended with exit code 0\n")
    assert host.said("host", "ps", "-q") == ""
    assert [(session["name"], session["life"], session["line"]) for session in host.sessions()] == [
        ("mine", "ended", 6)
    ]
    in_order(host.said("host", "logs", id[:6]), '0 {"lines": 2}', '1 {"lines": 2}', "= ok", "* the CLI ended")
    lines = [json.loads(line) for line in host.said("host", "logs", "mine", "--json").splitlines()]
    assert [line["type"] for line in lines] == [
        *("control_response", "user", "system", "assistant", "assistant", "result")
    ]
    assert json.loads(host.said("host", "logs", "mine", "--json", "-n", "1"))["type"] == "result"
    assert host.said("host", "rm", "mine") == f"{id}\n"
    assert host.sessions() == []


def test_a_line_longer_than_a_frame_may_be_is_shown_as_it_is(host: Commands) -> None:
    host.serve()
    id = host.create()
    with Talker(host.folder) as client:
        client.drive(id)
        client.send(prompt("p1", text='{"type":"host_' + "x" * 5_000_000))
        client.until("result")
    assert host.said("host", "logs", id, "--json") == journal(host.folder, id, "stdout.ndjson").decode()
    in_order(host.said("host", "logs", id), "xxx", "= ok")


def test_a_session_that_runs_is_removed_by_force_alone(host: Commands) -> None:
    host.serve()
    id = host.create()
    assert "stop it first" in host.refused("host", "rm", id)
    assert host.said("host", "rm", "-f", id) == f"{id}\n"
    assert host.sessions() == []


def test_a_session_that_has_ended_is_resumed(host: Commands) -> None:
    host.serve()
    id = host.create("--name", "mine", lines=1)
    assert "runs already" in host.refused("host", "resume", "mine")
    host.said("host", "stop", "mine")
    host.said("host", "stop", "--all")
    host.serve()
    assert host.said("host", "resume", "mine") == f"{id}\n"
    (session,) = host.sessions()
    assert session["pid"] is not None
    assert "> again" in host.said("run", "--attach", "mine", "--", "again")


def test_nothing_is_done_to_any_if_one_of_them_is_not_there(host: Commands) -> None:
    host.serve()
    id = host.create("--name", "one")
    assert "there is no session 'two'" in host.refused("host", "stop", "one", "two")
    assert "there is no session ''" in host.refused("host", "stop", "")
    assert [session["life"] == "ended" for session in host.sessions()] == [False]
    host.create("--name", "one")
    assert "2 sessions are called 'one'" in host.refused("host", "stop", "one")
    assert host.said("host", "stop", id) == f"{id}\n"


def test_how_a_cli_has_ended_is_shown(host: Commands) -> None:
    host.serve()
    id = host.create(call="c1", stderr="no more disk\n", exit=3)
    with host.start("host", "logs", "-f", id) as following:
        out, _ = following.communicate(timeout=SECONDS)
    said = out.decode().splitlines()[-1]
    in_order(said, "! the CLI ended with exit code 3; ", "1 tool calls without a result were perhaps done")
    assert "no more disk" in said


def test_a_program_that_cannot_be_run_is_named_with_the_reason(
    host: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(program: str) -> str:
        return host.refused("host", "run", "--", program)

    host.serve()
    monkeypatch.chdir(tmp_path)
    agent = tmp_path / "agent.py"
    agent.write_text("")
    assert "'no-such-cli' cannot be run: there is no such program" in refused("no-such-cli")
    assert "cannot be run: it is a folder" in refused(os.fspath(host.folder))
    assert "'agent.py' cannot be run: it is not executable" in refused("agent.py")
    agent.chmod(0o700)
    assert "'agent.py' cannot be run: it is not in PATH; say ./agent.py" in refused("agent.py")


def test_the_log_of_the_supervisor_tells_what_it_did(host: Commands) -> None:
    pid = host.serve()
    id = host.create()
    said = host.said("host", "logs")
    in_order(said, f" started pid={pid} sessions=0\n", f" process-started session={id} pid=")
    events = [json.loads(line)["event"] for line in host.said("host", "logs", "--json").splitlines()]
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
