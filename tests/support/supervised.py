"""``claude-wire host`` for tests: its commands, on a state folder whose supervisor ends with the test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import host_agent

__all__ = ["SECONDS", "Commands"]

#: Seconds in which a command must have ended.
SECONDS = 60.0


class Commands:
    """Runs ``claude-wire`` with a state folder of its own. As a context manager it stops the supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "CLAUDE_WIRE_HOST": os.fspath(folder), "NO_COLOR": "1"}

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        self.start("host", "stop", "--all", "--grace=0").communicate(timeout=SECONDS)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A command that runs."""
        return subprocess.Popen(
            [sys.executable, "-m", "claude_wire.cli", *arguments],
            env=self.environment,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code, the output and the standard error of a command."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out.decode(), err.decode()

    def said(self, *arguments: str) -> str:
        """What a command says that succeeds."""
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, ""), (arguments, out, err)
        return out

    def refused(self, *arguments: str) -> str:
        """What a command says that fails."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, ""), (arguments, out, err)
        return err

    def serve(self, *options: str) -> int:
        """Start the supervisor, and return its pid."""
        found = re.fullmatch(r"supervisor (\d+) serves .*\n", self.said("host", "start", *options))
        assert found is not None
        return int(found[1])

    def create(self, *options: str, **wanted: Any) -> str:
        """Create a session whose agent is asked for ``wanted``, and return its id."""
        prompt = ("--prompt", json.dumps(wanted)) if wanted else ()
        command = ("--", sys.executable, "-B", host_agent.__file__)
        return self.said("host", "run", *options, *prompt, *command).strip()

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions."""
        return list(json.loads(self.said("host", "ps", "-a", "--json"))["sessions"])
