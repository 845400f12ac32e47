"""Builds the wheels of both packages twice, compares byte by byte, checks what is in them, and leaves them in dist.

The first is built here, the second from the source distribution, as pip builds it where there is no wheel: in another
folder, with another home, another cargo home and another umask. On Linux zig links the library's, so that it runs with
glibc 2.17 and above (manylinux2014). The kit's is pure Python, for all systems. The archive of ``protocol`` is
put beside them.
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

#: Each system that there is a wheel for, with what maturin is told.
TARGETS = {
    "x86_64-unknown-linux-gnu": MANYLINUX,
    "aarch64-unknown-linux-gnu": MANYLINUX,
    "x86_64-unknown-linux-musl": MUSLLINUX,
    "aarch64-unknown-linux-musl": MUSLLINUX,
    "x86_64-apple-darwin": MACOS,
    "aarch64-apple-darwin": MACOS,
}
#: What maturin is told for this system.
OWN = MANYLINUX if ZIG else ""


def build(tree: Path, into: Path, arguments: str, changed: dict[str, str], umask: int) -> Path:
    """Build the wheel of this tree with these arguments for maturin, and return its path."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **changed}
    # It is compressed once, and loaded often.
    environment["MATURIN_PEP517_ARGS"] = f"{arguments} --compression-level 9"
    environment.pop("CARGO_TARGET_DIR", None)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(into), "."], cwd=tree, env=environment, umask=umask, check=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def unpacked(folder: Path, backend: list[str], package: Path) -> Path:
    """The source distribution that a build backend makes of a package, as files in a folder."""
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
    """Build it as another user would, who has the same tools."""
    os.umask(0o077)
    tree = unpacked(folder, ["maturin", "sdist", "--out"], ROOT)
    cargo = folder / "cargo home"
    cargo.mkdir()
    settings = Path(os.environ.get("CARGO_HOME", HOMES["CARGO_HOME"]), "config.toml")
    if settings.exists():  # a mirror of crates.io, perhaps
        shutil.copy(settings, cargo)
    changed = {"HOME": str(folder), "CARGO_HOME": str(cargo), "TMPDIR": str(folder), "LANG": "C", "TZ": "Asia/Tokyo"}
    changed["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", str(HOMES["RUSTUP_HOME"]))
    return build(tree, folder / "dist", OWN, changed, 0o077)


def build_kit(folder: Path) -> tuple[Path, Path]:
    """The kit's wheel, built here into dist, and built from its source distribution."""
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
