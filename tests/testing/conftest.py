"""Fixtures that turn recordings into programs, which a test runs in place of the CLI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from claude_wire.testing import Recording, Replay


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(recording: Recording, *flags: str, **options: Any) -> list[str]:
        return [Replay(recording, **options).script(tmp_path / "claude"), *flags]

    return write
