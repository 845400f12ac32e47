"""The exception that ends a command with exit code 2."""

from __future__ import annotations

import click


class Failure(click.ClickException):
    """Ends the command with a message and exit code 2. Unlike ``click.UsageError``, it does not print the usage."""

    exit_code = 2


def missing_cli(error: Exception, option: str) -> Failure:
    """Return the failure for a CLINotFoundError. It advises ``option`` instead of ``cli_path``."""
    return Failure(str(error).replace("ClaudeOptions(cli_path=...)", option))
