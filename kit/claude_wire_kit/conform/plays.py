"""What each scenario's agent does for a prompt: one function for each scenario.

Some agents repeat in their text what the host sent. So a rule about the printed text also checks the host's messages.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import anyio
from anyio import to_thread

from claude_wire import encode
from claude_wire.agent import Turn
from claude_wire.messages import (
    ResultErrorDuringExecution,
    ResultErrorMaxStructuredOutputRetries,
    ResultMessage,
    ResultSuccess,
    Usage,
)
from claude_wire.support import fields_of
from claude_wire_kit.conform.wire import Sent, Wire

Play = Callable[[Turn, Wire], Awaitable[Any]]

#: The pieces of text that the agent of ``many_deltas`` says.
MANY = [f"{number} " for number in range(10_000)]
#: The number of characters in the text of ``long_line``, and the number of bytes that ``stderr_flood`` writes.
LONG = 20 * 1024 * 1024
FLOOD = 8 * 1024 * 1024
#: How many seconds the agent of ``stall`` is silent.
SILENCE = 3.0
#: How many seconds the agent of ``will_not_end`` keeps running after the end of its input.
LINGER = 14.0


# --- what agents say and do


async def prompt(turn: Turn, wire: Wire) -> None:
    await turn.say(f"You said: {turn.text}")


async def deltas(turn: Turn, wire: Wire) -> None:
    for piece in ("One ", "two ", "three ", "four ", "five."):
        await turn.stream(piece)


async def thinking(turn: Turn, wire: Wire) -> None:
    await turn.thinking("Forty-two, I think.", signature="c2lnbmF0dXJl")
    await turn.say("42")


async def parallel_tools(turn: Turn, wire: Wire) -> None:
    first = await turn.use_tool("Read", {"file_path": "a.txt"})
    second = await turn.use_tool("Read", {"file_path": "b.txt"})
    await turn.tool_result(second, "content of b")
    await turn.tool_result(first, "content of a")
    await turn.say("Both are read.")


async def bash(turn: Turn, wire: Wire) -> None:
    def run(given: dict[str, Any]) -> str:
        return f"ran: {given['command']}"

    outcome = await turn.run_tool("Bash", {"command": "touch a.txt"}, run)
    await turn.say("It ran." if outcome.ran else "It did not run.")


async def hook_context(turn: Turn, wire: Wire) -> None:
    await turn.say(f"The hook told me: {' '.join(turn.hook_context)}")


async def mcp_tool(turn: Turn, wire: Wire) -> None:
    for tool, given in (("add", {"a": 2, "b": 3}), ("fail", {})):
        use = await turn.use_tool(f"mcp__calc__{tool}", given)
        try:
            result = await turn.call_mcp("calc", tool, given)
        except KeyError:
            await turn.tool_result(use, "The host has no MCP server calc.", True)
        else:
            await turn.tool_result(use, result.content, result.is_error)
    await turn.say("Calculated.")


async def interrupt_text(turn: Turn, wire: Wire) -> None:
    if turn.text == "Again.":
        await turn.say("Still here.")
        return
    await turn.stream("Counting...")
    await anyio.sleep_forever()


async def interrupt_tool(turn: Turn, wire: Wire) -> None:
    if turn.text == "Again.":
        await turn.say("Still here.")
        return
    await turn.use_tool("Bash", {"command": "sleep 1000"})
    await anyio.sleep_forever()


async def busy_prompts(turn: Turn, wire: Wire) -> None:
    if turn.text != "First.":
        await turn.say(f"Then you said: {turn.text}")
        return
    await turn.say("Working.")
    came = await wire.until(is_prompt, count=3)
    await turn.say("Both came meanwhile." if came else "Nothing came meanwhile.")


async def background(turn: Turn, wire: Wire) -> None:
    """Run two turns as the CLI does: the state becomes "idle" only after the second one, so they are one run."""
    ids = {"session_id": turn.session.id}
    use = await turn.use_tool(
        "Agent", {"description": "look around", "prompt": "Look around.", "run_in_background": True}
    )
    task = {"task_id": "a1", "tool_use_id": use.id, **ids}
    about = {"task_type": "local_agent", "subagent_type": "general-purpose", "description": "look around"}
    await _system(turn, "task_started", **task, **about, is_backgrounded=True, prompt="Look around.")
    await turn.tool_result(use, "Async agent launched successfully.")
    await turn.say("It looks around.")
    await turn.emit(_result(turn, "It looks around."))
    await anyio.sleep(1)  # a host that wrongly treats this result as the last one ends the input now
    hooked = await turn.hook("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_in_task")
    await _system(turn, "task_notification", **task, status="completed", output_file="", summary="Nothing there.")
    await _system(turn, "init", cwd="/", **ids, tools=[], mcp_servers=[], model="m", permissionMode="default")
    await turn.say(f"The subagent is back. The hook said: {hooked.refusal or 'nothing'}")


def _result(turn: Turn, text: str) -> ResultSuccess:
    """Return a result for a play that sends the result itself. Otherwise the agent sends one when the play returns."""
    return ResultSuccess(
        is_error=False,
        result=text,
        duration_ms=1,
        duration_api_ms=1,
        num_turns=1,
        total_cost_usd=0.0,
        usage=Usage(input_tokens=1, output_tokens=1),
        stop_reason="end_turn",
        user_message_uuids=[turn.uuid] if turn.uuid else [],
        uuid=str(uuid4()),
        session_id=turn.session.id,
    )


async def _system(turn: Turn, subtype: str, **fields: Any) -> None:
    await turn.emit({"type": "system", "subtype": subtype, "uuid": str(uuid4()), **fields})


async def structured(turn: Turn, wire: Wire) -> ResultMessage:
    return ResultSuccess(is_error=False, result='{"words":2}', structured_output={"words": 2})


async def structured_failure(turn: Turn, wire: Wire) -> ResultMessage:
    await turn.say("I cannot.")
    why = "Failed to provide valid structured output after 5 attempts"
    return ResultErrorMaxStructuredOutputRetries(is_error=True, errors=[why])


async def failed_turn(turn: Turn, wire: Wire) -> ResultMessage:
    await turn.say("I begin.")
    return ResultErrorDuringExecution(is_error=True, errors=["the disk is full"])


async def resume_replays(turn: Turn, wire: Wire) -> None:
    await turn.say(f"Session {turn.session.options.resume} goes on.")


async def rate_limit(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    info = {"status": "allowed_warning", "resetsAt": 1795546746, "rateLimitType": "five_hour", "utilization": 0.92}
    event = {"type": "rate_limit_event", "rate_limit_info": info, "uuid": str(uuid4()), "session_id": turn.session.id}
    await turn.emit(event)
    await turn.say("After.")


# --- unknown messages and requests


async def unknown_type(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    await turn.emit({"type": "weather_report", "sky": "clear", "uuid": str(uuid4()), "session_id": turn.session.id})
    await _system(turn, "weather_changed", session_id=turn.session.id, sky="cloudy")
    await turn.say("After.")


async def unknown_block(turn: Turn, wire: Wire) -> None:
    await turn.emit(_assistant(turn, {"type": "hologram", "shape": "cube"}, {"type": "text", "text": "Beside it."}))
    await turn.say("After.")


async def unknown_event(turn: Turn, wire: Wire) -> None:
    def event(**fields: Any) -> dict[str, Any]:
        frame = {"type": "stream_event", "parent_tool_use_id": None, "session_id": turn.session.id}
        return {**frame, "uuid": str(uuid4()), "event": fields}

    await turn.emit(event(type="content_block_shimmer", index=0))
    await turn.stream("One ")
    await turn.stream("two.")
    await turn.emit(event(type="content_block_delta", index=0, delta={"type": "aroma_delta", "aroma": "mint"}))


async def unknown_key(turn: Turn, wire: Wire) -> None:
    message = _assistant(turn, {"type": "text", "text": "Spiced.", "spice": {"name": "cumin"}})
    message["message"] |= {"stop_reason": "tired", "stop_mood": [1, 2]}
    await turn.emit(message | {"weather": None})


def _assistant(turn: Turn, *blocks: dict[str, Any]) -> dict[str, Any]:
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": turn.session.model}
    usage = {"input_tokens": 1, "output_tokens": 1}
    frame = {"type": "assistant", "parent_tool_use_id": None, "session_id": turn.session.id, "uuid": str(uuid4())}
    return {**frame, "message": {**message, "content": list(blocks), "stop_reason": None, "usage": usage}}


async def unknown_request(turn: Turn, wire: Wire) -> None:
    request = {"subtype": "paint_the_wall", "colour": "green"}
    await turn.emit({"type": "control_request", "request_id": UNKNOWN_REQUEST, "request": request})
    answered = await wire.until(lambda line: answers(line) == UNKNOWN_REQUEST)
    await turn.say("Answered." if answered else "Not answered.")


UNKNOWN_REQUEST = "request-that-nobody-knows"


def answers(line: Sent) -> str | None:
    """Return the id of the request that a line from the host answers."""
    return fields_of(line.get("response")).get("request_id")


def is_prompt(line: Sent) -> bool:
    return line.get("type") == "user"


# --- long lines, many lines, and bytes that are not messages


async def long_line(turn: Turn, wire: Wire) -> None:
    await turn.say("x" * LONG)
    await turn.say("After.")


async def many_deltas(turn: Turn, wire: Wire) -> None:
    for piece in MANY:
        await turn.stream(piece)


async def half_emoji(turn: Turn, wire: Wire) -> None:
    for piece in ("Smile: ", "\ud83d", "\ude00", "."):
        await turn.stream(piece)
    await turn.say("Cut: \ud83d")
    await turn.say("After.")


async def noise(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    for line in (b"npm warn: a new version is available\n", b"\n", b"[SandboxDebug] ready\n", b"  \r\n"):
        await wire.put(turn, line)
    await wire.put(
        turn, encode(_assistant(turn, {"type": "text", "text": "With a carriage return."})).rstrip() + b"\r\n"
    )
    await turn.say("After.")


async def not_objects(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    for line in (b"null\n", b"[1, 2]\n", b'"text"\n', b"3\n"):
        await wire.put(turn, line)
    await turn.say("After.")


async def garbage(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    await wire.put(turn, b'{"type":"assistant","message":{"content":[{"type":"te\n')
    await turn.say("After.")


async def not_utf8(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    await wire.put(turn)
    await anyio.sleep(0.5)  # then the host reads the next line in a separate chunk
    await wire.put(turn, b'{"type":"system","subtype":"status","status":"\xff\xfe"}\n')
    await turn.say("After.")


async def stderr_flood(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    line = b"This line is one of many.\n"
    await to_thread.run_sync(_write_all, 2, line * (FLOOD // len(line)))
    await turn.say("After.")


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest[:65536]) :]


async def stall(turn: Turn, wire: Wire) -> None:
    line = encode(_assistant(turn, {"type": "text", "text": "In two halves."}))
    await wire.put(turn, line[:100])
    await anyio.sleep(SILENCE)
    await wire.put(turn, line[100:])
    await turn.say("After.")


async def cut_line(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    await wire.put(turn, encode(_assistant(turn, {"type": "text", "text": "Never complete."}))[:150])
    wire.exit(0)


async def no_line_feed(turn: Turn, wire: Wire) -> None:
    await turn.say("Before.")
    await wire.put(turn, encode(_result(turn, "Before.")).rstrip(b"\n"))
    wire.exit(0)


# --- how agents exit


def exits(code: int) -> Play:
    async def play(turn: Turn, wire: Wire) -> None:
        await turn.say("Half of it.")
        await wire.put(turn)
        wire.exit(code)

    return play


async def will_not_end(turn: Turn, wire: Wire) -> None:
    await turn.say("I stay.")
    await wire.put(turn)
    wire.linger = LINGER
