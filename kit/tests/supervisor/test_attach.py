"""The client of a supervisor: its commands, attached sessions, and its errors."""

from __future__ import annotations

import errno
import gc
import json
import os
import pickle
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

import relay
from async_backends import Backend, every_backend
from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ClaudeWireError,
    HandleError,
    HookCallbackRequest,
    HookMatcher,
    ResultMessage,
    Session,
    sync,
)
from claude_wire.messages import PermissionResult
from claude_wire_kit.commands.supervisor.client import Client
from claude_wire_kit.supervisor import Cursor, DetachedError, SupervisorError
from claude_wire_kit.supervisor.attach import Supervisor, connect, spec_of
from claude_wire_kit.supervisor.frames import Attach, Create, Failed, Resume, Serves, line_of
from claude_wire_kit.supervisor.transport import SocketTransport
from session_peer import Server, allow, line, numbered, numbers
from supervised import Commands
from supervisor_peer import SupervisorPeer
from supervisors import RunningDaemon as Supervised
from supervisors import agent, hosting


def spec(**more: Any) -> Any:
    return spec_of(agent(), **more)


def by_command(supervised: Supervised) -> Supervisor:
    return connect(command=[sys.executable, "-B", relay.__file__, supervised.folder.socket])


def by_socket(supervised: Supervised) -> Supervisor:
    return connect(supervised.path)


WAYS = pytest.mark.parametrize("way", [by_socket, by_command])


# --- with a supervisor ------------------------------------------------------------------------------------------------


@WAYS
async def test_a_session_is_created_left_and_attached_again(
    tmp_path: Path, way: Callable[[Supervised], Supervisor]
) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = way(supervised)
        async with supervisor.create(spec(name="mine"), can_use_tool=never_asked) as session:
            assert session.cursor is not None
            assert (await session.ask("hi")).ok
            await session.query(json.dumps({"lines": 3, "ask": "q1"}), uuid="p2")
            first = [await session.__anext__() for _ in range(2)]
        cursor = session.cursor
        assert cursor is not None
        listed = await supervisor.list()
        assert [(one.id, one.name, one.clients) for one in listed.sessions] == [(cursor.id, "mine", 0)]
        async with supervisor.attach(cursor, can_use_tool=allow) as second:
            rest = [message async for message in second.receive_run()]
            assert isinstance(rest[-1], ResultMessage)
            assert rest[-1].user_message_uuids == ["p2"]
            assert [type(message).__name__ for message in first + rest] == [
                "InitMessage",
                *["AssistantMessage"] * 4,
                "ResultSuccess",
            ]
            assert second.info is not None
        await supervisor.stop(cursor.id)
        async with supervisor.resume(cursor) as third:
            assert (await third.ask("again")).ok
            await third.end_input()
            assert [message async for message in third] == []
        assert (await supervisor.remove(cursor.id)).sessions == []


async def lines_to(session: Session) -> None:
    for number in range(1000):
        await session.query("lost", uuid=f"lost-{number}")


async def never_asked(request: CanUseToolRequest) -> PermissionResult:
    raise AssertionError


@WAYS
async def test_every_refusal_is_one_exception_with_its_fields(
    tmp_path: Path, way: Callable[[Supervised], Supervisor]
) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = way(supervised)
        info = await supervisor.start(spec())
        async with supervisor.attach(info.id):
            refusals: list[tuple[Any, str]] = [
                (supervisor.attach(info.id), "driver"),
                (supervisor.attach("nobody's"), "unknown"),
                (supervisor.attach(Cursor(info.id, 7, 0), role="viewer"), "epoch"),
                (supervisor.resume(info.id), "running"),
                (supervisor.create(spec_of(["/there/is/no/such/program"])), "start"),
            ]
            for session, error in refusals:
                with pytest.raises(SupervisorError) as caught:
                    await session.__aenter__()
                assert caught.value.error == error
                assert (caught.value.line is not None) == (error == "epoch")
            with pytest.raises(SupervisorError) as caught:
                await supervisor.remove(info.id)
            assert caught.value.error == "running"


async def test_a_driver_is_replaced_and_a_viewer_follows(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = connect(supervised.path)
        async with supervisor.create(spec()) as first:
            assert first.cursor is not None
            id = first.cursor.id
            async with supervisor.attach(id, role="viewer") as viewer, supervisor.attach(id, take=True) as second:
                assert (await second.ask("hi")).ok
                with pytest.raises(HandleError, match="attach as a driver"):
                    await viewer.query("no")
                seen = [type(await viewer.__anext__()).__name__ for _ in range(3)]
                assert seen[-1] == "ResultSuccess"
                assert [message async for message in first.receive_response()]
                with pytest.raises(HandleError, match="another client drives"):
                    await first.query("no")


async def test_callbacks_of_a_creator_are_told_to_the_cli_and_serve_by_name(tmp_path: Path) -> None:
    async def hook(request: HookCallbackRequest) -> None: ...

    server = Server()
    async with hosting(tmp_path / "h") as supervised:
        supervisor = connect(supervised.path)
        hooks = {"Stop": [HookMatcher(hook, name="n")]}
        async with supervisor.create(spec(), hooks=hooks, mcp_servers={"tools": server}) as session:
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            assert (await session.ask(json.dumps({"mcp": message}))).ok
            assert server.handled == [message]
            assert session.cursor is not None
            id = session.cursor.id
        record = json.loads((supervised.path / "sessions" / id / "session.json").read_bytes())
        assert record["initialize"]["hooks"]["Stop"][0]["hookCallbackIds"] == ["Stop::n"]
        assert record["initialize"]["sdkMcpServers"] == ["tools"]


async def test_a_session_is_attached_by_id_or_cursor_from_another_machine_and_without_async(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = connect(supervised.path)
        info = await supervisor.start(spec())
        async with supervisor.attach(info.id) as session:
            assert (await session.ask("one")).ok
        assert session.cursor is not None
        command = [sys.executable, "-B", relay.__file__, supervised.folder.socket]
        async with connect(command=command).attach(session.cursor) as session:
            assert (await session.ask("two")).ok

        def in_thread() -> None:
            attached = supervisor.attach(info.id)
            with sync.Session(attached) as session:
                assert session.ask("four").ok
                session.send_again([line({"type": "user", "uuid": "p5", "message": {"role": "user", "content": "x"}})])
                assert list(session.receive_run())
                assert attached.cursor is not None
                assert attached.unacknowledged == []

        await anyio.to_thread.run_sync(in_thread)


async def test_the_raw_form_sends_and_receives_lines(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = connect(supervised.path)
        command = Create(create=spec(), role="driver")
        async with supervisor.open(command) as raw:
            await raw.send(line({"type": "user", "uuid": "p1", "message": {"role": "user", "content": "hi"}}))
        async with supervisor.open(Attach(attach=raw.answer.id)) as raw:
            assert raw.answer.role == "viewer"
            first = bytes(await raw.chunks.receive()).partition(b"\n")[0]
            assert json.loads(first)["type"] == "control_response"


async def test_a_supervisor_that_dies_leaves_a_cursor_and_what_it_had_not_acknowledged(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervised:
        supervisor = connect(supervised.path)
        async with supervisor.create(spec()) as session:
            assert (await session.ask("hi")).ok
            await supervised.end()
            with pytest.raises(DetachedError) as caught:
                async for _ in session:
                    pass
            assert caught.value.cursor == session.cursor
            with pytest.raises(DetachedError):
                await lines_to(session)
            assert session.unacknowledged
        with pytest.raises(SupervisorError) as refused:
            await supervisor.list()
        assert refused.value.error == "absent"
        assert "claude-wire supervisor start" in str(refused.value)
        await supervised.start()
        async with supervisor.resume(caught.value.cursor, env=dict(os.environ)) as again:
            await again.send_again(session.unacknowledged[:1])
            assert [type(message).__name__ async for message in again.receive_run()][-1] == "ResultSuccess"


@every_backend
def test_a_client_runs_in_any_loop_and_may_be_dropped(backend: Backend, tmp_path: Path) -> None:
    async def main() -> str:
        client = connect(supervisor.folder)
        async with client.create(spec(), can_use_tool=allow) as session:
            answers = [(await session.ask(json.dumps({"lines": 200, "ask": f"q{n}"}))).ok for n in range(2)]
            assert answers == [True, True]
        assert session.cursor is not None
        async with client.attach(session.cursor, role="viewer") as viewer:
            await client.stop(session.cursor.id)
            assert [message async for message in viewer] == []
        dropped = client.resume(session.cursor)
        await dropped.__aenter__()
        del dropped
        gc.collect()
        with anyio.fail_after(30):
            while (await client.list()).sessions[0].clients:
                gc.collect()
                await anyio.sleep(0.01)
        return session.cursor.id

    with Commands(tmp_path / "h") as supervisor:
        supervisor.serve()
        id = backend.run(main)
        assert [one["id"] for one in supervisor.sessions()] == [id]


# --- without a supervisor ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(folder: Path, *answers: bytes, ends: bool = True) -> AsyncIterator[list[bytes]]:
    """A fake supervisor on the socket of a folder. It answers every request with the given chunks."""
    folder.mkdir()
    got: list[bytes] = []
    listener = await anyio.create_unix_listener(folder / "socket")

    async def serve(stream: Any) -> None:
        async with stream:
            got.append(await stream.receive())
            for answer in answers:
                await stream.send(answer)
                await anyio.lowlevel.checkpoint()
            if not ends:
                await anyio.sleep_forever()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        yield got
        group.cancel_scope.cancel()


@every_backend
def test_an_answer_that_is_cut_anywhere_is_whole_and_nothing_behind_it_is_lost(
    backend: Backend, tmp_path: Path
) -> None:
    peer = SupervisorPeer()
    peer.say(numbered(1))
    data = (
        line_of(peer.attached()) + line(numbered(1)) + b'{"type":"supervisor_accepted","lines":0}\n' + line(numbered(2))
    )

    async def main(cut: int) -> None:
        folder = tmp_path / f"{backend.id}-{cut}"
        answer = answering(folder, data[:cut], data[cut:], ends=False)
        async with answer, connect(folder).attach("s1") as session:
            assert numbers([await session.__anext__(), await session.__anext__()]) == [1, 2]
            assert session.cursor == Cursor("s1", 1, 2)

    async def all_cuts() -> None:
        for cut in range(1, len(data), 7):
            await main(cut)

    backend.run(all_cuts)


@every_backend
async def test_a_connection_that_cannot_be_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[int] = []

    def fails(source: int, options: object) -> Any:
        sockets.append(source)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("claude_wire_kit.supervisor.transport.open_source", fails)

    async with answering(tmp_path / "h", ends=False):
        with pytest.raises(SupervisorError, match="Too many open files"):
            await connect(tmp_path / "h").list()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(sockets[0])


@every_backend
@pytest.mark.parametrize("role", ["driver", "viewer"])
async def test_a_driver_tells_which_servers_it_serves_and_a_viewer_does_not(
    tmp_path: Path, role: Literal["driver", "viewer"]
) -> None:
    peer = SupervisorPeer()
    serves = Serves(hooks=["h"], mcp=["tools"])

    async with answering(tmp_path / "h", line_of(peer.attached()), ends=False) as got:
        attachment = connect(tmp_path / "h").open(Attach(attach="s1", role=role))
        await attachment.open(serves)
        await attachment.aclose()
    told = {"hooks": ["h"], "mcp": ["tools"]} if role == "driver" else {"hooks": [], "mcp": []}
    assert json.loads(got[0])["serves"] == told


@every_backend
async def test_a_supervisor_whose_queue_is_full_holds_up_no_other_task(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as first:
        server.bind(path)
        server.listen(0)
        first.connect(path)
        # A thread makes room, because a blocked event loop would never run its own timers.
        room = threading.Timer(10, server.accept)
        room.start()
        transport = SocketTransport(path, "folder")
        with anyio.move_on_after(0.1) as scope:
            await transport.open()
        room.cancel()
        await transport.aclose()
    assert scope.cancelled_caught


@every_backend
async def test_a_line_larger_than_the_buffer_of_the_socket_arrives_whole(tmp_path: Path) -> None:
    received = bytearray()
    ended = anyio.Event()
    listener = await anyio.create_unix_listener(tmp_path / "socket")

    async def serve(stream: Any) -> None:
        async with stream:
            async for data in stream:
                received.extend(data)
        ended.set()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        transport = SocketTransport(os.fspath(tmp_path / "socket"), "folder")
        await transport.open()
        await transport.send(b"x" * 4_000_000)
        await transport.aclose()
        await ended.wait()
        group.cancel_scope.cancel()
    assert received == b"x" * 4_000_000


@every_backend
@pytest.mark.parametrize(
    ("answers", "ends", "error", "words"),
    [
        ([], True, "lost", "ended before the supervisor answered"),
        ([b'{"type":"supervisor_error","error":"gone","message":"too late","first":7}\n'], True, "gone", "too late"),
        ([b'{"type":"of_tomorrow"}\n'], True, "version", "this version cannot read"),
        ([b"nonsense\n"], True, "version", "this version cannot read"),
        (
            [b'{"type":"supervisor_list","sessions":[],"version":2,"package":"x","pid":1}\n'],
            True,
            "version",
            "supervisor answered Attach with Listed$",
        ),
        ([b'{"type":"supervisor_att'], True, "lost", "ended before"),
        ([b'{"type":"supervisor_att'], False, "timeout", "not answered within 0.2 seconds"),
        ([b"x" * 9000], False, "limit", "more than"),
    ],
)
async def test_an_answer_that_does_not_come_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[bytes], ends: bool, error: str, words: str
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.attachment.MAX_ANSWER_BYTES", 8192)

    async with answering(tmp_path / "h", *answers, ends=ends) as got:
        seconds = 0.2 if error == "timeout" else 10.0
        with pytest.raises(SupervisorError, match=words) as caught:
            await connect(tmp_path / "h", timeout=seconds).attach("s1").__aenter__()
        assert caught.value.error == error
        assert caught.value.first == (7 if error == "gone" else None)
        if error != "timeout":  # on a busy machine, the time may end before the command is sent
            assert json.loads(got[0])["attach"] == "s1"


@every_backend
async def test_a_command_that_starts_or_stops_a_cli_has_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claude_wire_kit.supervisor.attach.START_SECONDS", 0.02)
    async with answering(tmp_path / "h", ends=False):
        supervisor = connect(tmp_path / "h", timeout=0.01)
        commands: list[tuple[Callable[[], Any], str]] = [
            (lambda: supervisor.create(spec()).__aenter__(), "0.02"),
            (lambda: supervisor.resume("s1").__aenter__(), "0.02"),
            (lambda: supervisor.start(spec()), "0.02"),
            (lambda: supervisor.restart("s1"), "0.02"),
            (lambda: supervisor.prewarm(spec()), "0.02"),
            (lambda: supervisor.attach("s1").__aenter__(), "0.01"),
            (lambda: supervisor.stop("s1", grace=0.01), "0.04"),
        ]
        for command, seconds in commands:
            with pytest.raises(SupervisorError, match=f"not answered within {seconds} seconds"):
                await command()


@every_backend
async def test_a_refusal_before_the_command_arrives_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    send = SocketTransport.send
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(tmp_path / "socket"))
        server.listen(1)

        async def send_late(transport: SocketTransport, data: bytes) -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(line_of(Failed("limit", "too many clients")))
            await send(transport, data)

        monkeypatch.setattr(SocketTransport, "send", send_late)
        with pytest.raises(SupervisorError, match="too many clients") as caught:
            await connect(tmp_path).list()
        assert caught.value.error == "limit"


@every_backend
async def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    missing = connect(command=[os.fspath(tmp_path / "missing"), "attach"])
    with pytest.raises(SupervisorError, match="cannot be run") as caught:
        await missing.list()
    assert caught.value.error == "absent"
    failing = connect(command=[sys.executable, "-B", relay.__file__, os.fspath(tmp_path / "socket")])
    with pytest.raises(SupervisorError, match="Error: No such file or directory") as caught:
        await failing.list()
    assert caught.value.error == "lost"


@every_backend
async def test_a_folder_without_a_supervisor_is_told(tmp_path: Path) -> None:
    for folder in tmp_path / "nothing", tmp_path / ("x" * 200), tmp_path / "dead":
        if folder.name == "dead":
            folder.mkdir()
            left = socket.socket(socket.AF_UNIX)
            left.bind(os.fspath(folder / "socket"))
            left.close()
        with pytest.raises(SupervisorError) as caught:
            await connect(folder).list()
        assert caught.value.error == "absent"


@every_backend
async def test_a_supervisor_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(tmp_path / "h"):
        monkeypatch.setattr(socket.socket, "getsockopt", lambda *_: b"\1\0\0\0\xd2\4\0\0\1\0\0\0")
        with pytest.raises(SupervisorError, match="another user, with the id 1234") as caught:
            await connect(tmp_path / "h").list()
        assert caught.value.error == "refused"
        with pytest.raises(SupervisorError, match="another user, with the id 1234"):
            Client(os.fspath(tmp_path / "h" / "socket"))  # the client that the commands use


@every_backend
async def test_an_attachment_is_opened_once_and_says_so(tmp_path: Path) -> None:
    way = connect(tmp_path).open(Attach(attach="s1"))
    for use in (lambda: way.answer, lambda: way.chunks, lambda: way.send(b"{}\n")):
        with pytest.raises(HandleError, match="not open"):
            await use()
    peer = SupervisorPeer()
    async with answering(tmp_path / "h", line_of(peer.attached()), ends=False):
        way = connect(tmp_path / "h").open(Attach(attach="s1"))
        async with way:
            with pytest.raises(HandleError, match="opened only once"):
                await way.open()
        await way.aclose()
        dropped = connect(tmp_path / "h").open(Attach(attach="s1"))
        await dropped.open()
        del dropped
        gc.collect()


@every_backend
async def test_an_attachment_that_is_refused_closes_its_connection(tmp_path: Path) -> None:
    async with answering(tmp_path / "h", line_of(Failed("unknown", "no such session")), ends=False):
        way = connect(tmp_path / "h").open(Attach(attach="s1"))
        with pytest.raises(SupervisorError, match="no such session"):
            await way.open()
        with pytest.raises(BrokenPipeError, match="is closed"):
            await way.send(b"{}\n")


# --- arguments --------------------------------------------------------------------------------------------------------


def test_a_session_that_is_not_attached_yet_says_so(tmp_path: Path) -> None:
    session = connect(tmp_path).attach("s")
    assert (session.cursor, session.attached, session.info, session.unacknowledged) == (None, None, None, [])
    assert repr(session) == "<Session not entered: nothing under way>"


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not both"):
        connect(tmp_path, command=["ssh"])
    with pytest.raises(TypeError, match=r"shlex\.split"):
        connect(command="ssh -T supervisor")
    with pytest.raises(TypeError, match="a Cursor, not int"):
        connect(tmp_path).attach(7)
    with pytest.raises(ValueError, match="role"):
        connect(tmp_path).attach("s", role="god")
    assert repr(connect(tmp_path)) == f"<Supervisor: folder {os.fspath(tmp_path)!r}>"
    assert repr(connect(command=["ssh", "secret"])) == "<Supervisor: command 'ssh'>"


def test_no_repr_of_a_command_shows_the_environment_or_an_argument() -> None:
    spec = spec_of(["cli", "--settings", "hunter2"], env={"KEY": "hunter3"}, cwd="/", name="shop")
    assert repr(spec) == "Spec('cli' with 2 arguments, cwd='/', name='shop')"
    for command in (Create(create=spec), Resume(resume="s1", env={"KEY": "hunter3"})):
        assert "hunter" not in repr(command)


def test_a_spec_says_all_that_a_supervisor_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN", "1")
    monkeypatch.chdir(tmp_path)
    made = spec_of(ClaudeOptions(cli_path="/cli", model="m"), extra_env={"MORE": "2"}, name="n", cost_usd=1.5)
    assert made.argv[0] == "/cli"
    assert made.argv[made.argv.index("--permission-prompt-tool") + 1] == "stdio"
    assert (made.cwd, made.name, made.cost_usd) == (os.fspath(tmp_path), "n", 1.5)
    assert (made.env["SEEN"], made.env["MORE"], made.env["CLAUDE_CODE_SDK_READS_SESSION_STATE"]) == ("1", "2", "1")
    bare = spec_of(["cli"], env={"ONLY": "x"}, cwd="sub")
    assert bare.argv == ["cli"]
    assert bare.env == {"ONLY": "x", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
    assert bare.cwd == os.fspath(tmp_path / "sub")
    assert spec_of(["cli"], env={"KEY": "1"}, extra_env={"KEY": "2"}).env["KEY"] == "2"
    assert "--permission-prompt-tool" not in spec_of(ClaudeOptions(cli_path="/cli"), asks=False).argv


# --- The exceptions that a supervisor's client raises -----------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [DetachedError("text", Cursor("s", 1, 2), [b"{}"]), SupervisorError("epoch", "lines were lost", line=3)]
)
def test_the_errors_keep_what_they_say_through_pickle(error: ClaudeWireError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
