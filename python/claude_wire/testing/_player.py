"""The program that plays a recording in place of the CLI, and the reading of recordings that it needs for that.

Its arguments are ``RECORDING SETTINGS [FLAGS...]``: the folder or file of the recording, a JSON object (see
``replay``), and the flags that the host means for the CLI. One file of the standard library only, with few imports, run
without the package around it: a stand-in is started for every test, and importing the package takes several times as
long as the rest.

``recording`` and ``replay`` are the typed ways to it. Knows recordings, pipes and signals. Of the protocol it knows
what it must to follow a live host: prompts, control requests and control responses.
"""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import signal
import sys
import threading
import time
from queue import Empty, SimpleQueue

TYPE_CHECKING = False  # typing is slow to import, and nothing of it is needed here at run time
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from typing import Any, BinaryIO, NoReturn

STDIN, STDOUT, STDERR = 0, 1, 2

#: As much as a pipe of Linux holds, and as much as one read of most hosts takes.
BLOCK_BYTES = 64 * 1024

#: The number of SIGKILL; Windows has no name for it, and ends a process all the same.
KILL = 9

#: The version of the CLI whose ways these are; ``--version`` says it if the recording does not say another.
VERSION = b"2.1.330"

#: The events that happen as soon as the bytes before them are written; others happen when the line behind them is due.
BEHIND_A_BYTE = frozenset(("cut", "kill", "stall"))

#: The answer to ``initialize`` if none was recorded: what the protocol requires it to have.
EMPTY_INITIALIZE: dict[str, Any] = {
    "commands": [],
    "agents": [],
    "output_style": "default",
    "available_output_styles": ["default"],
    "models": [],
    "account": {},
}

# --- recordings -------------------------------------------------------------------------------------------------------

#: The files of a recording. Each may be compressed: ``stdout.ndjson.gz`` or ``.xz``.
FILES = (
    "stdout.ndjson",
    "stdin.ndjson",
    "order.jsonl",
    "stdout.reads.jsonl",
    "cmd.json",
    "exit.json",
    "stderr.txt",
)

#: What a file with a packed recording begins with, and what stands before the recording in it.
PACKED = b"#!/bin/sh\n"
PACKED_FILES = b"\n#recording "

#: A recording is held in memory. All its compressed files together may unpack to so many bytes.
MAX_UNPACKED_BYTES = 256 * 1024 * 1024

#: Unpacking .xz may take so much memory; what ``xz -9`` packs takes 65 MiB.
MAX_XZ_MEMORY_BYTES = 128 * 1024 * 1024


class UnpackLimitError(ValueError):
    """A compressed file is larger, or takes more memory, than may be unpacked."""


def read_files(path: str) -> dict[str, bytes]:
    """The files of a recording by name: of a folder, of a script with a recording in it, or stdout alone.

    Raises:
        OSError: ``path`` cannot be read, or is a folder without ``stdout.ndjson``.
        ValueError: a compressed file is damaged.
        UnpackLimitError: the compressed files unpack to more than :data:`MAX_UNPACKED_BYTES`.
    """
    if not os.path.isdir(path):
        data = _contents(path, MAX_UNPACKED_BYTES)
        if data.startswith(PACKED) and PACKED_FILES in data:
            return _unpacked(data)
        return {"stdout.ndjson": data}
    files: dict[str, bytes] = {}
    left = MAX_UNPACKED_BYTES
    for entry in sorted(os.listdir(path)):
        name = entry.removesuffix(".gz").removesuffix(".xz")
        if name in FILES:
            files[name] = _contents(os.path.join(path, entry), left)
            left -= len(files[name]) if entry != name else 0
    if "stdout.ndjson" not in files:
        raise FileNotFoundError(2, "no recording: there is no stdout.ndjson in it", path)
    return files


def _contents(path: str, most: int) -> bytes:
    """A file, unpacked by the end of its name to at most so many bytes; what is not compressed is read as it is."""
    name = os.path.basename(path)
    if not name.endswith((".gz", ".xz")):
        with open(path, "rb") as file:
            return file.read()
    unpacked = io.BytesIO()
    for piece in unpacked_pieces(path):
        if unpacked.tell() + len(piece) > most:
            raise UnpackLimitError(
                f"{name} is too large: the files of a recording may unpack to {MAX_UNPACKED_BYTES:,} bytes"
            )
        unpacked.write(piece)
    return unpacked.getvalue()


def unpacked_pieces(path: str) -> Generator[bytes, None, None]:
    """What is in a .gz or .xz file, in pieces of at most :data:`BLOCK_BYTES`, in constant memory.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged.
        UnpackLimitError: it takes more than :data:`MAX_XZ_MEMORY_BYTES` to unpack it.
    """
    unpacked = _unpacked_gz if path.endswith(".gz") else _unpacked_xz
    with open(path, "rb") as file:
        yield from unpacked(file, os.path.basename(path))


def _unpacked_gz(file: BinaryIO, name: str) -> Iterator[bytes]:
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=file) as stream:
            while piece := stream.read(BLOCK_BYTES):
                yield piece
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is damaged: {error}") from error


def _unpacked_xz(file: BinaryIO, name: str) -> Iterator[bytes]:
    import lzma

    # lzma.open has no limit of memory, and a header of a few bytes may ask for 4 GiB.
    data = file.read(BLOCK_BYTES)
    try:
        while True:
            stream = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY_BYTES)
            while not stream.eof:
                if stream.needs_input and not data:
                    raise ValueError(f"{name} is damaged: it ends before its end is marked")
                if piece := stream.decompress(data, BLOCK_BYTES):
                    yield piece
                data = file.read(BLOCK_BYTES) if stream.needs_input else b""
            data = stream.unused_data
            # One stream may follow another, with zeros between them.
            while not (data := data.lstrip(b"\0")):
                if not (data := file.read(BLOCK_BYTES)):
                    return
    except lzma.LZMAError as error:
        if "Memory usage limit" in str(error):
            raise UnpackLimitError(f"{name} takes more than {MAX_XZ_MEMORY_BYTES:,} bytes to unpack") from error
        raise ValueError(f"{name} is damaged: {error}") from error


def packed(head: bytes, files: Mapping[str, bytes]) -> bytes:
    """``head``, lines of a shell script that ends by ``exec``, with a recording behind it."""
    sizes = json.dumps({name: len(data) for name, data in files.items()}).encode("ascii")
    return PACKED + head + PACKED_FILES + sizes + b"\n" + b"".join(files.values())


def _unpacked(data: bytes) -> dict[str, bytes]:
    begin = data.index(PACKED_FILES) + len(PACKED_FILES)
    at = data.index(b"\n", begin) + 1
    files: dict[str, bytes] = {}
    for name, size in json.loads(data[begin:at]).items():
        files[name] = data[at : at + size]
        at += size
    return files


class Step:
    """One line that went one way or the other."""

    __slots__ = ("data", "is_input", "seconds")

    def __init__(self, seconds: float, is_input: bool, data: bytes) -> None:
        self.seconds = seconds
        self.is_input = is_input
        self.data = data


def steps_of(files: Mapping[str, bytes]) -> list[Step]:
    """The lines of both streams, line feeds included, in the order in which they went, with their times.

    Raises:
        ValueError: order.jsonl or stdout.reads.jsonl is no lines of such JSON arrays.
    """
    written = io.BytesIO(files.get("stdout.ndjson", b"")).readlines()
    sent = io.BytesIO(files.get("stdin.ndjson", b"")).readlines()
    if "order.jsonl" in files:
        return _recorded_order(_arrays(files, "order.jsonl", (_NUMBER, str, int)), written, sent)
    outputs = _timed(reads_of(files), written)
    return _likely_order(outputs, sent) if sent else outputs


def reads_of(files: Mapping[str, bytes]) -> list[Any]:
    """``[seconds, bytes]`` for each recorded read of standard output.

    Raises:
        ValueError: stdout.reads.jsonl is no lines of such JSON arrays.
    """
    return _arrays(files, "stdout.reads.jsonl", (_NUMBER, int))


_NUMBER = (int, float)


def _arrays(files: Mapping[str, bytes], name: str, kinds: tuple[Any, ...]) -> list[Any]:
    rows = files.get(name, b"").split(b"\n")
    if not rows[-1].endswith(b"]"):
        rows.pop()  # empty, or as much of a row as was written when the recorder was killed, or the disk was full
    try:
        arrays: list[Any] = json.loads(b"[%b]" % b",".join(rows).rstrip(b","))
    except ValueError as error:
        raise ValueError(f"{name} is not one JSON array a line: {error}") from error
    for array in map(_list, arrays):
        if len(array) != len(kinds) or not all(map(isinstance, array, kinds)):
            raise ValueError(f"{name} is not one JSON array of {len(kinds)} a line")
    return arrays


def _recorded_order(order: list[Any], written: list[bytes], sent: list[bytes]) -> list[Step]:
    steps: list[Step] = []
    outputs, inputs = iter(written), 0
    seconds = 0.0
    for seconds, direction, size in order:
        if direction == "out":
            steps.extend(Step(seconds, False, data) for data in (next(outputs, None),) if data is not None)
        elif direction == "in":
            # An entry is one write of the host: mostly a line, sometimes several, and blank ones may have no entry.
            end = _end_of_write(sent, inputs, size)
            steps.extend(Step(seconds, True, data) for data in sent[inputs:end])
            inputs = end
    steps.extend(Step(seconds, False, data) for data in outputs)
    steps.extend(Step(seconds, True, data) for data in sent[inputs:])
    return steps


def _end_of_write(sent: list[bytes], begin: int, size: int) -> int:
    total = 0
    for end in range(begin, len(sent)):
        total += len(sent[end])
        if size in (len(sent[end].removesuffix(b"\n")), total - 1):
            return end + 1
    return begin + 1


def _timed(reads: list[Any], written: list[bytes]) -> list[Step]:
    """The lines of output, each with the time of the read that completed it."""
    steps: list[Step] = []
    times = iter(reads)
    seconds, available, needed = 0.0, 0, 0
    for data in written:
        needed += len(data)
        while available < needed:
            read = next(times, None)
            if read is None:
                break
            seconds, available = read[0], available + read[1]
        steps.append(Step(seconds, False, data))
    return steps


def _likely_order(outputs: list[Step], sent: list[bytes]) -> list[Step]:
    """Both streams in an order that they may have had, where no order was recorded.

    A request goes before its answer, a response after what it responds to, a prompt after the answers to requests that
    were sent before it, the second prompt after the first result.
    """
    answers: dict[str, int] = {}
    requests: dict[str, int] = {}
    results: list[int] = []
    for index, step in enumerate(outputs):
        line = Line(step.data)
        if line.kind == "response":
            answers.setdefault(line.identity, index)
        elif line.kind == "request":
            requests[line.identity] = index + 1
        elif line.kind == "result":
            results.append(index + 1)
    lines = [Line(data) for data in sent]
    earliest = [0] * len(lines)
    latest = [len(outputs)] * len(lines)
    prompts = answered = 0
    for index, line in enumerate(lines):
        if line.kind == "request" and line.identity in answers:
            earliest[index] = latest[index] = answers[line.identity]
            answered = max(answered, answers[line.identity] + 1)
        elif line.kind == "response" and line.identity in requests:
            earliest[index] = latest[index] = requests[line.identity]
        elif line.kind == "user":
            after_result = 0 if prompts == 0 else [*results, len(outputs)][min(prompts - 1, len(results))]
            earliest[index] = max(after_result, answered)
            prompts += 1
    for index in range(len(lines) - 2, -1, -1):  # nothing goes later than what was sent after it
        latest[index] = min(latest[index], latest[index + 1])
    steps: list[Step] = []
    at = 0
    for index, data in enumerate(sent):
        end = max(at, min(earliest[index], latest[index]))
        steps.extend(outputs[at:end])
        steps.append(Step(steps[-1].seconds if steps else 0.0, True, data))
        at = end
    return steps + outputs[at:]


def flags_of(files: Mapping[str, bytes]) -> list[str]:
    """The arguments that the CLI was started with, without its own name; none if that was not recorded."""
    return [str(flag) for flag in _list(_json_file(files, "cmd.json").get("argv"))[1:]]


def exit_code_of(files: Mapping[str, bytes]) -> int:
    """The recorded exit code, as :mod:`subprocess` has it; 0 if there is none."""
    code = _json_file(files, "exit.json").get("rc")
    return code if isinstance(code, int) else 0


def _json_file(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        return _object(json.loads(files.get(name, b"{}")))
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error


# --- what a line means ------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


#: The CLI's idea of JSON, without the constants that Python would take (NaN, Infinity).
_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


class Line:
    """What the player must know of a line, in either direction.

    kind: ``user``, ``result``, ``request``, ``response``, ``garbage`` (no JSON), or empty for anything else.
    subtype: of a request.
    identity: of a request its own id, of a response the id of what it answers.
    """

    __slots__ = ("identity", "kind", "subtype")

    def __init__(self, data: bytes) -> None:
        self.kind = self.subtype = self.identity = ""
        try:
            message = _object(_JSON.decode(data.decode("utf-8", "replace").removeprefix("\ufeff")))
        except RecursionError:
            return
        except ValueError:
            self.kind = "garbage" if data.strip() else ""
            return
        kind = message.get("type")
        if kind in ("user", "result"):
            self.kind = kind
        elif kind == "control_request" and isinstance(message.get("request_id"), str):
            self.kind, self.identity = "request", message["request_id"]
            self.subtype = str(_object(message.get("request")).get("subtype"))
        elif kind == "control_response":
            identity = _object(message.get("response")).get("request_id")
            if isinstance(identity, str):
                self.kind, self.identity = "response", identity


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _with_id(data: bytes, recorded: str, live: str) -> bytes:
    """An answer with another id in it, and not another byte changed."""
    return data.replace(json.dumps(recorded).encode("ascii"), json.dumps(live).encode("ascii"), 1)


def speaks_stream_json(flags: list[str]) -> bool:
    """Whether flags make the CLI take its input as lines of JSON, until its standard input ends."""
    return "--input-format=stream-json" in flags or ("--input-format", "stream-json") in itertools.pairwise(flags)


# --- the input of a live host -----------------------------------------------------------------------------------------


class Expected:
    """A recorded line of the host, and what became of it: ``waiting``, ``here``, or ``skipped``."""

    __slots__ = ("identity", "kind", "live_identity", "state", "subtype")

    def __init__(self, line: Line) -> None:
        self.kind = line.kind
        self.subtype = line.subtype
        self.identity = line.identity
        self.live_identity = line.identity
        self.state = "waiting"


class Host:
    """Reads what a live host sends, all the time, and finds for each line the recorded one that it stands for.

    Prompts and requests go by their order, responses by their ids (the player's requests have the recorded ids). Where
    the live host differs from the recorded one:

    * a prompt where a request was recorded: the request is not waited for any more, nor is its answer played;
    * a request where another line was recorded: ``answer`` is called, and one of its subtype that was recorded later
      is not waited for any more;
    * a line that is not JSON: ``refuse`` is called, unless there was one in the recording;
    * more prompts or responses than recorded, and what the CLI ignores (``keep_alive``), are dropped.
    """

    def __init__(
        self, expected: list[Expected], answer: Callable[[Line], None], refuse: Callable[[bytes], None]
    ) -> None:
        self.ended = False
        self.closed = False  # the same, but known to the thread that reads before all lines have been looked at
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._ordered = [each for each in expected if each.kind != "response"]
        self._responses = {each.identity: each for each in expected if each.kind == "response"}
        self._answer = answer
        self._refuse = refuse

    def start(self) -> None:
        """Begin to read, in a thread: a host must be able to send while the player is held up by a full pipe."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        carry: list[bytes] = []
        while True:
            try:
                data = os.read(STDIN, BLOCK_BYTES)
            except OSError:  # there is no standard input
                data = b""
            if not data:
                break
            *lines, rest = data.split(b"\n")
            for line in lines:
                carry.append(line)
                self._lines.put(b"".join(carry))
                carry.clear()
            carry.append(rest)
        self.closed = True
        self._lines.put(b"".join(carry))  # the CLI accepts a last line without its line feed
        self._lines.put(None)

    def look(self) -> None:
        """Take what has come, without waiting."""
        while not self._lines.empty():
            self._take(self._lines.get())

    def wait(self, seconds: float | None = None) -> bool:
        """Take one line, and wait for it: for so many seconds, or until the input ends. Whether there was one."""
        if self.ended:
            time.sleep(seconds or 0.0)
            return False
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            return False
        self._take(line)
        return True

    def wait_for(self, expected: Expected) -> None:
        """Wait for what stands for a recorded line, or for the end of the input."""
        while expected.state == "waiting" and self.wait():
            pass

    def _take(self, data: bytes | None) -> None:
        if data is None:
            self.ended = True
            return
        line = Line(data)
        if line.kind == "response":
            expected = self._responses.get(line.identity)
            if expected is not None:
                expected.state = "here"
        elif line.kind == "request":
            self._take_request(line)
        elif line.kind in ("user", "garbage"):
            self._take_prompt(line, data)

    def _take_prompt(self, line: Line, data: bytes) -> None:
        index = next((index for index, each in enumerate(self._ordered) if each.kind == line.kind), None)
        if index is None:
            if line.kind == "garbage":
                self._refuse(data)
            return
        for passed in self._ordered[:index]:
            passed.state = "skipped"
        self._ordered[index].state = "here"
        del self._ordered[: index + 1]

    def _take_request(self, line: Line) -> None:
        same = (
            index for index, each in enumerate(self._ordered) if (each.kind, each.subtype) == ("request", line.subtype)
        )
        index = next(same, None)
        if index == 0:
            self._ordered[0].live_identity = line.identity
            self._ordered[0].state = "here"
        else:
            self._answer(line)
            if index is not None:
                self._ordered[index].state = "skipped"
        if index is not None:
            del self._ordered[index]


# --- the output -------------------------------------------------------------------------------------------------------


class Output:
    """Writes to standard output, in the pieces that were asked for; calls ``gone`` when nobody reads any more."""

    def __init__(self, writes: str, gone: Callable[[], NoReturn]) -> None:
        self._piece_bytes = {"lines": sys.maxsize, "blocks": BLOCK_BYTES, "bytes": 1}[writes]
        self._held = bytearray() if writes == "blocks" else None
        self._gone = gone
        self.patience: float | None = None

    def write(self, data: bytes) -> None:
        """Write a line, or hold it until there is a block of them."""
        if self._held is None:
            self._write(data)
            return
        self._held += data
        whole = len(self._held) - len(self._held) % BLOCK_BYTES
        if whole:
            self._write(bytes(self._held[:whole]))
            del self._held[:whole]

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            self._write(bytes(self._held))
            self._held.clear()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                if self.patience is not None:
                    signal.setitimer(signal.ITIMER_REAL, self.patience, self.patience)
                view = view[os.write(STDOUT, view[: self._piece_bytes]) :]
                if self.patience is not None:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except BlockingIOError:  # somebody who has the same pipe has made it non-blocking
                import select

                select.select([], [STDOUT], [])
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    write_all(STDERR, f"Error: the output cannot be written: {error.strerror}\n".encode())
                    os._exit(2)
                self._gone()  # the reader has closed it, or there never was one


def write_all(fd: int, data: bytes) -> None:
    """Write to a descriptor, whoever reads; nothing happens if nobody does."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:
        pass


# --- the player -------------------------------------------------------------------------------------------------------


class Player:
    """Plays a recording to a live host, and never returns.

    Args:
        files: of the recording.
        settings: what ``replay`` makes of its arguments.
        flags: what the host passes to the CLI. They decide one thing: whether it speaks stream-json on standard input.
            Without any, it does what the recorded one did.
    """

    def __init__(self, files: Mapping[str, bytes], settings: dict[str, Any], flags: list[str]) -> None:
        self._settings = settings
        self._steps = steps_of(files)
        self._exit_code = exit_code_of(files)
        self._stderr = files.get("stderr.txt", b"")
        self._reads_lines = speaks_stream_json(flags or flags_of(files) or _flags_by_files(files))
        self._waits_for_end = self._reads_lines and settings["wait"]
        self._expected: dict[int, Expected] = {}
        if settings["wait"] and (self._reads_lines or not flags):
            self._expect()
        self._requests = {each.identity: each for each in self._expected.values() if each.kind == "request"}
        self._host = Host(list(self._expected.values()), self._answer, self._refuse)
        self._output = Output(settings["writes"], lambda: self._exit(self._exit_code))
        self._speed: float | None = settings["speed"]
        self._began = time.monotonic()
        self._played_bytes = 0
        events: list[list[Any]] = settings["events"]
        self._events = sorted(events, key=lambda event: event[0])
        if "silence" in settings:
            self._steps.clear()
            self._events.clear()

    def _expect(self) -> None:
        """Find the recorded lines of the host that are to be waited for."""
        if self._reads_lines and not any(step.is_input for step in self._steps):
            # The recorded host gave its prompt as an argument; the live one sends it.
            self._steps.insert(0, Step(0.0, True, b'{"type":"user"}'))
        asked: set[str] = set()
        for index, step in enumerate(self._steps):
            line = Line(step.data) if step.is_input or b"control_request" in step.data else None
            if line is None:
                continue
            if not step.is_input:
                if line.kind == "request":
                    asked.add(line.identity)
            elif line.kind in ("user", "request"):
                self._expected[index] = Expected(line)
            elif line.kind == "response" and line.identity in asked:
                asked.remove(line.identity)
                self._expected[index] = Expected(line)
            elif line.kind == "garbage" and self._exit_code:
                # It ended the CLI, which did not wait for the end of its input then.
                self._expected[index] = Expected(line)
                self._waits_for_end = False
                return

    def play(self) -> NoReturn:
        """Play it all, and exit."""
        settings = self._settings
        ignores_term = "ignore_term" in settings
        signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores_term else _exit_by_signal)
        signal.signal(signal.SIGINT, _exit_by_signal)
        if "hold_stdout" in settings:
            _hold_stdout(settings["hold_stdout"])
        if "flood_stderr" in settings:
            write_all(STDERR, _repeated(b"This line is one of many.\n", settings["flood_stderr"]))
        if "exit_at_once" in settings:
            self._exit(settings["exit_at_once"])
        for line in io.BytesIO(_keep_alives(settings.get("write_first", 0))):
            self._output.write(line)
        self._output.flush()
        self._host.start()
        if "give_up" in settings:
            signal.signal(signal.SIGALRM, self._give_up)
            self._output.patience = settings["give_up"]
        for index, step in enumerate(self._steps):
            if not step.is_input:
                self._keep_time(step.seconds)
                self._host.look()
                self._play(step.data)
            elif index in self._expected:
                self._output.flush()
                self._host.wait_for(self._expected[index])
                if self._speed is not None:
                    self._began = time.monotonic() - step.seconds / self._speed
        while self._events:
            self._happen(self._events.pop(0))
        self._finish()

    def _keep_time(self, seconds: float) -> None:
        if self._speed is None:
            return
        due = self._began + seconds / self._speed
        while (left := due - time.monotonic()) > 0:
            self._output.flush()
            self._host.wait(left)

    def _play(self, data: bytes) -> None:
        begin = self._played_bytes
        self._played_bytes += len(data)
        live = self._live(data)
        while self._events and self._events[0][0] < self._played_bytes:
            event = self._events.pop(0)
            # An answer with a longer or shorter id, or one that is not played, is not as long as the recorded one.
            at = max(event[0] - begin, 0)
            if live[:at]:
                self._output.write(live[:at])
            begin, live = begin + at, live[at:]
            self._happen(event)
        if live:
            self._output.write(live)
        # What is to happen behind a byte does not wait for the input that may come before the next one.
        while self._events and self._events[0][0] == self._played_bytes and self._events[0][1] in BEHIND_A_BYTE:
            self._happen(self._events.pop(0))

    def _live(self, data: bytes) -> bytes:
        """A line of output as the live host is to see it: with the id of its own request, none if it made none."""
        if not self._requests or b"request_id" not in data:
            return data
        try:
            message = _object(json.loads(data))
        except (ValueError, RecursionError):  # garbage, or cut
            return data
        identity = _object(message.get("response")).get("request_id") or message.get("request_id")
        request = self._requests.get(str(identity))
        if request is None or message.get("type") == "control_request":
            return data
        if request.state == "skipped":
            return b""
        return _with_id(data, request.identity, request.live_identity)

    def _answer(self, line: Line) -> None:
        """Answer a request that was not recorded at this place: as it was answered elsewhere, or with a success."""
        if "silence" in self._settings:
            return
        for request in self._recorded_requests(line.subtype):
            for step in self._steps:
                if not step.is_input and b"control_response" in step.data and Line(step.data).identity == request:
                    self._output.write(_with_id(step.data, request, line.identity))
                    self._output.flush()
                    return
        payload = EMPTY_INITIALIZE if line.subtype == "initialize" else {}
        response = {"subtype": "success", "request_id": line.identity, "response": payload}
        answer = {"type": "control_response", "response": response}
        self._output.write(json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n")
        self._output.flush()

    def _refuse(self, data: bytes) -> None:
        """End as the CLI does when a line of its input is not JSON."""
        if self._reads_lines:
            text = f"Error parsing streaming input line (type=unknown, {len(data)} chars): SyntaxError\n"
            write_all(STDERR, text.encode("ascii"))
            os._exit(1)

    def _recorded_requests(self, subtype: str) -> Iterator[str]:
        for step in self._steps:
            if step.is_input:
                line = Line(step.data)
                if line.kind == "request" and line.subtype == subtype:
                    yield line.identity

    def _happen(self, event: list[Any]) -> None:
        _, kind, argument = event
        if kind == "write":
            self._output.write(argument.encode("latin-1"))
            return
        self._output.flush()
        if kind in ("stall", "stall_before"):
            time.sleep(argument)
        elif kind == "kill":
            os.kill(os.getpid(), KILL)
        elif kind == "cut":
            os._exit(argument)

    def _give_up(self, *_: object) -> None:
        if self._host.closed or not self._waits_for_end:
            os._exit(self._exit_code)

    def _finish(self) -> NoReturn:
        self._output.flush()
        settings = self._settings
        if "close_stdout" in settings:
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
            time.sleep(settings["close_stdout"])
        elif self._waits_for_end:
            while self._host.wait():
                pass
        elif "silence" in settings:
            time.sleep(settings["silence"])
        if "ignore_term" in settings:
            time.sleep(settings["ignore_term"])
        self._exit(self._exit_code)

    def _exit(self, code: int) -> NoReturn:
        write_all(STDERR, self._stderr)
        if code < 0:
            if code != -KILL:  # which nothing can handle
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


def _exit_by_signal(number: int, frame: object) -> None:
    """Exit with what a shell reports for a process that a signal ended; the CLI catches SIGTERM and exits so."""
    os._exit(128 + number)


def _flags_by_files(files: Mapping[str, bytes]) -> list[str]:
    return ["--input-format=stream-json"] if "stdin.ndjson" in files else []


def _hold_stdout(seconds: float) -> None:
    """Leave a child that has standard output open until so many seconds after this process has ended, however."""
    alive, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        os.close(STDIN)
        os.close(STDERR)
        os.read(alive, 1)
        time.sleep(seconds)
        os._exit(0)
    os.close(alive)


def _repeated(line: bytes, size: int) -> bytes:
    return (line * (size // len(line) + 1))[:size]


def _keep_alives(size: int) -> bytes:
    """So many bytes of lines that every host ignores."""
    line = b'{"type":"keep_alive"}\n'
    count, rest = divmod(size, len(line))
    return line * (count - 1) + line[:-2] + b" " * rest + line[-2:] if count else b""


def main(argv: list[str]) -> NoReturn:
    """Play what the arguments say."""
    _, path, settings, *flags = argv
    try:
        files = read_files(path)
        if flags in (["-v"], ["--version"]):
            write_all(STDOUT, _version(files) + b" (Claude Code)\n")
            os._exit(0)
        player = Player(files, json.loads(settings), flags)
    except (OSError, ValueError) as error:
        write_all(STDERR, f"claude-wire replay: {error}\n".encode())
        os._exit(2)
    player.play()


def _version(files: Mapping[str, bytes]) -> bytes:
    _, found, rest = files["stdout.ndjson"].partition(b'"claude_code_version":"')
    return rest.partition(b'"')[0] if found else VERSION
