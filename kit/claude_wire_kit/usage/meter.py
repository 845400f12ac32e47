"""Measure a message stream's usage: tokens and cost, by turn, model and session.

::

    from claude_wire import read
    from claude_wire_kit.usage.meter import UsageMeter

    meter = UsageMeter()
    for message in read("session.ndjson"):
        turn = meter.add(message)
        if turn is not None:                      # message is a result, which ends a turn
            print(turn.cost_usd, turn.tokens.output_tokens)
    print(meter.total.cost_usd, meter.total.models, meter.sessions)

Do not add up ``total_cost_usd`` or ``modelUsage`` from several results. Both are running totals of the session, and
continue when the session is resumed or forked, so most of the usage would count twice. A :class:`UsageMeter` adds up
what was used between each result and the previous one.

``Session.ask()`` returns the last result of a run. If a turn failed, it raises a ``TurnError``, whose ``result`` also
counts: ``meter.add(error.result)``. If subagents work in the background, each of them starts another turn with another
result when it ends. ``ask()`` only returns or raises one of these results. ``receive_run()`` returns all of them, so
use it if the meter must count them all.

A meter does no I/O, and takes at most 20 MB of memory, whatever the stream contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, TypeVar

from claude_wire.messages import InvalidLine, Message, ModelUsage, ResultMessage, Usage
from claude_wire.messages.union import require_message
from claude_wire.support import Ids, Key, key_of
from claude_wire_kit.usage.sums import OTHERS, Sums, name_within
from claude_wire_kit.usage.tokens import Tokens

__all__ = ["MAX_MODELS", "MAX_SESSIONS", "OTHERS", "ModelTotals", "Tokens", "Totals", "UsageMeter", "models_of"]

#: A meter counts at most this many sessions separately. All others are counted together as :data:`OTHERS`.
MAX_SESSIONS = 1000

#: Each sum has at most this many models. All others are counted together as :data:`OTHERS`.
MAX_MODELS = 50

#: A model or session whose name has more characters is counted as :data:`OTHERS`.
MAX_NAME_CHARS = 200

#: A meter has at most this many rows, one for each model in each session. When it is full, a turn with a model that is
#: new in its session is counted as :data:`OTHERS`. Running totals have the same limit.
MAX_ROWS = 4096

#: A larger number counts as this number, so a row takes at most 2 KB.
MAX_NUMBER = 2**53

#: A meter remembers the uuids of this many results, so it does not count a repeated result again.
MAX_RESULTS = 10_000

N = TypeVar("N", int, float)


@dataclass
class ModelTotals(Tokens):
    """One model's usage, including subagents."""

    cost_usd: float = 0.0
    """In US dollars, as calculated by the CLI."""
    thinking_tokens: int = 0
    """Thinking tokens, which are part of ``output_tokens``."""
    web_search_requests: int = 0


@dataclass
class Totals(Sums):
    """The usage of a turn, a session or a whole stream."""

    most_names: ClassVar[int] = MAX_MODELS

    turns: int = 0
    """The number of results that were counted."""
    num_turns: int = 0
    """The sum of the results' ``num_turns``, which is the number of the model's answers."""
    cost_usd: float = 0.0
    """In US dollars, as calculated by the CLI, including subagents."""
    duration_ms: float = 0.0
    """The duration of the turns in milliseconds, including the time spent waiting for permissions."""
    duration_api_ms: float = 0.0
    """The duration of the API requests, in milliseconds.

    In the first turn of a resumed session, it includes the duration of earlier requests. Results have no field that
    says how long the earlier requests took.
    """
    models: dict[str, ModelTotals] = field(default_factory=lambda: dict[str, ModelTotals]())
    """Each model's usage, including subagents, by model name."""
    main_loop: Tokens = field(default_factory=Tokens)
    """The sum of the results' ``usage``, which is the main loop's usage without subagents."""

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of all models together, including subagents."""
        total = Tokens()
        for model in self.models.values():
            total.add(model)
        return total


class UsageMeter:
    """Adds up the usage in a stream's results.

    Add every message, or only the results; other messages are ignored. The stream may contain messages from several
    sessions. A result with the same ``uuid`` as an earlier one is not counted again. The sums include subagents. A turn
    without a result, as at the end of a stream that was cut off, is not counted, because its usage is not known.

    The meter adds a result's ``model_usage_since_last_result``, which is also correct for a resumed or forked session.
    Results of older CLIs and other dialects lack this field. For these results, the meter adds the growth of the
    session's running totals since the previous result. So the first such result of a resumed session counts all of the
    earlier usage, unless this meter already counted it. If a running total shrank, the CLI started again at zero.

    Results include the CLI's own requests, such as for compaction and titles. Transcripts on disk do not.

    Attributes:
        total: the usage of all sessions.
        sessions: each session's usage by session id, in the order of the first results. The key for results without a
            session id is None.
    """

    def __init__(self) -> None:
        self.total: Totals = Totals()
        self.sessions: dict[str | None, Totals] = {}
        # For each session, the running totals in its last result: cost, API time, and models.
        self._running: dict[Key | None, Totals] = {}
        # The total number of models in `sessions`, and in `_running`.
        self._rows = self._running_rows = 0
        # The latest results' uuids.
        self._counted = Ids(MAX_RESULTS)

    def __repr__(self) -> str:
        total = self.total
        return f"<UsageMeter: {total.turns} turns, {len(self.sessions)} sessions, ${total.cost_usd:.6f}>"

    def add(self, message: Message | InvalidLine) -> Totals | None:
        """Count the next message.

        Returns:
            The turn's usage if ``message`` is a result. None for other messages, and for a result that was already
            counted.

        Raises:
            TypeError: ``message`` is not a message, but for example a dict of ``Decoder(dict)``, or a list.
        """
        if not isinstance(message, ResultMessage):
            require_message("a UsageMeter", message)
            return None
        if self._is_repeated(message):
            return None
        turn = self._turn(message)
        id = message.session_id
        name = name_within(self.sessions, None if id is None else _short(id), MAX_SESSIONS)
        known = self.sessions.get(name) or Totals()
        if self._rows >= MAX_ROWS and not turn.models.keys() <= known.models.keys():
            name = OTHERS
        session = self.sessions.setdefault(name, Totals())
        self._rows -= len(session.models)
        session.add(turn)
        self._rows += len(session.models)
        self.total.add(turn)
        return turn

    def _is_repeated(self, result: ResultMessage) -> bool:
        if result.uuid is None:
            return False
        repeated = result.uuid in self._counted
        self._counted.add(result.uuid)
        return repeated

    def _turn(self, result: ResultMessage) -> Totals:
        turn = Totals(turns=1, num_turns=_bounded(result.num_turns), duration_ms=_bounded(result.duration_ms))
        if result.usage is not None:
            turn.main_loop = _tokens(result.usage)
        key = None if result.session_id is None else key_of(result.session_id)
        before = self._running.pop(key, None) or Totals()
        self._running_rows -= len(before.models)
        cost, api_ms = _bounded(result.total_cost_usd or 0.0), _bounded(result.duration_api_ms or 0.0)
        models = models_of(result.modelUsage)
        if result.model_usage_since_last_result is not None:
            turn.models = models_of(result.model_usage_since_last_result)
            turn.cost_usd = sum(model.cost_usd for model in turn.models.values())
        else:
            turn.models = _growth(models, before.models)
            turn.cost_usd = _grown(cost, before.cost_usd)
        turn.duration_api_ms = _grown(api_ms, before.duration_api_ms)
        # After a failed start or a local command, the totals are zero. In that case, keep the earlier totals.
        now = Totals(
            cost_usd=cost or before.cost_usd,
            duration_api_ms=api_ms or before.duration_api_ms,
            models=models or before.models,
        )
        self._running[key] = now
        self._running_rows += len(now.models)
        while len(self._running) > MAX_SESSIONS or self._running_rows > MAX_ROWS:
            self._running_rows -= len(self._running.pop(next(iter(self._running))).models)
        return turn


def _bounded(number: N | None) -> N | int:
    return 0 if number is None else number if abs(number) <= MAX_NUMBER else MAX_NUMBER


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else OTHERS


def models_of(usages: Mapping[str, ModelUsage] | None) -> dict[str, ModelTotals]:
    """Convert a ``modelUsage``, and apply a meter's limits."""
    models: dict[str, ModelTotals] = {}
    for name, usage in (usages or {}).items():
        key = name_within(models, _short(name), MAX_MODELS)
        models.setdefault(key, ModelTotals()).add(_model(usage))
    return models


def _model(usage: ModelUsage) -> ModelTotals:
    return ModelTotals(
        input_tokens=_bounded(usage.inputTokens or usage.input_tokens),
        output_tokens=_bounded(usage.outputTokens or usage.output_tokens),
        cache_creation_input_tokens=_bounded(usage.cacheCreationInputTokens),
        cache_creation_5m=_bounded(usage.cacheCreationEphemeral5mInputTokens),
        cache_creation_1h=_bounded(usage.cacheCreationEphemeral1hInputTokens),
        cache_read_input_tokens=_bounded(usage.cacheReadInputTokens),
        cost_usd=_bounded(usage.costUSD or 0.0),
        thinking_tokens=_bounded(usage.thinkingTokens),
        web_search_requests=_bounded(usage.webSearchRequests),
    )


def _tokens(usage: Usage) -> Tokens:
    split = usage.cache_creation or None
    return Tokens(
        input_tokens=_bounded(usage.input_tokens),
        output_tokens=_bounded(usage.output_tokens),
        cache_creation_input_tokens=_bounded(usage.cache_creation_input_tokens or None),
        cache_creation_5m=_bounded(split.ephemeral_5m_input_tokens if split else None),
        cache_creation_1h=_bounded(split.ephemeral_1h_input_tokens if split else None),
        cache_read_input_tokens=_bounded(usage.cache_read_input_tokens or None),
    )


def _growth(now: Mapping[str, ModelTotals], before: Mapping[str, ModelTotals]) -> dict[str, ModelTotals]:
    """Return the growth of running totals. If one shrank or is missing, all of them started again at zero."""
    empty = ModelTotals()
    anew = any(
        getattr(now.get(name, empty), each.name) < getattr(model, each.name)
        for name, model in before.items()
        for each in fields(model)
    )
    grown = {name: replace(model) for name, model in now.items()}
    for name in () if anew else before.keys() & grown.keys():  # a model that was not used may be missing
        model = before[name]
        for each in fields(model):
            setattr(grown[name], each.name, getattr(grown[name], each.name) - getattr(model, each.name))
    return grown


def _grown(total: float, before: float) -> float:
    """Return the growth of a running total. A total that shrank started again at zero."""
    return total - before if total >= before else total
