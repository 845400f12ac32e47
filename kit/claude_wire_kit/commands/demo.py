"""The command ``claude-wire demo``: talk to an agent of this package, then measure the speed of decoders."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import anyio
import click
from rich.table import Table
from rich.text import Text

from claude_wire import CanUseToolRequest, PermissionResultAllow, UserMessage, open_session
from claude_wire.testing import Recording
from claude_wire_kit.commands.guide import command
from claude_wire_kit.commands.guide.project import write_project
from claude_wire_kit.survey.race import CHUNK_BYTES, RESULTS_ONLY, Lap, race, ways
from claude_wire_kit.terminal.live import LiveView
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.page import Page

#: The prompts that the demo sends to the agent.
PROMPTS = ["Run the tests, please.", "Please fix the bug.", "Run the tests again.", "Let two subagents review it."]

#: The recording for the measurement: the first three turns of a session, byte for byte. The CLI was a real one
#: (2.1.330, run by claude-agent-sdk), the model was scripted.
SESSION = Path(__file__).with_name("data") / "session"

#: The recording is repeated until the measurement has about this many bytes.
RACE_BYTES = 20_000_000

#: The measurement ends after this many rounds, or after the first round that ends later than RACE_SECONDS.
MAX_ROUNDS = 5
RACE_SECONDS = 5.0


@click.command()
@click.option("--no-bench", is_flag=True, help="Show only the conversation, without measurements.")
def demo(no_bench: bool) -> None:
    """Talk to an agent, then measure decoders on a recording.

    The agent is a program of this package. It has no model, and needs no network and no account. It runs as a child
    process, and fixes a bug of a small project in a temporary folder. The demo answers its permission questions with
    yes. "claude-wire serve --demo" runs the same agent in the browser, where you can talk to it.
    """
    console = Output()
    anyio.run(_converse, console)
    if not no_bench:
        _measure(Recording.load(SESSION).stdout, console)


async def _converse(console: Output) -> None:
    with closing(Page(console, row=True)) as page, tempfile.TemporaryDirectory(prefix="claude-wire-") as folder:
        write_project(Path(folder))
        live = LiveView(page)
        shown = anyio.Condition()

        async def allow(request: CanUseToolRequest) -> PermissionResultAllow:
            async with shown:
                while live.input_of(request.tool_use_id or "") is None:
                    await shown.wait()  # show the message with the call before the question about it
                live.ask(request)
                answer = request.allow()
                live.decide(answer)
            return answer

        async with open_session(command(), can_use_tool=allow, cwd=folder) as session:
            for prompt in PROMPTS:
                message = UserMessage.of(prompt)
                live.sent(message)
                await session.query(message)
                async for received in session.receive_response():
                    async with shown:
                        live.show(received)
                        page.wait()
                        shown.notify_all()
        assert session.process is not None
        stats = session.process.stats
    console.say(
        f"\n{stats.bytes:,} bytes through the pipe of a process that exited with {session.process.returncode}: "
        f"{stats.messages} messages, {stats.invalid} invalid, {stats.unknown} unknown",
    )


def _measure(recorded: bytes, console: Output) -> None:
    times = max(1, RACE_BYTES // len(recorded))
    data = recorded * times
    *laps, results = race([*ways(), RESULTS_ONLY], data, rounds=MAX_ROUNDS, seconds=RACE_SECONDS)
    console.say(
        f"\nDecoding a recorded session of the CLI {times} times, from memory, without keeping the messages "
        f"({len(data) / 1e6:.1f} MB, {laps[0].messages:,} lines):",
    )
    console.print(_table(laps, len(data)))
    console.say(
        f"Each row is the best of {laps[0].rounds} rounds; the rounds alternate in one process. The decoders of "
        f"claude_wire get chunks of {CHUNK_BYTES // 1024} KiB and find the lines themselves; the others get one whole "
        "line at a time. Typed makes classes, all others make dicts. Only the ratios mean something on other machines, "
        "and only for similar traffic. A program that keeps the messages needs more time.",
        style="dim",
    )
    console.say(_headline(results, laps, len(data)), style="bold")


def _headline(results: Lap, laps: list[Lap], size: int) -> str:
    """Compare the time to find the result lines with the time that other decoders need for all lines."""
    others = [lap for lap in laps if "loads" in lap.name]
    ratios = ", ".join(f"{lap.seconds / results.seconds:.1f} x as fast as {lap.name}" for lap in others)
    return (
        f"\nA program that waits for results needs {results.messages:,} of these lines. "
        'Decoder(only={"result"}) skips '
        f"all others, without checking their JSON: {size / results.seconds / 1e9:.2f} GB/s, {ratios}."
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
