"""The time to import the library, each time in a new interpreter."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import msgspec
import pytest

import peers
from conftest import Contest, takes_own_time

PROGRAM = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
#: How many imports a round has. The shortest time counts.
TIMES = 3


def seconds(module: str) -> float:
    program = [sys.executable, "-c", PROGRAM.format(module)]
    return min(float(subprocess.check_output(program)) for _ in range(TIMES))


@takes_own_time
def test_import(contest: Contest) -> None:
    """``import claude_wire``, compared with importing its dependency msgspec and with other packages."""
    others = {
        "msgspec": (msgspec, 40.0),
        "orjson": (peers.orjson, None),
        "pydantic": (peers.pydantic_messages, None),
        "claude_agent_sdk": (peers.agent_sdk, None),
    }
    contest.measured(
        "import claude_wire",
        lambda: seconds("claude_wire"),
        above={
            f"{name.replace('_', '-')}, its import": (module and partial(seconds, name), claim)
            for name, (module, claim) in others.items()
        },
    )


@takes_own_time
@pytest.mark.parametrize("name", ["decode", "Decoder().feed"])
def test_first_use(contest: Contest, name: str) -> None:
    """Import the library and decode a first line, which builds the decoder."""
    line = 'b\'{"type":"keep_alive"}\\n\''
    contest.measured(
        f"import and {name}(line)",
        lambda: seconds(f"claude_wire; claude_wire.{name}({line})"),
        above={"claude_wire, its import": (lambda: seconds("claude_wire"), None)},
    )
