"""Play a recording instead of running the CLI, with an argument list or a script that contains the recording."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

from claude_wire.messages.version import PROTOCOL_VERSION
from claude_wire.support.arguments import type_of
from claude_wire.testing import faults
from claude_wire.testing.faults import Fault
from claude_wire.testing.player.files import packed
from claude_wire.testing.recording import Recording, write_private

Writes = Literal["lines", "blocks", "bytes"]


class Replay:
    """Plays a recording in a child process: a stand-in for the CLI that works with any host and any flags.

    The child plays the recorded output. Where the recorded CLI got a prompt, a control request or a control response,
    the child waits until the host sends a line of the same kind, with any content. Its answers have the ids of the
    live requests. It immediately answers a request that was not recorded at this point: with an answer to the same kind
    of request from elsewhere in the recording, or with an empty success. After its input ends, the child plays the rest
    without waiting.

    The child plays only the recorded turns. It does not answer more prompts: in a test, set a time limit, such as
    ``anyio.fail_after(10)``. If several prompts were recorded before the first result, the child waits for all of them.
    :meth:`~claude_wire.Session.ask` would then wait forever, because it sends one prompt at a time.

    With ``--input-format stream-json``, the child waits for a first prompt even if the recorded CLI got its prompt as
    an argument, and exits when its input ends. With ``--print`` or another format, it does not wait for input. Without
    these flags, it reads input if the recorded CLI did. So a host with a ``can_use_tool`` can run
    ``[*Replay(...).argv(), "--permission-prompt-tool", "stdio"]``. At the end, the child writes the recorded standard
    error and exits with the recorded code. Like the CLI, it exits with code 1 after an input line that is not JSON,
    with 143 after SIGTERM, and with 130 after SIGINT. ``--version`` prints the recorded version, or
    :data:`claude_wire.PROTOCOL_VERSION` if the recording has no version.

    Args:
        recording: a :class:`Recording`, or a recording's path.
        speed: 1.0: write at the recorded times; 10.0: ten times as fast; None: as fast as the host reads.
        writes: ``lines``: one write for each line, like the CLI; ``blocks``: blocks of 64 KiB; ``bytes``: single bytes.
        faults: the faults to inject.
        wait: False: do not wait for input, and exit even if the input is still open.

    Raises:
        ValueError: a wrong argument; a fault is beyond the end of the recording.
        TypeError: ``faults`` is not a list of faults.
        OSError: the path cannot be read.
    """

    def __init__(
        self,
        recording: Recording | str | os.PathLike[str],
        *,
        speed: float | None = None,
        writes: Writes = "lines",
        faults: Sequence[Fault] = (),
        wait: bool = True,
    ) -> None:
        if speed is not None and not 0 < speed < math.inf:
            raise ValueError("speed must be a positive number, or None for no pauses")
        if writes not in get_args(Writes):
            raise ValueError(f"writes must be one of {', '.join(get_args(Writes))}")
        self.recording: Recording = recording if isinstance(recording, Recording) else Recording.load(recording)
        settings: dict[str, Any] = {
            "speed": speed,
            "writes": writes,
            "wait": wait,
            "version": PROTOCOL_VERSION,
            "events": [],
        }
        if not isinstance(faults, Iterable):
            raise TypeError(
                f"faults must be a list of faults, such as [CutOutput(at_byte=1000)], not {type_of(faults)}"
            )
        if faults:
            outputs = [step.data for step in self.recording.steps if step.direction == "out"]
            starts = [0, *itertools.accumulate(map(len, outputs))]
            for fault in faults:
                _add(fault, settings, starts)
        self._settings = json.dumps(settings)

    def argv(self) -> list[str]:
        """Return the command that plays the recording, for :func:`~claude_wire.open_process` or :mod:`subprocess`.

        Raises:
            ValueError: the recording is not on disk. Use :meth:`Recording.save` or :meth:`script`.
        """
        if self.recording.path is None:
            raise ValueError("the recording is not on disk: save() it, or use script()")
        return [*_player_command(), self.recording.path, self._settings]

    def script(self, path: str | os.PathLike[str]) -> str:
        """Write an executable file that plays the recording. Return the file's path, to use as the CLI's path.

        The file contains the recording. To run, it needs only this installation of Python and of this package. Only its
        owner can read it.

        Raises:
            OSError: the file cannot be written, or a link, a pipe or a device is in its place.
            NotImplementedError: on Windows, where a script is not an executable file; use :meth:`argv`.
        """
        if os.name != "posix":
            raise NotImplementedError("a script is not an executable file on Windows; use argv()")
        # The shell starts the interpreter, because a path after #! must be short and have no spaces.
        command = " ".join(shlex.quote(part) for part in _player_command())
        head = f'exec {command} "$0" {shlex.quote(self._settings)} "$@"'
        write_private(path, packed(os.fsencode(head), self.recording.files), 0o700)
        return os.path.abspath(path)


class ReplayCLI:
    """Creates stand-ins for the CLI, each in a separate folder. The pytest fixture ``replay_cli`` is an instance.

    Args:
        new_folder: creates a new folder in each call, and returns its path.
    """

    def __init__(self, new_folder: Callable[[], str | os.PathLike[str]]) -> None:
        self._new_folder = new_folder

    def __call__(
        self,
        recording: Recording | str | os.PathLike[str],
        *,
        speed: float | None = None,
        writes: Writes = "lines",
        faults: Sequence[Fault] = (),
        wait: bool = True,
    ) -> str:
        """Return the path of a new executable file; the arguments are those of :class:`Replay`."""
        replay = Replay(recording, speed=speed, writes=writes, faults=faults, wait=wait)
        return replay.script(os.path.join(self._new_folder(), "claude"))


def _player_command() -> list[str]:
    """Return the command that runs the player in an isolated Python. Python caches the bytecode of what it imports."""
    folder = os.path.dirname(os.path.abspath(__file__))
    program = f"import sys; sys.path.append({folder!r}); from player.program import main; main(sys.argv)"
    return [sys.executable, "-IS", "-c", program]


def _add(fault: Fault, settings: dict[str, Any], starts: list[int]) -> None:
    """Add a fault to the settings. ``starts`` has the offset of each line of output, and of the end, in bytes."""
    events: list[tuple[int, str, Any]] = settings["events"]
    match fault:
        case faults.CutOutput(at_byte, exit_code):
            events.append((_byte(at_byte, starts), "cut", exit_code))
        case faults.Kill(at_byte):
            events.append((_byte(at_byte, starts), "kill", None))
        case faults.Stall(seconds, None, before_line):
            events.append((_start(before_line, starts), "stall_before", seconds))
        case faults.Stall(seconds, int(at_byte)):
            events.append((_byte(at_byte, starts), "stall", seconds))
        case faults.GarbageLine(before_line, data):
            events.append((_start(before_line, starts), "write", data.decode("latin-1") + "\n"))
        case _:
            # All other faults have one parameter, and no position in the output.
            if type(fault) not in get_args(Fault):
                raise TypeError(f"{fault!r} is not a fault")
            (settings[type(fault).__name__],) = dataclasses.astuple(fault)


def _byte(at_byte: int, starts: list[int]) -> int:
    if not 0 <= at_byte <= starts[-1]:
        raise ValueError(f"byte {at_byte} is beyond the {starts[-1]} bytes of the recording")
    return at_byte


def _start(before_line: int | None, starts: list[int]) -> int:
    if before_line is None or not 1 <= before_line <= len(starts):
        raise ValueError(f"line {before_line} is beyond the {len(starts) - 1} lines of the recording")
    return starts[before_line - 1]
