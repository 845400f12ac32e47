"""A drain's options (what it does when its memory is full), and its counts."""

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

#: One read returns at most this many bytes: the capacity of a pipe on Linux.
CHUNK_BYTES = 64 * 1024

#: What a drain does when the byte budget is used up:
#:
#: * ``"pause"``: it reads nothing more until half of the budget is free. When the pipe is full, the writer waits.
#: * ``"spill"``: it writes to a temporary file without a name (mode 0600). If the file reaches ``spill_limit``, or the
#:   disk is full, the drain pauses until the file is read.
#: * ``"error"``: it pauses, and the next ``read()`` raises :class:`ByteBudgetError`.
#:
#: ``read()`` still returns bytes when the budget is used up.
#:
#: Only Linux has drains. On other systems nothing reads ahead, and the writer waits when the pipe is full. This is
#: ``"pause"`` without a budget; the other two values are refused.
Overflow: TypeAlias = Literal["pause", "spill", "error"]


class OverflowArguments(TypedDict, total=False):
    """The keyword arguments from which public functions create :class:`DrainOptions`."""

    overflow: Overflow
    spill_limit: int


@dataclasses.dataclass(frozen=True)
class DrainOptions:
    """What a drain does with unread bytes.

    Raises:
        TypeError, ValueError: an option is out of range, or ``keep_last`` is combined with an ``overflow``.
        NotImplementedError: ``overflow`` is not ``"pause"``, and the system is not Linux.
    """

    #: What the drain does when the byte budget is used up.
    overflow: Overflow = "pause"
    #: For ``overflow="spill"``: the size limit of the file, in bytes. The file is in ``tempfile.gettempdir()``.
    spill_limit: int = DEFAULT_SPILL_BYTES
    #: Keep only this many of the last bytes, for :meth:`Drain.tail`; ``read()`` then returns nothing. These bytes do
    #: not count in the budget.
    keep_last: int | None = None

    def __post_init__(self) -> None:
        require_one_of("overflow", self.overflow, get_args(Overflow))
        require_int("spill_limit", self.spill_limit, 1)
        if self.keep_last is not None:
            require_int("keep_last", self.keep_last, 1)
            if self.overflow != "pause":
                raise ValueError("overflow cannot be combined with keep_last: such a drain has no queue")
        if self.overflow != "pause" and sys.platform != "linux":
            raise NotImplementedError(
                f'overflow="{self.overflow}" needs Linux: here nothing is read ahead, and the writer waits as with '
                'overflow="pause"'
            )


#: The default options of a stream.
DEFAULTS = DrainOptions()


class DrainStats(NamedTuple):
    """What a drain did since it was created, and what it has in memory now."""

    bytes_read: int
    """The number of bytes that ``read()`` returned."""
    bytes_rescued: int
    """The number of bytes that the rescuer thread read because the reader was busy or because there is no reader."""
    rescues: int
    """How many times the rescuer thread began to read while the queue was empty."""
    pauses: int
    """How many times the drain paused because the budget, its file's limit or the memory was used up."""
    bytes_spilled: int
    """The number of bytes written to a file."""
    spill_errors: int
    """How many times a file could not be created, or a write was incomplete."""
    bytes_discarded: int
    """The number of bytes dropped after ``discard()``, or because of ``keep_last``."""
    bytes_queued: int
    """The number of bytes in memory now."""
    bytes_in_file: int
    """The number of bytes in the file now."""
    paused: bool
    """True while the drain is paused."""


def warn_of_pause() -> None:
    import logging  # takes longer to import than this whole module

    logging.getLogger("claude_wire").warning(
        "a stream was paused because its reader was busy and the byte budget or the memory was exhausted"
    )


def check_fd(fd: int) -> None:
    if not isinstance(fd, int):
        raise TypeError(f"fd must be an int, not {type(fd).__name__}")
    if not 0 <= fd < 2**31:
        raise OSError(EBADF, os.strerror(EBADF))
