"""The faults that :class:`~claude_wire.testing.Replay` can inject into its child process, a stand-in for the CLI.

Positions are bytes and lines of ``recording.stdout``. Lines that the player adds (answers to unrecorded requests,
:class:`GarbageLine`) are not counted.

A fault after a byte happens as soon as this byte is written, even if the next byte waits for input. A fault before a
line, or at byte 0, happens when the line is due, after the input that the line waits for. Several faults at the same
position happen in the given order: if the first fault waits for a line, the others also wait.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

__all__ = [
    "CloseStdout",
    "CutOutput",
    "ExitAtOnce",
    "Fault",
    "FloodStderr",
    "GarbageLine",
    "GiveUp",
    "HoldStdout",
    "IgnoreTerm",
    "Kill",
    "Silence",
    "Stall",
    "WriteFirst",
]


@dataclass(frozen=True)
class _Checked:
    """Validates a fault's values when the test creates the fault, and not later in the child process."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("seconds", "size") and not 0 <= value < math.inf:
                raise ValueError(f"{type(self).__name__} needs {field.name} of at least 0")
            if field.name == "exit_code" and not 0 <= value <= 255:
                raise ValueError(f"{type(self).__name__} needs an exit_code from 0 to 255")


@dataclass(frozen=True)
class CutOutput(_Checked):
    """Write ``at_byte`` bytes of the output, then exit without a message, even in the middle of a line."""

    at_byte: int
    exit_code: int = 0


@dataclass(frozen=True)
class Kill:
    """Write ``at_byte`` bytes of the output, then die by SIGKILL."""

    at_byte: int


@dataclass(frozen=True)
class Stall(_Checked):
    """Pause once for ``seconds``, after ``at_byte`` bytes or before line ``before_line`` (1 is the first).

    During the pause nothing is written or answered. Give exactly one of the two positions.
    """

    seconds: float
    at_byte: int | None = None
    before_line: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.at_byte is None) == (self.before_line is None):
            raise ValueError("Stall needs either at_byte or before_line")


@dataclass(frozen=True)
class GarbageLine:
    """Write a line that is not JSON before line ``before_line``: 1-based, or one past the last line to append it.

    ``data`` is the line without its line feed.
    """

    before_line: int
    data: bytes = b"This line is not JSON."


@dataclass(frozen=True)
class FloodStderr(_Checked):
    """Write ``size`` bytes of text to the standard error before the output, and wait until all are written."""

    size: int


@dataclass(frozen=True)
class IgnoreTerm(_Checked):
    """Ignore SIGTERM, and stay alive for ``seconds`` after writing the output and reading the whole input.

    The process exits after this time if the host does not kill it.
    """

    seconds: float = 60.0


@dataclass(frozen=True)
class HoldStdout(_Checked):
    """Leave a child process that keeps the standard output open for ``seconds`` after the stand-in exits."""

    seconds: float


@dataclass(frozen=True)
class CloseStdout(_Checked):
    """Write the whole output, close the standard output, and stay alive for ``seconds``, even if the input ends."""

    seconds: float


@dataclass(frozen=True)
class ExitAtOnce(_Checked):
    """Exit without reading input or writing output. Only the recorded standard error is written."""

    exit_code: int = 1


@dataclass(frozen=True)
class WriteFirst:
    """Write ``size`` bytes of ``keep_alive`` lines before reading any input. A line has at least 22 bytes."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 22:
            raise ValueError("WriteFirst needs at least 22 bytes")


@dataclass(frozen=True)
class Silence(_Checked):
    """Write nothing. The stand-in exits when its input ends, or after ``seconds`` if the prompt was an argument."""

    seconds: float = 60.0


@dataclass(frozen=True)
class GiveUp(_Checked):
    """Exit with the recorded code, without writing the rest, if the host does not read the output for ``seconds``.

    The CLI exits like this 2 seconds after it has finished, if its prompt was an argument or its input has ended. While
    the input is open, the CLI waits, and so does the stand-in.
    """

    seconds: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seconds == 0:  # setitimer(0) would switch the timer off
            raise ValueError("GiveUp needs more than 0 seconds")


Fault = (
    CloseStdout
    | CutOutput
    | ExitAtOnce
    | FloodStderr
    | GarbageLine
    | GiveUp
    | HoldStdout
    | IgnoreTerm
    | Kill
    | Silence
    | Stall
    | WriteFirst
)
