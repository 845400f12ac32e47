"""The exception that ends a command."""

from __future__ import annotations

import click


class Failure(click.ClickException):
    """Ends the command with a message and exit code 2. Unlike ``click.UsageError``, it does not print the usage."""

    exit_code = 2
