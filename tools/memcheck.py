"""Run the native core's tests, and the Python tests that use the core most, with AddressSanitizer.

It needs Linux, Rust's nightly toolchain and the AddressSanitizer of gcc; without them it fails. The Python tests run
with the normal interpreter, but with a native library built for this, and with all memory from malloc. So the sanitizer
finds an access one byte beyond any ``bytes`` object.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "memcheck"

#: Suppressions: the tests of drains leak objects that live until the process exits.
LEAKS = "leak:drain::tests\nleak:drain::rescuer::tests\nleak:no_memory::shared\n"

TESTS = [
    f"tests/{name}.py"
    for name in (
        "native/test_framing",
        "native/test_native_handles",
        "codec/test_decoder",
        "codec/test_decoder_bad_lines",
        "codec/test_decoder_one_line",
        "codec/test_decoder_owner",
        "codec/test_engine",
        "codec/test_native_calls",
        "codec/test_native_writer",
        "codec/test_encoder",
        "codec/test_lines_alone",
        "codec/test_peek",
        "codec/test_only",
        "codec/test_coalesce",
        "columns/test_columns_arrow",
        "columns/test_columns_usage",
    )
]
#: Excluded: tests that spend most of their time in Python. The fuzz targets read the same kinds of lines.
NOT_THESE = "recordings or recorded or traffic or mutated or every_cut or cut_everywhere or linear"
#: Also excluded: tests that measure memory, because AddressSanitizer keeps freed memory for a while.
NOT_THESE += " or nothing_is_left or stays_flat or no_reference or not_copied"
FEW_EXAMPLES = """
from hypothesis import settings
settings.register_profile("few_examples", deadline=None, derandomize=True, max_examples=10)
"""


def main() -> int:
    missing = what_is_missing()
    if missing:
        print(f"memcheck: nothing was checked, because there is no {missing}", file=sys.stderr)
        return 1
    host = host_target()
    environment = {
        **os.environ,
        "RUSTFLAGS": "-Zsanitizer=address",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "CARGO_TARGET_DIR": str(BUILT),
        "PROPTEST_CASES": "64",
    }
    BUILT.mkdir(parents=True, exist_ok=True)
    leaks = BUILT / "leaks.txt"
    leaks.write_text(LEAKS)
    environment["LSAN_OPTIONS"] = f"suppressions={leaks}:print_suppressions=0"
    cargo = ["cargo", "+nightly"]
    options = ["--quiet", "--locked", "--target", host]
    subprocess.run([*cargo, "test", *options], cwd=ROOT, env=environment, check=True)
    subprocess.run([*cargo, "build", *options], cwd=ROOT, env=environment, check=True)
    print("memcheck: the native core is clean", flush=True)
    check_python(BUILT / host / "debug" / "libclaude_wire.so")
    print("memcheck: Python's use of it is clean")
    return 0


def what_is_missing() -> str | None:
    """Return what is missing on this machine, or None if everything is installed."""
    if not sys.platform.startswith("linux"):
        return "Linux"
    if not has_nightly():
        return "nightly toolchain (rustup toolchain install nightly)"
    if not shutil.which("gcc") or not Path(sanitizer()).is_absolute():
        return "AddressSanitizer of gcc"
    return None


def sanitizer() -> str:
    """Return the path of gcc's AddressSanitizer, which must be loaded before all other libraries.

    If gcc does not have it, return only the file's name.
    """
    return output("gcc", "-print-file-name=libasan.so").strip()


def host_target() -> str:
    """Return rustc's name for this machine, such as ``x86_64-unknown-linux-gnu``."""
    return re.findall(r"host: (\S+)", output("rustc", "-vV"))[0]


def has_nightly() -> bool:
    """Return True if Rust's nightly toolchain is installed."""
    return bool(shutil.which("rustup")) and "nightly" in output("rustup", "toolchain", "list")


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_python(library: Path) -> None:
    """Run the tests with a copy of the package that has this native library."""
    package = BUILT / "python"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python", package, ignore=shutil.ignore_patterns("__pycache__"))
    (native,) = (package / "claude_wire" / "native" / "_native").glob("lib_native.*")
    shutil.copyfile(library, native)
    (package / "few_examples.py").write_text(FEW_EXAMPLES)
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer(),
        # Python does not free all its memory before the process exits. Tests of failing allocations need a malloc that
        # fails: by default, the sanitizer aborts the process, or deadlocks while it writes its report.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(package),
    }
    found = "import claude_wire; print(claude_wire.__file__)"
    where = subprocess.run([sys.executable, "-c", found], env=environment, capture_output=True, text=True, check=True)
    assert Path(where.stdout.strip()).is_relative_to(package), where.stdout
    pytest = [sys.executable, "-m", "pytest", "-p", "no:benchmark", "-p", "few_examples"]
    selection = ["--hypothesis-profile=few_examples", "-k", f"not ({NOT_THESE})", *TESTS]
    subprocess.run([*pytest, "-n", "2", *selection], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
