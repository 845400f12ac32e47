"""Record the bytes that the tap passes on. Each run of the CLI has its own folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread

from claude_wire_kit.supervisor.disk.files import private_folder
from claude_wire_kit.terminal.record import Recorder

#: Maximum size in bytes of each file in a recording. When a file reaches it, the recording ends.
FILE_BYTES = 1024 * 1024 * 1024

#: The interpreter's switch interval in seconds. It limits how long the redacting thread can delay the relay.
SWITCH_SECONDS = 0.0002

#: The streams, named by their descriptors in the CLI.
STDIN, STDOUT, STDERR = 0, 1, 2

#: Maximum bytes of chunks waiting to be redacted. Above it, the recording ends.
WAITING_BYTES = 64 * 1024 * 1024
#: The number of bytes that a waiting chunk takes besides its data.
CHUNK_BYTES = 200


class Recording:
    """Records one run of the CLI in a new folder. The first error ends the recording, and ``say`` reports it once.

    Args:
        parent: the folder in which the new folder is created.
        argv: the command line of the CLI.
        began: the CLI's start time, from :func:`time.monotonic`.
        say: called with messages for the user.

    Raises:
        OSError: the folder cannot be created, or ``parent`` is a symbolic link or writable for another user.
    """

    #: True if :meth:`put_from` may be called.
    takes_pipes: bool = True

    def __init__(self, parent: str, argv: Sequence[str], began: float, say: Callable[[str], object]) -> None:
        name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        folder = os.path.join(private_folder(parent), name)
        os.mkdir(folder, 0o700)
        #: True once the recording has ended: everything is written, and more data is ignored.
        self.is_over: bool = False
        #: If a thread writes the recording, it sends a byte to this descriptor when it ends. -1 for none.
        self.wake: int = -1
        self._say = say
        self._began = began
        self._recorder = Recorder(folder, FILE_BYTES)
        self._begin(list(argv))

    def put(self, stream: int, data: bytes) -> None:
        if not self.is_over:
            self._write(stream, data, time.monotonic())

    def put_from(self, pipe: int, size: int) -> None:
        """Record ``size`` bytes of the CLI's output from a pipe that contains exactly these bytes."""
        if not self.is_over:
            self._recorder.received_from(pipe, size, time.monotonic())
            self._check()

    def end(self, returncode: int) -> None:
        """Record the CLI's return code (negative if a signal killed it), and end the recording."""
        if not self.is_over:
            self._finish(returncode)

    def _begin(self, argv: list[str]) -> None:
        self._started(argv, os.getcwd())

    def _started(self, argv: list[str], cwd: str) -> None:
        self._recorder.started(argv, cwd, os.environ, self._began)
        self._check()

    def _write(self, stream: int, data: bytes, at: float) -> None:
        if stream == STDOUT:
            self._recorder.received(data, at)
        elif stream == STDIN:
            self._recorder.sent(data, at)
        else:
            self._recorder.stderr(data)
        self._check()

    def _finish(self, returncode: int) -> None:
        self._recorder.ended(returncode)
        self._check()
        if not self.is_over:
            self._recorder.close()
            self.is_over = True

    def _check(self) -> None:
        if self._recorder.error is not None:
            self._stop(self._recorder.error.strerror)

    def _stop(self, why: object) -> None:
        if not self.is_over:
            self.is_over = True
            self._recorder.close()
            self._say(f"the recording ends before the session: {why}")


class RedactedRecording(Recording):
    """A recording without secrets. A thread redacts, because redacting takes longer than passing bytes on."""

    takes_pipes = False

    def _begin(self, argv: list[str]) -> None:
        self._queue: SimpleQueue[tuple[int, bytes, float] | int] = SimpleQueue()
        # Counts of bytes. The relay adds to `_put`, and the thread that redacts adds to `_taken`.
        self._put = self._taken = 0
        sys.setswitchinterval(SWITCH_SECONDS)
        Thread(target=self._run, args=(argv,), daemon=True).start()

    def put(self, stream: int, data: bytes) -> None:
        if not self.is_over:
            self._put += len(data) + CHUNK_BYTES
            if self._put - self._taken > WAITING_BYTES:
                self._stop("too much waits to be redacted")
            else:
                self._queue.put((stream, data, time.monotonic()))

    def end(self, returncode: int) -> None:
        self._queue.put(returncode)

    def _run(self, argv: list[str]) -> None:
        try:
            self._redact(argv)
        except Exception as error:
            # Report only the type, because the error's text may contain a secret.
            self._stop(type(error).__name__)
        if self.wake >= 0:
            os.write(self.wake, b"!")

    def _redact(self, argv: list[str]) -> None:
        from claude_wire_kit.tap.redact import Lines, redacted_flags
        from claude_wire_kit.tap.secrets import masked_text

        self._started(redacted_flags(argv), masked_text(os.getcwd()))
        lines = {STDIN: Lines(), STDOUT: Lines()}
        while not self.is_over:
            item = self._queue.get()
            if isinstance(item, int):
                for stream, begun in lines.items():
                    self._write(stream, begun.close(), time.monotonic())
                self._finish(item)
                return
            stream, data, at = item
            # Mask every line of standard error, because it may contain anything.
            clean = b"[masked]\n" * data.count(b"\n") if stream == STDERR else lines[stream].feed(data)
            if clean:
                self._write(stream, clean, at)
            self._taken += len(data) + CHUNK_BYTES
