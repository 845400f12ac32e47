"""Decode lines into messages. Sans-IO: the caller reads the bytes.

:func:`decode` decodes one line. :class:`Decoder` decodes a stream: ``feed(b'{"type":"resu')`` returns no message yet,
and feeding the rest of the line returns the message.
"""

# Plain JSON has no types: pyright does not know the item types of a dict or list after an isinstance check.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from claude_wire.codec.dict_lines import DictLines
from claude_wire.codec.engines import Fall, Rest, engine_of, native_feed, native_function
from claude_wire.codec.follower import Follower
from claude_wire.codec.kind_names import kind_names
from claude_wire.codec.kinds import Kind
from claude_wire.codec.lines import Lines
from claude_wire.codec.objects import REFUSED, BadLine
from claude_wire.codec.stats import DecoderStats
from claude_wire.codec.typed_lines import TypedLines, union_decoder
from claude_wire.errors import HandleError, InvalidLineError
from claude_wire.limits import DEFAULT_MAX_LINE_BYTES
from claude_wire.messages import InvalidLine, Message, UnknownMessage
from claude_wire.messages.invalid import InvalidKind
from claude_wire.messages.union import MESSAGES
from claude_wire.messages.vocabulary import Family, is_family, vocabulary_of
from claude_wire.native.line_buffer import LineBuffer
from claude_wire.native.line_splitter import LineSplitter
from claude_wire.support.arguments import require_function, shown, type_of

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from claude_wire.codec.arguments import DecoderArguments, DictArguments, FamilyArguments

T = TypeVar("T")
F = TypeVar("F", bound=Family)
OnInvalid = Literal["return", "raise"] | Callable[[InvalidLine], object]

_BOM = b"\xef\xbb\xbf"

#: Placeholder for an invalid line that was passed to ``on_invalid``.
_DEALT_WITH = object()


class _MessageByName:
    """The default ``type``, because the repr of the union :data:`Message` names all classes and takes 4 KB."""

    def __repr__(self) -> str:
        return "Message"


#: The default ``type``. ``help()`` shows it as ``Message``.
MESSAGE = _MessageByName()


class Decoder(Generic[T]):
    """Decodes a stream of lines. You may feed it chunks that end anywhere.

    Args:
        type: ``Message`` for typed messages, ``dict`` for plain JSON objects, or the base class of a family of
            messages, such as :class:`claude_wire.transcripts.Record`.
        only: names of the kinds to decode, as in :class:`~claude_wire.Kind`: ``{"result", "system/init"}``, or
            ``"stream_event/content_block_delta/text_delta"``. A name includes all kinds that begin with it. If a line
            certainly has another kind, it is skipped: only its structure is scanned, and errors in it are not reported.
            A line whose kind is uncertain is decoded. None for all lines. For a kind that this version does not know,
            pass its tags: ``Kind("system", "of_tomorrow")``.
        coalesce: merge successive deltas of text, thinking or tool input that differ only in the text and the ``uuid``.
            Deltas from other sessions, subagents or blocks may be between them, but no other messages. The merged
            message takes the first delta's place, and has the whole text and the last ``uuid``. Only lines that the
            same :meth:`feed` call completes are merged, so merging delays nothing. Deltas of 4 KiB or more are not
            merged. Without ``only``, merging pauses while it would not save time.
        max_line_bytes: the maximum length of a line, in bytes without its line feed. A longer line is dropped in
            bounded memory and reported as invalid, with its length and its first 1024 bytes.
        on_invalid: what to do with a line that is not one JSON object. ``"return"`` puts an :class:`InvalidLine` in its
            place. ``"raise"`` raises :class:`InvalidLineError`, which has the messages before the line, and the next
            call continues after the line. A callable is called with each :class:`InvalidLine` in order, and no message
            takes the line's place.
        surrogates: whether to keep lone surrogates (``"\\ud83d"``, half of an emoji), as :mod:`json` does, or to
            replace each by U+FFFD (which may make two keys equal). Lines without lone surrogates do not change.
        loads: for ``dict`` only, a function that reads one line's bytes instead of msgspec, such as ``orjson.loads``.
            If it raises or does not return a dict, the line is read without it. If surrogates must be replaced, lines
            with ``\\u`` escapes are also read without it.

    A line ends only with 0x0A (not with U+2028 or CR). One CR before the 0x0A is ignored. Blank lines and a byte order
    mark at the start are skipped. :meth:`close` decodes a last line without a line feed. If a tag (a key that
    identifies an object's class, such as ``type``) has two different values, the line is invalid as a message; as a
    dict, it has the last value.

    A decoder belongs to one thread at a time and to the process that created it. Any other use raises
    :class:`HandleError`, except that several threads may feed it if each call has only whole lines. The end of a
    ``with`` block, or the garbage collector, frees the native memory.
    """

    __slots__ = (
        "_buffer",
        "_busy",
        "_checked",
        "_coalesce",
        "_feeder",
        "_in_turn",
        "_invalid",
        "_lines",
        "_messages",
        "_native_feeder",
        "_on_invalid",
        "_only",
        "_ready",
        "_returned",
    )

    @overload
    def __init__(
        self: Decoder[dict[str, Any] | InvalidLine],
        type: type[dict[str, Any]],
        *,
        on_invalid: Literal["return"] = ...,
        **arguments: Unpack[DictArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: Decoder[dict[str, Any]],
        type: type[dict[str, Any]],
        *,
        on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
        **arguments: Unpack[DictArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: Decoder[F | UnknownMessage | InvalidLine],
        type: type[F],
        *,
        on_invalid: Literal["return"] = ...,
        **arguments: Unpack[FamilyArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: Decoder[F | UnknownMessage],
        type: type[F],
        *,
        on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
        **arguments: Unpack[FamilyArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: Decoder[Message | InvalidLine],
        type: Any = Message,
        *,
        on_invalid: Literal["return"] = ...,
        **arguments: Unpack[DecoderArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: Decoder[Message],
        type: Any = Message,
        *,
        on_invalid: Literal["raise"] | Callable[[InvalidLine], object],
        **arguments: Unpack[DecoderArguments],
    ) -> None: ...
    def __init__(
        self,
        type: Any = MESSAGE,
        *,
        only: Iterable[str | Kind] | None = None,
        coalesce: bool = False,
        max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
        on_invalid: OnInvalid = "return",
        surrogates: Literal["keep", "replace"] = "keep",
        loads: Callable[[bytes], Any] | None = None,
    ) -> None:
        if on_invalid not in ("return", "raise") and not callable(on_invalid):
            raise ValueError(f"on_invalid must be 'return', 'raise' or a callable, not {shown(on_invalid)}")
        if callable(on_invalid):
            require_function("on_invalid", on_invalid, "the InvalidLine", awaited=False)
        if not isinstance(coalesce, bool):
            raise TypeError(f"coalesce must be True or False, not {shown(coalesce)}")
        if loads is not None:
            require_function("loads", loads, "the bytes of a line", awaited=False)
        known: frozenset[str] | None = None
        if type is dict:
            self._lines: Lines = DictLines(surrogates, loads)
        elif loads is not None:
            raise TypeError("loads is for type=dict; typed messages are read by msgspec")
        elif type is MESSAGE or type is Message:
            self._lines = TypedLines(surrogates)
        elif is_family(type):
            vocabulary = vocabulary_of(type)
            known = vocabulary.names
            self._lines = TypedLines(surrogates, vocabulary)
        else:
            raise TypeError(f"type must be Message or dict, not {type_of(type)}; only={{'result'}} picks kinds")
        self._only = None if only is None else kind_names(only, known)
        self._coalesce = coalesce
        self._buffer = LineBuffer(max_line_bytes, only=self._only, coalesce=coalesce)
        self._on_invalid: OnInvalid = on_invalid
        # The number of messages and of invalid lines that the Python code returned without the native reader.
        self._messages = self._invalid = 0
        # True while a call uses the decoder: a lock that costs almost nothing. There is no function call between the
        # test and the assignment, so Python does not switch threads between them (Python 3.10 may).
        self._busy = False
        # Decoded messages that were not returned yet, because a call raised an exception.
        self._ready: list[Any] = []
        # Indexes in `_ready`: the messages before `_returned` were returned or raised, and the invalid lines before
        # `_checked` were reported.
        self._returned = self._checked = 0
        self._in_turn = False
        # The native `feed` finds this decoder's buffer through this capsule. If None, it calls `feed` in Python.
        self._native_feeder: object = None
        if loads is None:
            self._native_feeder = self._lines.engine.new_feed(self._buffer.handle)
        # The same capsule, but None while the decoder is in use or messages are held back.
        self._feeder = self._native_feeder

    def feed(self, data: bytes | bytearray | memoryview) -> list[T]:
        """Decode the stream's next bytes, which may end anywhere. Return the messages of the lines that they complete.

        No thread may change ``data`` until this returns.

        After an exception, ``data`` still counts as taken: do not pass it again. (After a ``KeyboardInterrupt`` or a
        ``MemoryError``, the lines of ``data`` that were not decoded yet are lost. After a ``MemoryError``, line numbers
        and offsets may not count these lines.)

        Raises:
            InvalidLineError: with ``on_invalid="raise"``; the next call returns the messages after the line.
            TypeError: ``data`` is not bytes.
            ValueError: ``data`` is a view with gaps.
            HandleError: another thread is using the decoder, it belongs to another process, or its ``with`` block is
                over.
        """
        return self._take(data)

    def close(self) -> list[T]:
        """End the stream. Return the messages that were held back, and the message of a last line without a line feed.

        An incomplete last line is an :class:`InvalidLine` with the kind ``truncated``. The next bytes begin a new
        stream. This raises like :meth:`feed`; after an :class:`InvalidLineError`, call it again.
        """
        return self._take(b"", ending=True)

    @property
    def typed(self) -> bool:
        """True if the decoder returns typed messages, False if it returns dicts."""
        return isinstance(self._lines, TypedLines)

    @property
    def only(self) -> frozenset[str] | None:
        """The names of the kinds to decode; None for all kinds."""
        return self._only

    @property
    def coalesce(self) -> bool:
        """True if deltas are merged."""
        return self._coalesce

    @property
    def on_invalid(self) -> OnInvalid:
        """The ``on_invalid`` argument."""
        return self._on_invalid

    @property
    def holds_back(self) -> bool:
        """True if a call raised an exception and messages after it are held back. ``feed(b"")`` returns them."""
        return bool(self._ready)

    def raise_in_turn(self) -> None:
        """From now on, return the messages before an invalid line, and raise the exception in the next call.

        Iterators over messages call this.
        """
        self._in_turn = True

    def forget(self) -> None:
        """Drop the messages that were held back."""
        self._ready = []
        self._returned = self._checked = 0

    @property
    def stats(self) -> DecoderStats:
        """The number of lines, messages and bytes so far."""
        counts, seen, invalid = self._buffer.counts(), self._lines, self._invalid
        messages, unknown = self._messages + counts.messages, seen.unknown + counts.unknown
        lines = messages + invalid
        return DecoderStats(counts.fed, lines, messages, invalid, unknown, seen.repaired, counts.skipped, counts.merged)

    def __repr__(self) -> str:
        type = "Message" if self.typed else "dict"
        return f"<Decoder of {type}: {self.stats.summary()}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._busy:
            raise self._refusal()
        self._buffer.free()

    def follower(self) -> Follower[T]:
        """Return a :class:`Follower` at this decoder's position in the stream, to read lines before this decoder does.

        Fed with the same bytes, the follower returns the same lines, and decodes them to the same messages. It does not
        skip or merge lines. If the unfinished line is already too long, the follower returns only the line's remaining
        bytes.
        """
        splitter = LineSplitter(max_line_bytes=self._buffer.max_line_bytes)
        if self._buffer.has_begun:
            unfinished = self._buffer.unfinished()
            # The line feed comes first because a byte order mark is skipped only at the start of a stream. The NUL byte
            # replaces the start of a line that is too long: the remaining bytes must not be a valid line.
            splitter.feed(b"\n" + (b"\0" if unfinished is None else unfinished))
        return Follower(splitter, self._lines.fresh())

    def _refusal(self) -> Exception:
        try:
            self._buffer.stats()  # raises in a forked child, if the parent was using the decoder during the fork
        except HandleError as error:
            return error
        return HandleError("this decoder is used by two threads at the same time, or from its own on_invalid or loads")

    def _take(self, data: bytes | bytearray | memoryview, read: Rest | None = None, *, ending: bool = False) -> list[T]:
        """Decode a chunk. ``read`` is the result of a native ``feed`` that could not read all lines."""
        if self._busy:
            raise self._refusal()
        try:
            self._busy = True
            self._feeder = None
            held = bool(self._ready)
            invalid = self._invalid
            if read is None:
                read = self._lines.read(self._buffer.close() if ending else self._buffer.feed(data))
                self._messages += len(read[0]) - len(read[1])
            self._ready += self._complete(*read, ending=ending)
            if self._on_invalid == "return" or not (held or self._invalid != invalid):
                ready, self._ready = self._ready, []
                return ready
            return self._without_invalid()
        finally:
            self._busy = False
            if not self._ready:
                self._feeder = self._native_feeder

    def _complete(self, messages: list[Any], falls: list[Fall], *, ending: bool) -> list[Any]:
        """Decode the lines that have not been read yet, and put their messages into ``messages``."""
        lines = self._lines
        for index, line, offset, line_number, wanted, length in falls:
            if length >= 0:
                messages[index] = self._too_long(line, offset, line_number, length)
                continue
            try:
                messages[index] = lines.fallen(line, wanted)
                self._messages += 1
            except BadLine as bad:
                self._invalid += 1
                reason = f"truncated: {bad.reason}" if ending else bad.reason
                kind = "truncated" if ending else bad.kind
                messages[index] = InvalidLine(line, line_number, offset, reason, kind=kind)
        lines.engine.stop_if_broken()
        return messages

    def _too_long(self, head: bytes, offset: int, line_number: int, length: int) -> InvalidLine:
        self._invalid += 1
        over = length > self._buffer.max_line_bytes
        reason = "longer than max_line_bytes" if over else "more than there is memory for"
        kind: InvalidKind = "too_long" if over else "no_memory"
        return InvalidLine(head, line_number, offset, reason, length, kind)

    def _without_invalid(self) -> list[T]:
        """Return the messages. Pass each invalid line to ``on_invalid``; without it, raise for the first invalid line.

        After an exception, the next call continues with the following message.
        """
        ready, first = self._ready, self._returned
        for index in range(self._checked, len(ready)):
            message = ready[index]
            if not isinstance(message, InvalidLine):
                continue
            if self._on_invalid != "raise":
                self._checked = index + 1
                ready[index] = _DEALT_WITH
                cast("Callable[[InvalidLine], object]", self._on_invalid)(message)
            elif self._in_turn and first < index:
                self._returned = self._checked = index
                return ready[first:index]
            else:
                before, self._returned, self._checked = ready[first:index], index + 1, index + 1
                if 2 * self._returned > len(ready):  # free the returned half: each message moves only a few times
                    self._ready, self._returned, self._checked = ready[index + 1 :], 0, 0
                raise InvalidLineError(message, before)
        messages = [message for message in ready[first:] if message is not _DEALT_WITH]
        self.forget()
        return messages


if not TYPE_CHECKING:
    # Most chunks of a live process are one short line. A method in Python would take as long as the native reader.
    Decoder.feed = native_feed(Decoder, Decoder.feed, Decoder._take, "_feeder")


def decode(line: bytes | bytearray | memoryview | str) -> Message:
    """Decode one line, with or without its line feed. ``line`` may be a str, as for ``json.loads``.

    Raises:
        InvalidLineError: the line is not one JSON object.
        TypeError: ``line`` is neither bytes nor str.
    """
    engine = engine_of(MESSAGES)
    engine.serve_decode()
    try:
        message: Message = union_decoder()(line)
    except (TypeError, UnicodeError, *REFUSED):  # TypeError for a class derived from str
        message = _decode_carefully(line)
    engine.plan_for(line, message)
    return message


if not TYPE_CHECKING:
    decode = native_function("new_decode", decode, "line")


def _decode_carefully(line: bytes | bytearray | memoryview | str) -> Message:
    if isinstance(line, str):
        line = line.encode("utf-8", "backslashreplace")  # a raw surrogate becomes its JSON escape
    elif not isinstance(line, (bytes, bytearray, memoryview)):
        raise TypeError(f"decode() takes bytes or str, not {type(line).__name__}")
    line = bytes(line).removeprefix(_BOM)
    try:
        return cast("Message", TypedLines("keep").line(line))  # not shared: any thread may call this
    except BadLine as bad:
        hint = "; pass several lines to Decoder().feed()" if b"\n" in line.strip() else ""
        raise InvalidLineError(InvalidLine(line.removesuffix(b"\n"), 1, 0, bad.reason + hint, kind=bad.kind)) from None
