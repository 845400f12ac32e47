"""Build and check the wheels for other systems, and put them into dist: ``wheels.py [TARGET…]``.

A target needs its standard library (``rustup target add``). Without it, the script uses the compiler that ``make
cross-toolchain`` puts into target/cross-toolchain, which compiles the standard library as well. zig is the linker. The
script prints and skips a target for which neither is installed. Wheels for macOS are built only on macOS: there zig's
linker would export names of the standard library, which the check refuses. The wheels are not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import wheel
from wheel import MACOS, ROOT, TARGETS
from wheel_check import faults

CROSS = ROOT / "target" / "cross-toolchain"


def settings(target: str) -> tuple[str, dict[str, str]] | str:
    """Return a build's arguments for maturin and environment, or why this machine cannot build the target."""
    arguments, changed = f"--target {target} {TARGETS[target]}", dict[str, str]()
    if TARGETS[target] == MACOS:
        if sys.platform != "darwin":
            return "it is built on macOS alone"
        # Without an install name, the library would contain the path where it was linked.
        changed["RUSTFLAGS"] = "-Clink-arg=-Wl,-install_name,@rpath/lib_native.dylib"
    printed = subprocess.run(["rustc", "--print", "target-libdir", "--target", target], capture_output=True, text=True)
    if printed.returncode == 0 and any(Path(printed.stdout.strip()).glob("libstd-*")):
        return arguments, changed
    if not (CROSS / ".ready").exists():
        return f"there is no toolchain: rustup target add {target}, or make cross-toolchain"
    changed["PATH"] = os.pathsep.join([str(CROSS / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    changed["RUSTC_BOOTSTRAP"] = "1"  # allows -Z, which is unstable
    return f"{arguments} -Z build-std=std,panic_unwind", changed


def build(target: str) -> list[str]:
    """Build a target's wheel into dist. Return the faults of the wheel."""
    how = settings(target)
    if isinstance(how, str):
        print(f"{target}: not built: {how}", flush=True)
        return []
    try:
        built = wheel.build(ROOT, ROOT / "target" / "wheels" / target, *how, 0o022)
    except subprocess.CalledProcessError:
        return [f"{target}: it does not build"]
    wheel.DIST.mkdir(exist_ok=True)
    kept = wheel.DIST / built.name
    shutil.copy(built, kept)
    found = faults(kept)
    if not found:
        print(f"{target}: {kept.relative_to(ROOT)}, {kept.stat().st_size} bytes", flush=True)
    return [f"{kept.name} is wrong: {each}" for each in found]


def main(targets: list[str]) -> int:
    unknown = set(targets) - TARGETS.keys()
    if unknown:
        sys.exit(f"There is no wheel for {', '.join(sorted(unknown))}. There are: {', '.join(TARGETS)}")
    wrong = [fault for target in targets or TARGETS for fault in build(target)]
    for each in wrong:
        print(each, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
