"""The command ``claude-wire conform``: check a host, in any language, against scenarios of an agent."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import click

from claude_wire_kit.commands.shared import signals
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.json_output import print_json
from claude_wire_kit.commands.shared.options import PASSES_FLAGS, takes_json
from claude_wire_kit.commands.shared.sources import display_name
from claude_wire_kit.conform.report import in_words, report_as_json, table
from claude_wire_kit.conform.running import Expected, Outcome, Runner
from claude_wire_kit.conform.scenarios import SCENARIOS
from claude_wire_kit.terminal.columns import printed, terminal_width

#: Maximum number of seconds until Python notices a signal.
SIGNAL_SECONDS = 0.5


@click.command(context_settings=PASSES_FLAGS)
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--only", metavar="NAME", multiple=True, type=click.Choice(list(SCENARIOS)), help="Run this scenario.")
@click.option("--list", "listed", is_flag=True, help="List the scenarios and exit.")
@takes_json
@click.option("--timeout", type=click.FloatRange(min=1), default=60, show_default=True, help="Seconds for a scenario.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Scenarios at a time.")
@click.option("--expect", type=click.Path(exists=True, dir_okay=False), help="Rules that the host breaks by design.")
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Keep a recording of each scenario.")
def conform(
    command: tuple[str, ...],
    only: tuple[str, ...],
    listed: bool,
    as_json: bool,
    timeout: float,
    jobs: int,
    expect: str | None,
    keep: str | None,
) -> None:
    """Check a host against scenarios of an agent.

    A host is a program, in any language, that starts the CLI. COMMAND starts the host, once for each scenario. The host
    gets a task, and the path of an agent that replaces the CLI. The host runs the agent, does the task, and prints one
    line of JSON for each message that it understands. Rules check these lines and the host's messages to the agent.
    docs/how-to/conform.md describes what a host must do.

    The environment variable CLAUDE_WIRE_CONFORM_CLI has the path of the agent, and CLAUDE_WIRE_CONFORM_TASK the task.
    In COMMAND, {cli} stands for the path, and {task} for the task.

    The file of --expect names the rules that the host breaks by design, and the reason for each. A reason that begins
    with "fault:" marks a known fault. The command also reports a rule of this file that the host keeps.

    Exit code: 0 if the host breaks the rules of --expect and no others, 1 if not, 2 for wrong usage, or if COMMAND
    cannot be started.

    The keys of --json are on the page "Use the command" of the documentation.
    """
    if os.name != "posix":
        raise Failure("conform needs the pipes and signals of POSIX")
    if listed:
        printed([f"{scenario.name}: {scenario.does}" for scenario in SCENARIOS.values()], terminal_width())
        return
    if not command:
        raise click.UsageError("the command of a host is missing: claude-wire conform -- COMMAND")
    chosen = [scenario for scenario in SCENARIOS.values() if scenario.name in only or not only]
    runner = Runner(command, timeout, _read(expect) if expect is not None else None, keep)
    outcomes: list[Outcome] = []
    pool = ThreadPoolExecutor(jobs)
    with signals.unwound():
        try:
            for running in [pool.submit(runner.run, scenario) for scenario in chosen]:
                while not running.done():
                    # Python does not notice a signal that arrives just before a wait, so no wait is long.
                    wait([running], SIGNAL_SECONDS)
                outcomes.append(outcome := running.result())
                if not as_json:
                    printed([*in_words(outcome), ""], terminal_width())
        except OSError as error:
            raise Failure(f"{display_name(error.filename or command[0])}: {error.strerror}") from error
        finally:  # also after a signal
            pool.shutdown(wait=False, cancel_futures=True)
            runner.kill()
            pool.shutdown()
    if as_json:
        print_json(report_as_json(command, outcomes))
    else:
        click.echo("\n".join(table(outcomes)))
    unrecorded = [outcome.scenario.name for outcome in outcomes if outcome.seen.recording is None]
    if keep is not None and unrecorded:
        scenarios = ", ".join(unrecorded)
        click.echo(f"note: the host did not start the agent, so there is no recording of {scenarios}", err=True)
    if not all(outcome.ok for outcome in outcomes):
        click.get_current_context().exit(1)


def _read(path: str) -> Expected:
    """Read the file of ``--expect``."""
    try:
        with open(path, encoding="utf-8") as file:
            found: Any = json.load(file)
        rules = {name: {rule.name for rule in scenario.rules} for name, scenario in SCENARIOS.items()}
        for scenario, reasons in found.items():
            for rule, reason in reasons.items():
                if rule not in rules.get(scenario, ()) or not isinstance(reason, str):
                    raise Failure(f"{display_name(path)}: there is no rule {rule!r} of a scenario {scenario!r}")
    except (OSError, ValueError, AttributeError) as error:
        raise Failure(f"{display_name(path)} is not a JSON object of scenarios with rules: {error}") from error
    expected: Expected = found
    return expected
