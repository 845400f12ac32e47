"""The kit exports its public names, and its commands import no slow modules."""

from __future__ import annotations

import subprocess
import sys


def test_the_modules_that_one_may_import_have_their_names() -> None:
    # In a new process, where no other test has imported a part of the modules.
    script = """
from claude_wire_kit.events import Bridge, Questions
from claude_wire_kit.supervisor import Supervisor, connect
from claude_wire_kit.usage import UsageMeter
from claude_wire_kit.web import Config, Profile, create_app, load_config
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_commands_of_a_host_need_no_session_and_no_event_loop() -> None:
    """To import both would double the time of ``claude-wire supervisor ps``."""
    script = """
import sys
from claude_wire_kit.commands.supervisor import command
slow = "anyio", "asyncio", "claude_wire.session", "claude_wire_kit.supervisor.sessions", "importlib.metadata"
print(command.ps.name, [name for name in slow if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "ps []\n"
