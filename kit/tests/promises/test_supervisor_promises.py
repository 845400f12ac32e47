"""A supervisor keeps each promise of the table in docs/supervisor.md, even if processes die.

The name of a test begins with its row: output, answers, input, journal, processes or restart.
"""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("a supervisor needs Linux", allow_module_level=True)
pytest.importorskip("click")
pytest.importorskip("rich")

import host_agent
from claude_wire.testing import Recording
from claude_wire_kit.supervisor.child import began_at, is_alive
from folders import ROOT
from supervised import SECONDS, Commands, Talker, answered, journal, prompt


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "h") as commands:
        commands.supervisor = commands.serve()
        yield commands


def cursor(answer: Any, line: int) -> dict[str, Any]:
    return {"id": answer["id"], "epoch": answer["epoch"], "line": line}


def kill(supervisor: Commands) -> None:
    """Kill the supervisor, and wait until it is gone."""
    watched = os.pidfd_open(supervisor.supervisor)
    os.kill(supervisor.supervisor, signal.SIGKILL)
    gone(watched)


def gone(watched: int) -> None:
    """Wait until the process of a pidfd has ended."""
    try:
        assert select.select([watched], [], [], SECONDS)[0]
    finally:
        os.close(watched)


def session(supervisor: Commands) -> dict[str, Any]:
    (found,) = supervisor.sessions()
    return found


def test_each_row_of_the_table_has_a_test() -> None:
    table = (ROOT / "docs" / "supervisor.md").read_text(encoding="utf-8").partition("## Promises")[2].partition("##")[0]
    promised = re.findall(r"^\| (\w+) \|", table, re.M)
    assert promised == ["output", "answers", "input", "journal", "processes", "restart"]
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_")}
    assert set(promised) <= tested


# --- output -----------------------------------------------------------------------------------------------------------


def test_output_of_which_a_client_has_seen_a_part_comes_from_there_on_each_line_once(supervisor: Commands) -> None:
    id = supervisor.create(lines=1000)
    chance = random.Random(1)
    seen: list[bytes] = []
    after = None
    while len(seen) < 1004:  # the initialize answer, the prompt, init, 1000 lines, the result
        with Talker(supervisor.folder) as client:
            answer = client.drive(id, after)
            assert answer["after"] == len(seen)
            wanted = chance.randrange(200)
            while len(client.lines) < wanted and len(seen) + len(client.lines) < 1004:
                client.line()
            seen += client.lines
            after = cursor(answer, len(seen))
    assert b"".join(seen) == journal(supervisor.folder, id, "stdout.ndjson")


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_answers_of_two_clients_to_one_question_give_one_answer_the_first_that_is_complete(
    supervisor: Commands, cut: int
) -> None:
    id = supervisor.create()
    with Talker(supervisor.folder) as first:
        first.drive(id)
        first.send(prompt("p1", ask="q1"))
        assert first.until("control_request")["request_id"] == "q1"
        first.send(answered("q1", behavior="allow", by="first"), cut=cut)
        if not cut:
            assert first.until("supervisor_accepted")["lines"] == 2
    with Talker(supervisor.folder) as second:
        answer = second.drive(id)
        assert [question["request_id"] for question in answer["open"]] == (["q1"] if cut else [])
        second.send(answered("q1", behavior="deny", by="second"))
        assert second.until("supervisor_accepted")["lines"] == 1
        again = second.ask({"type": "supervisor_end_input"})
        while again["type"] != "supervisor_ended":
            again = second.get()
    written = [json.loads(line) for line in journal(supervisor.folder, id, "stdin.ndjson").splitlines()]
    given = [line["response"]["response"]["by"] for line in written if line["type"] == "control_response"]
    assert given == (["second"] if cut else ["first"])


def test_answers_that_nobody_gave_are_reported_when_the_cli_ends(supervisor: Commands) -> None:
    id = supervisor.create(ask="q1")
    with Talker(supervisor.folder) as viewer:
        viewer.ask({"attach": id})
        viewer.until("control_request")
        supervisor.said("supervisor", "stop", id, "--grace", "0")
        assert viewer.until("supervisor_ended")["died"] == ["q1"]


# --- input ------------------------------------------------------------------------------------------------------------


def test_input_counts_with_its_line_feed_and_is_acknowledged_with_its_number(supervisor: Commands) -> None:
    id = supervisor.create()
    with Talker(supervisor.folder) as client:
        client.drive(id)
        client.send(prompt("p1"), prompt("p2"))
        numbers = []
        while len(numbers) < 2:
            numbers.append(client.until("supervisor_accepted")["lines"])
        assert numbers == [1, 2]
        client.send(prompt("p3"), cut=1)
    with Talker(supervisor.folder) as client:
        client.drive(id)
        for uuid in ("p2", "p3"):  # p2 was acknowledged, p3 was not
            client.send(prompt(uuid))
        client.send(prompt(None))
        assert "needs a uuid" in client.until("supervisor_refused")["reason"]
        client.send({"type": "supervisor_end_input"})
        client.until("supervisor_ended")
    written = [json.loads(line) for line in journal(supervisor.folder, id, "stdin.ndjson").splitlines()]
    assert [line["uuid"] for line in written if line["type"] == "user"] == ["p1", "p2", "p3"]


# --- journal ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_journal_has_every_line_that_a_client_has_seen_after_the_supervisor_was_killed(
    supervisor: Commands, seed: int
) -> None:
    id = supervisor.create(lines=4000, hang=True)
    with Talker(supervisor.folder) as client:
        client.ask({"attach": id})
        for _ in range(random.Random(seed).randrange(3000)):
            client.line()
        kill(supervisor)
        while client.line():  # read the lines that were already sent
            pass
        seen = b"".join(client.lines)
    kept = journal(supervisor.folder, id, "stdout.ndjson")
    assert kept.startswith(seen)
    part = supervisor.folder / "sessions" / id / "parts" / "000001"
    assert Recording.load(part).stdout == kept


# --- processes --------------------------------------------------------------------------------------------------------


def test_processes_end_with_their_supervisor_and_calls_without_a_result_are_reported(supervisor: Commands) -> None:
    id = supervisor.create(call="c1", hang=True)
    with Talker(supervisor.folder) as client:
        client.ask({"attach": id})
        client.until("assistant")
        client.until("assistant")
        pid = session(supervisor)["pid"]
        began, watched = began_at(pid), os.pidfd_open(pid)
        kill(supervisor)
    gone(watched)
    assert not is_alive(pid, began)
    supervisor.serve()
    found = session(supervisor)
    assert (found["life"], found["pid"]) == ("lost", None)
    with Talker(supervisor.folder) as client:
        ended = client.ask({"attach": id})["ended"]
        assert (ended["exit_code"], ended["calls"]) == (None, ["c1"])


def test_processes_that_write_one_session_are_never_two(supervisor: Commands) -> None:
    id = supervisor.create()
    with Talker(supervisor.folder) as client:
        assert client.ask({"resume": id, "detach": True})["error"] == "running"
    with Talker(supervisor.folder) as client:
        client.ask({"stop": id})
        assert client.ask({"resume": id, "detach": True})["type"] == "supervisor_session"
        assert client.ask({"resume": id, "detach": True})["error"] == "running"
    code, _, err = supervisor.run("supervisor", "start", "--foreground")
    assert code == 2
    assert f"another supervisor (pid {supervisor.supervisor}) runs the folder" in err


# --- restart ----------------------------------------------------------------------------------------------------------


def test_restart_resumes_what_is_asked_for_and_reports_a_turn_that_was_cut(supervisor: Commands) -> None:
    id = supervisor.create()
    with Talker(supervisor.folder) as client:
        answer = client.drive(id)
        client.send(prompt("p1", hang=True))
        client.until("assistant")
        kill(supervisor)
    supervisor.serve()
    assert session(supervisor)["life"] == "lost"
    before = journal(supervisor.folder, id, "stdin.ndjson")
    with Talker(supervisor.folder) as client:
        ended = client.ask({"attach": id, "after": cursor(answer, 1)})["ended"]
        assert ended["owed"] == ["p1"]
        assert ended["unfinished"]
    with Talker(supervisor.folder) as client:
        assert client.ask({"resume": id})["error"] == "environment"  # the supervisor keeps no environment on disk
        resumed = client.ask({"resume": id, "env": dict(os.environ), "role": "driver"})
        assert resumed["owed"] == []
        client.send(prompt("p1", hang=True), prompt("p2"))
        assert client.until("result")["user_message_uuids"] == ["p2"]
    written = [json.loads(line) for line in journal(supervisor.folder, id, "stdin.ndjson")[len(before) :].splitlines()]
    assert [line.get("uuid") for line in written] == [None, "p2"]  # initialize and the new prompt
    assert written[0]["request"]["subtype"] == "initialize"


# --- secrets ----------------------------------------------------------------------------------------------------------

SECRETS = {name: f"secret-{name}-5f1d" for name in ("prompt", "env", "argv", "stderr", "name", "initialize", "answer")}


def test_the_log_has_no_content_and_the_environment_is_nowhere(supervisor: Commands) -> None:
    spec = {
        "argv": [sys.executable, "-B", host_agent.__file__, SECRETS["argv"]],
        "cwd": os.fspath(supervisor.folder),
        "env": {**os.environ, "TOKEN": SECRETS["env"]},
        "initialize": {"appendSystemPrompt": SECRETS["initialize"]},
        "name": SECRETS["name"],
    }
    with Talker(supervisor.folder) as client:
        refused = {**spec, "argv": [f"/no/{SECRETS['argv']}"]}
        assert client.ask({"create": refused})["error"] == "start"
        assert client.ask({"create": spec, SECRETS["name"]: 1})["error"] == "command"
        id = client.ask({"create": spec, "role": "driver"})["id"]
        client.send(prompt("p1", secret=SECRETS["prompt"], ask="q1", stderr=SECRETS["stderr"]))
        client.until("control_request")
        client.send({"type": SECRETS["prompt"]}, SECRETS["prompt"], answered("q1", message=SECRETS["answer"]))
        assert "is not a message" in client.until("supervisor_refused")["reason"]
        client.until("result")
        client.send(prompt("p2", exit=3))
        client.until("supervisor_ended")
    supervisor.said("supervisor", "stop", "--all")
    files = {path: path.read_bytes() for path in supervisor.folder.rglob("*") if path.is_file()}
    log = files[supervisor.folder / "log.ndjson"].decode()
    assert [secret for secret in SECRETS.values() if secret in log] == []
    assert {json.loads(line)["event"] for line in log.splitlines()} >= {"started", "process-started", "process-ended"}
    assert [path for path, data in files.items() if SECRETS["env"].encode() in data] == []
    assert SECRETS["answer"].encode() in journal(supervisor.folder, id, "stdin.ndjson")
