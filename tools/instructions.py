"""Count the instructions that the native core needs for a fixed input, and compare them with benches/instructions.json.

Unlike a timing, a count does not depend on the machine's load, so even a small change is real. If a case needs
over 3% more instructions, the script fails. If it needs over 3% fewer, the file should be updated (``--update``). The
counts depend on the compiler: with a rustc other than the file's, the script only prints them (``--strict`` fails).
It needs cargo and valgrind.

The cases are those of benches/native.rs. Each runs as a process under ``valgrind --tool=callgrind``, which counts only
the instructions within one function. Some cases need a processor with AVX2, and are skipped on others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parent.parent
FILE = ROOT / "benches" / "instructions.json"
TOLERANCE = 0.03
#: Instructions within this function are counted. It is never inlined.
COUNTED = "*counted_part*"
#: glibc copies large blocks by one instruction (``rep movsb``), which valgrind counts once per byte. The size at which
#: glibc starts to do so depends on the processor, so this setting disables the instruction.
TUNABLES = "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000"


def output(*command: str) -> str:
    """Run a program and return its standard output. The program writes errors to our standard error."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        fail(f"{command[0]} failed: {error}")


def fail(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    raise SystemExit(1)


def build() -> str:
    """Build benches/native.rs and return its path."""
    built = output("cargo", "bench", "--quiet", "--bench", "native", "--no-run", "--message-format=json")
    for line in built.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "native" and message["executable"]:
            return str(message["executable"])
    fail("cargo built no benches/native.rs")


def has_vectors() -> bool:
    """Return True if the processor is an x86-64 with AVX2."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return platform.machine() == "x86_64" and re.search(r"\bavx2\b", flags) is not None


def count(program: str, case: str) -> int:
    """Return how many instructions one case needs."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [*command, f"--log-file={log}", program, case],
            stdout=subprocess.DEVNULL,
            # Use a fixed environment, because its size moves the stack, and data alignment changes the count.
            env={"PATH": os.defpath, "GLIBC_TUNABLES": TUNABLES},
        )
        if done.returncode:
            fail(f"valgrind failed in {case!r}:\n{log.read_text() if log.exists() else ''}")
        found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.MULTILINE)
        if found is None or not int(found[1]):
            fail(f"valgrind counted nothing in {case!r}:\n{log.read_text()}")
        return int(found[1])


def compare(counted: dict[str, int], kept: dict[str, int], same_compiler: bool) -> tuple[list[str], bool]:
    """Print each case with its current count and the count in the file.

    Returns:
        The cases that need too many instructions, and whether other cases require updating the file.
    """
    too_many = []
    outdated = False
    for case in {**kept, **counted}:
        if case not in counted:
            print(f"{case:<36} {'not counted':>14} {kept[case]:>14,}")
            continue
        if case not in kept:
            print(f"{case:<36} {counted[case]:>14,} {'not kept yet':>14}")
            outdated = True
            continue
        change = (counted[case] - kept[case]) / kept[case]
        verdict = ""
        if same_compiler and change > TOLERANCE:
            verdict = "TOO MANY"
            too_many.append(case)
        elif same_compiler and change < -TOLERANCE:
            verdict = "fewer"
            outdated = True
        print(f"{case:<36} {counted[case]:>14,} {kept[case]:>14,} {change:>+8.2%}  {verdict}".rstrip())
    return too_many, outdated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help=f"write {FILE.relative_to(ROOT)}")
    parser.add_argument("--strict", action="store_true", help="fail where nothing can be compared")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        fail("No instructions were counted: there is no valgrind here.")
    program = build()
    compiler = output("rustc", "--version").strip()
    listed = [line.split("\t") for line in output(program, "list").splitlines()]
    cases = [case for needs, case in listed if needs == "plain" or has_vectors()]
    if len(cases) < len(listed):
        print("This processor has no AVX2: the cases for it are left out.")
    counted = {case: count(program, case) for case in cases}
    found: dict[str, Any] = {"rustc": compiler, "machine": platform.machine(), "instructions": counted}
    kept: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"instructions": {}}
    same = all(kept.get(key) == found[key] for key in ("rustc", "machine"))
    print(f"{compiler}, {platform.machine()}, {output('valgrind', '--version').strip()}")
    print(f"{'instructions':<36} {'now':>14} {'kept':>14}")
    too_many, outdated = compare(counted, kept["instructions"], same)
    if arguments.update:
        if len(cases) < len(listed):
            fail("Not written: some cases were not counted.")
        FILE.write_text(json.dumps(found, indent=2) + "\n")
        print(f"written: {FILE.relative_to(ROOT)}")
        return
    if not same:
        was = f"{kept.get('rustc')}, {kept.get('machine')}"
        print(f"Not compared: the file was written with {was}.")
        raise SystemExit(arguments.strict)
    if outdated:
        print("Update the file: make instructions UPDATE=1")
    if too_many:
        fail(f"More than {TOLERANCE:.0%} more instructions: {', '.join(too_many)}")


if __name__ == "__main__":
    main()
