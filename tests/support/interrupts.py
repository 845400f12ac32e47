"""Raise KeyboardInterrupt at a chosen line of the code under test."""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Callable
from typing import Any

#: The modules that handle the bytes passed to ``feed``.
MODULES = (
    "codec/decoder.py",
    "codec/dict_lines.py",
    "codec/lines.py",
    "codec/objects.py",
    "codec/typed_lines.py",
    "native/line_buffer.py",
    "native/line_splitter.py",
    "native/block.py",
)
#: CPython handles interrupts after calls and jumps, so never right before one of these lines.
UNINTERRUPTED = ("try:", "return", "self._busy = False")
POP_EXCEPT = dis.opmap["POP_EXCEPT"]


def interruptible(frame: Any) -> bool:
    """Return whether an interrupt may occur before the line that the frame is about to run.

    The last line of an except block may begin with the instruction that ends the block, as ``pass`` does. CPython never
    raises an interrupt before this instruction. If a trace function raises there, CPython 3.11 and later skip the
    instruction, and ``sys.exc_info()`` keeps returning the exception that the block handled.
    """
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return text not in UNINTERRUPTED and code.co_code[frame.f_lasti] != POP_EXCEPT


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Call with a ``KeyboardInterrupt`` at the ``at``-th line of codec code. Return whether it was raised."""
    passed = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal passed
        if not frame.f_code.co_filename.endswith(MODULES):
            return None
        if event == "line" and interruptible(frame):
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


def at_each_line(interrupted_at: Callable[[int], bool], *, some: bool = True) -> None:
    """Try an interrupt at each line: the first 300, then fewer and fewer.

    ``some``: whether any line can be interrupted.
    """
    at = 1
    while interrupted_at(at):
        at += 1 if at < 300 else 1 + at // 3
    assert (at > 1) == some
