"""What goes through the tap, as a recording: each run of the CLI in a folder of its own.

Knows folders and streams; not processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from claude_wire.cli.host.record import Recorder
from claude_wire.host.disk.files import private_folder

__all__ = ["FILE_BYTES", "STDERR", "STDIN", "STDOUT", "Recording"]

#: Most bytes of a file of a recording. When one has as many, the recording ends.
FILE_BYTES = 1024 * 1024 * 1024

#: The streams of the CLI are named by their descriptors.
STDIN, STDOUT, STDERR = 0, 1, 2


class Recording:
    """Writes one run of the CLI into a new folder. The first error ends the recording, and is told once.

    Args:
        parent: the folder that the new one is made in.
        argv: how the CLI was started.
        began: when, as :func:`time.monotonic` has it.
        say: is told what the user should know.

    Raises:
        OSError: the folder cannot be made; or there is a link in the place of its parent, or another user may change
            that.
    """

    def __init__(self, parent: str, argv: Sequence[str], began: float, say: Callable[[str], object]) -> None:
        name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        folder = os.path.join(private_folder(parent), name)
        os.mkdir(folder, 0o700)
        #: Whether nothing more is taken.
        self.is_over: bool = False
        self._say = say
        self._recorder = Recorder(folder, FILE_BYTES)
        self._recorder.started(argv, os.getcwd(), os.environ, began)
        self._check()

    def put(self, stream: int, data: bytes) -> None:
        """Take what was read, from a stream of the CLI or for it."""
        if not self.is_over:
            if stream == STDOUT:
                self._recorder.received(data)
            elif stream == STDIN:
                self._recorder.sent(data)
            else:
                self._recorder.stderr(data)
            self._check()

    def end(self, returncode: int) -> None:
        """Take how the CLI has ended, as :mod:`subprocess` has it."""
        if not self.is_over:
            self._recorder.ended(returncode)
            self._recorder.close()
            self._check()
            self.is_over = True

    def _check(self) -> None:
        error = self._recorder.error
        if error is not None and not self.is_over:
            self.is_over = True
            self._say(f"the recording ends before the session: {error.strerror}")
