"""The command ``claude-wire run``: run the CLI with a prompt, and show the session live."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import anyio
import click
from click.core import ParameterSource

from claude_wire import ClaudeOptions
from claude_wire.errors import CLINotFoundError
from claude_wire_kit.commands.shared.failure import Failure, missing_cli
from claude_wire_kit.commands.shared.options import takes_cli
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
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Maximum number of answers of the model.")
@click.option("--max-budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Maximum cost.")
@click.option("--resume", metavar="ID", help="Resume this session.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, resolve_path=True), help="Work in this directory.")
@takes_cli
@click.option("--partial/--no-partial", default=True, help="Show text as it streams, or when it is complete.")
@click.option("--attach", metavar="ID", help="Send the prompt to this session of a supervisor.")
@click.option("--ssh", metavar="HOST", help="With --attach: the supervisor is on that machine.")
@click.option("--record", type=click.Path(file_okay=False), metavar="DIR", help="Record the session in DIR.")
def run(
    prompt: str,
    flags: tuple[str, ...],
    cwd: str | None,
    cli: str | None,
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
    "claude-wire view --help" explains the output. The command waits for subagents and commands in the background. It
    waits for a command at most CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS (milliseconds; 600000 by default, 0 for no limit).

    The command asks the CLI's permission questions at the terminal: answer y, n, or n with a reason for the model. The
    CLI may suggest permissions that last longer, each with a number; a number means y, and accepts the suggestion. If
    standard input or output is not a terminal, the answer to every question is no.

    Ctrl-C interrupts the turn; a second Ctrl-C terminates the CLI.

    With --attach, the prompt goes to a running session of a supervisor ("claude-wire supervisor"), which continues
    afterwards. Ctrl-C interrupts the turn; a second Ctrl-C leaves the session.

    With --record, DIR gets everything that both sides wrote, byte for byte and with times: stdin.ndjson, stdout.ndjson,
    order.jsonl, stdout.reads.jsonl, stderr.txt, cmd.json, exit.json. "claude-wire view", "stats" and "replay" read it.
    DIR must be empty or not exist. Only you can read it: prompts, results of tools and the command line may contain
    secrets. Of the environment, only variables that cannot be secrets are recorded.

    Exit code: 0 if all turns succeeded; 1 if a turn failed, a subagent was stopped or the CLI failed; 2 for wrong
    usage, if no CLI is found, or if the output cannot be written; 130 after Ctrl-C.
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
            cli_path=cli,
            allowed_tools=allowed_tools,
            disallowed_tools=disallowed_tools,
            include_partial_messages=partial,
            permission_prompt_tool="stdio",
        ).argv()
    except CLINotFoundError as error:
        raise missing_cli(error, "--cli") from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    recorder = None
    if record is not None:
        try:
            recorder = Recorder(record)
        except OSError as error:
            raise Failure(f"the recording cannot be written to {record}: {error.strerror}") from error
    click.get_current_context().exit(_run([*argv, *flags], prompt, cwd, recorder))


def _refuse_flags_of_a_cli(context: click.Context) -> None:
    """Refuse options that only affect CLIs that this command starts itself."""
    for parameter in context.command.params:
        name = parameter.name or ""
        # click 8.1 reports COMMANDLINE as the source of FLAGS even if there are none.
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name] != ()
        if given and name not in ("prompt", "attach", "ssh"):
            raise click.UsageError(f"{parameter.opts[0]} cannot be used with --attach, which does not start a CLI.")


def _run(argv: list[str], prompt: str, cwd: str | None, recorder: Recorder | None) -> int:
    try:
        with closing(Page(Output(), row=True)) as page:
            return anyio.run(TerminalSession(page, recorder).run, argv, prompt, cwd)
    finally:
        if recorder is not None:
            recorder.close()
            if recorder.error is not None:
                click.echo(f"claude-wire: the recording is incomplete: {recorder.error.strerror}", err=True)
