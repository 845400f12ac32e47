"""Interrupts that come at a chosen line of the code under test."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

MODULES = tuple(f"{name}.py" for name in ("codec", "framing", "_decoding", "_objects"))
#: Interrupts are dealt with after calls and jumps: never right before one of these lines.
UNINTERRUPTED = ("try:", "return", "self._busy = False")


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Makes the call with a ``KeyboardInterrupt`` at the ``at``-th line of code of the codec. Whether there was one."""
    passed = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.endswith(MODULES):
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event == "line" and text not in UNINTERRUPTED:
            passed += 1
            if passed == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return passed == at


def at_each_line(interrupted_at: Callable[[int], bool]) -> None:
    """Makes a trial for each line of code, of which there are some: the first 300, then fewer and fewer."""
    at = 1
    while interrupted_at(at):
        at += 1 if at < 300 else 1 + at // 3
    assert at > 5
