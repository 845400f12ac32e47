"""The supervisor's event loop behaves like asyncio's."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from claude_wire_kit.supervisor.loop import SupervisorLoop


@pytest.fixture
def loop() -> Iterator[SupervisorLoop]:
    with closing(SupervisorLoop()) as made:
        yield made


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


Pair = tuple[socket.socket, socket.socket]


def test_a_reader_is_called_with_its_arguments_while_there_is_something_to_read(
    loop: SupervisorLoop, pair: Pair
) -> None:
    ours, theirs = pair
    found: list[tuple[str, bytes]] = []

    def read(name: str) -> None:
        found.append((name, ours.recv(1)))
        if len(found) == 2:
            loop.stop()

    loop.add_reader(ours, read, "first")
    loop.add_reader(ours.fileno(), read, "second")  # replaces the first callback
    theirs.send(b"ab")
    loop.run_forever()
    assert found == [("second", b"a"), ("second", b"b")]
    assert loop.remove_reader(ours)
    assert not loop.remove_reader(ours)


def test_what_a_reader_calls_soon_and_later_comes_after_it_and_timers_do_not_wait_for_readers(
    loop: SupervisorLoop, pair: Pair
) -> None:
    ours, theirs = pair
    order: list[str] = []

    def read() -> None:
        ours.recv(1)
        order.append("read")
        loop.call_soon(order.append, "soon")
        loop.call_later(0.01, order.append, "later")
        loop.call_later(0.02, loop.stop)

    loop.add_reader(ours, read)
    loop.call_later(0.01, theirs.send, b"a")
    loop.run_forever()
    assert order == ["read", "soon", "later"]


def test_a_reader_that_another_has_removed_in_the_same_turn_is_not_called(loop: SupervisorLoop, pair: Pair) -> None:
    called: list[int] = []

    def read(mine: int, other: int) -> None:
        called.append(mine)
        loop.remove_reader(other)
        loop.add_reader(other, called.append, -1)  # a later reader of the same descriptor is independent
        loop.remove_reader(other)
        loop.stop()

    numbers = [end.fileno() for end in pair]
    for end, other in (numbers, numbers[::-1]):
        loop.add_reader(end, read, end, other)
    for end in pair:
        end.send(b"a")
    loop.run_forever()
    assert len(called) == 1


def test_the_reader_of_a_closed_descriptor_can_be_removed(loop: SupervisorLoop, pair: Pair) -> None:
    ours, _ = pair
    number = ours.fileno()
    loop.add_reader(number, print)
    ours.close()
    assert not loop.remove_reader(ours)  # a closed socket has no number
    assert loop.remove_reader(number)
    assert not loop.remove_reader(number)


def test_readers_of_high_and_low_descriptors_are_called(loop: SupervisorLoop, pair: Pair) -> None:
    ours, theirs = pair
    found: list[int] = []
    high = fcntl.fcntl(ours, fcntl.F_DUPFD, 900)
    for number in (high, ours.fileno()):
        loop.add_reader(number, found.append, number)
    loop.call_later(0.01, loop.stop)
    theirs.send(b"a")
    loop.run_forever()
    assert set(found) == {high, ours.fileno()}
    assert not loop.remove_reader(high + 1)
    assert not loop.remove_reader(high - 1)
    assert loop.remove_reader(high)
    os.close(high)


def test_one_descriptor_has_a_reader_and_a_writer(loop: SupervisorLoop, pair: Pair) -> None:
    ours, theirs = pair
    found: list[Any] = []

    def write() -> None:
        found.append(ours.send(b"there"))
        loop.remove_writer(ours)
        theirs.send(b"back")

    def read() -> None:
        found.append(ours.recv(10))
        loop.stop()

    loop.add_reader(ours, read)
    loop.add_writer(ours, write)
    loop.run_forever()
    assert found == [5, b"back"]


def test_a_reader_may_close_what_has_a_writer_that_is_ready(loop: SupervisorLoop, pair: Pair) -> None:
    ours, theirs = pair
    written: list[bool] = []

    def read() -> None:
        loop.remove_reader(ours)
        loop.remove_writer(ours)
        ours.close()
        loop.call_soon(loop.stop)

    theirs.send(b"a")
    loop.add_writer(ours, written.append, True)
    loop.add_reader(ours, read)
    loop.run_forever()
    assert not written


def test_an_error_of_a_reader_goes_to_the_handler_and_the_loop_goes_on(loop: SupervisorLoop, pair: Pair) -> None:
    ours, theirs = pair
    errors: list[Any] = []
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    def read() -> None:
        if ours.recv(1) == b"b":
            loop.stop()
        raise ValueError("a reader")

    loop.add_reader(ours, read)
    theirs.send(b"ab")
    loop.run_forever()
    assert [str(error) for error in errors] == ["a reader"] * 2


def test_tasks_threads_signals_and_streams_work_as_in_any_loop(loop: SupervisorLoop, pair: Pair) -> None:
    async def works() -> list[Any]:
        hung_up = loop.create_future()
        loop.add_signal_handler(signal.SIGHUP, hung_up.set_result, "hung up")
        os.kill(os.getpid(), signal.SIGHUP)
        reader, writer = await asyncio.open_connection(sock=pair[0])
        pair[1].send(b"line\n")
        results = [await hung_up, await asyncio.to_thread(lambda: "thread"), await reader.readline()]
        loop.remove_signal_handler(signal.SIGHUP)
        writer.close()
        return results

    assert loop.run_until_complete(works()) == ["hung up", "thread", b"line\n"]
