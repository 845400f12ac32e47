"""Run ``claude-wire supervisor`` commands in tests, with a state folder whose supervisor ends with the test."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import host_agent
from claude_wire_kit.commands.app import cli
from shown import RUNNER

__all__ = ["SECONDS", "Commands", "Talker", "answered", "journal", "prompt"]

#: Seconds after which a command has failed.
SECONDS = 60.0


class Commands:
    """Run ``claude-wire`` with its own state folder. Leaving the block stops the supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: The pid of the most recent supervisor.
        self.supervisor: int = 0
        self.environment = {**os.environ, "CLAUDE_WIRE_SUPERVISOR": os.fspath(folder), "NO_COLOR": "1"}

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        self.start("supervisor", "stop", "--all", "--grace=0").communicate(timeout=SECONDS)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command and return its process."""
        return subprocess.Popen(
            [sys.executable, "-m", "claude_wire_kit", *arguments],
            env=self.environment,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command within this process. Return its exit code, its output and its standard error."""
        done = RUNNER.invoke(cli, arguments, env=self.environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    def said(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its output."""
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, ""), (arguments, out, err)
        return out

    def refused(self, *arguments: str) -> str:
        """Run a command that must fail, and return its standard error."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, ""), (arguments, out, err)
        return err

    def serve(self, *options: str) -> int:
        """Start the supervisor, and return its pid."""
        found = re.fullmatch(r"supervisor (\d+) serves .*\n", self.said("supervisor", "start", *options))
        assert found is not None
        self.supervisor = int(found[1])
        return self.supervisor

    def create(self, *options: str, **wanted: Any) -> str:
        """Create a session. ``wanted`` is the first prompt for ``host_agent``. Return the session's id."""
        prompt = ("--prompt", json.dumps(wanted)) if wanted else ()
        command = ("--", sys.executable, "-B", host_agent.__file__)
        return self.said("supervisor", "run", *options, *prompt, *command).strip()

    def sessions(self) -> list[dict[str, Any]]:
        """Return all sessions."""
        return list(json.loads(self.said("supervisor", "ps", "-a", "--json"))["sessions"])


class Talker:
    """A client that writes the supervisor's protocol by hand, and may disconnect at any byte."""

    def __init__(self, folder: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(SECONDS)
        self._socket.connect(os.fspath(folder / "socket"))
        self._rest = b""
        #: The unchanged lines of the CLI that have arrived.
        self.lines: list[bytes] = []

    def __enter__(self) -> Talker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()

    def send(self, *messages: Any, cut: int = 0) -> None:
        """Send messages, one per line, without the last ``cut`` bytes."""
        data = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
        self._socket.sendall(data[: len(data) - cut])

    def line(self) -> bytes:
        """Return the next line; b"" at the end of the connection."""
        while b"\n" not in self._rest:
            try:
                data = self._socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return b""
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        if not line.startswith(b'{"type":"supervisor_'):
            self.lines.append(line + b"\n")
        return line + b"\n"

    def get(self) -> Any:
        """Return the next line, decoded from JSON."""
        line = self.line()
        assert line, "the connection has ended"
        return json.loads(line)

    def until(self, kind: str) -> Any:
        """Skip to the next message of a type and return it."""
        while (message := self.get())["type"] != kind:
            pass
        return message

    def ask(self, command: Any) -> Any:
        """Send a command and return its answer."""
        self.send(command)
        return self.get()

    def drive(self, id: str, after: Any = None) -> Any:
        """Attach as the driver, after a cursor."""
        answer = self.ask({"attach": id, "role": "driver", "after": after})
        assert answer["type"] == "supervisor_attached", answer
        return answer


def prompt(uuid: str | None, **wanted: Any) -> dict[str, Any]:
    """Return a prompt that asks ``host_agent`` for something."""
    message = {"type": "user", "message": {"role": "user", "content": json.dumps(wanted)}}
    return message if uuid is None else {**message, "uuid": uuid}


def answered(id: str, **response: Any) -> dict[str, Any]:
    """Return an answer to a question of the CLI."""
    return {"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}}


def journal(folder: Path, id: str, name: str) -> bytes:
    """Return the output or the input of a session, joined from all parts of its journal."""
    parts = sorted((folder / "sessions" / id / "parts").iterdir())
    return b"".join((part / name).read_bytes() for part in parts)
