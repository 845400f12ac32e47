"""Standard output for text that is already safe to print."""

from __future__ import annotations

from rich.console import Console

from claude_wire_kit.terminal.wrapping import width_of, wrapped


class Output(Console):
    """A console that prints text as it is.

    Raises:
        OSError: by any method, standard output cannot be written.
        BrokenPipeError: by any method, the reader of standard output is gone.
    """

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Print lines. On a terminal, break them between words."""
        self.out(wrapped(text, width_of(self)), style=style, highlight=False)

    def on_broken_pipe(self) -> None:
        # rich would end this process at once, without ending the CLI that the process has started.
        raise BrokenPipeError
