"""The tap as a program: ``program.py CLI FOLDER HOW [FLAGS...]``, which runs ``CLI`` with the flags.

The tap passes all bytes on unchanged, without splitting them into lines. FOLDER is for a recording, or empty. HOW
is ``plain`` or ``redacted``.

Python runs this file as a script that imports only the modules it needs. Importing the package takes 0.1 s, which would
delay every start of the CLI. To record, the tap imports the package while the CLI is starting.

This table compares ways to pass bytes on (two cores, CPython 3.11, Linux 6.18, blocks of 64 KiB). The speed is relative
to a pipe without a tap, at 5.0 GB/s:

==============================  =====  ================
way                             speed  CPU seconds a GB
==============================  =====  ================
read and write, 64 KiB          0.54   0.17
read and write, 256 KiB         0.57   0.17
read and write, 1 MiB           0.51   0.20
splice                          0.78   0.05
splice, pipes of 1 MiB          0.86   0.04
==============================  =====  ================

So without a recording, the tap uses splice and pipes of 1 MiB, which takes 0.06 CPU seconds per GB.

Recording takes 0.4 CPU seconds per GB, including 0.25 to 0.33 for the kernel to write the file. On the same busy
machine, three ways to record were compared: ``tee`` and two splices (to the host and into the file) took 0.46 CPU
seconds per GB, a read and two writes took 0.67, and a thread that writes the file took 0.85. So the tap records large
amounts with ``tee``, which takes 2.9 times as long as the pipe without a tap, instead of 4.9 times.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from collections import deque
from contextlib import suppress
from time import monotonic

TYPE_CHECKING = False  # typing is slow to import, but not needed at run time
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from claude_wire_kit.tap.recording import Recording

#: Maximum bytes of output that the host has not read yet. Above it the CLI waits, as with a full pipe.
QUEUE_BYTES = 256 * 1024 * 1024
#: If the host reads nothing for this many seconds, the tap reads the CLI's output into memory.
RESCUE_SECONDS = 0.01
#: Maximum bytes in one read.
READ_BYTES = 256 * 1024
#: Maximum bytes in one write to a descriptor that may block. A writable pipe has room for this many bytes.
ATOMIC_BYTES = 4096
#: If a read returns this many bytes, the next bytes are copied in the kernel (``tee`` and ``splice``).
MUCH_BYTES = 64 * 1024
#: Maximum bytes in one splice, and the size of the CLI's pipes.
SPLICE_BYTES = 1024 * 1024

#: Signals that the tap does not pass on. They terminate or stop the tap, report its own faults, or only concern this
#: process.
OWN = [
    *("KILL", "STOP", "TSTP", "TTIN", "TTOU", "CONT", "CHLD", "PIPE", "XFSZ", "XCPU"),
    *("SEGV", "BUS", "FPE", "ILL", "TRAP", "ABRT", "SYS", "WINCH", "URG"),
]
PASSED_ON = signal.valid_signals() - {getattr(signal, f"SIG{name}", 0) for name in OWN}
#: ``si_code`` of a signal from the terminal. The CLI is in the same process group, so it also gets the signal.
FROM_KERNEL = 0x80
PR_SET_PDEATHSIG = 1

#: The environment variable that counts nested taps, to stop a tap that starts itself because of a wrong ``--cli``.
DEPTH = "CLAUDE_WIRE_TAP_DEPTH"
MAX_DEPTH = 8
#: The exit code that shells use for a program that cannot run.
CANNOT_RUN = 126


def main(argv: Sequence[str]) -> None:
    """Run the tap, and exit like the CLI: with the same exit code, or by the same signal."""
    _, cli, folder, how, *flags = argv
    depth = os.environ.get(DEPTH, "0")
    os.environ[DEPTH] = str(int(depth) + 1) if depth.isdecimal() else "1"
    if os.environ[DEPTH] == str(MAX_DEPTH + 1):
        _say("the tap would start itself: pass the path of the CLI with --cli")
        os._exit(CANNOT_RUN)
    if flags in (["-v"], ["--version"]):  # SDKs ask for it before each session
        folder = ""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # fill the numbers of closed standard streams, so pipes do not get these numbers
    os.close(spare)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    began = monotonic()
    child = Child([cli, *flags], mask, with_stderr=bool(folder))
    recording = _recording(folder, how, [cli, *flags], began) if folder else None
    pumps = [Pump(0, child.stdin, 0, recording), Pump(child.stdout, 1, QUEUE_BYTES, recording)]
    if child.stderr >= 0:
        pumps.append(Pump(child.stderr, 2, 0, recording))
    status = Relay(child, pumps, recording).run()
    if os.WIFSIGNALED(status):
        _die_by(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _recording(folder: str, how: str, argv: Sequence[str], began: float) -> Recording | None:
    # Python was started with -I, so the path of the package is missing.
    sys.path.append(os.path.abspath(__file__).rpartition("/claude_wire_kit/")[0])
    try:
        from claude_wire_kit.tap.recording import Recording, RedactedRecording

        return (Recording if how == "plain" else RedactedRecording)(folder, argv, began, _say)
    except Exception as error:  # a failed recording must not end the session
        _say(f"nothing is recorded in {folder}: {getattr(error, 'strerror', None) or error}")
        return None


def _say(text: str) -> None:
    """Print a message on standard error. If that would block or fails, drop the message."""
    poller = select.poll()
    poller.register(2, select.POLLOUT)
    with suppress(OSError):
        if poller.poll(0):
            os.write(2, f"claude-wire tap: {text}\n".encode(errors="backslashreplace")[:ATOMIC_BYTES])


def _die_by(number: int) -> None:
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no second core dump after the CLI's
    if number == signal.SIGKILL:
        os.kill(os.getpid(), number)
    signal.signal(number, signal.SIG_DFL)
    # Send the signal to this thread. Otherwise the thread that waits for signals might take it.
    signal.pthread_kill(threading.get_ident(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


class Child:
    """The CLI process, and our ends of its pipes.

    Args:
        argv: the command line of the CLI.
        mask: the signals that are blocked in the CLI.
        with_stderr: whether to make the CLI's standard error a pipe. Otherwise the CLI writes to ours.
    """

    stdin: int
    stdout: int
    #: -1 if the CLI writes to our standard error.
    stderr: int

    def __init__(self, argv: Sequence[str], mask: set[Any], *, with_stderr: bool) -> None:
        #: The wait status of the exited CLI, from ``os.waitpid``.
        self.status: int | None = None
        self._reaping = threading.Lock()
        its_in, self.stdin = os.pipe()
        self.stdout, its_out = os.pipe()
        self.stderr, its_err = os.pipe() if with_stderr else (-1, 2)
        prctl, tap = _find_in_libc("prctl"), os.getpid()
        # fork() is safe here, because this process still has only one thread. subprocess cannot do all of the steps
        # between fork and exec.
        self.pid: int = os.fork()
        if self.pid == 0:
            try:
                if prctl is not None:
                    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                    if os.getppid() != tap:  # the tap has already exited
                        os._exit(CANNOT_RUN)
                for fd, number in (its_in, 0), (its_out, 1), (its_err, 2):
                    if fd != number:
                        os.dup2(fd, number)
                for name in "SIGPIPE", "SIGXFSZ":  # Python ignores these signals, and the CLI would inherit this
                    signal.signal(getattr(signal, name), signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                os.execv(argv[0], list(argv))
            except OSError as error:
                _say(f"{argv[0]} cannot be run: {error.strerror}")
            finally:
                os._exit(CANNOT_RUN)
        for fd in (its_in, its_out, its_err):
            if fd > 2:
                os.close(fd)

    def reap(self) -> bool:
        """If the CLI has exited, reap it and return True."""
        with self._reaping:
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = status
        return self.status is not None

    def send(self, number: int) -> bool:
        """Send a signal to the CLI; the number 0 sends none. Return False if the CLI has already exited."""
        with self._reaping:  # the pid cannot be reused while the CLI is not reaped
            if self.status is None:
                os.kill(self.pid, number)
            return self.status is None


def _find_in_libc(name: str) -> Callable[..., int] | None:
    """Return a function of libc that Python does not have; None if the system is not Linux or lacks the function.

    Without ``prctl``, the CLI outlives a killed tap until it notices that its streams are closed.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)


class Pump:
    """Passes bytes on in one direction.

    Args:
        source, target: descriptors. The pump closes them.
        most: maximum bytes of data waiting for the target. With 0, the pump only reads while no data is waiting.
        recording: gets all data. The smaller of the two descriptors identifies the stream.
    """

    def __init__(self, source: int, target: int, most: int, recording: Recording | None) -> None:
        self._stream = min(source, target)
        self._recording = recording
        self.source: int = source
        self.target: int = target
        self._most = most
        # The pieces that are waiting for the target, their size in bytes, and how many bytes of the first are written.
        self._waiting: deque[bytearray] = deque()
        self._size = self._written = 0
        # The time at which a write found the target full; None while the target has room.
        self._full_since: float | None = None
        self._is_direct = target != 2 and _never_blocks(target)
        # splice fails for some targets, such as a file opened for appending. Then the pump reads and writes.
        self._splices = self._is_direct and most > 0 and recording is None and hasattr(os, "splice")
        # The number of bytes that are recorded but not passed on yet.
        self._ahead = 0
        # True if the last read was large.
        self._is_much = False
        self._copies: tuple[int, int] | None = None
        if self._is_direct and most > 0 and recording is not None and recording.takes_pipes and _tee is not None:
            self._copies = os.pipe()
            _widen(self._copies[0])
        if most:
            _widen(source)
            _widen(target)

    def add_wanted(self, wanted: dict[int, int], *, now: float) -> None:
        """Add the descriptors to poll, with their events. An event of 0 only reports that the target was closed."""
        if self.source >= 0 and self._size < (self._most or 1) and not self.waits_for_target(now):
            wanted[self.source] = select.POLLIN
        if self.target >= 0:
            wanted[self.target] = 0 if self._full_since is None else select.POLLOUT

    def waits_for_target(self, now: float) -> bool:
        """Return True while the target is full, and the pump does not read into memory yet (:data:`RESCUE_SECONDS`)."""
        return self._most > 0 and self._full_since is not None and now - self._full_since < RESCUE_SECONDS

    def handle_event(self, fd: int, event: int) -> None:
        """Read or write, depending on an event of ``poll``."""
        if fd == self.source:
            self.read()
        elif fd == self.target:
            if event & select.POLLOUT:
                self._write()
            elif event:  # the target's reader closed it
                self.close()

    def read(self) -> int:
        """Read once, and write as much as possible.

        Returns the number of bytes that were read: 0 at the end of the source, -1 if no bytes are available.
        """
        if self._splices and self._full_since is None:
            try:
                size = os.splice(self.source, self.target, SPLICE_BYTES, flags=_NOT_BLOCKING)
            except BlockingIOError:
                self._full_since = monotonic()
                return -1
            except BrokenPipeError:
                self.close()
                return 0
            except OSError:
                self._splices = False
            else:
                if not size:
                    self.end()
                return size
        if self._is_much and self._copies is not None and self._full_since is None:
            return self._pass_in_kernel(*self._copies)
        try:
            data = os.read(self.source, READ_BYTES)
        except OSError:  # the terminal or the connection closed; the CLI sees the end of its input
            data = b""
        if not data:
            self.end()
            return 0
        self._is_much = len(data) >= MUCH_BYTES
        self._forward(data)
        if self._recording is not None:
            if self._ahead < len(data):
                self._recording.put(self._stream, data[self._ahead :])
            self._ahead = max(0, self._ahead - len(data))
        return len(data)

    def _pass_in_kernel(self, copy: int, copies: int) -> int:
        """Pass on and record the available bytes in the kernel, without copying them into this process."""
        assert _tee is not None
        assert self._recording is not None
        size = 0
        if not self._ahead:
            size = self._ahead = _tee(self.source, copies, SPLICE_BYTES, _NOT_BLOCKING)
            if size <= 0:  # the end, or tee does not support these descriptors
                self._ahead, self._is_much = 0, False
                return -1
            self._is_much = size >= MUCH_BYTES
        passed = 0
        try:
            passed = os.splice(self.source, self.target, self._ahead, flags=_NOT_BLOCKING)
            self._ahead -= passed
        except BlockingIOError:
            self._full_since = monotonic()
        except OSError:
            self._copies = None  # splice does not support the target, or the target is closed and the next write fails
        if size:
            self._recording.put_from(copy, size)
            if self._recording.is_over:
                self._copies = None
        return passed or -1

    def _forward(self, data: bytes) -> None:
        if self._full_since is None:
            self._full_since = monotonic()
            if self._is_direct:
                try:
                    written = os.write(self.target, data)
                except BlockingIOError:
                    written = 0
                except OSError:
                    self.close()
                    return
                if written == len(data):
                    self._full_since = None
                    return
                data = data[written:]
        if self._waiting and len(self._waiting[-1]) + len(data) <= READ_BYTES:
            self._waiting[-1] += data
        else:
            self._waiting.append(bytearray(data))
        self._size += len(data)

    def read_rest(self) -> None:
        """Read the bytes that the exited CLI left in its pipe, and stop. The CLI's children may keep the pipe open."""
        self._copies = None
        if self.source >= 0:
            left = _size(self.source)
            while left > 0 and (size := self.read()):
                left -= max(size, 0)
            self.end()

    def _write(self) -> None:
        try:
            while self._waiting:
                with memoryview(self._waiting[0]) as view:
                    end = None if self._is_direct else self._written + ATOMIC_BYTES
                    written = os.write(self.target, view[self._written : end])
                self._written += written
                self._size -= written
                if self._written == len(self._waiting[0]):
                    self._waiting.popleft()
                    self._written = 0
                if not self._is_direct:
                    break
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if not self._waiting:
            self._full_since = None
            if self.source < 0:
                self.close()

    def end(self) -> None:
        """Stop reading. Close the target once all waiting data is written."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1
        if not self._waiting:
            self.close()

    def close(self) -> None:
        """Close both ends, and drop the waiting data. The program that writes to the source gets an error."""
        self._waiting.clear()
        for fd in (self.source, self.target):
            if fd >= 0:
                with suppress(OSError):
                    if fd == 1:
                        os.set_blocking(fd, True)  # the next program may use the same pipe, and expects it to block
                    os.close(fd)
        self.source = self.target = -1


_tee = _find_in_libc("tee")
#: SPLICE_F_MOVE and SPLICE_F_NONBLOCK.
_NOT_BLOCKING = 3
_F_SETPIPE_SZ = 1031


def _never_blocks(fd: int) -> bool:
    """Make a pipe or a socket non-blocking. Return False for a terminal, whose mode other programs share."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(fd, False)
        return True
    return stat.S_ISREG(mode)


def _size(fd: int) -> int:
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def _widen(fd: int) -> None:
    import fcntl

    with suppress(OSError):  # the user's limit for pipes is reached
        fcntl.fcntl(fd, _F_SETPIPE_SZ, SPLICE_BYTES)


class Relay:
    """Runs the pumps until the CLI has exited and the host has all of its output."""

    def __init__(self, child: Child, pumps: list[Pump], recording: Recording | None) -> None:
        self._child = child
        self._pumps = pumps
        self._recording = recording
        # True if a signal arrived after the CLI exited. Then the relay ends without passing on the rest.
        self._is_over = False
        self._woken, self._wake = os.pipe()
        if recording is not None:
            recording.wake = self._wake
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        waited_for = PASSED_ON | {signal.SIGCHLD}
        wait = getattr(signal, "sigwaitinfo", signal.sigwait)  # macOS has no sigwaitinfo
        while True:
            told = wait(waited_for)
            number, code = (told, 0) if isinstance(told, int) else (told.si_signo, told.si_code)
            if number != signal.SIGCHLD:
                if self._child.send(0 if code == FROM_KERNEL else number):
                    continue
                self._is_over = True
            os.write(self._wake, b"!")

    def run(self) -> int:
        """Pass bytes on until the end. Returns the CLI's wait status, as from ``os.waitpid``."""
        child, pumps, recording = self._child, self._pumps, self._recording
        while not self._is_over and (child.status is None or any(pump.target >= 0 for pump in pumps)):
            wanted = {self._woken: select.POLLIN}
            now = monotonic()
            for pump in pumps:
                pump.add_wanted(wanted, now=now)
            poller = select.poll()
            for fd, event in wanted.items():
                poller.register(fd, event)
            is_waiting = any(pump.waits_for_target(now) for pump in pumps)
            for fd, event in poller.poll(RESCUE_SECONDS * 1000 if is_waiting else None):
                if fd == self._woken:
                    os.read(fd, READ_BYTES)
                    if child.reap():
                        pumps[0].close()
                        for pump in pumps[1:]:
                            pump.read_rest()
                else:
                    for pump in pumps:
                        pump.handle_event(fd, event)
        assert child.status is not None
        if recording is not None:
            recording.end(os.waitstatus_to_exitcode(child.status))
            while not self._is_over and not recording.is_over:
                os.read(self._woken, READ_BYTES)
        return child.status


if __name__ == "__main__":
    main(sys.argv)
