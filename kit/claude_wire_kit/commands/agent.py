"""The command ``claude-wire agent``: run an agent that a Python file defines."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import NoReturn

import click

from claude_wire.agent import Agent
from claude_wire.agent.main import take_standard_streams
from claude_wire_kit.commands.shared.failure import Failure
from claude_wire_kit.commands.shared.options import PASSES_FLAGS
from claude_wire_kit.commands.shared.sources import display_name

#: The module name under which the agent's file is imported.
NAME = "__agent__"


@click.command(context_settings=PASSES_FLAGS)
@click.argument("script", metavar="SCRIPT[:NAME]")
@click.argument("flags", metavar="[FLAGS]...", nargs=-1, type=click.UNPROCESSED)
def agent(script: str, flags: tuple[str, ...]) -> None:
    """Run an agent that a Python file defines.

    A host starts this command instead of the CLI. The command imports SCRIPT and runs NAME, which is an Agent or an
    answer function. The default NAME is "agent" if SCRIPT defines it, else "answer". FLAGS are flags of the CLI.
    Standard output is reserved for the agent's lines before SCRIPT is imported, so print() in SCRIPT cannot write
    between them.

    If the first line of a file is "#!/usr/bin/env -S claude-wire agent", any host can use the file as its CLI.
    """
    path, colon, name = script.rpartition(":")
    if not colon or not name.isidentifier():
        path, name = script, ""
    take_standard_streams()
    sys.argv = [path, *flags]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module = _imported(path)
    found = getattr(module, name or ("agent" if hasattr(module, "agent") else "answer"), None)
    if not isinstance(found, Agent):
        if not callable(found):
            missing = f"no Agent or function {name!r}" if name else "neither an Agent 'agent' nor a function 'answer'"
            raise Failure(f"{display_name(path)} has {missing}; SCRIPT:NAME chooses another name")
        found = Agent(found)
    found.main()


def _imported(path: str) -> ModuleType:
    # Use a fixed name, because a loaded module may have the name of the file, such as json.py.
    spec = importlib.util.spec_from_file_location(NAME, path, loader=SourceFileLoader(NAME, path))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        if error.filename != path:
            _exit_with(error, path)
        raise Failure(f"{display_name(path)}: {error.strerror}") from error
    except Exception as error:
        _exit_with(error, path)
    return module


def _exit_with(error: Exception, path: str) -> NoReturn:
    """Print an error from the agent's file, and exit. The traceback begins with the first frame in that file."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != path:
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)
    sys.exit(1)
