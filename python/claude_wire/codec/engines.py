"""The engine that decodes lines to messages: the native reader, or msgspec.

The native reader creates the same Structs as msgspec in less than half the time. It needs a plan for each class. When a
class first appears in a stream, msgspec decodes the line, the engine creates the class's plan, and the native reader
reads the line again. If the two messages differ, msgspec decodes everything from then on, and the logger
``claude_wire`` logs a warning. It also logs one if the process has no native reader, unless the environment asked for
msgspec.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import msgspec

from claude_wire.codec.plans import WORD_BYTES, Plans
from claude_wire.codec.warnings_of_msgspec import warn, warn_of_msgspec
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import Vocabulary
from claude_wire.native.functions import choose, functions_if_any

#: A line that has not been read yet: ``(index, line, offset, line_number, class, length)``. ``index`` is the index in
#: the list of messages. ``line`` has no line feed. ``class`` is the number of the class that needs a plan, or -1. For a
#: line over the limit, ``length`` is its length, and ``line`` has its first bytes; otherwise ``length`` is -1.
Fall = tuple[int, bytes, int, int, int, int]
#: A chunk's messages, with None for each line that has not been read yet, and a list of these lines.
Rest = tuple[list[Any], list[Fall]]

#: The native reader returns this number instead of a class's number after it has found a bug in itself.
_BROKEN = -2


def read_nothing(data: object) -> None:
    """Return None, because msgspec must decode the line."""


class Engine:
    """Decodes lines to one vocabulary's messages, or to dicts. All streams of a vocabulary share one engine.

    Args:
        vocabulary: None for dicts.
        functions: the native functions by name; empty if msgspec must decode.
        why_not: why there are no functions.
    """

    __slots__ = ("_halt", "_planning", "_plans", "_wanted", "_why_not", "new_feed", "read_line", "serve_decode")

    #: Reads one line, with or without its line feed. Returns None if msgspec must decode it.
    read_line: Callable[[Any], Any]
    #: Takes a line buffer's handle. Returns the object through which the native ``Decoder.feed`` finds the buffer and
    #: the reader, or None if the Python method must feed the buffer.
    new_feed: Callable[[int], object]
    #: Makes the native ``decode`` use this reader.
    serve_decode: Callable[[], None]
    _wanted: Callable[[], int]

    def __init__(
        self, vocabulary: Vocabulary | None, functions: dict[str, Any], why_not: str = "there are no functions"
    ) -> None:
        self._planning = threading.Lock()
        self._why_not = ""
        if not functions:
            self._why_not = why_not
            self.read_line = read_nothing
            self._wanted = lambda: -1
            self.new_feed = read_nothing
            self.serve_decode = lambda: None
            return
        of_reader = functions["new_reader"]()
        change_plan, self.read_line, self._wanted, self._halt, self.new_feed, self.serve_decode = of_reader
        if vocabulary is not None:
            self._plans = Plans(vocabulary, change_plan, functions["slots_of"])

    def _planned(self, wanted: int, line: bytes | bytearray | memoryview | str) -> Any:
        """Create plans for a line's classes. Return the native reader's message, or None if it refuses the line."""
        while wanted >= 0 and self._plans.plan(wanted):
            message = self.read_line(line)
            if message is not None:
                return message
            wanted = self._wanted()
        return None

    @property
    def why_not(self) -> str:
        """Why msgspec decodes all lines; empty if the native reader decodes them."""
        self.stop_if_broken()
        return self._why_not

    def _stop(self, why: str) -> None:
        self._why_not = why
        self._halt()
        warn("decoded", why)

    def plan_for(self, line: bytes | bytearray | memoryview | str, message: Any) -> None:
        """Create the plan that the last line needed, if any. ``message`` is msgspec's message for the line."""
        wanted = self._wanted()
        if wanted >= 0:
            self.plan(wanted, line, message)
        elif wanted == _BROKEN:
            self.stop_if_broken()

    def stop_if_broken(self) -> None:
        """If the native reader has a bug, let msgspec decode from now on, and log a warning."""
        if not self._why_not and self._wanted() == _BROKEN:
            self._stop("the native reader has a bug")

    def plan(self, wanted: int, line: bytes | bytearray | memoryview | str, message: Any) -> None:
        """Create all plans that a line needs, starting with ``wanted``. ``message`` is msgspec's message."""
        # Do not wait: another thread may be creating plans. If it was doing so when this process was forked, the lock
        # is never released.
        if not self._planning.acquire(blocking=False):
            return
        try:
            native = self._planned(wanted, line)
        finally:
            self._planning.release()
        if native is None:
            return
        if not are_same(native, message):
            self._stop(f"the native reader makes another {type(message).__name__}")


def native_feed(cls: type, feed: Callable[..., Any], take: Callable[..., Any], slot: str) -> Any:
    """Return the native ``feed`` method for a decoder class, or ``feed`` itself if msgspec must decode.

    Args:
        feed: the Python method. The native method calls it for every case that it cannot handle.
        take: the method that the native method calls with a chunk and its :data:`Rest`.
        slot: the name of the attribute that holds the result of :attr:`Engine.new_feed`, or None.
    """
    found = functions_if_any()
    if not found:
        return feed
    marked = cast("object", object.__new__(cls))
    mark = object()
    setattr(marked, slot, mark)
    (index,) = found["slots_of"]((marked, cls.__basicsize__ // WORD_BYTES, (mark,)))
    doc = f"feed($self, data)\n--\n\n{feed.__doc__}".encode()
    return found["new_feed_method"]((cls, index, doc, feed, take))


def native_function(make: str, function: Callable[..., Any], parameter: str) -> Callable[..., Any]:
    """Return a public function's native version, or ``function`` itself if msgspec must decode.

    Args:
        make: the name of the native function that creates the native version, such as ``"new_peek"``.
        function: the Python function. The native version calls it for every case that it cannot handle.
        parameter: the name of its only parameter, for :func:`inspect.signature`.
    """
    found = functions_if_any()
    if not found:
        return function
    doc = f"{function.__name__}({parameter})\n--\n\n{function.__doc__}".encode()
    made: Callable[..., Any] = found[make]((function, function.__module__, doc))
    return made


@cache
def engine_of(vocabulary: Vocabulary | None) -> Engine:
    """Return the engine for a vocabulary, or the engine for dicts."""
    choice = choose()
    warn_of_msgspec()
    return Engine(vocabulary, choice.functions, choice.why_not)


def engine() -> str:
    """Return the engine that decodes streams: ``"native"``, or ``"msgspec: "`` and the reason.

    If CPython's functions count references, it is ``"native: CPython's functions count references"``: the environment
    asks for this, or the library does not know how objects count their references.
    """
    why_not = engine_of(MESSAGES).why_not
    if why_not:
        return f"msgspec: {why_not}"
    return "native: CPython's functions count references" if choose().by_functions else "native"


def are_same(one: Any, other: Any) -> bool:
    """Return True if two values are equal at every depth and have the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, msgspec.Struct):
        return all(are_same(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(are_same, one.values(), other.values()))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(are_same, one, other))
    return bool(one == other)
