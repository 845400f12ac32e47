"""The supervisor's event loop. It calls the reader of a ready descriptor right after ``epoll``.

asyncio's own loop creates a handle for each ready descriptor and calls the handle in a later step. A supervisor mostly
sleeps until one CLI writes one line. After a sleep, each step of the interpreter takes much longer than in a busy loop,
so saving one step is worth this module.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike
    from typing_extensions import TypeVarTuple, Unpack

    _Arguments = TypeVarTuple("_Arguments")


class SupervisorLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that calls its readers directly, without handles."""

    def __init__(self) -> None:
        self._direct = _Selector(self.call_exception_handler)
        super().__init__(self._direct)

    def add_reader(
        self, fd: FileDescriptorLike, callback: Callable[[Unpack[_Arguments]], Any], *args: Unpack[_Arguments]
    ) -> None:
        reader = partial(callback, *args) if args else cast("Callable[[], Any]", callback)
        self._direct.add(_number(fd), reader)

    def remove_reader(self, fd: FileDescriptorLike) -> bool:
        return self._direct.remove(_number(fd))


def _number(fd: FileDescriptorLike) -> int:
    return fd if isinstance(fd, int) else fd.fileno()


class _Selector(selectors.EpollSelector):
    """Calls the readers itself. It has two epolls: one for the readers, and asyncio's own for the writers and the
    loop's other descriptors. The second epoll is a descriptor of the first one.
    """

    def __init__(self, on_error: Callable[[dict[str, Any]], object]) -> None:
        super().__init__()
        self._on_error = on_error
        self._epoll = select.epoll()
        self._epoll.register(self.fileno(), select.EPOLLIN)
        # The reader of each descriptor. With many sessions, each piece of memory that an event uses is a cache miss: a
        # list takes one, a dict three.
        self._readers: list[Callable[[], object] | None] = [None] * (self.fileno() + 1)

    def add(self, fd: int, reader: Callable[[], object]) -> None:
        with suppress(FileExistsError):
            self._epoll.register(fd, select.EPOLLIN)
        if fd >= len(self._readers):
            self._readers += [None] * (fd + 1 - len(self._readers))
        self._readers[fd] = reader

    def remove(self, fd: int) -> bool:
        if not 0 <= fd < len(self._readers) or self._readers[fd] is None:
            return False
        self._readers[fd] = None
        with suppress(OSError):  # the descriptor was closed, which removed it from the epoll
            self._epoll.unregister(fd)
        return True

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, and call the ready readers. Returns the other ready descriptors."""
        readers, has_others = self._readers, False
        for fd, reader in [(fd, readers[fd]) for fd, _ in self._epoll.poll(timeout)]:
            if reader is None:
                has_others = True
            elif readers[fd] is reader:  # unless an earlier reader in this loop removed it
                try:
                    reader()
                except Exception as error:
                    self._on_error({"message": "Exception in a reader", "exception": error})
        # Poll the other descriptors again, because a reader may have closed one of them.
        return super().select(0) if has_others else []

    def close(self) -> None:
        self._epoll.close()
        super().close()
