"""The byte budget: the limit for all bytes that the drains of a process may queue in memory."""

from __future__ import annotations

import os
import threading

from claude_wire.native.library import checked, ffi, lib
from claude_wire.support.arguments import require_int

#: The default budget.
DEFAULT_BYTE_BUDGET = 256 * 1024 * 1024

_limit = DEFAULT_BYTE_BUDGET

#: Bytes that :func:`count_kept` has counted, on systems without native drains.
_kept = 0
_lock = threading.Lock()


def _in_child() -> None:
    # A thread of the parent process may have held the lock during the fork, so the child needs a new one.
    global _kept, _lock
    _kept, _lock = 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def byte_budget() -> int:
    """Return how many bytes the drains of this process together may queue in memory."""
    return _limit


def set_byte_budget(limit: int) -> None:
    """Set :func:`byte_budget`. Bytes that are queued already stay, even above the limit. A forked child inherits it.

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
    """Count bytes that were read ahead and are kept for the reader. A negative number takes bytes away."""
    global _kept
    status = lib.cw_budget_count(count)
    if status == lib.CW_ERROR_UNSUPPORTED:
        with _lock:
            _kept += count
    else:
        checked(status)


def queued_bytes() -> int:
    """Return how many bytes count in the budget now."""
    limit, queued = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    status = lib.cw_budget(limit, queued)
    if status == lib.CW_ERROR_UNSUPPORTED:
        return _kept
    checked(status)
    return int(queued[0])


def has_room() -> bool:
    return queued_bytes() < _limit
