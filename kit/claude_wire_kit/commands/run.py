"""The command ``claude-wire run``: run the CLI with a prompt, and show the session live."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import anyio
import click
from click.core import ParameterSource

from claude_wire import ClaudeOptions
from claude_wire.errors import CLINotFoundError
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.sources import standard_input
from claude_wire_kit.terminal.output import Output
from claude_wire_kit.terminal.page import Page
from claude_wire_kit.terminal.record import Recorder
from claude_wire_kit.terminal.session import TerminalSession


@click.command()
@click.argument("prompt", metavar="-- PROMPT")
@click.argument("flags", metavar="[FLAGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--model", metavar="NAME", help="Name or alias of the model.")
@click.option("--permission-mode", metavar="MODE", help="default, acceptEdits, plan, auto, dontAsk, bypassPermissions.")
@click.option("--allowed-tools", metavar="TOOL", multiple=True, help='Use without asking: "Bash(git *)".')
@click.option("--disallowed-tools", metavar="TOOL", multiple=True, help="Refuse without asking.")
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Maximum number of model responses.")
@click.option("--max-budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Maximum cost.")
@click.option("--resume", metavar="ID", help="Resume this session.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, resolve_path=True), help="Work in this directory.")
@click.option(
    "--cli",
    "cli_path",
    type=click.Path(exists=True, dir_okay=False, executable=True, resolve_path=True),
    help="The CLI (default: searched for).",
)
@click.option("--partial/--no-partial", default=True, help="Show text as it streams, or when it is complete.")
@click.option("--attach", metavar="ID", help="Send the prompt to this session of a supervisor.")
@click.option("--ssh", metavar="HOST", help="With --attach: the supervisor is on that machine.")
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Record the session there.")
def run(
    prompt: str,
    flags: tuple[str, ...],
    cwd: str | None,
    partial: bool,
    attach: str | None,
    ssh: str | None,
    record: str | None,
    allowed_tools: tuple[str, ...],
    disallowed_tools: tuple[str, ...],
    **options: Any,
) -> None:
    """Run the CLI with a prompt, and show the session live.

    PROMPT is the text of the prompt, or - to read it from standard input. FLAGS after it are passed to the CLI.
    "claude-wire view --help" explains the output. The run is over when nothing more will come: the subagents in the
    background have ended, and so have the commands in the background, unless they have run for
    CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS (milliseconds; 600000 by default, 0 for no limit).

    The CLI's questions for permission are asked at the terminal: y, n, or n with a reason for the model. What the CLI
    suggests to allow for longer than this once is listed with numbers; such a number is y, and that one suggestion.
    Where standard input or output is no terminal, everything that is asked is denied.

    Ctrl-C interrupts the turn; once more, it ends the CLI.

    With --attach the prompt goes to a session that runs already ("claude-wire supervisor"), and the session goes on
    when its run is over. Ctrl-C interrupts the turn; once more, it leaves the session.

    With --record, DIR gets what both sides wrote, byte for byte and with times: stdin.ndjson, stdout.ndjson,
    order.jsonl, stdout.reads.jsonl, stderr.txt, cmd.json, exit.json, for "claude-wire view", "stats" and "replay". It
    must be empty or not be there. Only its owner can read it: prompts, results of tools and the command line are in
    it, with whatever secrets they have; of the environment only what can be no secret.

    Exit code: 0 if all turns succeeded, 1 if one failed, a subagent was stopped or the CLI failed, 2 for wrong usage,
    without a CLI, or if the output cannot be written, 130 after Ctrl-C.
    """
    if prompt == "-":
        try:
            prompt = standard_input().read()
        except UnicodeDecodeError as error:
            raise Failure(f"the prompt is not {error.encoding}: {error.reason} at byte {error.start}") from error
    if not prompt.strip():
        raise click.UsageError("the prompt is empty.")
    if attach is not None:
        _refuse_flags_of_a_cli(click.get_current_context())
        from claude_wire_kit.commands.supervisor.interactive import ask

        click.get_current_context().exit(ask(attach, prompt, ssh))
    if ssh is not None:
        raise click.UsageError("--ssh needs --attach.")
    try:
        argv = ClaudeOptions(
            **options,
            allowed_tools=allowed_tools,
            disallowed_tools=disallowed_tools,
            include_partial_messages=partial,
            permission_prompt_tool="stdio",
        ).argv()
    except CLINotFoundError as error:
        raise Failure(str(error).replace("ClaudeOptions(cli_path=...)", "--cli")) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    recorder = None
    if record is not None:
        try:
            recorder = Recorder(record)
        except OSError as error:
            raise Failure(f"{record} cannot be recorded into: {error.strerror}") from error
    click.get_current_context().exit(_run([*argv, *flags], prompt, cwd, recorder))


def _refuse_flags_of_a_cli(context: click.Context) -> None:
    """Refuse options that make sense only for a CLI that this command starts."""
    for parameter in context.command.params:
        name = parameter.name or ""
        # click 8.1 reports COMMANDLINE as the source of FLAGS even if there are none.
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name] != ()
        if given and name not in ("prompt", "attach", "ssh"):
            raise click.UsageError(f"{parameter.opts[0]} is for a CLI that is started; --attach finds one.")


def _run(argv: list[str], prompt: str, cwd: str | None, recorder: Recorder | None) -> int:
    try:
        with closing(Page(Output(), row=True)) as page:
            return anyio.run(TerminalSession(page, recorder).run, argv, prompt, cwd)
    finally:
        if recorder is not None:
            recorder.close()
            if recorder.error is not None:
                click.echo(f"claude-wire: the recording is not whole: {recorder.error.strerror}", err=True)
