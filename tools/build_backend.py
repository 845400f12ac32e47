"""maturin's build backend, with a clear word first when there is no Rust to build with."""

import os
import shutil
import sys

# Without cargo maturin would try to download a toolchain; a build should say what it needs instead.
os.environ.setdefault("MATURIN_NO_INSTALL_RUST", "1")

if shutil.which("cargo") is None and not os.environ.get("CARGO"):
    sys.exit(
        "claude-wire is built from Rust source, and no `cargo` was found on PATH.\n"
        "Install Rust 1.82 or newer (https://rustup.rs, or your system's `cargo` and `rustc` packages) and try again."
    )

from maturin import *  # noqa: F403  - the hooks of PEP 517 and 660 are maturin's own
