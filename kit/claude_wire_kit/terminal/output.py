"""Standard output, for text that is safe to print already."""

from __future__ import annotations

from rich.console import Console

from claude_wire_kit.terminal.wrapping import width_of, wrapped


class Output(Console):
    """A console that takes text as it is.

    Raises:
        OSError: by any method, standard output cannot be written; BrokenPipeError, nobody reads it any more.
    """

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Write lines: on a terminal broken between words, elsewhere as they are."""
        self.out(wrapped(text, width_of(self)), style=style, highlight=False)

    def on_broken_pipe(self) -> None:
        # rich would end this process on the spot; a CLI that it has started would have to notice by itself.
        raise BrokenPipeError
