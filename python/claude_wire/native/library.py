"""Load the native library, check its version, and declare the types of its functions.

Outside this package, only :mod:`claude_wire.columns`, :mod:`claude_wire.codec.kinds` and
:mod:`claude_wire.streams.sources` import this module.
"""

from __future__ import annotations

import os
import struct
from typing import Any, Protocol, cast

from claude_wire.support.errors import ByteBudgetError, HandleError

#: The ABI version that the native library must have.
ABI_VERSION = 19

#: The layout of the C struct CwBlock. Unpacking all six fields takes as long as reading two of them through cffi.
BLOCK = struct.Struct("@5Qq")


class Library(Protocol):
    """Declares the functions in rust/src/ffi, because type checkers see the generated module as ``Any``."""

    CW_ABI_VERSION: int
    CW_NOTHING: int
    CW_COUNTED_BY_FUNCTIONS: int
    CW_KEEP_BOM: int
    CW_FILTER_ONLY: int
    CW_FILTER_COALESCE: int
    CW_FILTER_PLAIN: int
    CW_ERROR_ARGUMENT: int
    CW_ERROR_STALE: int
    CW_ERROR_FORKED: int
    CW_ERROR_IN_USE: int
    CW_ERROR_PANIC: int
    CW_ERROR_MEMORY: int
    CW_ERROR_FULL: int
    CW_ERROR_BUDGET: int
    CW_ERROR_UNSUPPORTED: int
    CW_ERROR_SYSTEM: int
    CW_DRAIN_END: int
    CW_DRAIN_PAUSED: int
    CW_DRAIN_WATCHED: int
    CW_OVERFLOW_PAUSE: int
    CW_OVERFLOW_ERROR: int
    CW_OVERFLOW_SPILL: int
    CW_OVERFLOW_KEEP_LAST: int
    CW_SCAN_STRICT: int
    CW_SCAN_ONLY: int
    CW_SCAN_PLAIN: int

    def cw_abi_version(self) -> int: ...
    def cw_python(self, functions: int, by_functions: bool, /) -> int: ...
    def cw_buffer_new(self, max_line_bytes: int, options: int, names: bytes, length: int, out: Any, /) -> int: ...
    def cw_buffer_free(self, handle: int, /) -> int: ...
    def cw_buffer_free_owned(self, handle: Any, /) -> int: ...
    def cw_buffer_take(self, handle: int, data: Any, length: int, out: Any, /) -> int: ...
    def cw_buffer_close(self, handle: int, out: Any, /) -> int: ...
    def cw_buffer_unfinished(self, handle: int, out: Any, /) -> int: ...
    def cw_buffer_stats(self, handle: int, out: Any, /) -> int: ...
    def cw_peek_lines(
        self,
        data: Any,
        length: int,
        start: int,
        plain: int,
        ids: Any,
        lines: int,
        kinds: Any,
        most_kinds: int,
        out: Any,
        /,
    ) -> int: ...
    def cw_drain_new(
        self, fd: int, overflow: int, limit: int, directory: Any, directory_length: int, out: Any, /
    ) -> int: ...
    def cw_drain_free(self, handle: int, /) -> int: ...
    def cw_drain_read(self, handle: int, out: Any, length: int, /) -> int: ...
    def cw_drain_fileno(self, handle: int, /) -> int: ...
    def cw_drain_watch(self, handle: int, fd: int, /) -> int: ...
    def cw_drain_discard(self, handle: int, /) -> int: ...
    def cw_drain_tail(self, handle: int, out: Any, length: int, written: Any, /) -> int: ...
    def cw_drain_stats(self, handle: int, out: Any, /) -> int: ...
    def cw_drain_stop(self, milliseconds: int, /) -> int: ...
    def cw_budget_set(self, limit: int, /) -> int: ...
    def cw_budget_count(self, count: int, /) -> int: ...
    def cw_budget(self, limit: Any, queued: Any, /) -> int: ...
    def cw_scan_new(
        self,
        spec: bytes,
        spec_length: int,
        only: bytes,
        only_length: int,
        options: int,
        max_line_bytes: int,
        decode: Any,
        out: Any,
        /,
    ) -> int: ...
    def cw_scan_add(self, handle: int, data: Any, length: int, is_path: int, start: int, stop: int, /) -> int: ...
    def cw_scan_reply(self, reply: Any, line: bytes, length: int, /) -> int: ...
    def cw_scan_stream(self, handle: int, out: Any, /) -> int: ...
    def cw_scan_usage(self, handle: int, out: Any, /) -> int: ...
    def cw_scan_report(self, handle: int, out: Any, length: int, /) -> int: ...
    def cw_scan_free(self, handle: int, /) -> int: ...
    def cw_stream_free(self, stream: Any, /) -> int: ...
    def cw_capsule_pointer_of(self, pointer_of: Any, /) -> int: ...
    def cw_combine_new(self, out: Any, /) -> int: ...
    def cw_combine_add(self, handle: int, stream: Any, error: Any, length: int, /) -> int: ...
    def cw_combine_stream(self, handle: int, out: Any, /) -> int: ...
    def cw_combine_free(self, handle: int, /) -> int: ...
    def cw_sums_new(self, out: Any, /) -> int: ...
    def cw_sums_add(
        self, handle: int, rows: Any, length: int, period: int, steps: Any, steps_length: int, out: Any, count: Any, /
    ) -> int: ...
    def cw_sums_free(self, handle: int, /) -> int: ...


class FFI(Protocol):
    """The parts of ``cffi.FFI`` that this library uses."""

    NULL: Any

    def new(self, ctype: str, init: Any = ..., /) -> Any: ...
    def sizeof(self, ctype: str, /) -> int: ...
    def buffer(self, cdata: Any, size: int = ..., /) -> Any: ...
    def gc(self, cdata: Any, destructor: Any, /) -> Any: ...
    def from_buffer(self, ctype: str, data: Any, /) -> Any: ...
    def unpack(self, cdata: Any, length: int, /) -> list[int]: ...
    def cast(self, ctype: str, value: Any, /) -> Any: ...
    def addressof(self, library: Library, name: str, /) -> Any: ...
    def callback(self, ctype: str, function: Any, *, error: int, onerror: Any) -> Any: ...


def _load() -> tuple[FFI, Library]:
    try:
        from claude_wire.native import _native
    except ImportError as error:
        raise ImportError(
            "the native library of claude_wire is not built: run `pip install .` "
            "or `maturin develop --release` in a clone of claude_wire"
        ) from error
    ffi = cast("FFI", _native.ffi)
    lib = cast("Library", _native.lib)
    try:
        found = lib.cw_abi_version()
    except AttributeError:  # an old library without a version function
        found = 0
    if found != ABI_VERSION or ffi.sizeof("CwBlock") != BLOCK.size:
        raise ImportError(
            f"the native library of claude_wire has ABI {found}, but its Python code needs ABI {ABI_VERSION}: "
            "rebuild it with `maturin develop --release`, or reinstall claude-wire"
        )
    return ffi, lib


ffi: FFI
lib: Library
ffi, lib = _load()

_ERRORS: dict[int, Exception] = {
    lib.CW_ERROR_STALE: HandleError("this object is closed"),
    lib.CW_ERROR_FORKED: HandleError("this object belongs to another process; create a new one after fork"),
    lib.CW_ERROR_IN_USE: HandleError(
        "this object is used by two threads at the same time, or from inside its own loop"
    ),
    lib.CW_ERROR_PANIC: HandleError("a bug in the native library of claude_wire broke this object"),
    lib.CW_ERROR_MEMORY: MemoryError("the native library of claude_wire could not allocate memory"),
    lib.CW_ERROR_FULL: HandleError("too many of these objects are open in this process"),
    lib.CW_ERROR_UNSUPPORTED: NotImplementedError("native drains are not available on this system"),
}


def error(status: int) -> Exception:
    """Return the exception for a negative status."""
    if status <= lib.CW_ERROR_SYSTEM:
        number = lib.CW_ERROR_SYSTEM - status
        return OSError(number, os.strerror(number))
    if status == lib.CW_ERROR_BUDGET:
        limit, queued = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        lib.cw_budget(limit, queued)
        return ByteBudgetError(limit[0])
    known = _ERRORS.get(status)
    if known is None:
        return SystemError(f"the native library of claude_wire refused an argument ({status})")
    return type(known)(*known.args)


def checked(status: int) -> int:
    """Return the status, or raise the exception for a negative one."""
    if status < 0:
        raise error(status)
    return status
