"""Hooks that the host calls itself, because the agent's dialect does not support hooks."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import Event

from claude_wire.codec.encoder import encode
from claude_wire.control.matchers import fits_tool
from claude_wire.dialects.classic import CLASSIC
from claude_wire.errors import DialectError, EncodeError, PromptError
from claude_wire.messages import (
    AssistantMessage,
    CanUseToolRequest,
    HookCallbackRequest,
    HookOutput,
    PermissionResultAllow,
    PermissionResultDeny,
    PostToolUseHookInput,
    PreToolUseHookInput,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    UserPromptSubmitHookInput,
)
from claude_wire.support.text import one_line

if TYPE_CHECKING:
    from claude_wire.dialects import Dialect
    from claude_wire.session.callbacks import Callbacks
    from claude_wire.streams.tasks import Tasks

#: The hook events that a host can detect. The host calls their hooks itself.
HOST_EVENTS = ("PreToolUse", "PostToolUse", "UserPromptSubmit")
#: Maximum number of tool uses without a result, and their maximum size in bytes of JSON. Above either limit, the oldest
#: tool use is dropped.
MAX_USES = 1024
MAX_USE_BYTES = 16 * 1024 * 1024

_log = logging.getLogger("claude_wire")


def host_hooks(dialect: Dialect, callbacks: Callbacks, tasks: Tasks) -> HostHooks | None:
    """Return the hooks that the host calls itself, or None. In CLASSIC, also let ``can_use_tool`` return bools.

    Raises:
        DialectError: there are hooks for an event that the host cannot detect.
    """
    callbacks.takes_booleans = dialect is CLASSIC
    if not (dialect.host_hooks and callbacks.matchers):
        return None
    unknown = [event for event in callbacks.matchers if event not in HOST_EVENTS]
    if unknown:
        problem = f"has the hooks {', '.join(HOST_EVENTS)} only: {unknown[0]} would never be called"
        raise DialectError(dialect.name, problem)
    hooks = HostHooks(callbacks, tasks)
    callbacks.before_use = hooks.before_use
    return hooks


@dataclass(eq=False)
class Use:
    """A tool use whose PreToolUse hooks were called. Once ``done`` is set, ``decided`` is what the hooks decided."""

    #: The tool use's id; None for a permission request without an id.
    call: str | None
    block: ToolUseBlock
    size: int
    decided: PermissionResultAllow | PermissionResultDeny | None = None
    done: Event = field(default_factory=Event)
    #: True after the agent asked for permission.
    asked: bool = False
    #: True after the agent sent the message with this tool use.
    seen: bool = False


class HostHooks:
    """Calls hooks in the host, for a dialect without hooks: before prompts, and before and after tool uses.

    A tool use appears in a message and in a permission request, in either order. Its hooks are called only once, when
    the first of the two arrives. Only the answer to the permission request can keep a tool from running.
    """

    def __init__(self, callbacks: Callbacks, tasks: Tasks) -> None:
        self._callbacks = callbacks
        self._tasks = tasks
        self._session = ""
        # Tool uses that have no result yet, oldest first.
        self._uses: list[Use] = []
        self._size = 0

    async def before_prompt(self, prompt: UserMessage) -> None:
        """Call the UserPromptSubmit hooks. The caller then sends the prompt.

        Raises:
            PromptError: a hook blocked the prompt.
        """
        hook_input = UserPromptSubmitHookInput(prompt=prompt.text, source="sdk", **self._common())
        for output in await self._call("UserPromptSubmit", hook_input):
            if _blocks(output):
                raise PromptError(prompt.uuid, f"a hook has blocked the prompt: {_reason(output)}")

    async def before_use(self, request: CanUseToolRequest) -> PermissionResultAllow | PermissionResultDeny | None:
        """Return what the PreToolUse hooks decided about a permission request, or None if they decided nothing."""
        call, block = request.tool_use_id, ToolUseBlock("", request.tool_name, request.input)
        use = next((one for one in self._uses if not one.asked and _is_same(one, call, block)), None)
        if use is None:
            use = self._add(call, block)
            use.asked = True
            await self._decide(use)
        use.asked = True
        await use.done.wait()
        return use.decided

    def see(self, messages: list[Any]) -> None:
        """Find tool uses and tool results in the agent's messages, and call their hooks."""
        for message in messages:
            self._session = getattr(message, "session_id", None) or self._session
            if isinstance(message, AssistantMessage):
                for block in message.message.content:
                    if isinstance(block, ToolUseBlock):
                        self._saw_use(block)
            elif isinstance(message, UserMessage):
                for result in message.tool_results:
                    self._saw_result(result)

    def _saw_use(self, block: ToolUseBlock) -> None:
        for use in self._uses:
            if not use.seen and _is_same(use, block.id, block):
                use.call, use.seen = block.id, True
                return
        use = self._add(block.id, block)
        use.seen = True
        self._tasks.start(lambda: self._decide(use), "claude-wire-hook")

    def _saw_result(self, result: ToolResultBlock) -> None:
        use = next((one for one in self._uses if one.call == result.tool_use_id), None)
        if use is None:
            return
        self._drop(use)
        if use.asked and isinstance(use.decided, PermissionResultDeny):
            return  # the tool did not run
        self._tasks.start(lambda: self._after(use, result), "claude-wire-hook")

    def _add(self, call: str | None, block: ToolUseBlock) -> Use:
        use = Use(call, block, _size(block))
        self._uses.append(use)
        self._size += use.size
        while len(self._uses) > MAX_USES or (self._size > MAX_USE_BYTES and len(self._uses) > 1):
            self._drop(self._uses[0])
        return use

    def _drop(self, use: Use) -> None:
        self._uses.remove(use)
        self._size -= use.size

    async def _decide(self, use: Use) -> None:
        try:
            name, given = use.block.name, use.block.input
            hook_input = PreToolUseHookInput(tool_name=name, tool_input=given, tool_use_id=use.call, **self._common())
            for output in await self._call("PreToolUse", hook_input, name, use.call):
                specific = output.hookSpecificOutput
                decision = getattr(specific, "permissionDecision", None)
                reason = getattr(specific, "permissionDecisionReason", None) or _reason(output)
                if _blocks(output) or decision == "deny":
                    use.decided = PermissionResultDeny(message=reason)
                    break
                if decision == "allow" or output.decision == "approve":
                    use.decided = PermissionResultAllow(updatedInput=getattr(specific, "updatedInput", None))
        finally:
            use.done.set()

    async def _after(self, use: Use, result: ToolResultBlock) -> None:
        await use.done.wait()
        name = use.block.name
        if isinstance(use.decided, PermissionResultDeny):
            _log.warning("a hook denied %s, but the tool ran: the agent did not ask for permission", one_line(name))
        hook_input = PostToolUseHookInput(
            tool_name=name,
            tool_input=use.block.input,
            tool_response=result.to_dict().get("content"),
            tool_use_id=use.call,
            **self._common(),
        )
        for output in await self._call("PostToolUse", hook_input, name, use.call):
            if output != HookOutput():
                _log.warning("the output of a hook after %s has no effect in this dialect", one_line(name))

    def _common(self) -> dict[str, Any]:
        return {"session_id": self._session, "transcript_path": "", "cwd": ""}

    async def _call(
        self, event: str, hook_input: Any, name: str | None = None, use: str | None = None
    ) -> list[HookOutput]:
        """Call an event's hooks that match the tool ``name``, one after the other, and return their outputs."""
        outputs: list[HookOutput] = []
        for one in self._callbacks.matchers.get(event, ()):
            if name is None or fits_tool(one.matcher, [name]):
                for id in one.hookCallbackIds:
                    request = HookCallbackRequest(callback_id=id, input=hook_input, tool_use_id=use)
                    output = await self._callbacks.call_hook(request)
                    if output is None and one.onFailure == "block":
                        output = HookOutput(decision="block", reason="the hook failed")
                    outputs += [] if output is None else [output]
        return outputs


def _is_same(use: Use, call: str | None, block: ToolUseBlock) -> bool:
    if use.call is not None and call is not None:
        return use.call == call
    return (use.block.name, use.block.input) == (block.name, block.input)


def _blocks(output: HookOutput) -> bool:
    return output.decision == "block" or output.continue_ is False


def _reason(output: HookOutput) -> str:
    return output.reason or output.stopReason or "a hook has blocked it"


def _size(block: ToolUseBlock) -> int:
    try:
        return len(encode(block))
    except EncodeError:  # the decoder allows deeper nesting than the encoder
        return MAX_USE_BYTES
