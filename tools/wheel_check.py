"""Check that wheels can be published: ``wheel_check.py WHEEL…``.

A wheel must be smaller than 1.1 MB, contain its licences and every file of its package, and must not contain the path
of a folder on the builder's machine. The wheel of the kit is for all systems. The wheel of the library contains the
native library, which exports only ``cw_…`` and needs only system libraries that every system of the wheel's tag has.
For manylinux, auditwheel knows these; for the others, the lists below name them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import lief

# lief would warn about objects that live until the interpreter exits.
lief.disable_leak_warning()

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 1_100_000
HOMES = {"CARGO_HOME": Path.home() / ".cargo", "RUSTUP_HOME": Path.home() / ".rustup"}
#: The start of a wheel's name -> the folder that contains its package.
PACKAGES = {"claude_wire": ROOT / "python", "claude_wire_kit": ROOT / "kit"}
LIBRARY = re.compile(r"/(lib)?_native\.(\w+\.)*(so|dylib|dll|pyd)$")
TAG = re.compile(r"-py3-none-((?:many|musl)linux|macosx|win)")

#: The libraries that every system with musl, macOS or Windows has.
MUSL = re.compile(r"libc\.(so|musl-\w+\.so\.1)")
MACOS = re.compile(r"/usr/lib/(libSystem|libiconv)\..*")
WINDOWS = re.compile(
    r"(kernel32|ntdll|userenv|ws2_32|bcrypt(primitives)?|advapi32|vcruntime140|msvcrt|api-ms-win-.*)\.dll", re.I
)


def faults(wheel: Path) -> list[str]:
    """Return a message for each of the wheel's faults."""
    found = []
    package = wheel.name.partition("-")[0]
    tag = TAG.search(wheel.name)
    if package == "claude_wire_kit":
        if not wheel.name.endswith("-py3-none-any.whl"):
            found.append(f"the tag is not py3-none-any: {wheel.name}")
    elif tag is None:
        found.append(f"the tag is not py3-none for manylinux, musllinux, macOS or Windows: {wheel.name}")
    size = wheel.stat().st_size
    if size >= MAX_BYTES:
        found.append(f"{size} bytes; wanted are less than {MAX_BYTES}")
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for licence in ("LICENSE", "THIRD_PARTY_LICENSES"):
        if not any(name.endswith(f".dist-info/licenses/{licence}") for name in content):
            found.append(f"no {licence}")
    found += [f"no {name}" for name in package_files(package) if name not in content]
    homes = [os.environ.get(name, str(home)) for name, home in HOMES.items()]
    for name, data in content.items():
        for folder in [str(ROOT), str(Path.home()), *homes]:
            if len(folder) > 1 and folder.encode() + b"/" in data:
                found.append(f"{name} names {folder}")
    libraries = {name: data for name, data in content.items() if LIBRARY.search(name)}
    if not libraries and package == "claude_wire":
        found.append("no native library")
    if libraries and package != "claude_wire":
        found.append("a native library")
    for name, data in libraries.items():
        found += [f"{name} {fault}" for fault in library_faults(data, tag is not None and tag[1] == "musllinux")]
    if libraries and tag is not None and tag[1] == "manylinux":
        found += manylinux_faults(wheel)
    return found


def package_files(package: str) -> list[str]:
    """Return a package's source files: modules, types and data."""
    place = PACKAGES[package]
    files = (path for path in (place / package).rglob("*") if path.is_file())
    names = (path.relative_to(place).as_posix() for path in files)
    return sorted(name for name in names if "/__pycache__/" not in name and "/native/_native/" not in name)


def library_faults(data: bytes, musl: bool = False) -> list[str]:
    """Return the libraries that a native library must not need, and the names that it must not export.

    Args:
        data: the native library's bytes.
        musl: True if the library is for Linux with musl. Such a library is checked here, because auditwheel, run on a
            system with glibc, mistakes glibc's linker script ``libc.so`` for a library.
    """
    library = lief.parse(list(data))
    if library is None:
        return ["is not a library"]
    given = sorted({str(function.name).lstrip("_") for function in library.exported_functions})
    found = [f"exports {name}" for name in given if not name.startswith("cw_")]
    if isinstance(library, lief.MachO.Binary):
        found += [f"needs {each.name}" for each in library.libraries if not MACOS.fullmatch(str(each.name))]
    elif isinstance(library, lief.PE.Binary):
        found += [f"needs {each.name}" for each in library.imports if not WINDOWS.fullmatch(str(each.name))]
    elif musl:
        found += [f"needs {name}" for name in map(str, library.libraries) if not MUSL.fullmatch(name)]
    return found


def manylinux_faults(wheel: Path) -> list[str]:
    """Return auditwheel's complaints. The glibc version in the wheel's tag must not be older than the one that the
    library needs."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return [f"auditwheel refuses it: {(run.stderr or run.stdout).strip()[-300:]}"]
    needed = versions(json.loads(run.stdout)["overall_tag"])
    tagged = versions(wheel.name)
    if needed and tagged and min(tagged) >= min(needed):
        return []
    return [f"the platform tag is wrong: the library needs {needed}: {wheel.name}"]


def versions(tags: str) -> list[tuple[int, int]]:
    """Return the glibc versions in manylinux tags."""
    return [(int(major), int(minor)) for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", tags)]


def main(wheels: list[str]) -> int:
    wrong = 0
    for wheel in map(Path, wheels):
        found = faults(wheel)
        wrong += len(found)
        for each in found:
            print(f"{wheel.name} is wrong: {each}", file=sys.stderr)
        if not found:
            print(f"{wheel.name}: {wheel.stat().st_size} bytes, and nothing in it that should not be")
    return int(bool(wrong) or not wheels)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
