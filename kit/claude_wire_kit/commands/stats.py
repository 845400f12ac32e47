"""The command ``claude-wire stats``: add up recordings, as tables or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import click

from claude_wire import PROTOCOL_VERSION
from claude_wire.support import one_line
from claude_wire_kit.commands.shared.json_output import print_json
from claude_wire_kit.commands.shared.options import takes_json
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.sources import (
    display_name,
    known_size,
    note_no_messages,
    pieces,
    recognised,
    several_sources,
)
from claude_wire_kit.survey.report import counted
from claude_wire_kit.survey.totals import Stats, Tally
from claude_wire_kit.terminal.columns import Column, cell_count, laid_out
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.usage.meter import Tokens

#: Shown for a number that the sources do not contain.
UNKNOWN = "n/a"


@click.command()
@several_sources
@takes_json
def stats(files: tuple[str, ...], as_json: bool) -> None:
    """Add up turns, tokens, cost and tools of recordings.

    FILE has lines that the CLI wrote. It may be compressed (.gz, .xz), or the folder of a recording, whose
    stdout.ndjson is read. - is standard input. Files are read once, in constant memory; folders are loaded into memory.
    For several files, the output ends with their sum.

    Cost and tokens cover this recording only. total_cost_usd and modelUsage in a result are running totals, which
    continue when the session is resumed. So the sums add what each result reports for the time since the previous
    result. Older CLIs do not report that; for these, the sums add the growth of the totals. The sums include subagents.
    "Main loop" adds up the usage in the results, which excludes subagents. A turn without a result, for example at the
    end of a cut recording, counts as unfinished. Its usage is unknown, and not in the sums.

    For a transcript, which the CLI keeps on disk, cost, tokens and time in the API are the CLI's own sums for the
    session, from the last cost-state. A transcript has prompts, but no results, so numbers from results are n/a.

    "claude-wire usage" shows tokens and cost of the sessions on disk by day, week, month, project, model and session.

    Exit code: 0, even if there are invalid lines; 1 if no line is valid; 2 if a file cannot be read.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    total = Stats()
    done: list[dict[str, Any]] = []
    console = Output()
    for number, file in enumerate(files):
        found = _read(file)
        total.add(found)
        if as_json:
            done.append({"path": file, **stats_as_json(found)})
        else:
            _print(console, found, ("\n" if number else "") + display_name(file))
    if as_json:
        print_json({"files": done, "total": stats_as_json(total), "protocol": PROTOCOL_VERSION})
    elif len(files) > 1:
        _print(console, total, f"\nall {len(files)} files")
    if total.invalid and not total.messages:
        note_no_messages()
        click.get_current_context().exit(1)


def _read(file: str) -> Stats:
    with pieces(file) as stream, Progress(f"reading {display_name(file)}") as progress:
        dialect, lines = recognised(progress.of(stream, known_size(file)))
        tally = Tally(dialect)
        for piece in lines:
            tally.feed(piece.data)
    return tally.close()


def stats_as_json(stats: Stats) -> dict[str, Any]:
    """Return the totals for ``stats --json``.

        {"files": [FILE, ...], "total": TOTAL, "protocol": str}
        FILE: {"path": PATH, ... as TOTAL}
        TOTAL: {"bytes": int, "lines": int, "messages": int, "invalid": int, "unknown": int,
          "turns": {"results": int, "ok": int, "failed": {NAME: int, ...}, "unfinished": int,
            "prompts": int, "num_turns": int or null, "api_retries": int},
          "duration_ms": number or null, "duration_api_ms": number or null, "usd": number or null,
          "tokens": TOKENS or null, "main_loop_tokens": TOKENS or null,
          "models": {NAME: {... TOKENS, "usd": number}, ...},
          "tools": {NAME: {"calls": int, "errors": int, "denied": int, "unanswered": int}, ...},
          "kinds": {NAME: {"lines": int, "bytes": int}, ...}}
        TOKENS: {"input_tokens": int, "output_tokens": int, "cache_read_input_tokens": int,
          "cache_creation_input_tokens": int}

    ``lines`` excludes blank lines; ``kinds`` includes ``invalid`` and ``blank``, so its bytes add up to ``bytes``.
    ``unknown`` counts messages with anything that this version does not know. ``num_turns`` counts answers of the
    model. ``duration_ms`` adds up the turns, including the wait for permissions; ``duration_api_ms`` is a running
    total, which includes the time before a resume. Transcripts have no ``num_turns``, ``duration_ms`` and
    ``main_loop_tokens``. ``errors`` counts calls whose result is an error, including the ``denied``; an ``unanswered``
    call has no result. After 1,000 different names the rest is ``(others)``.
    """
    plain, used = asdict(stats), stats.usage
    return {
        **{name: plain[name] for name in ("bytes", "lines", "messages", "invalid", "unknown")},
        "turns": {
            **{name: plain[name] for name in ("results", "ok", "failed", "unfinished", "prompts")},
            "num_turns": used.num_turns if stats.has_turns else None,
            "api_retries": stats.api_retries,
        },
        "duration_ms": used.duration_ms if stats.has_turns else None,
        "duration_api_ms": used.duration_api_ms if stats.has_cost else None,
        "usd": used.cost_usd if stats.has_cost else None,
        "tokens": _named(used.tokens) if stats.has_cost else None,
        "models": {name: {**_named(model), "usd": model.cost_usd} for name, model in used.models.items()},
        "main_loop_tokens": _named(used.main_loop) if stats.has_turns else None,
        "tools": plain["tools"],
        "kinds": dict(sorted(plain["kinds"].items())),
    }


def _named(tokens: Tokens) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {name: getattr(tokens, name) for name in names}


# --- tables -----------------------------------------------------------------------------------------------------------


def _print(console: Output, stats: Stats, heading: str) -> None:
    console.say(f"{heading}:", "bold")
    for line in _summary(stats):
        console.say(f"  {line}")
    used = stats.usage
    models = [(name, *_tokens(model), _usd(model.cost_usd)) for name, model in sorted(used.models.items())]
    if len(models) > 1:
        models.append(("all", *_tokens(used.tokens), _usd(used.cost_usd)))
    if models:
        main_loop = _tokens(used.main_loop) if stats.has_turns else [UNKNOWN] * 4
        models.append(("main loop", *main_loop, ""))
    _table(console, ("tokens", "input", "output", "cache read", "cache write", "cost"), models)
    tools = sorted(stats.tools.items(), key=lambda item: (-item[1].calls, item[0]))
    counts = [(name, *map(_number, (tool.calls, tool.errors, tool.denied, tool.unanswered))) for name, tool in tools]
    _table(console, ("tool", "calls", "errors", "denied", "unanswered"), counts)
    kinds = sorted(stats.kinds.items(), key=lambda item: (-item[1].bytes, item[0]))
    shares = [
        (name, _number(kind.lines), _number(kind.bytes), f"{kind.bytes / stats.bytes:.1%}") for name, kind in kinds
    ]
    _table(console, ("kind of line", "lines", "bytes", ""), shares)


def _summary(stats: Stats) -> Iterator[str]:
    used = stats.usage
    turns = [f"{stats.ok:,} ok"] if stats.ok or not stats.results + stats.unfinished else []
    turns += [f"{times:,} {one_line(reason)}" for reason, times in sorted(stats.failed.items())]
    turns += [f"{stats.unfinished:,} without a result"] if stats.unfinished else []
    if stats.transcripts:
        yield f"transcripts: {stats.transcripts:,}, {counted(stats.prompts, 'prompt')}"
    if stats.has_turns:
        ended = f"{stats.results + stats.unfinished:,} ({', '.join(turns)})"
        yield f"turns: {ended}, {counted(used.num_turns, 'answer')} of the model"
    else:
        yield f"turns: {UNKNOWN}"
    without = ["turns without a result"] if stats.unfinished else []
    if stats.uncosted and stats.has_cost:
        without.append(f"{counted(stats.uncosted, 'transcript')} without a cost")
    cost = _usd(used.cost_usd) if stats.has_cost else UNKNOWN
    yield f"cost: {cost}{', excluding ' + ' and '.join(without) if without else ''}"
    retries = f", {counted(stats.api_retries, 'retry', 'retries')}" if stats.api_retries else ""
    in_turns = _seconds(used.duration_ms) if stats.has_turns else UNKNOWN
    in_api = _seconds(used.duration_api_ms) if stats.has_cost else UNKNOWN
    yield f"time: {in_turns} in turns, {in_api} in the API{retries}"
    yield (
        f"lines: {stats.lines:,} in {counted(stats.bytes, 'byte')}, {counted(stats.messages, 'message')}, "
        f"{stats.invalid:,} invalid, {stats.unknown:,} with something unknown"
    )


def _table(console: Output, headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table. If the terminal is too narrow for it, print one line of text for each row."""
    named = [(one_line(name), *cells) for name, *cells in rows]
    if not named:
        return
    console.print()
    columns = zip(headings, zip(*named, strict=True), strict=True)
    names, *numbers = [Column(heading, list(cells)) for heading, cells in columns]
    first, *lines = laid_out(names, numbers, (), None)
    if console.is_terminal and max(map(cell_count, [first, *lines])) > console.width:
        for name, *cells in named:
            facts = (f"{heading} {cell}".strip() for heading, cell in zip(headings[1:], cells, strict=True) if cell)
            console.say(f"{name}: {', '.join(facts)}")
        return
    console.say(first, "bold")
    for line in lines:
        console.say(line)


def _tokens(tokens: Tokens) -> Iterator[str]:
    return map(_number, _named(tokens).values())


def _number(value: int) -> str:
    return f"{value:,}"


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:,.2f} s"


def _usd(cost: float) -> str:
    return f"${cost:,.6f}"
