"""The native reader must give the same messages as msgspec for every line, also with threads, interrupts and fork."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib.metadata
import itertools
import json
import logging
import mmap
import os
import random
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import claude_wire.codec.decoder
import recordings
from children import in_own_process
from claude_wire import Decoder, InvalidLine, Message, ToolUseBlock, decode
from claude_wire.codec import engine, warnings_of_msgspec
from claude_wire.codec.engines import Engine, are_same, engine_of
from claude_wire.codec.typed_lines import TypedLines
from claude_wire.codec.warnings_of_msgspec import warn_of_msgspec
from claude_wire.messages import KeepAlive
from claude_wire.messages.base import Wire
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import Family
from claude_wire.native import functions as native_functions
from claude_wire.native.functions import ENGINE_VARIABLE, NEWEST_TESTED, Choice, choose, functions
from claude_wire.native.library import lib
from claude_wire.transcripts import Record
from delta_lines import CLOSING, MERGEABLE, NOT_MERGEABLE, block, delta
from each import each
from feeding import cut
from long_tests import LONG
from mutations import mutated
from recordings import load, names
from traffic import traffic

if not functions():
    pytest.skip("msgspec decodes here", allow_module_level=True)


def decoder(engine: Engine, family: Any = None, **options: Any) -> Decoder[Any]:
    """Return a decoder that uses this engine."""
    made: Decoder[Any] = Decoder(**options) if family is None else Decoder(family)
    lines = made._lines
    assert isinstance(lines, TypedLines)
    lines.engine = engine
    made._feeder = made._native_feeder = engine.new_feed(made._buffer.handle)
    return made


def fed(decoder: Decoder[Any], data: bytes, size: int) -> list[Any]:
    messages = [message for at in range(0, len(data), size) for message in decoder.feed(data[at : at + size])]
    return messages + decoder.close()


def require_same(data: bytes, native: Engine, size: int, family: Any = None) -> None:
    by_msgspec = decoder(Engine(MESSAGES, {}), family)
    natively = decoder(native, family)
    expected, found = fed(by_msgspec, data, size), fed(natively, data, size)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert are_same(one, other), (one, other)
    assert natively.stats == by_msgspec.stats
    assert not native.why_not


@pytest.fixture
def native() -> Engine:
    """A new engine, which has not planned any class yet."""
    return Engine(MESSAGES, functions())


def test_the_native_reader_is_what_decodes() -> None:
    by_functions = os.environ.get(ENGINE_VARIABLE) == "functions"
    assert engine() == ("native: CPython's functions count references" if by_functions else "native")


def test_recordings_are_the_same_one_after_another(native: Engine) -> None:
    for name in names():
        require_same(load(name).stdout, native, 64 * 1024)


@each("name", names(), str)
def test_recordings_are_the_same_byte_by_byte_or_in_pieces_of_odd_sizes(name: str, native: Engine) -> None:
    for data in load(name).stdout, load(name).stdin:
        whole = decoder(Engine(MESSAGES, {}))
        expected = fed(whole, data, 64 * 1024)
        for size in (1,) if len(data) < 60_000 else (61, 257, 4093):
            natively = decoder(native)
            found = fed(natively, data, size)
            assert len(found) == len(expected), size
            assert all(map(are_same, found, expected)), size
            assert natively.stats == whole.stats, size
    assert not native.why_not


def test_most_recorded_lines_are_read_natively(native: Engine) -> None:
    lines = []
    for name in names():
        data = load(name).stdout
        fed(decoder(native), data, 64 * 1024)
        lines += [line for line in data.splitlines() if is_json(line)]
    left = [line for line in lines if native.read_line(line) is None]
    assert len(left) < len(lines) / 100


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_records_of_transcripts_are_the_same() -> None:
    lines = [
        {
            "type": "user",
            "uuid": "u",
            "parentUuid": None,
            "sessionId": "s",
            "message": {"role": "user", "content": "é"},
        },
        {"type": "ai-title", "aiTitle": "t", "sessionId": "s"},
        {"type": "system", "subtype": "later", "uuid": "u"},
        {"type": "later"},
    ]
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines * 50)
    decoded = Decoder(Record)
    lines_ = decoded._lines
    assert isinstance(lines_, TypedLines)
    natively = Engine(lines_._vocabulary, functions())
    require_same(data, natively, 4096, Record)


def test_what_was_unknown_in_a_wrong_guess_does_not_count(native: Engine) -> None:
    start = b'{"session_id":"s","uuid":"u","event":{"type":"later"},'
    event = start + b'"parent_tool_use_id":null,"type":"stream_event"}\n'
    for _ in range(2):
        require_same((event + start + b'"type":"keep_alive"}\n') * 3, native, 4096)


class Odd(Family, frozen=True):
    """The base of classes that the native reader cannot build, or must build in a special way."""


class First(Wire, frozen=True, tag=1):
    pass


class Second(Wire, frozen=True, tag=2):
    pass


class Numbered(Odd, frozen=True, tag="numbered"):
    part: First | Second | None = None


class Keyed(Odd, frozen=True, tag="keyed"):
    by_number: dict[int, str]


class Mutable(Odd, frozen=False, tag="mutable"):
    text: str


class Fresh(Odd, frozen=True, tag="fresh"):
    number: int = msgspec.field(default_factory=itertools.count().__next__)
    name: str = msgspec.field(default_factory=lambda: str(time.monotonic_ns()))


class OtherTag(Family, frozen=True):
    """The base of a class whose tag is not the type of its lines."""


class Turn(OtherTag, frozen=True, tag_field="kind", tag="turn"):
    text: str = ""


def odd(family: type[Family] = Odd) -> Engine:
    lines = Decoder(family)._lines
    assert isinstance(lines, TypedLines)
    return Engine(lines._vocabulary, functions())


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"numbered","part":{"type":1}}',
        b'{"type":"numbered","part":{"type":"1"}}',
        b'{"type":"keyed","by_number":{"1":"x"}}',
    ],
)
def test_what_has_no_plan_is_decoded_by_msgspec(line: bytes) -> None:
    native = odd()
    for _ in range(3):
        require_same((line + b"\n") * 3, native, 4096, Odd)


@pytest.mark.parametrize("keys", [b"", b'"kind":"turn",', b'"kind":"other",'])
def test_the_type_of_a_line_is_kept_if_it_is_not_the_tag_of_its_class(keys: bytes) -> None:
    native = odd(OtherTag)
    for line in (b'{"type":"turn",%b"text":"x"}\n' % keys, b'{%b"text":"x","type":"turn"}\n' % keys):
        require_same(line * 3, native, 4096, OtherTag)


@pytest.mark.parametrize("character", ["a", "\x7f", "\x80", "é", "ÿ", "Ā", "日", "\uffff", "\U00010000", "\U0010ffff"])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_string_is_the_one_that_python_makes(native: Engine, character: str, escaped: bool) -> None:
    """A string must also take as much memory as Python's own, with 1, 2 or 4 bytes per character."""
    fillers = ("", "b", "ab\n" * 20, "é" * 3, '\\"' * 7)
    for before, after in itertools.product(fillers, repeat=2):
        text = f"{before}{character}{after}"
        line = json.dumps({"type": "system", "subtype": "new", "text": text}, ensure_ascii=escaped).encode()
        (message,) = fed(decoder(native), line + b"\n", 4096)
        # Joined anew, because sys.getsizeof() counts the UTF-8 that a str caches once something asked for it.
        made = "".join(list(text))
        found = message["text"]
        assert (found, hash(found), sys.getsizeof(found)) == (made, hash(made), sys.getsizeof(made))
        assert native.read_line(line) == message


def test_what_may_be_changed_is_not_shared() -> None:
    native = odd()
    for _ in range(3):
        first, *others = fed(decoder(native, Odd), b'{"type":"mutable","text":"x"}\n' * 3, 4096)
        first.text = "changed"
        assert [other.text for other in others] == ["x", "x"]


def test_a_default_is_made_for_each_message() -> None:
    native = odd()
    fed(decoder(native, Odd), b'{"type":"fresh","number":1,"name":"x"}\n', 4096)
    messages = fed(decoder(native, Odd), b'{"type":"fresh"}\n' * 5, 4096)
    assert len({message.number for message in messages}) == 5
    assert len({message.name for message in messages}) == 5


class Interrupted(BaseException):
    """Raised by the trace function at any point, like KeyboardInterrupt."""


def interrupts(at: int) -> Callable[[Any, str, Any], Any]:
    """Return a trace function that raises during planning, after ``at`` events."""
    turns = itertools.count()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename.endswith("plans.py") and next(turns) == at:
            raise Interrupted
        return trace

    return trace


@pytest.mark.parametrize("at", range(0, 2000, 97))
def test_planning_may_be_interrupted_at_any_place(native: Engine, at: int) -> None:
    before = sys.gettrace()
    sys.settrace(interrupts(at))
    try:
        fed(decoder(native), ASSISTANT, 4096)
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
    require_same(ASSISTANT * 3, native, 4096)
    assert native.read_line(ASSISTANT) is not None


@pytest.mark.parametrize("turn", range(4))
def test_an_interrupt_may_come_right_after_a_change_of_the_plan(native: Engine, turn: int) -> None:
    change, turns = native._plans._change_plan, itertools.count()

    def interrupted(additions: tuple[Any, ...]) -> bool:
        changed = change(additions)
        if next(turns) == turn:
            raise Interrupted
        return changed

    native._plans._change_plan = interrupted
    with pytest.raises(Interrupted):
        fed(decoder(native), ASSISTANT, 4096)
    require_same(ASSISTANT * 3, native, 4096)
    assert native.read_line(ASSISTANT) is not None


# --- what is shared, and what is kept ---------------------------------------------------------------------------------

DELTA = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},'
    b'"session_id":"s","parent_tool_use_id":null,"uuid":"%s"}\n'
)
ASSISTANT = (
    b'{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"tool_use",'
    b'"id":"t","name":"Bash","input":{"command":"ls","more":[{"deep":["er"]},2,{"deep":["er"]}]}}],"stop_reason":null,'
    b'"usage":{"input_tokens":1,"output_tokens":2}},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}\n'
)


def test_no_two_messages_share_what_can_change() -> None:
    first, *others = Decoder().feed(ASSISTANT * 20)
    assert not isinstance(first, InvalidLine)
    before = msgspec.json.encode(others)
    for index in (0, 2):
        first.message.content[0].input["more"][index]["deep"].append("changed")  # type: ignore[union-attr]  # a tool use
    first.message.content.append("another")  # type: ignore[union-attr]  # as above
    first.message.content[0].input.clear()  # type: ignore[union-attr]  # as above
    assert msgspec.json.encode(others) == before
    assert msgspec.json.encode(Decoder().feed(ASSISTANT * 20)[1:]) == before


def test_a_message_that_is_changed_by_force_changes_no_other() -> None:
    lines = b"".join(DELTA % (b"text%d" % number, b"u%d" % number) for number in range(50))
    messages = Decoder().feed(lines)
    msgspec.structs.force_setattr(messages[3], "session_id", "changed")
    assert [message.session_id for message in Decoder().feed(lines)] == ["s"] * 50  # type: ignore[union-attr]  # events


def test_equal_lines_become_messages_of_their_own(native: Engine) -> None:
    for _ in range(3):
        messages = fed(decoder(native), DELTA % (b"x", b"u") * 5, 4096)
    assert len({id(message) for message in messages}) == 5


@pytest.mark.parametrize("harm", ["change", "empty"])
def test_whatever_a_program_does_to_messages_the_next_are_right(native: Engine, harm: str) -> None:
    lines = b"".join(DELTA % (b"text%d" % number, b"u%d" % number) for number in range(60))
    fed(decoder(native), lines, 4096)
    # Different lines than before, because the messages of the lines used for planning are discarded.
    lines = lines.replace(b'"index":0', b'"index":1')
    messages = fed(decoder(native), lines, 4096)
    for message in messages:
        if harm == "change":
            msgspec.structs.force_setattr(message, "session_id", "changed")
            msgspec.structs.force_setattr(message.event, "index", 7)
        else:
            type(message).session_id.__delete__(message)
            type(message.event).index.__delete__(message.event)
    del message, messages
    for _ in range(3):
        require_same(lines, native, 4096)


def test_a_message_that_a_program_changed_gives_nothing_to_alike_lines(native: Engine) -> None:
    fed(decoder(native), DELTA % (b"the line for the plan", b"u"), 4096)
    (message,) = fed(decoder(native), DELTA.replace(b'"index":0', b'"index":1') % (b"one", b"u"), 4096)
    msgspec.structs.force_setattr(message, "session_id", "changed")
    msgspec.structs.force_setattr(message.event, "index", 7)
    lines = b"".join(DELTA % (b"text %d" % number, b"u%d" % number) for number in range(9))
    require_same(lines.replace(b'"index":0', b'"index":1'), native, 4096)


#: Functions that the ``__del__`` of a part calls.
ON_END: list[Callable[[], None]] = []


class Destroyed(Wire, frozen=True):
    text: str

    def __del__(self) -> None:
        for call in ON_END:
            call()


class Holder(Family, frozen=True):
    """The base of a class whose parts run Python code when they are freed."""


class Holding(Holder, frozen=True, tag="holding"):
    parts: list[Destroyed]


def test_a_destructor_may_decode_while_the_reader_replaces_what_it_remembers() -> None:
    line = b'{"type":"holding","parts":[{"text":"%s"}]}'
    native = odd(Holder)
    feed = decoder(native, Holder).feed
    feed(line % b"a text of the line for the plan" + b"\n")
    inside: list[Any] = []
    feeding = False

    def decode() -> None:
        nested = line % b"a text of a nested line"
        # The reader that frees this object is in use, so it reads no other line.
        if feeding and native.read_line(nested) is None:
            inside.extend(fed(decoder(native, Holder), nested + b"\n", 4096))

    ON_END.append(decode)
    try:
        # The reader remembers the list of the first lines. Nothing else refers to its part when other lines follow.
        for number in range(80):
            feeding = True
            messages = feed(line % b"a text of part %d" % (number // 4) + b"\n")
            feeding = False
            assert [part.text for message in messages for part in message.parts] == [f"a text of part {number // 4}"]
            messages.clear()
    finally:
        ON_END.clear()
    assert native.read_line(line % b"a text") is not None
    assert inside
    assert {message.parts[0].text for message in inside} == {"a text of a nested line"}
    assert not native.why_not


def test_values_that_came_before_make_no_line_nested_more_deeply_than_what_is_read(native: Engine) -> None:
    value = b"[%s]" % (b"1," * 20 + b"1")
    for turn in range(300):
        line = b'{"type":"later","%s":%s}\n' % (b"one" if turn % 2 else b"other", value)
        fed(decoder(native), line * 3, 64 * 1024)
        assert (native.read_line(line) is None) == (turn > 1)
        value = b"[" * 60 + line[:-1] + b"]" * 60


def repeated(block: bytes) -> Callable[[], None]:
    def decode() -> None:
        Decoder().feed(block)

    return decode


@pytest.mark.parametrize("name", ["02_long_partial", "08_control", "14_bad_json", "16_unknown_block"])
def test_no_reference_is_lost_or_kept(name: str) -> None:
    if name not in names():
        name = names()[0]
    decode = repeated(load(name).stdout[:400_000])
    for _ in range(10):
        decode()
    gc.collect()
    before, none = sys.getallocatedblocks(), sys.getrefcount(None)
    for _ in range(30):
        decode()
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
    assert abs(sys.getrefcount(None) - none) < 300


RESULT = (
    b'{"type":"result","subtype":"success","is_error":false,"result":"text %d","num_turns":1,"duration_ms":2,'
    b'"duration_api_ms":1,"total_cost_usd":0.5,"session_id":"s","uuid":"u","usage":{"input_tokens":1},"new":[1,{}]}\n'
)
TOOL_RESULT = (
    b'{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":'
    b'[{"type":"text","text":"a text"}],"is_error":false}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}\n'
)
#: A line of each kind. In the place of ``%d`` stands a number.
OF_EACH_KIND = {
    "message": ASSISTANT.replace(b'"ls"', b'"ls %d"'),
    "delta": DELTA % (b"a text", b"%d"),
    "result": RESULT,
    "tool result": TOOL_RESULT,
    "unknown": b'{"type":"later","of":[{"two":2},"%d"],"session_id":"s"}\n',
    "unknown block": ASSISTANT.replace(b'"tool_use"', b'"later"').replace(b'"t"', b'"%d"'),
    "refused": b'{"type":"keep_alive","uuid":7,"x":%d}\n',
    "lone surrogate": rb'{"type":"keep_alive","x":"\ud83d%d"}' + b"\n",
    "invalid": b'{"type":"keep_alive",%d}\n',
}


@pytest.mark.skipif(not hasattr(sys, "gettotalrefcount"), reason="only a debug build of Python counts all references")
@pytest.mark.skipif(
    os.environ.get(ENGINE_VARIABLE) != "functions", reason="Python counts all references only in its own functions"
)
@pytest.mark.parametrize("kind", OF_EACH_KIND)
@pytest.mark.parametrize("type_", [Message, dict], ids=["messages", "dicts"])
def test_blocks_leave_as_many_references_as_before(kind: str, type_: Any) -> None:
    line = OF_EACH_KIND[kind]

    def count_after(blocks: int) -> int:
        for number in range(blocks):
            # Some lines are equal, and some are not: the reader remembers values, and replaces them.
            Decoder(type_).feed(line.replace(b"%d", b"%d" % (number // 3 % 100)) * 3)
        gc.collect()
        return sys.gettotalrefcount()

    # At first, the reader tries in turn which values are worth remembering.
    before = count_after(12_000)
    assert abs(count_after(12_000) - before) < 50


def test_records_of_lines_that_fall_through_give_their_defaults_back(native: Engine) -> None:
    whole = b'{"type":"stream_event","event":{"type":"ping"},"session_id":"s"}'
    fed(decoder(native), (whole + b"\n") * 3, 64 * 1024)
    assert native.read_line(whole) is not None
    defaults = (None, msgspec.UNSET)
    before = [sys.getrefcount(default) for default in defaults]
    for _ in range(1_000):
        assert native.read_line(b'{"type":"stream_event","session_id":"s"}') is None
        assert native.read_line(b'{"type":"stream_event","event":{"type":"ping"},"session_id":7}') is None
        assert native.read_line(whole) is not None
    for default, count in zip(defaults, before, strict=True):
        assert abs(sys.getrefcount(default) - count) < 300


#: Not immortal, unlike None from Python 3.12 on.
DEFAULT = float("12345.5")


class Counted(Family, frozen=True):
    """The base of classes whose fields have the same default."""


def wide(fields: int) -> type:
    """Return a class with so many fields; one of them is the tag."""
    rows = [(f"k{number}", float, DEFAULT) for number in range(fields - 1)]
    return msgspec.defstruct(f"Wide{fields}", rows, bases=(Counted,), tag=f"wide{fields}", frozen=True)


WIDE = [wide(fields) for fields in (100, 127, 128)]


def wide_line(tag: bytes, numbers: range, rest: bytes = b"") -> bytes:
    """Return a line with these fields. It has a place for a number, so that no line is a copy of another line."""
    return b'{"type":"%b",%b%b}' % (tag, b",".join(b'"k%d":%%d.5' % number for number in numbers), rest)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([wide_line(b"wide100", range(99))], 1, id="all fields"),
        pytest.param([wide_line(b"wide100", range(1, 80, 3))], 1, id="some fields"),
        pytest.param([wide_line(b"wide100", range(99), b',"new":[1]')], 1, id="an unknown key"),
        pytest.param([wide_line(b"wide100", range(3), b',"k1":0.5')], 0, id="a key twice"),
        pytest.param([wide_line(b"wide100", range(90), b',"k70":0.5')], 0, id="a later key twice"),
        pytest.param([wide_line(b"wide100", range(90), b',"k90":"x"')], 0, id="a wrong value"),
        pytest.param([wide_line(b"wide100", range(90), b',"new":01')], 0, id="a wrong value of an unknown key"),
        pytest.param([b'{"k1":%d.5,"type":"wide100"}', b'{"k1":%d.5,"type":"wide127"}'], 2, id="another tag"),
        pytest.param([wide_line(b"wide127", range(126))], 1, id="as many fields as possible"),
        pytest.param([wide_line(b"wide127", range(60, 126), b',"new":1')], 1, id="many fields and an unknown key"),
        pytest.param([wide_line(b"wide127", range(126), b',"k125":0.5')], 0, id="the last key twice"),
        pytest.param([wide_line(b"wide128", range(127))], 0, id="too many fields"),
    ],
)
def test_defaults_have_the_right_reference_counts(lines: list[bytes], expected: int) -> None:
    native = odd(Counted)

    def count_read(number: int) -> int:
        messages = [native.read_line(line.replace(b"%d", b"%d" % number)) for line in lines]
        return sum(message is not None for message in messages)

    block = b"".join(line.replace(b"%d", b"7") + b"\n" for line in lines)
    require_same(block * 3, native, 4096, Counted)
    for number in range(20):
        count_read(number)
    before, none = sys.getrefcount(DEFAULT), sys.getrefcount(None)
    assert [count_read(number) for number in range(200)] == [expected] * 200
    assert sys.getrefcount(DEFAULT) == before
    # The default of ``extra``. Other code uses None, too.
    assert abs(sys.getrefcount(None) - none) < 100


def test_a_repeated_list_or_dict_is_copied_with_all_that_a_program_can_change(native: Engine) -> None:
    new = b'{"same":"values","of":[[1],{"two":2}]}'
    line = b'{"type":"assistant","message":{"role":"assistant","content":[%s]},"new":' + new + b"}\n"
    texts = line % b'{"type":"text","text":"a text of a block"},{"type":"text","text":"b"}'
    tools = line % b'{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls","flags":[1]}}'
    for lines in (texts, tools):
        expected = msgspec.to_builtins(Decoder().feed(lines)[0])
        feed = decoder(native).feed
        for _ in range(20):
            [message] = feed(lines)
            assert msgspec.to_builtins(message) == expected
            for part in message.message.content:
                if isinstance(part, ToolUseBlock):
                    part.input["flags"].append(2)
                    part.input.clear()
            message.message.content.clear()
            for value in message.extra["new"]["of"]:
                value.clear()
            message.extra["new"].clear()
    one, other = fed(decoder(native), texts * 20, 64 * 1024)[-2:]
    assert one.message.content is not other.message.content
    assert one.message.content[0] is other.message.content[0]


def test_messages_share_the_frozen_parts_of_a_repeated_list(native: Engine) -> None:
    """Only lists, dicts and Structs count for the limit of a remembered value, not None and other values in them."""
    blocks = b",".join(b'{"type":"text","text":"%d"}' % number for number in range(30))
    line = b'{"type":"assistant","message":{"role":"assistant","content":[%b]},"new":{"n":%d}}\n'
    lines = b"".join(line % (blocks, number) for number in range(20))
    for _ in range(2):
        *_, one, other = (message.message.content for message in fed(decoder(native), lines, 64 * 1024))
    assert one is not other
    assert all(block is same for block, same in zip(one, other, strict=True))


def test_a_cycle_that_a_program_makes_of_a_shared_object_does_not_end_the_process(native: Engine) -> None:
    text = b'{"type":"text","text":"a text of a block"}'
    line = b'{"type":"assistant","message":{"role":"assistant","content":[' + text + b"%s]}}\n"
    for more in (b"", b',{"type":"tool_use","id":"t","name":"Bash","input":{"a":[1]}}'):
        feed = decoder(native).feed
        for _ in range(20):
            [message] = feed(line % more)
        block = message.message.content[0]
        for cycle in (block, [block, block], {"a": [block], "b": [block]}):
            msgspec.structs.force_setattr(block, "text", cycle)
            for _ in range(20):
                [message] = feed(line % more)
            assert message.message.role == "assistant"
        msgspec.structs.force_setattr(block, "text", "no cycle")


def test_remembered_values_take_little_memory_even_if_they_are_many_small_lists(native: Engine) -> None:
    value = b"[%s]" % b",".join([b"[" * 80 + b"]" * 80] * 400)
    feed = decoder(native).feed
    before = sys.getallocatedblocks()
    for key in range(16):
        for _ in range(3):
            feed(b'{"type":"later","k%d":%b}\n' % (key, value))
    gc.collect()
    # One of these values consists of 32,000 lists. The reader reads it again each time, and keeps none of them.
    assert sys.getallocatedblocks() - before < 10_000


def test_keys_of_a_peer_are_not_kept_for_ever(native: Engine) -> None:
    for _ in range(3):
        fed(decoder(native), b'{"type":"later","a key that the peer has made up":1}\n' * 3, 4096)
    key = " ".join(["a", "key", "that", "the", "peer", "has", "made", "up"])
    # The key was not interned by the reader: from Python 3.12 on, interned strings may live until the process ends.
    assert sys.intern(key) is key


@pytest.mark.parametrize("kind", ["message", "delta", "result", "tool result", "unknown"])
def test_without_memory_a_chunk_gives_all_of_its_lines_or_an_exception_says_so(kind: str) -> None:
    pytest.importorskip("_testcapi", reason="this Python has no functions for tests of C")
    in_own_process(run_out_of_memory, kind)


def run_out_of_memory(kind: str) -> None:
    # CPython's own module for tests has no stubs.
    import _testcapi as memory  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

    native = Engine(MESSAGES, functions())

    def count_refused(block: bytes) -> int:
        """Let each of the first allocations fail in turn. Count the chunks for which this is an exception."""
        expected = decoder(native, max_line_bytes=1000).feed(block)
        refused = 0
        for start in range(120):
            one = decoder(native, max_line_bytes=1000)
            memory.set_nomemory(start, start + 1)
            try:
                messages = one.feed(block)
            except MemoryError:
                refused += 1
                continue
            finally:
                memory.remove_mem_hooks()
            assert len(messages) == len(expected)
            assert all(map(are_same, messages, expected))
        return refused

    def count_references() -> list[int]:
        gc.collect()
        return [sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount(msgspec.UNSET)]

    line = OF_EACH_KIND[kind].replace(b"%d", b"1")
    assert 5 < count_refused(line * 2 + b"over the limit" * 100 + b"\n" + line) < 120
    # Only lines that the native reader reads: in Python code, a list that cannot grow loses references in CPython 3.11.
    count_refused(line * 3)
    before = count_references()
    refused = sum(count_refused(line * 3) for _ in range(20))
    after = count_references()
    # For most of these allocations, msgspec decodes the line instead.
    assert refused >= 20
    # With msgspec 0.20, each of the 20 rounds leaves one object.
    assert all(abs(count - old) < 40 for count, old in zip(after, before, strict=True)), (before, after)


# --- who else runs ----------------------------------------------------------------------------------------------------


def test_a_collection_of_garbage_may_decode(native: Engine) -> None:
    inner: list[int] = []

    def decode(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and len(inner) < 50:
            inner.append(0)
            inner[-1] = len(decoder(native).feed(ASSISTANT * 3))

    expected = msgspec.json.encode(Decoder().feed(ASSISTANT * 500))
    decoder(native).feed(ASSISTANT * 2)
    threshold = gc.get_threshold()
    gc.callbacks.append(decode)
    gc.set_threshold(3)
    try:
        found = decoder(native).feed(ASSISTANT * 500)
    finally:
        gc.callbacks.remove(decode)
        gc.set_threshold(*threshold)
    assert msgspec.json.encode(found) == expected
    assert inner
    assert set(inner) == {3}


def test_other_code_sees_only_complete_objects(native: Engine) -> None:
    expected = [repr(message) for message in decoder(Engine(MESSAGES, {})).feed(ASSISTANT * 60)]
    decoder(native).feed(ASSISTANT * 2)
    seen: set[type] = set()

    def look(phase: str, info: dict[str, int]) -> None:
        for made in gc.get_objects(generation=0) if phase == "start" else ():
            if type(made) in (list, dict):
                repr(made)
                seen.update(map(type, gc.get_referents(made)))

    threshold = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(1)
    try:
        found = [repr(message) for message in decoder(native).feed(ASSISTANT * 60)]
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*threshold)
    assert found == expected
    assert seen


def test_other_code_may_change_a_list_while_it_is_copied(native: Engine) -> None:
    """The reader copies a list that comes again. Copying an inner list may start a collection of garbage."""
    length = 40
    inner = b",".join(b'[%d,{"x":[1]}]' % number for number in range(length - 1))
    lines = [b'{"type":"later","list":[%b,[%d]]}\n' % (inner, number // 3) for number in range(60)]
    feed = decoder(native).feed
    for line in lines[:3]:
        feed(line)
    emptied = 0

    def empty(phase: str, info: dict[str, int]) -> None:
        nonlocal emptied
        of_items: dict[int, list[list[Any]]] = {}
        for it in gc.get_objects() if phase == "start" else ():
            if type(it) is list and len(it) == length and type(it[-1]) is list:
                of_items.setdefault(id(it[-1]), []).append(it)
        for copies in of_items.values():
            # The message's list and the reader's copy have the same items. Their order depends on their age.
            if len(copies) > 1:
                emptied += 1
                del copies[emptied % 2][2:]

    threshold = gc.get_threshold()
    gc.callbacks.append(empty)
    gc.set_threshold(1)
    try:
        found = [len(feed(line)) for line in lines]
    finally:
        gc.callbacks.remove(empty)
        gc.set_threshold(*threshold)
    assert found == [1] * len(lines)
    assert emptied or sys.version_info >= (3, 12), "from 3.12 on, a collection waits for the next bytecode"


def test_threads_share_a_reader(native: Engine) -> None:
    data = load(names()[0]).stdout[:200_000]
    expected = [repr(message) for message in fed(decoder(Engine(MESSAGES, {})), data, 4096)]
    failures: list[BaseException] = []

    def decode() -> None:
        try:
            for _ in range(20):
                assert [repr(message) for message in fed(decoder(native), data, 4096)] == expected
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=decode) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_decodes(native: Engine) -> None:
    data = ASSISTANT * 10
    expected = msgspec.json.encode(decoder(native).feed(data))
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python 3.12 warns about forking with threads; here they only wait
        child = os.fork()
    if not child:
        os._exit(msgspec.json.encode(decoder(native).feed(data)) != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


SAY = """
from claude_wire import Decoder, decode, encode, peek
from claude_wire.codec import engine, warnings_of_msgspec

def say(type):
    line = b'{"type":"%b"}' % type
    lines = {encode(decode(line)) for _ in range(40)}
    print(f"{engine()};", len(Decoder().feed(line + bytes([10]))), len(lines), peek(line))

say(b"keep_alive")
"""
TWO_INTERPRETERS = f"""
import sys
if sys.version_info >= (3, 13):
    import _interpreters
    other = _interpreters.create("legacy")
else:
    import _xxsubinterpreters as _interpreters
    other = _interpreters.create(isolated=False)
{SAY}
_interpreters.run_string(other, {SAY!r})
say(b"of_tomorrow")
_interpreters.destroy(other)
say(b"of_next_week")
"""


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="msgspec 0.22 dies in a second interpreter of CPython 3.12")
def test_another_interpreter_of_the_process_gets_msgspec_and_none_of_our_objects() -> None:
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    done = subprocess.run([sys.executable, "-c", TWO_INTERPRETERS], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        f"{engine()}; 1 1 keep_alive",
        "msgspec: another interpreter of this process has the native reader; 1 1 keep_alive",
        f"{engine()}; 1 1 of_tomorrow",
        f"{engine()}; 1 1 of_next_week",
    ], done.stderr
    assert done.stderr.count("messages are decoded and encoded with msgspec: another interpreter") == 1


# --- which engine -----------------------------------------------------------------------------------------------------


def said(**environment: str) -> str:
    program = "from claude_wire.codec import engine; print(engine())"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


#: An attribute of sys, a value of an interpreter that is not supported, and the reason that engine() gives.
UNSUPPORTED = [
    (
        "implementation",
        SimpleNamespace(name="pypy", cache_tag=sys.implementation.cache_tag),
        "this interpreter is pypy, not CPython",
    ),
    ("version_info", (3, 14, 0, "final", 0), "Python 3.14 is newer than 3.13, the newest tested"),
    ("version_info", (4, 0, 0, "final", 0), "Python 4.0 is newer than 3.13, the newest tested"),
    ("version", "3.13.1 experimental free-threading build (main)", "this is a free-threaded build of Python"),
    ("platform", "win32", "the native reader needs 64-bit Linux or macOS"),
    ("maxsize", 2**31 - 1, "the native reader needs 64-bit Linux or macOS"),
]
unsupported = pytest.mark.parametrize(("attribute", "value", "reason"), UNSUPPORTED)


class Library:
    """A native library that cannot test this interpreter."""

    def __init__(self, status: int | None = None) -> None:
        self.status = status

    def cw_python(self, functions: int, by_functions: bool, /) -> int:
        assert self.status is not None, "nothing may be tested"
        return self.status


@unsupported
@pytest.mark.parametrize("asked", ["", "native", "functions"])
def test_an_unsupported_interpreter_is_named_before_anything_is_tested(
    attribute: str, value: Any, reason: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, asked)
    monkeypatch.setattr(native_functions, "lib", Library())
    with monkeypatch.context() as patch:
        patch.setattr(sys, attribute, value)
        chosen = choose.__wrapped__()
    assert chosen == Choice({}, reason)


def test_the_newest_python_of_the_package_is_the_newest_tested() -> None:
    classifiers = importlib.metadata.metadata("claude-wire").get_all("Classifier", [])
    versions = [name.removeprefix("Programming Language :: Python :: 3.") for name in classifiers]
    assert (3, max(int(minor) for minor in versions if minor.isdecimal())) == NEWEST_TESTED


@pytest.mark.parametrize("status", [lib.CW_ERROR_UNSUPPORTED, lib.CW_ERROR_PANIC])
def test_an_interpreter_with_another_layout_is_named(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, "native")
    monkeypatch.setattr(native_functions, "lib", Library(status))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (*NEWEST_TESTED, 99, "final", 0))
        chosen = choose.__wrapped__()
    assert chosen == Choice({}, "the native library's test of this interpreter failed")


FIRST_USES = {
    "decode": "decode(line)",
    "feed": "Decoder().feed(line)",
    "dicts": "Decoder(dict).feed(line)",
    "encode": "encode({})",
    "encode_lines": "Encoder().encode_lines([{}])",
}
UNASKED = """
import logging, sys, cffi, msgspec, anyio
from types import SimpleNamespace as namespace
logging.basicConfig(format="%(levelname)s:%(name)s:%(message)s")
sys.{attribute} = {value!r}
from claude_wire import Decoder, Encoder, decode, encode
from claude_wire.codec import engine, warnings_of_msgspec
line = b'{{"type":"keep_alive"}}' + bytes([10])
print("imported", file=sys.stderr)
{use}
print("used", file=sys.stderr)
for _ in range(2):
    decode(line), Decoder().feed(line), Decoder(dict).feed(line), encode({{}}), Encoder().encode_lines([{{}}])
print(engine(), file=sys.stderr)
"""


def logged(attribute: str, value: Any, use: str, engine: str) -> list[str]:
    program = UNASKED.format(attribute=attribute, value=value, use=FIRST_USES[use])
    environment = {**os.environ, ENGINE_VARIABLE: engine}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stderr.splitlines()


@unsupported
def test_a_process_that_uses_msgspec_and_did_not_ask_for_it_warns_once(attribute: str, value: Any, reason: str) -> None:
    warning = f"WARNING:claude_wire:messages are decoded and encoded with msgspec: {reason}"
    assert logged(attribute, value, "decode", "native") == ["imported", warning, "used", f"msgspec: {reason}"]


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_warns_of_msgspec_and_only_if_nobody_asked_for_it(use: str) -> None:
    attribute, value, reason = UNSUPPORTED[1]
    warning = f"WARNING:claude_wire:messages are decoded and encoded with msgspec: {reason}"
    assert logged(attribute, value, use, "") == ["imported", warning, "used", f"msgspec: {reason}"]
    asked = ["imported", "used", f"msgspec: ${ENGINE_VARIABLE} says so"]
    assert logged(attribute, value, use, "msgspec") == asked


def test_a_process_without_the_native_writer_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    others = {name: function for name, function in functions().items() if name != "new_writer"}
    for found, text in (
        (functions(), ""),
        (others, "messages are encoded with msgspec: the native writer does not know"),
    ):
        monkeypatch.setattr(warnings_of_msgspec, "choose", lambda found=found: Choice(found))
        monkeypatch.setattr(warnings_of_msgspec, "_is_warned", False)
        warn_of_msgspec()
        assert caplog.text.count("with msgspec") == bool(text)
        assert text in caplog.text


def test_a_handler_of_the_warning_may_encode(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[str] = []

    class Encodes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())
            warn_of_msgspec()  # as the fallback of encode() does

    handler, logger = Encodes(), logging.getLogger("claude_wire")
    monkeypatch.setattr(warnings_of_msgspec, "choose", lambda: Choice({}, "a reason"))
    monkeypatch.setattr(warnings_of_msgspec, "_is_warned", False)
    logger.addHandler(handler)
    try:
        warn_of_msgspec()
    finally:
        logger.removeHandler(handler)
    assert records == ["messages are decoded and encoded with msgspec: a reason"]


def test_the_environment_may_ask_for_an_engine() -> None:
    assert said(**{ENGINE_VARIABLE: "msgspec"}) == f"msgspec: ${ENGINE_VARIABLE} says so"
    assert said(**{ENGINE_VARIABLE: "native"}) == said(**{ENGINE_VARIABLE: ""}) == "native"
    assert said(**{ENGINE_VARIABLE: "functions"}) == "native: CPython's functions count references"
    refused = f"ValueError: {ENGINE_VARIABLE} must be native, functions or msgspec, not 'fast'"
    assert said(**{ENGINE_VARIABLE: "fast"}) == refused


def test_a_difference_is_noticed_and_ends_the_use_of_the_reader(
    native: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    real = native.read_line

    def wrong(line: Any) -> Any:
        message = real(line)
        return message and msgspec.structs.replace(message, session_id="wrong")

    native.read_line = wrong
    (message,) = decoder(native).feed(DELTA % (b"x", b"u"))
    assert "messages are decoded with msgspec: the native reader makes another StreamEvent" in caplog.text
    assert message.session_id == "s"
    assert real(DELTA % (b"x", b"u")) is None


def test_after_a_bug_msgspec_decodes_and_nothing_is_lost(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    of_reader = functions()["new_reader"]()
    broken = Engine(MESSAGES, {**functions(), "new_reader": lambda: of_reader})
    # This plan names a class index that it does not have, so the reader fails at that line.
    assert of_reader[0]((0, 1, (), (), ((b"stream_event", None, 7),), (), None))
    lines = b'{"type":"keep_alive"}\n' + DELTA % (b"x", b"u") + b"bad\n" + DELTA % (b"y", b"v")
    expected = decoder(Engine(MESSAGES, {})).feed(lines)
    made = decoder(broken)
    assert all(map(are_same, made.feed(lines), expected))
    assert "panicked" in capfd.readouterr().err
    assert broken.why_not == "the native reader has a bug"
    assert "messages are decoded with msgspec: the native reader has a bug" in caplog.text
    assert made.stats.messages == 3
    (event,) = made.feed(DELTA % (b"x", b"u"))
    assert are_same(event, expected[1])
    assert broken.read_line(lines) is None


# --- single lines -----------------------------------------------------------------------------------------------------


@each("name", names(), str)
def test_single_lines_are_the_same_with_and_without_their_line_feeds(name: str, native: Engine) -> None:
    expected, whole = decoder(Engine(MESSAGES, {})), decoder(native)
    for made in (expected, whole):
        made.feed(b'{"type":"keep_alive"}\n')
    for line in load(name).stdout.splitlines(keepends=True)[:400]:
        messages = expected.feed(line)
        fed_alone = whole.feed(line)
        assert len(fed_alone) == len(messages), line
        assert all(map(are_same, fed_alone, messages)), line
        for message in messages:
            for read in (native.read_line(line), native.read_line(line.removesuffix(b"\n"))):
                assert read is None or are_same(read, message), line
    assert whole.stats == expected.stats
    assert not native.why_not


@pytest.mark.parametrize(
    "odd",
    [
        *(b"", b"\n", b"{", b"}", b"{}", b"[]\n", b"null", b"x", b"\xff\n", b'{"type":"keep_alive"}\n\n', b"\r\n"),
        *(b'{"type":"keep_alive"}\n{"type":"keep_alive"}\n', b'{"type":"keep_alive"', b'{"type":"keep\xff_alive"}\n'),
        *(b'{"type":"keep_alive"}x\n', b'{"type":\n"keep_alive"}\n', b'\xef\xbb\xbf{"type":"keep_alive"}\n'),
    ],
)
def test_what_is_no_single_usual_line_is_left_to_others(native: Engine, odd: bytes) -> None:
    fed(decoder(native), b'{"type":"keep_alive"}\n' * 3, 100)
    assert native.read_line(b'{"type":"keep_alive"}') is not None
    assert native.read_line(odd) is None
    assert native.read_line(odd.decode(errors="surrogateescape")) is None
    assert native.read_line(None) is None


@pytest.mark.parametrize("end", [b"}\n\n", b"\n}", b"}\r\n"])
def test_the_first_line_may_have_any_white_space(native: Engine, end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    native.serve_decode()
    monkeypatch.setattr(claude_wire.codec.decoder, "engine_of", lambda vocabulary: native)
    for _ in range(3):
        assert type(decode(b'{"type":"keep_alive"' + end)) is KeepAlive
    engine_of(MESSAGES).serve_decode()


# --- Both engines must give the same for every stream in every mode: dicts, ``only=``, ``coalesce=`` ------------------


if not functions():
    pytest.skip("msgspec decodes here", allow_module_level=True)

DELTAS = "stream_event/content_block_delta/text_delta"
MODES: dict[str, tuple[Any, dict[str, Any]]] = {
    "messages": (Message, {}),
    "dicts": (dict, {}),
    "dicts without half characters": (dict, {"surrogates": "replace"}),
    "only": (Message, {"only": {"result", "assistant", "system/init"}}),
    "only, dicts": (dict, {"only": {"user", DELTAS}}),
    "coalesce": (Message, {"coalesce": True}),
    "coalesce, dicts": (dict, {"coalesce": True}),
    "both": (Message, {"coalesce": True, "only": {DELTAS, "result"}}),
    "both, short lines": (dict, {"coalesce": True, "only": {"stream_event"}, "max_line_bytes": 500}),
}
every_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def engines() -> dict[Any, Engine]:
    """One native engine for each type, shared by all tests of this module."""
    return {Message: Engine(MESSAGES, functions()), dict: Engine(None, functions())}


def decoder_in(type_: Any, engine: Engine, options: dict[str, Any]) -> Decoder[Any]:
    made: Decoder[Any] = Decoder(type_, **options)
    made._lines.engine = engine
    made._feeder = made._native_feeder = engine.new_feed(made._buffer.handle)
    return made


def require_same_in(mode: str, chunks: list[bytes], engines: dict[Any, Engine], seed: int = 0) -> None:
    """Check that both engines give the same messages for each chunk, so that none comes early or late."""
    type_, options = MODES[mode]
    natively, by_msgspec = decoder_in(type_, engines[type_], options), decoder_in(type_, Engine(None, {}), options)
    for chunk in [*chunks, None]:
        found, expected = (it.close() if chunk is None else it.feed(chunk) for it in (natively, by_msgspec))
        assert len(found) == len(expected), seed
        for one, other in zip(found, expected, strict=True):
            assert place_of(one) == place_of(other), seed
            assert are_same(one, other), seed
    assert natively.stats == by_msgspec.stats, seed
    assert not engines[type_].why_not


@pytest.mark.parametrize("second", ['"x"', "1", "[]", '{"b":"x"}', '{"b":{"c":1}}'])
def test_the_values_of_a_repeated_key_are_told_apart(second: str) -> None:
    # The dict has only the second value, in which the reader must not search for the objects of the first.
    decoder = decoder_in(dict, Engine(None, functions()), {})
    lines = [f'{{"a":{{"b":{{"c":"{number}"}}}},"a":{second}}}' for number in range(50)]
    assert decoder.feed(block(*(line.encode() for line in lines))) == [json.loads(line) for line in lines]


def at_the_end_of_memory(data: bytes) -> memoryview:
    """Return a copy of some bytes, before a page that nobody may read: a read after the bytes kills the process."""
    size = -(-len(data) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + size
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
    memory[size - len(data) : size] = data
    return memoryview(memory)[size - len(data) : size]


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@every_mode
def test_no_byte_after_a_chunk_is_read(mode: str, engines: dict[Any, Engine]) -> None:
    type_, options = MODES[mode]
    decoder = decoder_in(type_, engines[type_], options)
    for seed in range(3):
        rng = random.Random(seed)
        stream = block(*some_lines(rng, set()))
        for chunk in cut(stream, *(rng.randrange(1, 5_000) for _ in range(100))):
            decoder.feed(at_the_end_of_memory(chunk))


def place_of(message: Any) -> Any:
    return (message.offset, message.line_number, message.raw) if isinstance(message, InvalidLine) else None


@every_mode
@each("name", recordings.names(), str)
def test_recordings(mode: str, name: str, engines: dict[Any, Engine]) -> None:
    recording = recordings.load(name)
    for size in (64 * 1024, 3000):
        require_same_in(mode, cut(recording.stdout[: 200 * size], size), engines)
    require_same_in(mode, cut(recording.stdin, 3000), engines)


@every_mode
def test_byte_by_byte(mode: str, engines: dict[Any, Engine]) -> None:
    stream = traffic(3, lines=60, text="mixed", sessions=2)
    require_same_in(mode, cut(b"\xef\xbb\xbf" + stream, 1), engines)


@every_mode
def test_cut_everywhere(mode: str, engines: dict[Any, Engine]) -> None:
    odd = [b"", b" \r", b"bad", b'{"type":"result"', rb'{"type":"user","x":"\ud83d"}']
    odd += [delta(r"x\ud83d"), delta(r"\ude00")]
    stream = block(delta("a"), *odd, delta("b"), b'{"type":"result","is_error":1e400}', delta("c" * 400), delta("d"))
    for at in range(len(stream)):
        require_same_in(mode, [stream[:at], stream[at:]], engines)


@functools.cache
def recorded_lines() -> list[bytes]:
    """Return three short recorded lines of each kind."""
    kinds: dict[tuple[Any, Any], list[bytes]] = {}
    for name in names():
        for line in load(name).stdout.splitlines() + load(name).stdin.splitlines():
            with contextlib.suppress(ValueError, AttributeError, RecursionError):
                value = json.loads(line)
                same = kinds.setdefault((str(value.get("type")), str(value.get("subtype"))), [])
                if len(line) < 5000 and len(same) < 3:
                    same.append(line)
    return [line for same in kinds.values() for line in same]


#: The number of seeds, and how many distinct mutated lines they give at least.
SEEDS, MUTATED_LINES = (500, 200_000) if LONG else (4, 1_700)


def some_lines(rng: random.Random, mutations: set[bytes]) -> Iterator[bytes]:
    """Yield lines, some of them mutated or repeated. Add the mutated ones to ``mutations``."""
    sources = [*MERGEABLE.values(), *NOT_MERGEABLE.values(), *CLOSING.values()]
    sources = [line for line in sources if len(line) < 2000]
    sources += traffic(rng.randrange(1000), lines=300, text="mixed", order="session").splitlines()
    for number in range(900):
        if number == 600:
            sources = recorded_lines()
        line = rng.choice(sources)
        other = mutated(line, rng).replace(b"\n", b"")
        chosen = rng.choice([[line], [line, line], [other], [line, other, line], [other, other], [line] * 40])
        if other in chosen and other != line:
            mutations.add(other)
        yield from chosen


@every_mode
def test_mutated_lines(mode: str, engines: dict[Any, Engine]) -> None:
    mutations: set[bytes] = set()
    for seed in range(SEEDS):
        rng = random.Random(seed)
        stream = block(*some_lines(rng, mutations))
        engines = {**engines, dict: Engine(None, functions())}  # a new engine tries more lines as patterns
        require_same_in(mode, cut(stream, *(rng.randrange(1, 20_000) for _ in range(7))), engines, seed)
    assert len(mutations) >= MUTATED_LINES
    # Most mutations make no message of a known class. The native reader must refuse these lines, and read the others.
    type_ = MODES[mode][0]
    reader = Engine(MESSAGES if type_ is Message else None, functions())
    decoder_in(type_, reader, {}).feed(block(*mutations))  # for the plans
    read = sum(reader.read_line(line) is not None for line in mutations)
    assert MUTATED_LINES / 10 < read < MUTATED_LINES / 2
