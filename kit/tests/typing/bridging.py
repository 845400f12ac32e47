"""What a type checker makes of a front end's events. Checked by test_typing.py, never run."""

from collections.abc import Awaitable
from typing import Any, Literal

from typing_extensions import assert_type

from claude_wire import ControlResponse, InvalidLine, Message, Session, encode
from claude_wire.messages import PermissionReply
from claude_wire_kit.events import (
    PROGRESS_RULES,
    Bridge,
    ClaudeResponse,
    Notice,
    NoticeKind,
    Operation,
    PermissionCancelled,
    PermissionRequest,
    ProgressUpdate,
    Questions,
    Step,
    SubagentProgress,
    TurnComplete,
    UiEvent,
    UserPrompt,
    event_schema,
)


def project_of(conversation: str) -> str | None:
    return conversation or None


def percent(text: str) -> list[Step]:
    return [Step(0, text, 1, 2)]


def what_goes_in(message: Message | InvalidLine) -> None:
    ui = Bridge(project=project_of, progress=[*PROGRESS_RULES, percent], partial=True, prompts=True)
    assert_type(ui.add(message), list[UiEvent])
    assert_type(ui.end(), list[UiEvent])
    assert_type(ui.answer("r1", allow=True, option=1), ControlResponse | PermissionReply)
    assert_type(event_schema(), dict[str, Any])
    ui.add({})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ui.answer("r1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def what_comes_out(event: UiEvent) -> str:
    assert_type(event.to_json(), str)
    assert_type(event.to_dict(), dict[str, Any])
    assert_type(encode(event), bytes)
    assert_type(event.conversationId, str | None)
    match event:
        case UserPrompt(content=prompt, id=uuid, attachments=attachments):
            assert_type((uuid, attachments), tuple[str | None, int | None])
            return prompt
        case ClaudeResponse(content=content, partial=partial):
            assert_type(partial, bool | None)
            return content
        case ProgressUpdate(currentStep=step, completedSteps=completed, percentage=percentage):
            assert_type((completed, percentage), tuple[int, float])
            return step
        case Operation(state=state, path=path):
            assert_type(state, Literal["started", "succeeded", "failed", "denied", "interrupted"])
            assert_type(path, str | None)
            return event.title
        case SubagentProgress(status=status):
            assert_type(status, Literal["started", "running", "completed", "failed", "stopped"])
            return event.name
        case PermissionRequest(requestId=request_id, options=options):
            assert_type(request_id, str | float)
            return options[0]
        case PermissionCancelled(reason=reason):
            assert_type(reason, Literal["withdrawn", "answered", "dropped"])
            return reason
        case TurnComplete(ok=ok, costUsd=cost):
            assert_type((ok, cost), tuple[bool, float | None])
            return event.error or ""
        case Notice(kind=kind):
            assert_type(kind, NoticeKind)
            return event.text
        case _:
            return event.conversationId or ""


def what_asks(ui: Bridge, session: type[Session]) -> None:
    def send(event: UiEvent) -> None:
        print(event)

    def later(event: UiEvent) -> Awaitable[None]:
        raise NotImplementedError

    session(..., ..., can_use_tool=Questions(ui, send).ask)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Questions(ui, later)
    Questions(ui, print)
    Questions(ui, ui.add)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
