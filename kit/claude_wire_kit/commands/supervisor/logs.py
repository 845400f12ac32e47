"""Print the lines of a supervisor's session, formatted or unchanged, and the supervisor's own log."""

from __future__ import annotations

import errno
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from claude_wire import Decoder
from claude_wire.support import printable
from claude_wire_kit.commands.supervisor.client import Client
from claude_wire_kit.supervisor.disk.files import open_private
from claude_wire_kit.supervisor.frames import Attach, Attached, Blocked, Cursor, Cut, Ended, Limited, Stderr, frame_of
from claude_wire_kit.supervisor.lines import MAX_FRAME_LINE_BYTES
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.notices import ERROR, QUIET, WARNING
from claude_wire_kit.terminal.page import Page


def _pieces(client: Client, attached: Attached, *, follow: bool) -> Iterator[tuple[bool, bytes]]:
    """Yield the lines of a session and the frames between them, as pairs of ``is_frame`` and bytes.

    A long line is split into several pairs. With ``follow``, wait for new lines until the CLI exits.
    """
    left = attached.line - attached.after
    goes_on = follow and attached.ended is None
    begins = True
    while left or goes_on:
        piece = client.line(MAX_FRAME_LINE_BYTES)
        if not piece:
            return
        is_frame = begins and client.is_frame(piece)
        begins = piece.endswith(b"\n")
        left -= begins and not is_frame and left > 0
        yield is_frame, piece
        if is_frame and isinstance(frame_of(piece), (Ended, Cut)):
            return


def raw(client: Client, id: str, after: Cursor | None, *, follow: bool) -> None:
    """Write the CLI's lines to standard output, unchanged."""
    attached: Attached = client.ask(Attach(attach=id, after=after))
    out = sys.stdout.buffer
    for is_frame, piece in _pieces(client, attached, follow=follow):
        if not is_frame:
            out.write(piece)
            if follow:
                out.flush()


def shown(client: Client, id: str, after: Cursor | None, page: Page, *, follow: bool) -> None:
    attached: Attached = client.ask(Attach(attach=id, after=after))
    live, decoder, ended = LiveView(page), Decoder(), attached.ended
    for is_frame, piece in _pieces(client, attached, follow=follow):
        if not is_frame:
            for message in decoder.feed(piece):
                live.show(message)
            page.wait()
            continue
        match frame_of(piece):
            case Ended() as ended:
                pass
            case Stderr(text=text):
                page.line(f"! stderr: {printable(text.rstrip())}", WARNING)
            case Blocked(message=told) | Limited(message=told) | Cut(message=told) if told:
                page.line(f"! {printable(told)}", WARNING)
            case _:
                pass
    if ended is not None:
        page.line(*ended_line(ended))


def ended_line(ended: Ended) -> tuple[str, str]:
    """Return text that says how a CLI exited, and the text's style."""
    what = "ended with its supervisor" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"
    if ended.exit_code == 0 and not ended.unfinished:
        return f"* the CLI {what}", QUIET
    parts = [f"! the CLI {what}"]
    if ended.unfinished:
        parts.append(f"its output ended {printable(ended.unfinished)}")
    for number, of in (
        (len(ended.calls), "tool calls without a result were perhaps done"),
        (len(ended.died), "questions died with it"),
        (len(ended.owed), "prompts have no result, and are not run again by themselves"),
    ):
        if number:
            parts.append(f"{number} {of}")
    if ended.stderr.strip():
        parts.append(f"it said: {printable(ended.stderr.strip())}")
    return "; ".join(parts), ERROR


def own_log(folder: str, tail: int | None, write: Callable[[bytes], object]) -> None:
    """Write the supervisor's own log: the previous file, then the current one.

    Raises:
        OSError: the log cannot be read, or does not exist.
    """
    lines: deque[bytes] = deque(maxlen=tail)
    missing = 0
    for name in ("log.1", "log.ndjson"):
        try:
            with open(os.path.join(folder, name), "rb", opener=open_private) as file:
                lines.extend(file)
        except FileNotFoundError:
            missing += 1
    if missing == 2:
        raise FileNotFoundError(errno.ENOENT, "this folder was never used by a supervisor")
    for line in lines:
        write(line)


def log_line(line: bytes) -> str:
    """Return a log line as text: time, event, fields."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return printable(line.decode(errors="replace").strip())
    at = entry.pop("at", 0)
    event = entry.pop("event", "")
    when = datetime.fromtimestamp(float(at) if isinstance(at, (int, float)) else 0)
    rest = " ".join(f"{name}={value}" for name, value in entry.items())
    return printable(f"{when:%Y-%m-%d %H:%M:%S} {event} {rest}".strip(), keep="")
