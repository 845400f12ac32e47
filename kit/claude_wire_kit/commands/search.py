"""The command ``claude-wire search``: find text in the sessions on disk, and show how to resume them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

from claude_wire.support import one_line, printable
from claude_wire.transcripts import SessionInfo
from claude_wire.transcripts.sessions import session_files, session_info
from claude_wire_kit.commands.sessions import headline, resume_line, session_as_json
from claude_wire_kit.commands.shared.folders import takes_folder
from claude_wire_kit.survey.search import Pattern, Role, Said, files_of, said_in
from claude_wire_kit.terminal.columns import cell_count, fitted, terminal_width

#: The width of a row if the output is no terminal.
PLAIN_WIDTH = 160

#: A match is cut to the first number of characters. Before and after it, the second number of characters is considered.
MATCH_CHARS, AROUND_CHARS = 80, 400


class _Match(NamedTuple):
    said: Said
    before: str
    match: str
    behind: str


class _Found(NamedTuple):
    session: SessionInfo
    matches: list[_Match]
    #: How many more matches the session has.
    more: int


@click.command()
@click.argument("pattern")
@takes_folder
@click.option("--role", "roles", multiple=True, type=click.Choice(get_args(Role)), help="Only what these have said.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Only the input and the results of this tool.")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("-F", "--fixed-strings", is_flag=True, help="PATTERN is a text, and no regular expression.")
@click.option("-n", "--newest", type=click.IntRange(1), default=20, help="So many sessions; 20 if not said.")
@click.option("-m", "--most", type=click.IntRange(1), default=3, help="So many matches of each; 3 if not said.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def search(
    pattern: str,
    folder: str,
    roles: tuple[Role, ...],
    tools: tuple[str, ...],
    ignore_case: bool,
    fixed_strings: bool,
    newest: int,
    most: int,
    as_json: bool,
) -> None:
    """Search what was said in the sessions on disk.

    PATTERN is a regular expression as Python has them. The search covers prompts, answers, thinking, and the inputs
    and results of tools, also those of subagents. The sessions changed last come first. Each session with a match is
    shown with the command that resumes it.

    FOLDER is the CLI's projects folder, if none is named: that in CLAUDE_CONFIG_DIR, or in ~/.claude.

    Exit code: 0 if something was found, 1 if nothing was, 2 if the folder cannot be read.

    \b
    --json prints {"sessions": [{... as "claude-wire sessions" has it, "matches": [{"role": str,
      "tool": str or null, "time": str or null, "before": str, "match": str, "behind": str}, ...],
      "more": int}, ...]}
    """
    if not pattern:
        raise click.BadParameter("an empty pattern matches every text.", param_hint="PATTERN")
    try:
        wanted = Pattern.of(pattern, fixed=fixed_strings, ignore_case=ignore_case)
    except ValueError as error:
        raise click.BadParameter(f"{one_line(str(error))}.", param_hint="PATTERN") from error
    width = terminal_width()
    found: list[_Found] = []
    for each in _search(folder, wanted, set(roles), set(tools), most):
        found.append(each)
        if not as_json:
            _print(each, width, first=len(found) == 1)
        if len(found) == newest:
            break
    if as_json:
        click.echo(json.dumps({"sessions": [_as_json(each) for each in found]}))
    if not found:
        if sys.stderr.isatty():  # a program needs only the exit code, as from grep
            click.echo("nothing found", err=True)
        click.get_current_context().exit(1)


def _search(folder: str, pattern: Pattern, roles: set[Role], tools: set[str], most: int) -> Iterator[_Found]:
    for path in session_files(folder, newest_first=True):
        found = _matches(path, pattern, roles, tools, most)
        if not found[0]:
            continue
        try:
            session = session_info(path)
        except OSError:  # the file was deleted meanwhile
            continue
        yield _Found(session, *found)


def _matches(session: Path, pattern: Pattern, roles: set[Role], tools: set[str], most: int) -> tuple[list[_Match], int]:
    matches: list[_Match] = []
    more = 0
    for path in files_of(session):
        try:
            for said in said_in(path) if pattern.may_be_in(path) else ():
                if (roles and said.role not in roles) or (tools and said.tool not in tools):
                    continue
                match = pattern.search(said.text)
                if match is not None and len(matches) < most:
                    matches.append(_around(said, match))
                else:
                    more += match is not None
        except OSError as error:
            reason = error.strerror or str(error)
            click.echo(f"note: {printable(str(path), keep='')} cannot be read: {reason}", err=True)
    return matches, more


def _around(said: Said, match: re.Match[str]) -> _Match:
    begin, end = match.span()
    before, behind = said.text[max(begin - AROUND_CHARS, 0) : begin], said.text[end : end + AROUND_CHARS]
    return _Match(said, before, said.text[begin : min(end, begin + MATCH_CHARS)], behind)


def _as_json(found: _Found) -> dict[str, Any]:
    matches = [
        {**each.said._asdict(), "before": each.before, "match": each.match, "behind": each.behind}
        for each in found.matches
    ]
    for match in matches:
        del match["text"]
    return {**session_as_json(found.session), "matches": matches, "more": found.more}


def _print(found: _Found, width: int | None, *, first: bool) -> None:
    room = width or PLAIN_WIDTH
    click.echo("\n" * (not first) + click.style(fitted(headline(found.session), room), bold=True))
    for match in found.matches:
        who = match.said.role if match.said.tool is None else one_line(match.said.tool)
        click.echo(_row(fitted(f"  {who}: ", max(room // 2, 1)), match, room))
    if found.more:
        click.echo(fitted(f"  … {found.more:,} more", room))
    click.echo(f"  {resume_line(found.session)}")


def _row(label: str, match: _Match, room: int) -> str:
    """Return a match and the text around it on one row."""
    text = fitted(_line(match.match), max(room - cell_count(label), 1))
    left = max(room - cell_count(label) - cell_count(text), 0)
    behind = fitted(_line(match.behind), left - left // 3) if left > 3 else ""
    before = fitted(_line(match.before), left - cell_count(behind), keep_end=True) if left > 3 else ""
    return label + before + click.style(text, bold=True, fg="red") + behind


def _line(text: str) -> str:
    """Return a piece of a text on one line. It may begin and end within a word."""
    return re.sub(r"\s+", " ", printable(text))
