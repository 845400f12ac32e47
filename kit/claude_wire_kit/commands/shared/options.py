"""Options that several subcommands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., None])

#: Settings of a command that passes flags on to another program. The command parses only options before its first
#: argument, and treats an unknown option as an argument.
PASSES_FLAGS: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def takes_json(command: C) -> C:
    """Decorator that adds the option ``--json`` as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def takes_cli(command: C) -> C:
    """Decorator that adds the option ``--cli``. Its value is an absolute path, or None. Symbolic links are kept."""
    return click.option(
        "--cli",
        type=click.Path(exists=True, dir_okay=False, executable=True),
        callback=lambda context, parameter, path: path and os.path.abspath(path),
        help="The CLI (default: searched for).",
    )(command)


def takes_state_folder(command: C) -> C:
    """Decorator that adds the option ``--folder`` for the state folder of a supervisor."""
    return click.option(
        "--folder",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="State folder (default: $CLAUDE_WIRE_SUPERVISOR, or ~/.local/state/claude-wire/supervisor).",
    )(command)
