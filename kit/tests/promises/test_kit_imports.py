"""The kit imports only public names of the library. The library does not import the kit."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from each import each
from folders import ROOT

KIT = ROOT / "kit" / "claude_wire_kit"
LIBRARY = ROOT / "python" / "claude_wire"

#: The packages below ``claude_wire`` whose ``__all__`` is public. Each module of ``integrations`` is public.
PACKAGES = (
    *(
        "accumulate",
        "agent",
        "codec",
        "columns",
        "dialects",
        "errors",
        "streams",
        "limits",
        "messages",
        "process",
        "protocol",
        "session",
    ),
    *("session", "support", "sync", "testing", "testing.faults", "transcripts"),
)
PUBLIC = {"claude_wire", *(f"claude_wire.{name}" for name in PACKAGES)}
#: The private names of the library that the kit imports. The list should shrink: a name that both need belongs in the
#: ``__all__`` of its package.
DEEPER = {
    "claude_wire.agent.main.take_standard_streams",
    "claude_wire.codec.kind_names.KindName",
    "claude_wire.columns.usage_rows.UsageRows",
    "claude_wire.columns.usage_rows.UsageSums",
    "claude_wire.columns.usage_rows.read_usage",
    "claude_wire.protocol.background.TASK_KINDS",
    "claude_wire.dialects.frames.as_stream_json",
    "claude_wire.messages.conversation.results.words_of",
    "claude_wire.streams.sources.open_source",
    "claude_wire.messages.union.require_message",
    "claude_wire.native.overflow.DrainOptions",
    "claude_wire.process.child.Child",
    "claude_wire.process.child.Settings",
    "claude_wire.process.child.StrPath",
    "claude_wire.process.command_line.asks_host",
    "claude_wire.process.find_cli.TAP_HEAD",
    "claude_wire.process.find_cli.is_tap",
    "claude_wire.process.process.require_environment",
    "claude_wire.session.arguments.CEILING_SECONDS",
    "claude_wire.session.open.STATE_VARIABLE",
    "claude_wire.session.open.command_line",
    "claude_wire.testing.player.files.unpacked_pieces",
    "claude_wire.testing.recording.write_private",
    "claude_wire.transcripts.files.open_regular",
    "claude_wire.transcripts.files.read_small",
    "claude_wire.transcripts.read.decoder_for",
    "claude_wire.transcripts.recognise.Head",
    "claude_wire.transcripts.recognise.dialect_of",
    "claude_wire.transcripts.sessions.session_files",
    "claude_wire.transcripts.sessions.session_info",
    "claude_wire.transcripts.transcript.decoded",
}


def imported() -> Iterator[tuple[Path, str, str]]:
    """Yield the file, the module and the name of each import from the library."""
    for path in sorted(KIT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "claude_wire":
                yield from ((path.relative_to(KIT), node.module, each.name) for each in node.names)
            elif isinstance(node, ast.Import):
                yield from ((path.relative_to(KIT), each.name, "") for each in node.names if is_deep(each.name))


def is_deep(module: str) -> bool:
    return module.startswith("claude_wire.")


def is_public(module: str, name: str) -> bool:
    if module.startswith("claude_wire.integrations"):
        return True
    if module not in PUBLIC:
        return False
    package = importlib.import_module(module)
    return name in package.__all__ or f"{module}.{name}" in PUBLIC or name in ("PROTOCOL_VERSION", "__version__")


def test_the_kit_imports_only_public_names() -> None:
    wrong = [(str(path), module, name) for path, module, name in imported() if not is_public(module, name)]
    assert [each for each in wrong if f"{each[1]}.{each[2]}" not in DEEPER] == []


def test_no_exception_is_left_over() -> None:
    assert DEEPER - {f"{module}.{name}" for _, module, name in imported()} == set()
    assert [name for name in DEEPER if is_public(*name.rpartition(".")[::2])] == []


@each("path", sorted(LIBRARY.rglob("*.py")), str)
def test_the_library_does_not_name_the_kit(path: Path) -> None:
    """Not even a string names it, because code may import a module by a string. Only ``moved.py`` maps old names."""
    if path != LIBRARY / "moved.py":
        assert "claude_wire_kit" not in path.read_text(encoding="utf-8")


# --- The kit exports its public names, and its commands import no slow modules ----------------------------------------


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
