"""The command ``python -m drift``, which compares another CLI with this version of the library."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import click

import claude_wire
from claude_wire.flags.flags import Effort, PermissionMode, SettingSource
from claude_wire.messages.hooks.events import HOOK_EVENTS
from claude_wire.support.text import one_line
from claude_wire.testing import Recording
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.survey.fields import Finding
from drift import disk
from drift.floors import sources
from drift.report import Report
from drift.structs import structs_source
from drift.typings import MAX_BYTES, Typings
from drift.wire import Comparison
from offline import sandbox

__all__ = ["drift", "typings_of"]

#: The folder that contains this package, for the PYTHONPATH of the process in the namespace.
TOOLS = str(Path(__file__).resolve().parents[1])
#: Name of an SDK type that lists words -> the words that this version knows.
WORDS: dict[str, Iterable[str]] = {
    "PermissionMode": get_args(PermissionMode),
    "EffortLevel": get_args(Effort),
    "SettingSource": get_args(SettingSource),
    "HookEvent": HOOK_EVENTS,
}


@click.command()
@click.argument(
    "cli_path",
    metavar="CLI",
    type=click.Path(exists=True, dir_okay=False, executable=True, resolve_path=True, path_type=Path),
)
@click.option(
    "--typings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The sdk.d.ts of a TypeScript SDK, to be compared as well.",
)
@click.option("--structs", is_flag=True, help="Print Python source with Structs for what is new, instead of the table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option(
    "--record", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Keep the sessions there."
)
def drift(cli_path: Path, typings: Path | None, structs: bool, as_json: bool, record: Path | None) -> None:
    """Run another CLI offline, and list everything in its protocol that this version does not know.

    The CLI runs in a network namespace that has only a loopback interface, with an empty home, a minimal environment
    and a fake Messages API that plays scripts. So it has no network and costs nothing. If such a namespace cannot be
    made (it needs Linux, unshare and the permission to use it), the CLI is not started.

    The sessions have partial messages, permissions, hooks, MCP, interrupts, every control request, structured output,
    subagents, tasks, compaction and errors. The command compares the CLI's output and its transcripts with this
    version. It lists new types, subtypes, blocks, fields (by path), requests, hook events, flags and their words; and
    requests and flags of this version that the CLI refuses. Anything that did not occur in the sessions is not
    listed. It takes about a minute.

    --structs prints a module with a Struct for each new type, and with the new fields of known types. Their types are
    those of the recorded values: review each before you use it.

    The last rows are the sources of the comparison, with the count of each and its floor. A count below the floor is
    an error, because the comparison then was not complete.

    Exit code: 0 if nothing differs and all scenarios succeeded, 1 if not, 2 if the CLI cannot be run in this way or a
    source is below its floor.

    \b
    --json prints {"cli": str, "version": str, "protocol": "2.1.332", "drift": [DRIFT...],
                   "failed": {"scenario": "why"}, "kinds": {"assistant": int, ...},
                   "sources": [{"name": str, "found": int, "floor": int, "short": bool}...]}; DRIFT is
      {"change": "new", "what": "field", "name": "zzz", "path": "user.zzz", "reason": str, "where": "hooks.1, line 4"}
    "change" is new or gone; "what" is as for claude-wire check, or one of answer, flag, word, line.
    """
    if structs and as_json:
        raise click.UsageError("--structs and --json exclude each other.")
    comparison = Comparison()
    if typings is not None:
        try:
            _compare_typings(typings, comparison)
        except RecursionError:
            raise Failure(f"{typings} cannot be read: it is nested too deeply") from None
    with tempfile.TemporaryDirectory(prefix="claude-wire-drift-") as temporary:
        folder = _drive(cli_path, record or Path(temporary))
        report = _report(cli_path, folder, comparison, with_typings=typings is not None)
    if structs:
        title = f"What {report.version or cli_path.name} has and claude_wire {claude_wire.__version__} has not."
        click.echo(structs_source(report.drifts, title), nl=False)
        report.print_sources(err=True)
    elif as_json:
        click.echo(report.as_json())
    else:
        report.print()
    click.get_current_context().exit(2 if report.short else 1 if report.drifts or report.failed else 0)


def _drive(cli: Path, folder: Path) -> Path:
    """Run the CLI in its namespace, and return the folder with the recordings."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if any(folder.iterdir()):
            raise Failure(f"{folder} cannot be used for the recording: it is not empty")
        folder = folder.resolve()
        command = [sys.executable, "-m", "drift.inside", str(cli), str(folder)]
        code = sandbox.run_inside(command, {"PYTHONPATH": TOOLS})
    except OSError as error:
        raise Failure(f"{folder} cannot be used for the recording: {error.strerror}") from error
    except RuntimeError as error:
        raise Failure(str(error)) from error
    if code:
        raise Failure("the CLI cannot be driven; the reason is above")
    return folder


def _report(cli: Path, folder: Path, comparison: Comparison, *, with_typings: bool) -> Report:
    for recording in sorted(path for path in folder.iterdir() if path.is_dir() and path.name != disk.FOLDER):
        comparison.session(recording.name, Recording.load(recording).steps)
    for name, data in disk.kept(folder):
        comparison.transcript(name, data)
    said: dict[str, Any] = json.loads((folder / "cli.json").read_bytes())
    flags = said["flags"]
    comparison.found["flags in the help"] += flags["listed"]
    comparison.found["flags that the parser judged"] += flags["asked"]
    comparison.found["kinds of messages"] += len(comparison.heard)
    comparison.found["events of hooks"] += sum("/hook_callback/" in kind for kind in comparison.heard)
    for change, reason in (("new", "unknown "), ("gone", "refused ")):
        where = "--help" if change == "new" else "the command line"
        for flag in flags[change]:
            comparison.add(change, Finding("flag", one_line(flag), "", reason + "flag"), where)
        for flag, words in flags[f"{change}_words"].items():
            for word in words:
                comparison.add(change, Finding("word", one_line(word), flag, reason + "word"), where)
    found = sources(comparison.found, without="" if with_typings else "typings")
    return Report(str(cli), said["version"], said["failed"], comparison.kinds, comparison.drifts(), found)


def typings_of(file: Path) -> Typings:
    """Parse the declarations in a file. Read at most :data:`MAX_BYTES`, because the file may be an endless device."""
    with open(file, "rb") as opened:
        return Typings(opened.read(MAX_BYTES + 1))


def _compare_typings(file: Path, comparison: Comparison) -> None:
    declared = typings_of(file)
    for name, message in declared.messages():
        comparison.found["typings, messages"] += 1
        comparison.message(message, name)
    for name, subtype, payload in declared.answers():
        comparison.found["typings, answers"] += 1
        comparison.answer(subtype, payload, name)
    for name, known in WORDS.items():
        for word in declared.words(name):
            comparison.found[f"typings, words of {name}"] += 1
            if word not in known:
                comparison.add("new", Finding("word", one_line(word), name, "unknown word"), name)
