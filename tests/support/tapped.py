"""Small programs in place of the CLI, and the tap that records them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from claude_wire.testing import Recording
from claude_wire_kit.tap import program

__all__ = ["PRELUDE", "SECONDS", "cli_of", "install_tap", "recorded", "start", "tap_of"]

#: The longest time in seconds that a test waits for a process.
SECONDS = 60

#: Code that runs first in every fake CLI: imports, and ``say``.
PRELUDE = """\
import os, signal, sys, time
def say(text):
    data = text.encode() + b"\\n"
    while data:
        data = data[os.write(1, data):]
"""


def cli_of(path: Path, code: str) -> str:
    """Write a Python program that acts as the CLI, and return its path."""
    path.write_text(f"#!{sys.executable} -S\n{PRELUDE}{code}")
    path.chmod(0o755)
    return str(path)


def tap_of(cli: str, folder: str | Path = "", how: str = "plain") -> list[str]:
    """Return the command line of a tap, as ``claude-wire tap --install`` writes it."""
    return [sys.executable, "-I", program.__file__, cli, str(folder), how]


def install_tap(path: Path, cli: str, folder: Path, *options: str) -> str:
    """Install a recording tap with ``claude-wire tap --install``, and return its path."""
    command = [sys.executable, "-m", "claude_wire_kit", "tap", "--cli", cli, "--record", str(folder)]
    subprocess.run([*command, *options, "--install", str(path)], check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)
    return str(path)


def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a tap with pipes."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, **{**pipes, **options})


def recorded(folder: Path) -> Recording:
    """Load the only recording in a folder."""
    [path] = folder.iterdir()
    return Recording.load(path)
