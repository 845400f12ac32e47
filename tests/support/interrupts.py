"""Interrupts that come at a chosen line of the code under test."""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Callable
from typing import Any

#: The modules through which the bytes that are fed pass.
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
#: Interrupts are dealt with after calls and jumps: never right before one of these lines.
UNINTERRUPTED = ("try:", "return", "self._busy = False")
POP_EXCEPT = dis.opmap["POP_EXCEPT"]


def interruptible(frame: Any) -> bool:
    """Whether an interrupt may come before the line that the frame is about to run.

    The last line of an except block may begin with the instruction that ends the block, as ``pass`` does. Interrupts
    never come before this instruction. Where a trace function raises there, CPython 3.11 and later skip it, and
    ``sys.exc_info()`` goes on giving the exception that the block handled.
    """
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return text not in UNINTERRUPTED and code.co_code[frame.f_lasti] != POP_EXCEPT


def interrupted(call: Callable[[], object], at: int) -> bool:
    """Makes the call with a ``KeyboardInterrupt`` at the ``at``-th line of code of the codec. Whether there was one."""
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
    """Makes a trial for each line of code: the first 300, then fewer and fewer. There must be ``some``, or none."""
    at = 1
    while interrupted_at(at):
        at += 1 if at < 300 else 1 + at // 3
    assert (at > 1) == some
