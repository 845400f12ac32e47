"""Conversations through claude-agent-sdk in which the host answers permission questions and runs hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from claude_agent_sdk import HookMatcher, PermissionResultAllow, PermissionResultDeny

from scripts import HOOK_SECONDS
from through_sdk import SDK

__all__ = ["CONVERSATIONS"]


async def permission_kept(sdk: SDK) -> None:
    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, arguments, context.tool_use_id))
        rules = [one for one in context.suggestions if one.type == "addRules"]
        for rule in rules:
            rule.destination = "session"
            rule.rules[0].rule_content = "touch *"
        return PermissionResultAllow(updated_permissions=rules)

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[permission_kept]]")
        await sdk.turn(client)


async def permission_open(sdk: SDK) -> None:
    """Interrupt the turn while a permission question is open."""
    asked = anyio.Event()

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, arguments, context.tool_use_id))
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            sdk.seen.calls.append("withdrawn")

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[permission_open]]")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sdk.turn, client)
            await asked.wait()
            await client.interrupt()
        sdk.seen.calls.append("over")


async def permission_interrupts(sdk: SDK) -> None:
    """Deny a tool call with an answer that also interrupts the turn."""

    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, arguments, context.tool_use_id))
        return PermissionResultDeny(message="Stop it", interrupt=True)

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[permission_open]]")
        await sdk.turn(client)


async def permission_raises(sdk: SDK) -> None:
    async def ask(name: str, arguments: dict[str, Any], context: Any) -> Any:
        sdk.seen.calls.append((name, arguments, context.tool_use_id))
        raise RuntimeError("Nobody is there")

    async with sdk.client(can_use_tool=ask) as client:
        await client.query("[[permission_raises]]")
        await sdk.turn(client)


async def hooks_decide(sdk: SDK) -> None:
    async def decide(given: Any, tool_use_id: str | None, context: Any) -> Any:
        command = given["tool_input"]["command"]
        sdk.seen.calls.append((command, tool_use_id))
        output: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        if "forbidden" in command:
            output = {**output, "permissionDecision": "deny", "permissionDecisionReason": "A hook said no"}
        elif "changed" in command:
            output["updatedInput"] = {**given["tool_input"], "command": "touch instead"}
        elif "slow" in command:
            try:
                await anyio.sleep_forever()
            finally:
                sdk.seen.calls.append("withdrawn")
        elif "raised" in command:
            raise RuntimeError("A hook broke")
        return {"hookSpecificOutput": output}

    async def guard(given: Any, tool_use_id: str | None, context: Any) -> Any:
        sdk.seen.calls.append((given["tool_name"], tool_use_id))
        raise RuntimeError("The guard broke")

    matchers = [
        HookMatcher(matcher="Bash", hooks=[decide], timeout=HOOK_SECONDS),
        HookMatcher(matcher="Write", hooks=[guard], on_failure="block"),
    ]
    async with sdk.client(hooks={"PreToolUse": matchers}, include_hook_events=True) as client:
        await client.query("[[hooks_decide]]")
        await sdk.turn(client)


CONVERSATIONS: dict[str, Callable[[SDK], Awaitable[None]]] = {
    conversation.__name__: conversation
    for conversation in (permission_kept, permission_open, permission_interrupts, permission_raises, hooks_decide)
}
