"""Run the end-to-end tests without a network: ``python tests/e2e/run.py [arguments of pytest]``.

The script starts itself again in a new network namespace (``unshare``, as root or as a mapped user), with an empty
environment and an empty home. It enables the loopback interface and runs pytest, or the script after ``--script``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: The folder of the packages ``offline`` and ``drift``.
TOOLS = str(HERE.parents[1] / "tools")
sys.path.insert(0, TOOLS)

from offline import sandbox  # noqa: E402  # the line above adds its folder to sys.path

#: Set inside the namespace. Without it, tests/e2e/conftest.py collects no tests.
INSIDE = "CLAUDE_WIRE_E2E"
#: Environment variables of the caller that the tests inherit.
PASSED_ON = ("CLAUDE_WIRE_E2E_ROUNDS", "CLAUDE_WIRE_E2E_PAUSE", "CLAUDE_WIRE_BROWSER", "CLAUDE_WIRE_PICTURES")


def outside(arguments: list[str]) -> int:
    """Start this file again inside the namespace."""
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    try:
        variables |= {INSIDE: "1", "PYTHONPATH": TOOLS}
        return sandbox.run_inside([sys.executable, __file__, *arguments], variables)
    except RuntimeError as error:
        sys.exit(str(error))


def inside(arguments: list[str]) -> int:
    """Run pytest inside the namespace."""
    sandbox.bring_loopback_up()
    sandbox.require()
    if arguments[:1] == ["--script"]:
        return subprocess.run([sys.executable, *arguments[1:]], check=False).returncode
    paths = [] if any(Path(argument.partition("::")[0]).exists() for argument in arguments) else [str(HERE)]
    return subprocess.run([sys.executable, "-m", "pytest", *paths, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit((inside if INSIDE in os.environ else outside)(sys.argv[1:]))
