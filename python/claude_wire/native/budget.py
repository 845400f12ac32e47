"""The byte budget: the maximum number of bytes that a process's drains together may keep in memory."""

from __future__ import annotations

import os
import threading

from claude_wire.native.library import checked, ffi, lib
from claude_wire.support.arguments import require_int

#: The default budget.
DEFAULT_BYTE_BUDGET = 256 * 1024 * 1024

_limit = DEFAULT_BYTE_BUDGET

#: The number of bytes that :func:`count_kept` counted, on systems without native drains.
_kept = 0
_lock = threading.Lock()


def _in_child() -> None:
    # A thread of the parent process may have held the lock during the fork, so the child needs a new one.
    global _kept, _lock
    _kept, _lock = 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def byte_budget() -> int:
    """Return how many bytes this process's drains together may keep in memory."""
    return _limit


def set_byte_budget(limit: int) -> None:
    """Set the limit that :func:`byte_budget` returns. A forked child inherits it.

    Bytes that are already in memory stay there, even above the new limit.

    Raises:
        TypeError: ``limit`` is not an int.
        ValueError: ``limit`` is not at least 1.
    """
    global _limit
    require_int("limit", limit, 1)
    status = lib.cw_budget_set(min(limit, 2**64 - 1))
    if status != lib.CW_ERROR_UNSUPPORTED:
        checked(status)
    _limit = limit


def count_kept(count: int) -> None:
    """Add ``count`` bytes read ahead to the budget's count. A negative number removes bytes."""
    global _kept
    status = lib.cw_budget_count(count)
    if status == lib.CW_ERROR_UNSUPPORTED:
        with _lock:
            _kept += count
    else:
        checked(status)


def queued_bytes() -> int:
    """Return the budget's count: how many bytes are in memory now."""
    limit, queued = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    status = lib.cw_budget(limit, queued)
    if status == lib.CW_ERROR_UNSUPPORTED:
        return _kept
    checked(status)
    return int(queued[0])


def has_room() -> bool:
    """True if the count is below the limit."""
    return queued_bytes() < _limit
