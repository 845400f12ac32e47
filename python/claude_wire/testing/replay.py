"""Start a recording in place of the CLI: by an argument list, or by a script that contains the recording."""

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

from claude_wire.support.arguments import type_of
from claude_wire.testing import faults
from claude_wire.testing.faults import Fault
from claude_wire.testing.player.files import packed
from claude_wire.testing.recording import Recording, write_private

Writes = Literal["lines", "blocks", "bytes"]


class Replay:
    """A recording as a child process: a stand-in for the CLI that works with any host and any flags.

    The child plays the recorded output. Where the recorded CLI got a prompt, a control request or a control response,
    the child waits until the host sends a line of the same kind, with any content. Its answers have the ids of the
    host's own requests. It answers an unrecorded request at once, as elsewhere in the recording, or with a success.
    After the end of its input it plays the rest without waiting.

    It has as many turns as were recorded. A further prompt gets no answer, so give a test that waits for one a time
    limit, such as ``anyio.fail_after(10)``. If several prompts were recorded before the first result, it waits for all
    of them: concurrent callers of :meth:`~claude_wire.Session.ask`, which take turns, would then wait for ever.

    With ``--input-format stream-json``, it waits for a first prompt even if the recorded CLI got its prompt as an
    argument, and ends when its input ends. With ``--print`` or another format, it waits for nothing. Without these
    flags it does what the recorded CLI did: so a host that has a ``can_use_tool`` runs
    ``[*Replay(...).argv(), "--permission-prompt-tool", "stdio"]``. At the end it writes the recorded standard error and
    exits with the recorded code. Like the CLI, it ends with code 1 after an input line that is not JSON, with 143 after
    SIGTERM, and with 130 after SIGINT. ``--version`` prints the recorded version.

    Args:
        recording: a :class:`Recording`, or the path of one.
        speed: None for as fast as it is read, 1.0 for the recorded times, 10.0 for ten times as fast.
        writes: ``lines`` for one write a line, as the CLI does; ``blocks`` of 64 KiB; or single ``bytes``.
        faults: the faults to inject.
        wait: False to wait for no input at all, and to end without it.

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
            raise ValueError("speed is a positive number, or None for no pauses at all")
        if writes not in get_args(Writes):
            raise ValueError(f"writes is one of {', '.join(get_args(Writes))}")
        self.recording: Recording = recording if isinstance(recording, Recording) else Recording.load(recording)
        settings: dict[str, Any] = {"speed": speed, "writes": writes, "wait": wait, "events": []}
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
        """The command that plays the recording, for :func:`~claude_wire.open_process`, :mod:`subprocess` and others.

        Raises:
            ValueError: the recording is not on disk; :meth:`Recording.save` it, or use :meth:`script`.
        """
        if self.recording.path is None:
            raise ValueError("the recording is not on disk: save() it, or use script()")
        return [*_player_command(), self.recording.path, self._settings]

    def script(self, path: str | os.PathLike[str]) -> str:
        """Write an executable file that plays the recording, as the path of a host's CLI. Returns the path.

        The file contains the recording, so it needs only this installation of Python and of this package. Only its
        owner can read it.

        Raises:
            OSError: the file cannot be written, or something else is in its place, such as a symbolic link.
            NotImplementedError: on Windows, where a script is not an executable file; use :meth:`argv`.
        """
        if os.name != "posix":
            raise NotImplementedError("a script is no executable file here; use argv()")
        # The shell starts the interpreter, because a path after #! must be short and have no spaces.
        command = " ".join(shlex.quote(part) for part in _player_command())
        head = f'exec {command} "$0" {shlex.quote(self._settings)} "$@"'
        write_private(path, packed(os.fsencode(head), self.recording.files), 0o700)
        return os.path.abspath(path)


class ReplayCLI:
    """Makes stand-ins for the CLI, each in a folder of its own. The pytest fixture ``replay_cli`` is one.

    Args:
        new_folder: returns the path of a new folder with each call.
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
    """Return the command that runs the player in an isolated Python, which caches the imported bytecode."""
    folder = os.path.dirname(os.path.abspath(__file__))
    program = f"import sys; sys.path.append({folder!r}); from player.program import main; main(sys.argv)"
    return [sys.executable, "-IS", "-c", program]


def _add(fault: Fault, settings: dict[str, Any], starts: list[int]) -> None:
    """Add a fault to the settings. ``starts`` has the byte at which each line of output begins, and the end."""
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
            # All other faults have no place in the output, and one parameter.
            if type(fault) not in get_args(Fault):
                raise TypeError(f"{fault!r} is no fault")
            (settings[type(fault).__name__],) = dataclasses.astuple(fault)


def _byte(at_byte: int, starts: list[int]) -> int:
    if not 0 <= at_byte <= starts[-1]:
        raise ValueError(f"byte {at_byte} is beyond the {starts[-1]} bytes of the recording")
    return at_byte


def _start(before_line: int | None, starts: list[int]) -> int:
    if before_line is None or not 1 <= before_line <= len(starts):
        raise ValueError(f"line {before_line} is beyond the {len(starts) - 1} lines of the recording")
    return starts[before_line - 1]
