"""The README is true: each Python example runs and prints what it says it does, and the commands exist."""

from __future__ import annotations

import builtins
import os
import re
import subprocess
import sys
from pathlib import Path

import claude_agent_sdk
import pytest

import claude_wire
import recordings
from claude_wire import agent
from claude_wire.integrations import agent_sdk, mcp
from claude_wire.testing import Recording, Replay
from folders import ROOT

README = (ROOT / "README.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", README, re.S))

PRINTED = {
    "stream": [
        "model: claude-opus-5-5",
        "delta: Hel",
        "bad line 3 at byte 201 - not JSON: Expecting value at character 0 of the line",
        "answer: Hello []",
        "done: True 0.01",
        "DecoderStats(bytes=405, lines=5, messages=4, invalid=1, unknown=0, repaired=0, skipped=0, merged=0)",
    ],
    "filter": [
        "AssistantMessage",
        "AssistantMessage",
        "AssistantMessage",
        "ResultSuccess",
        "The answer is 42.",
        "25 lines passed over, 2 merged",
    ],
    "relay": ["control_response/success 17371", "system/init 2972", "assistant 692", "result/success 2112", "[]"],
    "dicts": ["assistant 1"],
    "answer": [
        'b\'{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":'
        '{"behavior":"allow","updatedInput":{"command":"ls"}}}}\\n\'',
        'b\'{"type":"user","message":{"role":"user","content":"hello"},"parent_tool_use_id":null,"session_id":""}\\n\'',
        'b\'{"type":"control_request","request_id":"r2","request":{"subtype":"initialize"}}\\n\'',
        "default",
    ],
    "read": ["True 1 0.0001"],
    "run": ["Hello from the fake API. You said: Hello bidi with initialize", "True 0.0001"],
    "pipe": ["ControlResponse", "InitMessage", "AssistantMessage", "ResultSuccess"],
    "agent_sdk": ["SystemMessage", "AssistantMessage", "ResultMessage"],
    "fixture": ["1 passed"],
    "host": [
        "Two writes. []",
        " ['Bash']",
        "may I use Bash - Make a",
        " ['Bash']",
        "may I use Bash - Make b",
        " ['Write']",
        "may I use Write - c.txt",
        "finished []",
        "True finished 0.0005",
    ],
    "hooks": ["about to use Bash", "about to use Bash", "about to use Write", "finished 4"],
    "mcp": ["sum done"],
    "agent": ["There is a.txt."],
    "accumulate": [
        "thinking  {}",
        "redacted_thinking  {}",
        "text The answer is 42. {}",
        "end_turn 7",
    ],
}
#: The recordings that stand in for the CLI; of the others, a simple one does.
RECORDINGS = {"host": "05_perm_allow_deny", "hooks": "06_hooks", "mcp": "07_mcp_viainit"}


def test_every_example_is_run() -> None:
    assert EXAMPLES.keys() == PRINTED.keys()
    assert README.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str, tmp_path: Path) -> None:
    session = Recording.from_files(recordings.load(RECORDINGS.get(name, "01_simple_bidi_init")).files)
    session.save(tmp_path / "recording")
    (tmp_path / "session.ndjson").write_bytes(session.stdout)
    (tmp_path / "streamed.ndjson").write_bytes(recordings.load("03_think_partial").stdout)
    stand_in = Replay(session).script(tmp_path / "claude")
    code = EXAMPLES[name]
    if name == "agent_sdk":  # which would rather take the CLI of its own wheel
        code = code.replace("ClaudeAgentOptions(", f"ClaudeAgentOptions(cli_path={stand_in!r}, ")
    if name == "fixture":
        (tmp_path / "test_host.py").write_text(code)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_host.py"]
    else:
        command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        input=session.stdout.decode() if name in ("pipe", "relay") else "",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    if name == "fixture":
        assert PRINTED[name][0] in run.stdout
    else:
        assert run.stdout.splitlines() == PRINTED[name]


def test_the_commands_that_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README.split("##")[0]):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_files_that_it_links_exist() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link


def test_no_place_is_left_open() -> None:
    assert set(re.findall(r"<!-- (.*?) -->", README)) == {f"example: {name}" for name in EXAMPLES}


@pytest.mark.parametrize("document", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_the_names_in_a_document_exist_and_so_do_the_files_that_it_links(document: Path) -> None:
    text = document.read_text()
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (document.parent / link).exists(), link
    for name in re.findall(r"`(\w+(?:Error|Request|Matcher|Output|Options|Session|McpServer))\b", text):
        assert any(
            hasattr(module, name) for module in (claude_wire, agent, agent_sdk, mcp, claude_agent_sdk, builtins)
        ), name
