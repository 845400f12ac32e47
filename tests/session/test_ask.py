"""``claude_wire.ask`` starts the CLI for one prompt. The process has ended when the call returns or raises."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import claude_wire
from async_backends import DEADLINE, Backend, every_backend
from children import ASKS, linux_only, nothing_left, python
from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ProcessError,
    ProcessInputError,
    SessionEndedError,
    TextBlock,
    UserMessage,
    open_session,
)
from claude_wire.errors import MaxTurnsError, SessionNotFoundError, StructuredOutputError
from claude_wire.messages import InitializeRequest, PermissionResult
from claude_wire.session.open import SessionArguments

#: An agent that answers ``initialize``. For a prompt it asks whether it may use a tool, and ends the turn with the
#: decision as the result; or it does what its command-line argument says.
AGENT = """
for text in sys.stdin:
    message = json.loads(text)
    if message["type"] == "control_request":
        say(type="control_response", response={"subtype": "success", "request_id": message["request_id"],
            "response": {}})
    elif message["type"] == "user":
        say(type="system", subtype="init", session_id="s")
        if sys.argv[1] == "max":
            say(type="result", subtype="error_max_turns", is_error=True, session_id="s")
        elif sys.argv[1] == "end":
            sys.exit(0)
        elif sys.argv[1] == "ask":
            say(type="control_request", request_id="q", request={"subtype": "can_use_tool", "tool_name": "Bash",
                "input": {"text": message["message"]["content"]}, "tool_use_id": "t"})
        elif sys.argv[1] == "say":
            say(type="result", subtype="success", is_error=False, result=json.dumps(message["message"]["content"]))
        else:
            open(sys.argv[1], "w").close()
    elif message["type"] == "control_response":
        say(type="result", subtype="success", is_error=False, result=message["response"]["response"]["behavior"])
"""


def child(what: str = "say") -> list[str]:
    return python(AGENT, what, *ASKS)


@linux_only
@every_backend
def test_one_prompt_has_its_result_and_the_process_has_ended(backend: Backend) -> None:
    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            for prompt in "hello", UserMessage.of("hello"):
                result = await claude_wire.ask(prompt, child())
                assert result.result == '"hello"'
            result = await claude_wire.ask([TextBlock(text="hello")], child())
            assert result.result == '[{"type": "text", "text": "hello"}]'

    with nothing_left():
        backend.run(main)


@every_backend
async def test_callbacks_answer_as_in_a_session() -> None:
    asked: list[str] = []

    def deny(request: CanUseToolRequest) -> PermissionResult:
        asked.append(request.input["text"])
        return request.deny("no")

    with anyio.fail_after(DEADLINE):
        result = await claude_wire.ask("hello", child("ask"), can_use_tool=deny)
    assert (result.result, asked) == ("deny", ["hello"])


@linux_only
@every_backend
def test_a_turn_that_fails_raises_and_leaves_no_process(backend: Backend) -> None:
    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            with pytest.raises(MaxTurnsError) as failed:
                await claude_wire.ask("hello", child("max"))
            assert failed.value.result.subtype == "error_max_turns"
            with pytest.raises((SessionEndedError, ProcessError)):
                await claude_wire.ask("hello", child("end"))

    with nothing_left():
        backend.run(main)


@linux_only
@every_backend
def test_cancelling_it_ends_the_process(backend: Backend, tmp_path: Any) -> None:
    begun = tmp_path / "begun"

    async def main() -> None:
        with anyio.fail_after(DEADLINE):
            async with anyio.create_task_group() as group:
                group.start_soon(claude_wire.ask, "hello", child(str(begun)))
                while not begun.exists():
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()

    with nothing_left():
        backend.run(main)


async def test_a_wrong_prompt_is_refused_before_anything_runs() -> None:
    with pytest.raises(TypeError, match="a prompt is text"):
        await claude_wire.ask(5, ["/nosuch/program"])


def test_its_keywords_are_those_of_open_session() -> None:
    keywords = [
        name
        for name, parameter in inspect.signature(open_session).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    assert sorted(SessionArguments.__annotations__) == sorted(keywords)


@every_backend
async def test_a_success_without_structured_output_raises_where_a_schema_was_given() -> None:
    asked: list[Callable[[], Awaitable[object]]] = [
        lambda: claude_wire.ask("x", [*child(), "--json-schema", "{}"]),
        lambda: claude_wire.ask("x", child(), initialize=InitializeRequest(jsonSchema={"type": "object"})),
    ]
    with anyio.fail_after(DEADLINE):
        for ask in asked:
            with pytest.raises(StructuredOutputError, match="no structured_output") as caught:
                await ask()
            assert caught.value.result.result == '"x"'


@every_backend
def test_a_session_that_is_gone_raises_before_a_process_is_started(backend: Backend, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/usr/bin/env node_is_missing\n")
    program.chmod(0o755)
    session = "0e5c1a54-6a5c-4a6c-9a54-0d3c2a1b0f9e"
    options = ClaudeOptions(cli_path=program, resume=session)
    projects = tmp_path / backend.name / "projects"

    async def main() -> None:
        env = {"CLAUDE_CONFIG_DIR": str(projects.parent)}
        for make in (lambda: None, lambda: projects.mkdir(parents=True)):
            make()
            with pytest.raises(SessionNotFoundError, match=r"does not exist in .*projects.*No conversation") as caught:
                await claude_wire.ask("x", options, env=env)
            assert caught.value.folder == str(projects)
        # If the session has a file in the folder of any working directory, the library starts the CLI and lets it
        # decide.
        (projects / "-elsewhere").mkdir()
        (projects / "-elsewhere" / f"{session}.jsonl").touch()
        with pytest.raises((ProcessError, ProcessInputError), match="127"):
            await claude_wire.ask("x", options, env={**env, "PATH": "/usr/bin:/bin"})

    backend.run(main)
