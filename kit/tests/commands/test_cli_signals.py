"""The installed commands handle signals: SIGPIPE ends a filter, but not a command that serves connections."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from children import heed_hangups, ignore_hangups, wait_until
from claude_wire_kit.commands.app import COMMANDS, cli
from claude_wire_kit.commands.shared.signals import FILTERS
from shown import RUNNER
from supervised import SECONDS, Commands

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

#: The installed command.
INSTALLED = os.fspath(Path(sys.executable).with_name("claude-wire"))
#: The number of clients that disconnect during an answer. Five were enough to end a service by SIGPIPE.
CLIENTS = 60


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path / "state") as commands:
        yield commands


@contextmanager
def started(commands: Commands, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    options.setdefault("stdout", subprocess.PIPE)
    environment = {**commands.environment, "XDG_CONFIG_HOME": os.fspath(commands.folder)}
    with subprocess.Popen([INSTALLED, *arguments], env=environment, stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def is_ignored(pid: int, number: int) -> bool:
    found = re.search(r"^SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return bool(int(found[1], 16) >> (number - 1) & 1)


def closed_pipe() -> int:
    """Return the write end of a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def port_of(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    found = re.match(rb"claude-wire serves http://127\.0\.0\.1:(\d+)/#token=", process.stdout.readline())
    assert found is not None
    return int(found[1])


def test_a_service_outlives_clients_that_go_away_while_they_are_answered(commands: Commands) -> None:
    with started(commands, "serve", "--port=0") as process:
        port = port_of(process)
        request = b"GET /page.css HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port
        for number in range(CLIENTS):
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
                client.sendall(request * 20)
                if number % 2:
                    client.recv(100)
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
            client.sendall(request)
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert is_ignored(process.pid, signal.SIGPIPE)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_a_service_whose_output_nobody_reads_serves(commands: Commands) -> None:
    # A socket that is bound but does not listen keeps the port from other programs, but not from the service.
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    output = closed_pipe()
    with reserved, started(commands, "serve", f"--port={port}", stdout=output) as process:
        os.close(output)

        def answers() -> bool:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
                    client.sendall(b"GET /page.css HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
                    return client.recv(100).startswith(b"HTTP/1.1 200 ")
            except ConnectionRefusedError:
                return False

        wait_until(answers)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_a_supervisor_whose_output_nobody_reads_serves(commands: Commands) -> None:
    output = closed_pipe()
    with started(commands, "supervisor", "start", "--foreground", stdout=output) as process:
        os.close(output)
        wait_until((commands.folder / "supervisor.json").exists)
        assert is_ignored(process.pid, signal.SIGPIPE)
        assert commands.sessions() == []


def test_a_supervisor_knows_its_children_where_it_was_started_with_sigchld_ignored(commands: Commands) -> None:
    def ignore_children() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    with started(commands, "supervisor", "start", "--foreground", preexec_fn=ignore_children) as process:
        wait_until((commands.folder / "supervisor.json").exists)
        assert not is_ignored(process.pid, signal.SIGCHLD)


def test_a_supervisor_without_standard_streams_keeps_its_files_to_itself(commands: Commands) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", INSTALLED, "supervisor", "start", "--foreground"]
    with subprocess.Popen(command, env=commands.environment) as process:
        try:
            wait_until((commands.folder / "supervisor.json").exists)
            for number in range(3):
                assert os.readlink(f"/proc/{process.pid}/fd/{number}") == os.devnull
        finally:
            process.kill()


def test_a_command_without_an_output_writes_nothing_and_succeeds(commands: Commands) -> None:
    commands.serve()
    command = ["sh", "-c", 'exec "$@" >&-', "sh", INSTALLED, "supervisor", "ps", "-a"]
    done = subprocess.run(command, env=commands.environment, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, b"note: no sessions\n")


def test_a_terminal_that_is_closed_ends_a_supervisor_with_all_that_it_has(commands: Commands) -> None:
    with started(commands, "supervisor", "start", "--foreground", preexec_fn=heed_hangups) as process:
        wait_until((commands.folder / "supervisor.json").exists)
        commands.create(lines=1)
        process.send_signal(signal.SIGHUP)
        assert process.wait(SECONDS) == 0
        assert not (commands.folder / "socket").exists()


def test_a_supervisor_under_nohup_outlives_its_terminal(commands: Commands) -> None:
    with started(commands, "supervisor", "start", "--foreground", preexec_fn=ignore_hangups) as process:
        wait_until((commands.folder / "supervisor.json").exists)
        process.send_signal(signal.SIGHUP)
        assert is_ignored(process.pid, signal.SIGHUP)
        assert commands.sessions() == []


@pytest.mark.parametrize(
    "arguments",
    [["supervisor", "ps", "-a", "--json"], ["supervisor", "logs"], ["supervisor", "logs", "-f", "{id}"]],
    ids=" ".join,
)
def test_a_command_with_a_connection_ends_by_sigpipe_when_nobody_reads_it(
    commands: Commands, arguments: list[str]
) -> None:
    commands.serve()
    id = commands.create(lines=1)
    output = closed_pipe()
    with started(commands, *(word.format(id=id) for word in arguments), stdout=output) as process:
        os.close(output)
        assert process.wait(SECONDS) == -signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_filters_are_commands() -> None:
    assert set(COMMANDS) > FILTERS
    assert FILTERS.isdisjoint(("agent", "demo", "replay", "run", "serve", "supervisor", "tap"))


def test_a_program_that_calls_the_command_as_a_function_keeps_its_signals() -> None:
    before = signal.getsignal(signal.SIGPIPE)
    RUNNER.invoke(cli, ["check", os.devnull])
    assert signal.getsignal(signal.SIGPIPE) == before
