"""A supervisor starts after another one was killed. It reports what may be lost, and ends the leftover processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from children import wait_until
from claude_wire_kit.supervisor import sessions
from claude_wire_kit.supervisor.child import MARK_VARIABLE, Child, began_at, is_alive
from supervisors import RunningDaemon, hosting


async def cut_off(supervisor: RunningDaemon) -> Any:
    """Create a session whose supervisor then dies without a shutdown. Return the answer to the create command."""
    client, answer = await supervisor.create()
    client.prompt("p1", ask="q1")
    await client.until("control_request")
    await supervisor.end()
    return answer


def session_file(supervisor: RunningDaemon, answer: Any) -> Path:
    return supervisor.path / "sessions" / answer["id"] / "session.json"


@pytest.mark.parametrize(("syncs", "epoch"), [(False, 2), (True, 1)])
async def test_after_a_loss_of_power_the_epoch_is_another_one_unless_each_line_was_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: bool, epoch: int
) -> None:
    async with hosting(tmp_path / "h", syncs=syncs) as supervisor:
        answer = await cut_off(supervisor)
        monkeypatch.setattr(sessions, "boot_id", lambda: "another boot")
        await supervisor.start()
        client = await supervisor.client()
        (session,) = (await client.ask({"list": {}}))["sessions"]
        assert session["epoch"] == epoch
        reply = await client.ask({"attach": answer["id"], "after": {"id": answer["id"], "epoch": 1, "line": 2}})
        if syncs:
            assert reply["type"] == "supervisor_attached"
        else:
            assert (reply["error"], reply["line"]) == ("epoch", session["line"])


async def test_after_the_death_of_the_supervisor_alone_the_epoch_stays(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        await supervisor.start()
        client = await supervisor.client()
        reply = await client.ask({"attach": answer["id"], "after": {"id": answer["id"], "epoch": 1, "line": 2}})
        assert (reply["type"], reply["epoch"], reply["after"]) == ("supervisor_attached", 1, 2)


async def test_a_line_that_was_cut_off_is_a_line_of_its_own_and_numbers_go_on(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        output = session_file(supervisor, answer).parent / "parts" / "000001" / "stdout.ndjson"
        with output.open("ab") as file:
            file.write(b'{"type":"assis')
        await supervisor.start()
        client = await supervisor.client()
        reply = await client.ask({"attach": answer["id"], "after": {"id": answer["id"], "epoch": 1, "line": 4}})
        assert reply["line"] == 5
        assert await client.reader.readline() == b'{"type":"assis\n'


async def test_an_answer_whose_writing_was_cut_off_does_not_count(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        sent = session_file(supervisor, answer).parent / "parts" / "000001" / "stdin.ndjson"
        line = b'{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{}}}\n'
        with sent.open("ab") as file:
            file.write(line[:-1])
        await supervisor.start()
        ended = (await (await supervisor.client()).ask({"attach": answer["id"]}))["ended"]
        assert ended["died"] == ["q1"], "what has no line feed was never counted"
        assert not sent.read_bytes().endswith(line[:-1])


async def test_a_cli_that_has_outlived_its_supervisor_is_ended_first(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as leftover:
        async with hosting(tmp_path / "h") as supervisor:
            answer = await cut_off(supervisor)
            part = session_file(supervisor, answer).parent / "parts" / "000001" / "part.json"
            info = json.loads(part.read_bytes())
            part.write_bytes(json.dumps({**info, "pid": leftover.pid, "pid_began": began_at(leftover.pid)}).encode())
            await supervisor.start()
            assert leftover.wait(30) == -9
            log = (supervisor.path / "log.ndjson").read_text()
            assert '"leftover-ended"' in log


async def test_another_process_with_the_pid_of_a_cli_is_left_alone(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        part = session_file(supervisor, answer).parent / "parts" / "000001" / "part.json"
        info = json.loads(part.read_bytes())
        with subprocess.Popen(["sleep", "1000"], start_new_session=True) as other:
            try:
                part.write_bytes(json.dumps({**info, "pid": other.pid}).encode())
                await supervisor.start()
                assert other.poll() is None
            finally:
                other.kill()


@pytest.mark.parametrize("damage", ["session.json", "part.json", "folder"])
async def test_a_damaged_session_is_told_in_the_log_and_the_others_are_there(tmp_path: Path, damage: str) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        _, whole = await supervisor.create(name="whole")
        answer = await cut_off(supervisor)
        path = session_file(supervisor, answer)
        if damage == "session.json":
            path.write_bytes(b"{")
        elif damage == "part.json":
            (path.parent / "parts" / "000001" / "part.json").write_bytes(b"{}")
        else:
            os.rename(path.parent, tmp_path / "away")
            path.parent.symlink_to(tmp_path / "away")
        await supervisor.start()
        listed = (await (await supervisor.client()).ask({"list": {}}))["sessions"]
        assert [session["id"] for session in listed] == [whole["id"]]
        assert '"unreadable"' in (supervisor.path / "log.ndjson").read_text()


async def test_a_session_whose_journal_has_lost_its_files_is_listed_and_cannot_be_attached_to(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        shutil.rmtree(session_file(supervisor, answer).parent / "parts" / "000001")
        await supervisor.start()
        client = await supervisor.client()
        (session,) = (await client.ask({"list": {}}))["sessions"]
        assert (session["id"], session["life"], session["line"]) == (answer["id"], "lost", 0)
        reply = await client.ask({"attach": answer["id"]})
        assert (reply["error"], "has lost its files" in reply["message"]) == ("system", True)


#: A program that starts a child in its session, prints the child's pid, and ends.
LEAVES_A_PROCESS = (
    "import subprocess; print(subprocess.Popen(['sleep', '1000'], stdin=-3, stdout=-3, stderr=-3).pid, flush=True)"
)


def left_behind(**environment: str) -> tuple[int, int]:
    """Create a session whose leader ends. Return the session id, and the pid of the process that remains in it."""
    command = [sys.executable, "-c", LEAVES_A_PROCESS]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, env={**os.environ, **environment}
    ) as leader:
        left, _ = leader.communicate(timeout=30)
    return leader.pid, int(left)


@pytest.mark.parametrize("marks", [{}, {MARK_VARIABLE: "another"}], ids=["no mark", "another mark"])
async def test_a_group_of_strangers_with_the_number_of_a_cli_is_left_alone(
    tmp_path: Path, marks: dict[str, str]
) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        part = session_file(supervisor, answer).parent / "parts" / "000001" / "part.json"
        group, stranger = left_behind(**marks)
        try:
            part.write_bytes(json.dumps({**json.loads(part.read_bytes()), "pid": group}).encode())
            await supervisor.start()
            assert is_alive(stranger, began_at(stranger))
            assert '"leftover-ended"' not in (supervisor.path / "log.ndjson").read_text()
        finally:
            os.kill(stranger, signal.SIGKILL)


async def test_what_a_cli_has_left_in_its_group_is_ended_by_its_mark(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        answer = await cut_off(supervisor)
        part = session_file(supervisor, answer).parent / "parts" / "000001" / "part.json"
        info = json.loads(part.read_bytes())
        group, left = left_behind(**{MARK_VARIABLE: info["mark"]})
        began = began_at(left)
        part.write_bytes(json.dumps({**info, "pid": group}).encode())
        await supervisor.start()
        wait_until(lambda: not is_alive(left, began))
        assert '"leftover-ended"' in (supervisor.path / "log.ndjson").read_text()


async def test_a_cli_that_somebody_else_has_reaped_gets_no_signal() -> None:
    child = Child(["true"], cwd="/", env={}, descriptors=64)
    os.waitpid(child.pid, 0)
    group, stranger = left_behind()
    child.pid = group  # simulates a reused pid
    try:
        child.signal(signal.SIGKILL)
        child.close()
        assert is_alive(stranger, began_at(stranger))
    finally:
        os.kill(stranger, signal.SIGKILL)
