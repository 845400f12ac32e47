"""The library passes arguments that are too long for the system in files, and deletes the files afterwards."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from async_backends import Backend, every_backend
from children import linux_only, python
from claude_wire import ClaudeOptions, open_process
from claude_wire.process.long_arguments import MAX_ARGUMENT_BYTES

pytestmark = linux_only

LONG = "é" * 100_000
#: A program that reports its flags and the contents of the file that each flag names.
SHOWS = """
flags = [flag for flag in sys.argv[1:] if flag.startswith("--")]
files = [open(path, "rb").read().decode() for path in sys.argv[1:] if path.startswith("/")]
files += [open(flag.partition("=")[2], "rb").read().decode() for flag in flags if "=/" in flag]
modes = [os.stat(path).st_mode & 0o77 for path in sys.argv[1:] if path.startswith("/")]
say(type="x", flags=[flag.partition("=")[0] for flag in flags], files=files, modes=modes)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def shown(arguments: list[str], folder: Path, backend: Backend) -> Any:
    async def main() -> Any:
        with anyio.fail_after(60):
            async with open_process(python(SHOWS, *arguments)) as process:
                message: Any = await process.__anext__()
                return {**message}

    try:
        return backend.run(main)
    finally:
        assert list(folder.iterdir()) == []


@every_backend
@pytest.mark.parametrize(
    ("flag", "by_file"),
    [
        ("--system-prompt", "--system-prompt-file"),
        ("--append-system-prompt", "--append-system-prompt-file"),
        ("--settings", "--settings"),
        ("--mcp-config", "--mcp-config"),
        ("--agents", "--agents"),
    ],
)
def test_a_long_argument_is_a_file_of_this_user_and_is_gone_with_the_process(
    flag: str, by_file: str, folder: Path, backend: Backend
) -> None:
    assert shown([flag, LONG], folder, backend) == {"type": "x", "flags": [by_file], "files": [LONG], "modes": [0]}
    joined = shown([f"{flag}=-{LONG}"], folder, backend)
    assert (joined["flags"], joined["files"]) == ([by_file], ["-" + LONG])


@every_backend
def test_an_argument_of_the_longest_length_stays_an_argument(folder: Path, backend: Backend) -> None:
    seen = shown(["--system-prompt", "x" * MAX_ARGUMENT_BYTES], folder, backend)
    assert (seen["flags"], seen["files"]) == (["--system-prompt"], [])


@every_backend
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allowed_tools": ["x" * 200_000]}, "the argument of --allowedTools has 200,000 bytes.*settings="),
        ({"json_schema": {"x": "x" * 200_000}}, "the argument of --json-schema has .*InitializeRequest"),
        ({"extra_args": {"of-tomorrow": "x" * 200_000}}, "the argument of --of-tomorrow has 200,000 bytes"),
    ],
)
async def test_a_long_argument_that_no_file_can_replace_is_named(
    options: dict[str, Any], words: str, folder: Path
) -> None:
    argv = ClaudeOptions(cli_path=os.devnull, system_prompt=LONG, **options).argv()

    with pytest.raises(OSError, match=words) as caught:
        async with open_process(argv):
            raise AssertionError
    assert caught.value.errno == errno.E2BIG
    assert list(folder.iterdir()) == []


@every_backend
async def test_arguments_that_are_too_long_together_are_counted(folder: Path) -> None:
    with pytest.raises(OSError, match=r"the arguments have .* the environment .* together") as caught:
        async with open_process(python("pass", "--settings", LONG, *["x" * 120_000] * 100)):
            raise AssertionError
    assert caught.value.errno == errno.E2BIG
    assert list(folder.iterdir()) == []


@every_backend
def test_files_of_a_program_that_cannot_be_run_are_gone(folder: Path, backend: Backend) -> None:
    program = folder / "program"
    program.write_text("#!/bin/sh\n")

    async def main() -> None:
        with pytest.raises(PermissionError, match="not executable: chmod"):
            async with open_process([str(program), "--settings", LONG]):
                raise AssertionError

    backend.run(main)
    assert list(folder.iterdir()) == [program]
