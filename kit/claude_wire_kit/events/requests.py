"""Describe control requests and their answers as notices. Permission questions have an event class instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claude_wire import messages as m
from claude_wire.errors import PayloadError
from claude_wire.support import fields_of, one_line
from claude_wire_kit.events.content import plain_json
from claude_wire_kit.events.events import Notice
from claude_wire_kit.events.names import tag
from claude_wire_kit.events.permissions import suggestion

#: MCP methods that every session calls. They get no notice.
HANDSHAKE = ("initialize", "notifications/initialized", "tools/list", "resources/list", "prompts/list", "ping")


def describe_question(asked: m.ControlRequestPayload) -> Notice | None:
    """Return the notice for a CLI request, or None if it is not shown."""
    match asked:
        case m.HookCallbackRequest(input=m.UserPromptSubmitHookInput()):
            return None  # the bridge shows the prompt instead
        case m.HookCallbackRequest(input=given):
            return Notice(
                kind="hook", text=f"hook {one_line(tag(given))}{_named(': ', getattr(given, 'tool_name', None))}"
            )
        case m.McpMessageRequest(server_name=server, message=message):
            method = message.get("method")
            if not isinstance(method, str) or method in HANDSHAKE:
                return None
            tool = _named(" ", fields_of(message.get("params")).get("name"))
            return Notice(kind="hook", text=f"MCP {one_line(server)}: {one_line(method)}{tool}")
        case m.ElicitationRequest():
            text = f"{one_line(asked.mcp_server_name)} asks: {asked.message}"
            return Notice(kind="question", text=text, level="warning", detail=asked.url or None)
        case _:
            return describe_request(asked, "question")


def _named(before: str, name: object) -> str:
    return f"{before}{one_line(name)}" if isinstance(name, str) else ""


def describe_request(asked: m.ControlRequestPayload, kind: Any = "host") -> Notice | None:
    """Return a notice with the request's name and fields, or None for ``initialize``."""
    if isinstance(asked, m.InitializeRequest):
        return None
    if isinstance(asked, m.RequestUserDialogRequest):
        return Notice(kind=kind, text=f"dialog {one_line(asked.dialog_kind)}", level="warning")
    plain = dict(asked) if isinstance(asked, Mapping) else asked.to_dict()
    name = plain.pop("subtype", None)
    return Notice(kind=kind, text=one_line(str(name)), fields=plain or None)


def prompt_in(asked: m.ControlRequestPayload) -> str | None:
    """Return the prompt in a ``UserPromptSubmit`` hook request, or None. It may be the only message with the prompt."""
    if isinstance(asked, m.HookCallbackRequest) and isinstance(asked.input, m.UserPromptSubmitHookInput):
        return asked.input.prompt
    return None


def describe_answer(asked: str | None, response: m.ControlResponse) -> Notice | None:
    """Return the notice for the host's answer to a request of this subtype, or None if it is not shown."""
    if isinstance(response.response, m.ControlError):
        return Notice(kind="error", text=f"the host refuses: {response.response.error}")
    payload = response.payload
    if asked == "can_use_tool":
        try:
            return describe_decision(response.payload_as(m.CanUseToolRequest))
        except PayloadError:
            return describe_decision(None)
    if payload in ({}, {"continue": True}):
        return None
    if asked == "elicitation":
        action = payload.get("action")
        return Notice(kind="allowed" if action == "accept" else "denied", text=one_line(str(action)))
    if asked == "hook_callback":
        return Notice(kind="hook", text="the hook answers", detail=plain_json(payload))
    return None


def describe_decision(result: m.PermissionResult | None) -> Notice:
    """Return the notice for the answer to a permission question."""
    match result:
        case m.PermissionResultAllow(updatedPermissions=granted):
            more = "\n".join(f"and {suggestion(update)}" for update in granted or ())
            return Notice(kind="allowed", text="allowed", detail=more or None)
        case m.PermissionResultDeny(message=message):
            return Notice(kind="denied", text=f"denied: {message}" if message else "denied")
        case _:
            return Notice(kind="error", text="neither allowed nor denied")
