"""What one side of the control protocol asks the other, and the answers, as lines to show.

Knows messages; not where the lines go, nor who answers. All text is safe to print.
"""

from __future__ import annotations

from typing import Any, cast

from claude_wire import messages
from claude_wire.errors import PayloadError
from claude_wire.messages import Unknown
from claude_wire.support import one_line
from claude_wire_kit.events.names import tag
from claude_wire_kit.events.permissions import suggestion
from claude_wire_kit.terminal.calls import call_name
from claude_wire_kit.terminal.excerpts import detail, excerpt, fields, plain_json
from claude_wire_kit.terminal.notices import ERROR, WARNING, Notice

__all__ = ["answer", "permission_question", "permission_result", "prompt_of", "question", "request"]

ALLOWED, DENIED = "green", "red"

#: Messages of MCP servers that are the same in every session.
HANDSHAKE = ("initialize", "notifications/initialized", "tools/list", "resources/list", "prompts/list", "ping")


def permission_question(asked: messages.CanUseToolRequest) -> Notice:
    """The question whether a tool may be used, without the tool's input."""
    name = call_name(asked.display_name or asked.tool_name)
    lines = [f"? {detail(asked.title)}" if asked.title else f"? may {name} run?"]
    if asked.description:
        lines.append(f"    {detail(asked.description)}")
    if asked.decision_reason:
        lines.append(f"    because: {detail(asked.decision_reason)}")
    if asked.blocked_path:
        lines.append(f"    path: {detail(asked.blocked_path)}")
    return Notice("\n".join(lines), WARNING)


def question(asked: messages.ControlRequestPayload) -> Notice | None:
    """A request of the CLI, or None if it says nothing to a reader."""
    match asked:
        case messages.CanUseToolRequest():
            return permission_question(asked)
        case messages.HookCallbackRequest(input=given):
            if isinstance(given, messages.UserPromptSubmitHookInput):
                return None  # shown as the prompt that it is about
            event = tag(given)
            tool = getattr(given, "tool_name", None)
            return Notice(f"# hook {one_line(event)}{f': {one_line(tool)}' if isinstance(tool, str) else ''}")
        case messages.McpMessageRequest(server_name=server, message=message):
            method = message.get("method")
            if not isinstance(method, str) or method in HANDSHAKE:
                return None
            called: Any = message.get("params")
            tool = cast("dict[str, Any]", called).get("name") if isinstance(called, dict) else None
            return Notice(
                f"# MCP {one_line(server)}: {one_line(method)}{f' {one_line(tool)}' if isinstance(tool, str) else ''}"
            )
        case messages.ElicitationRequest():
            where = f"\n    {detail(asked.url)}" if asked.url else ""
            return Notice(f"? {one_line(asked.mcp_server_name)} asks: {detail(asked.message)}{where}", WARNING)
        case _:
            return request(asked, "?")


def request(asked: messages.ControlRequestPayload, mark: str) -> Notice | None:
    """A request by its name and its fields; that of ``initialize`` is not shown."""
    if isinstance(asked, messages.InitializeRequest):
        return None
    if isinstance(asked, messages.RequestUserDialogRequest):
        return Notice(f"{mark} dialog {one_line(asked.dialog_kind)}", WARNING)
    plain = dict(asked) if isinstance(asked, Unknown) else asked.to_dict()
    name = plain.pop("subtype", None)
    first, *rest = fields(plain) if plain else [""]
    return Notice("\n    ".join([f"{mark} {one_line(str(name))} {first}".rstrip(), *rest]))


def prompt_of(asked: messages.ControlRequestPayload) -> str | None:
    """The prompt that a hook is told of; the CLI does not repeat the prompts that it reads."""
    if isinstance(asked, messages.HookCallbackRequest) and isinstance(asked.input, messages.UserPromptSubmitHookInput):
        return asked.input.prompt
    return None


def answer(asked: str | None, response: messages.ControlResponse) -> Notice | None:
    """The host's answer to a request of the CLI of that subtype, or None if it says nothing to a reader."""
    if isinstance(response.response, messages.ControlError):
        return Notice(f"! the host refuses: {detail(response.response.error)}", ERROR)
    payload = response.payload
    if asked == "can_use_tool":
        try:
            return permission_result(response.payload_as(messages.CanUseToolRequest))
        except PayloadError:
            return Notice("! neither allowed nor denied", ERROR)
    if asked == "mcp_message" or payload in ({}, {"continue": True}):
        return None
    if asked == "elicitation":
        return Notice(
            f"? {one_line(str(payload.get('action')))}", ALLOWED if payload.get("action") == "accept" else DENIED
        )
    if asked == "hook_callback":
        return Notice("\n    ".join(["# the hook answers", *excerpt(plain_json(payload))]))
    return None


def permission_result(result: messages.PermissionResult) -> Notice:
    """The answer to a question for permission."""
    match result:
        case messages.PermissionResultAllow(updatedPermissions=granted):
            return Notice("\n    and ".join(["? allowed", *map(suggestion, granted or ())]), ALLOWED)
        case messages.PermissionResultDeny(message=message):
            said = f": {detail(message)}" if message else ""
            return Notice(f"? denied{said}", DENIED)
        case _:
            return Notice("! neither allowed nor denied", ERROR)
