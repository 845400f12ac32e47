"""The demo agent: each topic of its list works by its name, and its statements about the demo project are true."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from claude_wire import CanUseToolRequest, ClaudeOptions, PermissionResult, Session
from claude_wire.messages import ResultMessage, SetMode
from claude_wire.testing import open_agent
from claude_wire_kit.commands.guide import agent as guide
from claude_wire_kit.commands.guide.project import BROKEN, FIXED, SOURCE, write_project

OPTIONS = ClaudeOptions(permission_prompt_tool="stdio")
Decide = Callable[[CanUseToolRequest], PermissionResult]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(guide, "PACE", 0.0)
    return tmp_path


def talk(*prompts: str, decide: Decide = CanUseToolRequest.allow) -> list[ResultMessage]:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        return decide(request)

    async def main() -> list[ResultMessage]:
        async with open_agent(guide.agent, OPTIONS, can_use_tool=ask) as session:
            return [await result(session, prompt) for prompt in prompts]

    return anyio.run(main)


async def result(session: Session, prompt: str) -> ResultMessage:
    await session.query(prompt)
    found = [message async for message in session.receive_response() if isinstance(message, ResultMessage)]
    return found[-1]


def test_the_fault_is_real_and_the_correction_too(project: Path) -> None:
    before, fixed, after = talk("Run the tests", "Fix the bug", "Run the tests")
    assert before.result.startswith("**One test fails**")
    assert after.result == "All tests pass."
    assert fixed.ok
    assert FIXED in (project / SOURCE).read_text()
    talk("Show a diff")
    assert BROKEN in (project / SOURCE).read_text()


def test_what_is_denied_is_not_done(project: Path) -> None:
    for prompt in ("fix", "test", "question", "plan"):
        (done,) = talk(prompt, decide=lambda request: request.deny("Not now."))
        assert done.ok
    assert BROKEN in (project / SOURCE).read_text()


def test_edits_need_no_second_question_once_the_mode_allows_them(project: Path) -> None:
    asked: list[CanUseToolRequest] = []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request)
        return request.allow(updated_permissions=request.permission_suggestions)

    talk("fix", "fix", decide=decide)
    assert [one.permission_suggestions for one in asked] == [[SetMode(mode="acceptEdits", destination="session")]]


def test_in_plan_mode_it_edits_after_the_plan_is_agreed_to(project: Path) -> None:
    asked: list[str] = []

    def decide(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.tool_name)
        return request.allow()

    async def main() -> None:
        async def ask(request: CanUseToolRequest) -> PermissionResult:
            return decide(request)

        async with open_agent(guide.agent, OPTIONS, can_use_tool=ask) as session:
            await session.set_permission_mode("plan")
            await result(session, "Fix the bug")

    anyio.run(main)
    assert asked == ["ExitPlanMode", "Edit"]


@pytest.mark.parametrize("topic", guide.TOPICS, ids=lambda topic: topic.name)
def test_each_offer_is_what_its_name_asks_for(topic: guide.Topic) -> None:
    found = next(one for one in guide.TOPICS if re.search(rf"(?<!\w)(?:{one.words})(?!\w)", topic.name))
    assert found is topic
    plain = topic.ask.replace("*", "")
    assert next(one for one in guide.TOPICS if re.search(rf"(?<!\w)(?:{one.words})(?!\w)", plain)) is topic


def test_it_greets_and_offers_all_of_them(project: Path) -> None:
    hello, *others = talk("Hello!", "review", "background", "markdown", "picture", "error")
    assert [f"| {topic.ask} |" in hello.result for topic in guide.TOPICS] == [True] * len(guide.TOPICS)
    assert [one.ok for one in others] == [True, True, True, True, False]


def test_choices_are_repeated(project: Path) -> None:
    def choose(request: CanUseToolRequest) -> PermissionResult:
        first, second = request.input["questions"]
        return request.allow({**request.input, "answers": {first["question"]: "Half up", second["question"]: "Yen"}})

    (done,) = talk("Ask me a question", decide=choose)
    assert "**Half up**" in done.result
    assert "**Yen**" in done.result
