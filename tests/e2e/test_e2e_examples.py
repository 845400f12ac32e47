"""The examples, driven by both official SDKs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import driven_agent
from agent_conversations import HOSTS
from folders import ROOT
from offline.fake_api import FakeAPI, Reply, text, tool
from pages import blocks
from test_e2e_agent import executable, of, results, texts

EXAMPLES = ROOT / "examples"
Talk = Callable[..., dict[str, Any]]


@pytest.fixture(params=sorted(HOSTS))
def talk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Return a function that runs a conversation with the example in the given file."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def hold(example: str, *acts: str | tuple[str, Any], error: str = "", **options: Any) -> dict[str, Any]:
        done: list[tuple[str, Any]] = []
        for act in acts:
            done += [("send", act), ("result", None)] if isinstance(act, str) else [act]
        seen = HOSTS[request.param](EXAMPLES / example, {"options": options, "acts": [*done, ("end", None)]})
        assert seen["error"] is None or (error and error in seen["error"]), seen
        return seen

    return hold


def test_the_echo(talk: Talk) -> None:
    seen = talk("echo.py", "Hello, my world", partial=True)
    assert of(seen, "delta") == ["You ", "said: ", "Hello, ", "my ", "world "]
    assert results(seen)[0]["text"] == "You said: Hello, my world "
    assert len((EXAMPLES / "echo.py").read_text().splitlines()) <= 30


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeAPI]:
    """Run a fake API whose model calls Read once, and set the environment for it."""
    (tmp_path / "note").write_text("A note.")
    use = Reply(text("Let me ", "look."), tool("Read", file_path=str(tmp_path / "note")))
    with FakeAPI({"read": [use, Reply(text("I have ", "seen it."))]}) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0000")
        yield api


@pytest.mark.parametrize("allowed", [True, False])
def test_the_messages_api(talk: Talk, model: FakeAPI, allowed: bool) -> None:
    answer = {"behavior": "allow"} if allowed else {"behavior": "deny", "message": "not this file"}
    seen = talk("messages_api.py", "[[read]]", "[[read]] again", partial=True, permission={"Read": answer})
    assert of(seen, "delta") == ["Let me ", "look.", "I have ", "seen it."] * 2
    assert of(seen, "tool_result") == ["A note." if allowed else "not this file"] * 2
    assert [len(request.body["messages"]) for request in model.requests] == [1, 3, 5, 7]
    last = model.requests[-1].body["messages"][-1]["content"][0]
    assert last["is_error"] is not allowed


def test_a_server_that_fails_is_an_error(talk: Talk, model: FakeAPI) -> None:
    model.__exit__()
    seen = talk("messages_api.py", "hi", error="exited with code 1")
    assert [one["result"] for one in results(seen)] == ["error_during_execution"]
    assert "URLError" in seen["stderr"]


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = executable(tmp_path / "inner", Path(driven_agent.__file__))
    monkeypatch.setenv("INNER_AGENT", str(agent))
    monkeypatch.setenv("ALLOWED", "Bash")


@pytest.mark.usefixtures("inner")
def test_what_the_wrapped_agent_says_is_handed_on(talk: Talk) -> None:
    seen = talk("filtered.py", "stream one two", "echo b", partial=True)
    assert of(seen, "delta") == ["one ", "two ", "1: b"]
    assert texts(seen) == ["one two ", "1: b"]
    assert [one["text"] for one in results(seen)] == ["one two ", "1: b"]


@pytest.mark.usefixtures("inner")
def test_a_tool_of_the_wrapped_agent_is_asked_about_twice(talk: Talk) -> None:
    seen = talk(
        "filtered.py", "bash ls", permission={"Bash": {"behavior": "allow", "updatedInput": {"command": "pwd"}}}
    )
    assert seen["calls"] == [["permission", "Bash", {"command": "ls"}]]
    assert of(seen, "tool_result") == ["ran pwd"]


@pytest.mark.usefixtures("inner")
def test_a_tool_that_is_filtered_out_never_reaches_the_host(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOWED", "Read")
    seen = talk("filtered.py", "bash ls", permission={"Bash": {"behavior": "allow"}})
    assert seen["calls"] == []
    assert of(seen, "tool_result") == ["Bash may not be used here"]


@pytest.mark.usefixtures("inner")
def test_an_interrupt_reaches_the_wrapped_agent(talk: Talk) -> None:
    acts = [("send", "forever"), ("delta", "working"), ("interrupt", None), ("result", None)]
    seen = talk("filtered.py", *acts, "cleaned", partial=True)
    assert [one["result"] for one in results(seen)] == ["error_during_execution", "success"]
    assert texts(seen)[-1] == "cleaned: True"


#: The agents of the page, by name. The other programs of the page are not agents.
AGENTS = {block.said["example"]: block.text for block in blocks(ROOT / "docs" / "agent.md") if "agent" in block.said}


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_of_the_page_is_driven_by_both(talk: Talk, tmp_path: Path, name: str) -> None:
    (tmp_path / "agent").write_text(f"#!/usr/bin/env -S claude-wire agent\n{AGENTS[name]}")
    (tmp_path / "agent").chmod(0o755)
    allowed = {"behavior": "allow"}
    seen = talk(str(tmp_path / "agent"), "Hi", partial=True, permission=dict.fromkeys(["Read", "Delete"], allowed))
    assert [one["result"] for one in results(seen)] == ["success"]
    assert seen["stderr"] == ""


def test_the_page_has_agents() -> None:
    assert len(AGENTS) > 5
