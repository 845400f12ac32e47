"""``Decoder.feed``, ``decode`` and ``peek`` are native, but must behave like a Python method and Python functions."""

from __future__ import annotations

import copy
import datetime
import gc
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import threading
import weakref
from types import FrameType
from typing import Any
from unittest import mock

import pytest

from children import in_own_process
from claude_wire import Decoder, HandleError, InvalidLine, InvalidLineError, Kind, UnknownMessage, decode, peek
from claude_wire.codec import peek_lines
from claude_wire.codec.kinds import LONGEST_KNOWN, MAX_KNOWN
from claude_wire.messages import KeepAlive
from claude_wire.native.functions import ENGINE_VARIABLE, functions_if_any

LINE = b'{"type":"keep_alive"}\n'
WRONG_ARGUMENTS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    *(((), {}), ((LINE, 1), {}), ((LINE,), {"other": 1}), ((LINE,), {"data": LINE, "line": LINE}), ((), {"x": LINE})),
)


@pytest.fixture(autouse=True)
def planned() -> None:
    """Make the native reader plan the class of LINE."""
    Decoder().feed(LINE)


def test_feed_is_a_method_like_any_other() -> None:
    assert (Decoder.feed.__name__, Decoder.feed.__qualname__) == ("feed", "Decoder.feed")
    assert "Return the messages of the lines that they complete." in (Decoder.feed.__doc__ or "")
    assert list(inspect.signature(Decoder.feed).parameters) == ["self", "data"]
    assert list(inspect.signature(Decoder().feed).parameters) == ["data"]
    assert inspect.isroutine(Decoder.feed)
    assert pickle.loads(pickle.dumps(Decoder.feed)) is Decoder.feed
    assert "may end anywhere" in pydoc.render_doc(Decoder, renderer=pydoc.plaintext)
    assert Decoder().feed.__self__.stats.lines == 0  # type: ignore[attr-defined]  # of a bound method


def test_feed_takes_what_a_method_in_python_takes() -> None:
    decoder = Decoder()
    bound = decoder.feed
    for messages in (
        bound(LINE),
        decoder.feed(data=LINE),
        Decoder.feed(decoder, LINE),
        Decoder.feed(decoder, data=LINE),
    ):
        assert messages == [KeepAlive()]

    for arguments, named in WRONG_ARGUMENTS:
        with pytest.raises(TypeError, match=r"feed\(\)"):
            decoder.feed(*arguments, **named)
    with pytest.raises((TypeError, AttributeError)):
        Decoder.feed(object(), LINE)  # type: ignore[arg-type]  # it raises
    with pytest.raises(AttributeError):
        object.__new__(Decoder).feed(LINE)
    assert decoder.stats.messages == 4


def test_decode_is_a_function_like_any_other() -> None:
    assert (decode.__name__, decode.__module__) == ("decode", "claude_wire.codec.decoder")
    assert (decode.__doc__ or "").startswith("Decode one line, with or without its line feed.")
    assert list(inspect.signature(decode).parameters) == ["line"]
    assert pickle.loads(pickle.dumps(decode)) is decode
    assert copy.copy(decode) is decode
    assert decode(line=LINE) == decode(LINE) == decode(LINE.decode()) == decode(memoryview(LINE)) == KeepAlive()
    assert decode(Text(LINE.decode())) == KeepAlive()
    for arguments, named in WRONG_ARGUMENTS:
        with pytest.raises(TypeError, match=r"decode\(\)"):
            decode(*arguments, **named)


class Text(str):
    __slots__ = ()


@pytest.mark.skipif(not functions_if_any(), reason="msgspec decodes here")
def test_a_usual_line_is_read_without_calls_of_python() -> None:
    decoder = Decoder()
    for read in (decode, peek, decoder.feed):
        read(LINE)
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        decode(LINE)
        decoder.feed(LINE)
        peek(LINE)
    finally:
        sys.setprofile(before)
    assert not calls


def test_peek_is_a_function_like_any_other() -> None:
    assert (peek.__name__, peek.__module__) == ("peek", "claude_wire.codec.kinds")
    assert (peek.__doc__ or "").startswith("Return the kind of one line, with or without its line feed.")
    assert list(inspect.signature(peek).parameters) == ["line"]
    assert pickle.loads(pickle.dumps(peek)) is peek
    assert copy.copy(peek) is peek
    kind = Kind("keep_alive")
    for line in (LINE, LINE.decode(), Text(LINE.decode()), bytearray(LINE), memoryview(LINE)):
        assert peek(line=line) == peek(line) == kind
    for arguments, named in WRONG_ARGUMENTS:
        with pytest.raises(TypeError, match=r"peek\(\)"):
            peek(*arguments, **named)


def test_lines_of_a_kind_share_one_object() -> None:
    in_own_process(peek_at_lines_of_a_kind)  # other tests may have used up the room for kinds


def peek_at_lines_of_a_kind() -> None:
    kind = peek(b'{"type":"system","subtype":"of_peek"}')
    assert peek(b'{"subtype":"of_peek","uuid":"1","type":"system"}\n') is kind
    assert peek_lines(b'{"type":"system","subtype":"of_peek"}\n') == [kind]
    assert peek_lines(b'{"type":"system","subtype":"of_peek"}\n')[0] is kind
    # The shared kind is used only if both type and subtype are equal.
    assert peek(b'{"type":"system","uuid":"of_peek"}') == Kind("system")
    assert peek(b'{"type":"systemof_peek"}') == Kind("systemof_peek")
    assert peek(b'{"type":"system","subtype":"of_peek\\u0021"}') == Kind("system", "of_peek!")


def test_only_so_many_kinds_are_remembered() -> None:
    program = f"""
from claude_wire import Kind, peek
for count in range({MAX_KNOWN} + 10):
    for _ in range(2):
        assert peek(b'{{"type":"%d"}}' % count) == Kind(str(count))
kinds = [[peek(line) for _ in range(2)] for line in (b'{{"type":"0"}}', b'{{"type":"{MAX_KNOWN}"}}')]
print([one is other for one, other in kinds])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[True, False]"


def test_lines_with_similar_tags_keep_their_kinds() -> None:
    kinds = {
        b"{}": Kind(),
        b'{"type":""}': Kind(""),
        b'{"type":"similar"}': Kind("similar"),
        b'{"type":"similar","subtype":""}': Kind("similar", ""),
        b'{"type":"similar"}\n{"type":"similar"}': Kind(),
        b'{"type":"stream_event","event":{"type":"similar"}}': Kind("stream_event", "similar"),
        b'{"type":"stream_event","event":{"delta":{"type":"similar"}}}': Kind("stream_event", None, "similar"),
        b'{"type":"stream_event","event":{"type":""}}': Kind("stream_event", ""),
        b'{"type":"stream_event","event":{"delta":{"type":""}}}': Kind("stream_event", None, ""),
    }
    for line in [*kinds, *reversed(kinds)]:
        assert peek(line) == kinds[line]


def test_long_tags_are_not_remembered() -> None:
    longest, longer = (b'{"type":"%b"}' % (b"x" * length) for length in (LONGEST_KNOWN, LONGEST_KNOWN + 1))
    assert peek(longest) is peek(longest)
    assert peek(longer) is not peek(longer)
    assert peek(longer) == Kind("x" * (LONGEST_KNOWN + 1))


class Counting(Decoder[Any]):
    """A decoder that counts the calls of its feed()."""

    calls = 0

    def feed(self, data: bytes | bytearray | memoryview) -> list[Any]:
        self.calls += 1
        return super().feed(data)


class Other:
    __slots__ = ()


class Derived(Other, Decoder[Any]):
    """A decoder with further slots."""

    __slots__ = ("__weakref__", "one")


def test_a_class_may_derive_from_decoder_and_feed_otherwise() -> None:
    counting = Counting()
    assert counting.feed(LINE) + counting.feed(b"bad\n")[:0] == [KeepAlive()]
    assert (counting.calls, counting.stats.lines, Decoder.feed(counting, LINE)) == (2, 2, [KeepAlive()])
    derived = Derived()
    derived.one = LINE
    assert derived.feed(LINE) == [KeepAlive()]
    assert derived.one is LINE


def test_a_test_may_replace_feed() -> None:
    decoder = Decoder()
    with mock.patch.object(Decoder, "feed", return_value=[]) as feed:
        assert decoder.feed(LINE) == []
    feed.assert_called_once_with(LINE)
    assert decoder.feed(LINE) == [KeepAlive()]
    assert mock.create_autospec(Decoder).feed is not None


def test_a_decoder_dies_with_its_last_reference() -> None:
    gc.collect()
    gc.disable()
    try:
        derived = Derived()
        derived.feed(LINE + b'bad\n{"type":')
        method, died = derived.feed, weakref.ref(derived)
        buffer = weakref.ref(derived._buffer)
        del derived
        assert died() is not None
        assert method(b'"keep_alive"}\n') == [KeepAlive()]
        del method
        assert (died(), buffer()) == (None, None)
    finally:
        gc.enable()


def test_the_words_of_the_header_are_not_slots() -> None:
    program = """
from claude_wire.native.functions import functions
class Feeder:
    __slots__ = ("feeder",)
new = functions()["new_feed_method"]
for slot in range(3):
    try:
        Feeder.feed = new((Feeder, slot, b"", lambda self, data: data, None))
    except SystemError:
        print("refused")
print(Feeder().feed("taken"))
"""
    environment = {**os.environ, ENGINE_VARIABLE: "native"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.split() == ["refused", "refused", "taken"]


def test_only_a_slot_of_the_class_holds_its_keys_without_a_field() -> None:
    program = """
from claude_wire.native.functions import functions
change_plan, *_ = functions()["new_reader"]()
for slot in range(4):
    try:
        print(change_plan((1, 1, (), ((0, (object, 3, b"", (), slot)),), (), (), None)))
    except SystemError:
        print("refused")
"""
    environment = {**os.environ, ENGINE_VARIABLE: "native"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert (run.stdout.split(), run.stderr) == (["refused", "refused", "True", "refused"], "")


def test_a_decoder_takes_no_other_capsule_for_its_feeder() -> None:
    decoder = Decoder()
    decoder._feeder = vars(datetime)["datetime_CAPI"]
    assert type(decoder._feeder).__name__ == "PyCapsule"
    assert decoder.feed(LINE) == [KeepAlive()]


def test_what_is_unusual_is_in_its_place() -> None:
    decoder = Decoder()
    for _ in range(2):
        first, bad, unknown, last = decoder.feed(LINE + b"bad\n" + b'{"type":"of_tomorrow"}\n' + LINE)
        assert isinstance(bad, InvalidLine)
        assert isinstance(unknown, UnknownMessage)
        assert first == last == KeepAlive()
    assert (bad.line_number, bad.offset) == (6, len(LINE) * 3 + len(b'bad\n{"type":"of_tomorrow"}\n'))
    with pytest.raises(TypeError, match="not str"):
        decoder.feed("text")  # type: ignore[arg-type]  # it raises
    with pytest.raises(ValueError, match="contiguous"):
        decoder.feed(memoryview(LINE)[::2])
    assert decoder.feed(bytearray(LINE)) == decoder.feed(memoryview(LINE)) == [KeepAlive()]


def test_messages_that_are_held_back_come_before_those_of_the_next_chunk() -> None:
    decoder = Decoder(on_invalid="raise")
    with pytest.raises(InvalidLineError):
        decoder.feed(b"bad\n" + LINE)
    assert decoder.holds_back
    assert decoder.feed(LINE) == [KeepAlive(), KeepAlive()]
    assert not decoder.holds_back
    assert decoder.feed(LINE) == [KeepAlive()]


def test_a_decoder_that_is_in_use_or_closed_refuses() -> None:
    refusals: list[HandleError] = []

    def feed_again(line: InvalidLine) -> None:
        try:
            decoder.feed(LINE)
        except HandleError as error:
            refusals.append(error)

    with Decoder(on_invalid=feed_again) as decoder:
        assert decoder.feed(b"bad\n" + LINE) == [KeepAlive()]
        assert len(refusals) == 1
    with pytest.raises(HandleError, match="closed"):
        decoder.feed(LINE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_may_not_feed_the_decoder_of_its_parent() -> None:
    program = """
import os
from claude_wire import Decoder, HandleError
decoder = Decoder()
line = b'{"type":"keep_alive"}\\n'
decoder.feed(line)
child = os.fork()
if not child:
    try:
        decoder.feed(line)
    except HandleError as error:
        os._exit("another process" not in str(error) or len(Decoder().feed(line)) != 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(decoder.feed(line)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0 1\n"


def test_threads_may_feed_whole_lines_at_the_same_time() -> None:
    decoder = Decoder()
    counts: list[int] = []

    def feed() -> None:
        fed = 0
        for _ in range(2_000):
            try:
                fed += len(decoder.feed(LINE * 3))
            except HandleError:  # another thread was planning the class, in Python, inside feed()
                continue
            if not fed % 100:
                decoder.stats.summary()
        counts.append(fed)

    threads = [threading.Thread(target=feed) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 3
    assert sum(counts) == decoder.stats.messages


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("native", "method_descriptor builtin_function_or_method builtin_function_or_method"),
        ("msgspec", "function function function"),
    ],
)
def test_where_msgspec_decodes_all_are_in_python(name: str, said: str) -> None:
    program = "import claude_wire as it; print(*(type(f).__name__ for f in (it.Decoder.feed, it.decode, it.peek)))"
    environment = {**os.environ, ENGINE_VARIABLE: name}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said
