"""If a client, a CLI, the disk or a descriptor fails, the supervisor reports it clearly and serves the others."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from claude_wire_kit.supervisor import child as children
from claude_wire_kit.supervisor import connection as connections
from claude_wire_kit.supervisor import managed_session as managed_sessions
from claude_wire_kit.supervisor.disk import parts
from supervisors import SECONDS, Client, RunningDaemon, hosting, limits

#: The line with which a shell script, in the role of the CLI, answers ``initialize``.
ANSWER = (
    '{"type":"control_response","response":'
    '{"subtype":"success","request_id":"claude_wire_supervisor_initialize","response":{}}}'
)


class SlowClient:
    """A client that reads only on request, so that the supervisor has to keep unread lines."""

    def __init__(self, supervisor: RunningDaemon) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        self.socket.connect(supervisor.folder.socket)
        self.loop = asyncio.get_running_loop()
        self.kept = b""

    async def send(self, *messages: Any) -> None:
        await self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def send_bytes(self, data: bytes) -> None:
        await asyncio.wait_for(self.loop.sock_sendall(self.socket, data), SECONDS)

    async def lines(self, count: int | None = None) -> list[Any]:
        """Return the next `count` lines, or all lines until the connection ends."""
        data = bytearray(self.kept)
        found = data.count(b"\n")
        while count is None or found < count:
            more = await asyncio.wait_for(self.loop.sock_recv(self.socket, 1 << 20), SECONDS)
            if not more:
                break
            data += more
            found += more.count(b"\n")
        lines = data.splitlines(keepends=True)
        self.kept = b"".join(lines[count:]) if count is not None else b""
        return [json.loads(line) for line in (lines if count is None else lines[:count])]


@asynccontextmanager
async def slow(supervisor: RunningDaemon) -> AsyncIterator[SlowClient]:
    client = SlowClient(supervisor)
    try:
        yield client
    finally:
        client.socket.close()


def script(text: str) -> list[str]:
    """Return the command of a fake CLI: a shell script that first answers ``initialize``."""
    return ["sh", "-c", f"read -r line; echo '{ANSWER}'; {text}"]


def logged(supervisor: RunningDaemon) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (supervisor.path / "log.ndjson").read_bytes().splitlines()]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until(condition: Any) -> None:
    with anyio.fail_after(SECONDS):
        while not condition():
            await anyio.sleep(0.002)


async def test_the_end_of_a_cli_is_told_behind_all_of_its_lines(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor, slow(supervisor) as client:
        lines = 'i=0; while [ $i -lt 20000 ]; do echo "{\\"n\\":$i}"; i=$((i+1)); done; echo done >&2; printf "{}"'
        await client.send({"create": supervisor.spec(argv=script(lines))})
        (managed,) = await started(supervisor)
        await until(lambda: not managed.runs)
        # The answer to `create` is already there when the CLI has ended. The lines follow when the client reads.
        got = await client.lines(1 + 1 + 20_000 + 1 + 2)
        cli = [line for line in got if not str(line.get("type")).startswith("supervisor_")]
        assert [line["n"] for line in cli[1:-1]] == list(range(20_000))
        assert cli[-1] == {}
        assert got[-1]["type"] == "supervisor_ended"
        assert got[-1]["stderr"] == "done\n"


async def started(supervisor: RunningDaemon) -> list[Any]:
    await until(lambda: supervisor.supervisor._sessions.running)
    return supervisor.supervisor._sessions.running


async def test_a_client_that_cannot_take_a_frame_lacks_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, answer = await supervisor.create()
        viewer = await supervisor.client()
        assert (await viewer.ask({"attach": answer["id"]}))["role"] == "viewer"
        (managed,) = supervisor.supervisor._sessions.running
        await until(lambda: len(managed.clients) == 2)
        drives = managed.driver
        (views,) = set(managed.clients) - {drives}
        # The driver's socket fails at the next lines. The viewer's socket takes only part of the frame about that.
        drives._client = Failing(drives._client, [OSError(errno.EPIPE, "gone")])
        views._client = Failing(views._client, [7] * 3)
        drives.managed.clients = Ordered([drives, views])
        driver.prompt("p1", lines=3)
        got = await viewer.until("result")
        assert [line["type"] for line in got if not line["type"].startswith("supervisor_")] == [
            "control_response",
            "system",
            *["assistant"] * 3,
            "result",
        ]


class Ordered(set[Any]):
    """A set of clients that iterates in a fixed order."""

    def __init__(self, clients: list[Any]) -> None:
        super().__init__(clients)
        self.order = clients

    def __iter__(self) -> Any:
        return iter([client for client in self.order if client in self])


class Failing:
    """A socket whose first sends fail or accept only a few bytes, as `faults` says."""

    def __init__(self, client: socket.socket, faults: list[Any]) -> None:
        self.client = client
        self.faults = faults

    def send(self, data: bytes) -> int:
        if not self.faults:
            return self.client.send(data)
        fault = self.faults.pop(0)
        if isinstance(fault, OSError):
            raise fault
        return self.client.send(data[:fault])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


async def test_commands_are_all_answered_of_a_client_that_reads_late(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor, slow(supervisor) as client:
        sends = asyncio.create_task(client.send(*[{"list": {}}] * 3_000))
        answers = await client.lines(3_000)
        await sends
        assert {answer["type"] for answer in answers} == {"supervisor_list"}


async def test_a_command_behind_a_stop_waits_for_its_answer(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        _, answer = await supervisor.create()
        client = await supervisor.client()
        client.send({"stop": answer["id"]}, {"attach": "unknown"})
        assert (await client.get())["type"] == "supervisor_list"
        assert (await client.get())["error"] == "unknown"


@pytest.mark.parametrize("attached", [False, True])
async def test_a_line_without_an_end_is_refused_in_bounded_memory(
    tmp_path: Path, attached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        _, answer = await supervisor.create()
        async with slow(supervisor) as client:
            if attached:
                await client.send({"attach": answer["id"]}, {"type": "keep_alive"})
            await client.lines(3 if attached else 0)
            with suppress(ConnectionError):  # the supervisor may refuse the line before all of it is sent
                await client.send_bytes(b"x" * (connections.MAX_LINE_BYTES + 1024 * 1024) + b"\n")
            told = (await client.lines())[-1]
            assert "at most 67,108,864 are taken" in told["reason" if attached else "message"]
            assert told.get("line", told.get("error")) == (2 if attached else "command")
        assert len((await (await supervisor.client()).ask({"list": {}}))["sessions"]) == 1


async def test_more_clients_than_are_taken_are_all_told(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h", limits=limits(connections=100)) as supervisor:
        before = descriptors()
        clients = []
        for _ in range(300):
            clients.append(SlowClient(supervisor))
            await asyncio.sleep(0)
        for client in clients[100:]:
            assert (await client.lines())[0]["error"] == "refused"
        for client in clients:
            client.socket.close()
        await until(lambda: descriptors() == before)
        assert (await (await supervisor.client()).ask({"list": {}}))["sessions"] == []


async def test_what_is_wrong_with_a_new_session_is_told_and_starts_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        for wrong in ({"initialize": {"hooks": 5}}, {"argv": ["sh", "-c", "x\ud800"]}):
            assert (await client.ask({"create": supervisor.spec(**wrong)}))["error"] == "command"
        after = {"id": "x", "epoch": 1, "line": 0}
        assert (await client.ask({"create": supervisor.spec(), "after": after}))["error"] == "command"
        assert (await client.ask({"list": {}}))["sessions"] == []
        assert not os.listdir(tmp_path / "h" / "sessions")
        _, answer = await supervisor.create()
        await client.ask({"stop": answer["id"]})
        last = {"id": answer["id"], "epoch": 1, "line": 99}
        assert (await client.ask({"resume": answer["id"], "after": last}))["error"] == "epoch"
        assert supervisor.supervisor._sessions.running == []


async def test_a_known_line_is_accepted_of_a_cli_that_has_ended(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        client.prompt("p1", exit=3)
        await client.until("supervisor_ended")
        again = await supervisor.client()
        attached = await again.ask({"attach": answer["id"], "role": "driver", "take": True})
        for _ in range(attached["line"]):
            await again.get()
        again.prompt("p1", exit=3)
        assert await again.get() == {"type": "supervisor_accepted", "lines": 1}
        again.prompt("p2")
        assert "the CLI has ended" in (await again.get())["reason"]


async def test_a_question_of_a_resumed_cli_may_have_the_id_of_an_earlier_one(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        client.prompt("p1", ask="q1")
        await client.until("control_request")
        client.send(response("q1"))
        await client.until("result")
        await (await supervisor.client()).ask({"stop": answer["id"]})
        again = await supervisor.client()
        await again.ask({"resume": answer["id"], "role": "driver", "take": True})
        again.prompt("p2", ask="q1")
        await again.until("result")
        await again.until("control_request")
        again.send(response("q1"))
        await again.until("result")


def response(id: str) -> dict[str, Any]:
    return {"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": {}}}


async def test_a_second_stop_is_as_hasty_as_it_says(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        stubborn = [
            sys.executable,
            "-c",
            "import signal,time\nsignal.signal(15, signal.SIG_IGN)\nprint(1)\ntime.sleep(999)",
        ]
        session = await client.ask({"create": supervisor.spec(argv=stubborn), "detach": True})
        other = await supervisor.client()
        other.send({"stop": session["id"], "grace": 86_400})
        assert (await client.ask({"stop": session["id"], "grace": 0}))["sessions"][0]["life"] == "ended"
        assert (await other.get())["sessions"][0]["life"] == "ended"


async def test_no_cli_is_started_while_the_supervisor_ends(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        stays = [sys.executable, "-c", "import time; time.sleep(999)"]
        await client.ask({"create": supervisor.spec(argv=stays), "detach": True})
        supervisor.supervisor._stop_all(0.2)
        refused = await client.ask({"create": supervisor.spec(), "detach": True})
        assert "the supervisor is ending" in refused["message"]
        await asyncio.wait_for(supervisor.task, SECONDS)


async def test_a_cli_that_reads_nothing_holds_up_its_driver_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.daemon.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor, slow(supervisor) as driver, slow(supervisor) as second:
        reads_late = f"echo '{ANSWER}'; read -r go < {tmp_path}/go; cat > /dev/null"
        os.mkfifo(tmp_path / "go")
        await driver.send({"create": supervisor.spec(argv=["sh", "-c", reads_late]), "role": "driver"})
        answer, _ = await driver.lines(2)
        (managed,) = supervisor.supervisor._sessions.running
        prompts = [prompt(f"p{n}", "x" * 100_000) for n in range(40)]
        sends = asyncio.create_task(driver.send(*prompts))
        await until(lambda: managed.waits_for(managed.driver))
        # The second client becomes the driver. The first one is now a viewer, so its further lines are refused.
        await second.send({"attach": answer["id"], "role": "driver", "take": True})
        assert (await second.lines(1))[0]["role"] == "driver"
        await sends
        told = await driver.lines(1 + len(prompts))
        assert told[-1]["line"] == len(prompts)
        assert told[-1]["type"] == "supervisor_refused"
        accepted = sum(line["type"] == "supervisor_accepted" for line in told)
        # The second driver is held up as well, but the supervisor still notices that it disconnects.
        await second.send(prompt("q"))
        await until(lambda: not managed.driver._reads)
        second.socket.close()
        await until(lambda: managed.driver is None)
        async with await anyio.open_file(tmp_path / "go", "w") as go:
            await go.write("go\n")
        managed.stop(SECONDS)
        await until(lambda: not managed.runs)
        sent = (tmp_path / "h/sessions" / answer["id"] / "parts/000001/stdin.ndjson").read_bytes()
        assert sent.count(b'"type": "user"') == accepted


def prompt(uuid: str, text: str = "hi") -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


async def test_without_descriptors_everybody_is_told_and_it_goes_on_with_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.daemon.ACCEPT_AGAIN_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor:
        client, waits = await supervisor.client(), []
        assert (await client.ask({"list": {}}))["sessions"] == []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        before = descriptors()
        late = socket.socket(socket.AF_UNIX)
        late.setblocking(False)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (1 + before, hard))
            with suppress(OSError):
                while True:
                    waits.append(os.open(os.devnull, os.O_RDONLY))
            late.connect(supervisor.folder.socket)
            loop = asyncio.get_running_loop()
            refused = json.loads(await asyncio.wait_for(loop.sock_recv(late, 1 << 16), SECONDS))
            assert refused["error"] == "limit"
            assert "no descriptor left" in refused["message"]
            for room in range(12):
                answer = await client.ask({"create": supervisor.spec(), "detach": True})
                assert answer.get("error") in ("system", "start"), (room, answer)
                assert supervisor.supervisor._sessions.running == []
                resource.setrlimit(resource.RLIMIT_NOFILE, (2 + before + room, hard))
                if room > 3:
                    break
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            late.close()
            for descriptor in waits:
                os.close(descriptor)
        assert os.listdir(supervisor.path / "sessions") == []
        driver, _ = await supervisor.create()
        driver.prompt("p1")
        await driver.until("result")


async def test_a_cli_may_have_as_many_descriptors_as_its_supervisor_was_given(tmp_path: Path) -> None:
    given = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(given[0], given[1] - 1, 700), given[1]))
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with hosting(tmp_path / "h") as supervisor:
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (given[1], given[1])
            client = await supervisor.client()
            argv = script('printf \'{"soft":"%s","hard":"%s"}\\n\' "$(ulimit -Sn)" "$(ulimit -Hn)"')
            await client.ask({"create": supervisor.spec(argv=argv)})
            assert (await client.get())["type"] == "control_response"
            said = await client.get()
            assert [said["soft"], said["hard"]] == [str(limit) for limit in before]
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, given)


async def test_a_cli_without_a_pidfd_is_not_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        before, children_before = descriptors(), own_children()
        for name in ("pidfd_open",):
            with monkeypatch.context() as patch:
                patch.setattr(children.os, name, no_descriptor)
                answer = await client.ask({"create": supervisor.spec(), "detach": True})
            assert answer["error"] == "start"
            assert "Too many open files" in answer["message"]
        with monkeypatch.context() as patch:
            patch.setattr(children, "began_at", lambda _pid: None)
            assert (await client.ask({"create": supervisor.spec(), "detach": True}))["error"] == "start"
        assert descriptors() == before
        assert own_children() <= children_before  # a process that was not waited for would be a new child


def own_children() -> set[str]:
    """The child processes of this process, including zombies."""
    return {id for file in Path("/proc/self/task").glob("*/children") for id in file.read_text().split()}


def no_descriptor(*_: Any) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_a_session_on_a_full_disk_waits_is_told_of_and_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed_sessions, "RETRY_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        write = os.write
        journals = f"/sessions/{answer['id']}/"

        def full_for(name: str) -> Callable[[int, bytes], int]:
            def full(descriptor: int, data: bytes) -> int:
                path = os.readlink(f"/proc/self/fd/{descriptor}")
                if journals in path and path.endswith(name):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return write(descriptor, data)

            return full

        full = full_for("")
        with monkeypatch.context() as patch:
            patch.setattr(parts.os, "write", full_for("stdout.ndjson"))
            client.prompt("p1", lines=100)
            blocked = (await client.until("supervisor_blocked"))[-1]
            assert "No space left" in blocked["message"]
            patch.setattr(parts.os, "write", full)
            client.prompt("p2")
            refused = (await client.until("supervisor_refused"))[-1]
            assert "No space left" in refused["reason"]
            late = await supervisor.client()
            attached = await late.ask({"attach": answer["id"]})
            for _ in range(attached["line"]):
                await late.get()
        assert (await client.until("supervisor_blocked"))[-1]["message"] == ""
        await client.until("result")
        await late.until("result")
        client.prompt("p3", lines=50)
        await client.get()
        with monkeypatch.context() as patch:
            patch.setattr(parts.os, "write", full)
            stopped = await (await supervisor.client()).ask({"stop": answer["id"], "grace": 0.05})
        assert stopped["sessions"][0]["life"] == "ended"
        await client.until("supervisor_ended")


async def test_what_a_cli_leaves_in_its_pipes_is_a_line_and_its_end_is_noticed(tmp_path: Path) -> None:
    """A grandchild holds the pipes open, the last line has no newline, and standard error exceeds its bound."""
    async with hosting(tmp_path / "h") as supervisor:
        flood = "head -c 3000000 /dev/zero | tr '\\0' 'e' >&2"
        last = '{"type":"result","subtype":"success","is_error":false,"user_message_uuids":["p1"]}'
        argv = script(f"{flood}; sleep 999 & printf '%s' '{last}'")
        client = await supervisor.client()
        answer = await client.ask({"create": supervisor.spec(argv=argv), "role": "driver"})
        client.prompt("p1")
        lines = await client.until("supervisor_ended")
        assert [line for line in lines if not str(line.get("type")).startswith("supervisor_")][-1]["type"] == "result"
        assert lines[-1]["unfinished"] == ""
        assert lines[-1]["stderr"] == "e" * managed_sessions.TAIL_BYTES
        errors = tmp_path / "h/sessions" / answer["id"] / "parts/000001/stderr.txt"
        assert errors.stat().st_size == parts.STDERR_BYTES


async def test_a_damaged_session_keeps_no_other_from_being_there(tmp_path: Path) -> None:
    folder = tmp_path / "h" / "sessions"
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        ids = [(await client.ask({"create": supervisor.spec(), "detach": True}))["id"] for _ in range(8)]
    await asyncio.to_thread(damage, folder, ids)
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        listed = (await client.ask({"list": {}}))["sessions"]
        assert sorted(session["id"] for session in listed) == sorted([ids[0], ids[6]])
        assert (await client.ask({"attach": ids[6]}))["error"] == "system"
        assert not (folder / f"{ids[7]}.removed").exists()
        assert not (folder / "begun").exists()
        unreadable = {line["session"] for line in logged(supervisor) if line["event"] == "unreadable"}
        assert unreadable == {*ids[1:6], "file", "link"}


def damage(folder: Path, ids: list[str]) -> None:
    (folder / ids[1] / "session.json").write_bytes(b"{")
    (folder / ids[2] / "session.json").unlink()
    os.mkfifo(folder / ids[2] / "session.json")
    (folder / ids[3] / "parts/000001/part.json").write_bytes(b"[]")
    (folder / ids[4]).chmod(0o777)
    (folder / ids[5] / "session.json").write_bytes((folder / ids[0] / "session.json").read_bytes())
    record = json.loads((folder / ids[6] / "session.json").read_bytes())
    record["runs"] = False
    (folder / ids[6] / "session.json").write_text(json.dumps(record))
    (folder / ids[6] / "parts/000001/part.json").write_bytes(b"[]")
    (folder / ids[7]).rename(folder / f"{ids[7]}.removed")
    (folder / "begun" / "parts").mkdir(parents=True)
    (folder / "file").write_bytes(b"")
    (folder / "link").symlink_to(folder / ids[0])


async def test_lines_behind_the_end_that_a_loss_of_power_has_taken_change_the_epoch(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, answer = await supervisor.create()
        client.prompt("p1", lines=10)
        await client.until("result")
        await (await supervisor.client()).ask({"stop": answer["id"]})
    output = tmp_path / "h/sessions" / answer["id"] / "parts/000001/stdout.ndjson"
    kept = b"".join(output.read_bytes().splitlines(keepends=True)[:5])
    output.write_bytes(kept)
    async with hosting(tmp_path / "h") as supervisor:
        again = await supervisor.client()
        cursor = {"id": answer["id"], "epoch": 1, "line": 4}
        refused = await again.ask({"attach": answer["id"], "after": cursor})
        assert (refused["error"], refused["line"]) == ("epoch", 5)
        assert (await again.ask({"attach": answer["id"]}))["epoch"] == 2


async def test_a_ready_cli_that_is_not_wanted_any_more_is_given_to_nobody(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client = await supervisor.client()
        spec = supervisor.spec()
        await client.ask({"prewarm": spec, "count": 1})
        (ready,) = supervisor.supervisor._sessions.running
        await until(lambda: ready.life.value == "idle")
        client.send({"prewarm": spec, "count": 0}, {"create": spec, "detach": True})
        await client.get()
        assert (await client.get())["pid"] != ready.pid


async def test_an_error_that_nobody_expects_is_answered_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        client, _ = await supervisor.create()
        other: Client = await supervisor.client()
        (managed,) = supervisor.supervisor._sessions.running
        with monkeypatch.context() as patch:
            patch.setattr(supervisor.supervisor, "_listed", lambda: 1 / 0)
            assert "ZeroDivisionError" in (await other.ask({"list": {}}))["message"]
            patch.setattr(type(managed.ledger), "received", lambda *_: 1 / 0)
            client.prompt("p1")
            await client.until("result")
        client.prompt("p2")
        await client.until("result")
        assert {line["error"] for line in logged(supervisor) if line["event"] == "error"} == {"ZeroDivisionError"}


async def test_a_session_whose_order_cannot_be_written_tries_no_more_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: parts.Part) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with hosting(tmp_path / "h") as supervisor:
        waits = f"while ! [ -e '{tmp_path}/go' ]; do sleep 0.01; done"
        lines = "i=0; while [ $i -lt 100 ]; do echo '{}'; i=$((i+1)); done; printf '{}'"
        argv = script(f"trap '' TERM; {waits}; {lines}; exec sleep 999")
        client, answer = await supervisor.create(argv=argv)
        (managed,) = supervisor.supervisor._sessions.running
        monkeypatch.setattr(parts.Part, "add_order", full)
        (tmp_path / "go").touch()
        got = await client.until("supervisor_blocked")
        await (await supervisor.client()).ask({"stop": answer["id"], "grace": 0})
        got += await client.until("supervisor_ended")
        frames = [line["type"] for line in got if "type" in line]
        assert frames == ["supervisor_blocked", "supervisor_ended"]
        assert managed._retry is None


async def test_a_journal_that_somebody_makes_shorter_ends_the_client_that_reads_it(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, answer = await supervisor.create()
        slow = socket.socket(socket.AF_UNIX)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(supervisor.folder.socket)
        with slow:
            slow.sendall(json.dumps({"attach": answer["id"]}).encode() + b"\n")
            driver.prompt("p1", lines=20_000)
            await driver.until("result")
            os.truncate(supervisor.path / "sessions" / answer["id"] / "parts" / "000001" / "stdout.ndjson", 1000)
            slow.settimeout(SECONDS)
            while await asyncio.to_thread(slow.recv, 1 << 16):
                pass
        log = (supervisor.path / "log.ndjson").read_text()
        assert '"journal-damaged"' in log
        refused = await (await supervisor.client()).ask({"attach": answer["id"]})
        assert (refused["error"], "somebody has changed its files" in refused["message"]) == ("system", True)


async def test_nobody_gets_what_somebody_has_added_to_a_journal(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, answer = await supervisor.create()
        with open(supervisor.path / "sessions" / answer["id"] / "parts" / "000001" / "stdout.ndjson", "ab") as file:
            file.write(b'{"type":"added"}\n')
        driver.prompt("p1")
        assert "added" not in [line["type"] for line in await driver.until("result")]
        refused = await (await supervisor.client()).ask({"attach": answer["id"]})
        assert (refused["error"], "somebody has changed its files" in refused["message"]) == ("system", True)
        assert '"journal-damaged"' in (supervisor.path / "log.ndjson").read_text()


@pytest.mark.parametrize("names", [["socket"], ["supervisor.json"], ["socket", "supervisor.json", "lock"]], ids=str)
async def test_a_supervisor_whose_files_were_removed_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.daemon.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor:
        driver, answer = await supervisor.create()
        for name in names:
            os.unlink(supervisor.path / name)
        while supervisor.folder.is_lost:
            await asyncio.sleep(0)
        assert supervisor.folder.supervision() is not None
        assert os.stat(supervisor.folder.socket).st_mode & 0o777 == 0o600
        assert (await (await supervisor.client()).ask({"attach": answer["id"]}))["driver"]
        driver.prompt("p1")
        assert await driver.until("result")


async def test_a_supervisor_whose_folder_was_removed_makes_nothing_in_that_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.daemon.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as supervisor:
        os.rename(tmp_path / "h", tmp_path / "removed")
        os.mkdir(tmp_path / "h", 0o700)
        ticks = supervisor.supervisor._loop.time() + 0.1
        while supervisor.supervisor._loop.time() < ticks:
            await asyncio.sleep(0.01)
        assert os.listdir(tmp_path / "h") == []
        os.rmdir(tmp_path / "h")
        os.rename(tmp_path / "removed", tmp_path / "h")
