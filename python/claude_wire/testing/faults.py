"""Faults of a child process, which can be ordered: each class is a fault for :class:`~claude_wire.testing.Replay`.

Positions are bytes and lines of the recording's standard output, so that they can be found in ``recording.stdout``.
What the player adds (answers to requests that were not recorded, lines of :class:`GarbageLine`) is not counted.

A fault after a byte happens as soon as that byte is written, even if the next byte waits for input. A fault before a
line, or at byte 0, happens when that line is due: behind the input that the line waits for. Several faults at one place
happen in the order in which they were given. One that is given behind a fault that waits for the line waits, too.
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
    """Refuses at once a value that the stand-in would fail with."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("seconds", "size") and not 0 <= value < math.inf:
                raise ValueError(f"{type(self).__name__} takes {field.name} from 0 up")
            if field.name == "exit_code" and not 0 <= value <= 255:
                raise ValueError(f"{type(self).__name__} takes an exit_code from 0 to 255")


@dataclass(frozen=True)
class CutOutput(_Checked):
    """Write so many bytes of the output, then exit, in the middle of a line maybe, without a word."""

    at_byte: int
    exit_code: int = 0


@dataclass(frozen=True)
class Kill:
    """Write so many bytes of the output, then die by SIGKILL."""

    at_byte: int


@dataclass(frozen=True)
class Stall(_Checked):
    """Stand still for so many seconds, once, after ``at_byte`` bytes or before line ``before_line`` (1 is the first).

    Nothing is written or answered meanwhile. One of the two positions must be given.
    """

    seconds: float
    at_byte: int | None = None
    before_line: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.at_byte is None) == (self.before_line is None):
            raise ValueError("Stall takes one of at_byte and before_line")


@dataclass(frozen=True)
class GarbageLine:
    """Write a line that is not JSON before line ``before_line`` (1 is the first; one past the last is the end).

    ``data`` is the line without its line feed, any bytes.
    """

    before_line: int
    data: bytes = b"This line is not JSON."


@dataclass(frozen=True)
class FloodStderr(_Checked):
    """Write so many bytes of text to the standard error before anything else: all of them, however long that takes."""

    size: int


@dataclass(frozen=True)
class IgnoreTerm(_Checked):
    """Ignore SIGTERM, and live on when all is played and the input has ended.

    For so many seconds, so that a host that fails to kill it does not have it forever.
    """

    seconds: float = 60.0


@dataclass(frozen=True)
class HoldStdout(_Checked):
    """Leave a child behind that has the standard output open for so many seconds after the stand-in has ended."""

    seconds: float


@dataclass(frozen=True)
class CloseStdout(_Checked):
    """Close the standard output when all is played, and live on for so many seconds, whatever the input does."""

    seconds: float


@dataclass(frozen=True)
class ExitAtOnce(_Checked):
    """Exit without reading or writing anything but the recorded standard error."""

    exit_code: int = 1


@dataclass(frozen=True)
class WriteFirst:
    """Write so many bytes of ``keep_alive`` lines before any input is read; 22 is the least, one such line."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 22:
            raise ValueError("WriteFirst takes 22 bytes or more")


@dataclass(frozen=True)
class Silence(_Checked):
    """Write nothing, ever. It ends with its input, or after so many seconds if the prompt was an argument."""

    seconds: float = 60.0


@dataclass(frozen=True)
class GiveUp(_Checked):
    """Exit with the recorded code when nobody has read for so many seconds, and leave the rest unwritten.

    The CLI does so 2 seconds after it has finished, if its prompt was an argument or its input has ended. While there
    may be more input, it waits; so does this.
    """

    seconds: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seconds == 0:  # which would switch the timer off
            raise ValueError("GiveUp takes more than 0 seconds")


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
