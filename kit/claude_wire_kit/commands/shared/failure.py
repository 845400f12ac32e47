"""What a command says when it cannot do what it was told to."""

from __future__ import annotations

import click


class Failure(click.ClickException):
    """Ends the command with exit code 2; unlike wrong usage, without a word on its usage."""

    exit_code = 2
