"""Numbers of tokens, by what they cost. Knows numbers; not where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from claude_wire_kit.usage.sums import Sums


@dataclass
class Tokens(Sums):
    """Tokens. The three numbers of input are apart: ``input_tokens`` leaves out what the cache counts."""

    input_tokens: int = 0
    output_tokens: int = 0
    #: Written to the cache, for five minutes or one hour.
    cache_creation_input_tokens: int = 0
    #: Of those written to the cache, for five minutes. CLIs before 2.1.330 may leave this split out: then it is 0.
    cache_creation_5m: int = 0
    #: Of those written to the cache, for one hour.
    cache_creation_1h: int = 0
    cache_read_input_tokens: int = 0

    @property
    def total(self) -> int:
        """All tokens, read and written."""
        return self.input_tokens + self.output_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


@dataclass
class AnswerTotals(Tokens):
    """What answers of the model in transcripts add up to."""

    answers: int = 0
    #: In US dollars, by a table of prices, without the answers that are ``unpriced``.
    cost_usd: float = 0.0
    #: Answers of models that the table of prices does not have.
    unpriced: int = 0
