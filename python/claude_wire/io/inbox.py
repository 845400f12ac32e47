"""What a decoder has given and nobody has taken yet."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from claude_wire.codec.decoder import Decoder
from claude_wire.errors import InvalidLineError

__all__ = ["Inbox"]

T = TypeVar("T")


class Inbox(Generic[T]):
    """Messages in order, and an exception after those that came before it.

    With ``on_invalid="raise"`` the decoder raises in the middle of a chunk. An iteration first gives the messages
    before the line, then raises, then goes on with what is left of the chunk; so does this.
    """

    __slots__ = ("_error", "_held", "decoder", "ready")

    def __init__(self, decoder: Decoder[T]) -> None:
        self.decoder: Decoder[T] = decoder
        #: What can be taken now, from the left.
        self.ready: deque[T] = deque()
        self._error: InvalidLineError | None = None
        # Whether an exception made the decoder keep messages back.
        self._held = False

    def feed(self, data: bytes | memoryview) -> list[T]:
        """Decode the next bytes of the stream; what they complete is returned, for ``ready`` or for the caller."""
        try:
            return self.decoder.feed(data)
        except InvalidLineError as error:
            return self._before(error)
        except BaseException:  # of the caller's on_invalid or loads
            self._held = True
            raise

    def close(self) -> tuple[list[T], bool]:
        """Decode what is left at the end of the stream; also says whether that was all, or is to be called again."""
        try:
            return self.decoder.close(), True
        except InvalidLineError as error:
            return self._before(error), False

    def resume(self) -> None:
        """To be called when ``ready`` is empty, before more bytes are waited for.

        Raises the exception that comes next, or puts into ``ready`` what an exception held back.
        """
        while not self.ready:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if not self._held:
                return
            self._held = False
            self.ready.extend(self.feed(b""))  # may hold back again, behind the next invalid line

    def clear(self) -> None:
        """Forget what nobody has taken."""
        self.ready.clear()
        self._error = None
        self._held = False

    def _before(self, error: InvalidLineError) -> list[T]:
        before: list[T] = error.messages
        error.messages = []
        self._error = error
        self._held = True
        return before
