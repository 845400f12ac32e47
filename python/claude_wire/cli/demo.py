"""The command ``claude-wire demo``: a recorded session as a transcript, then how fast it is decoded."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from claude_wire import Decoder
from claude_wire.cli.race import CHUNK_BYTES, Lap, race, ways
from claude_wire.cli.recording import Recording, load
from claude_wire.cli.transcript import Transcript

__all__ = ["demo"]

#: The recording is repeated to about this size to be measured.
RACE_BYTES = 20_000_000

#: The race ends after so many rounds, or with the round in which so many seconds have passed.
MOST_ROUNDS = 5
RACE_SECONDS = 5.0


@click.command()
@click.option("--no-bench", is_flag=True, help="Show the transcript only; measure nothing.")
def demo(no_bench: bool) -> None:
    """Play a recorded session, then measure decoders on it.

    The session was recorded from a real CLI with a scripted model. It ships with this package: no network and no
    account is needed. Its bytes are fed to the decoder in the pieces in which they were read from the CLI's pipe.
    """
    console = Console(markup=False, highlight=False, emoji=False)
    recording = load()
    _play(recording, console)
    if not no_bench:
        _measure(recording, console)


def _play(recording: Recording, console: Console) -> None:
    transcript = Transcript(console)
    decoder = Decoder()
    for chunk in recording.chunks():
        for message in decoder.feed(chunk):
            transcript.show(message)
    for message in decoder.close():
        transcript.show(message)
    transcript.close()
    stats = decoder.stats
    console.print(
        f"\n{stats.bytes:,} bytes in {len(recording.reads)} reads: {stats.messages} messages, "
        f"{stats.invalid} invalid, {stats.unknown} unknown",
        soft_wrap=True,
    )


def _measure(recording: Recording, console: Console) -> None:
    times = max(1, RACE_BYTES // len(recording.data))
    data = recording.data * times
    laps = race(ways(), data, rounds=MOST_ROUNDS, seconds=RACE_SECONDS)
    console.print(
        f"\nDecoding this recording {times} times over, from memory, messages dropped at once "
        f"({len(data) / 1e6:.1f} MB, {laps[0].messages:,} lines):",
        soft_wrap=True,
    )
    console.print(_table(laps, len(data)))
    console.print(
        f"Each is the best of {laps[0].rounds} rounds, taken in turns in one process. Ours take chunks of "
        f"{CHUNK_BYTES // 1024} KiB and find the lines themselves; json and orjson are handed whole lines, one by one. "
        "Typed makes classes, the others dicts. Only the ratios carry over, and to traffic like this only; "
        "whoever keeps the messages pays for that, too.",
        style="dim",
        soft_wrap=True,
    )


def _table(laps: list[Lap], size: int) -> Table:
    table = Table()
    table.add_column("decoder")
    for heading in ("lines/s", "MB/s", "ratio to json"):
        table.add_column(heading, justify="right")
    json_seconds = next(lap.seconds for lap in laps if lap.name.startswith("json."))
    for lap in laps:
        ratio = json_seconds / lap.seconds
        cells = (f"{lap.messages / lap.seconds:,.0f}", f"{size / lap.seconds / 1e6:,.0f}", f"{ratio:.1f} x")
        table.add_row(Text(lap.name), *map(Text, cells))
    return table
