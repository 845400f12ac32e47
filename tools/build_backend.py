"""maturin's build backend with two additions: a clear error if Rust is missing, and wheels without local paths.

With the same rustc, maturin and cffi, a wheel has the same bytes, whoever builds it and in whichever folder. Panic
messages contain source file paths, so rustc gets a flag that renames each source folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Without cargo, maturin would try to download a toolchain. The error below is clearer.
os.environ.setdefault("MATURIN_NO_INSTALL_RUST", "1")

CARGO = os.environ.get("CARGO") or shutil.which("cargo")
if CARGO is None:
    sys.exit(
        "claude-wire is built from Rust source, and no `cargo` was found on PATH.\n"
        "Install Rust 1.82 or newer (https://rustup.rs, or your system's `cargo` and `rustc` packages) and try again."
    )

import maturin  # noqa: E402  - imported after the check for cargo
from maturin import *  # noqa: E402, F403  - maturin's other hooks of PEP 517 and 660, unchanged

ROOT = Path(__file__).resolve().parent.parent


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel with maturin, with flags that rename this machine's folders.

    The flags are set in the environment, together with those of ``RUSTFLAGS``. Flags in a user's cargo configuration
    are ignored. The target folder is separate, because cargo compiles everything again when a folder's flags change,
    and an editable installation has other flags.
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
    """Return the environment's flags for rustc, by cargo's rules."""
    encoded = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    if encoded is not None:
        return encoded.split("\x1f") if encoded else []
    return os.environ.get("RUSTFLAGS", "").split()


def renamed_folders() -> list[str]:
    """Return the flags that rename the source folders.

    rustc uses the last flag that matches a path, so parent folders come first. All crates from a registry have one
    parent folder, which one flag renames.
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
    # If the standard library's sources are installed, rustc uses their folder, else /rustc/HASH. Always use the hash.
    library = Path(output("rustc", "--print", "sysroot").strip(), "lib", "rustlib", "src", "rust")
    folders[str(library)] = f"/rustc/{version['commit-hash']}"
    return [f"--remap-path-prefix={folder}={folders[folder]}" for folder in sorted(folders, key=len)]


def output(*command: str) -> str:
    """Run a program and return its standard output. Its standard error goes to ours."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
