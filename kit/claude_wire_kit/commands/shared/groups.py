"""A group of subcommands that suggests a name if the user mistypes one."""

from __future__ import annotations

import click


class SuggestingGroup(click.Group):
    """Adds the most similar name to the error about an unknown subcommand, or all names if none is similar."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            if "Did you mean" in str(error):  # click 8.3 and later suggest the names of `commands`
                raise
            names = self.list_commands(ctx)
            near = get_close_matches(args[0], names, n=1)
            advice = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(names)}."
            raise click.UsageError(f"{error.message} {advice}", ctx) from None
