"""Run the end-to-end tests where they cannot reach anything: ``python tests/e2e/run.py [arguments of pytest]``.

It starts itself again in a network namespace of its own (``unshare``, as root or as a mapped user), with an empty
environment and an empty home, sets the loopback interface up, and runs pytest, or the script that ``--script`` names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sandbox

HERE = Path(__file__).resolve().parent
#: Set inside; tests/e2e/conftest.py collects nothing without it.
INSIDE = "CLAUDE_WIRE_E2E"
#: What the caller may set.
PASSED_ON = ("CLAUDE_WIRE_E2E_ROUNDS", "CLAUDE_WIRE_E2E_PAUSE")


def namespace() -> list[str]:
    """The command that gives what follows it a network of its own."""
    program = shutil.which("unshare")
    if program is None:
        sys.exit("The end-to-end tests need a network namespace, and there is no unshare (util-linux) on the PATH.")
    reasons = []
    for flags in (["--net"], ["--user", "--map-root-user", "--net"]):
        tried = subprocess.run([program, *flags, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return [program, *flags]
        reasons.append(f"  unshare {' '.join(flags)}: {tried.stderr.strip()}")
    sys.exit("\n".join(["The end-to-end tests need a network namespace, and this system refuses one:", *reasons]))


def outside(arguments: list[str]) -> int:
    """Start this file again, inside."""
    with tempfile.TemporaryDirectory(prefix="claude-wire-e2e-") as home:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        environment.update(
            {
                INSIDE: "1",
                "HOME": home,
                "LANG": "C.UTF-8",
                "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
                "TMPDIR": home,
            }
        )
        command = [*namespace(), sys.executable, __file__, *arguments]
        return subprocess.run(command, env=environment, check=False).returncode


def inside(arguments: list[str]) -> int:
    """Run what was asked for."""
    sandbox.bring_loopback_up()
    sandbox.require()
    if arguments[:1] == ["--script"]:
        return subprocess.run([sys.executable, *arguments[1:]], check=False).returncode
    paths = [] if any(Path(argument.partition("::")[0]).exists() for argument in arguments) else [str(HERE)]
    return subprocess.run([sys.executable, "-m", "pytest", *paths, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit((inside if INSIDE in os.environ else outside)(sys.argv[1:]))
