"""A supervisor whose clients, CLIs, disk and descriptors fail: each gets a clear answer, and the rest goes on."""

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

from claude_wire.host import child as children
from claude_wire.host import connection as connections
from claude_wire.host import hosted as hosteds
from claude_wire.host.disk import parts
from hosts import SECONDS, Client, Host, hosting, limits

pytestmark = pytest.mark.anyio

#: An answer to ``initialize``, as the first line of a CLI that is a shell's script.
ANSWER = (
    '{"type":"control_response","response":'
    '{"subtype":"success","request_id":"claude_wire_host_initialize","response":{}}}'
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class SlowClient:
    """A client that reads only what it is told to, so that the rest stays with the supervisor."""

    def __init__(self, host: Host) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        self.socket.connect(host.folder.socket)
        self.loop = asyncio.get_running_loop()
        self.kept = b""

    async def send(self, *messages: Any) -> None:
        await self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def send_bytes(self, data: bytes) -> None:
        await asyncio.wait_for(self.loop.sock_sendall(self.socket, data), SECONDS)

    async def lines(self, count: int | None = None) -> list[Any]:
        """So many lines, or all up to the end of the connection."""
        data = self.kept
        while count is None or data.count(b"\n") < count:
            more = await asyncio.wait_for(self.loop.sock_recv(self.socket, 1 << 20), SECONDS)
            if not more:
                break
            data += more
        lines = data.splitlines(keepends=True)
        self.kept = b"".join(lines[count:]) if count is not None else b""
        return [json.loads(line) for line in (lines if count is None else lines[:count])]


@asynccontextmanager
async def slow(host: Host) -> AsyncIterator[SlowClient]:
    client = SlowClient(host)
    try:
        yield client
    finally:
        client.socket.close()


def script(text: str) -> list[str]:
    """A CLI that is a shell's script; it answers ``initialize`` first."""
    return ["sh", "-c", f"read -r line; echo '{ANSWER}'; {text}"]


def logged(host: Host) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (host.path / "log.ndjson").read_bytes().splitlines()]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until(condition: Any) -> None:
    with anyio.fail_after(SECONDS):
        while not condition():
            await anyio.sleep(0.002)


async def test_the_end_of_a_cli_is_told_behind_all_of_its_lines(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host, slow(host) as client:
        lines = 'i=0; while [ $i -lt 20000 ]; do echo "{\\"n\\":$i}"; i=$((i+1)); done; echo done >&2; printf "{}"'
        await client.send({"create": host.spec(argv=script(lines))})
        (hosted,) = await started(host)
        await until(lambda: not hosted.runs)
        # An answer that comes behind the end of the CLI does not wait for the lines.
        got = await client.lines(1 + 1 + 20_000 + 1 + 2)
        cli = [line for line in got if not str(line.get("type")).startswith("host_")]
        assert [line["n"] for line in cli[1:-1]] == list(range(20_000))
        assert cli[-1] == {}
        assert got[-1]["type"] == "host_ended"
        assert got[-1]["stderr"] == "done\n"


async def started(host: Host) -> list[Any]:
    await until(lambda: host.supervisor._sessions.running)
    return host.supervisor._sessions.running


async def test_a_client_that_cannot_take_a_frame_lacks_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(tmp_path / "h") as host:
        driver, answer = await host.create()
        viewer = await host.client()
        assert (await viewer.ask({"attach": answer["id"]}))["role"] == "viewer"
        (hosted,) = host.supervisor._sessions.running
        await until(lambda: len(hosted.clients) == 2)
        drives = hosted.driver
        (views,) = hosted.clients - {drives}
        # The driver's socket fails when the next lines come, and the viewer's takes half of what is said of that.
        drives._client = Failing(drives._client, [OSError(errno.EPIPE, "gone")])
        views._client = Failing(views._client, [7] * 3)
        drives.hosted.clients = Ordered([drives, views])
        driver.prompt("p1", lines=3)
        got = await viewer.until("result")
        assert [line["type"] for line in got if not line["type"].startswith("host_")] == [
            "control_response",
            "system",
            *["assistant"] * 3,
            "result",
        ]


class Ordered(set[Any]):
    """A set of clients that are gone through in this order."""

    def __init__(self, clients: list[Any]) -> None:
        super().__init__(clients)
        self.order = clients

    def __iter__(self) -> Any:
        return iter([client for client in self.order if client in self])


class Failing:
    """A socket that takes only so many bytes, or fails, for so many sends."""

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
    async with hosting(tmp_path / "h") as host, slow(host) as client:
        sends = asyncio.create_task(client.send(*[{"list": {}}] * 10_000))
        answers = await client.lines(10_000)
        await sends
        assert {answer["type"] for answer in answers} == {"host_list"}


async def test_a_command_behind_a_stop_waits_for_its_answer(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        _, answer = await host.create()
        client = await host.client()
        client.send({"stop": answer["id"]}, {"attach": "unknown"})
        assert (await client.get())["type"] == "host_list"
        assert (await client.get())["error"] == "unknown"


@pytest.mark.parametrize("attached", [False, True])
async def test_a_line_without_an_end_is_refused_in_bounded_memory(
    tmp_path: Path, attached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path / "h") as host:
        _, answer = await host.create()
        async with slow(host) as client:
            if attached:
                await client.send({"attach": answer["id"]}, {"type": "keep_alive"})
            await client.lines(3 if attached else 0)
            with suppress(ConnectionError):  # it is told while it still sends
                await client.send_bytes(b"x" * (connections.MAX_LINE_BYTES + 1024 * 1024) + b"\n")
            told = (await client.lines())[-1]
            assert "at most 67,108,864 are taken" in told["reason" if attached else "message"]
            assert told.get("line", told.get("error")) == (2 if attached else "command")
        assert len((await (await host.client()).ask({"list": {}}))["sessions"]) == 1


async def test_more_clients_than_are_taken_are_all_told(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h", limits=limits(connections=100)) as host:
        before = descriptors()
        clients = []
        for _ in range(300):
            clients.append(SlowClient(host))
            await asyncio.sleep(0)
        for client in clients[100:]:
            assert (await client.lines())[0]["error"] == "refused"
        for client in clients:
            client.socket.close()
        await until(lambda: descriptors() == before)
        assert (await (await host.client()).ask({"list": {}}))["sessions"] == []


async def test_what_is_wrong_with_a_new_session_is_told_and_starts_nothing(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        for wrong in ({"initialize": {"hooks": 5}}, {"argv": ["sh", "-c", "x\ud800"]}):
            assert (await client.ask({"create": host.spec(**wrong)}))["error"] == "command"
        after = {"id": "x", "epoch": 1, "line": 0}
        assert (await client.ask({"create": host.spec(), "after": after}))["error"] == "command"
        assert (await client.ask({"list": {}}))["sessions"] == []
        assert not os.listdir(tmp_path / "h" / "sessions")
        _, answer = await host.create()
        await client.ask({"stop": answer["id"]})
        last = {"id": answer["id"], "epoch": 1, "line": 99}
        assert (await client.ask({"resume": answer["id"], "after": last}))["error"] == "epoch"
        assert host.supervisor._sessions.running == []


async def test_a_known_line_is_accepted_of_a_cli_that_has_ended(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client, answer = await host.create()
        client.prompt("p1", exit=3)
        await client.until("host_ended")
        again = await host.client()
        attached = await again.ask({"attach": answer["id"], "role": "driver", "take": True})
        for _ in range(attached["line"]):
            await again.get()
        again.prompt("p1", exit=3)
        assert await again.get() == {"type": "host_accepted", "lines": 1}
        again.prompt("p2")
        assert "the CLI has ended" in (await again.get())["reason"]


async def test_a_question_of_a_resumed_cli_may_have_the_id_of_an_earlier_one(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client, answer = await host.create()
        client.prompt("p1", ask="q1")
        await client.until("control_request")
        client.send(response("q1"))
        await client.until("result")
        await (await host.client()).ask({"stop": answer["id"]})
        again = await host.client()
        await again.ask({"resume": answer["id"], "role": "driver", "take": True})
        again.prompt("p2", ask="q1")
        await again.until("result")
        await again.until("control_request")
        again.send(response("q1"))
        await again.until("result")


def response(id: str) -> dict[str, Any]:
    return {"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": {}}}


async def test_a_second_stop_is_as_hasty_as_it_says(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        stubborn = [
            sys.executable,
            "-c",
            "import signal,time\nsignal.signal(15, signal.SIG_IGN)\nprint(1)\ntime.sleep(999)",
        ]
        session = await client.ask({"create": host.spec(argv=stubborn), "detach": True})
        other = await host.client()
        other.send({"stop": session["id"], "grace": 86_400})
        assert (await client.ask({"stop": session["id"], "grace": 0}))["sessions"][0]["life"] == "ended"
        assert (await other.get())["sessions"][0]["life"] == "ended"


async def test_no_cli_is_started_while_the_supervisor_ends(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        stays = [sys.executable, "-c", "import time; time.sleep(999)"]
        await client.ask({"create": host.spec(argv=stays), "detach": True})
        host.supervisor._stop_all(0.2)
        refused = await client.ask({"create": host.spec(), "detach": True})
        assert "the supervisor is ending" in refused["message"]
        await asyncio.wait_for(host.task, SECONDS)


async def test_a_cli_that_reads_nothing_holds_up_its_driver_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire.host.supervisor.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as host, slow(host) as driver, slow(host) as second:
        reads_late = f"echo '{ANSWER}'; read -r go < {tmp_path}/go; cat > /dev/null"
        os.mkfifo(tmp_path / "go")
        await driver.send({"create": host.spec(argv=["sh", "-c", reads_late]), "role": "driver"})
        answer, _ = await driver.lines(2)
        (hosted,) = host.supervisor._sessions.running
        prompts = [prompt(f"p{n}", "x" * 100_000) for n in range(40)]
        sends = asyncio.create_task(driver.send(*prompts))
        await until(lambda: hosted.waits_for(hosted.driver))
        # Another one drives. What the first one still sends is refused, since it is a viewer.
        await second.send({"attach": answer["id"], "role": "driver", "take": True})
        assert (await second.lines(1))[0]["role"] == "driver"
        await sends
        told = await driver.lines(1 + len(prompts))
        assert told[-1]["line"] == len(prompts)
        assert told[-1]["type"] == "host_refused"
        accepted = sum(line["type"] == "host_accepted" for line in told)
        # The second one is held up as well; that it goes away is noticed all the same.
        await second.send(prompt("q"))
        await until(lambda: not hosted.driver._reads)
        second.socket.close()
        await until(lambda: hosted.driver is None)
        async with await anyio.open_file(tmp_path / "go", "w") as go:
            await go.write("go\n")
        hosted.stop(SECONDS)
        await until(lambda: not hosted.runs)
        sent = (tmp_path / "h/sessions" / answer["id"] / "parts/000001/stdin.ndjson").read_bytes()
        assert sent.count(b'"type": "user"') == accepted


def prompt(uuid: str, text: str = "hi") -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}


async def test_without_descriptors_everybody_is_told_and_it_goes_on_with_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire.host.supervisor.ACCEPT_AGAIN_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as host:
        client, waits = await host.client(), []
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
            late.connect(host.folder.socket)
            loop = asyncio.get_running_loop()
            refused = json.loads(await asyncio.wait_for(loop.sock_recv(late, 1 << 16), SECONDS))
            assert refused["error"] == "limit"
            assert "no descriptor left" in refused["message"]
            for room in range(12):
                answer = await client.ask({"create": host.spec(), "detach": True})
                assert answer.get("error") in ("system", "start"), (room, answer)
                assert host.supervisor._sessions.running == []
                resource.setrlimit(resource.RLIMIT_NOFILE, (2 + before + room, hard))
                if room > 3:
                    break
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            late.close()
            for descriptor in waits:
                os.close(descriptor)
        assert os.listdir(host.path / "sessions") == []
        driver, _ = await host.create()
        driver.prompt("p1")
        await driver.until("result")


async def test_a_cli_may_have_as_many_descriptors_as_its_supervisor_was_given(tmp_path: Path) -> None:
    given = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(given[0], given[1] - 1, 700), given[1]))
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        async with hosting(tmp_path / "h") as host:
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (given[1], given[1])
            client = await host.client()
            argv = script('printf \'{"soft":"%s","hard":"%s"}\\n\' "$(ulimit -Sn)" "$(ulimit -Hn)"')
            await client.ask({"create": host.spec(argv=argv)})
            assert (await client.get())["type"] == "control_response"
            said = await client.get()
            assert [said["soft"], said["hard"]] == [str(limit) for limit in before]
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, given)


async def test_a_cli_without_a_pidfd_is_not_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        before = descriptors()
        for name in ("pidfd_open",):
            with monkeypatch.context() as patch:
                patch.setattr(children.os, name, no_descriptor)
                answer = await client.ask({"create": host.spec(), "detach": True})
            assert answer["error"] == "start"
            assert "Too many open files" in answer["message"]
        with monkeypatch.context() as patch:
            patch.setattr(children, "began_at", lambda _pid: None)
            assert (await client.ask({"create": host.spec(), "detach": True}))["error"] == "start"
        assert descriptors() == before
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def no_descriptor(*_: Any) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


async def test_a_session_on_a_full_disk_waits_is_told_of_and_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosteds, "RETRY_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as host:
        client, answer = await host.create()
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
            blocked = (await client.until("host_blocked"))[-1]
            assert "No space left" in blocked["message"]
            patch.setattr(parts.os, "write", full)
            client.prompt("p2")
            refused = (await client.until("host_refused"))[-1]
            assert "No space left" in refused["reason"]
            late = await host.client()
            attached = await late.ask({"attach": answer["id"]})
            for _ in range(attached["line"]):
                await late.get()
        assert (await client.until("host_blocked"))[-1]["message"] == ""
        await client.until("result")
        await late.until("result")
        client.prompt("p3", lines=50)
        await client.get()
        with monkeypatch.context() as patch:
            patch.setattr(parts.os, "write", full)
            stopped = await (await host.client()).ask({"stop": answer["id"], "grace": 0.05})
        assert stopped["sessions"][0]["life"] == "ended"
        await client.until("host_ended")


async def test_what_a_cli_leaves_in_its_pipes_is_a_line_and_its_end_is_noticed(tmp_path: Path) -> None:
    """A process of its own holds the pipes open, the last line has no end, and standard error is more than is kept."""
    async with hosting(tmp_path / "h") as host:
        flood = "head -c 3000000 /dev/zero | tr '\\0' 'e' >&2"
        last = '{"type":"result","subtype":"success","is_error":false,"user_message_uuids":["p1"]}'
        argv = script(f"{flood}; sleep 999 & printf '%s' '{last}'")
        client = await host.client()
        answer = await client.ask({"create": host.spec(argv=argv), "role": "driver"})
        client.prompt("p1")
        lines = await client.until("host_ended")
        assert [line for line in lines if not str(line.get("type")).startswith("host_")][-1]["type"] == "result"
        assert lines[-1]["unfinished"] == ""
        assert lines[-1]["stderr"] == "e" * hosteds.TAIL_BYTES
        errors = tmp_path / "h/sessions" / answer["id"] / "parts/000001/stderr.txt"
        assert errors.stat().st_size == parts.STDERR_BYTES


async def test_a_damaged_session_keeps_no_other_from_being_there(tmp_path: Path) -> None:
    folder = tmp_path / "h" / "sessions"
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        ids = [(await client.ask({"create": host.spec(), "detach": True}))["id"] for _ in range(8)]
    await asyncio.to_thread(damage, folder, ids)
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        listed = (await client.ask({"list": {}}))["sessions"]
        assert sorted(session["id"] for session in listed) == sorted([ids[0], ids[6]])
        assert (await client.ask({"attach": ids[6]}))["error"] == "system"
        assert not (folder / f"{ids[7]}.removed").exists()
        assert not (folder / "begun").exists()
        unreadable = {line["session"] for line in logged(host) if line["event"] == "unreadable"}
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
    async with hosting(tmp_path / "h") as host:
        client, answer = await host.create()
        client.prompt("p1", lines=10)
        await client.until("result")
        await (await host.client()).ask({"stop": answer["id"]})
    output = tmp_path / "h/sessions" / answer["id"] / "parts/000001/stdout.ndjson"
    kept = b"".join(output.read_bytes().splitlines(keepends=True)[:5])
    output.write_bytes(kept)
    async with hosting(tmp_path / "h") as host:
        again = await host.client()
        cursor = {"id": answer["id"], "epoch": 1, "line": 4}
        refused = await again.ask({"attach": answer["id"], "after": cursor})
        assert (refused["error"], refused["line"]) == ("epoch", 5)
        assert (await again.ask({"attach": answer["id"]}))["epoch"] == 2


async def test_a_ready_cli_that_is_not_wanted_any_more_is_given_to_nobody(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        client = await host.client()
        spec = host.spec()
        await client.ask({"prewarm": spec, "count": 1})
        (ready,) = host.supervisor._sessions.running
        await until(lambda: ready.life.value == "idle")
        client.send({"prewarm": spec, "count": 0}, {"create": spec, "detach": True})
        await client.get()
        assert (await client.get())["pid"] != ready.pid


async def test_an_error_that_nobody_expects_is_answered_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosting(tmp_path / "h") as host:
        client, _ = await host.create()
        other: Client = await host.client()
        (hosted,) = host.supervisor._sessions.running
        with monkeypatch.context() as patch:
            patch.setattr(host.supervisor, "_listed", lambda: 1 / 0)
            assert "ZeroDivisionError" in (await other.ask({"list": {}}))["message"]
            patch.setattr(type(hosted.ledger), "received", lambda *_: 1 / 0)
            client.prompt("p1")
            await client.until("result")
        client.prompt("p2")
        await client.until("result")
        assert {line["error"] for line in logged(host) if line["event"] == "error"} == {"ZeroDivisionError"}


async def test_a_journal_that_somebody_makes_shorter_ends_the_client_that_reads_it(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        driver, answer = await host.create()
        slow = socket.socket(socket.AF_UNIX)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(host.folder.socket)
        with slow:
            slow.sendall(json.dumps({"attach": answer["id"]}).encode() + b"\n")
            driver.prompt("p1", lines=20_000)
            await driver.until("result")
            os.truncate(host.path / "sessions" / answer["id"] / "parts" / "000001" / "stdout.ndjson", 1000)
            slow.settimeout(SECONDS)
            while await asyncio.to_thread(slow.recv, 1 << 16):
                pass
        log = (host.path / "log.ndjson").read_text()
        assert '"journal-damaged"' in log
        refused = await (await host.client()).ask({"attach": answer["id"]})
        assert (refused["error"], "somebody has changed its files" in refused["message"]) == ("system", True)


async def test_nobody_gets_what_somebody_has_added_to_a_journal(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as host:
        driver, answer = await host.create()
        with open(host.path / "sessions" / answer["id"] / "parts" / "000001" / "stdout.ndjson", "ab") as file:
            file.write(b'{"type":"added"}\n')
        driver.prompt("p1")
        assert "added" not in [line["type"] for line in await driver.until("result")]
        refused = await (await host.client()).ask({"attach": answer["id"]})
        assert (refused["error"], "somebody has changed its files" in refused["message"]) == ("system", True)
        assert '"journal-damaged"' in (host.path / "log.ndjson").read_text()


@pytest.mark.parametrize("names", [["socket"], ["supervisor.json"], ["socket", "supervisor.json", "lock"]], ids=str)
async def test_a_supervisor_whose_files_were_removed_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr("claude_wire.host.supervisor.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as host:
        driver, answer = await host.create()
        for name in names:
            os.unlink(host.path / name)
        while host.folder.is_lost:
            await asyncio.sleep(0)
        assert host.folder.supervision() is not None
        assert os.stat(host.folder.socket).st_mode & 0o777 == 0o600
        assert (await (await host.client()).ask({"attach": answer["id"]}))["driver"]
        driver.prompt("p1")
        assert await driver.until("result")


async def test_a_supervisor_whose_folder_was_removed_makes_nothing_in_that_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire.host.supervisor.TICK_SECONDS", 0.01)
    async with hosting(tmp_path / "h") as host:
        os.rename(tmp_path / "h", tmp_path / "removed")
        os.mkdir(tmp_path / "h", 0o700)
        ticks = host.supervisor._loop.time() + 0.1
        while host.supervisor._loop.time() < ticks:
            await asyncio.sleep(0.01)
        assert os.listdir(tmp_path / "h") == []
        os.rmdir(tmp_path / "h")
        os.rename(tmp_path / "removed", tmp_path / "h")
