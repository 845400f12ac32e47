"""The command ``claude-wire demo``: play a recorded session, then measure how fast it is decoded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio
import click
from rich.table import Table
from rich.text import Text

from claude_wire import open_process
from claude_wire.testing import Recording, Replay
from claude_wire_kit.survey.race import CHUNK_BYTES, RESULTS_ONLY, Lap, race, ways
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.page import Page

#: The first three turns of a recorded session, byte for byte. A real CLI (2.1.330, run by claude-agent-sdk) spoke with
#: a scripted model. The session has tools that were allowed, denied and served by the host over MCP, hooks, thinking,
#: and an interrupted turn.
SESSION = Path(__file__).with_name("data") / "session"

#: The recorded session took 2.5 s. The demo plays it faster by this factor.
SPEED = 2.0

#: For the measurement, the recording is repeated up to about this many bytes.
RACE_BYTES = 20_000_000

#: The measurement ends after this many rounds, or after the round in which this many seconds have passed.
MAX_ROUNDS = 5
RACE_SECONDS = 5.0


@click.command()
@click.option("--no-bench", is_flag=True, help="Show the session only; measure nothing.")
def demo(no_bench: bool) -> None:
    """Play a recorded session, then measure decoders on it.

    The session was recorded from a real CLI with a scripted model. It ships with this package: no network and no
    account is needed. A child process plays it, twice as fast as it was, and its messages are shown as they come
    through the pipe.
    """
    console = Output()
    recording = Recording.load(SESSION)
    anyio.run(_play, recording, console)
    if not no_bench:
        _measure(recording.stdout, console)


async def _play(recording: Recording, console: Output) -> None:
    with closing(Page(console, row=True)) as page:
        live = LiveView(page)
        async with open_process(Replay(recording, speed=SPEED).argv()) as process:
            async for message in process:
                live.show(message)
                page.wait()
            code = await process.wait()
    stats = process.stats
    console.say(
        f"\n{stats.bytes:,} bytes through the pipe of a process that exited with {code}: {stats.messages} messages, "
        f"{stats.invalid} invalid, {stats.unknown} unknown",
    )


def _measure(recorded: bytes, console: Output) -> None:
    times = max(1, RACE_BYTES // len(recorded))
    data = recorded * times
    *laps, results = race([*ways(), RESULTS_ONLY], data, rounds=MAX_ROUNDS, seconds=RACE_SECONDS)
    console.say(
        f"\nDecoding this recording {times} times over, from memory, messages dropped at once "
        f"({len(data) / 1e6:.1f} MB, {laps[0].messages:,} lines):",
    )
    console.print(_table(laps, len(data)))
    console.say(
        f"Each is the best of {laps[0].rounds} rounds, taken in turns in one process. Ours take chunks of "
        f"{CHUNK_BYTES // 1024} KiB and find the lines themselves; the others are handed whole lines, one by one. "
        "Typed makes classes, all others dicts. Only the ratios carry over, and to traffic like this only; "
        "whoever keeps the messages pays for that, too.",
        style="dim",
    )
    console.say(_headline(results, laps, len(data)), style="bold")


def _headline(results: Lap, laps: list[Lap], size: int) -> str:
    """Compare the time of finding the results with the time that others take to decode every line."""
    others = [lap for lap in laps if "loads" in lap.name]
    ratios = ", ".join(f"{lap.seconds / results.seconds:.1f} x as fast as {lap.name}" for lap in others)
    return (
        f"\nA program that waits for results needs {results.messages:,} of these lines. "
        'Decoder(only={"result"}) passes '
        f"over all others, without checking their JSON: {size / results.seconds / 1e9:.2f} GB/s, {ratios}."
    )


def _table(laps: list[Lap], size: int) -> Table:
    table = Table()
    table.add_column("decoder", overflow="fold")
    for heading in ("lines/s", "MB/s", "ratio to json"):
        table.add_column(heading, justify="right")
    json_seconds = next(lap.seconds for lap in laps if lap.name.startswith("json."))
    for lap in laps:
        ratio = json_seconds / lap.seconds
        cells = (f"{lap.messages / lap.seconds:,.0f}", f"{size / lap.seconds / 1e6:,.0f}", f"{ratio:.1f} x")
        table.add_row(Text(lap.name), *map(Text, cells))
    return table
