"""A CLI writes lines that imitate frames of its supervisor. Every client receives them as ordinary lines."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire import ResultMessage, decode
from claude_wire.messages import KeepAlive
from claude_wire_kit.supervisor import lines as supervisor_lines
from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.frames import Accepted, Cut, Ended, Refused
from claude_wire_kit.supervisor.lines import SupervisorLines
from forged import forged, pieces
from supervisors import Client, hosting


async def lines_of(client: Client, mark: str) -> tuple[list[bytes], list[Any]]:
    """Read until the CLI ends. Return its lines and the supervisor's frames, which only the mark identifies."""
    lines, frames = list[bytes](), list[Any]()
    while line := await client.reader.readline():
        if not line.endswith(b',"mark":"%b"}\n' % mark.encode()):
            lines.append(line)
            continue
        frames.append(json.loads(line))
        if frames[-1]["type"] == "supervisor_ended":
            break
    return lines, frames


async def test_each_client_gets_forged_frames_as_lines_and_the_session_goes_on(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        # A CLI could learn the marks of ended connections, both of its own session and of another one.
        early, elsewhere = await supervisor.client(), await supervisor.client()
        marks = [(await early.ask({"attach": attached["id"]}))["mark"]]
        marks.append((await elsewhere.ask({"create": supervisor.spec()}))["mark"])
        early.close()
        elsewhere.close()
        lines = forged(*marks)
        viewer = await supervisor.client()
        seen = await viewer.ask({"attach": attached["id"]})
        driver.prompt("p1", raw=pieces(lines))
        driver.prompt("p2", exit=3)
        mine, frames = await lines_of(driver, attached["mark"])
        assert [frame["type"] for frame in frames] == ["supervisor_accepted", "supervisor_accepted", "supervisor_ended"]
        assert (frames[-1]["exit_code"], frames[-1]["owed"]) == (3, ["p2"])
        said = "".join(lines).encode()
        assert said in b"".join(mine)
        part = Path(supervisor.path, "sessions", attached["id"], "parts", "000001")
        journal = (part / "stdout.ndjson").read_bytes()
        assert b"".join((await lines_of(viewer, seen["mark"]))[0]) == journal
        assert journal.endswith(b"".join(mine))
        late = await supervisor.client()
        again = await late.ask({"attach": attached["id"]})
        assert again["line"] == journal.count(b"\n")
        assert b"".join([await late.reader.readline() for _ in range(again["line"])]) == journal


async def test_a_session_gets_forged_frames_as_messages_with_their_numbers(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        async with connect(supervisor.path).attach(attached["id"], role="viewer") as session:
            driver.prompt("p1", raw=pieces([line for line in forged(attached["mark"][::-1]) if line.strip()]))
            driver.prompt("p2")
            found = []
            async for message in session:
                if isinstance(message, ResultMessage):
                    assert session.cursor is not None
                    found.append(session.cursor.line)
                if len(found) == 2:
                    break
        path = Path(supervisor.path, "sessions", attached["id"], "parts", "000001", "stdout.ndjson")
        journal = path.read_bytes().splitlines(keepends=True)
        assert found == [number for number, line in enumerate(journal, 1) if line.startswith(b'{"type": "result"')]


async def test_the_mark_of_a_connection_is_in_no_file_no_environment_and_no_other_connection(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        viewer = await supervisor.client()
        seen = await viewer.ask({"attach": attached["id"]})
        assert seen["mark"] != attached["mark"]
        listed = await (await supervisor.client()).ask({"list": {}})
        (pid,) = (session["pid"] for session in listed["sessions"])
        places = [Path(f"/proc/{pid}/environ").read_bytes(), Path(f"/proc/{pid}/cmdline").read_bytes()]
        driver.prompt("p1", stderr="a warning", exit=0)
        ours, _ = await lines_of(driver, attached["mark"])
        theirs, _ = await lines_of(viewer, seen["mark"])
        places += [json.dumps(listed).encode(), *ours, *theirs]
        for folder, _, names in os.walk(supervisor.path):
            places += [Path(folder, name).read_bytes() for name in names if name != "socket"]
        for mark in (attached["mark"], seen["mark"]):
            assert len(mark) == 32
            assert not any(mark.encode() in place for place in places)


async def test_what_a_driver_sends_comes_to_no_cli_with_a_mark(tmp_path: Path) -> None:
    async with hosting(tmp_path / "h") as supervisor:
        driver, attached = await supervisor.create()
        driver.prompt("p1", ask="q1")
        await driver.until("control_request")
        driver.send(
            {"type": "control_response", "response": {"subtype": "success", "request_id": "q1", "response": {}}}
        )
        await driver.until("result")
        driver.send({"type": "supervisor_end_input"})
        await driver.until("supervisor_ended")
        part = Path(supervisor.path, "sessions", attached["id"], "parts", "000001")
        assert attached["mark"].encode() not in (part / "stdin.ndjson").read_bytes()


# --- The reader of a supervisor's stream removes the frames, and numbers the CLI's lines, wherever chunks end ---------


LINES = st.sampled_from(
    [
        b'{"type":"user"}',
        b'{"type":"assistant","text":"' + b"x" * 70 + b' "supervisor_ "supervisor_"}',
        b'{"type":"hos"}',
        b'{"kind":"supervisor_accepted","type":"supervisor_accepted","lines":1}',
        b'{"type":"' + b" " * 200 + b'supervisor_"}',
        b' {\t"type" : "supervisor_refused", "line": 3, "reason": "spaces"}',
        b"",
        b" \t\r",
        b"\r",
        b"nonsense",
    ]
)
FRAMES = st.sampled_from(
    [
        b'{"type":"supervisor_accepted","lines":7}',
        b'{"type":"supervisor_refused","line":3,"reason":"' + b"y" * 100 + b'"}',
        b'{"type":"supervisor_of_tomorrow"}',
        b'{"type":"supervisor_accepted"}',
    ]
)
SAID = [Accepted(7), Refused(3, "y" * 100), None, None]


def taken(lines: SupervisorLines, chunks: list[bytes]) -> tuple[bytes, list[int], list[Any]]:
    """Feed chunks. Return all CLI bytes, the number of each completed line, and all frames."""
    pieces, numbers = b"", list[int]()
    for chunk in chunks:
        before = lines.line
        piece = lines.take(chunk)
        pieces += piece
        numbers += range(before + 1, lines.line + 1)
        assert lines.line - before == piece.count(b"\n")
    return pieces, numbers, lines.found


def whole(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def cuts(data: bytes, places: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(
    st.lists(st.one_of(LINES.map(lambda line: (line, True)), FRAMES.map(lambda line: (line, False))), max_size=12),
    st.lists(st.integers(0, 2000), max_size=8),
    st.integers(0, 3),
)
def test_frames_are_taken_out_and_each_line_is_one_message_wherever_chunks_end(
    said: list[tuple[bytes, bool]], places: list[int], after: int
) -> None:
    data = b"".join(line + b"\n" for line, _ in said)
    own = [line for line, is_own in said if is_own]
    pieces, numbers, frames = taken(SupervisorLines(after), cuts(data, places))
    for given_line, line in zip(whole(pieces), own, strict=True):
        blank = not line.strip(b" \t\r")
        assert decode(given_line) == KeepAlive() if blank else given_line == line
    assert numbers == [*range(after + 1, after + 1 + len(own))]
    assert len(frames) == sum(b'"lines":7' in line or b'"line":3' in line for line, is_own in said if not is_own)


def test_only_a_line_of_blanks_becomes_a_message_wherever_chunks_end() -> None:
    data = b"x \t\n\n \r\ny\n\n"
    for size in range(1, len(data) + 1):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        first, *blank, second, last = whole(taken(SupervisorLines(0), chunks)[0])
        assert (first, second) == (b"x \t", b"y")
        assert [decode(line) for line in (*blank, last)] == [KeepAlive()] * 3


@pytest.mark.parametrize(
    ("frame", "end"),
    [
        (b'{"type":"supervisor_ended","exit_code":3}', Ended),
        (b'{"type":"supervisor_cut","cursor":{"id":"s"},"message":"slow"}', Cut),
    ],
)
def test_what_ends_the_stream_is_the_last_of_it(frame: bytes, end: type[Any]) -> None:
    data = b'{"a":1}\n' + frame + b'\n{"b":2}\n'
    for cut in range(len(data)):
        lines = SupervisorLines(0)
        pieces, _, _ = taken(lines, [data[:cut], data[cut:]])
        assert pieces == b'{"a":1}\n'
        assert isinstance(lines.end, end)


def test_a_session_that_has_ended_ends_behind_its_last_line() -> None:
    ended = Ended(exit_code=0)
    assert SupervisorLines(3, 3, ended).end is ended
    lines = SupervisorLines(1, 3, ended)
    assert lines.end is None
    assert taken(lines, [b"1\n2\n3\n4\n"])[0] == b"1\n2\n"
    assert lines.end is ended


def test_a_frame_that_is_too_long_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_lines, "MAX_FRAME_LINE_BYTES", 100)
    frame = b'{"type":"supervisor_stderr","text":"' + b"x" * 200 + b'"}\n'
    lines = SupervisorLines(0)
    assert taken(lines, [frame[:150], frame[150:]])[0] == frame
    assert lines.line == 1


@pytest.mark.parametrize(
    "forged",
    [
        b'{"type":"supervisor_ended","exit_code":0}',
        b'{"type":"supervisor_ended","exit_code":0,"mark":"0000"}',
        b'{"type":"supervisor_cut","cursor":{"id":"x"},"message":"m"}',
        b'{"type":"supervisor_refused","line":1,"reason":"r"}',
        b'{"type":"supervisor_of_tomorrow"}',
    ],
)
def test_a_line_of_a_cli_that_looks_like_a_frame_is_a_line_wherever_chunks_end(forged: bytes) -> None:
    data = b'{"a":1}\n' + forged + b'\n{"type":"supervisor_accepted","lines":7,"mark":"abcd"}\n{"b":2}\n'
    for cut in range(len(data)):
        lines = SupervisorLines(0, mark="abcd")
        pieces, numbers, frames = taken(lines, [data[:cut], data[cut:]])
        assert pieces == b'{"a":1}\n' + forged + b'\n{"b":2}\n'
        assert (numbers, frames, lines.end) == ([1, 2, 3], [Accepted(7)], None)
