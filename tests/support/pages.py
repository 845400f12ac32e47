"""Run the documentation: every Python and console block of a page, in order, in one folder.

A comment before a block says how to run it: ``<!-- KEY: VALUE; KEY: VALUE -->``.

* ``example: NAME`` names the block, for the tests of this page.
* ``cli: RECORDING`` makes this recorded session play the CLI for this block and the following ones.
* ``stdin: session`` passes the current recorded session to the program's standard input.
* ``agent: PROMPT`` marks an agent. A session that allows every tool sends it the prompt, and prints the answer.
* ``pytest: yes`` marks a file of tests.
* ``test: FILE`` marks a block that this test file runs.
* ``fragment: REASON`` marks a part of a program, which is not run.
* ``output`` marks a ``text`` block as the output of the Python block before it.

A block ``--8<-- "FILE"`` has the text of that file of the clone. If no ``output`` follows a Python block, a comment
after a ``print(...)`` is the line that this call prints.

A Python block with ``title="NAME.py"`` is saved under this name and runs when a later block uses it. A ``console``
block has commands after ``$``, and the output of each command below it. In expected output, ``...`` matches any text.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import recordings
import sessions
from claude_wire.testing import Recording, Replay
from folders import ROOT

__all__ = ["PAGES", "Block", "Scene", "blocks", "kept", "matches"]

#: Every page that may have runnable blocks.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECONDS = 120

_BLOCK = re.compile(r"(?:^<!-- ([^>]*?) -->\n)?^(```+)(\w+)(?: title=\"([^\"]+)\")?[^\n]*\n(.*?)^\2$", re.M | re.S)
_KEYS = {"example", "cli", "stdin", "agent", "pytest", "test", "fragment", "output"}

#: A recorded session calls the tool "boom", which no page defines, to see it fail. mcp 1.23 reports this call on
#: stderr.
_OF_OLDER_MCP = re.compile(r"^Tool 'boom' not listed, .*\n", re.M)

#: A program that connects a session to the agent in a file, and asks it a prompt.
_ASKER = """
import sys, anyio
from pathlib import Path
from claude_wire import AssistantMessage, ResultMessage
from claude_wire.testing import open_agent
names = {}
exec(Path(sys.argv[1]).read_text(), names)
async def main():
    agent = names.get("agent") or names["answer"]
    async with open_agent(agent, can_use_tool=lambda request: request.allow()) as session:
        await session.query(sys.argv[2])
        async for message in session.receive_response():
            if isinstance(message, AssistantMessage) and message.text:
                print(message.text)
            elif isinstance(message, ResultMessage):
                print("result:", message.structured_output or message.result)
anyio.run(main)
"""


class Block(NamedTuple):
    """A fenced block of a page, with the keys of the comment before it."""

    line: int
    language: str
    title: str | None
    text: str
    said: dict[str, str]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order.

    Raises:
        ValueError: a comment has an unknown key.
    """
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        comment, _, language, title, code = match.groups()
        said: dict[str, str] = {}
        for part in (comment or "").split("; "):
            key, _, value = part.partition(":")
            if key and not key.islower():
                raise ValueError(f"{page.name}: {part}")
            if key:
                said[key.strip()] = value.strip()
        if language == "python" and not said.keys() <= _KEYS:
            raise ValueError(f"{page.name}: {comment}")
        if snippet := re.match(r'--8<-- "(.*)"\n$', code):
            code = (ROOT / snippet[1]).read_text(encoding="utf-8")
        found.append(Block(text.count("\n", 0, match.start()) + 1, language, title, code, said))
    return found


def kept(page: str) -> list[str]:
    """Return the lines of a page's table "what is kept". ``page`` is relative to ``docs``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return (
        text.partition("| what is kept | at most | above that |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    )


def matches(expected: str, printed: str) -> bool:
    """Return whether the output matches. ``...`` in ``expected`` matches any text."""
    pattern = ".*?".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.S) is not None


def _trimmed(text: str) -> str:
    """Strip the invisible spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


class Scene:
    """The folder in which a page's blocks run. It has recordings, a stand-in for the CLI, and parts of the clone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play("01_simple_bidi_init")
        streamed = recordings.load("03_think_partial").stdout
        (folder / "streamed.ndjson").write_bytes(streamed)
        (folder / "notes.txt").write_text("kept")
        sessions.unpack("two_folders", folder)
        for name in ("examples", "benches"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("protocol", "tests"):
            (folder / name).symlink_to(ROOT / name)

    def play(self, recording: str) -> None:
        """Make this recording play the CLI for the following blocks."""
        self.session = Recording.from_files(recordings.load(recording).files)
        shutil.rmtree(self.folder / "recording", ignore_errors=True)
        self.session.save(self.folder / "recording")
        (self.folder / "session.ndjson").write_bytes(self.session.stdout)
        self._stand_in = Replay(self.session).script(self.folder / "claude")

    def run(self, block: Block) -> str:
        """Run a Python block, and return what it prints.

        Raises:
            AssertionError: the block failed, or wrote to its standard error.
        """
        if "cli" in block.said:
            self.play(block.said["cli"])
        code = block.text
        if block.title is not None:
            path = self.folder / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(code, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return ""
        if "cli_path" not in code:  # otherwise claude-agent-sdk uses the CLI in its own wheel
            code = code.replace("ClaudeAgentOptions(", f"ClaudeAgentOptions(cli_path={self._stand_in!r}, ")
        path = self.folder / ("test_block.py" if "pytest" in block.said else "block.py")
        path.write_text(code, encoding="utf-8")
        command = [sys.executable, "-W", "error"]
        if "pytest" in block.said:
            command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", path.name]
        elif "agent" in block.said:
            command += ["-c", _ASKER, path.name, block.said["agent"]]
        else:
            command += [path.name]
        done = self._start(command, self.session.stdout.decode() if "stdin" in block.said else "")
        complaints = _OF_OLDER_MCP.sub("", done.stderr)
        assert (done.returncode, complaints) == (0, ""), f"line {block.line}: {done.stdout}{done.stderr}"
        return done.stdout

    def commands(self, block: Block) -> None:
        """Run each command of a console block, and compare its output with the text below it.

        Raises:
            AssertionError: a command failed, or printed something else.
        """
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, expected = part.partition("\n")
            done = self._start(["bash", "-c", command])
            assert done.returncode == 0, f"line {block.line}: {command}: {done.stdout}{done.stderr}"
            printed = done.stdout + done.stderr
            assert matches(expected, printed), f"line {block.line}: {command}: {printed}"

    def close(self) -> None:
        """Stop the supervisor that a page started, if a failed block left it running."""
        if (self.folder / "state" / "supervisor.json").exists():
            self._start([sys.executable, "-m", "claude_wire_kit", "supervisor", "stop", "--all", "--grace=0"])

    def _start(self, command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.folder), os.path.dirname(sys.executable), os.environ["PATH"]])
        return subprocess.run(
            command,
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": path,
                "COLUMNS": "120",
                "CLAUDE_WIRE_SUPERVISOR": os.fspath(self.folder / "state"),
            },
            input=stdin,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
