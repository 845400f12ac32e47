"""Play a recording in place of the CLI. The arguments are ``RECORDING SETTINGS [FLAGS...]``.

``RECORDING`` is a folder or a file. ``SETTINGS`` is a JSON object from :class:`~claude_wire.testing.Replay`. ``FLAGS``
are the flags that the host passes to the CLI.
"""

from __future__ import annotations

import io
import json
import os
import signal
import time

from .files import exit_code_of, flags_of, read_files
from .host import Expected, Host
from .lines import Line, object_in, says_input, speaks_stream_json, with_hook, with_id
from .pipes import STDERR, STDIN, STDOUT, Output, write_all
from .steps import Step, steps_of

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, NoReturn

#: The number of SIGKILL. ``signal.SIGKILL`` does not exist on Windows, where os.kill() with 9 also terminates a
#: process.
KILL = 9

#: The line that the fault FloodStderr repeats.
FLOOD = b"This line is one of many.\n"

#: Events that happen as soon as the byte before them is written. Other events happen when the next line is due.
AFTER_A_BYTE = frozenset(("cut", "kill", "stall"))

#: The answer to ``initialize`` if none was recorded: the fields that the protocol requires.
EMPTY_INITIALIZE: dict[str, Any] = {
    "commands": [],
    "agents": [],
    "output_style": "default",
    "available_output_styles": ["default"],
    "models": [],
    "account": {},
}


class Player:
    """Plays a recording to a live host.

    Args:
        files: the files of the recording.
        settings: the JSON object from :class:`~claude_wire.testing.Replay`.
        flags: the flags that the host passes to the CLI. They only decide whether the player reads stream-json from
            standard input. If none of them decides this, the player reads lines if the recorded CLI did.
    """

    def __init__(self, files: Mapping[str, bytes], settings: dict[str, Any], flags: list[str]) -> None:
        self._settings = settings
        self._steps = steps_of(files)
        self._exit_code = exit_code_of(files)
        self._stderr = files.get("stderr.txt", b"")
        # If the recording has no flags either, assume that the recorded CLI read lines if its host wrote any.
        flags = flags if says_input(flags) else []
        known_flags = flags or flags_of(files)
        self._reads_lines = speaks_stream_json(known_flags) if known_flags else "stdin.ndjson" in files
        self._waits_for_end = self._reads_lines and settings["wait"]
        self._expected: dict[int, Expected] = {}
        if settings["wait"] and (self._reads_lines or not flags):
            self._expect()
        self._requests = {each.identity: each for each in self._expected.values() if each.kind == "request"}
        self._host = Host(list(self._expected.values()), self._answer, self._refuse)
        self._output = Output(settings["writes"], lambda: self._exit(self._exit_code))
        self._speed: float | None = settings["speed"]
        self._began = time.monotonic()
        self._played_bytes = 0
        events: list[list[Any]] = settings["events"]
        self._events = sorted(events, key=lambda event: event[0])
        if "Silence" in settings:
            self._steps.clear()
            self._events.clear()

    def _expect(self) -> None:
        """Find the lines of the recorded host that the player must wait for."""
        if self._reads_lines and not any(step.is_input for step in self._steps):
            # The recorded host passed its prompt as an argument, but the live host sends it as a line.
            self._steps.insert(0, Step(0.0, True, b'{"type":"user"}'))
        asked: set[str] = set()
        for index, step in enumerate(self._steps):
            line = Expected(step.data) if step.is_input or b"control_request" in step.data else None
            if line is None:
                continue
            if not step.is_input:
                if line.kind == "request":
                    asked.add(line.identity)
            elif line.kind in ("user", "request"):
                self._expected[index] = line
            elif line.kind == "response" and line.identity in asked:
                asked.remove(line.identity)
                self._expected[index] = line
            elif line.kind == "garbage" and self._exit_code:
                # The recorded CLI exited at this line, before its input ended.
                self._expected[index] = line
                self._waits_for_end = False
                return

    def play(self) -> NoReturn:
        settings = self._settings
        ignores_term = "IgnoreTerm" in settings
        signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores_term else _exit_by_signal)
        signal.signal(signal.SIGINT, _exit_by_signal)
        if "HoldStdout" in settings:
            _hold_stdout(settings["HoldStdout"])
        flood_bytes = settings.get("FloodStderr", 0)
        write_all(STDERR, (FLOOD * (flood_bytes // len(FLOOD) + 1))[:flood_bytes])
        if "ExitAtOnce" in settings:
            self._exit(settings["ExitAtOnce"])
        for line in io.BytesIO(_keep_alives(settings.get("WriteFirst", 0))):
            self._output.write(line)
        self._output.flush()
        self._host.start()
        if "GiveUp" in settings:
            signal.signal(signal.SIGALRM, self._give_up)
            self._output.patience = settings["GiveUp"]
        for index, step in enumerate(self._steps):
            if not step.is_input:
                self._keep_time(step.seconds)
                self._host.look()
                self._play(step.data)
            elif index in self._expected:
                self._output.flush()
                self._host.wait_for(self._expected[index])
                if self._speed is not None:
                    self._began = time.monotonic() - step.seconds / self._speed
        while self._events:
            self._happen(self._events.pop(0))
        self._finish()

    def _keep_time(self, seconds: float) -> None:
        if self._speed is None:
            return
        due = self._began + seconds / self._speed
        while (left := due - time.monotonic()) > 0:
            self._output.flush()
            self._host.wait(left)

    def _play(self, data: bytes) -> None:
        begin = self._played_bytes
        self._played_bytes += len(data)
        live = self._live(data)
        while self._events and self._events[0][0] < self._played_bytes:
            event = self._events.pop(0)
            # The played line may be shorter or longer than the recorded line, because ids differ in length. It is empty
            # if the player omits an answer.
            at = max(event[0] - begin, 0)
            if live[:at]:
                self._output.write(live[:at])
            begin, live = begin + at, live[at:]
            self._happen(event)
        if live:
            self._output.write(live)
        # These events do not wait for the input that the next line waits for.
        while self._events and self._events[0][0] == self._played_bytes and self._events[0][1] in AFTER_A_BYTE:
            self._happen(self._events.pop(0))

    def _live(self, data: bytes) -> bytes:
        """Replace the recorded ids of requests and hooks in an output line with the live host's ids.

        Return b"" if the line answers a request that the live host did not send.
        """
        if not self._requests or b"request_id" not in data:
            return data
        try:
            message = object_in(json.loads(data))
        except (ValueError, RecursionError):  # not JSON, an incomplete line, or nested too deeply
            return data
        if message.get("type") == "control_request":
            return self._with_live_hook(data, str(object_in(message.get("request")).get("callback_id")))
        identity = object_in(message.get("response")).get("request_id") or message.get("request_id")
        request = self._requests.get(str(identity))
        if request is None:
            return data
        if request.state == "skipped":
            return b""
        return with_id(data, request.identity, request.live_identity)

    def _with_live_hook(self, data: bytes, id: str) -> bytes:
        for request in self._requests.values():
            if id in request.live_hooks:
                return with_hook(data, id, request.live_hooks[id])
        return data

    def _answer(self, line: Line) -> None:
        """Answer a request that was not recorded at this point.

        The answer is a recorded answer to the same subtype, or an empty success.
        """
        if "Silence" in self._settings:
            return
        for request in self._recorded_requests(line.subtype):
            for step in self._steps:
                if not step.is_input and b"control_response" in step.data and Line(step.data).identity == request:
                    self._output.write(with_id(step.data, request, line.identity))
                    self._output.flush()
                    return
        payload = EMPTY_INITIALIZE if line.subtype == "initialize" else {}
        response = {"subtype": "success", "request_id": line.identity, "response": payload}
        answer = {"type": "control_response", "response": response}
        self._output.write(json.dumps(answer, separators=(",", ":")).encode("ascii") + b"\n")
        self._output.flush()

    def _refuse(self, data: bytes) -> None:
        """Exit with an error, as the CLI does after an input line that is not JSON."""
        if self._reads_lines:
            text = f"Error parsing streaming input line (type=unknown, {len(data)} chars): SyntaxError\n"
            write_all(STDERR, text.encode("ascii"))
            os._exit(1)

    def _recorded_requests(self, subtype: str) -> Iterator[str]:
        for step in self._steps:
            if step.is_input:
                line = Line(step.data)
                if line.kind == "request" and line.subtype == subtype:
                    yield line.identity

    def _happen(self, event: list[Any]) -> None:
        _, what, argument = event
        if what == "write":
            self._output.write(argument.encode("latin-1"))
            return
        self._output.flush()
        if what in ("stall", "stall_before"):
            time.sleep(argument)
        elif what == "kill":
            os.kill(os.getpid(), KILL)
        elif what == "cut":
            os._exit(argument)

    def _give_up(self, *_: object) -> None:
        if self._host.closed or not self._waits_for_end:
            os._exit(self._exit_code)

    def _finish(self) -> NoReturn:
        self._output.flush()
        settings = self._settings
        if "CloseStdout" in settings:
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
            time.sleep(settings["CloseStdout"])
        elif self._waits_for_end:
            while self._host.wait():
                pass
        elif "Silence" in settings:
            time.sleep(settings["Silence"])
        if "IgnoreTerm" in settings:
            time.sleep(settings["IgnoreTerm"])
        self._exit(self._exit_code)

    def _exit(self, code: int) -> NoReturn:
        write_all(STDERR, self._stderr)
        if code < 0:
            if code != -KILL:  # nothing can handle SIGKILL
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


def _exit_by_signal(number: int, frame: object) -> None:
    """Exit with 128 + the number of the signal, as the CLI does after SIGTERM."""
    os._exit(128 + number)


def _hold_stdout(seconds: float) -> None:
    """Fork a child that keeps standard output open for ``seconds`` after this process exits, even by SIGKILL."""
    alive, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        os.close(STDIN)
        os.close(STDERR)
        os.read(alive, 1)
        time.sleep(seconds)
        os._exit(0)
    os.close(alive)


def _keep_alives(size: int) -> bytes:
    """Return ``size`` bytes of ``keep_alive`` lines, which hosts ignore."""
    line = b'{"type":"keep_alive"}\n'
    count, rest = divmod(size, len(line))
    return line * (count - 1) + line[:-2] + b" " * rest + line[-2:] if count else b""


def main(argv: list[str]) -> NoReturn:
    """Play the recording that the arguments name."""
    _, path, settings, *flags = argv
    try:
        files, parsed = read_files(path), json.loads(settings)
        if flags in (["-v"], ["--version"]):
            write_all(STDOUT, (_recorded_version(files) or parsed["version"].encode()) + b" (Claude Code)\n")
            os._exit(0)
        player = Player(files, parsed, flags)
    except (OSError, ValueError) as error:
        write_all(STDERR, f"claude-wire replay: {error}\n".encode())
        os._exit(2)
    player.play()


def _recorded_version(files: Mapping[str, bytes]) -> bytes:
    """Return the CLI version in the recorded output, or an empty string if the output has none."""
    return files["stdout.ndjson"].partition(b'"claude_code_version":"')[2].partition(b'"')[0]
