"""Options that several subcommands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import click

#: Adds an option or an argument to a command.
Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]

#: Settings of a command that passes flags on to another program. The command parses only options before its first
#: argument, and treats an unknown option as an argument.
PASSES_FLAGS: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def absolute(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Make the value of an option absolute. Symbolic links are kept."""
    return None if path is None else os.path.abspath(path)


#: Adds the option ``--json``, with the argument ``as_json``.
takes_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")

#: Adds the option ``--cli``. Its value is an absolute path, or None.
takes_cli: Decorator = click.option(
    "--cli",
    type=click.Path(exists=True, dir_okay=False, executable=True),
    callback=absolute,
    help="The CLI (default: searched for).",
)

#: Adds the option ``--folder`` for the state folder of a supervisor.
takes_state_folder: Decorator = click.option(
    "--folder",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="State folder (default: $CLAUDE_WIRE_SUPERVISOR, or ~/.local/state/claude-wire/supervisor).",
)
