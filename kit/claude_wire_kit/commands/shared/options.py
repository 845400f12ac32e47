"""Options that several subcommands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
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


def takes_json_or_csv(row: str) -> Decorator:
    """Add ``--json`` and ``--csv``, with the arguments ``as_json`` and ``as_csv``, and refuse both together.

    ``row`` says what each line of the CSV is about.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_one_format(*, as_json: bool, as_csv: bool, **options: Any) -> None:
            if as_json and as_csv:
                raise click.UsageError("--json and --csv exclude each other.")
            command(as_json=as_json, as_csv=as_csv, **options)

        csv = click.option("--csv", "as_csv", is_flag=True, help=f"Print one CSV line for each {row}.")
        return takes_json(csv(with_one_format))

    return decorate


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
