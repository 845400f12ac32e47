"""The options and counts of all drains: what a drain does when its memory is full, and what it has read."""

from __future__ import annotations

import dataclasses
import os
import sys
from errno import EBADF
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict, get_args

from claude_wire.limits import DEFAULT_SPILL_BYTES
from claude_wire.support.arguments import require_int, require_one_of

if TYPE_CHECKING:
    from typing import TypeAlias

#: One read returns at most this many bytes, which is what a pipe of Linux holds.
CHUNK_BYTES = 64 * 1024

#: What happens when a drain has no room left in the budget:
#:
#: * ``"pause"``: it takes no more, so that the writer has to wait, until half of the budget is free.
#: * ``"spill"``: it writes to a temporary file that has no name and mode 0600; above ``spill_limit``, or if the disk is
#:   full, it pauses until the file is read.
#: * ``"error"``: as ``"pause"``, and the next ``read()`` raises :class:`ByteBudgetError`.
#:
#: A reader that reads can always do so.
#:
#: Drains are for Linux. Elsewhere nothing is read while nobody asks for it, so the writer waits as soon as the pipe is
#: full: that is ``"pause"`` without a budget, and the other two are refused.
Overflow: TypeAlias = Literal["pause", "spill", "error"]


class OverflowArguments(TypedDict, total=False):
    """The arguments of public functions that become :class:`DrainOptions`."""

    overflow: Overflow
    spill_limit: int


@dataclasses.dataclass(frozen=True)
class DrainOptions:
    """The options of a drain for unread bytes.

    Raises:
        TypeError, ValueError: an option is out of range, or ``keep_last`` is given with an ``overflow``.
        NotImplementedError: an ``overflow`` other than ``"pause"`` elsewhere than on Linux.
    """

    #: What happens when there is no room.
    overflow: Overflow = "pause"
    #: The size limit of the file for ``overflow="spill"``, which is made in ``tempfile.gettempdir()``.
    spill_limit: int = DEFAULT_SPILL_BYTES
    #: Keep only this many of the last bytes: there is no queue, and nothing to read. These bytes do not count in the
    #: budget.
    keep_last: int | None = None

    def __post_init__(self) -> None:
        require_one_of("overflow", self.overflow, get_args(Overflow))
        require_int("spill_limit", self.spill_limit, 1)
        if self.keep_last is not None:
            require_int("keep_last", self.keep_last, 1)
            if self.overflow != "pause":
                raise ValueError("a drain with keep_last has no queue that could overflow")
        if self.overflow != "pause" and sys.platform != "linux":
            raise NotImplementedError(
                f'overflow="{self.overflow}" is for Linux: here nothing is read ahead, and the writer waits as with '
                'overflow="pause"'
            )


#: The default options of a stream.
DEFAULTS = DrainOptions()


class DrainStats(NamedTuple):
    """Counts of a drain since it was made, and its present memory."""

    #: Bytes that ``read()`` has returned.
    bytes_read: int
    #: Bytes that were taken for the reader because it was busy, or because there is no reader.
    bytes_rescued: int
    #: How often this began, from an empty queue.
    rescues: int
    #: How often the drain was paused, because the budget, the limit of its file, or the memory was exhausted.
    pauses: int
    #: Bytes that were written to a file.
    bytes_spilled: int
    #: How often no file could be made, or a write to it was incomplete.
    spill_errors: int
    #: Bytes that were dropped, after ``discard()``, or because only the last ones are kept.
    bytes_discarded: int
    #: Bytes in memory now.
    bytes_queued: int
    #: Bytes in the file now.
    bytes_in_file: int
    #: True while the drain is paused.
    paused: bool


def warn_of_pause() -> None:
    import logging  # takes longer to import than this whole module

    logging.getLogger("claude_wire").warning(
        "a stream was paused: its reader was away, and the byte budget or the memory is exhausted; its writer waited"
    )


def check_fd(fd: int) -> None:
    if not isinstance(fd, int):
        raise TypeError(f"fd must be an int, not {type(fd).__name__}")
    if not 0 <= fd < 2**31:
        raise OSError(EBADF, os.strerror(EBADF))
