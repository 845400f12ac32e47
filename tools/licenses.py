"""Check THIRD_PARTY_LICENSES, the licences of the crates in the wheel, or write it: ``licenses.py [--write]``.

The file must list exactly the crates and versions that Cargo.lock puts into the library. Checking takes a second.
Writing needs cargo-about; if it is not on the PATH, the script builds it, which takes some minutes.

The check includes the npm packages in the kit's wheel and their licences, which ``vendored.py`` writes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import vendored

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD_PARTY_LICENSES"
SETTINGS = ROOT / "tools" / "licenses.toml"
TOOL = "cargo-about@0.9.3"


def listed() -> set[str]:
    """Return the crates that the file lists, as ``name version``."""
    text = FILE.read_text() if FILE.exists() else ""
    return set(re.findall(r"^- (\S+ \S+):", text, re.MULTILINE))


def needed() -> set[str]:
    """Return the crates that Cargo.lock puts into the library, as ``name version``."""
    own = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["name"]
    targets = tomllib.loads(SETTINGS.read_text())["targets"]
    command = ["cargo", "tree", "--locked", "--quiet", "--edges=normal", "--prefix=none", "--format={p}"]
    crates: set[str] = set()
    for target in targets:
        run = subprocess.run([*command, f"--target={target}"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        crates.update(f"{name} {version}" for name, version in re.findall(r"^(\S+) v(\S+)", run.stdout, re.MULTILINE))
    return {crate for crate in crates if crate.split()[0] != own}


def check() -> int:
    """Print the differences. Return the exit status: 1 if the file lists other crates than the library has."""
    have, want = listed(), needed()
    for crate in sorted(want - have):
        print(f"THIRD_PARTY_LICENSES lacks {crate}", file=sys.stderr)
    for crate in sorted(have - want):
        print(f"THIRD_PARTY_LICENSES has {crate}, which is not in the library", file=sys.stderr)
    if have != want:
        print("Run `make licenses` to write it again", file=sys.stderr)
    return int(have != want or vendored.main([]) != 0)


def write() -> int:
    """Write the file, check it, and return the exit status."""
    about = shutil.which("cargo-about")
    if about is None:
        place = ROOT / "target" / "tools"
        about = str(place / "bin" / "cargo-about")
        install = ["cargo", "install", TOOL, "--locked", "--quiet", "--features=cli", f"--root={place}"]
        if not Path(about).exists():
            print(f"Building {TOOL}, which takes some minutes.", flush=True)
            subprocess.run(install, cwd=ROOT, check=True)
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=ROOT, check=True)
    # With --offline, cargo-about reads the licences from the crates only, and asks no service.
    options = ["--locked", "--offline", "--fail", f"--config={SETTINGS}", f"--output-file={FILE}"]
    subprocess.run([about, "about", "generate", *options, str(SETTINGS.with_suffix(".hbs"))], cwd=ROOT, check=True)
    return check()


if __name__ == "__main__":
    sys.exit(write() if sys.argv[1:] == ["--write"] else check())
