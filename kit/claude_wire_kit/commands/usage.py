"""The command ``claude-wire usage``: show tokens and cost of the sessions on disk, as a table, JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import click

from claude_wire.support import one_line, printable
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.json_output import print_csv, print_json
from claude_wire_kit.commands.shared.options import takes_json_or_csv
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.selection import Selection, projects_folder, takes_selection
from claude_wire_kit.terminal.columns import Column, laid_out, printed, shortened, terminal_width
from claude_wire_kit.usage.index import PERIODS, By, OwnCost, UsageIndex
from claude_wire_kit.usage.prices import PRICES, Prices
from claude_wire_kit.usage.tokens import AnswerTotals

COUNTS = (
    *("answers", "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation_5m"),
    *("cache_creation_1h", "cache_read_input_tokens"),
)
#: A note below the table that says which usage is missing from the numbers.
LEFT_OUT = (
    "Transcripts do not contain the CLI's own requests (compaction, titles, suggestions), and answers that a killed "
    "process had not written yet."
)
#: A note about the column "CLI's own".
OWN = "The CLI's own sums (cost-state) include most of that; the sum of a fork includes that of its original."
#: A name from a transcript is cut to this many characters.
NAME_CHARS = 1000

Sums = dict[str, dict[str, AnswerTotals]]


@click.command()
@takes_selection
@click.option("--by", type=click.Choice(get_args(By)), default="day", show_default=True, help="Group rows by this.")
@click.option("--tz", "zone", metavar="ZONE", help="Time zone for day boundaries (default: local).")
@click.option("--prices", "prices_file", metavar="FILE", help="Prices in LiteLLM's format, instead of those built in.")
@takes_json_or_csv("row and model")
@click.option("--prune", is_flag=True, help="Forget deleted transcripts.")
@click.option("--no-index", is_flag=True, help="Read all files, and keep nothing for the next time.")
def usage(
    selection: Selection,
    by: By,
    zone: str | None,
    prices_file: str | None,
    as_json: bool,
    as_csv: bool,
    prune: bool,
    no_index: bool,
) -> None:
    """Add up tokens and cost of the sessions on disk.

    FOLDER is by default the CLI's "projects" folder in CLAUDE_CONFIG_DIR or in ~/.claude.

    Each answer of the model counts once, even if several files have it: forks, resumed sessions, subagents. The costs
    follow from list prices, whose date the output shows; "?" means that a model has no price. With --by session and
    --by model, "CLI's own" is the cost that the CLI itself reports for the whole session, including its own requests.

    An index in XDG_CACHE_HOME/claude-wire or ~/.cache/claude-wire keeps the numbers, so the next run reads only new
    lines. The index has no text of conversations. The CLI deletes transcripts after some days; their numbers stay in
    the index until --prune.

    Exit code: 0; 2 if the folder cannot be read.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    folder, project, period = selection
    prices = PRICES if prices_file is None else _load(prices_file)
    with (
        Progress("reading transcripts") as progress,
        UsageIndex(folder, ":memory:" if no_index else None, on_file=progress.show) as index,
    ):
        try:
            if prune:
                index.prune()
            bounds: Any = {"since": period.first, "until": period.last, "zone": period.zone}
            sums = index.sums(by, **bounds, project=project, prices=prices)
            own = {} if selection.is_limited else index.own_costs()
        except OSError as error:
            raise Failure(f"{printable(folder, keep='')} cannot be read: {error.strerror}") from error
        progress.hide()
        for note in index.notes:
            click.echo(f"note: {printable(note, keep='')}", err=True)
        if index.gone:
            gone = "1 transcript is" if len(index.gone) == 1 else f"{len(index.gone):,} transcripts are"
            click.echo(f"note: {gone} gone, and still counted; --prune forgets what is gone", err=True)
        for path in index.unreadable:
            click.echo(f"note: {printable(str(path), keep='')} cannot be read, and is not in the sums", err=True)
        if not (index.files or index.gone):
            click.echo(
                f"note: no transcripts (.jsonl files) found below {printable(folder, keep='')}. The CLI keeps them in "
                f"{printable(projects_folder(), keep='')}",
                err=True,
            )
        elif not sums:
            limits = {"--since": period.first, "--until": period.last, "--project": project}
            given = [option for option, value in limits.items() if value is not None]
            where = f" within {' and '.join(given)}" if given else ""
            click.echo(f"note: no answers of the model found in {printable(folder, keep='')}{where}", err=True)
    if as_json:
        print_json(usage_as_json(by, sums, own, index, prices))
    elif as_csv:
        _print_csv(by, sums)
    else:
        _print(by, sums, own, prices)


def _load(path: str) -> Prices:
    try:
        return Prices.load(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Failure(f"the prices in {printable(path, keep='')} cannot be read: {reason}") from error


# --- JSON and CSV -----------------------------------------------------------------------------------------------------


def usage_as_json(by: By, sums: Sums, own: dict[str, OwnCost], index: UsageIndex, prices: Prices) -> dict[str, Any]:
    """Return the object that ``usage --json`` prints.

        {"by": str, "models": {NAME: TOKENS, ...}, "costs": {NAME: COST, ...},
         "rows": {NAME: {"tokens": TOKENS, "cost": COST, "models": {NAME: TOKENS, ...}}, ...},
         "total": {"tokens": TOKENS, "cost": COST}, "prices": str, "files": int, "bytes": int,
         "unreadable": [PATH, ...], "gone": [PATH, ...]}
        TOKENS: {"answers": int, "input_tokens": int, "output_tokens": int,
          "cache_creation_input_tokens": int, "cache_creation_5m": int, "cache_creation_1h": int,
          "cache_read_input_tokens": int}
        COST: {"usd": number or null, "unpriced_answers": int, "cli_usd": number or null}

    ``usd`` is null if an answer has no price, ``cli_usd`` if the CLI does not report its cost. ``rows`` follow
    ``--by``; with ``--by model`` they are empty.
    """
    models = _by_model(sums)
    by_model, by_name = _own_by(own, "model"), _own_by(own, by)
    whole = sum(cost.total for cost in own.values()) if own else None
    return {
        "by": by,
        "models": {name: _tokens(totals) for name, totals in models.items()},
        "costs": {name: _cost(totals, by_model.get(name)) for name, totals in models.items()},
        "rows": {
            name: {
                "tokens": _tokens(_total(each.values())),
                "cost": _cost(_total(each.values()), by_name.get(name)),
                "models": {model: _tokens(totals) for model, totals in each.items()},
            }
            for name, each in (sums.items() if by != "model" else ())
        },
        "total": {"tokens": _tokens(_total(models.values())), "cost": _cost(_total(models.values()), whole)},
        "prices": prices.name,
        "files": index.files,
        "bytes": index.bytes,
        "unreadable": [str(path) for path in index.unreadable],
        "gone": [str(path) for path in index.gone],
    }


def _tokens(totals: AnswerTotals) -> dict[str, int]:
    return {name: getattr(totals, name) for name in COUNTS}


def _cost(totals: AnswerTotals, own: float | None) -> dict[str, Any]:
    usd = None if totals.unpriced else totals.cost_usd
    return {"usd": usd, "unpriced_answers": totals.unpriced, "cli_usd": own}


def _print_csv(by: By, sums: Sums) -> None:
    rows = [
        {
            **({} if by == "model" else {by: _name(name)}),
            "model": _name(model),
            **_tokens(totals),
            "usd": None if totals.unpriced else f"{totals.cost_usd:.6f}",
        }
        for name, models in sums.items()
        for model, totals in models.items()
    ]
    print_csv([*([] if by == "model" else [by]), "model", *COUNTS, "usd"], rows)


def _total(each: Iterable[AnswerTotals]) -> AnswerTotals:
    total = AnswerTotals()
    for totals in each:
        total.add(totals)
    return total


def _by_model(sums: Sums) -> dict[str, AnswerTotals]:
    names = sorted({model for models in sums.values() for model in models})
    return {name: _total(models[name] for models in sums.values() if name in models) for name in names}


def _own_by(own: dict[str, OwnCost], by: By) -> dict[str, float]:
    """Add up the CLI's own costs by session or by model. Empty for other groups."""
    if by == "session":
        return {session: cost.total for session, cost in own.items()}
    found: dict[str, float] = {}
    for cost in own.values() if by == "model" else ():
        for model, usd in cost.models.items():
            found[model] = found.get(model, 0.0) + usd
    return found


# --- the table --------------------------------------------------------------------------------------------------------


def _print(by: By, sums: Sums, own: dict[str, OwnCost], prices: Prices) -> None:
    width = terminal_width()
    rows = _by_model(sums) if by == "model" else {name: _total(models.values()) for name, models in sums.items()}
    if not rows:
        return
    if by not in PERIODS:
        rows = dict(sorted(rows.items(), key=lambda row: (-row[1].cost_usd, -row[1].total, row[0])))
    total = _total(rows.values())
    lines = [*rows.values(), total]
    columns = [
        Column("answers", [f"{each.answers:,}" for each in lines], 3),
        Column("input", [shortened(each.input_tokens) for each in lines], 4),
        Column("output", [shortened(each.output_tokens) for each in lines], 2),
        Column("written", [shortened(each.cache_creation_input_tokens) for each in lines], 6),
        Column("read", [shortened(each.cache_read_input_tokens) for each in lines], 5),
        Column("cost", [_usd(each) for each in lines]),
    ]
    own_by = _own_by(own, by)
    if own_by:
        whole = sum(cost.total for cost in own.values())
        said = [f"${own_by[name]:,.2f}" if name in own_by else "" for name in rows]
        columns.append(Column("CLI's own", [*said, f"${whole:,.2f}"], 1))
    most = max((each.cost_usd for each in rows.values()), default=0.0)
    shares = [each.cost_usd / most if most else 0.0 for each in rows.values()]
    names = Column(by, [*(_name(name) or "(not said)" for name in rows), "total"])
    for line in laid_out(names, columns, shares if by in PERIODS else (), width, keep_end=by == "project"):
        click.echo(line)
    click.echo()
    printed(list(_notes(sums, total, own, prices)), width)


def _notes(sums: Sums, total: AnswerTotals, own: dict[str, OwnCost], prices: Prices) -> Iterable[str]:
    yield f"Costs are in US dollars, by the {_name(prices.name)}."
    if total.unpriced:
        unknown = [_name(name) for name, each in _by_model(sums).items() if each.unpriced]
        yield f"?: {total.unpriced:,} answers of a model without a price: {', '.join(unknown[:10])}."
    yield LEFT_OUT
    if own:
        whole = sum(cost.total for cost in own.values())
        yield f"{OWN} They add up to ${whole:,.2f} in {len(own):,} sessions."


def _name(name: str) -> str:
    return one_line(name, NAME_CHARS)


def _usd(totals: AnswerTotals) -> str:
    if totals.unpriced == totals.answers and totals.answers:
        return "?"
    return f"${totals.cost_usd:,.2f}" + ("+?" if totals.unpriced else "")
