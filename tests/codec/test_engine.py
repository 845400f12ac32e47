"""The native reader makes what msgspec makes, of every line, whoever else runs meanwhile."""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from claude_wire import Decoder, InvalidLine
from claude_wire.codec import engine
from claude_wire.codec.engines import ENGINE_VARIABLE, Engine, are_same, engine_of, functions
from claude_wire.codec.typed_lines import TypedLines
from claude_wire.messages.union import MESSAGES
from claude_wire.transcripts import Record
from recordings import load, names

if not functions():
    pytest.skip("msgspec decodes here", allow_module_level=True)

#: Bytes of the chunks that streams are fed in.
CHUNKS = (64 * 1024, 4096, 333)
#: Lines that are changed, and changes.
MUTATIONS = 4000


def decoder(engine: Engine, family: Any = None) -> Decoder[Any]:
    """A decoder that uses this engine."""
    made: Decoder[Any] = Decoder() if family is None else Decoder(family)
    lines = made._lines
    assert isinstance(lines, TypedLines)
    lines.engine = lines._engine = engine
    made._engine = None if engine.why_not else engine
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
    """An engine that has seen nothing."""
    return Engine(MESSAGES, functions())


def test_the_native_reader_is_what_decodes() -> None:
    assert engine() == "native"


@pytest.mark.parametrize("name", names())
def test_recordings_are_the_same_in_chunks_of_any_size(name: str) -> None:
    recording = load(name)
    for data in (recording.stdout, recording.stdin):
        native = Engine(MESSAGES, functions())
        for size in CHUNKS:
            require_same(data, native, size)


def test_recordings_are_the_same_one_after_another(native: Engine) -> None:
    for name in names():
        require_same(load(name).stdout, native, 64 * 1024)


# --- changed lines ----------------------------------------------------------------------------------------------------

#: Values of every type, and such as are near to another type.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.0, -0.0, 0.5, 1e300, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *("", "x", "é", "🦀", "\ud83d", "\x00", 'a"b\\c\n', "text", "success", [], ["a", 1], {}, {"type": "text"}),
    *({"type": "later"}, [{"type": "text", "text": "x"}], [[[]]], {"a": {"b": [None]}}),
)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(item)


def changed(value: dict[str, Any], rng: random.Random) -> bytes:
    """The line of an object with some change in it."""
    within = rng.choice(list(objects(value)))
    keys = list(within)
    change = rng.randrange(7)
    if change == 0 or not keys:
        within[rng.choice(["new", "é", 'k"', "type", "id", "k" * 70])] = rng.choice(ODD)
    elif change == 1:
        within[rng.choice(keys)] = rng.choice(ODD)
    elif change == 2:
        del within[rng.choice(keys)]
    elif change == 3:
        rng.shuffle(keys)
        items = [(key, within[key]) for key in keys]
        within.clear()
        within.update(items)
    elif change == 4:
        key = rng.choice(keys)
        within[key] = [within[key]] * rng.randrange(3)
    elif change == 5:
        twice = json.dumps(within)[:-1] + "," + json.dumps(dict([rng.choice(list(within.items()))]))[1:]
        return json.dumps(value).replace(json.dumps(within), twice, 1).encode()
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")]))
    line = text.encode("utf-8", "surrogatepass")
    if change == 6:
        at = rng.randrange(len(line))
        line = line[:at] + bytes([rng.choice(b'"\\{}[],: \tnul0123456789.eE-\x7f\xc3')]) + line[at + rng.randrange(2) :]
    return line.replace(b"\n", b" ")


def test_changed_lines_are_the_same(native: Engine) -> None:
    rng = random.Random(1)
    lines = [line for name in names() for line in load(name).stdout.split(b"\n") if 2 < len(line) < 20_000]
    kinds: dict[str, list[bytes]] = {}
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            kinds.setdefault(f"{value.get('type')}/{value.get('subtype')}", []).append(line)
    block = bytearray()
    for number in range(MUTATIONS):
        line = rng.choice(rng.choice(list(kinds.values())))
        # Some stay as they are, so that there is something to remember.
        block += (line if rng.random() < 0.3 else changed(json.loads(line), rng)) + b"\n"
        if len(block) > 100_000 or number == MUTATIONS - 1:
            require_same(bytes(block), native, rng.choice(CHUNKS))
            block.clear()


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


# --- what is shared, and what is kept ---------------------------------------------------------------------------------

DELTA = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},'
    b'"session_id":"s","parent_tool_use_id":null,"uuid":"%s"}\n'
)
ASSISTANT = (
    b'{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"tool_use",'
    b'"id":"t","name":"Bash","input":{"command":"ls","more":[1,2,{"deep":["er"]}]}}],"stop_reason":null,'
    b'"usage":{"input_tokens":1,"output_tokens":2}},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}\n'
)


def test_no_two_messages_share_what_can_change() -> None:
    first, *others = Decoder().feed(ASSISTANT * 20)
    assert not isinstance(first, InvalidLine)
    before = msgspec.json.encode(others)
    first.message.content[0].input["more"][2]["deep"].append("changed")  # type: ignore[union-attr]  # it is a tool use
    first.message.content.append("another")  # type: ignore[union-attr]  # as above
    first.message.content[0].input.clear()  # type: ignore[union-attr]  # as above
    assert msgspec.json.encode(others) == before
    assert msgspec.json.encode(Decoder().feed(ASSISTANT * 20)[1:]) == before


def test_a_message_that_is_changed_by_force_changes_no_other() -> None:
    lines = b"".join(DELTA % (b"text%d" % number, b"u%d" % number) for number in range(50))
    messages = Decoder().feed(lines)
    msgspec.structs.force_setattr(messages[3], "session_id", "changed")
    assert [message.session_id for message in Decoder().feed(lines)] == ["s"] * 50  # type: ignore[union-attr]  # events


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
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which wait here
        child = os.fork()
    if not child:
        os._exit(msgspec.json.encode(decoder(native).feed(data)) != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- which engine -----------------------------------------------------------------------------------------------------


def said(**environment: str) -> str:
    program = "from claude_wire.codec import engine; print(engine())"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def test_the_environment_may_ask_for_msgspec() -> None:
    assert said(**{ENGINE_VARIABLE: "msgspec"}) == f"msgspec: ${ENGINE_VARIABLE} says so"
    assert said(**{ENGINE_VARIABLE: "native"}) == "native"
    assert said(**{ENGINE_VARIABLE: "fast"}) == f"ValueError: {ENGINE_VARIABLE} must be native or msgspec, not 'fast'"


def test_a_difference_is_noticed_and_ends_the_use_of_the_reader(
    native: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = native.read

    def wrong(lines: Any) -> Any:
        read = real(lines)
        assert read is not None
        messages, unknown, fallen = read
        changed = [message and msgspec.structs.replace(message, session_id="wrong") for message in messages]
        return changed, unknown, fallen

    native.read = wrong
    with pytest.warns(RuntimeWarning, match="decodes with msgspec: the native reader makes another StreamEvent"):
        (message,) = decoder(native).feed(DELTA % (b"x", b"u"))
    assert message.session_id == "s"
    assert native.read(DELTA) is None
    assert engine_of(MESSAGES).read is not native.read


# --- single lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_single_lines_are_the_same_with_and_without_their_line_feeds(name: str, native: Engine) -> None:
    expected, whole = decoder(Engine(MESSAGES, {})), decoder(native)
    for each in (expected, whole):
        each.feed(b'{"type":"keep_alive"}\n')
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
    assert native.read_whole_line(odd) is None
    assert native.read_line(odd.decode("latin-1")) is None
    assert native.read_line(None) is None


def test_a_chunk_without_its_line_feed_is_not_whole(native: Engine) -> None:
    fed(decoder(native), b'{"type":"keep_alive"}\n' * 3, 100)
    assert native.read_whole_line(b'{"type":"keep_alive"}') is None
    assert native.read_whole_line(b'{"type":"keep_alive"}\n') is not None
