"""Builds the wheel twice, compares the two byte by byte, checks what is in it, and leaves it in dist: ``wheel.py``.

The first is built here, the second from the source distribution, as pip builds it where there is no wheel: in another
folder, with another home, another cargo home and another umask. On Linux zig links it, so that it runs with glibc 2.17
and above (manylinux2014).
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

from wheel_check import HOMES, faults

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
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
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **changed}
    # It is compressed once, and loaded often.
    environment["MATURIN_PEP517_ARGS"] = f"{arguments} --compression-level 9"
    environment.pop("CARGO_TARGET_DIR", None)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, str(into), "."], cwd=tree, env=environment, umask=umask, check=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def unpacked(folder: Path) -> Path:
    """The source distribution, made of what git knows, as files in a folder."""
    maturin = [sys.executable, "-m", "maturin", "sdist", "--out", str(folder / "sdist")]
    subprocess.run(maturin, cwd=ROOT, check=True)
    (archive,) = (folder / "sdist").glob("*.tar.gz")
    tree = folder / "another place"
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
    tree = unpacked(folder)
    cargo = folder / "cargo home"
    cargo.mkdir()
    settings = Path(os.environ.get("CARGO_HOME", HOMES["CARGO_HOME"]), "config.toml")
    if settings.exists():  # a mirror of crates.io, perhaps
        shutil.copy(settings, cargo)
    changed = {"HOME": str(folder), "CARGO_HOME": str(cargo), "TMPDIR": str(folder), "LANG": "C", "TZ": "Asia/Tokyo"}
    changed["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", str(HOMES["RUSTUP_HOME"]))
    return build(tree, folder / "dist", OWN, changed, 0o077)


def main() -> int:
    wheel = build(ROOT, DIST, OWN, {}, 0o022)
    wrong = faults(wheel)
    if ZIG and f"manylinux2014_{platform.machine()}" not in wheel.name:
        wrong.append(f"the tag is not manylinux2014: {wheel.name}")
    with tempfile.TemporaryDirectory(prefix="claude-wire-wheel-") as folder:
        second = build_elsewhere(Path(folder))
        if second.name != wheel.name or second.read_bytes() != wheel.read_bytes():
            wrong.append("built from the source distribution, by another user, it has other bytes")
    for each in wrong:
        print(f"The wheel is wrong: {each}", file=sys.stderr)
    if not wrong:
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size} bytes, the same from the source distribution")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
