"""Make the spec of a session from a command line, and send its first prompt."""

from __future__ import annotations

import os
import shutil
import uuid

from claude_wire import ClaudeOptions, UserMessage
from claude_wire.codec import encode
from claude_wire.errors import CLINotFoundError
from claude_wire.support import one_line
from claude_wire_kit.commands.shared.failure import Failure, missing_cli
from claude_wire_kit.commands.supervisor.client import Client
from claude_wire_kit.supervisor import attach
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Accepted, Ended, Refused, Spec, frame_of


def spec_of(command: tuple[str, ...], *, name: str | None, cwd: str | None, cost_usd: float | None) -> Spec:
    """Return the spec from which the supervisor starts the CLI.

    Args:
        command: the CLI and its flags; empty to search for the CLI.

    Raises:
        Failure: the CLI is not found.
    """
    cli = None
    if command:
        cli = shutil.which(command[0])
        if cli is None:
            raise Failure(f"{one_line(command[0])!r} cannot be run: {_why_not(command[0])}")
        cli = os.path.abspath(cli)
    try:
        argv = ClaudeOptions(
            cli_path=cli, permission_prompt_tool="stdio", include_partial_messages=True, replay_user_messages=True
        ).argv()
    except CLINotFoundError as error:
        raise missing_cli(error, "claude-wire supervisor run -- CLI") from error
    given = command[1:]
    flags = [] if any(flag.partition("=")[0] == "--input-format" for flag in given) else argv[1:]
    return attach.spec_of([argv[0], *given, *flags], cwd=cwd, name=name, cost_usd=cost_usd)


def _why_not(program: str) -> str:
    """Say why ``shutil.which`` does not find a program."""
    if os.path.isdir(program):
        return "it is a folder"
    if not os.path.exists(program):
        return "there is no such program"
    if not os.access(program, os.X_OK):
        return "it is not executable"
    return f"it is not in PATH; say ./{one_line(program)}"


def send_prompt(client: Client, prompt: str) -> None:
    """Send a prompt, and wait until the supervisor has written it to the journal.

    Raises:
        SupervisorError: the prompt was refused, or the CLI has exited.
        OSError: the connection failed.
    """
    client.send_line(encode(UserMessage.of(prompt, uuid=str(uuid.uuid4()))))
    while line := client.line():
        match frame_of(line) if client.is_frame(line) else None:
            case Accepted():
                return
            case Refused(reason=reason):
                raise SupervisorError("refused", reason)
            case Ended(exit_code=code, stderr=stderr):
                raise SupervisorError("lost", f"the CLI has ended with exit code {code}: {stderr.strip()}")
            case _:
                pass
    raise SupervisorError("lost", "the supervisor has ended the connection")
