"""Run each example of docs/agent.md, and check that it does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from claude_wire import AssistantMessage, ClaudeOptions, ResultMessage
from claude_wire.agent import AgentOptions, AgentSession, Turn
from claude_wire.messages import InitializeRequest
from claude_wire.testing import open_agent
from folders import ROOT

PAGE = (ROOT / "docs" / "agent.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+)[^>]*-->\n```python\n(.*?)```", PAGE, re.S))
#: A program that uses the methods that the page describes without an example.
EXAMPLES["steps"] = """\
from claude_wire.agent import Turn
from claude_wire.messages import AddRules, PermissionRuleValue

ALWAYS = AddRules(rules=[PermissionRuleValue(toolName="Delete")], behavior="allow", destination="session")


async def answer(turn: Turn) -> None:
    use = await turn.use_tool("Delete", {"file_path": "old.txt"})
    decision = await turn.allowed(use, [ALWAYS])
    if decision.ok:
        await turn.tool_result(use, f"deleted {decision.input['file_path']}")
    else:
        await turn.tool_result(use, decision.message, is_error=True)
    await turn.say("Finished.")
"""
FIRST = re.search(r'```python title="hello.py"\n(#!/usr/bin/env.*?)```', PAGE, re.S)

#: Example -> the texts that its agent sends for the prompt "two words", and the result.
SAID: dict[str, tuple[list[str], str]] = {
    "say": (["One moment. I heard two words ", "Done."], "Done."),
    "tool": (["The file says: kept"], "The file says: kept"),
    "steps": (["Finished."], "Finished."),
    "injected": (["Step 0.", "Step 1.", "Step 2."], "Step 2."),
    "structured": ([], '{"words":2}'),
    "subagent": (["Nothing here.", "My helper found nothing."], "My helper found nothing."),
    "lifespan": (["Prompt 1, for my-model."], "Prompt 1, for my-model."),
    "plain": (["TWO WORDS "], "TWO WORDS "),
}


async def asked(example: str, **callbacks: Any) -> tuple[list[str], ResultMessage]:
    names: dict[str, Any] = {}
    exec(EXAMPLES.get(example, example), names)
    said: list[str] = []
    async with open_agent(names.get("agent", names["answer"]), **callbacks) as session:
        await session.query("two words")
        async for message in session.receive_response():
            if isinstance(message, AssistantMessage) and message.text:
                said.append(message.text)
            if isinstance(message, ResultMessage):
                return said, message
    raise AssertionError("no result")


@pytest.mark.parametrize("example", SAID)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_example_says_what_the_page_says(
    example: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("kept")

    async def main() -> None:
        said, result = await asked(example, can_use_tool=lambda request: request.allow())
        assert said == SAID[example][0]
        assert result.result == SAID[example][1]
        assert result.ok

    anyio.run(main, backend=backend)


async def test_a_tool_that_is_refused_is_told() -> None:
    said, _ = await asked("tool", can_use_tool=lambda request: request.deny("no"))
    assert said == ["I was not allowed to look: no"]
    said, result = await asked("steps", can_use_tool=lambda request: request.deny("no"))
    assert len(result.permission_denials or ()) == 1


async def test_structured_output_fits_its_schema() -> None:
    schema = {"type": "object", "properties": {"words": {"type": "string"}}}
    _, result = await asked("structured")
    assert result.structured_output == {"words": 2}
    assert result.total_cost_usd == 0.001
    _, result = await asked("structured", initialize=InitializeRequest(jsonSchema=schema))
    assert result.subtype == "error_max_structured_output_retries"


def test_the_first_agent_streams_for_a_host_that_asks_for_it() -> None:
    assert FIRST is not None

    async def main() -> None:
        said, _ = await asked(FIRST[1], options=ClaudeOptions(include_partial_messages=True))
        assert said == ["You said: two words"]

    anyio.run(main)


@pytest.mark.parametrize(
    ("example", "printed"),
    [("protocol", ["exit code 0", """b'{"type":"system","subtype":"init",""", """b'{"type":"result","""])],
)
def test_a_whole_program_prints_what_it_should(
    example: str, printed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    exec(EXAMPLES[example], {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(printed)
    assert all(line.startswith(start) for line, start in zip(lines, printed, strict=True))


def test_every_example_is_run() -> None:
    assert EXAMPLES.keys() == {*SAID, "sdk", "async_test", "protocol"}
    # the page has one more block (the first agent), and this file adds one example
    assert PAGE.count("```python") == len(EXAMPLES)


def test_the_acts_that_the_page_names_exist() -> None:
    rows = re.findall(r"^\| `(\w+)\(", PAGE, re.M)
    assert rows
    assert all(hasattr(Turn, name) for name in rows)
    session = AgentSession(AgentOptions(), "m")
    for name in ("id", "options", "model", "permission_mode", "mcp_servers", "schema", "state", "cost_usd", "used"):
        assert f"`{name}`" in PAGE
        assert hasattr(session, name)


def test_the_files_that_it_links_exist() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
