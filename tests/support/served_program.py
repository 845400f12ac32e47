"""Run the service with ``claude-wire serve``, for tests whose thread belongs to the browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import host_agent
from served import TOKEN
from supervised import SECONDS, Commands

__all__ = ["ServedProgram", "run_service"]


class ServedProgram:
    """A running service with its own supervisor."""

    def __init__(self, commands: Commands, config: Path) -> None:
        self._commands = commands
        self._config = config
        self._port = 0
        self._child: subprocess.Popen[bytes]
        self.start()

    @property
    def url(self) -> str:
        """The address of the service, without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the service. A restart uses the same port."""
        self._child = self._commands.start("serve", f"--config={self._config}", f"--port={self._port}")
        assert self._child.stdout is not None
        said = self._child.stdout.readline().decode()
        found = re.fullmatch(rf"claude-wire serves http://127\.0\.0\.1:(\d+)/#token={TOKEN}\n", said)
        assert found is not None, (said, self._child.communicate(timeout=SECONDS))
        self._port = int(found[1])

    def stop(self) -> None:
        """Stop the service, which must still be running. Its sessions continue."""
        assert self._child.poll() is None, "the service has ended by itself"
        self._child.send_signal(signal.SIGINT)
        _, err = self._child.communicate(timeout=SECONDS)
        assert self._child.returncode == 0, err


@contextmanager
def run_service(folder: Path, argv: list[str] | None = None) -> Iterator[ServedProgram]:
    """Run a service with a new supervisor for a block. Its sessions run ``argv``, by default ``host_agent.py``."""
    state = folder / "state"
    state.mkdir(mode=0o700)
    descriptor = os.open(state / "serve-token", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as token:
        token.write(TOKEN)
    argv = argv or [sys.executable, "-B", host_agent.__file__, "--replay-user-messages"]
    config = folder / "serve.toml"
    config.write_text(f"[profiles.agent]\nroots = [{json.dumps(os.fspath(folder))}]\nargv = {json.dumps(argv)}\n")
    with Commands(state) as commands:
        program = ServedProgram(commands, config)
        try:
            yield program
        finally:
            program.stop()
