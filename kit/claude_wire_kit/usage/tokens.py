"""Numbers of tokens, by their kind of price."""

from __future__ import annotations

from dataclasses import dataclass

from claude_wire_kit.usage.sums import Sums

#: A number of tokens above this counts as this, so that no sum passes 64 bits.
MAX_TOKENS = 2**40
#: Ids, and names of models, sessions and folders, are cut to this many characters.
MAX_CHARS = 1000


def cut_name(name: str | None) -> str | None:
    """A name with at most :data:`MAX_CHARS` characters. A lone surrogate has no UTF-8, and is replaced."""
    return None if name is None else name[:MAX_CHARS].encode("utf-8", "replace").decode()


@dataclass
class Tokens(Sums):
    """Tokens by kind. ``input_tokens`` does not include the tokens written to or read from the cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    #: Tokens written to the cache, for five minutes or one hour.
    cache_creation_input_tokens: int = 0
    #: Of the tokens written to the cache, those for five minutes. CLIs before 2.1.330 may not say this. Then it is 0.
    cache_creation_5m: int = 0
    #: Of the tokens written to the cache, those for one hour.
    cache_creation_1h: int = 0
    cache_read_input_tokens: int = 0

    @property
    def total(self) -> int:
        """Return the number of all tokens, read and written."""
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


@dataclass
class AnswerTotals(Tokens):
    """The sum of the model's answers in transcripts."""

    answers: int = 0
    #: In US dollars, by a table of prices. Answers in ``unpriced`` are not included.
    cost_usd: float = 0.0
    #: Answers of models that are not in the table of prices.
    unpriced: int = 0
