"""``claude_wire_kit.usage.answers`` counts each answer in transcripts once, as the API does."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict, replace
from typing import Any

from claude_wire import Decoder, InvalidLine
from claude_wire.messages import UnknownMessage
from claude_wire.transcripts import Record
from claude_wire_kit.usage import Answer, Answers, AnswerTotals, Tokens, UsageMeter
from claude_wire_kit.usage.answers import answer_of
from claude_wire_kit.usage.tokens import MAX_CHARS, MAX_TOKENS
from cli_lines import line
from each import each
from sessions import outputs, scenarios, transcripts, truth

#: The scenario in which the CLI probes a model. The probe is in no result and in no transcript.
WITH_A_PROBE = "interrupt_bash"
#: The scenario with an interrupted answer. The result only estimates the output tokens of that answer.
INTERRUPTED = "interrupt_stream"
#: The scenario with a killed process. Its usage is in no result.
KILLED = "torn_resumed"
#: The scenario in which the host closes the stream while a subagent works. Later answers are in no result.
CLOSED = "h_background"


def records(data: bytes) -> list[Record | UnknownMessage | InvalidLine]:
    decoder = Decoder(Record)
    return [*decoder.feed(data), *decoder.close()]


def counted(*files: bytes) -> Answers:
    answers = Answers()
    for data in files:
        for record in records(data):
            answers.add(record)
    return answers


def plain(models: dict[str, AnswerTotals]) -> dict[str, dict[str, int]]:
    """Convert totals to the form of ``truth.json``."""
    names = ("answers", *asdict(Tokens()))
    return {model: {name: asdict(totals)[name] for name in names} for model, totals in models.items()}


def answer(**others: Any) -> dict[str, Any]:
    message = {"id": "m", "model": "x", "role": "assistant", "content": [], "usage": usage(1), **others.pop("has", {})}
    record = {"type": "assistant", "uuid": "u", "parentUuid": None, "sessionId": "s", "requestId": "r"}
    return {**record, "message": message, **others}


def usage(tokens: int, **others: Any) -> dict[str, Any]:
    return {"input_tokens": 1, "output_tokens": tokens, **others}


def output(*lines: dict[str, Any]) -> int:
    return sum(each.tokens.output_tokens for each in counted(b"".join(map(line, lines))))


@each("scenario", scenarios(), str)
def test_sums_are_those_of_the_api_to_the_token(scenario: str) -> None:
    """The scenarios include torn, forked, retried and interrupted sessions, and subagents."""
    answers = counted(*transcripts(scenario).values())
    assert plain(answers.models) == truth(scenario)["sums"]["expected_from_transcripts"]
    assert len(answers) == sum(each.answers for each in answers.models.values())


@each("scenario", scenarios(), str)
def test_each_answer_belongs_to_the_session_that_asked(scenario: str) -> None:
    """A subagent's answers belong to its session. Copied answers belong to the original session, in any file order."""
    asked = [each for each in truth(scenario)["answers"] if each["in_transcript"]]
    expected = [(each["session_id"], each["model"], each["usage"]["input_tokens"]) for each in asked]
    files = list(transcripts(scenario).values())
    for order in itertools.islice(itertools.permutations(files), 6):
        found = [(each.session, each.model, each.tokens.input_tokens) for each in counted(*order)]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    for data in files:
        assert {(each.session, each.model, each.tokens.input_tokens) for each in counted(data)} <= set(expected)


@each("scenario", [name for name in scenarios() if name not in (WITH_A_PROBE, INTERRUPTED, KILLED)], str)
def test_results_of_the_live_streams_have_the_sums_of_the_api(scenario: str) -> None:
    """Resumed and forked processes start with the earlier totals, and /clear resets the totals."""
    meter = UsageMeter()
    for data in outputs(scenario):
        for message in (decoder := Decoder()).feed(data) + decoder.close():
            meter.add(message)
    used = {name: replace(AnswerTotals(), **tokens(totals)) for name, totals in meter.total.models.items()}
    true = truth(scenario)["sums"]["all_complete_answers"]
    if scenario == CLOSED:
        answers = truth(scenario)["answers"]
        on_stream = [each["message_id"].encode() in b"".join(outputs(scenario)) for each in answers]
        late = answers[len(answers) - on_stream[::-1].index(True) :]
        assert [each["kind"] for each in late] == ["subagent", "main"]
        for each in late:
            for kind in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
                true[each["model"]][kind] -= each["usage"][kind]
            for name, written in (("5m", "ephemeral_5m_input_tokens"), ("1h", "ephemeral_1h_input_tokens")):
                true[each["model"]][f"cache_creation_{name}"] -= each["usage"]["cache_creation"][written]
    assert plain({name: totals for name, totals in used.items() if totals.total}) == {
        model: {**totals, "answers": 0} for model, totals in true.items()
    }


def tokens(totals: Any) -> dict[str, int]:
    return {name: getattr(totals, name) for name in asdict(Tokens())}


def test_the_last_line_of_an_answer_counts_wherever_the_others_stand() -> None:
    lines = [answer(has={"usage": usage(tokens)}, uuid=str(tokens)) for tokens in (1, 5, 3)]
    assert output(*lines) == 3
    assert output(lines[0], answer(requestId="other"), *lines[1:]) == 3 + 1


def test_a_copy_counts_only_where_the_original_is_gone() -> None:
    original = answer(has={"usage": usage(7)})
    copy = answer(sessionId="fork", requestSessionId="s", has={"usage": usage(2)})
    assert output(original, copy) == output(copy, original) == 7
    (alone,) = counted(line(copy))
    assert (alone.session, alone.copied, alone.tokens.output_tokens) == ("s", True, 2)


def test_answers_without_ids_are_told_apart_as_far_as_they_can_be() -> None:
    no_request = answer(requestId=None)
    assert output(no_request, no_request) == 1
    assert output(no_request, answer()) == 2
    nothing = answer(requestId=None, has={"id": None})
    assert output(nothing, nothing) == 1
    assert output(nothing, {**nothing, "uuid": "v"}) == 2


def test_what_is_no_answer_counts_nothing() -> None:
    assert len(counted(*map(line, (answer(has={"model": "<synthetic>"}), answer(has={"usage": None}))))) == 0
    assert len(counted(b'{"type":"user"}\n{torn\n{"type":"assistant"}\n')) == 0
    for message in Decoder().feed(line({"type": "result", "subtype": "success"})):
        assert answer_of(message) is None


def test_times_are_read_with_and_without_an_offset() -> None:
    stamps = ("2026-01-02T03:04:05.678Z", "2026-01-02T05:04:05.678+02:00", "2026-01-02T03:04:05.678", "soon", None)
    times = [only(answer(timestamp=stamp)).time for stamp in stamps]
    assert times == [1767323045.678] * 3 + [None] * 2


def only(record: dict[str, Any]) -> Answer:
    (found,) = counted(line(record))
    return found


def test_hostile_values_are_bounded() -> None:
    long = "x" * (2 * MAX_CHARS)
    huge = answer(sessionId=long, cwd=long, has={"id": long, "model": long, "usage": usage(10**18, input_tokens=-5)})
    found = only(huge)
    assert (found.tokens.output_tokens, found.tokens.input_tokens) == (MAX_TOKENS, 0)
    assert found.session == found.model == found.cwd == long[:MAX_CHARS]
    assert only(answer(has={"id": "\ud83d", "model": "\ud83d"})).model == "?"


def test_the_order_of_originals_does_not_change_the_number_of_answers() -> None:
    lines = [answer(requestId=str(each % 50), uuid=str(each)) for each in range(200)]
    chance = random.Random(1)
    for _ in range(10):
        chance.shuffle(lines)
        assert len(counted(b"".join(map(line, lines)))) == 50
