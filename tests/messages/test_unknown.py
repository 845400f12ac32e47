"""Messages of unknown types are kept whole and in order, the first time and later, whatever the lines around them."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

import pytest

from claude_wire import Decoder, InitMessage, InvalidLine, ResultMessage, UnknownMessage, decode, encode
from claude_wire.messages import KeepAlive, PermissionReply, ResultSuccess
from unknown_lines import INIT, KEEP_ALIVE, RESULT, TYPES, decoded, line_of

# --- Messages of unknown types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", TYPES)
def test_an_unknown_type_is_kept_whole_the_first_time_and_later(tag: str) -> None:
    value = {"type": tag, "subtype": "s", "a": [1, 2.5, None, {"b": "é\u2028\U0001f600"}], "": {}}
    decoder = Decoder()
    for count in range(1, 4):
        (message,) = decoded(line_of(value), decoder=decoder)
        assert type(message) is UnknownMessage
        assert message == value
        assert list(message) == list(value)
        assert (message.type, message.subtype, message.reason) == (tag, "s", "unknown type")
        assert decoder.stats.unknown == decoder.stats.messages == count


@pytest.mark.parametrize("tag", TYPES)
def test_unknown_types_stay_in_their_place_between_known_ones(tag: str) -> None:
    new = line_of({"type": tag, "n": 1})
    known = [KEEP_ALIVE, INIT, RESULT]
    expected = {
        new: {"type": tag, "n": 1},
        KEEP_ALIVE: KeepAlive(),
        INIT: InitMessage(cwd="/"),
        RESULT: ResultSuccess(),
    }
    for order in set(itertools.permutations([new, new, *known])):
        assert decoded(*order) == [expected[line] for line in order]


DELTA = line_of({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "?"}}})


@pytest.mark.parametrize("tag", TYPES)
def test_unknown_types_beside_bad_lines(tag: str) -> None:
    new = line_of({"type": tag, "n": 1})
    decoded(new)
    for bad in (b"bad", new[:-1], new + new, new[:-1] + b',"x":NaN}', b'{"type":"\xff"}'):
        for order in itertools.permutations([new, bad, KEEP_ALIVE]):
            found = dict(zip(order, decoded(*order), strict=True))
            assert found[new] == {"type": tag, "n": 1}
            assert found[KEEP_ALIVE] == KeepAlive()
            assert isinstance(found[bad], InvalidLine)
            assert found[bad].raw == bad


@pytest.mark.parametrize(("surrogates", "half"), [("keep", "\ud83d"), ("replace", "\ufffd")])
def test_surrogates_in_an_unknown_type_the_first_time_and_later(surrogates: Any, half: str) -> None:
    decoder = Decoder(surrogates=surrogates)
    line = line_of({"type": TYPES[0]})[:-1] + rb',"x":"\ud83d"}'
    for count in range(1, 4):
        assert decoded(line, decoder=decoder) == [{"type": TYPES[0], "x": half}]
        assert (decoder.stats.unknown, decoder.stats.repaired) == (count, count)


def test_two_decoders_do_not_share_what_they_count() -> None:
    one, other = Decoder(), Decoder()
    decoded(line_of({"type": TYPES[0]}), decoder=one)
    decoded(line_of({"type": TYPES[0]}), decoder=other)
    assert one.stats.unknown == other.stats.unknown == 1


def test_types_with_surrogates() -> None:
    for surrogates, half in (("keep", "\ud83d"), ("replace", "\ufffd")):
        decoder: Decoder[Any] = Decoder(surrogates=surrogates)
        for _ in range(2):
            assert decoded(KEEP_ALIVE, rb'{"type":"\ud83d"}', decoder=decoder) == [KeepAlive(), {"type": half}]
            assert decoded(b'{"type":"other"}', KEEP_ALIVE, decoder=decoder) == [{"type": "other"}, KeepAlive()]
            (message,) = decoded(rb'{"type":"system","subtype":"\ud83d"}', decoder=decoder)
            assert message == {"type": "system", "subtype": half}


def test_types_of_any_name() -> None:
    for name in ("", " ", "\0", "system ", "Keep_Alive", "x" * 1_000_000, "\n", "null", "\u2028"):
        value = {"type": name, "n": 1}
        line = line_of(value)
        for lines in ([line], [line], [line, line], [KEEP_ALIVE, line]):
            message = decoded(*lines)[-1]
            assert (message, message.reason) == (value, "unknown type")


VALID = [b"1e300", b"9" * 4000, b'{"type":"a","type":"a"}', b"[" * 100 + b"]" * 100, b'{"type":null}', b'"NaN"']
# An unknown type has no subtype, so a repeated ``subtype`` does no harm.
VALID += [b'{"type":"a","type":"b"}', b'[{"subtype":1,"subtype":2}]', b'1,"subtype":1,"subtype":2']
INVALID = [b"1e400", b"-1e400", b"9" * 5000, b"[" * 100_000 + b"]" * 100_000, b"NaN", b'"\xff"', rb'"\x"', b"01"]
INVALID += [b'1,"type":"b"', b'1,"type":null']


def test_what_is_valid_does_not_depend_on_what_was_met() -> None:
    for number, value in enumerate(VALID + INVALID):
        plain = line_of({"type": f"new_{number}"})
        line = plain[:-1] + b',"x":' + value + b"}"
        for lines in ([line], [plain], [line], [KEEP_ALIVE, line, plain], [plain, line]):
            for given, item in zip(lines, decoded(*lines), strict=True):
                assert isinstance(item, InvalidLine) == (given == line and value in INVALID), (number, item)


def test_unknown_types_met_by_several_threads_at_once() -> None:
    barrier = threading.Barrier(4)
    found: list[Any] = []

    def run(number: int) -> None:
        decoder = Decoder()
        lines = [line_of({"type": tag, "thread": number}) for tag in TYPES] + [INIT, KEEP_ALIVE]
        barrier.wait()
        found.extend((number, message) for _ in range(50) for message in decoded(*lines, decoder=decoder))

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * 50 * 5
    for number in range(4):
        own = [message for thread, message in found if thread == number]
        assert own == [*({"type": tag, "thread": number} for tag in TYPES), InitMessage(cwd="/"), KeepAlive()] * 50


# --- Objects without a type, or with a strange one --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{}", "no type"),
        (b'{"a":1}', "no type"),
        (b'{"type":null}', "no type"),
        (b'{"type":7}', "no type"),
        (b'{"type":["user"]}', "no type"),
        (b'{"type":{"type":"user"}}', "no type"),
        (b'{"Type":"user"}', "no type"),
        (b'{"type":7,"allow":true}', "no type"),
        (b'{"type":"system"}', "no subtype"),
        (b'{"type":"system","subtype":null}', "no subtype"),
        (b'{"type":"system","subtype":3}', "no subtype"),
        (b'{"type":"system","subtype":"of_tomorrow","x":1}', "unknown subtype"),
        (b'{"type":"result","subtype":null}', "no subtype"),
    ],
)
def test_an_object_of_no_known_kind_is_kept_with_the_reason(line: bytes, reason: str) -> None:
    for message in (decode(line), decoded(line)[0], decoded(KEEP_ALIVE, line, KEEP_ALIVE)[1]):
        assert type(message) is UnknownMessage
        assert message == json.loads(line)
        assert message.reason == reason


def test_a_result_of_an_unknown_subtype_is_a_result() -> None:
    line = b'{"type":"result","subtype":"of_tomorrow","is_error":true,"result":"text"}'
    for message in (decode(line), decoded(RESULT, line)[1]):
        assert type(message) is ResultMessage
        assert message == ResultMessage(subtype="of_tomorrow", is_error=True, result="text")
        assert not message.ok
    decoder = Decoder()
    decoded(line, decoder=decoder)
    assert decoder.stats.unknown == 0


def test_a_permission_reply_has_no_type() -> None:
    assert decode(b'{"allow": true}') == PermissionReply(True)
    assert decode(b'{"allow":false}') == PermissionReply(False)
    assert decoded(KEEP_ALIVE, b'{"allow":true}', KEEP_ALIVE) == [KeepAlive(), PermissionReply(True), KeepAlive()]
    assert json.loads(encode(PermissionReply(True))) == {"allow": True}
    (message,) = decoded(b'{"allow":"yes"}')
    assert message == {"allow": "yes"}
    assert message.reason == "expected true or false, got a string at $.allow"
