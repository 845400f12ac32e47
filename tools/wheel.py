"""Build the wheels of both packages into dist, and check them.

Each wheel is built twice, and both must have the same bytes. The first build is in this folder. The second is from the
source distribution, as pip builds it on a system without a wheel: in another folder, with another home, another cargo
home and another umask. On Linux zig links the native library, which then runs with glibc 2.17 or newer (manylinux2014).
The kit is pure Python, and its wheel is for all systems. The archive of the folder ``protocol`` is also written to
dist.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from protocol.archive import pack
from wheel_check import HOMES, faults

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
KIT = ROOT / "kit"
ZIG = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")

MANYLINUX = "--zig --compatibility manylinux2014"
MUSLLINUX = "--zig --compatibility musllinux_1_2"
MACOS = ""

#: Target -> the arguments for maturin. Each target gets a wheel.
TARGETS = {
    "x86_64-unknown-linux-gnu": MANYLINUX,
    "aarch64-unknown-linux-gnu": MANYLINUX,
    "x86_64-unknown-linux-musl": MUSLLINUX,
    "aarch64-unknown-linux-musl": MUSLLINUX,
    "x86_64-apple-darwin": MACOS,
    "aarch64-apple-darwin": MACOS,
}
#: The arguments for maturin on this system.
OWN = MANYLINUX if ZIG else ""


def build(tree: Path, into: Path, arguments: str, changed: dict[str, str], umask: int) -> Path:
    """Build a source tree's wheel with these arguments for maturin, and return the wheel's path."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **changed}
    # Slow compression is worth it: a wheel is compressed once and downloaded often.
    environment["MATURIN_PEP517_ARGS"] = f"{arguments} --compression-level 9"
    environment.pop("CARGO_TARGET_DIR", None)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(into), "."], cwd=tree, env=environment, umask=umask, check=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def unpacked(folder: Path, backend: list[str], package: Path) -> Path:
    """Build a package's source distribution, unpack it, and return the folder."""
    made = folder / f"sdist of {package.name}"
    subprocess.run([sys.executable, "-m", *backend, str(made)], cwd=package, check=True, stdout=subprocess.DEVNULL)
    (archive,) = made.glob("*.tar.gz")
    tree = folder / f"another place of {package.name}"
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            content = source.extractfile(member)
            if content is not None:
                path = tree.joinpath(*Path(member.name).parts[1:])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    return tree


def build_elsewhere(folder: Path) -> Path:
    """Build the library's wheel from its source distribution, as another user with the same tools would."""
    os.umask(0o077)
    tree = unpacked(folder, ["maturin", "sdist", "--out"], ROOT)
    cargo = folder / "cargo home"
    cargo.mkdir()
    settings = Path(os.environ.get("CARGO_HOME", HOMES["CARGO_HOME"]), "config.toml")
    if settings.exists():  # may name a mirror of crates.io
        shutil.copy(settings, cargo)
    changed = {"HOME": str(folder), "CARGO_HOME": str(cargo), "TMPDIR": str(folder), "LANG": "C", "TZ": "Asia/Tokyo"}
    changed["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", str(HOMES["RUSTUP_HOME"]))
    return build(tree, folder / "dist", OWN, changed, 0o077)


def build_kit(folder: Path) -> tuple[Path, Path]:
    """Build the kit's wheel here into dist, and again from its source distribution. Return both paths."""
    second = folder / "kit"
    here = build(KIT, folder / "here", "", {}, 0o022)
    tree = unpacked(folder, ["hatchling", "build", "--target", "sdist", "--directory"], KIT)
    return Path(shutil.copy(here, DIST)), build(tree, second, "", {"HOME": str(folder), "LANG": "C"}, 0o077)


def main() -> int:
    first = build(ROOT, DIST, OWN, {}, 0o022)
    wrong = []
    if ZIG and f"manylinux2014_{platform.machine()}" not in first.name:
        wrong.append(f"the tag is not manylinux2014: {first.name}")
    with tempfile.TemporaryDirectory(prefix="claude-wire-wheel-") as temporary:
        folder = Path(temporary)
        for wheel, again in (build_kit(folder), (first, build_elsewhere(folder))):
            found = faults(wheel)
            if again.name != wheel.name or again.read_bytes() != wheel.read_bytes():
                found.append("built from the source distribution, by another user, it has other bytes")
            if not found:
                print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size} bytes, the same from the source distribution")
            wrong += found
    print(pack(ROOT / "protocol", DIST).relative_to(ROOT))
    for each in wrong:
        print(f"A wheel is wrong: {each}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
