"""Put Arrow streams into capsules and take them out again, as the Arrow PyCapsule interface specifies."""

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

# A native destructor also works while the interpreter shuts down.
checked(lib.cw_capsule_pointer_of(ffi.cast("void *", ctypes.cast(_pointer_of, ctypes.c_void_p).value)))
_free_capsule = int(ffi.cast("uintptr_t", ffi.addressof(lib, "cw_capsule_free")))


def stream_capsule(stream: Any) -> object:
    """Create a capsule that owns the ``ArrowArrayStream`` at ``stream``.

    The consumer of the capsule releases the stream. If there is no consumer, the capsule releases it.
    """
    try:
        capsule: object = _new(int(ffi.cast("uintptr_t", stream)), _NAME, _free_capsule)
    except BaseException:
        lib.cw_stream_free(stream)
        raise
    return capsule


def stream_in(capsule: object) -> Any:
    """Return the address of the ``ArrowArrayStream`` in a capsule.

    Raises:
        ValueError: ``capsule`` is not a capsule with an Arrow stream.
    """
    return ffi.cast("void *", _pointer_of(capsule, _NAME))
