"""Put the lines of a recording in order, each with its time."""

from __future__ import annotations

import io
import json

from .lines import Line, list_in

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Step:
    """A recorded line: seconds since the start of the CLI, True if the host wrote the line, and its bytes."""

    __slots__ = ("data", "is_input", "seconds")

    def __init__(self, seconds: float, is_input: bool, data: bytes) -> None:
        self.seconds: float = seconds
        self.is_input: bool = is_input
        self.data: bytes = data


def steps_of(files: Mapping[str, bytes]) -> list[Step]:
    """Return the input and output lines in the order in which they were written. Each keeps its line feed.

    Raises:
        ValueError: order.jsonl or stdout.reads.jsonl is damaged.
    """
    written = io.BytesIO(files.get("stdout.ndjson", b"")).readlines()
    sent = io.BytesIO(files.get("stdin.ndjson", b"")).readlines()
    if "order.jsonl" in files:
        return _recorded_order(_arrays(files, "order.jsonl", (_NUMBER, str, int)), written, sent)
    outputs = _timed(reads_of(files), written)
    return _likely_order(outputs, sent) if sent else outputs


def reads_of(files: Mapping[str, bytes]) -> list[Any]:
    """Return ``[seconds, number of bytes]`` for each recorded read of the CLI's standard output.

    Raises:
        ValueError: stdout.reads.jsonl is damaged.
    """
    return _arrays(files, "stdout.reads.jsonl", (_NUMBER, int))


_NUMBER = (int, float)


def _arrays(files: Mapping[str, bytes], name: str, types: tuple[Any, ...]) -> list[Any]:
    rows = files.get(name, b"").split(b"\n")
    if not rows[-1].endswith(b"]"):
        rows.pop()  # empty, or incomplete because the recorder was killed or the disk was full
    try:
        arrays: list[Any] = json.loads(b"[%b]" % b",".join(rows).rstrip(b","))
    except ValueError as error:
        raise ValueError(f"{name} must have one JSON array in each line: {error}") from error
    for array in map(list_in, arrays):
        if len(array) != len(types) or not all(map(isinstance, array, types)):
            raise ValueError(f"{name} is not one JSON array of {len(types)} a line")
    return arrays


def _recorded_order(order: list[Any], written: list[bytes], sent: list[bytes]) -> list[Step]:
    steps: list[Step] = []
    outputs = inputs = 0
    seconds = 0.0
    for seconds, direction, size in order:
        if direction == "out":
            end = _end_of_read(written, outputs, size)
            steps.extend(Step(seconds, False, data) for data in written[outputs:end])
            outputs = end
        elif direction == "in":
            # An entry is one write of the host: usually one line, sometimes several. A blank line may have no entry.
            end = _end_of_write(sent, inputs, size)
            steps.extend(Step(seconds, True, data) for data in sent[inputs:end])
            inputs = end
    steps.extend(Step(seconds, False, data) for data in written[outputs:])
    steps.extend(Step(seconds, True, data) for data in sent[inputs:])
    return steps


def _end_of_read(written: list[bytes], begin: int, size: int) -> int:
    """Return the index after the last line of a read that has ``size`` bytes without its last line feed."""
    total, end = 0, begin
    while end < len(written) and total <= size:
        total += len(written[end])
        end += 1
    return end if total - 1 == size else begin + 1


def _end_of_write(sent: list[bytes], begin: int, size: int) -> int:
    total = 0
    for end in range(begin, len(sent)):
        total += len(sent[end])
        if size in (len(sent[end].removesuffix(b"\n")), total - 1):
            return end + 1
    return begin + 1


def _timed(reads: list[Any], written: list[bytes]) -> list[Step]:
    """Return the output lines, each with the time of the read that completed it."""
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
    """Put the lines of both streams into a likely order, for a recording without ``order.jsonl``.

    A request comes before its answer, a response after its request, a prompt after the answers to earlier requests, and
    the second prompt after the first result.
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
    for index in range(len(lines) - 2, -1, -1):  # a line must not be later than a line that was sent after it
        latest[index] = min(latest[index], latest[index + 1])
    steps: list[Step] = []
    at = 0
    for index, data in enumerate(sent):
        end = max(at, min(earliest[index], latest[index]))
        steps.extend(outputs[at:end])
        steps.append(Step(steps[-1].seconds if steps else 0.0, True, data))
        at = end
    return steps + outputs[at:]
