"""The memory that a peer can make the library use is bounded, and the tables in the docs state the bounds."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

import what_is_kept
from claude_wire import Accumulator, Decoder, InvalidLine, decode, peek
from claude_wire.codec import kinds
from claude_wire.process.exchange import Exchange, prompts_of
from claude_wire.support.ids import DIGEST_BYTES, LONGEST_ID, Ids, key_of
from folders import ROOT
from pages import kept
from what_is_kept import MEGABYTE, drive


def test_a_short_id_is_kept_as_it_is_and_a_long_one_as_a_digest() -> None:
    """This bounds the memory of an id, and two different ids never get the same key."""
    short, long = "x" * LONGEST_ID, "x" * (LONGEST_ID + 1)
    assert key_of(short) is short
    assert key_of(long) != key_of(long + "x")
    assert len(key_of(long)) == DIGEST_BYTES
    assert isinstance(key_of("\ud83d" * 1000), bytes)  # a lone surrogate cannot be encoded as UTF-8
    ids = Ids(3)
    for name in ("a", "b", long, "b", "c"):
        ids.add(name)
    assert ["a" in ids, "b" in ids, long in ids, "c" in ids, len(ids)] == [False, True, True, True, 3]
    ids.discard(long)
    ids.discard("nothing")
    assert (long in ids, len(ids)) == (False, 2)


def long_request_ids(found: dict[str, Any]) -> None:
    """The answer repeats a long id in full.

    A repeated request gets no second answer, and 30 long ids leave no memory.
    """
    assert found["answered"] == 30
    assert found["last"] == ["after"]
    assert found["kept"] < 10 * MEGABYTE


def many_request_ids(found: dict[str, Any]) -> None:
    """The session remembers the last 4,096 answered ids, and answers an older one again."""
    assert found == {"remembered": 4096, "again": ["0"]}


def long_task_ids(found: dict[str, Any]) -> None:
    """Task ids are bounded in size and in number, and the end of a task with a long id is still recognized."""
    assert found["sizes"] == [30, 29, 4096, 4095]
    assert found["kept"] < 10 * MEGABYTE


def waiting_request_bytes(found: dict[str, Any]) -> None:
    """The session stops reading when 64 MiB of requests wait.

    After it has answered them, it reads and answers the rest.
    """
    assert 64 * 2**20 <= found["held"] < 64 * 2**20 + 2 * MEGABYTE
    assert found["read"] < 64 * 2**20 + 2 * MEGABYTE
    assert found["left"] == 0


def answers_not_taken(found: dict[str, Any]) -> None:
    """An answer that the peer does not read counts against the limit, in addition to its request."""
    assert 64 * 2**20 <= found["held"] < 64 * 2**20 + 4 * MEGABYTE
    assert found["read"] < 64 * 2**20
    assert found["left"] == 0


def requests_in_one_line(found: dict[str, Any]) -> None:
    """The requests in a single line cannot start an unlimited number of callbacks."""
    assert found["open"] == 8192
    assert found["tasks"] <= 8192 + 1  # one more task is the reader


def control_messages_ahead(found: dict[str, Any]) -> None:
    """Data that is read ahead is stored only once, as the bytes counted in the budget. No request is answered twice."""
    assert found["counted"] > 30 * MEGABYTE
    assert found["kept"] < 1.1 * found["counted"]
    assert found["again"] == 0


def small_chunks(found: dict[str, Any]) -> None:
    """Bytes that arrive one by one use about as much memory as the budget counts for them."""
    assert found["counted"] == found["size"]
    assert found["kept"] < found["size"] + 67_000  # less than 4 bytes of overhead per chunk


def unknown_types(found: dict[str, Any]) -> None:
    """The library remembers an unknown type only if its name is short."""
    assert found["kept"] < 1 * MEGABYTE


def accumulated_text(found: dict[str, Any]) -> None:
    """The accumulator drops a message that exceeds the limit, and ``started`` identifies the message after it."""
    assert found["dropped"] == 2
    assert found["begun"] == 670  # the deltas of 100,066 characters that fit in 64 Mi characters, out of 2,000
    assert found["last"] == "001340"
    assert found["kept"] < 64 * 2**20


def accumulated_pieces(found: dict[str, Any]) -> None:
    """Even for many tiny events, the accumulator uses at most 4 bytes per character of its limit."""
    max_chars = found.pop("max_chars")
    for name, most in found.items():
        assert most < 4 * max_chars, name


def mcp_server_that_never_reads(found: dict[str, Any]) -> None:
    """Notifications and requests do not pile up without limit for an MCP server that never reads."""
    notifications, none, unread, unanswered = found["waiting"]
    assert (none, unanswered) == (0, 4096)
    for number in notifications, unread:
        assert 4090 < number <= 4096  # a few are already on their way to the server


def usage_of_many_models(found: dict[str, Any]) -> None:
    """The sums stay below 20 MB. Usage of models without a separate row still counts in the total."""
    assert found["rows"] <= 4096 + 2 * 51
    assert found["running"] <= 4096
    assert found["turns"] == found["results"]
    assert found["input"] == 50 * found["results"] * 2**53
    assert found["kept"] < 20 * MEGABYTE


DRIVEN = [
    long_request_ids,
    many_request_ids,
    long_task_ids,
    waiting_request_bytes,
    answers_not_taken,
    requests_in_one_line,
    control_messages_ahead,
    small_chunks,
    unknown_types,
    accumulated_text,
    accumulated_pieces,
    usage_of_many_models,
    mcp_server_that_never_reads,
]


@pytest.mark.parametrize("holds", DRIVEN, ids=[holds.__name__ for holds in DRIVEN])
def test_what_a_peer_makes_us_keep_is_bounded(holds: Any) -> None:
    """Run the function of the same name in ``what_is_kept``, and check its measurements."""
    holds(drive(holds.__name__))


class Passed:
    """A helper that records the messages between a host and a process, and how the process would end now."""

    def __init__(self) -> None:
        self.exchange = Exchange(cast("Any", None), sees_results=True)

    def sent(self, *uuids: str) -> None:
        for uuid in uuids:
            for prompt in prompts_of(what_is_kept.line({"type": "user", "uuid": uuid})):
                self.exchange.run.ask(prompt, 0.0)

    @property
    def unfinished(self) -> str:
        return self.exchange.run.unfinished_turn()


def test_uuids_of_prompts_are_bounded() -> None:
    """After any number of prompts only 4,096 uuids are remembered. A prompt with a remembered uuid starts no turn."""
    passed = Passed()
    passed.sent(*map(str, range(10_000)))
    assert len(passed.exchange.run._uuids) == len(passed.exchange.run._open) == 4096
    passed.exchange.saw([{"type": "result"}])
    assert passed.unfinished == ""
    passed.sent("9999")
    assert passed.unfinished == ""
    passed.sent("0")
    assert passed.unfinished != ""


def test_prompts_with_an_empty_uuid_are_several() -> None:
    """An empty uuid counts as no uuid, so the second prompt starts a turn like the first one."""
    passed = Passed()
    for _ in range(2):
        passed.sent("")
        assert passed.unfinished != ""
        passed.exchange.saw([{"type": "result", "user_message_uuids": []}])
        assert passed.unfinished == ""


def test_a_result_that_names_nobody_is_for_all_prompts_that_were_sent() -> None:
    passed = Passed()
    passed.sent("a", "b")
    passed.exchange.saw([{"type": "result"}])
    assert passed.unfinished == ""


@pytest.mark.parametrize("state", [[], {}, 1, None])
def test_a_lifecycle_of_a_state_that_is_no_text_says_nothing(state: Any) -> None:
    """The iteration returns the message and does not raise."""
    passed = Passed()
    passed.sent("u")
    lifecycle = {"type": "command_lifecycle", "command_uuid": "u", "state": state}
    passed.exchange.saw([lifecycle, decode(what_is_kept.line(lifecycle))])
    assert passed.unfinished != ""


#: Page -> first words of each row in its table of limits -> the tests of that row, in this file or another.
ROWS: dict[str, dict[str, list[str]]] = {
    "limits.md": {
        "a line that is not complete": ["tests/codec/test_decoder_bad_lines.py"],
        "unread bytes of all pipes": ["tests/native/test_draining.py", "tests/streams/test_plain_pipe.py"],
        "values that the native reader shares": ["tests/codec/test_engine.py"],
        "kinds that `peek` has seen": ["unknown_types"],
        "messages of an `Accumulator`": ["accumulated_text", "accumulated_pieces"],
    },
    "session.md": {
        "messages that a session has read ahead of its consumer": [
            "tests/session/test_session_bounds.py",
            "small_chunks",
        ],
        "control messages that a session has handled ahead of its consumer": ["control_messages_ahead"],
        "ids of answered requests": ["long_request_ids", "many_request_ids"],
        "requests that wait for their answers": ["waiting_request_bytes", "answers_not_taken"],
        "requests that wait, where one line lists many": ["requests_in_one_line"],
        "tasks in the background": ["long_task_ids"],
        "uuids of prompts that were sent to a process": ["test_uuids_of_prompts_are_bounded"],
        "messages that an in-process MCP server has not read": ["mcp_server_that_never_reads"],
        "a variable by which a process joins a trace": ["tests/process/test_tracing.py"],
    },
    "dialects.md": {
        "messages that a session has translated ahead": ["tests/dialects/test_dialect_sessions.py"],
        "permission questions of an agent of `CLASSIC`": ["tests/dialects/test_dialect_requests.py"],
        "answers of an agent of `JSON_RPC`": ["tests/dialects/test_dialect_requests.py"],
    },
    "agent.md": {
        "prompts that wait in an agent": ["tests/agent/test_agent_bounds.py"],
        "uuids of prompts that an agent was sent": ["tests/agent/test_agent_bounds.py"],
        "prompts of an agent that ask no model": ["tests/agent/test_agent_bounds.py"],
        "output of an agent that its host has not read": [
            "tests/agent/test_agent_acts.py",
            "tests/agent/test_agent_faults.py",
        ],
        "requests of a host that an agent has not answered": ["tests/agent/test_agent_bounds.py"],
        "MCP servers of a host, in an agent": ["tests/agent/test_agent_faults.py"],
        "the last `initialize` of a host": ["tests/agent/test_agent_bounds.py"],
        "what the hooks of a host answer": ["tests/agent/test_agent_bounds.py"],
        "tools that answers of a host allow": ["tests/agent/test_agent_faults.py"],
    },
    "transcripts.md": {
        "a transcript": ["tests/transcripts/test_transcript_tree.py"],
        "a session that `find_sessions` lists": ["tests/transcripts/test_find_sessions.py"],
        "lines read to decide whether": ["tests/transcripts/test_transcript_messages.py"],
    },
    "columns.md": {
        "a pass of `columns.scan`": ["tests/columns/test_columns_scan.py"],
        "rows of one line in the table": ["tests/columns/test_columns_scan.py"],
        "values that did not fit in a pass": ["tests/columns/test_columns_scan.py"],
    },
    "how-to/telemetry.md": {"spans that a `SpanRecorder` has open": ["tests/integrations/test_otel_spans.py"]},
}


@pytest.mark.parametrize("page", ROWS)
def test_each_row_of_a_page_has_its_test(page: str) -> None:
    """The rows of the tables in the docs are the keys of ROWS, in the same order."""
    rows = kept(page)
    assert [next((name for name in ROWS[page] if row.startswith(f"| {name}")), row) for row in rows] == list(ROWS[page])
    here = {holds.__name__ for holds in DRIVEN} | set(globals())
    for name in (test for tests in ROWS[page].values() for test in tests):
        assert name in here or (ROOT / name).exists(), name


def test_the_numbers_of_the_pages_are_those_of_the_code() -> None:
    """The limits on the pages equal the constants in the code."""
    from claude_wire import limits
    from claude_wire.accumulate import accumulator as accumulate
    from claude_wire.agent import protocol, questions, service
    from claude_wire.control import answers
    from claude_wire.native import budget
    from claude_wire.process import tracing
    from claude_wire.protocol import questions as _control
    from claude_wire.streams import read_ahead
    from claude_wire.support import ids as _ids

    text = "\n".join(row for page in ROWS for row in kept(page))
    for number in (
        f"{accumulate.MAX_CHARS >> 20} Mi characters",
        f"a delta counts {accumulate.DELTA_CHARS} more and any other event {accumulate.EVENT_CHARS:,} more",
        f"{limits.DEFAULT_MAX_LINE_BYTES >> 20} MiB",
        f"{budget.DEFAULT_BYTE_BUDGET >> 20} MiB",
        f"{protocol.MAX_PROMPTS:,}, and {protocol.MAX_PROMPT_BYTES >> 20} MiB; twice as many while it waits",
        f"{protocol.MAX_UUIDS:,} digests of 16 bytes",
        f"(`turn.hook_context`) | {questions.MAX_HOOK_BYTES >> 20} MiB",
        f"{service.CROWDED_BYTES >> 20} MiB, and the output of one call",
        f"{answers.MAX_WAITING_BYTES >> 20} MiB, and {answers.MAX_TASKS:,} tasks",
        f"{read_ahead.SHARE_BYTES >> 10} KiB",
        f"{_ids.MAX_IDS:,}; an id of more than {LONGEST_ID} characters",
        f"{answers.MAX_WAITING_BYTES >> 20} MiB in a session, and {answers.MAX_TASKS:,} tasks",
        f"{_control.MAX_OPEN:,} in a session",
        f"{tracing.MAX_BYTES >> 10} KiB with its name",
        f"{kinds.MAX_KNOWN:,} in a process, of at most {kinds.LONGEST_KNOWN} bytes",
    ):
        assert number in text, number


@pytest.mark.parametrize(
    "text",
    ["x", "warning: low disk", " \tx", "nul", "tru", "falsy", "NaM", "Inf", "+1", ".5", "'a'", "}", "]", "\ufeffx"],
)
def test_a_line_that_begins_no_value_is_refused_in_the_words_of_json(text: str) -> None:
    """The decoder rejects such lines without a parser, because one chunk may have 32,768 of them."""
    with pytest.raises(json.JSONDecodeError) as refused:
        json.JSONDecoder().decode(text.strip(" \t\r\n"))
    said = f"not JSON: {refused.value.msg} at character {refused.value.pos} of the line"
    before, line, after = Decoder().feed(b"{}\n" + text.encode() + b"\n{}\n")
    assert isinstance(line, InvalidLine)
    assert line.reason == said
    assert not isinstance(before, InvalidLine)
    assert not isinstance(after, InvalidLine)


@pytest.mark.parametrize(
    "text", ["1", "-1", '"a"', "[]", "true", "null", "NaN", "-Infinity", "true x", "[", '"', "{x}"]
)
def test_a_line_that_begins_a_value_goes_to_the_parsers(text: str) -> None:
    """The reason of the invalid line is the parser's error message."""
    (line,) = Decoder().feed(text.encode() + b"\n")
    assert isinstance(line, InvalidLine)
    assert "Expecting value at character 0" not in line.reason


def test_reprs_of_what_a_stream_says_show_80_characters_at_most() -> None:
    """The peer chooses ids, types and tags, so they may be long, and a repr may end up in a log."""
    long = "x" * 100_000
    start = {"type": long, "id": long, "name": long}
    accumulator = Accumulator()
    message = {"id": long, "type": "message", "role": "assistant", "model": long, "content": [start], "usage": {}}
    partial = accumulator.add(what_is_kept._event({"type": "message_start", "message": message}))
    assert partial is not None
    kind = peek(what_is_kept.line({"type": long, "subtype": long}))
    for value in partial, partial.blocks[0], kind:
        assert len(repr(value)) <= len(type(value).__name__) + 2 + 80
    assert repr(peek(b'{"type":"system","subtype":"init"}')) == "Kind(type='system', subtype='init', detail=None)"
