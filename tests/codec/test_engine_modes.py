"""Both engines must give the same for every stream in every mode: dicts, ``only=``, ``coalesce=``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import recordings
from claude_wire import Decoder, InvalidLine, Message
from claude_wire.codec.engines import Engine, are_same
from claude_wire.messages.union import MESSAGES
from claude_wire.native.functions import functions
from delta_lines import CLOSING, MERGEABLE, NOT_MERGEABLE, block, delta
from each import each
from feeding import cut
from mutations import mutated
from traffic import traffic

if not functions():
    pytest.skip("msgspec decodes here", allow_module_level=True)

DELTAS = "stream_event/content_block_delta/text_delta"
MODES: dict[str, tuple[Any, dict[str, Any]]] = {
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


def decoder(type_: Any, engine: Engine, options: dict[str, Any]) -> Decoder[Any]:
    made: Decoder[Any] = Decoder(type_, **options)
    made._lines.engine = engine
    made._feeder = made._native_feeder = engine.new_feed(made._buffer.handle)
    return made


def require_same(mode: str, chunks: list[bytes], engines: dict[Any, Engine]) -> None:
    """Check that both engines give the same messages for each chunk, so that none comes early or late."""
    type_, options = MODES[mode]
    natively, by_msgspec = decoder(type_, engines[type_], options), decoder(type_, Engine(None, {}), options)
    for chunk in [*chunks, None]:
        found, expected = (it.close() if chunk is None else it.feed(chunk) for it in (natively, by_msgspec))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert place_of(one) == place_of(other)
            assert are_same(one, other)
    assert natively.stats == by_msgspec.stats
    assert not engines[type_].why_not


def place_of(message: Any) -> Any:
    return (message.offset, message.line_number, message.raw) if isinstance(message, InvalidLine) else None


@every_mode
@each("name", recordings.names(), str)
def test_recordings(mode: str, name: str, engines: dict[Any, Engine]) -> None:
    stream = recordings.load(name).stdout
    for size in (64 * 1024, 3000):
        require_same(mode, cut(stream[: 200 * size], size), engines)


@every_mode
def test_byte_by_byte(mode: str, engines: dict[Any, Engine]) -> None:
    stream = traffic(3, lines=60, text="mixed", sessions=2)
    require_same(mode, cut(b"\xef\xbb\xbf" + stream, 1), engines)


@every_mode
def test_cut_everywhere(mode: str, engines: dict[Any, Engine]) -> None:
    odd = [b"", b" \r", b"bad", b'{"type":"result"', rb'{"type":"user","x":"\ud83d"}']
    odd += [delta(r"x\ud83d"), delta(r"\ude00")]
    stream = block(delta("a"), *odd, delta("b"), b'{"type":"result","is_error":1e400}', delta("c" * 400), delta("d"))
    for at in range(len(stream)):
        require_same(mode, [stream[:at], stream[at:]], engines)


def some_lines(rng: random.Random) -> Iterator[bytes]:
    sources = [*MERGEABLE.values(), *NOT_MERGEABLE.values(), *CLOSING.values()]
    sources = [line for line in sources if len(line) < 2000]
    sources += traffic(rng.randrange(1000), lines=300, text="mixed", order="session").splitlines()
    for _ in range(700):
        line = rng.choice(sources)
        other = mutated(line, rng).replace(b"\n", b"")
        yield from rng.choice([[line], [line, line], [other], [line, other, line], [other, other], [line] * 40])


@every_mode
@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines(mode: str, seed: int, engines: dict[Any, Engine]) -> None:
    rng = random.Random(seed)
    stream = block(*some_lines(rng))
    require_same(mode, cut(stream, *(rng.randrange(1, 20_000) for _ in range(7))), engines)
