"""Child processes and host processes for tests, and checks of a process's descriptors, threads and children.

A child runs a few lines of Python and starts in about 10 ms (:func:`python`). A host is a Python process that uses the
package; tests interrupt it, kill it or let it end (:class:`Host`).
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest

from patience import MARK

__all__ = [
    "ASKS",
    "GRACE",
    "LADDER",
    "PRELUDE",
    "Held",
    "Host",
    "children_of",
    "exists",
    "held",
    "in_own_process",
    "linux_only",
    "nothing_left",
    "python",
    "wait_until",
]

#: The checks of descriptors, threads and children read /proc.
linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

#: Code that runs first in every host: imports, and ``say``.
PRELUDE = """\
import json, os, signal, sys, time
def say(**message):
    data = json.dumps(message).encode() + b"\\n"
    while data:
        data = data[os.write(1, data):]
"""

#: Code that runs first in every child. It does not import ``json`` and ``signal``: they take as long as the start of
#: the interpreter, so ``python`` imports them only if the child's code names them.
CHILDS_PRELUDE = """\
import os, sys, time
from _json import encode_basestring_ascii
def dumps(value):
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join([encode_basestring_ascii(key) + ": " + dumps(item) for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumps(item) for item in value]) + "]"
    return "null" if value is None else str(value).lower()
def say(**message):
    data = dumps(message).encode() + b"\\n"
    while data:
        data = data[os.write(1, data):]
"""


def python(code: str, *arguments: object) -> list[str]:
    """Return the command line of a child that runs this code."""
    named = "".join(f"import {module}\n" for module in ("json", "signal") if module in code)
    return [sys.executable, "-S", "-c", CHILDS_PRELUDE + named + code, *map(str, arguments)]


#: A session with ``can_use_tool`` accepts only a process with these arguments.
ASKS = ("--permission-prompt-tool", "stdio")

#: Seconds between the steps that end a process, in the tests of these steps. A child may need longer to write a line;
#: see ``patience``.
GRACE = 0.05

#: A child that ends at the end of its input, at SIGTERM or at neither, as its second argument says. It logs each of
#: these events to the file that its first argument names.
LADDER = f"""{MARK}
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def met(what):
    os.write(log, what.encode() + b"\\n")
def on_term(number, frame):
    met("term")
    if sys.argv[2] != "kill":
        sys.exit(143)
signal.signal(signal.SIGTERM, on_term)
signal.signal(signal.SIGINT, signal.SIG_IGN)
say(type="ready", pid=os.getpid())
signal.alarm(150)  # whatever its host has come to
while os.read(0, 65536):
    pass
met("eof")
while sys.argv[2] != "eof":
    signal.pause()
"""


# --- descriptors, threads and children --------------------------------------------------------------------------------


class Held(NamedTuple):
    """The open descriptors, threads and children of this process."""

    #: Open descriptor -> its target in /proc/self/fd.
    descriptors: dict[int, str]
    threads: int
    #: Process ids of the children, including zombies.
    children: set[int]


def held() -> Held:
    descriptors = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself is already closed
            descriptors[int(number)] = os.readlink(f"/proc/self/fd/{number}")
    return Held(descriptors, len(os.listdir("/proc/self/task")), children_of(os.getpid()))


def children_of(pid: int) -> set[int]:
    """Return the process ids of a process's children, including zombies."""
    children = set()
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                # The process name, in parentheses, may contain anything. The state and the parent's pid follow it.
                _, parent = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) == pid:
                    children.add(int(entry))
    return children


def in_own_process(function: Callable[..., object], *arguments: str) -> None:
    """Call a function of a test module in a new process, where other tests cannot interfere."""
    folder = str(Path(function.__code__.co_filename).parent)
    code = (
        "import importlib, sys; folder, module, name, *rest = sys.argv[1:]; sys.path.append(folder); "
        "getattr(importlib.import_module(module), name)(*rest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, folder, function.__module__, function.__name__, *arguments],
        cwd=Path(__file__).parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300.0,
    )
    assert done.returncode == 0, done.stderr


def exists(pid: int) -> bool:
    """Return whether a process exists; a zombie counts."""
    return os.path.exists(f"/proc/{pid}")


def heed_hangups() -> None:
    """Before the start of a child, make SIGHUP end the child, even if the tests run under ``nohup``."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def ignore_hangups() -> None:
    """Before the start of a child, make the child ignore SIGHUP, as ``nohup`` does."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait, without an event loop, until another thread or process makes the condition true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "what was waited for did not happen"
        time.sleep(0.005)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Check that the block leaves no new descriptors, threads or children."""
    _warm_up()
    gc.collect()
    before = held()

    def left() -> Held:
        now = held()
        return Held(
            dict(now.descriptors.items() - before.descriptors.items()),
            max(now.threads - before.threads, 0),
            now.children - before.children,
        )

    yield
    gc.collect()
    nothing = Held({}, 0, set())
    until = time.monotonic() + 60.0
    # A thread that has just ended stays in /proc for a moment.
    while left() != nothing and time.monotonic() < until:
        time.sleep(0.005)
    assert left() == nothing, left()


_warm = False


def _warm_up() -> None:
    """Create everything that exists once per process: the drain's thread, and the objects that event loops keep."""
    global _warm
    if _warm:
        return
    _warm = True
    import async_backends
    from claude_wire import open_process

    async def main() -> None:
        async with open_process(python("os.read(0, 1)")):
            pass

    for backend in async_backends.BACKENDS:
        backend.run(main)


# --- hosts ------------------------------------------------------------------------------------------------------------


class Host:
    """A Python process that runs this code. It is killed at the end of the block, or after a minute.

    The test reads its standard output as lines of JSON. Its standard error is kept.
    """

    def __init__(self, code: str, *arguments: object) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._watchdog = threading.Timer(120.0, self.popen.kill)
        self._watchdog.start()
        self.errors = b""
        self._reader = threading.Thread(target=self._read_errors)
        self._reader.start()

    def _read_errors(self) -> None:
        assert self.popen.stderr is not None
        self.errors = self.popen.stderr.read()

    def says(self) -> Any:
        """Return the next line of its standard output, decoded from JSON."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            self._reader.join()
            pytest.fail(f"the host has ended: {self.errors.decode(errors='replace')}")
        return json.loads(line)

    def interrupt(self) -> None:
        self.popen.send_signal(signal.SIGINT)

    def ends(self) -> int:
        """Wait for its end and return its exit code. ``errors`` then has all of its standard error."""
        code = self.popen.wait()
        self._reader.join()
        return code

    def __enter__(self) -> Host:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.popen.kill()
        self.popen.wait()
        self._watchdog.cancel()
        self._watchdog.join()
        self._reader.join()
        for pipe in (self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            pipe.close()
