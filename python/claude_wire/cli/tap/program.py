"""The tap as a program: ``program.py CLI [FLAGS...]``, which runs ``CLI`` with the flags.

Knows processes, descriptors and signals; not lines. What goes over the streams is passed on byte for byte.

Python runs this file by itself, and it imports only what the relay needs: the package takes 0.1 s to import, and every
start of the CLI would wait for it.

Where it pays, measured against a bare pipe of 5.0 GB/s (two cores, CPython 3.11, Linux 6.18, blocks of 64 KiB): read
and write of 64 KiB reach 0.54 of its speed and take 0.17 CPU seconds a GB, of 256 KiB 0.57 and of 1 MiB 0.51, with
pipes of 1 MiB no more; splice 0.78 and 0.05, of 1 MiB with a pipe of 1 MiB 0.86. So what nobody records is spliced.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False  # typing is slow to import, and nothing of it is needed here at run time
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["QUEUE_BYTES", "main"]

#: Most bytes of output that wait for a host that does not read. Above it the CLI waits, as with a full pipe.
QUEUE_BYTES = 256 * 1024 * 1024
#: What one read takes, and one write to a descriptor that may block: a pipe that is writable has room for as many.
READ_BYTES = 64 * 1024
ATOMIC_BYTES = 4096
#: What one splice moves, and what the CLI's pipe holds then.
SPLICE_BYTES = 1024 * 1024

#: Signals that end or stop the tap itself, tell of its own faults, or mean nothing to another process.
OWN = [
    *("KILL", "STOP", "TSTP", "TTIN", "TTOU", "CONT", "CHLD", "PIPE", "XFSZ", "XCPU"),
    *("SEGV", "BUS", "FPE", "ILL", "TRAP", "ABRT", "SYS", "WINCH", "URG"),
]
PASSED_ON = signal.valid_signals() - {getattr(signal, f"SIG{name}", 0) for name in OWN}
#: ``si_code`` of a signal that the terminal sent. The CLI has it too, being in the same process group.
FROM_KERNEL = 0x80
PR_SET_PDEATHSIG = 1

#: Counts the taps between a CLI and who started the first of them: a tap may have been told to run itself.
DEPTH = "CLAUDE_WIRE_TAP_DEPTH"
MOST_DEPTH = 8
#: What a shell reports for a program that it cannot run.
CANNOT_RUN = 126


def main(argv: Sequence[str]) -> None:
    """Be the tap, and end as the CLI ends: with its exit code, or by its signal."""
    _, cli, *flags = argv
    depth = os.environ.get(DEPTH, "0")
    os.environ[DEPTH] = str(int(depth) + 1) if depth.isdecimal() else "1"
    if os.environ[DEPTH] == str(MOST_DEPTH + 1):
        _say("it runs itself, in place of the CLI: say where the CLI is, with --cli")
        os._exit(CANNOT_RUN)
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a standard stream was closed: no pipe takes its place
    os.close(spare)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    child = Child([cli, *flags], mask, with_stderr=False)
    pumps = [Pump(0, child.stdin, 0), Pump(child.stdout, 1, QUEUE_BYTES)]
    if child.stderr >= 0:
        pumps.append(Pump(child.stderr, 2, 0))
    relay = Relay(child, pumps)
    status = relay.run()
    if os.WIFSIGNALED(status):
        _die_by(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _say(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"claude-wire tap: {text}\n".encode(errors="backslashreplace"))


def _die_by(number: int) -> None:
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the CLI has left one
    if number == signal.SIGKILL:
        os.kill(os.getpid(), number)
    signal.signal(number, signal.SIG_DFL)
    # To this thread: one to the process might be taken by the thread that waits for signals.
    signal.pthread_kill(threading.get_ident(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


class Child:
    """The CLI, and our ends of its pipes.

    Args:
        argv: its command line.
        mask: the signals that are blocked in it.
        with_stderr: whether its standard error is a pipe as well; else it is ours.
    """

    stdin: int
    stdout: int
    #: -1 if it is ours.
    stderr: int

    def __init__(self, argv: Sequence[str], mask: set[Any], *, with_stderr: bool) -> None:
        #: How it has ended, as ``os.waitpid`` has it.
        self.status: int | None = None
        self._reaping = threading.Lock()
        its_in, self.stdin = os.pipe()
        self.stdout, its_out = os.pipe()
        self.stderr, its_err = os.pipe() if with_stderr else (-1, 2)
        prctl, tap = _prctl(), os.getpid()
        # By hand: this process has one thread yet, and what is done in between is more than subprocess offers.
        self.pid: int = os.fork()
        if self.pid == 0:
            try:
                if prctl is not None:
                    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                    if os.getppid() != tap:  # it has ended in the meantime
                        os._exit(CANNOT_RUN)
                for fd, number in (its_in, 0), (its_out, 1), (its_err, 2):
                    if fd != number:
                        os.dup2(fd, number)
                for name in "SIGPIPE", "SIGXFSZ":  # Python ignores them
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
        """Whether it has ended."""
        with self._reaping:
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = status
        return self.status is not None

    def send(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        with self._reaping:  # else its number might be another process's by now
            if self.status is None:
                os.kill(self.pid, number)


def _prctl() -> Callable[[int, int], int] | None:
    """Elsewhere than on Linux a CLI whose tap is killed ends when its streams do."""
    if sys.platform != "linux":
        return None
    import ctypes

    return ctypes.CDLL(None).prctl


class Pump:
    """Passes bytes on in one direction.

    Args:
        source, target: descriptors. The pump closes them.
        most: bytes that may wait for the target. With 0 it reads when nothing waits.
    """

    def __init__(self, source: int, target: int, most: int) -> None:
        self.source: int = source
        self.target: int = target
        self._most = most
        #: What waits for the target.
        self.waiting: bytearray = bytearray()
        self._is_direct = target != 2 and _never_blocks(target)
        # A file that others append to cannot be spliced to, nor one of another system.
        self._splices = self._is_direct and most > 0 and hasattr(os, "splice")
        if self._splices:
            _widen(source)

    def wishes(self) -> list[tuple[int, int]]:
        """The descriptors to wait for, and for what. That nobody reads the target any more is always told."""
        wishes: list[tuple[int, int]] = []
        if self.source >= 0 and len(self.waiting) < (self._most or 1):
            wishes.append((self.source, select.POLLIN))
        if self.target >= 0:
            wishes.append((self.target, select.POLLOUT if self.waiting else 0))
        return wishes

    def obey(self, fd: int, event: int) -> None:
        """Read or write, after what was waited for."""
        if fd == self.source:
            self.read()
        elif fd == self.target:
            if event & select.POLLOUT:
                self._write()
            elif event:  # nobody reads it
                self.close()

    def read(self) -> int:
        """Read once, and write what can be written. Returns how much was read; 0 at the end."""
        if self._splices and not self.waiting:
            try:
                size = os.splice(self.source, self.target, SPLICE_BYTES, flags=_NOT_BLOCKING)
            except BlockingIOError:
                pass  # the target is full
            except BrokenPipeError:
                self.close()
                return 0
            except OSError:
                self._splices = False
            else:
                if not size:
                    self.end()
                return size
        data = os.read(self.source, READ_BYTES)
        if not data:
            self.end()
            return 0
        written = 0
        if self._is_direct and not self.waiting:
            try:
                written = os.write(self.target, data)
            except BlockingIOError:
                pass
            except OSError:
                self.close()
                return 0
        if written < len(data):
            self.waiting += data[written:]
        return len(data)

    def read_rest(self) -> None:
        """Read what a CLI that has ended left in its pipe. Nobody waits for what it has started, which may go on."""
        if self.source >= 0:
            left = _size(self.source)
            while left > 0 and (size := self.read()):
                left -= size
            self.end()

    def _write(self) -> None:
        try:
            with memoryview(self.waiting) as view:
                written = os.write(self.target, view[: READ_BYTES if self._is_direct else ATOMIC_BYTES])
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        del self.waiting[:written]
        if self.source < 0 and not self.waiting:
            self.close()

    def end(self) -> None:
        """Read no more: the target ends when it has got all."""
        if self.source >= 0:
            os.close(self.source)
            self.source = -1
        if not self.waiting:
            self.close()

    def close(self) -> None:
        """Close both ends; what waits is gone. Whoever still writes finds out, as with a bare pipe."""
        self.waiting.clear()
        for fd in (self.source, self.target):
            if fd >= 0:
                with suppress(OSError):
                    if fd == 1:
                        os.set_blocking(fd, True)  # a shell's pipe goes on to its next program
                    os.close(fd)
        self.source = self.target = -1


#: SPLICE_F_MOVE and SPLICE_F_NONBLOCK.
_NOT_BLOCKING = 3
_F_SETPIPE_SZ = 1031


def _never_blocks(fd: int) -> bool:
    """Have a pipe or a socket not block. A file never does. Others may: a terminal is shared with other programs."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(fd, False)
        return True
    return stat.S_ISREG(mode)


def _size(fd: int) -> int:
    """How many bytes are in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def _widen(fd: int) -> None:
    import fcntl

    with suppress(OSError):  # more than this user may have
        fcntl.fcntl(fd, _F_SETPIPE_SZ, SPLICE_BYTES)


class Relay:
    """Runs the pumps until the CLI has ended and its host has all of its output."""

    def __init__(self, child: Child, pumps: list[Pump]) -> None:
        self._child = child
        self._pumps = pumps
        #: Set by a signal that came when the CLI had ended: nobody waits for the rest.
        self._is_over = False
        self._woken, self._wake = os.pipe()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        waited_for = PASSED_ON | {signal.SIGCHLD}
        wait = getattr(signal, "sigwaitinfo", signal.sigwait)  # macOS does not tell who sent it
        while True:
            told = wait(waited_for)
            number, code = (told, 0) if isinstance(told, int) else (told.si_signo, told.si_code)
            if number != signal.SIGCHLD:
                if self._child.status is None:
                    if code != FROM_KERNEL:
                        self._child.send(number)
                    continue
                self._is_over = True
            os.write(self._wake, b"!")

    def run(self) -> int:
        """Pass on until the end, and return how the CLI ended, as ``os.waitpid`` has it."""
        poller = select.poll()
        registered: dict[int, int] = {}
        child, pumps = self._child, self._pumps
        while not self._is_over and (child.status is None or any(pump.target >= 0 for pump in pumps)):
            wanted = {self._woken: select.POLLIN}
            for pump in pumps:
                wanted.update(pump.wishes())
            if wanted != registered:
                for fd in registered.keys() - wanted.keys():
                    poller.unregister(fd)
                for fd, event in wanted.items():
                    if registered.get(fd) != event:
                        poller.register(fd, event)
                registered = wanted
            for fd, event in poller.poll():
                if fd == self._woken:
                    os.read(fd, READ_BYTES)
                    if child.reap():
                        pumps[0].close()
                        for pump in pumps[1:]:
                            pump.read_rest()
                else:
                    for pump in pumps:
                        pump.obey(fd, event)
        assert child.status is not None
        return child.status


if __name__ == "__main__":
    main(sys.argv)
