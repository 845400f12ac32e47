"""Print the differences as a table or as JSON.

The output has only the names of types and fields from the CLI's lines. These names are safe to print.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from claude_wire import PROTOCOL_VERSION
from claude_wire_kit.terminal.output import Output
from drift.floors import Source
from drift.wire import Drift

__all__ = ["Report"]

#: The width of the table if the output is not a terminal: wide enough to keep each row on one line.
PIPE_COLUMNS = 500


@dataclass
class Report:
    """The differences found in a CLI and in typings."""

    cli: str
    version: str
    #: Scenario that failed -> why.
    failed: Mapping[str, str]
    #: Kind -> number of messages.
    kinds: Mapping[str, int]
    drifts: list[Drift]
    #: The count of each source, and its floor.
    sources: list[Source]

    @property
    def short(self) -> list[Source]:
        """The sources whose counts are below their floors."""
        return [source for source in self.sources if source.is_short]

    def as_json(self) -> str:
        """Return one JSON object; see ``python -m drift --help``."""
        drifts: list[dict[str, Any]] = [
            {"change": drift.change, **drift.finding._asdict(), "where": drift.where} for drift in self.drifts
        ]
        plain = {"cli": self.cli, "version": self.version, "protocol": PROTOCOL_VERSION, "drift": drifts}
        sources = [{**source._asdict(), "short": source.is_short} for source in self.sources]
        kinds = dict(sorted(self.kinds.items()))
        return json.dumps({**plain, "failed": dict(self.failed), "kinds": kinds, "sources": sources})

    def print(self) -> None:
        """Print a table as wide as the terminal. If the output is not a terminal, every row is one line."""
        console = Output()
        said = f"{sum(self.kinds.values()):,} messages of {len(self.kinds)} kinds"
        console.say(f"{self.version or self.cli}: {said}, compared with the protocol of CLI {PROTOCOL_VERSION}")
        if self.drifts:
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
            for heading in ("", "what", "name", "first in"):
                table.add_column(heading, overflow="fold")
            for drift in self.drifts:
                table.add_row(*map(Text, (drift.change, drift.finding.what, _named(drift), drift.where)))
            if not console.is_terminal:
                console.width = PIPE_COLUMNS
            console.print(table)
        else:
            console.say("nothing is new, and nothing is gone" + (", in the little that was seen" if self.short else ""))
        for name, reason in self.failed.items():
            console.say(f"the scenario {name} did not finish: {reason}")
        self.print_sources()

    def print_sources(self, *, err: bool = False) -> None:
        """Print a row for each source, and then list the sources whose counts are below their floors."""
        width = max((len(source.name) for source in self.sources), default=0)
        for source in self.sources:
            state = "TOO LITTLE" if source.is_short else "ok"
            click.echo(f"{source.name:{width}}  {source.found:6,}  of at least {source.floor:6,}  {state}", err=err)
        if self.short:
            named = ", ".join(source.name for source in self.short)
            click.echo(f"error: the CLI sent too little to compare: {named}", err=True)


def _named(drift: Drift) -> str:
    what, name, path, reason = drift.finding
    at = f"at {path}" if path and path != name and what != "request" else ""
    named = path if what == "field" else " ".join(filter(None, (name, at)))
    return named if reason.startswith(("unknown ", "refused")) else f"{named}: {reason}"
