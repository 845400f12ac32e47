"""Put Arrow streams into capsules and take them out, by the Arrow PyCapsule interface."""

from __future__ import annotations

import ctypes
from typing import Any

from claude_wire.native.library import checked, ffi, lib

_NAME = b"arrow_array_stream"
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]

# The destructor is native, so that it also works while the interpreter ends.
checked(lib.cw_capsule_pointer_of(ffi.cast("void *", ctypes.cast(_pointer_of, ctypes.c_void_p).value)))
_free_capsule = int(ffi.cast("uintptr_t", ffi.addressof(lib, "cw_capsule_free")))


def stream_capsule(stream: Any) -> object:
    """Make a capsule that owns the ``ArrowArrayStream`` at ``stream``. It or its consumer releases the stream."""
    try:
        capsule: object = _new(int(ffi.cast("uintptr_t", stream)), _NAME, _free_capsule)
    except BaseException:
        lib.cw_stream_free(stream)
        raise
    return capsule


def stream_in(capsule: object) -> Any:
    """Return the address of the ``ArrowArrayStream`` in a capsule.

    Raises:
        ValueError: it is not a capsule of a stream.
    """
    return ffi.cast("void *", _pointer_of(capsule, _NAME))
