"""Count tokens, separately for each kind that has its own price."""

from __future__ import annotations

from dataclasses import dataclass

from claude_wire_kit.usage.sums import Sums

#: A larger number of tokens counts as this number, so every sum fits into 64 bits.
MAX_TOKENS = 2**40
#: Ids, and names of models, sessions and folders, are cut to this many characters.
MAX_CHARS = 1000


def cut_name(name: str | None) -> str | None:
    """Cut a name to :data:`MAX_CHARS` characters, and replace lone surrogates, which have no UTF-8."""
    return None if name is None else name[:MAX_CHARS].encode("utf-8", "replace").decode()


@dataclass
class Tokens(Sums):
    """Token counts. ``input_tokens`` does not include the tokens written to or read from the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    """Tokens written to the cache, for five minutes or one hour."""
    cache_creation_5m: int = 0
    """Tokens written to the cache for five minutes.

    It is 0 if the CLI does not report it. CLIs before 2.1.330 may omit it.
    """
    cache_creation_1h: int = 0
    """Tokens written to the cache for one hour."""
    cache_read_input_tokens: int = 0

    @property
    def total(self) -> int:
        """Return the total number of tokens, read and written."""
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


@dataclass
class AnswerTotals(Tokens):
    """The usage of several of the model's answers in transcripts."""

    answers: int = 0
    """The number of answers."""
    cost_usd: float = 0.0
    """The cost in US dollars, calculated from a price table, without the answers counted in ``unpriced``."""
    unpriced: int = 0
    """The number of answers from models that are not in the price table."""
