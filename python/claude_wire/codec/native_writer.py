"""Encode messages with the native library.

The native writer reads a message's values from the instance's memory, and writes the same bytes as msgspec:
``{"type":"user",…``. It needs a plan for each class. Planning takes longer than encoding a few messages, so msgspec
encodes a class's first messages. Then the writer creates the class's plan, and the native code encodes the last message
again. If the bytes differ, msgspec encodes all messages from then on, and the logger ``claude_wire`` logs a warning.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from claude_wire.codec.plans import WORD_BYTES, Unplannable, slots_of_fields
from claude_wire.codec.warnings_of_msgspec import warn, warn_of_msgspec
from claude_wire.messages.base import EXTRA_KEY, Wire
from claude_wire.native.functions import functions_if_any

#: msgspec encodes this many messages of a class before the class gets a plan.
MESSAGES_BEFORE_PLAN = 16


class NativeWriter:
    """Encodes messages as lines. A process has only one instance.

    Args:
        fallback: encodes a message that the native writer cannot encode, and then calls :meth:`learn`.
    """

    __slots__ = (
        "_add",
        "_encode_lines",
        "_fallback",
        "_met",
        "_planning",
        "_slots_of",
        "_stop",
        "encode",
        "wanted",
        "why_not",
    )

    #: Encode one message, natively or by ``fallback``. This function has the docstring of ``fallback``.
    encode: Callable[[Any], bytes]
    _encode_lines: Callable[[tuple[list[Any], int]], tuple[bytes | None, int]]
    #: Return the class that needs a plan before the writer can encode the last refused message, or None.
    wanted: Callable[[], Any]

    def __init__(self, fallback: Callable[[Any], bytes]) -> None:
        #: Why the fallback encodes all messages; empty while the native writer is in use.
        self.why_not: str = ""
        self._fallback = fallback
        self._planning = threading.Lock()
        self._met: dict[type, int] = {}
        found = functions_if_any()
        if "new_writer" not in found:
            self.why_not = "there is no native writer"
            # `encode` calls `wanted` after each message, so the first one warns.
            self.encode, self.wanted = fallback, warn_of_msgspec
            return
        doc = f"encode(message)\n--\n\n{fallback.__doc__ or ''}".encode()
        arguments = (fallback, fallback.__module__, doc, type(msgspec.Struct), msgspec.UNSET)
        self.encode, self._encode_lines, self._add, self.wanted, self._stop = found["new_writer"](arguments)
        self._slots_of = found["slots_of"]

    def encode_lines(self, messages: list[Any]) -> bytes:
        """Encode messages, natively or by the fallback."""
        lines, end = self._encode_lines((messages, 0))
        if lines is not None and end == len(messages):
            return lines
        parts = [lines or b""]
        while end < len(messages):
            parts.append(self._fallback(messages[end]))
            lines, end = self._encode_lines((messages, end + 1))
            parts.append(lines or b"")
        return b"".join(parts)

    def write(self, message: Any) -> bytes | None:
        """Encode a message natively; return None if the native writer cannot encode it."""
        lines, end = self._encode_lines(([message], 0))
        return lines if end else None

    def learn(self, wanted: type, message: Any, encoded: bytes) -> None:
        """Create a class's plan if enough messages needed it. ``encoded`` is the fallback's line for ``message``."""
        met = self._met.get(wanted, 0) + 1
        self._met[wanted] = met
        # Do not wait for the lock: in a forked process, the thread that holds the lock may not exist, and then nothing
        # releases the lock.
        if met < MESSAGES_BEFORE_PLAN or not self._planning.acquire(blocking=False):
            return
        try:
            native = self._planned(wanted, message)
        finally:
            self._planning.release()
        # If the bytes differ, encode the message again: another thread may have changed a list or dict in it.
        if native is not None and native != encoded and self._fallback(message) == encoded:
            self._stop()
            self.why_not = f"the native writer writes another {type(message).__name__}"
            warn("encoded", self.why_not)

    def _planned(self, wanted: Any, message: Any) -> bytes | None:
        """Create plans for a message's classes. Return the native writer's line, or None if it refuses the message."""
        while wanted is not None:
            try:
                shape = self._shape(wanted)
            except Unplannable:
                shape = None
            if not self._add((wanted, shape)):
                return None
            self._met.pop(wanted, None)
            line = self.write(message)
            if line is not None:
                return line
            wanted = self.wanted()
        return None

    def _shape(self, cls: type[msgspec.Struct]) -> tuple[Any, ...]:
        """Return the plan of a class as the tuple that ``add`` in rust/src/ffi/python/write.rs expects."""
        config = cls.__struct_config__
        if not issubclass(cls, Wire) or config.array_like or hasattr(cls, "__post_init__"):
            raise Unplannable
        opening, tag_key = b"", b""
        if config.tag is not None:
            opening = msgspec.json.encode({config.tag_field: config.tag})[:-1]
            tag_key = _key(config.tag_field or "")
        names, defaults = cls.__struct_encode_fields__, cls.__struct_defaults__
        omitted = [msgspec.UNSET] * len(names)
        if config.omit_defaults and defaults:
            # Fields without a default come first.
            omitted[-len(defaults) :] = map(_omitted, defaults)
        slots = slots_of_fields(cls, self._slots_of)
        fields = [
            (_key(name), slot, default)
            for name, slot, default in zip(names, slots, omitted, strict=True)
            if name != EXTRA_KEY
        ]
        if len(fields) == len(names):
            raise Unplannable
        return cls.__basicsize__ // WORD_BYTES, opening, tag_key, tuple(fields), slots[names.index(EXTRA_KEY)]


def _key(name: str) -> bytes:
    """Return a key with the bytes around it: ``,"key":``."""
    if not name.isascii():
        raise Unplannable
    return f',"{name}":'.encode()


def _omitted(default: Any) -> Any:
    """Return the value, besides UNSET, for which msgspec omits a field. Return UNSET if there is none."""
    if not hasattr(default, "factory"):
        return msgspec.UNSET if default is msgspec.NODEFAULT else default
    if default.factory in (list, dict, set):  # msgspec omits an empty list, which is not one constant value
        raise Unplannable
    return msgspec.UNSET
