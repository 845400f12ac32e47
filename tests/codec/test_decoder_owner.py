"""Tests of the decoder: use by several threads, and interrupts."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from claude_wire import Decoder, HandleError, InitMessage, InvalidLine, Message
from claude_wire.messages import KeepAlive, ResultSuccess
from decoder_lines import ASSISTANT, BOM, INIT, KEEP_ALIVE, LONE, NEW_BLOCK, RESULT, in_pieces
from interrupts import MODULES

# --- Whose decoder it is ----------------------------------------------------------------------------------------------


def test_two_threads_at_once_are_refused_and_nothing_is_lost() -> None:
    # The callback of the first thread waits, so that thread stays inside the decoder while the second one tries.
    entered, leave = threading.Event(), threading.Event()
    found: list[Any] = []

    def hold(line: InvalidLine) -> None:
        entered.set()
        assert leave.wait(30)

    decoder = Decoder(on_invalid=hold)
    first = threading.Thread(target=lambda: found.extend(decoder.feed(KEEP_ALIVE + b"\nbad\n" + INIT + b"\n")))
    first.start()
    try:
        assert entered.wait(30)
        for call in (lambda: decoder.feed(RESULT + b"\n"), decoder.close):
            with pytest.raises(HandleError, match="two threads at the same time"):
                call()
    finally:
        leave.set()
        first.join()
    assert found == [KeepAlive(), InitMessage(cwd="/")]
    assert decoder.feed(RESULT + b"\n") == [ResultSuccess(is_error=False)]


def test_no_thread_slips_in_between_the_look_at_a_decoder_and_the_use_of_it() -> None:
    # Python switches threads at calls. At the n-th call within feed(), another thread enters the decoder and stays.
    def slips_in_at(number: int) -> bool:
        entered, leave = threading.Event(), threading.Event()
        mine, others = b'{"a":"mine"}', b'{"a":"another\'s"}'
        found: dict[str, Any] = {}

        def loads(line: bytes) -> Any:
            if line == others:
                entered.set()
                assert leave.wait(30)
            return json.loads(line)

        decoder = Decoder(dict, loads=loads)

        def feed(line: bytes) -> None:
            try:
                found[threading.current_thread().name] = decoder.feed(line + b"\n")
            except HandleError:
                found[threading.current_thread().name] = None
            finally:
                entered.set()

        second = threading.Thread(target=feed, args=[others], name="second")
        calls = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal calls
            if event == "call" and frame.f_code.co_filename.endswith(MODULES):
                calls += 1
                if calls == number:
                    sys.settrace(None)
                    second.start()
                    assert entered.wait(30)
            return None

        def traced() -> None:
            sys.settrace(trace)
            feed(mine)

        first = threading.Thread(target=traced, name="first")
        first.start()
        first.join(30)
        leave.set()
        if calls < number:
            return False
        second.join(30)
        messages = {"first": [json.loads(mine)], "second": [json.loads(others)]}
        assert found in (messages | {"first": None}, messages | {"second": None}), number
        return True

    assert sum(1 for _ in itertools.takewhile(slips_in_at, itertools.count(1))) > 3


def test_one_thread_after_the_other_may_use_it() -> None:
    decoder = Decoder()
    found: list[Any] = []
    for half in (INIT[:10], INIT[10:] + b"\n"):
        thread = threading.Thread(target=lambda half=half: found.extend(decoder.feed(half)))
        thread.start()
        thread.join()
    assert found == [InitMessage(cwd="/")]


def test_its_own_callback_may_not_use_it() -> None:
    refused: list[str] = []

    def reenter(line: InvalidLine) -> None:
        for call in (lambda: decoder.feed(KEEP_ALIVE + b"\n"), decoder.close):
            with pytest.raises(HandleError) as caught:
                call()
            refused.append(str(caught.value))

    decoder = Decoder(on_invalid=reenter)
    assert decoder.feed(INIT + b"\nbad\n" + KEEP_ALIVE + b"\n") == [InitMessage(cwd="/"), KeepAlive()]
    assert len(refused) == 2
    assert "its own on_invalid" in refused[0]


FORK = """
import os, sys
from claude_wire import Decoder, HandleError
def refused(call):
    try:
        call()
    except HandleError as error:
        return "process" in str(error)
    return False
def forked(decoder):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1] == 0
    ok = refused(lambda: decoder.feed(b"{}\\n")) and refused(lambda: decoder.feed(b"")) and refused(decoder.close)
    # A decoder of its own works, and what the parent had is not touched by the child's end.
    ok = ok and len(Decoder().feed(b"{}\\n")) == 1
    os._exit(not ok)
idle = Decoder()
idle.feed(b'{"type":"keep')
assert forked(idle)
assert len(idle.feed(b'_alive"}\\n')) == 1
# Forked in the middle of a call, so that the child inherits the decoder in use.
answers = []
busy = Decoder(on_invalid=lambda line: answers.append(forked(busy)))
assert busy.feed(b"bad\\n") == []
assert answers == [True]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_is_refused_and_the_parent_goes_on() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=60)


def test_left_as_a_context_manager_it_is_closed() -> None:
    with Decoder() as decoder:
        assert decoder.feed(KEEP_ALIVE + b"\n") == [KeepAlive()]
    for call in (lambda: decoder.feed(KEEP_ALIVE + b"\n"), decoder.close):
        with pytest.raises(HandleError, match="closed"):
            call()
    assert decoder.stats.messages == 1


def test_an_exception_passes_through_the_context_manager() -> None:
    with pytest.raises(KeyError), Decoder():
        raise KeyError


# --- Looking at lines before they are decoded -------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("kind", [Message, dict])
def test_a_follower_gives_the_lines_and_messages_that_the_decoder_will_give(kind: Any, start: bytes) -> None:
    lines = [KEEP_ALIVE, b"[1]", BOM + b"{}", ASSISTANT, LONE, NEW_BLOCK, RESULT, b'{"type":"keep_alive"}']
    stream = start + b"\n".join(lines)
    surrogates: Any
    for surrogates, cut in itertools.product(("keep", "replace"), range(len(start), len(stream) + 1, 3)):
        decoder = Decoder(kind, surrogates=surrogates)
        first = len(decoder.feed(stream[:cut]))
        follower = decoder.follower()
        rest = [line for piece in in_pieces(stream[cut:], 7) for line in follower.feed(piece)] + follower.feed(b"")
        assert rest == lines[first:]
        for line, message in zip(rest, decoder.feed(stream[cut:]) + decoder.close(), strict=True):
            assert follower.decode(line) == (None if isinstance(message, InvalidLine) else message)


def test_a_follower_has_the_limit_of_its_decoder_and_takes_no_rest_of_a_line_for_one() -> None:
    decoder = Decoder(max_line_bytes=30)
    decoder.feed(b'{"type":"x","t":"' + b"t" * 30)
    follower = decoder.follower()
    lines = follower.feed(KEEP_ALIVE + b"\n" + b"x" * 31 + b"\n" + KEEP_ALIVE + b"\n" + b"y" * 31 + b"\nlast")
    assert lines == [b"\0" + KEEP_ALIVE, KEEP_ALIVE]
    assert [follower.decode(line) for line in lines] == [None, KeepAlive()]
    assert follower.feed(b"") == [b"last"]


def test_a_follower_of_a_decoder_that_was_closed_is_at_the_start_of_a_stream() -> None:
    decoder = Decoder()
    for line in (KEEP_ALIVE, KEEP_ALIVE + b"\n"):  # the second is a complete line, which skips framing
        decoder.feed(b"\n")
        decoder.feed(line)
        decoder.close()
        assert decoder.follower().feed(BOM + KEEP_ALIVE + b"\n") == [KEEP_ALIVE]
        decoder.feed(KEEP_ALIVE + b"\n")
        assert decoder.follower().feed(BOM + KEEP_ALIVE + b"\n") == [BOM + KEEP_ALIVE]
        decoder.close()


def test_a_follower_does_not_change_its_decoder() -> None:
    decoder = Decoder()
    assert decoder.feed(b'{"type":"keep') == []
    decoder.follower().feed(b'_alive"}\n{"type')
    assert decoder.feed(b'_alive"}\n') == [KeepAlive()]


def test_a_decoder_says_what_it_gives() -> None:
    assert [Decoder().typed, Decoder(dict).typed] == [True, False]
    given = [Decoder(), Decoder(on_invalid="raise"), Decoder(on_invalid=print)]
    assert [decoder.on_invalid for decoder in given] == ["return", "raise", print]
