"""The native writer must write the same bytes as msgspec, or leave a message to msgspec."""

from __future__ import annotations

import ctypes
import datetime
import decimal
import enum
import gc
import inspect
import math
import os
import pickle
import random
import struct
import subprocess
import sys
import threading
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire import Decoder, EncodeError, Encoder, InvalidLine, UserMessage, encode
from claude_wire.codec import encoder
from claude_wire.codec.native_writer import MESSAGES_BEFORE_PLAN
from claude_wire.messages import KeepAlive, TextBlock, UnknownMessage
from claude_wire.messages.base import MessageBase, Wire, constant, null
from claude_wire.native.functions import ENGINE_VARIABLE, functions
from each import each
from recordings import load, names

if not functions():
    pytest.skip("msgspec encodes here", allow_module_level=True)

writer = encoder._writer
#: The function that the native writer calls for messages that it does not write.
by_msgspec: Callable[[Any], bytes] = writer._fallback


def natively(message: Any) -> bytes | None:
    """Return the line of a message if the native writer writes it, and None if it leaves the message to msgspec."""
    for _ in range(20 * MESSAGES_BEFORE_PLAN):
        line = writer.write(message)
        if line is not None:
            return line
        encode(message)
    return None


def outcome(function: Callable[[Any], bytes], message: Any) -> bytes | str:
    try:
        return function(message)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def require_same(message: Any) -> None:
    expected = outcome(by_msgspec, message)
    for function in (encode, Encoder().encode, lambda one: Encoder().encode_lines([one])):
        assert outcome(function, message) == expected
    assert not writer.why_not


def messages_of(name: str) -> Iterator[Any]:
    recording = load(name)
    for data in (recording.stdout, recording.stdin):
        for message in Decoder().feed(data):
            if not isinstance(message, InvalidLine):
                yield message


@each("name", names(), str)
def test_recorded_messages_are_the_same(name: str) -> None:
    messages = list(messages_of(name))
    for message in messages:
        assert encode(message) == by_msgspec(message)
    assert Encoder().encode_lines(messages) == b"".join(map(by_msgspec, messages))
    assert not writer.why_not


def test_most_recorded_messages_are_written_natively() -> None:
    messages = [message for name in names() for message in messages_of(name)]
    left = [message for message in messages if natively(message) is None]
    assert len(left) < len(messages) / 100


# --- values -----------------------------------------------------------------------------------------------------------


class Fields(MessageBase, tag="fields", frozen=True):
    """A message with a field of each type and default."""

    needed: Any
    kept: Any = constant("kept")
    nothing: Any = null()
    optional: Any = None
    word: str = "word"
    number: int = 7
    big: int = 10**6
    unset: Any = msgspec.UNSET
    renamed_: Any = msgspec.field(default=None, name="renamed")
    a_name_that_is_longer_than_thirty_two_bytes: Any = None


class NoTag(Wire, frozen=True):
    first: Any = None
    second: Any = None


class Text(str):
    """A subclass of str."""


class Whole(int):
    pass


class Real(float):
    pass


class Items(list[Any]):
    pass


class Pairs(dict[str, Any]):
    def items(self) -> Any:
        raise AssertionError("msgspec does not ask for these")


class Color(enum.Enum):
    RED = "red"


#: Values that the native writer writes, values that it leaves to msgspec, and values that cannot be encoded.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 9, 10, 99, 100, -100, 2**30 - 1, 2**30, 2**31, 2**60, 2**63 - 1, -(2**63)),
    *(2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**400, Whole(5)),
    *(0.0, -0.0, 1.0, 0.5, 1e-5, 9.9e-6, 1e15, 1e16, 1.5e16, 123456789012345680.0, 5e-324, 1.7976931348623157e308),
    *(2.0**-44, 9007199254740993.0, 1e22, 1e23, 1e100, -1.5e-10, math.nan, math.inf, -math.inf, Real(1.5)),
    *("", "x", "é", "日本", "🦀", 'a"b\\c\n', "\x00\x1f\x7f", "\u2028", "\u2029\u2028", "x" * 31 + '"', "—“”…" * 20),
    *("\ud83d", "a\udfffz", "é\ud800", "\ude00\ud83d", Text("x"), Text("é"), "é" * 5000, "x" * 5000, "—" * 5000),
    *([], [[]], [1, "a", None], [[1], {"a": [2]}], Items([1]), (), (1, 2), {1}, frozenset()),
    *({}, {"a": 1}, {"a": {"b": {"c": None}}}, {"é": 1}, {"\u2028": 1}, {Text("k"): 1}, {1: 2}, {None: 1}, {1.5: 1}),
    *(OrderedDict(a=1), Pairs(a=1), UnknownMessage({"type": "later"}), {"\ud83d": 1}, {b"k": 1}, {Color.RED: 1}),
    *(
        NoTag(),
        NoTag(1),
        NoTag(None, 2),
        [NoTag(), NoTag("x")],
        TextBlock("a"),
        KeepAlive(),
        Fields(1, optional=NoTag(3)),
    ),
    *(msgspec.Raw(b'{"a": 1}'), msgspec.Raw(b'"\xe2\x80\xa8"'), b"bytes", bytearray(b"x"), memoryview(b"x"), Color.RED),
    *(datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 1), decimal.Decimal("1.5"), uuid.UUID(int=1)),
    *(10**5000, object(), int, len, 1 + 2j, range(3), msgspec.UNSET, InvalidLine(b"", 1, 0, "")),
)


@each("index", range(len(VALUES)), str)
def test_every_value_is_written_as_msgspec_writes_it(index: int) -> None:
    value = VALUES[index]
    natively(Fields(1))
    natively(NoTag(1))
    for message in (
        *({"a": value}, {"a": [value, value], "b": {"c": value}}, UnknownMessage({"type": value}), [value], value),
        *(Fields(value), Fields(1, kept=value, nothing=value), Fields(1, optional=value, unset=value, renamed_=value)),
        *(Fields(1, word=value, number=value, big=value, a_name_that_is_longer_than_thirty_two_bytes=value),),
        *(NoTag(value), NoTag(second=value), NoTag(NoTag(value), [NoTag(value)])),
    ):
        require_same(message)


def test_defaults_are_left_out_by_identity_as_msgspec_does() -> None:
    for message in (
        Fields(1, word="".join(["wo", "rd"])),
        Fields(1, number=7, big=int("1000000")),
        Fields(1, unset=None),
    ):
        assert natively(message) == by_msgspec(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(VALUES[:60]),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5) | st.builds(NoTag, inner, inner)
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_any_value_is_written_as_msgspec_writes_it(one: Any, other: Any) -> None:
    require_same(Fields(one, optional=other))
    require_same({"a": one, "b": other})


def test_numbers_with_a_fraction_are_written_as_msgspec_writes_them() -> None:
    rng = random.Random(3)
    numbers = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(20_000)]
    numbers += [rng.random() * 10 ** rng.randrange(-12, 20) for _ in range(20_000)]
    numbers += [float(rng.randrange(10 ** rng.randrange(1, 19))) for _ in range(10_000)]
    # Exactly between two numbers of 16 digits, so the shortest form needs the tie rule.
    numbers += [rng.randrange(2**49, 2**50) + 0.25 for _ in range(5_000)]
    numbers += [round(rng.random() * 100, rng.randrange(6)) for _ in range(10_000)]
    for at in range(0, len(numbers), 1000):
        message = {"numbers": numbers[at : at + 1000]}
        assert natively(message) == by_msgspec(message)


@pytest.mark.parametrize(
    "alphabet",
    [
        *("a", "é", "日", "🦀", 'a"', "a\n\\", "é\u2028", "日\x1f", "—a", '🦀\u2029"'),
        # In a string that is not ASCII, the writer still copies 16 ASCII characters at a time.
        *("a" * 40 + others for others in ('é"', "—\n", "🦀\\", "日")),
    ],
)
def test_strings_of_every_length_are_written_as_msgspec_writes_them(alphabet: str) -> None:
    rng = random.Random(5)
    for length in (*range(70), 4095, 4096, 4097, 8191, 10_000):
        text = "".join(rng.choice(alphabet) for _ in range(length))
        made = text.encode().decode()
        message = {"made": made, "made again": "".join(made), "key " + made: 1}
        # Once before msgspec makes CPython cache the UTF-8 of the strings, and once after.
        first = natively(message)
        assert first == by_msgspec(message) == natively(message)


def test_a_dict_is_written_without_the_keys_that_were_removed_from_it() -> None:
    """CPython keeps the entry of a removed key in the dict's table, with a key and no value."""
    removed = {str(number): number for number in range(20)}
    for number in (0, 7, 8, 19):
        del removed[str(number)]
    emptied = {"a": 1}
    emptied.pop("a")
    for message in ({"a": removed, "b": emptied}, removed, emptied):
        assert natively(message) == by_msgspec(message)


def test_deep_nesting_and_cycles_are_left_to_msgspec() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = [{"a": NoTag(deep)}]
    require_same({"deep": deep})
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    pairs: dict[str, Any] = {}
    pairs["self"] = pairs
    for value in (cycle, pairs):
        for function in (encode, Encoder().encode, lambda one: Encoder().encode_lines([one])):
            with pytest.raises(EncodeError):
                function({"a": value})


def test_keys_without_a_field_are_written_as_before() -> None:
    natively(Fields(1))
    natively(NoTag(1))
    for extra in (
        *({}, {"new": 1}, {"new": {"a": [None, NoTag(1, extra={"deep": 2})]}, "é\u2028": "\u2028"}, {"new": "\ud83d"}),
        *({"needed": 1}, {"new": 1, "type": 2}, {"optional": 1}, {"renamed": 1}, {"renamed_": 1}, {"extra": 1}, {1: 2}),
        *({"(extra)": 1}, {"(extra)": {}}, {"a_name_that_is_longer_than_thirty_two_bytes": 1}, OrderedDict(new=1)),
    ):
        for message in (Fields(1, extra=extra), NoTag(extra=extra), Fields(NoTag(2, extra=extra), extra=extra)):
            require_same(message)
            require_same({"(extra)": message})
    message = Fields([NoTag(1, extra={"deep": 2})], optional=3, extra={"new": {"a": 1}, "newer": "é"})
    line = natively(message)
    assert line is not None
    assert line.endswith(
        b'"needed":[{"first":1,"deep":2}],"kept":"kept","nothing":null,"optional":3,"new":{"a":1},"newer":"\xc3\xa9"}\n'
    )
    for odd in (1, [], "x", UnknownMessage({"a": 1}), msgspec.UNSET):
        msgspec.structs.force_setattr(message, "extra", odd)
        require_same(message)
    Fields.extra.__delete__(message)
    with pytest.raises(AttributeError):
        encode(message)


# --- classes ----------------------------------------------------------------------------------------------------------


def classes() -> list[type[Wire]]:
    found: list[type[Wire]] = []

    def add(cls: type[Wire]) -> None:
        for sub in cls.__subclasses__():
            if sub not in found:
                found.append(sub)
                add(sub)

    add(Wire)
    return [cls for cls in found if cls.__module__.startswith("claude_wire.")]


def test_every_class_is_written_as_msgspec_writes_it() -> None:
    rng = random.Random(7)
    for cls in classes():
        fields = cls.__struct_fields__
        for chance in (0.0, 0.2, 1.0):
            given = {field: rng.choice(VALUES[:40]) for field in fields if rng.random() <= chance}
            given |= {field: 1 for field in msgspec_required(cls) if field not in given}
            try:
                message = cls(**given)
            except (TypeError, ValueError):  # the class validates its fields
                continue
            for _ in range(MESSAGES_BEFORE_PLAN):
                require_same(message)


def msgspec_required(cls: type[Wire]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(cls) if field.required]


class Written(MessageBase, tag="written", frozen=True, omit_defaults=False):
    text: str | None = None


class Changeable(MessageBase, tag="changeable", frozen=False, gc=True, weakref=True, dict=True):
    text: str | None = None


class Row(MessageBase, tag="row", frozen=True, array_like=True):
    text: str | None = None


class Lists(MessageBase, tag="lists", frozen=True):
    empty: list[int] = msgspec.field(default_factory=list)
    pairs: dict[str, int] = msgspec.field(default_factory=dict)


class Numbered(Wire, tag=7, tag_field="é", frozen=True):
    text: str | None = None


class Named(Wire, frozen=True, rename={"text": "texté"}):
    text: str | None = None


class Checked(Wire, frozen=True):
    text: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None and not isinstance(self.text, str):
            raise TypeError("no text")


class Plain(msgspec.Struct):
    text: str | None = None


class Within(Fields, frozen=True, kw_only=True):
    more: str
    less: str | None = None


@pytest.mark.parametrize(
    "message",
    [
        *(Written(), Written("x"), Changeable(), Changeable("x"), Row(), Row("x"), Lists(), Lists([1], {"a": 1})),
        *(Numbered(), Numbered("x"), Named(), Named("x"), Checked(), Checked("x"), Within(1, more="x")),
        *(Plain(), {"a": Plain("x")}, {"a": Written("x")}, {"a": Lists()}, {"a": Row("x")}),
    ],
    ids=repr,
)
def test_classes_of_users_are_written_as_msgspec_writes_them(message: Any) -> None:
    for _ in range(2 * MESSAGES_BEFORE_PLAN):
        require_same(message)


def test_a_class_is_planned_when_several_messages_have_shown_it() -> None:
    class Seldom(MessageBase, tag="seldom", frozen=True):
        part: NoTag | None = None

    message = Seldom(NoTag(1))
    for _ in range(MESSAGES_BEFORE_PLAN - 1):
        assert encode(message) == by_msgspec(message)
        assert writer.write(message) is None
    encode(message)
    assert writer.write(message) == by_msgspec(message)


@pytest.mark.parametrize("value", [None, 5, "x", [], object()])
def test_a_message_that_is_changed_by_force_is_no_danger(value: Any) -> None:
    natively(Fields(1))
    message = Fields(1, optional=2)
    msgspec.structs.force_setattr(message, "optional", value)
    require_same(message)
    require_same({"a": [message]})
    Fields.optional.__delete__(message)
    for function in (encode, Encoder().encode, lambda one: Encoder().encode_lines([one])):
        with pytest.raises(AttributeError):
            function(message)
    Fields.optional.__set__(message, "back")
    require_same(message)


def test_a_field_that_is_unset_is_left_out_natively() -> None:
    natively(Fields(1))
    for message in (Fields(1, kept=msgspec.UNSET), Fields(1, word=msgspec.UNSET), Fields(msgspec.UNSET)):
        assert natively(message) == by_msgspec(message)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has only compact strings")
@pytest.mark.parametrize("text", ["ascii", "\xe9\xe8", "\u20ac"])
def test_a_string_that_is_not_compact_is_left_to_msgspec(text: str) -> None:
    new, memory = ctypes.pythonapi.PyUnicode_FromUnicode, ctypes.pythonapi.PyUnicode_AsUnicode
    new.restype, memory.restype = ctypes.py_object, ctypes.c_void_p
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = new(None, ctypes.c_ssize_t(len(text)))
        wide = ctypes.create_unicode_buffer(text)
        ctypes.memmove(memory(ctypes.py_object(made)), wide, len(text) * ctypes.sizeof(ctypes.c_wchar))
    assert made == text  # the comparison gives the string its characters
    assert writer.write({"a": made}) is None
    assert encode({"a": made}) == by_msgspec({"a": text})


def test_encode_lines_takes_only_a_list() -> None:
    with pytest.raises(SystemError, match="a bug in claude_wire"):
        writer._encode_lines((({},), 0))  # type: ignore[arg-type]  # it raises


# --- what encode is ---------------------------------------------------------------------------------------------------


def test_no_python_runs_for_what_the_writer_writes() -> None:
    message = UserMessage.of("x")
    assert natively(message)
    called: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        line = encode(message)
    finally:
        sys.setprofile(None)
    assert called == []
    assert line == by_msgspec(message)


def test_whole_numbers_of_64_bits_are_written_natively() -> None:
    for number in (0, 2**30 - 1, 2**30, -(2**30), 2**62, 2**63 - 1, -(2**63)):
        assert natively({"type": "x", "number": number}) == b'{"type":"x","number":%d}\n' % number
    assert natively({"type": "x", "number": 2**63}) is None


def test_encode_is_a_function_like_any_other() -> None:
    assert encode.__name__ == "encode"
    assert encode.__doc__ == by_msgspec.__doc__
    assert inspect.signature(encode).parameters.keys() == {"message"}
    assert pickle.loads(pickle.dumps(encode)) is encode
    assert encode(message=KeepAlive()) == encode(KeepAlive())
    for arguments, named in (((), {}), ((KeepAlive(), 1), {}), ((KeepAlive(),), {"other": 1})):
        with pytest.raises(TypeError, match=r"encode\(\)"):
            encode(*arguments, **named)  # type: ignore[arg-type]  # it raises


def test_no_reference_is_lost_or_kept_and_memory_stays_flat() -> None:
    messages = [message for name in names()[:12] for message in messages_of(name)]
    odd: list[Any] = [{"a": "\ud83d"}, {"a": (1,)}, {"a": math.nan}, {"a": 2**70}, Fields("é" * 100)]
    text = "".join(["shared", " text"])
    shared = [Fields(text, optional=[text, {text: text}]), UserMessage.of(text)]

    def encode_all() -> None:
        Encoder().encode_lines(messages)
        for message in (*messages, *odd, *shared):
            encode(message)

    for _ in range(MESSAGES_BEFORE_PLAN):
        encode_all()
    gc.collect()
    before, none, of_text = sys.getallocatedblocks(), sys.getrefcount(None), sys.getrefcount(text)
    for _ in range(20):
        encode_all()
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
    assert abs(sys.getrefcount(None) - none) < 100
    assert sys.getrefcount(text) == of_text


def test_threads_and_finalizers_may_encode_at_any_time() -> None:
    message = Fields(["x", 1, {"a": NoTag(2)}] * 50)
    expected = by_msgspec(message)
    failures: list[bytes] = []

    class Encodes:
        def __del__(self) -> None:
            if encode(message) != expected:
                failures.append(b"finalizer")

    def encode_often() -> None:
        for number in range(300):
            cycle: list[Any] = [Encodes()]
            cycle.append(cycle)
            del cycle
            for made in (encode(message), Encoder().encode_lines([message])):
                if made != expected:
                    failures.append(made)
            # A failed encode allocates an exception, which may start a garbage collection.
            assert encode({"a": ["\ud83d"] * (number % 3)})

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(5)
    try:
        threads = [threading.Thread(target=encode_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    assert failures == []


def test_without_memory_the_line_is_whole_or_an_exception_says_so() -> None:
    memory = pytest.importorskip("_testcapi", reason="this Python has no functions for tests of C")
    messages = [Fields(["é" * 50, 1.5, {"a": NoTag(2)}] * 20)] * 30
    natively(messages[0])
    expected = Encoder().encode_lines(messages)
    for start in range(60):
        for stop in (start + 1, 0):
            memory.set_nomemory(start, stop)
            try:
                made = Encoder().encode_lines(messages)
            except MemoryError:
                continue
            finally:
                memory.remove_mem_hooks()
            assert made == expected


PROGRAM = """
import sys
from claude_wire import UserMessage, encode
from claude_wire.codec import encoder
message = UserMessage.of("a")
for _ in range(40):
    line = encode(message)
native = not encoder._writer.why_not and encoder._writer.write(message) == line
print(type(encode).__name__, native)
"""


@pytest.mark.parametrize(
    ("engine", "said"), [("native", "builtin_function_or_method True"), ("msgspec", "function False")]
)
def test_the_environment_may_ask_for_msgspec(engine: str, said: str) -> None:
    environment = {**os.environ, ENGINE_VARIABLE: engine}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said


DIFFERENCE = """
import logging
logging.basicConfig(format="%(message)s")
from claude_wire import Encoder, UserMessage, encode
from claude_wire.codec import encoder
message = UserMessage.of("a")
shape = encoder.NativeWriter._shape
def wrong(self, cls):
    words, opening, *others = shape(self, cls)
    return words, opening.replace(b"user", b"loser"), *others
encoder.NativeWriter._shape = wrong
for _ in range(40):
    line = encode(message)
    assert Encoder().encode_lines([message]) == line
    assert b"loser" not in line
assert encoder._writer.write(message) is None
print(encoder._writer.why_not)
"""


def test_a_difference_is_noticed_and_ends_the_use_of_the_writer() -> None:
    environment = {**os.environ, ENGINE_VARIABLE: "native"}
    done = subprocess.run(
        [sys.executable, "-c", DIFFERENCE], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "the native writer writes another UserMessage"
    assert "messages are encoded with msgspec" in done.stderr
