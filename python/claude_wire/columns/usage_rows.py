"""Keep the usage in transcripts as small rows of numbers, and add up the rows of many files.

``rust/src/columns/usage_rows.rs`` describes the rows, and says which row of an answer counts.
"""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import struct
import weakref
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, cast

from claude_wire.columns.scan import Source, add_source, decoder, new_scan
from claude_wire.columns.tables import usage_rows_spec
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.native.library import checked, ffi, lib

#: Before each name: its digest, and its length in bytes.
_NAME = struct.Struct("<qQ")
#: The session's ``totalCostUSD``. The JSON of its ``modelUsage`` follows.
_COST = struct.Struct("<d")


class UsageRows(NamedTuple):
    """The usage in a file, with at least one row for each of the model's answers."""

    originals: bytes
    """The rows of answers that were requested in the file's session."""
    copies: bytes
    """The rows of answers that were copied from another session."""
    names: dict[int, str]
    """The ids of sessions and the names of models, by their digests in the rows. 0 stands for a missing session id."""
    session: str
    """The first session id. Empty if there is none."""
    cwd: str
    """The first directory that the CLI worked in. Empty if there is none."""
    cost: tuple[float, dict[str, float]] | None
    """From the last ``cost-state``: the session's cost in US dollars, and each model's. None if there is none."""
    cost_session: str
    """The session id of that ``cost-state``. Empty if there is none."""


class UsageSum(NamedTuple):
    """The number of answers with the same session, model, period and step, and their tokens."""

    session: int
    """The digest of the id of the session in which the answers were requested."""
    model: int
    """The digest of the model's name."""
    period: int
    """The number of the period, counted from 1970. -1 for answers before 1970 or without a time."""
    step: int
    """The highest of the ``steps`` that the prompts exceed. 0 if they exceed none."""
    answers: int
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int
    cache_creation_5m: int
    cache_creation_1h: int
    cache_read_input_tokens: int


_SUM = struct.Struct(f"={len(UsageSum._fields)}q")


def read_usage(source: Source) -> UsageRows:
    """Read the usage in a transcript or a range of it.

    Invalid lines are skipped, lines of more than ``DEFAULT_MAX_LINE_BYTES``, and lines that the CLI wrote in place of
    an answer.

    Raises:
        OSError: the file cannot be read.
    """
    failures: list[BaseException] = []

    def keep(_: object, failure: BaseException, __: object) -> None:
        failures.append(failure)

    callback = decoder(keep)
    handle = new_scan(usage_rows_spec(), max_line_bytes=DEFAULT_MAX_LINE_BYTES, callback=callback)
    try:
        path = add_source(handle, source)
        out = ffi.new("uint64_t[14]")
        try:
            checked(lib.cw_scan_usage(handle, out))
        except OSError as error:
            if failures:  # a KeyboardInterrupt may arrive while Python decodes a line
                raise failures[0] from None
            raise OSError(error.errno, error.strerror, path) from None
        places = iter(ffi.unpack(out, 14))
        originals, copies, names, session, cwd, cost, cost_session = (
            bytes(ffi.buffer(ffi.cast("uint8_t *", address), length)) if length else b""
            for address, length in zip(places, places, strict=True)
        )
    finally:
        lib.cw_scan_free(handle)
    texts = session.decode(), cwd.decode()
    return UsageRows(originals, copies, dict(_names(names)), *texts, _cost(cost), cost_session.decode())


def _names(data: bytes) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(data):
        digest, length = _NAME.unpack_from(data, at)
        begin = at + _NAME.size
        at = begin + length
        yield digest, data[begin:at].decode()


def _cost(data: bytes) -> tuple[float, dict[str, float]] | None:
    if not data:
        return None
    (total,) = _COST.unpack_from(data)
    try:
        # As a float, a number may have any number of digits.
        usages: Any = json.loads(data[_COST.size :], parse_int=float)
    except (ValueError, RecursionError):  # none, or nested too deeply
        usages = None
    models = cast("dict[str, Any]", usages) if isinstance(usages, dict) else {}
    costs: dict[str, Any] = {name: usage.get("costUSD") for name, usage in models.items() if isinstance(usage, dict)}
    return total, {name: cost if type(cost) is float and isfinite(cost) else 0.0 for name, cost in costs.items()}


class UsageSums:
    """Adds up rows. An answer counts in the first :meth:`add` that has it.

    Add the originals of all files, and then the copies. So a copy only counts if its original is missing.

    Args:
        period: the length of a period in microseconds. The answers of each period have their own sum.
        steps: numbers of tokens, in ascending order. Answers are summed separately by the highest step that their
            prompt exceeds, because their price may differ.
    """

    def __init__(self, period: int, steps: Sequence[int]) -> None:
        handle = ffi.new("uint64_t *")
        checked(lib.cw_sums_new(handle))
        self._handle: int = handle[0]
        self._finalize = weakref.finalize(self, lib.cw_sums_free, self._handle)
        self._period = period
        self._steps: Any = ffi.new("int64_t[]", list(steps))

    def close(self) -> None:
        """Free the memory, at least 16 bytes for each answer. The sums cannot be used after that."""
        self._finalize()

    def add(self, rows: bytes) -> list[UsageSum]:
        """Return the sums of a file's rows. If several of the rows belong to the same answer, the last one counts.

        Raises:
            ValueError: the length of ``rows`` is not a multiple of a row's size.
            HandleError: the sums are closed.
        """
        out, count = ffi.new("int64_t[]", len(rows) // 8), ffi.new("uint64_t *")
        steps = self._steps, len(self._steps)
        status = lib.cw_sums_add(self._handle, rows, len(rows), self._period, *steps, out, count)
        if status == lib.CW_ERROR_ARGUMENT:
            raise ValueError(f"these {len(rows)} bytes are not rows of usage")
        checked(status)
        return [*map(UsageSum._make, _SUM.iter_unpack(ffi.buffer(out, count[0] * _SUM.size)))]
