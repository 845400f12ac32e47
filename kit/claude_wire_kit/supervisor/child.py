"""A CLI that the supervisor runs. Its pipes never block, and the kernel kills it when the supervisor exits.

The kernel kills the CLI (PR_SET_PDEATHSIG) when the thread that spawned it exits, not when the process exits. So
the supervisor spawns all CLIs in the thread of its event loop.

The kernel reuses pids, so before sending a signal, this module proves that the process belongs to the supervisor:

- A child of this supervisor: until the supervisor reaps it, the kernel keeps its pid and its group number.
- A process that an earlier supervisor left: either the pid still has the recorded start time, or some process in the
  session and group with this number has the CLI's mark in its environment. Each CLI has its own random mark, and all
  its descendants inherit it. No other process can enter that session, and the kernel never reuses the number of a
  session that exists. So one process with the mark proves the whole session.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import socket
import struct
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from claude_wire_kit.supervisor.errors import SupervisorError

if TYPE_CHECKING:
    import asyncio

_PR_SET_PDEATHSIG = 1
#: The environment variable that holds the mark of a CLI (see the module). All processes that the CLI starts inherit it.
MARK_VARIABLE = "CLAUDE_WIRE_SUPERVISOR_PROCESS"
#: Seconds between killing a process group and looking again for survivors.
PASS_SECONDS = 0.05
#: How many times to search one group for survivors: a process may start another one just before SIGKILL.
MAX_PASSES = 100


class Child:
    """A child process that leads a new session and process group. Its three pipes never block.

    Args:
        argv: the command line.
        cwd: the working directory.
        env: the whole environment.
        descriptors: the child's soft limit for open descriptors. The supervisor raised its own limit.

    Attributes:
        stdin, stdout, stderr: the supervisor's ends of the pipes. The first two are None once closed.
        pidfd: a descriptor that becomes readable when the process exits.
        began: the start time, from :func:`began_at`.
        mark: the random mark in the child's environment; see the module.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], descriptors: int) -> None:
        import ctypes  # the commands import this module, but do not start children

        self.mark: str = os.urandom(16).hex()
        supervisor, prctl = os.getpid(), ctypes.CDLL(None).prctl
        limit = descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1]

        def die_with_supervisor() -> None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:  # the supervisor has already exited
                os._exit(1)
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)

        self._popen: subprocess.Popen[bytes] = subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**env, MARK_VARIABLE: self.mark},
            start_new_session=True,
            preexec_fn=die_with_supervisor,  # the supervisor has one thread
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.stdin: int | None = self._popen.stdin.fileno()
        self.stdout: int | None = self._popen.stdout.fileno()
        self.stderr: int = self._popen.stderr.fileno()
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)
        self.pid: int = self._popen.pid
        #: True after SIGKILL was sent.
        self.is_killed: bool = False
        self.pidfd: int = -1
        self._insisting: dict[int, asyncio.TimerHandle] = {}
        self._is_closed = False
        try:
            self.pidfd = os.pidfd_open(self.pid)
            self.began: int | None = began_at(self.pid)
            if self.began is None:
                raise OSError(errno.EMFILE, "the start of the process cannot be read", f"/proc/{self.pid}/stat")
        except BaseException:
            self.close()
            raise

    def insist(self, grace: float) -> None:
        """Send SIGTERM after ``grace`` seconds, and SIGKILL after another ``grace`` seconds. A later call can only
        shorten the wait.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 2 * grace)):
            timer = self._insisting.get(number)
            if timer is None or loop.time() + seconds < timer.when():
                if timer is not None:
                    timer.cancel()
                self._insisting[number] = loop.call_later(seconds, self.signal, number)

    def poll(self) -> int | None:
        """Return the exit code, negative if a signal killed the process; None while it runs. Reap an exited process."""
        return self._popen.poll()

    def end_input(self) -> None:
        """Close the input. The CLI then finishes its work and exits. A second call does nothing."""
        if self._popen.stdin is not None and self.stdin is not None:
            self._popen.stdin.close()
            self.stdin = None

    def end_output(self) -> None:
        """Close the output after the CLI has closed its end. A second call does nothing."""
        if self._popen.stdout is not None:
            self._popen.stdout.close()
            self.stdout = None

    def signal(self, number: int) -> None:
        """Send a signal to the process and its whole process group, unless the process has been reaped."""
        self.is_killed |= number == signal.SIGKILL
        with suppress(ProcessLookupError, PermissionError, ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises if this is not our child
            os.killpg(self.pid, number)

    def close(self) -> None:
        """Close all descriptors. Kill the process, with its group, if it still runs. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        for timer in self._insisting.values():
            timer.cancel()
        self.signal(signal.SIGKILL)
        self.end_input()
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self._popen.wait()  # SIGKILL was sent


def began_at(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot, or None if no process has this pid. A later process with
    the same pid has another start time.
    """
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def is_alive(pid: int, began: int | None) -> bool:
    """Return True if a process with this pid and start time runs. A zombie does not count."""
    fields = _stat(pid)
    return fields is not None and int(fields[19]) == began and fields[0] not in (b"Z", b"X")


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of ``/proc/PID/stat`` after the program's name."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The program's name is in parentheses, and may itself contain spaces and parentheses.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > 19 else None


def end_leftover(pid: int, began: int | None, mark: str) -> bool:
    """Kill the processes that an earlier supervisor's CLI left: the CLI and its group. Return False if none was left.

    Args:
        pid, began, mark: from the :class:`Child` of the CLI. They must prove a process of the group (see the module).
            Otherwise the group stays alive.
    """
    found = False
    for _ in range(MAX_PASSES):
        members = _members(pid)
        try:
            if not any(_is_proved(member, pid, began, mark) for member in members):
                break
            for member, pidfd in members.items():
                # The pidfd still refers to the old process if the kernel gives the pid to another one.
                if _is_member(member, pid):
                    with suppress(ProcessLookupError, PermissionError):
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                        found = True
            select.select(list(members.values()), [], [], PASS_SECONDS)
        finally:
            for pidfd in members.values():
                os.close(pidfd)
    return found


def _members(group: int) -> dict[int, int]:
    """Return the running processes of the session and group with this number: pid -> pidfd."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and _is_member(int(name), group):
            with suppress(OSError):
                found[int(name)] = os.pidfd_open(int(name))
    return found


def _is_member(pid: int, group: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] not in (b"Z", b"X") and int(fields[2]) == int(fields[3]) == group


def _is_proved(pid: int, group: int, began: int | None, mark: str) -> bool:
    if pid == group and began is not None and began_at(pid) == began:
        return True
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return False
    return bool(mark) and f"{MARK_VARIABLE}={mark}".encode() in environment.split(b"\0")


def memory_of(groups: Collection[int]) -> int:
    """Return the resident memory in bytes of all processes in these groups."""
    stats = [_stat(int(name)) for name in os.listdir("/proc") if name.isdigit()] if groups else []
    pages = sum(int(fields[21]) for fields in stats if fields is not None and int(fields[2]) in groups)
    return pages * os.sysconf("SC_PAGE_SIZE")


def user_of(connection: socket.socket) -> int:
    """Return the id of the user at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


def require_own(connection: socket.socket) -> None:
    """Check that the supervisor at the other end of a socket runs as this user or as root. Another user could read
    everything that the client sends.

    Raises:
        SupervisorError: the supervisor runs as another user.
    """
    if hasattr(socket, "SO_PEERCRED") and (user := user_of(connection)) not in (os.geteuid(), 0):
        raise SupervisorError("refused", f"the supervisor belongs to another user, with the id {user}")


def raise_descriptors() -> None:
    """Raise this process's descriptor limit as far as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
