"""What the hosts in Python share: the task that ``claude-wire conform`` has set, and the lines that they print."""

import json
import os

import anyio

TASK = json.loads(os.environ["CLAUDE_WIRE_CONFORM_TASK"])

#: Options that have the same names everywhere.
OPTIONS = {
    "cli_path": os.environ["CLAUDE_WIRE_CONFORM_CLI"],
    "include_partial_messages": "partial" in TASK,
    "resume": TASK.get("resume"),
}

#: Types of events and deltas, and subtypes of system messages, that a host has seen before.
KNOWN = {
    *("message_start", "message_delta", "message_stop"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
    *("text_delta", "thinking_delta", "signature_delta", "input_json_delta"),
    *("session_state_changed", "task_started", "task_notification"),
}

#: What the task says that is not done yet.
left = list(TASK["acts"])
printed = set()


def show(kind, **line):
    """Print a line."""
    print(json.dumps({"type": kind, **line}), flush=True)
    printed.add(kind)


def show_keys(kind, keys, thing):
    """Print a line of some attributes."""
    show(kind, **{key: getattr(thing, key) for key in keys.split()})


def show_unknown(name, before=""):
    """Print the type of something, unless it is known."""
    if name not in KNOWN:
        show("unknown", name=before + name)


def show_event(event):
    """Print an event of the API, a dict: the text of a delta, or what is unknown."""
    delta = event.get("delta", {})
    if delta.get("type") == "text_delta":
        show("delta", text=delta["text"])
    else:
        show_unknown(delta.get("type", event["type"]))


def permission(name, given):
    """The answer of the task to a question for permission, in the form of the wire."""
    show("permission", tool_name=name, input=given)
    return TASK["permission"]


def hook_output(event):
    """The answer of the task to a hook."""
    show("hook", hook_event_name=event)
    return TASK["hooks"][event]


def calculate(name, given):
    """Run a tool of the MCP server calc: returns a text, or raises."""
    show("mcp", name=name, arguments=given)
    if name == "fail":
        raise ValueError("out of order")
    return str(given["a"] + given["b"])


async def prompts(interrupt):
    """Do what the task says: yield each prompt when it is to be sent, and call `interrupt`."""
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
    """Do what the task says, by two functions of a library."""
    async for text in prompts(interrupt):
        await query(text)
