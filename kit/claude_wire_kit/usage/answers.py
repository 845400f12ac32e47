"""Count the tokens in transcripts. Each of the model's answers counts once.

::

    from claude_wire.transcripts import read
    from claude_wire_kit.usage import Answers

    answers = Answers()
    for path in paths:                      # the files of sessions and of their subagents
        for record in read(path):
            answers.add(record)
    print(answers.models)

A transcript has one line for each content block of an answer, and each of these lines has the whole answer's usage. A
forked session's file has copies of these lines. So these rules apply:

1. The message id and the request id together identify an answer. If the request id is missing, the message id alone
   identifies the answer. If the message id is missing, the ``uuid`` of the line identifies it.
2. Within a file, an answer's last line counts. Some CLIs write a line before the answer is complete, and then
   ``output_tokens`` grows from line to line.
3. If several files have the answer, the original counts, not a copy, which has a ``requestSessionId``. Among several
   originals or several copies, the last file in path order counts. An answer belongs to the session that requested it.
4. Lines of the model ``<synthetic>`` do not count, because the CLI wrote them and not a model.

This module reads no files: it takes records and returns sums. :mod:`.prices` calculates the cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from claude_wire.messages import InvalidLine, Message, UnknownMessage, Usage
from claude_wire.support import moment
from claude_wire.transcripts import AssistantRecord, Record
from claude_wire_kit.usage.tokens import MAX_TOKENS, AnswerTotals, cut_name

#: The model name in lines that the CLI itself wrote in place of an answer.
SYNTHETIC = "<synthetic>"

#: The size of a key in bytes.
KEY_BYTES = 16


class Answer(NamedTuple):
    """An answer's usage, according to one line of a transcript."""

    key: bytes
    """A digest of the ids that identify the answer. All its lines and copies have the same key."""
    copied: bool
    """True if the line is a copy in a forked session's file."""
    session: str | None
    """The session in which the answer was requested. None if the line does not say."""
    model: str
    """The model's name, or ``"?"``."""
    cwd: str | None
    """The directory that the CLI worked in."""
    agent: str | None
    """The id of the subagent that requested the answer. None for the main loop."""
    time: float | None
    """Seconds since 1970. None if the line has no valid time."""
    tokens: AnswerTotals
    """The answer's tokens, with ``answers`` 1 and no cost."""

    @property
    def prompt_tokens(self) -> int:
        """Return the number of tokens that the model read. Some models charge more for a long prompt."""
        return self.tokens.input_tokens + self.tokens.cache_creation_input_tokens + self.tokens.cache_read_input_tokens


def answer_of(record: Record | Message | InvalidLine) -> Answer | None:
    """Return the usage in a record, or None if the record has none.

    This also works for an assistant record that was decoded as an :class:`UnknownMessage` because one of its fields is
    new or invalid.
    """
    is_unknown = isinstance(record, UnknownMessage) and record.type == "assistant"
    if not (is_unknown or isinstance(record, AssistantRecord)):
        return None
    message = _get(record, "message")
    usage, model, id = _get(message, "usage"), _text(message, "model"), _text(message, "id")
    # Not isinstance(), for which pyright narrows `usage` to dict[Unknown, Unknown].
    if model == SYNTHETIC or not issubclass(type(usage), (Usage, dict)):
        return None
    by_time, asked_in = _get(usage, "cache_creation"), _text(record, "requestSessionId")
    tokens = AnswerTotals(
        answers=1,
        input_tokens=_count(usage, "input_tokens"),
        output_tokens=_count(usage, "output_tokens"),
        cache_creation_input_tokens=_count(usage, "cache_creation_input_tokens"),
        cache_creation_5m=_count(by_time, "ephemeral_5m_input_tokens"),
        cache_creation_1h=_count(by_time, "ephemeral_1h_input_tokens"),
        cache_read_input_tokens=_count(usage, "cache_read_input_tokens"),
    )
    time = moment(_text(record, "timestamp"))
    return Answer(
        key=key_of(id, _text(record, "requestId")) if id is not None else key_of(_text(record, "uuid")),
        copied=asked_in is not None,
        session=cut_name(asked_in or _text(record, "sessionId")),
        model=cut_name(model) or "?",
        cwd=cut_name(_text(record, "cwd")),
        agent=cut_name(_text(record, "agentId")),
        time=None if time is None else time.timestamp(),
        tokens=tokens,
    )


def _get(value: object, name: str) -> Any:
    """Return a field of a Struct or of a JSON object. None if the field is missing, or for any other value."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else getattr(value, name, None)


def _text(value: object, name: str) -> str | None:
    found = _get(value, name)
    return found if isinstance(found, str) else None


class Answers:
    """Counts each answer in transcripts once, by this module's rules.

    Each answer takes about 1 KB of memory. For a whole folder, use a :class:`~claude_wire_kit.usage.UsageIndex`, which
    keeps the answers on disk.
    """

    def __init__(self) -> None:
        self._by_key: dict[bytes, Answer] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._by_key.values())

    def add(self, record: Record | Message | InvalidLine) -> None:
        """Add the next record. Records without usage are ignored. Add files in the sorted order of their paths."""
        answer = answer_of(record)
        if answer is not None:
            before = self._by_key.get(answer.key)
            if before is None or before.copied >= answer.copied:
                self._by_key[answer.key] = answer

    @property
    def models(self) -> dict[str, AnswerTotals]:
        """Return the sums by model name."""
        models: dict[str, AnswerTotals] = {}
        for answer in self:
            models.setdefault(answer.model, AnswerTotals()).add(answer.tokens)
        return models


def key_of(*ids: str | None) -> bytes:
    """Return an answer's key from its message id and request id, or from its line's ``uuid``."""
    joined = "\0".join(id or "" for id in ids).encode("utf-8", "surrogatepass")
    return blake2b(joined, digest_size=KEY_BYTES).digest()


def _count(value: object, name: str) -> int:
    number = _get(value, name)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    # A number that does not fit into 64 bits counts as 0, as in `claude_wire.columns`.
    return min(max(number, 0), MAX_TOKENS) if isinstance(number, int) and number < 2**63 else 0
