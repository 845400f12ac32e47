"""Test the wheels with other versions of Python and of the dependencies: ``pythons.py WHEEL KIT [PYTHON]``.

For each Python that pyproject.toml names, except the one that runs this file, the script makes an environment .venv-3.x
with the wheels and the newest dependencies, and runs the tests ``CHOICE``. Then it makes .venv-lowest, with the oldest
Python and the lowest versions of the dependencies, and runs the tests ``LOWEST``. The script prints and skips a Python
that is not installed. With ``PYTHON``, it tests only that one. Without arguments, it prints the files of ``CHOICE``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = 'import claude_wire; claude_wire.decode(b\'{"type":"keep_alive"}\'); print(claude_wire.__file__)'
VERSION = "import sys, venv, ensurepip; print(sys.version_info[:2])"

#: Tests of the codec, which are in both lists.
CODEC = [
    "codec/test_accepted_values",
    "codec/test_coalesce",
    "codec/test_decoder",
    "codec/test_decoder_bad_lines",
    "codec/test_decoder_one_line",
    "codec/test_decoder_owner",
    "codec/test_encoder",
    "codec/test_engine",
    "codec/test_lines_alone",
    "codec/test_native_calls",
    "codec/test_native_writer",
    "codec/test_only",
    "codec/test_peek",
]
#: Tests of parts that may differ between versions of Python: recursion, JSON, loading the library, event loops,
#: processes. They take about a minute on two cores. ``make test`` and ``LOWEST`` test mcp and claude-agent-sdk.
CHOICE = [
    "agent/test_agent_program",
    "accumulate/test_accumulate",
    "kit/tests/events/test_bridge_events",
    *CODEC,
    "promises/test_errors",
    "promises/test_exports",
    "native/test_framing",
    "codec/test_json_test_suite",
    "messages/test_extra_fields",
    "native/test_native_handles",
    "process/test_process",
    "process/test_process_end",
    "process/test_process_input",
    "session/test_session_callbacks",
    "columns/test_columns_arrow",
    "streams/test_tasks",
]
#: Tests that use each dependency: msgspec, cffi, anyio, jiter, click, rich, jsonschema, claude-agent-sdk, mcp,
#: OpenTelemetry, Starlette and uvicorn; and the examples of the README.
LOWEST = [
    "agent/test_agent_schema",
    "integrations/test_agent_sdk_closing",
    "integrations/test_agent_sdk_errors",
    "integrations/test_agent_sdk_lines",
    "integrations/test_agent_sdk_sessions",
    "kit/tests/commands/test_cli_check",
    "kit/tests/commands/test_cli_view",
    *CODEC,
    "integrations/test_mcp",
    "integrations/test_otel_spans",
    "native/test_native_handles",
    "accumulate/test_partial_json",
    "promises/test_pages",
    "kit/tests/web/test_serve_sessions",
]

#: Limits for indirect dependencies: newer versions of these packages warn about the lowest version of mcp.
OF_THEIR_TIME = ["pydantic-settings<2.13"]

#: The library's extras and the kit's extras.
EXTRAS = [["agent", "agent-sdk", "mcp", "otel"], ["serve"]]
UV = [sys.executable, "-m", "uv", "--quiet"]
#: Make uv trust this machine's certificates, as pip does, instead of a built-in list.
os.environ.setdefault("UV_SYSTEM_CERTS", "1")
#: Let Python write .pyc files: without them, each process that a test starts would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def claimed() -> list[str]:
    """Return the Python versions in pyproject.toml, oldest first."""
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    return sorted(named, key=lambda version: int(version.split(".")[1]))


def find(version: str) -> str | None:
    """Return a Python of this version that can create environments, from the PATH or pyenv, or None."""
    candidates = [os.path.join(folder, f"python{version}") for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += [str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            run = subprocess.run([candidate, "-c", VERSION], capture_output=True, text=True)
            if run.stdout.strip() == f"({version.replace('.', ', ')})":
                return candidate
    return None


def files(tests: list[str]) -> list[str]:
    return [name if name.startswith("kit/") else f"tests/{name}" for name in (f"{test}.py" for test in tests)]


def with_extras(wheels: list[Path]) -> list[str]:
    """Return the library's and the kit's wheels with their extras, as pip arguments."""
    return [f"{wheel}[{','.join(names)}]" for wheel, names in zip(wheels, EXTRAS, strict=True)]


def check(folder: str, python: str, wheels: list[Path], tests: list[str], options: list[str]) -> bool:
    """Create a new environment and run the tests in it. Return True if they pass.

    During the installation and the first decoding, PATH has only the environment's own folder, and therefore no
    compiler. So this fails if a wheel is not enough.
    """
    environment = ROOT / folder
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([*UV, "venv", f"--python={python}", str(environment)], cwd=ROOT, check=True)
    own = str(environment / "bin" / "python")
    install = [*UV, "pip", "install", f"--python={own}", *with_extras(wheels), "--group=test", *options]
    bare = {**os.environ, "PATH": str(environment / "bin")}
    subprocess.run(install, cwd=ROOT, env=bare, check=True)
    first = [own, "-c", FIRST]
    where = subprocess.run(first, cwd=ROOT, env=bare, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert Path(where).is_relative_to(environment), where
    pytest = [own, "-m", "pytest", "-p", "no:benchmark", "-n", "3", "--dist", "loadfile"]
    return subprocess.run([*pytest, *files(tests)], cwd=ROOT).returncode == 0


def check_lowest(python: str, wheels: list[Path]) -> bool:
    """Run ``LOWEST`` in an environment with the lowest versions that both pyproject.toml allow."""
    limits, lowest = ROOT / ".venv-lowest-limits.txt", ROOT / ".venv-lowest.txt"
    limits.write_text("\n".join(OF_THEIR_TIME) + "\n")
    resolve = ["pip", "compile", "--resolution=lowest-direct", "--annotation-style=line", f"--constraint={limits}"]
    extras = [f"--extra={name}" for names in EXTRAS for name in names]
    extras.append(f"--find-links={wheels[0].parent}")  # the kit requires the library
    into = [f"--python={python}", "pyproject.toml", "kit/pyproject.toml", f"--output-file={lowest}"]
    subprocess.run([*UV, *resolve, *extras, *into], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    lines = lowest.read_text().splitlines()
    required = [line.split()[0] for line in lines if re.search(r"claude-wire(-kit)? \(", line)]
    print(f"The lowest versions: {required}, {python}", flush=True)
    return check(".venv-lowest", python, wheels, LOWEST, [f"--constraint={lowest}"])


def main() -> int:
    if len(sys.argv) == 1:
        print(*files(CHOICE))
        return 0
    wheels = [Path(argument).resolve() for argument in sys.argv[1:3]]
    if len(sys.argv) > 3:
        return int(not check(".venv-other", os.path.abspath(sys.argv[3]), wheels, CHOICE, []))
    found = {version: find(version) for version in claimed()}
    for version in [version for version, python in found.items() if python is None]:
        print(f"Python {version} is claimed, and not tested: this machine does not have it.", flush=True)
    failed = []
    for version, python in found.items():
        if python is not None and version != "{}.{}".format(*sys.version_info):
            print(f"Python {version}: {python}", flush=True)
            if not check(f".venv-{version}", python, wheels, CHOICE, []):
                failed.append(f"Python {version}")
    # Some of the lowest versions have no wheels for newer Pythons, such as cffi 1.15.0 above 3.10.
    oldest = next(iter(found.values()))
    if oldest is None:
        print("The lowest versions are not tested: they need the oldest Python.", flush=True)
    elif not check_lowest(oldest, wheels):
        failed.append("the lowest versions")
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
