"""Standard output for text that is safe to print."""

from __future__ import annotations

from rich.console import Console

from claude_wire_kit.terminal.wrapping import width_of, wrapped


class Output(Console):
    """A console that prints text without interpreting markup. Any method may raise these errors.

    Raises:
        OSError: standard output cannot be written.
        BrokenPipeError: the reader of standard output has exited.
    """

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Print lines. On a terminal, break them between words."""
        self.out(wrapped(text, width_of(self)), style=style, highlight=False)

    def on_broken_pipe(self) -> None:
        # rich would exit immediately, without stopping the CLI.
        raise BrokenPipeError
