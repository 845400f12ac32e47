"""The conversations of sdk_callbacks.py, with permission questions and hooks, held through `open_session`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from claude_wire import CanUseToolRequest, HookCallbackRequest, HookMatcher, HookOutput
from claude_wire.messages import (
    AddRules,
    PermissionResult,
    PermissionRuleValue,
    PreToolUseHookInput,
    PreToolUseHookSpecificOutput,
)
from scripts import HOOK_SECONDS
from through_session import Talk

__all__ = ["CONVERSATIONS"]


async def _turn(talk: Talk, script: str, **more: Any) -> None:
    async with talk.session(**more) as session:
        await talk.query(session, f"[[{script}]]")
        await talk.turn(session)


async def permission_kept(talk: Talk) -> None:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.input, request.tool_use_id))
        [rule] = [one for one in request.permission_suggestions or () if isinstance(one, AddRules)]
        wider = AddRules([PermissionRuleValue("Bash", "touch *")], rule.behavior, "session")
        return request.allow(updated_permissions=[wider])

    await _turn(talk, "permission_kept", host={"can_use_tool": ask})


async def permission_open(talk: Talk) -> None:
    """Interrupt the turn while a permission question is open."""
    asked = anyio.Event()

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.input, request.tool_use_id))
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            talk.calls.append("withdrawn")

    async with talk.session(host={"can_use_tool": ask}) as session:
        await talk.query(session, "[[permission_open]]")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.turn, session)
            await asked.wait()
            await session.interrupt()
        talk.calls.append("over")


async def permission_interrupts(talk: Talk) -> None:
    """Deny a tool call with an answer that also interrupts the turn."""

    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.input, request.tool_use_id))
        return request.deny("Stop it", interrupt=True)

    await _turn(talk, "permission_open", host={"can_use_tool": ask})


async def permission_raises(talk: Talk) -> None:
    async def ask(request: CanUseToolRequest) -> PermissionResult:
        talk.calls.append((request.tool_name, request.input, request.tool_use_id))
        raise RuntimeError("Nobody is there")

    await _turn(talk, "permission_raises", host={"can_use_tool": ask})


async def hooks_decide(talk: Talk) -> None:
    async def decide(request: HookCallbackRequest) -> HookOutput:
        given = request.input
        assert isinstance(given, PreToolUseHookInput)
        command = given.tool_input["command"]
        talk.calls.append((command, request.tool_use_id))
        output = PreToolUseHookSpecificOutput(permissionDecision="allow")
        if "forbidden" in command:
            output = PreToolUseHookSpecificOutput(permissionDecision="deny", permissionDecisionReason="A hook said no")
        elif "changed" in command:
            changed = {**given.tool_input, "command": "touch instead"}
            output = PreToolUseHookSpecificOutput(permissionDecision="allow", updatedInput=changed)
        elif "slow" in command:
            try:
                await anyio.sleep_forever()
            finally:
                talk.calls.append("withdrawn")
        elif "raised" in command:
            raise RuntimeError("A hook broke")
        return HookOutput(hookSpecificOutput=output)

    async def guard(request: HookCallbackRequest) -> HookOutput:
        given = request.input
        assert isinstance(given, PreToolUseHookInput)
        talk.calls.append((given.tool_name, request.tool_use_id))
        raise RuntimeError("The guard broke")

    matchers = [
        HookMatcher(decide, matcher="Bash", timeout=HOOK_SECONDS),
        HookMatcher(guard, matcher="Write", on_failure="block"),
    ]
    await _turn(talk, "hooks_decide", host={"hooks": {"PreToolUse": matchers}}, include_hook_events=True)


CONVERSATIONS: dict[str, Callable[[Talk], Awaitable[None]]] = {
    conversation.__name__: conversation
    for conversation in (permission_kept, permission_open, permission_interrupts, permission_raises, hooks_decide)
}
