"""The documents, as programs: every Python block and every console block of a page is run, in order, in one folder.

What a block is, a comment before it says: ``<!-- KEY: VALUE; KEY: VALUE -->``.

* ``example: NAME`` is its name, for tests of that page alone.
* ``cli: RECORDING`` is the recorded session that stands in for the CLI from here on.
* ``stdin: session`` gives a program that session on its standard input.
* ``agent: PROMPT`` is an agent. A session that allows everything asks it, and what it says and its result are printed.
* ``pytest: yes`` is a file of tests.
* ``test: FILE`` is run by that file of tests.
* ``fragment: REASON`` is part of a program, and is not run.
* ``output`` says that a ``text`` block is what the Python block before it prints.

A Python block with ``title="NAME.py"`` is kept as that file and runs when a later block uses it. A ``console`` block
has commands after ``$``, and beneath each of them what it prints. In what is printed, ``...`` stands for any text.
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

#: Every page that may have programs.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SECONDS = 120

_BLOCK = re.compile(r"(?:^<!-- ([^>]*?) -->\n)?^(```+)(\w+)(?: title=\"([^\"]+)\")?[^\n]*\n(.*?)^\2$", re.M | re.S)
_KEYS = {"example", "cli", "stdin", "agent", "pytest", "test", "fragment", "output"}

#: A recorded session calls a tool that no page has, to see it fail; mcp 1.23 says so on the standard error.
_OF_OLDER_MCP = re.compile(r"^Tool 'boom' not listed, .*\n", re.M)

#: Runs the agent in a file as a session's other side.
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
    """A fenced block of a page, with what the comment before it says."""

    line: int
    language: str
    title: str | None
    text: str
    said: dict[str, str]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order.

    Raises:
        ValueError: a comment has a key that means nothing.
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
        found.append(Block(text.count("\n", 0, match.start()) + 1, language, title, code, said))
    return found


def kept(page: str) -> list[str]:
    """Return the rows of the page's table of what is kept, as lines. Folders are those below ``docs``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return (
        text.partition("| what is kept | at most | above that |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    )


def matches(expected: str, printed: str) -> bool:
    """Whether that is what was printed; ``...`` in what is expected stands for any text."""
    pattern = ".*?".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.S) is not None


def _trimmed(text: str) -> str:
    """Without the spaces at the ends of lines, which nobody sees."""
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


class Scene:
    """The folder in which the blocks of a page run: recordings, a stand-in for the CLI, the examples, and protocol."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.play("01_simple_bidi_init")
        streamed = recordings.load("03_think_partial").stdout
        (folder / "streamed.ndjson").write_bytes(streamed)
        (folder / "notes.txt").write_text("kept")
        sessions.unpack("two_folders", folder)
        for name in ("examples", "benches"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "protocol").symlink_to(ROOT / "protocol")

    def play(self, recording: str) -> None:
        """Let this recording stand in for the CLI from here on."""
        self.session = Recording.from_files(recordings.load(recording).files)
        shutil.rmtree(self.folder / "recording", ignore_errors=True)
        self.session.save(self.folder / "recording")
        (self.folder / "session.ndjson").write_bytes(self.session.stdout)
        self._stand_in = Replay(self.session).script(self.folder / "claude")

    def run(self, block: Block) -> str:
        """Run a Python block, and return what it prints.

        Raises:
            AssertionError: it failed, or wrote to the standard error.
        """
        if "cli" in block.said:
            self.play(block.said["cli"])
        code = block.text
        if snippet := re.match(r'--8<-- "(.*)"\n$', code):
            code = (ROOT / snippet[1]).read_text(encoding="utf-8")
        if block.title is not None:
            path = self.folder / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(code, encoding="utf-8")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return ""
        if "cli_path" not in code:  # claude-agent-sdk would rather take the CLI of its own wheel
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
        """Run each command of a console block, and compare what it prints with what stands beneath it.

        Raises:
            AssertionError: it failed, or printed something else.
        """
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, expected = part.partition("\n")
            done = self._start(["bash", "-c", command])
            assert done.returncode == 0, f"line {block.line}: {command}: {done.stdout}{done.stderr}"
            printed = done.stdout + done.stderr
            assert matches(expected, printed), f"line {block.line}: {command}: {printed}"

    def close(self) -> None:
        """End the supervisor that a page has started and that a failed block has left."""
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
