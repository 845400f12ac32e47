"""Builds and checks the wheels for other systems, and leaves them in dist: ``wheels.py [TARGET…]``.

rustc builds for a target whose standard library is installed (``rustup target add``). For others a compiler that builds
the standard library itself is taken from target/cross-toolchain, where ``make cross-toolchain`` has put one; zig links.
A target that has neither is named, and fails nothing. Wheels for macOS are built on macOS: the linker of zig exports
names of the standard library there, and the check refuses that. Nothing is run here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import wheel
from wheel_check import faults

ROOT = Path(__file__).resolve().parent.parent
CROSS = ROOT / "target" / "cross-toolchain"

MANYLINUX = "--zig --compatibility manylinux2014"
MUSLLINUX = "--zig --compatibility musllinux_1_2"
MACOS = ""

#: Each system that there is a wheel for, with what maturin is told.
TARGETS = {
    "x86_64-unknown-linux-gnu": MANYLINUX,
    "aarch64-unknown-linux-gnu": MANYLINUX,
    "x86_64-unknown-linux-musl": MUSLLINUX,
    "aarch64-unknown-linux-musl": MUSLLINUX,
    "x86_64-apple-darwin": MACOS,
    "aarch64-apple-darwin": MACOS,
}


def settings(target: str) -> dict[str, str] | str:
    """What the environment of a build says, or why there is none here."""
    changed = {"MATURIN_PEP517_ARGS": f"--target {target} {TARGETS[target]}"}
    if TARGETS[target] == MACOS:
        if sys.platform != "darwin":
            return "it is built on macOS alone"
        # Without a name of its own the library has the path that it was linked at.
        changed["RUSTFLAGS"] = "-Clink-arg=-Wl,-install_name,@rpath/lib_native.dylib"
    printed = subprocess.run(["rustc", "--print", "target-libdir", "--target", target], capture_output=True, text=True)
    if printed.returncode == 0 and any(Path(printed.stdout.strip()).glob("libstd-*")):
        return changed
    if not (CROSS / ".ready").exists():
        return f"there is no toolchain: rustup target add {target}, or make cross-toolchain"
    changed["PATH"] = os.pathsep.join([str(CROSS / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    changed["RUSTC_BOOTSTRAP"] = "1"  # -Z is unstable, and needs leave
    changed["MATURIN_PEP517_ARGS"] += " -Z build-std=std,panic_unwind"
    return changed


def build(target: str) -> list[str]:
    """Build the wheel for a target into dist, and say what is wrong with it."""
    changed = settings(target)
    if isinstance(changed, str):
        print(f"{target}: not built: {changed}", flush=True)
        return []
    try:
        built = wheel.build(ROOT, ROOT / "target" / "wheels" / target, changed, 0o022)
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
