"""Read Arrow streams with ctypes and the structs of the Arrow C data interface, without an Arrow library."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["Array", "Schema", "Stream", "batches", "columns", "fields", "opened", "rows", "values"]


class Schema(ctypes.Structure):
    """``ArrowSchema``."""


class Array(ctypes.Structure):
    """``ArrowArray``."""


class Stream(ctypes.Structure):
    """``ArrowArrayStream``."""


def _function(*arguments: Any, result: Any = None) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", _function(ctypes.POINTER(Schema))),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", _function(ctypes.POINTER(Array))),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", _function(ctypes.POINTER(Stream), ctypes.POINTER(Schema), result=ctypes.c_int)),
    ("get_next", _function(ctypes.POINTER(Stream), ctypes.POINTER(Array), result=ctypes.c_int)),
    ("get_last_error", _function(ctypes.POINTER(Stream), result=ctypes.c_char_p)),
    ("release", _function(ctypes.POINTER(Stream))),
    ("private_data", ctypes.c_void_p),
]

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def opened(capsule: object) -> Stream:
    """Move the stream out of a capsule, so the capsule may be freed."""
    inside = Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    stream = Stream()
    ctypes.memmove(ctypes.byref(stream), ctypes.byref(inside), ctypes.sizeof(Stream))
    ctypes.memset(ctypes.byref(inside), 0, ctypes.sizeof(Stream))
    return stream


def fields(stream: Stream) -> list[tuple[str, str]]:
    """Return the name and the Arrow format of each column."""
    schema = Schema()
    assert stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) == 0
    assert schema.format == b"+s"
    found = [schema.children[index].contents for index in range(schema.n_children)]
    read = [(field.name.decode(), field.format.decode()) for field in found]
    schema.release(ctypes.byref(schema))
    assert not schema.release
    return read


def batches(stream: Stream) -> list[Array]:
    """Return all arrays of a stream without releasing them. Raise OSError with the stream's error message."""
    found: list[Array] = []
    while True:
        array = Array()
        if stream.get_next(ctypes.byref(stream), ctypes.byref(array)):
            raise OSError(stream.get_last_error(ctypes.byref(stream)).decode())
        if not array.release:
            return found
        found.append(array)


def _bits(address: int | None, count: int) -> list[bool]:
    if not address:
        return [True] * count
    octets = ctypes.string_at(address, -(-count // 8))
    return [bool(octets[index // 8] >> index % 8 & 1) for index in range(count)]


def _numbers(kind: Any) -> Callable[[int, int], list[Any]]:
    return lambda address, count: list((kind * count).from_address(address))


_READ: dict[str, Callable[[int, int], list[Any]]] = {
    "l": _numbers(ctypes.c_int64),
    "g": _numbers(ctypes.c_double),
    "tsu:UTC": _numbers(ctypes.c_int64),
    "b": _bits,
}


def values(array: Array, format: str) -> list[Any]:
    """Return the values of a column, and check its buffers against the rules of the C data interface."""
    assert array.offset == 0
    count = array.length
    valid = _bits(array.buffers[0], count)
    assert valid.count(False) == array.null_count
    if format == "u":
        assert array.n_buffers == 3
        offsets = list((ctypes.c_int32 * (count + 1)).from_address(array.buffers[1]))
        assert offsets[0] == 0
        assert offsets == sorted(offsets)
        data = ctypes.string_at(array.buffers[2], offsets[-1])
        found: list[Any] = [data[begin:end].decode() for begin, end in itertools.pairwise(offsets)]
    else:
        assert array.n_buffers == 2
        found = _READ[format](array.buffers[1], count)
    return [value if there else None for value, there in zip(found, valid, strict=True)]


def columns(scan: Any) -> dict[str, list[Any]]:
    """Return the values of each column of an Arrow stream. Times are in microseconds."""
    stream = opened(scan.__arrow_c_stream__())
    try:
        known = fields(stream)
        read: dict[str, list[Any]] = {name: [] for name, _ in known}
        for batch in batches(stream):
            assert batch.n_children == len(known)
            for index, (name, format) in enumerate(known):
                child = batch.children[index].contents
                assert child.length == batch.length
                read[name] += values(child, format)
            batch.release(ctypes.byref(batch))
            assert not batch.release
        return read
    finally:
        stream.release(ctypes.byref(stream))
        assert not stream.release


def rows(scan: Any) -> list[dict[str, Any]]:
    """Return the rows of an Arrow stream as dicts."""
    read = columns(scan)
    return [dict(zip(read, row, strict=True)) for row in zip(*read.values(), strict=True)]
