"""At the boundary to native code, a wrong handle, argument or library is a clear error, never undefined behavior."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_wire.errors import ByteBudgetError, HandleError
from claude_wire.native import library as _library
from claude_wire.native.library import ffi, lib
from claude_wire.native.line_buffer import LineBuffer
from claude_wire.native.line_splitter import LineSplitter

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def new_handle(max_line_bytes: int = 2**40) -> int:
    out = ffi.new("uint64_t *")
    assert lib.cw_buffer_new(max_line_bytes, 0, b"", 0, out) == lib.CW_NOTHING
    handle: int = out[0]
    return handle


def uses(handle: int) -> dict[str, int]:
    """Return the status of every function that takes a line buffer's handle."""
    return {
        "take": lib.cw_buffer_take(handle, b"{}\n", 3, ffi.new("CwBlocks *")),
        "unfinished": lib.cw_buffer_unfinished(handle, ffi.new("CwBlocks *")),
        "close": lib.cw_buffer_close(handle, ffi.new("CwBlocks *")),
        "stats": lib.cw_buffer_stats(handle, ffi.new("CwStats *")),
        "free": lib.cw_buffer_free(handle),
    }


linux = pytest.mark.skipif(sys.platform != "linux", reason="native drains are for Linux")


def new_drain() -> int:
    """Return the handle of a drain whose pipe has ended."""
    read_end, write_end = os.pipe()
    os.close(write_end)
    out = ffi.new("uint64_t *")
    assert lib.cw_drain_new(read_end, lib.CW_OVERFLOW_PAUSE, 0, b"", 0, out) == lib.CW_NOTHING
    os.close(read_end)
    handle: int = out[0]
    return handle


def drain_uses(handle: int) -> dict[str, int]:
    """Return the status of every function that takes a drain's handle."""
    scratch = ffi.new("uint8_t[]", 10)
    return {
        "read": lib.cw_drain_read(handle, scratch, 10),
        "fileno": lib.cw_drain_fileno(handle),
        "watch": lib.cw_drain_watch(handle, 0),
        "tail": lib.cw_drain_tail(handle, scratch, 10, ffi.new("uint64_t *")),
        "stats": lib.cw_drain_stats(handle, ffi.new("CwDrainStats *")),
        "discard": lib.cw_drain_discard(handle),
        "free": lib.cw_drain_free(handle),
    }


# --- Wrong handles ----------------------------------------------------------------------------------------------------


def test_a_null_handle_is_refused() -> None:
    assert set(uses(0).values()) == {lib.CW_ERROR_STALE}


def test_a_freed_handle_is_refused() -> None:
    handle = new_handle()
    assert lib.cw_buffer_free(handle) == lib.CW_NOTHING
    assert set(uses(handle).values()) == {lib.CW_ERROR_STALE}


def test_a_freed_handle_is_refused_when_its_slot_is_used_again() -> None:
    old = new_handle()
    lib.cw_buffer_free(old)
    new = new_handle()
    assert old % 2**16 == new % 2**16, "the slot that was freed last is used first"
    assert set(uses(old).values()) == {lib.CW_ERROR_STALE}
    assert uses(new)["take"] == 1


@given(st.integers(0, 2**64 - 1))
def test_numbers_that_were_never_handles_are_refused(handle: int) -> None:
    assert set(uses(handle).values()) <= {lib.CW_ERROR_STALE, lib.CW_ERROR_FORKED}


@linux
def test_a_null_or_freed_drain_is_refused() -> None:
    assert set(drain_uses(0).values()) == {lib.CW_ERROR_STALE}
    old = new_drain()
    assert drain_uses(old)["read"] == lib.CW_DRAIN_END
    assert set(drain_uses(old).values()) == {lib.CW_ERROR_STALE}
    new = new_drain()
    assert old % 2**16 == new % 2**16, "the slot that was freed last is used first"
    assert set(drain_uses(old).values()) == {lib.CW_ERROR_STALE}
    assert drain_uses(new)["free"] == lib.CW_NOTHING


@linux
@given(st.integers(0, 2**64 - 1))
def test_numbers_that_were_never_drains_are_refused(handle: int) -> None:
    assert set(drain_uses(handle).values()) <= {lib.CW_ERROR_STALE, lib.CW_ERROR_FORKED}


def run_in_child(body: str) -> None:
    """Run a forking test in a new process. Wait for the forked child, and report its exceptions."""
    program = f"""
import os, sys, traceback
from claude_wire.errors import HandleError
from claude_wire.native.line_buffer import LineBuffer
from claude_wire.native.line_splitter import LineSplitter

def in_fork(check):
    pid = os.fork()
    if not pid:
        try:
            check()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

def refused(use, text="belongs to another process; create a new one after fork"):
    try:
        use()
    except HandleError as error:
        assert text in str(error), error
    else:
        raise AssertionError("not refused")

{textwrap.dedent(body)}
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


@needs_fork
def test_a_forked_child_is_refused_and_the_parent_goes_on() -> None:
    run_in_child(
        """
        splitter = LineSplitter()
        splitter.feed(b"{")

        def check():
            refused(lambda: splitter.feed(b"}\\n"))
            refused(splitter.close)
            with LineSplitter() as own:
                assert own.feed(b"[]\\n") == [b"[]"]
            in_fork(lambda: refused(lambda: splitter.feed(b"}\\n")))

        in_fork(check)
        assert splitter.feed(b"}\\n") == [b"{}"]
        """
    )


@needs_fork
def test_a_forked_child_may_drop_what_it_inherited() -> None:
    run_in_child(
        """
        splitter = LineSplitter()
        splitter.feed(b"{")

        def check():
            global splitter
            with splitter:
                pass
            splitter = None

        in_fork(check)
        assert splitter.feed(b"}\\n") == [b"{}"]
        """
    )


def test_objects_alive_at_the_end_of_the_interpreter_do_no_harm() -> None:
    run_in_child(
        """
        splitter = LineSplitter()
        splitter.feed(b"{")
        buffer = LineBuffer()
        buffer.feed(b"{}\\n{}")
        """
    )


# --- Memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop", [lambda buffer: None, LineBuffer.free], ids=["collected", "freed"])
def test_a_buffer_that_is_dropped_frees_its_handle(drop: Callable[[LineBuffer], None]) -> None:
    buffer = LineBuffer()
    handle = buffer.handle
    drop(buffer)
    del buffer
    assert lib.cw_buffer_free(handle) == lib.CW_ERROR_STALE


def test_more_buffers_than_slots_can_be_made_one_after_another() -> None:
    for _ in range(2**16 + 1):
        lib.cw_buffer_free(new_handle())


# --- Wrong arguments --------------------------------------------------------------------------------------------------


def test_wrong_pointers_and_ranges_are_refused() -> None:
    handle = new_handle()
    null = ffi.NULL
    out = ffi.new("CwBlocks *")
    assert {
        lib.cw_buffer_new(1, 0, b"", 0, null),
        lib.cw_buffer_new(1, lib.CW_FILTER_ONLY, b"\xff", 1, ffi.new("uint64_t *")),
        lib.cw_buffer_take(handle, null, 1, out),
        lib.cw_buffer_take(handle, b"{}\n", 2**64 - 1, out),
        lib.cw_buffer_take(handle, b"{}\n", 3, null),
        lib.cw_buffer_close(handle, null),
        lib.cw_buffer_unfinished(handle, null),
        lib.cw_buffer_stats(handle, null),
    } == {lib.CW_ERROR_ARGUMENT}
    assert lib.cw_buffer_take(handle, null, 0, out) == 0
    assert lib.cw_buffer_free(handle) == lib.CW_NOTHING


@linux
def test_wrong_pointers_and_numbers_for_drains_are_refused() -> None:
    handle = new_drain()
    null, out, scratch = ffi.NULL, ffi.new("uint64_t *"), ffi.new("uint8_t[]", 10)
    assert {
        lib.cw_drain_new(0, lib.CW_OVERFLOW_PAUSE, 0, b"", 0, null),
        lib.cw_drain_new(0, 4, 0, b"", 0, out),
        lib.cw_drain_new(0, lib.CW_OVERFLOW_SPILL, 0, null, 1, out),
        lib.cw_drain_read(handle, null, 10),
        lib.cw_drain_read(handle, scratch, 0),
        lib.cw_drain_read(handle, scratch, 2**64 - 1),
        lib.cw_drain_tail(handle, null, 1, out),
        lib.cw_drain_tail(handle, scratch, 10, null),
        lib.cw_drain_stats(handle, null),
        lib.cw_budget(null, out),
        lib.cw_budget(out, null),
    } == {lib.CW_ERROR_ARGUMENT}
    no_descriptor = lib.CW_ERROR_SYSTEM - errno.EBADF
    assert lib.cw_drain_new(-1, lib.CW_OVERFLOW_PAUSE, 0, b"", 0, out) == no_descriptor
    assert lib.cw_drain_watch(handle, -1) == no_descriptor
    assert lib.cw_drain_watch(handle, 2**31 - 1) == no_descriptor
    assert lib.cw_drain_free(handle) == lib.CW_NOTHING


def test_every_error_status_has_its_exception() -> None:
    expected = {
        "ARGUMENT": SystemError,
        "BUDGET": ByteBudgetError,
        "FORKED": HandleError,
        "FULL": HandleError,
        "IN_USE": HandleError,
        "MEMORY": MemoryError,
        "PANIC": HandleError,
        "STALE": HandleError,
        "SYSTEM": OSError,
        "UNSUPPORTED": NotImplementedError,
    }
    names = {name.removeprefix("CW_ERROR_") for name in dir(lib) if name.startswith("CW_ERROR_")}
    assert names == set(expected)
    for name, exception in expected.items():
        error = _library.error(getattr(lib, f"CW_ERROR_{name}"))
        assert type(error) is exception
        assert str(error)


# --- The wrong library ------------------------------------------------------------------------------------------------


def import_library(monkeypatch: pytest.MonkeyPatch, native: types.ModuleType | None) -> types.ModuleType:
    """Import a second copy of ``_library`` with another native module, or without one."""
    monkeypatch.setitem(sys.modules, "claude_wire.native._native", native)
    monkeypatch.delattr("claude_wire.native._native", raising=False)
    if native is not None:
        monkeypatch.setattr("claude_wire.native._native", native, raising=False)
    spec = importlib.util.spec_from_file_location("claude_wire.native.library_again", _library.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def native_with(abi: int | None, size: int = _library.BLOCK.size) -> types.ModuleType:
    native = types.ModuleType("claude_wire.native._native")
    functions = {} if abi is None else {"cw_abi_version": lambda: abi}
    vars(native).update(ffi=types.SimpleNamespace(sizeof=lambda _: size), lib=types.SimpleNamespace(**functions))
    return native


@pytest.mark.parametrize(
    ("native", "found"),
    [
        (native_with(_library.ABI_VERSION + 1), _library.ABI_VERSION + 1),
        (native_with(None), 0),
        (native_with(_library.ABI_VERSION, size=47), _library.ABI_VERSION),
    ],
    ids=["other number", "no number", "other struct"],
)
def test_a_library_of_another_abi_is_an_import_error(
    monkeypatch: pytest.MonkeyPatch, native: types.ModuleType, found: int
) -> None:
    message = f"has ABI {found}, but its Python code needs ABI {_library.ABI_VERSION}: rebuild it"
    with pytest.raises(ImportError, match=message):
        import_library(monkeypatch, native)


def test_a_missing_library_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"native library of claude_wire is not built: run `pip install"):
        import_library(monkeypatch, None)


def test_the_library_in_use_has_the_abi_of_its_declarations() -> None:
    assert lib.cw_abi_version() == _library.ABI_VERSION == lib.CW_ABI_VERSION


def test_splitters_do_not_share_anything() -> None:
    first, second = LineSplitter(), LineSplitter()
    assert first.feed(b"{1") == second.feed(b"{2") == []
    assert (first.feed(b"}\n"), second.feed(b"}\n")) == ([b"{1}"], [b"{2}"])
