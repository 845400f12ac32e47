"""The command ``claude-wire search``: find text in the sessions on disk, and show how to resume them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

from claude_wire.support import moment, one_line, printable
from claude_wire.transcripts import SessionInfo
from claude_wire.transcripts.sessions import session_files, session_info
from claude_wire_kit.commands.sessions import SESSION_KEYS, headline, resume_line, session_as_json
from claude_wire_kit.commands.shared.json_output import print_csv, print_json, time_as_json
from claude_wire_kit.commands.shared.options import takes_json_or_csv
from claude_wire_kit.commands.shared.progress import Progress
from claude_wire_kit.commands.shared.selection import Selection, takes_selection
from claude_wire_kit.survey.search import Pattern, Role, Said, files_of, said_in
from claude_wire_kit.terminal.columns import cell_count, fitted, terminal_width

#: The width of a row in columns if the output is not a terminal.
PLAIN_WIDTH = 160

#: Show at most this many characters of a match, and this many before it and after it.
MATCH_CHARS, AROUND_CHARS = 80, 400


class _Match(NamedTuple):
    said: Said
    before: str
    match: str
    after: str


class _Found(NamedTuple):
    session: SessionInfo
    matches: list[_Match]
    #: How many more matches the session has.
    more: int


@click.command()
@click.argument("pattern")
@takes_selection
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(get_args(Role)), help="Search only the words of this role."
)
@click.option(
    "--tool", "tools", multiple=True, metavar="NAME", help="Search only the input and the results of this tool."
)
@click.option("-i", "--ignore-case", is_flag=True, help="Ignore upper and lower case.")
@click.option("-F", "--fixed-strings", is_flag=True, help="PATTERN is plain text, not a regular expression.")
@click.option("-n", "--newest", type=click.IntRange(1), default=20, show_default=True, help="Number of sessions.")
@click.option("-m", "--most", type=click.IntRange(1), default=3, show_default=True, help="Matches for each session.")
@takes_json_or_csv("match")
def search(
    pattern: str,
    selection: Selection,
    roles: tuple[Role, ...],
    tools: tuple[str, ...],
    ignore_case: bool,
    fixed_strings: bool,
    newest: int,
    most: int,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Search what was said in the sessions on disk.

    PATTERN is a regular expression of Python. The search covers prompts, answers, thinking, and the inputs and results
    of tools, including those of subagents. The newest sessions come first. The output shows each session with a match,
    and the command that resumes the session.

    FOLDER is by default the CLI's "projects" folder in CLAUDE_CONFIG_DIR or in ~/.claude.

    Exit code: 0 if there is a match, 1 if there is none, 2 if the folder cannot be read.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    if not pattern:
        raise click.BadParameter("an empty pattern matches every text.", param_hint="PATTERN")
    try:
        wanted = Pattern.of(pattern, fixed=fixed_strings, ignore_case=ignore_case)
    except ValueError as error:
        raise click.BadParameter(f"{one_line(str(error))}.", param_hint="PATTERN") from error
    search = _Search(wanted, set(roles), set(tools), selection, most)
    columns = terminal_width() or PLAIN_WIDTH
    found: list[_Found] = []
    with Progress("searching") as progress:
        for each in search.sessions(progress):
            found.append(each)
            if not (as_json or as_csv):
                progress.hide()
                _print(each, columns, first=len(found) == 1)
            if len(found) == newest:
                break
    if as_json:
        print_json({"sessions": [found_as_json(each) for each in found]})
    elif as_csv:
        _print_csv(found)
    if not found:
        click.echo(f"note: nothing found in {printable(selection.folder, keep='')}", err=True)
        click.get_current_context().exit(1)


class _Search(NamedTuple):
    pattern: Pattern
    roles: set[Role]
    tools: set[str]
    selection: Selection
    #: Maximum number of matches to show for a session.
    most: int

    def sessions(self, progress: Progress) -> Iterator[_Found]:
        inside, project = self.selection.narrowed, self.selection.project
        paths = [] if inside is None else session_files(inside, newest_first=True)
        for number, path in enumerate(paths):
            progress.show(number, len(paths))
            found = self._matches(path)
            if not found[0]:
                continue
            try:
                session = session_info(path)
            except OSError:  # the file was deleted in the meantime
                continue
            if project is None or session.project == project:
                yield _Found(session, *found)

    def _takes(self, said: Said) -> bool:
        if (self.roles and said.role not in self.roles) or (self.tools and said.tool not in self.tools):
            return False
        period = self.selection.period
        return not period.is_limited or period.has(when := moment(said.time), when)

    def _may_be_in(self, path: Path) -> bool:
        # The CLI appends to a file, so a file that last changed before the period has no record in the period.
        return not self.selection.period.begins_after(path.stat().st_mtime) and self.pattern.may_be_in(path)

    def _matches(self, session: Path) -> tuple[list[_Match], int]:
        matches: list[_Match] = []
        more = 0
        for path in files_of(session):
            try:
                for said in said_in(path) if self._may_be_in(path) else ():
                    match = self.pattern.search(said.text) if self._takes(said) else None
                    if match is not None and len(matches) < self.most:
                        matches.append(_around(said, match))
                    else:
                        more += match is not None
            except OSError as error:
                reason = error.strerror or str(error)
                click.echo(f"note: {printable(str(path), keep='')} cannot be read: {reason}", err=True)
        return matches, more


def _around(said: Said, match: re.Match[str]) -> _Match:
    begin, end = match.span()
    before, after = said.text[max(begin - AROUND_CHARS, 0) : begin], said.text[end : end + AROUND_CHARS]
    return _Match(said, before, said.text[begin : min(end, begin + MATCH_CHARS)], after)


def found_as_json(found: _Found) -> dict[str, Any]:
    """Return a session for ``search --json``.

        {"sessions": [SESSION, ...]}
        SESSION: {... as in "sessions" without "kept_until" and "goes_soon",
          "matches": [{"role": str, "tool": str or null, "time": TIME or null,
            "before": str, "match": str, "after": str}, ...], "more": int}

    ``time`` is null if the record has no valid time. ``more`` counts the matches beyond those listed.
    """
    matches = [
        {
            "role": each.said.role,
            "tool": each.said.tool,
            "time": time_as_json(moment(each.said.time)),
            "before": each.before,
            "match": each.match,
            "after": each.after,
        }
        for each in found.matches
    ]
    return {**session_as_json(found.session), "matches": matches, "more": found.more}


def _print_csv(found: list[_Found]) -> None:
    rows: list[dict[str, Any]] = []
    for session in map(found_as_json, found):
        matches = session.pop("matches")
        rows += ({**session, **match} for match in matches)
    print_csv([*SESSION_KEYS, "more", "role", "tool", "time", "before", "match", "after"], rows)


def _print(found: _Found, columns: int, *, first: bool) -> None:
    click.echo("\n" * (not first) + click.style(fitted(headline(found.session), columns), bold=True))
    for match in found.matches:
        who = match.said.role if match.said.tool is None else one_line(match.said.tool)
        click.echo(_row(fitted(f"  {who}: ", max(columns // 2, 1)), match, columns))
    if found.more:
        click.echo(fitted(f"  … {found.more:,} more", columns))
    click.echo(f"  {resume_line(found.session)}")


def _row(label: str, match: _Match, columns: int) -> str:
    """Return a match and the text around it, cut to the width of one row."""
    text = fitted(_line(match.match), max(columns - cell_count(label), 1))
    left = max(columns - cell_count(label) - cell_count(text), 0)
    after = fitted(_line(match.after), left - left // 3) if left > 3 else ""
    before = fitted(_line(match.before), left - cell_count(after), keep_end=True) if left > 3 else ""
    return label + before + click.style(text, bold=True, fg="red") + after


def _line(text: str) -> str:
    """Return text with each run of white space replaced with one space, safe to print."""
    return re.sub(r"\s+", " ", printable(text))
