"""maturin's build backend, with two things of our own: a clear word where there is no Rust, and wheels without paths.

A wheel has the same bytes in whatever folder and by whichever user it is built (by the same rustc, maturin and cffi).
Panic messages name source files, so rustc is told another name for each folder that holds sources.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Without cargo maturin would try to download a toolchain; a build should say what it needs instead.
os.environ.setdefault("MATURIN_NO_INSTALL_RUST", "1")

CARGO = os.environ.get("CARGO") or shutil.which("cargo")
if CARGO is None:
    sys.exit(
        "claude-wire is built from Rust source, and no `cargo` was found on PATH.\n"
        "Install Rust 1.82 or newer (https://rustup.rs, or your system's `cargo` and `rustc` packages) and try again."
    )

import maturin  # noqa: E402  - imported only where there is a cargo
from maturin import *  # noqa: E402, F403  - the other hooks of PEP 517 and 660 are maturin's own

ROOT = Path(__file__).resolve().parent.parent


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """maturin's hook, with other names for the folders of this machine.

    The flags go through the environment: flags in a user's cargo configuration do not count here, those in
    ``RUSTFLAGS`` do. The native library is built in a folder of its own, for other flags would have cargo build
    everything anew at each change between an editable installation and a wheel.
    """
    changed = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*given_flags(), *renamed_folders()])}
    changed["CARGO_TARGET_DIR"] = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "wheel"))
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def given_flags() -> list[str]:
    """The flags for rustc that the environment has, as cargo reads them."""
    encoded = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    if encoded is not None:
        return encoded.split("\x1f") if encoded else []
    return os.environ.get("RUSTFLAGS", "").split()


def renamed_folders() -> list[str]:
    """The flags that rename every folder with sources. The last that fits a path counts, so the widest comes first.

    Crates stand side by side, those that the standard library takes, too, where cargo compiles it.
    """
    version = dict(line.split(": ", 1) for line in output("rustc", "-vV").splitlines() if ": " in line)
    command = [str(CARGO), "metadata", "--format-version=1", "--locked", "--filter-platform", version["host"]]
    folders = {}
    for package in json.loads(output(*command))["packages"]:
        folder = Path(package["manifest_path"]).parent
        if package["source"] is None:
            folders[str(folder)] = f"{package['name']}-{package['version']}"
        else:
            folders[str(folder.parent)] = "crates"
    # Where the sources of the standard library are installed, rustc names that folder; elsewhere it names this one.
    library = Path(output("rustc", "--print", "sysroot").strip(), "lib", "rustlib", "src", "rust")
    folders[str(library)] = f"/rustc/{version['commit-hash']}"
    return [f"--remap-path-prefix={folder}={folders[folder]}" for folder in sorted(folders, key=len)]


def output(*command: str) -> str:
    """What a program prints. Its complaints go where ours go."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
