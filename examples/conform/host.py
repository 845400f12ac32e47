"""Code that the Python hosts share: read the task from ``claude-wire conform``, and print lines as it expects them."""

import json
import os

import anyio

TASK = json.loads(os.environ["CLAUDE_WIRE_CONFORM_TASK"])

#: Options that have the same names in both libraries.
OPTIONS = {
    "cli_path": os.environ["CLAUDE_WIRE_CONFORM_CLI"],
    "include_partial_messages": "partial" in TASK,
    "resume": TASK.get("resume"),
}

#: Types of events and deltas, and subtypes of system messages, that a host knows.
KNOWN = {
    *("message_start", "message_delta", "message_stop"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
    *("text_delta", "thinking_delta", "signature_delta", "input_json_delta"),
    *("session_state_changed", "task_started", "task_notification"),
}

#: The task's acts that remain to be done.
left = list(TASK["acts"])
printed = set()


def show(kind, **line):
    """Print a line."""
    print(json.dumps({"type": kind, **line}), flush=True)
    printed.add(kind)


def show_keys(kind, keys, thing):
    """Print a line with the given attributes of an object."""
    show(kind, **{key: getattr(thing, key) for key in keys.split()})


def show_unknown(name, before=""):
    """Print the name of a type or subtype that the host does not know."""
    if name not in KNOWN:
        show("unknown", name=before + name)


def show_event(event):
    """Print the text of an API event that is a text delta, or the type of an unknown event."""
    delta = event.get("delta", {})
    if delta.get("type") == "text_delta":
        show("delta", text=delta["text"])
    else:
        show_unknown(delta.get("type", event["type"]))


def permission(name, given):
    """Return the task's answer to a permission request, as it is on the wire."""
    show("permission", tool_name=name, input=given)
    return TASK["permission"]


def hook_output(event):
    """Return the task's answer to a hook."""
    show("hook", hook_event_name=event)
    return TASK["hooks"][event]


def calculate(name, given):
    """Run a tool of the MCP server ``calc``. Return its text, or raise ValueError."""
    show("mcp", name=name, arguments=given)
    if name == "fail":
        raise ValueError("out of order")
    return str(given["a"] + given["b"])


async def prompts(interrupt):
    """Do the task's acts: yield each prompt when it must be sent, and call ``interrupt``."""
    while left:
        act = left[0]
        if "send" in act:
            yield act["send"]
        elif "interrupt" in act:
            await interrupt()
        while "until" in act and act["until"] not in printed:
            await anyio.sleep(0.01)
        del left[0]


async def do(query, interrupt):
    """Do the task's acts with a library's functions for prompts and interrupts."""
    async for text in prompts(interrupt):
        await query(text)
