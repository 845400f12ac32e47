"""The output of ``help()`` and ``repr()``, and the signatures that an editor shows, for the public objects."""

from __future__ import annotations

import inspect
import pydoc
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from claude_wire import (
    Accumulator,
    Decoder,
    Encoder,
    HookMatcher,
    LineSplitter,
    Message,
    MessageStream,
    decode,
    open_process,
    open_session,
    read,
)
from claude_wire.dialects import CLASSIC
from recordings import load

#: Stands for the conversation. It must not appear in a repr.
SECRET = "xylophone"

LINES = (
    b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"xylophone"}]}}\n'
    b'not JSON but xylophone\n{"type":"keep_alive"}\n'
)


def checked(value: object) -> str:
    """Return the repr, after checking that it is short and has no text of the conversation."""
    text = repr(value)
    assert SECRET not in text
    assert len(text) < 200
    return text


@pytest.mark.parametrize("made", [read, Decoder], ids=["read", "Decoder"])
def test_signature_and_help_name_the_default_type(made: Any) -> None:
    assert repr(inspect.signature(made).parameters["type"].default) == "Message"
    text = pydoc.plain(pydoc.render_doc(made))
    assert re.search(r"type: '?Any'? = Message,", text)
    assert "AssistantMessage" not in text[:2000]


def test_the_union_itself_and_nothing_are_the_same_type() -> None:
    for decoder in (Decoder(), Decoder(Message)):
        assert decoder.feed(b'{"type":"keep_alive"}\n') == [decode(b'{"type":"keep_alive"}')]
    with pytest.raises(TypeError, match="Message or dict"):
        Decoder(list)


def test_decoder_says_what_it_has_seen() -> None:
    decoder = Decoder()
    assert checked(decoder) == "<Decoder of Message: 0 messages, 0 invalid lines, 0 bytes>"
    decoder.feed(LINES)
    assert checked(decoder) == f"<Decoder of Message: 2 messages, 1 invalid lines, {len(LINES)} bytes>"
    with Decoder(dict) as plain:
        pass
    assert checked(plain) == "<Decoder of dict: 0 messages, 0 invalid lines, 0 bytes>"


def test_encoder_and_splitter() -> None:
    assert checked(Encoder()) == "Encoder()"
    with LineSplitter(keepends=True) as splitter:
        splitter.feed(b"{}\nxylophone")
        assert checked(splitter) == "<LineSplitter with line feeds: 704 bytes of memory>"
    assert checked(splitter) == "<LineSplitter with line feeds: closed>"


def test_reader_says_whether_it_has_ended(tmp_path: Path) -> None:
    path = tmp_path / SECRET
    path.write_bytes(LINES)
    reader = read(path)
    assert checked(reader) == "<Reader open: 0 messages, 0 invalid lines, 0 bytes>"
    assert len(list(reader)) == 3
    assert checked(reader) == f"<Reader ended: 2 messages, 1 invalid lines, {len(LINES)} bytes>"


def test_accumulator_says_how_many_messages_it_keeps() -> None:
    accumulator = Accumulator()
    assert checked(accumulator) == "<Accumulator: 0 messages kept, 0 under way>"
    decoder = Decoder()
    seen = set[str]()
    for message in decoder.feed(load("03_think_partial").stdout):
        accumulator.add(message)
        seen.add(checked(accumulator))
    assert "<Accumulator: 1 messages kept, 1 under way>" in seen
    assert checked(accumulator).endswith("0 under way>")


def test_hook_matcher_names_its_functions() -> None:
    def guard(request: Any) -> None: ...

    matcher = HookMatcher(guard, matcher="Bash", timeout=2.0)
    name = guard.__qualname__
    assert repr(matcher) == f"HookMatcher({name}, matcher='Bash', timeout=2.0, on_failure=None)"


async def test_stream_says_where_it_stands() -> None:
    async def chunks() -> Any:
        yield LINES

    stream = MessageStream(chunks())
    assert checked(stream) == "<MessageStream open: 0 messages, 0 invalid lines, 0 bytes>"
    assert checked(stream.batches()).startswith("<Batches of <MessageStream open: ")
    async for _ in stream:
        pass
    assert checked(stream) == f"<MessageStream ended: 2 messages, 1 invalid lines, {len(LINES)} bytes>"
    other = MessageStream(chunks())
    await other.aclose()
    assert checked(other) == "<MessageStream ended: 0 messages, 0 invalid lines, 0 bytes>"


async def test_process_and_session_say_their_pid_and_how_it_ended() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]

    process = open_process(command, grace=30.0)
    assert checked(process) == "<Process not started: 0 messages, 0 invalid lines, 0 bytes>"
    async with process:
        assert checked(process).startswith(f"<Process pid {process.pid} running: 0 messages")
    assert checked(process).startswith(f"<Process pid {process.pid} exited with 0: ")
    session = open_session(command)
    assert checked(session).startswith("<Session not entered: nothing under way, <Process not started: ")
    await session.aclose()
    assert checked(session).startswith("<Session closed: ")
    assert checked(session.batches()).startswith("<SessionBatches of <Session closed: ")
    async with open_session(command, dialect=CLASSIC) as entered:
        assert checked(entered.receive_run()) == "<SessionMessages open>"
