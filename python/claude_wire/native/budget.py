"""The byte budget: the limit for all bytes that the drains of a process may queue in memory."""

from __future__ import annotations

import os
import threading

from claude_wire.native.library import checked, ffi, lib
from claude_wire.support.arguments import require_int

#: The default budget.
DEFAULT_BYTE_BUDGET = 256 * 1024 * 1024


class Budget:
    """The state that all :class:`ThreadDrain` objects of this process share."""

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.queued: int = 0


shared: Budget = Budget(DEFAULT_BYTE_BUDGET)

#: Guards the budget and every :class:`~claude_wire.native.drain_thread.ThreadDrain`. Notified when a paused drain may
#: go on.
changed: threading.Condition = threading.Condition()


def _in_child() -> None:
    # A thread of the parent process may have held the lock during the fork, so the child needs a new one.
    global shared, changed
    shared = Budget(shared.limit)
    changed = threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def byte_budget() -> int:
    """Return how many bytes the drains of this process together may queue in memory."""
    return shared.limit


def set_byte_budget(limit: int) -> None:
    """Set :func:`byte_budget`. Bytes that are queued already stay, even above the limit. A forked child inherits it.

    Raises:
        TypeError: ``limit`` is not an int.
        ValueError: ``limit`` is not at least 1.
    """
    require_int("limit", limit, 1)
    status = lib.cw_budget_set(min(limit, 2**64 - 1))
    if status != lib.CW_ERROR_UNSUPPORTED:
        checked(status)
    with changed:
        shared.limit = limit
        changed.notify_all()


def count_kept(count: int) -> None:
    """Count bytes that were read ahead and are kept for the reader. A negative number takes bytes away."""
    status = lib.cw_budget_count(count)
    if status == lib.CW_ERROR_UNSUPPORTED:
        with changed:
            shared.queued += count
            changed.notify_all()
    else:
        checked(status)


def has_room() -> bool:
    """Return True if the budget has room."""
    limit, queued = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    status = lib.cw_budget(limit, queued)
    if status == lib.CW_ERROR_UNSUPPORTED:
        return shared.queued < shared.limit
    checked(status)
    return bool(queued[0] < limit[0])
