"""``claude_wire_kit.usage.meter`` counts the same tokens in a stream as the API's own log.

``data/true_usage.tar.xz`` has recorded sessions of the real CLI. Each has ``stdout.ndjson``, ``stdout.2.ndjson`` and so
on for later processes, and ``truth.json`` with the sums of the API's log by model and by session.
"""

from __future__ import annotations

import functools
import json
import lzma
import random
import tarfile
from dataclasses import asdict
from typing import Any

import pytest

import claude_wire_kit.usage.meter
from claude_wire import Decoder, InvalidLine, Message
from claude_wire.messages import ResultMessage
from claude_wire_kit.usage.meter import MAX_MODELS, MAX_SESSIONS, OTHERS, Tokens, Totals, UsageMeter
from cli_lines import line
from each import each
from folders import DATA
from recordings import load, names
from usage_lines import model, result

ARCHIVE = DATA / "true_usage.tar.xz"

#: The kinds of tokens. The API's log and the totals of a model use the same names.
KINDS = tuple(asdict(Tokens()))

#: The scenario in which the CLI probes a model. The sums leave the probe's answer out, because no result counts it.
WITH_A_PROBE = "interrupt_bash"


@functools.cache
def scenarios() -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    with lzma.open(ARCHIVE) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            folder, _, file = member.name.partition("/")
            content = archive.extractfile(member)
            assert content is not None
            found.setdefault(folder, {})[file] = content.read()
    return found


def streams(name: str) -> list[list[Message | InvalidLine]]:
    """Return the messages of each process, in the order in which the processes ran."""
    files = scenarios()[name]
    return [decoded(files[file]) for file in sorted(files, key=lambda file: (len(file), file)) if "stdout" in file]


def decoded(data: bytes) -> list[Message | InvalidLine]:
    decoder = Decoder()
    return decoder.feed(data) + decoder.close()


def truth(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scenarios()[name]["truth.json"])
    return found


def metered(*data: bytes | list[Message | InvalidLine]) -> UsageMeter:
    meter = UsageMeter()
    for stream in data:
        for message in decoded(stream) if isinstance(stream, bytes) else stream:
            meter.add(message)
    return meter


def tokens(totals: Totals) -> dict[str, dict[str, int]]:
    """Return the tokens by model, without models that used none."""
    return used({name: asdict(each) for name, each in totals.models.items()})


def used(models: dict[str, dict[str, Any]]) -> dict[str, dict[str, int]]:
    counts = {name: {kind: each[kind] for kind in KINDS} for name, each in models.items()}
    return {name: each for name, each in counts.items() if any(each.values())}


def results_without(data: bytes, *fields: str) -> bytes:
    """Return the result lines of a stream without these fields, as an older CLI writes them."""
    results = [json.loads(text) for text in data.splitlines() if b'"type":"result"' in text]
    return b"".join(line({key: value for key, value in each.items() if key not in fields}) for each in results)


# --- against the API's own log ----------------------------------------------------------------------------------------


@each("name", [name for name in scenarios() if name != WITH_A_PROBE], str)
def test_sums_of_all_processes_are_what_the_api_has_counted(name: str) -> None:
    """The sums by model and by session agree for resumed, forked, cleared, compacted and retried sessions."""
    meter, true = metered(*streams(name)), truth(name)
    assert tokens(meter.total) == used(true["all_complete_answers"])
    sessions = {id: tokens(totals) for id, totals in meter.sessions.items() if id is not None and tokens(totals)}
    assert sessions == {id: used(models) for id, models in true["by_session"].items() if used(models)}


def test_an_answer_that_no_result_counts_is_left_out() -> None:
    meter, true = metered(*streams(WITH_A_PROBE)), truth(WITH_A_PROBE)
    assert tokens(meter.total) == used(true["expected_from_transcripts"]) != used(true["all_complete_answers"])


@each("name", scenarios(), str)
def test_sessions_in_one_stream_have_their_sums_however_they_are_mixed(name: str) -> None:
    """Mix the results of all processes in random order."""
    processes = [[each for each in stream if isinstance(each, ResultMessage)] for stream in streams(name)]
    expected = {id: tokens(totals) for id, totals in metered(*streams(name)).sessions.items()}
    for seed in range(10):
        waiting = [iter(stream) for stream in processes]
        mixed: list[Message | InvalidLine] = []
        chance = random.Random(seed)
        while waiting:
            stream = chance.choice(waiting)
            message = next(stream, None)
            if message is None:
                waiting.remove(stream)
            else:
                mixed.append(message)
        assert {id: tokens(totals) for id, totals in metered(mixed).sessions.items()} == expected


@each("name", [name for name in scenarios() if "fork" not in name], str)
def test_results_of_older_clis_are_counted_by_what_their_running_totals_grow_by(name: str) -> None:
    """For a session with two processes, the sums are right if one meter sees both."""
    files = scenarios()[name]
    order = sorted((file for file in files if "stdout" in file), key=lambda file: (len(file), file))
    older = [results_without(files[file], "model_usage_since_last_result") for file in order]
    assert tokens(metered(*older).total) == tokens(metered(*streams(name)).total)


@each("name", scenarios(), str)
def test_turns_sessions_and_models_add_up_to_the_same(name: str) -> None:
    meter, turns, sessions = UsageMeter(), Totals(), Totals()
    for stream in streams(name):
        for message in stream:
            turn = meter.add(message)
            assert (turn is None) == (not isinstance(message, ResultMessage))
            if turn is not None:
                assert turn.turns == 1
                turns.add(turn)
    for totals in meter.sessions.values():
        sessions.add(totals)
    for totals in (turns, sessions):
        assert (totals.turns, tokens(totals), totals.main_loop) == (
            meter.total.turns,
            tokens(meter.total),
            meter.total.main_loop,
        )
        assert totals.cost_usd == pytest.approx(meter.total.cost_usd)
    costs = (each.cost_usd for each in meter.total.models.values())
    assert meter.total.cost_usd == pytest.approx(sum(costs))


@each("name", names(), str)
def test_what_was_used_is_what_the_running_totals_grew_by(name: str) -> None:
    """Most recordings start with zero totals. Two resume a session, so their totals start above zero."""
    data = load(name).stdout
    meter = metered(data)
    last = {each.session_id: each for each in decoded(data) if getattr(each, "total_cost_usd", None) is not None}
    before = {"16_resume_b": (0.0001, 10), "16_resume_fork": (0.0002, 20)}.get(name, (0, 0))
    totals: list[Any] = list(last.values())
    assert meter.total.cost_usd == pytest.approx(sum(each.total_cost_usd for each in totals) - before[0])
    counts = [usage.inputTokens for each in totals for usage in (each.modelUsage or {}).values()]
    assert meter.total.tokens.input_tokens == sum(counts) - before[1]


# --- rules ------------------------------------------------------------------------------------------------------------


def test_running_totals_are_not_added_up() -> None:
    meter = metered(line(result(0.1, 10)) + line(result(0.3, 30)) + line(result(0.3, 30)))
    total = meter.total
    assert (total.turns, total.cost_usd) == (3, pytest.approx(0.3))
    assert asdict(total.tokens) == {
        "input_tokens": 30,
        "output_tokens": 60,
        "cache_creation_input_tokens": 120,
        "cache_creation_5m": 0,
        "cache_creation_1h": 0,
        "cache_read_input_tokens": 90,
    }


def test_a_result_that_comes_again_counts_once() -> None:
    """This happens if a recording is read twice, or if two recordings overlap."""
    first, second = result(0.25, 1, recent={"m": model(1, 0.25)}), result(0.75, 3, recent={"m": model(2, 0.5)})
    data = line({**first, "uuid": "a"}) + line({**second, "uuid": "b"})
    meter = metered(data, data)
    assert (meter.total.turns, meter.total.cost_usd, meter.total.tokens.input_tokens) == (2, 0.75, 3)
    (again,) = decoded(line({**first, "uuid": "a"}))
    assert meter.add(again) is None


def test_resumed_session_does_not_count_what_went_before() -> None:
    meter = metered(
        line(result(5.0, 500, recent={"m": model(1, 0.25)})), line(result(5.5, 502, recent={"m": model(2, 0.5)}))
    )
    assert meter.total.cost_usd == pytest.approx(0.75)
    assert (meter.total.tokens.input_tokens, meter.total.models["m"].cost_usd) == (3, 0.75)


def test_a_result_that_says_that_nothing_was_used_adds_nothing() -> None:
    meter = metered(line(result(5.0, 500, recent={})))
    assert (meter.total.turns, meter.total.cost_usd, meter.total.models) == (1, 0, {})


def test_totals_that_shrink_began_anew_and_sessions_are_apart() -> None:
    meter = metered(
        *(line(each) for each in (result(0.3, 30), result(1.0, 100, session="t"), result(0.5, 50), result(0.1, 10)))
    )
    assert meter.total.cost_usd == pytest.approx(1.6)
    assert meter.total.tokens.input_tokens == 160
    assert {id: totals.tokens.input_tokens for id, totals in meter.sessions.items()} == {"s": 60, "t": 100}


def test_totals_begin_anew_together_where_one_of_them_shrinks() -> None:
    """One smaller total means a restart. Other totals may already be larger than before the restart."""
    anew = {"m": {"inputTokens": 40, "outputTokens": 1}, "n": {"inputTokens": 7}}
    meter = metered(line(result(0.3, 30)), line({**result(0.1, 0), "modelUsage": anew}))
    assert meter.total.models["m"].input_tokens == 30 + 40
    assert meter.total.models["n"].input_tokens == 7


@pytest.mark.parametrize("counts", [{}, {"inputTokens": -5}])
def test_a_model_without_use_may_be_gone_from_the_totals(counts: dict[str, int]) -> None:
    unused = {"modelUsage": {**result(0.3, 30)["modelUsage"], "unused": counts}}
    meter = metered(line({**result(0.3, 30), **unused}), line(result(0.5, 50)))
    assert meter.total.models["m"].input_tokens == 50
    assert meter.total.cost_usd == pytest.approx(0.5)


def test_zeros_in_the_place_of_totals_are_no_new_beginning() -> None:
    """Results of local commands and of failed starts have zeros instead of the running totals."""
    meter = metered(line(result(0.3, 30)), line({**result(0, 0), "modelUsage": {}}), line(result(0.4, 40)))
    assert meter.total.cost_usd == pytest.approx(0.4)
    assert meter.total.tokens.input_tokens == 40


def test_main_loop_is_without_subagents() -> None:
    meter = metered(load("15_subagent").stdout)
    assert (meter.total.tokens.input_tokens, meter.total.main_loop.input_tokens) == (50, 20)


def test_null_counts_are_zeros() -> None:
    usage = {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 7, "cache_creation_input_tokens": None}
    meter = metered(line(result(0.1, 10, usage=usage)), line(result(0.1, 10, usage=usage)))
    assert meter.total.main_loop == Tokens(input_tokens=10, output_tokens=12, cache_read_input_tokens=14)
    assert metered(b'{"type":"result","subtype":"success"}\n').total == Totals(turns=1)


def test_every_count_of_the_main_loop_is_added_up() -> None:
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
    }
    meter = metered(line(result(0.1, 10, usage=usage)), line(result(0.1, 10, usage=usage)))
    assert meter.total.main_loop == Tokens(
        input_tokens=2,
        output_tokens=4,
        cache_creation_input_tokens=18,
        cache_creation_5m=8,
        cache_creation_1h=10,
        cache_read_input_tokens=6,
    )


def test_other_spelling_of_a_dialect() -> None:
    meter = metered(line({**result(0, 0), "modelUsage": {"m": {"input_tokens": 3, "output_tokens": 4}}}))
    assert meter.total.tokens == Tokens(input_tokens=3, output_tokens=4)


def test_what_a_caller_does_with_a_turn_changes_no_sum() -> None:
    meter = UsageMeter()
    for message in (result(0.1, 10), result(0.3, 30)):
        turn = meter.add(*decoded(line(message)))
        assert turn is not None
        turn.models["m"].input_tokens = 10**6
        turn.main_loop.input_tokens = 10**6
    assert meter.total.tokens.input_tokens == 30
    assert meter.total.main_loop.input_tokens == 0


# --- memory -----------------------------------------------------------------------------------------------------------


def test_names_that_a_stream_makes_up_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meter bounds the number of sessions, models and results, and the length of their names."""
    monkeypatch.setattr(claude_wire_kit.usage.meter, "MAX_RESULTS", 100)
    meter, most = UsageMeter(), MAX_SESSIONS + 20
    for number in range(most):
        models = {f"{number}-{each}": model(1, 0) for each in range(3)}
        meter.add(*decoded(line({**result(1, 1, session=f"s{number}", uuid=f"u{number}"), "modelUsage": models})))
    assert len(meter.sessions) == MAX_SESSIONS + 1
    assert meter.sessions[OTHERS].turns == 20
    assert len(meter.total.models) == MAX_MODELS + 1
    assert meter.total.tokens.input_tokens == 3 * most
    assert len(meter._running) == MAX_SESSIONS
    assert len(meter._counted) == 100


def test_long_ids_are_not_kept_and_still_tell_sessions_and_results_apart() -> None:
    long = "x" * 100_000
    meter = UsageMeter()
    for session, uuid, total, count in (
        ("a", "1", 0.1, 10),
        ("b", "2", 0.5, 50),
        ("a", "3", 0.3, 30),
        ("a", "3", 9, 9),
    ):
        message = {**result(total, count, session=long + session), "uuid": long + uuid}
        meter.add(*decoded(line({**message, "modelUsage": {long: model(count, total)}})))
    assert set(meter.sessions) == {OTHERS} == set(meter.total.models)
    assert meter.total.turns == 3
    assert meter.total.cost_usd == pytest.approx(0.8)
    kept = [*meter._running, *meter._counted._keys]
    assert max(len(each) for each in kept if isinstance(each, (str, bytes))) <= 200


def test_a_repr_says_how_much_was_counted() -> None:
    assert repr(metered(line(result(0.25, 1)))) == "<UsageMeter: 1 turns, 1 sessions, $0.250000>"
