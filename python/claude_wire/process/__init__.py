"""Run a child process that speaks the protocol: its arguments, its pipes, its exit, and how the host terminates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from claude_wire.process.process import Process as Process
    from claude_wire.process.process import open_process as open_process


def __getattr__(name: str) -> Any:
    # Import these names on first use: a program that only needs `find_cli` or `ClaudeOptions` does not import anyio.
    if name not in ("Process", "open_process"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from claude_wire.process import process

    return getattr(process, name)
