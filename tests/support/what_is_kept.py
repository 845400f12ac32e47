"""Push a session, a decoder, a drain or an accumulator over its limits, and measure the memory that remains.

:func:`drive` runs each function in a new process and returns its numbers. Memory is the number of bytes that Python has
allocated since the call of :func:`mark`, measured with tracemalloc. Each function goes far beyond its limit, and even
further in the long tests.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from claude_wire import Accumulator, CanUseToolRequest, Decoder, ResultMessage, decode, peek
from claude_wire.messages import PermissionResult
from claude_wire_kit.events import Bridge
from claude_wire_kit.usage.meter import UsageMeter
from long_tests import LONG
from session_peer import Peer, allow, line, never, opened, queued_bytes

MEGABYTE = 1_000_000
#: Seconds after which a waiting test fails. Tests wait for events, so even a slow machine is fast enough.
DEADLINE = 120


def drive(name: str) -> dict[str, Any]:
    """Run a function of this module in a new process, and return its result."""
    run = subprocess.run(
        [sys.executable, __file__, name], stdout=subprocess.PIPE, check=True, text=True, timeout=3 * DEADLINE
    )
    numbers: dict[str, Any] = json.loads(run.stdout)
    return numbers


def often(long: int, short: int) -> int:
    """Return a number of repetitions: ``long`` in the long tests, else ``short``."""
    return long if LONG else short


def mark() -> None:
    """Start measuring memory."""
    gc.collect()
    tracemalloc.start()


def kept() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _answered(peer: Peer, count: int) -> None:
    await peer.until(lambda: len(peer.lines) >= count)
    peer.lines.clear()


async def long_request_ids() -> dict[str, Any]:
    """Send 30 requests with ids of 1 MB. Each answer repeats the whole id. Then deliver the last request again."""
    async with opened(can_use_tool=allow) as (peer, session), anyio.create_task_group() as group:
        group.start_soon(session.__anext__)
        await anyio.wait_all_tasks_blocked()
        peer.lines.clear()
        mark()
        answered: list[bool] = []
        for number in range(30):
            request_id = f"{number:08}" + "x" * MEGABYTE
            peer.say(Peer.permission(request_id))
            await peer.until(lambda: peer.lines)
            answered.append(peer.lines.pop()["response"]["request_id"] == request_id)
        peer.say(Peer.permission(request_id), Peer.permission("after"))
        await peer.until(lambda: peer.lines)
        last = [message["response"]["request_id"] for message in peer.lines]
        peer.lines.clear()
        del request_id
        memory = kept()
        group.cancel_scope.cancel()
    return {"answered": sum(answered), "last": last, "kept": memory}


async def many_request_ids() -> dict[str, Any]:
    """Send 5,000 requests and answer each. Then deliver the oldest and the newest again."""
    async with opened(can_use_tool=allow) as (peer, session):
        peer.lines.clear()
        count = often(10_000, 5_000)
        for number in range(count):
            peer.say(Peer.permission(f"{number}"))
            await _answered(peer, 1)
        peer.say(Peer.permission(f"{count - 1}"), Peer.permission("0"))
        await peer.until(lambda: peer.lines)
        again = [message["response"]["request_id"] for message in peer.lines]
        return {"remembered": len(session._control.protocol.questions.settled), "again": again}


async def long_task_ids() -> dict[str, Any]:
    """Start 30 tasks with ids of 1 MB, and 5,000 with short ids. The session must know the last task of each group."""
    async with opened() as (peer, session):
        mark()
        sizes: list[int] = []
        short = [f"{number}" for number in range(often(10_000, 5_000))]
        for ids in ([f"{number:08}" + "x" * MEGABYTE for number in range(30)], short):
            for task_id in ids:
                peer.say(_task("task_started", task_id))
                await session.__anext__()
            peer.say(_task("task_notification", ids[-1]))
            before = len(session._reading.run.background.subagents)
            await session.__anext__()
            sizes += [before, len(session._reading.run.background.subagents)]
        del ids, task_id
        return {"sizes": sizes, "kept": kept()}


def _task(subtype: str, task_id: str) -> dict[str, Any]:
    more = (
        {"task_type": "local_agent", "description": "d"}
        if subtype == "task_started"
        else {"status": "completed", "output_file": "", "summary": ""}
    )
    return {"type": "system", "subtype": subtype, "task_id": task_id, "session_id": "s", "uuid": "u", **more}


async def waiting_request_bytes() -> dict[str, Any]:
    """Send 100 questions of 1 MB. Answer none until the session stops reading, then answer all."""
    waiting: list[anyio.Event] = []
    more = anyio.Event()
    free = anyio.Event()

    async def wait(request: CanUseToolRequest) -> PermissionResult:
        waiting.append(anyio.Event())
        more.set()
        await free.wait()
        return request.deny("no")

    async with opened(can_use_tool=wait) as (peer, session):
        peer.lines.clear()
        before = peer.output.given_bytes
        count = often(200, 100)
        for number in range(count):
            peer.say(Peer.permission(f"{number}", input={"content": "x" * MEGABYTE}))
        while not session._control.is_full():
            more = anyio.Event()
            await more.wait()
        await anyio.wait_all_tasks_blocked()
        read, held = peer.output.given_bytes - before, session._control.answers.waiting_bytes
        free.set()
        await peer.until(lambda: len(peer.lines) == count)
        await anyio.wait_all_tasks_blocked()
        return {"read": read, "held": held, "left": session._control.answers.waiting_bytes}


async def answers_not_taken() -> dict[str, Any]:
    """Send 100 questions whose answers contain their 1 MB of input, from a peer that accepts no answer."""
    async with opened(can_use_tool=allow) as (peer, session):
        peer.lines.clear()
        taken = anyio.Event()
        peer.hold = taken.wait
        before = peer.output.given_bytes
        count = often(200, 100)
        for number in range(count):
            peer.say(Peer.permission(f"{number}", input={"content": "x" * MEGABYTE}))
        while not session._control.is_full():
            await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()
        read, held = peer.output.given_bytes - before, session._control.answers.waiting_bytes
        peer.hold = anyio.lowlevel.checkpoint
        taken.set()
        await peer.until(lambda: len(peer.lines) == count)
        await anyio.wait_all_tasks_blocked()
        return {"read": read, "held": held, "left": session._control.answers.waiting_bytes}


async def requests_in_one_line() -> dict[str, Any]:
    """Send one answer that lists 10,000 open questions."""

    async def wait(_: CanUseToolRequest) -> PermissionResult:
        return await never()

    async with opened(can_use_tool=wait) as (peer, session):
        listed = [Peer.permission(f"{number}") for number in range(often(20_000, 10_000))]
        peer.answer("nobody asked", {}, pending_permission_requests=listed)
        await anyio.wait_all_tasks_blocked()
        return {"open": len(session._control.protocol.questions), "tasks": len(session._tasks)}


async def control_messages_ahead() -> dict[str, Any]:
    """Answer 300 questions of 100 kB while nobody takes messages from the session. Then take all lines."""
    async with opened(can_use_tool=allow) as (peer, session):
        peer.lines.clear()
        mark()
        before = queued_bytes()
        for number in range(300):
            peer.say(Peer.permission(f"{number}", input={"content": "x" * 100_000}))
            await _answered(peer, 1)
        memory, counted = kept(), queued_bytes() - before
        peer.say({"type": "user", "message": {"role": "user", "content": "the end"}})
        await session.__anext__()
        again = len(peer.lines)
        return {"kept": memory, "counted": counted, "again": again}


async def small_chunks() -> dict[str, Any]:
    """Send 20,100 chunks of one byte while nobody takes messages from the session."""
    async with opened(request_timeout=10 * DEADLINE) as (peer, session):
        text = line({"type": "user", "message": {"role": "user", "content": "x" * 280}}) * often(200, 60)
        mark()
        before = queued_bytes()

        async def ask() -> None:
            with anyio.move_on_after(DEADLINE):
                await session.interrupt()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)  # a waiting request makes the session read ahead
            await peer.asked("interrupt")
            peer.lines.clear()
            for byte in text:
                peer.output.write(bytes([byte]))
            while peer.output.waiting:
                await anyio.sleep(0.01)
            memory, counted = kept(), queued_bytes() - before
            group.cancel_scope.cancel()
        return {"kept": memory, "counted": counted, "size": len(text)}


async def unknown_types() -> dict[str, Any]:
    """Decode 40 lines whose unknown types have 1 MB each, and read the types."""
    decoder = Decoder()
    list(decoder.feed(b'{"type":"system","subtype":"init"}\n{"type":"x"}\n' * 2))
    mark()
    for number in range(40):
        data = line({"type": f"{number}" + "x" * MEGABYTE})
        (message,) = decoder.feed(data)
        assert message.type == peek(data).type
        del message, data
    return {"kept": kept()}


def _event(event: dict[str, Any], session: str = "s") -> Any:
    return decode(line({"type": "stream_event", "event": event, "session_id": session, "uuid": "u"}))


_START = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}},
}


def _delta(text: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


async def accumulated_text() -> dict[str, Any]:
    """Accumulate a message of 200 MB in deltas of 100 kB, which never ends."""
    accumulator = Accumulator()
    accumulator.add(_event(_START))
    mark()
    dropped = begun = 0
    for number in range(2000):
        partial = accumulator.add(_event(_delta(f"{number:06}" + "x" * 100_000)))
        assert partial is not None
        dropped += partial.abandoned
        begun += partial.started
    del partial
    memory = kept()
    last = accumulator.current
    return {"kept": memory, "dropped": dropped, "begun": begun, "last": "" if last is None else last.text[:6]}


async def accumulated_pieces() -> dict[str, Any]:
    """Fill an accumulator for 125,000 characters with pieces, blocks, events and session ids that hold little text."""
    count = often(20_000, 2_500)
    max_chars = 50 * count
    found: dict[str, Any] = {"max_chars": max_chars}
    ways: dict[str, Any] = {
        "pieces": lambda number: _event(_delta(chr(0x4E00 + number % 20_000))),
        "turns": lambda number: _event(_delta("x", number % 2)),
        "blocks": lambda number: _event(
            {"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}}
        ),
        "others": lambda number: _event({"type": "new", "number": number, "more": [{}] * 10}),
        "sessions": lambda number: _event(_START, f"{number:05}" + "x" * 10_000),
    }
    mark()
    for name, make in ways.items():
        accumulator = Accumulator(max_chars=max_chars)
        accumulator.add(_event(_START))
        before = kept()
        most = 0
        for number in range(count):
            accumulator.add(make(number))
            if number % (count // 10) == 0:
                most = max(most, kept() - before)
        found[name] = most
    return found


async def mcp_server_that_never_reads() -> dict[str, Any]:
    """Send 4,500 notifications and 4,500 withdrawn requests to a server whose lifespan never begins."""
    from mcp.server.lowlevel import Server

    from claude_wire.integrations.mcp import InProcessMcpServer

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
        await anyio.sleep_forever()
        yield {}

    async def send(_: dict[str, Any]) -> None: ...

    found: list[int] = []
    for ids in (False, True):
        server = InProcessMcpServer(Server("stuck", lifespan=lifespan))
        server.connect(send)
        async with anyio.create_task_group() as group:
            for number in range(often(6_000, 4_500)):
                message = {"jsonrpc": "2.0", "method": "notifications/x", **({"id": number} if ids else {})}
                group.start_soon(server.handle, {**message, "method": "tools/list"} if ids else message)
            await anyio.wait_all_tasks_blocked()
            run = server._run
            assert run is not None
            found += [len(run._given), len(run._calls)]
            group.cancel_scope.cancel()
        run._task.cancel()
        await server.aclose()
    return {"waiting": found}


async def usage_of_many_models() -> dict[str, Any]:
    """Add results of many sessions to a meter. Each has 50 models with long names and long numbers."""
    results, meter = often(10_100, 300), UsageMeter()
    mark()
    for number in range(results):
        models = {f"{number:06}-{each}-" + "\U0001f600" * 190: {"inputTokens": 10**400} for each in range(50)}
        uuid = f"{number:06}" + "\U0001f600" * 122
        result = {"type": "result", "subtype": "success", "uuid": uuid, "session_id": uuid, "modelUsage": models}
        message = decode(line({**result, "duration_ms": 10**400}))
        assert isinstance(message, ResultMessage)
        meter.add(message)
    return {
        "kept": kept(),
        "results": results,
        "turns": meter.total.turns,
        "input": meter.total.tokens.input_tokens,
        "rows": sum(len(session.models) for session in meter.sessions.values()),
        "running": sum(len(each.models) for each in meter._running.values()),
    }


# --- bridges ----------------------------------------------------------------------------------------------------------


def _bridge(most: int, messages: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Add these messages to a bridge. Return the bytes that remain, with ``most``, the limit in megabytes."""
    mark()
    ui, sent = Bridge(partial=True, prompts=True), 0
    for message in messages:
        encoded = json.dumps(message, ensure_ascii=False).encode()
        sent += len(encoded)
        ui.add(decode(encoded))
    return {"kept": kept(), "most": most, "sent": sent, "bridge": repr(ui)}


#: A character that takes four bytes in Python and on the wire.
WIDE = "\U0001f600"


def _calls(count: int, session: str = "s") -> Iterator[dict[str, Any]]:
    for number in range(count):
        input = {"command": WIDE * 10_000, "description": WIDE * 1000}
        block = {"type": "tool_use", "id": f"{number:064}" + WIDE * 60, "name": "Bash", "input": input}
        yield {"type": "assistant", "message": {"content": [block]}, "session_id": session}


async def bridge_calls() -> dict[str, Any]:
    return _bridge(12, _calls(often(20_000, 1200)))


async def bridge_sessions() -> dict[str, Any]:
    count = often(3000, 400)
    return _bridge(12, (next(_calls(1, f"{number}" + WIDE * 20_000)) for number in range(count)))


async def bridge_subagents() -> dict[str, Any]:
    def started() -> Iterator[dict[str, Any]]:
        for number in range(often(20_000, 1200)):
            task = {"task_id": f"{number:0128}", "tool_use_id": f"t{number}" + WIDE * 5000, "task_type": "local_agent"}
            words = {"description": WIDE * 5000, "subagent_type": WIDE * 5000}
            yield {"type": "system", "subtype": "task_started", **task, **words, "session_id": "s"}

    return _bridge(12, started())


async def bridge_questions() -> dict[str, Any]:
    def asked() -> Iterator[dict[str, Any]]:
        for number in range(often(3000, 250)):
            input = {"command": "x" * 250_000}
            request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": input, "tool_use_id": f"t{number}"}
            yield {"type": "control_request", "request_id": f"{number}" + "x" * 1000, "request": request}

    return _bridge(20, asked())


async def bridge_todos() -> dict[str, Any]:
    def created() -> Iterator[dict[str, Any]]:
        for session in range(often(1000, 20)):
            for number in range(150):
                id = f"c{number}"
                block = {"type": "tool_use", "id": id, "name": "TaskCreate", "input": {"subject": WIDE * 2000}}
                yield {"type": "assistant", "message": {"content": [block]}, "session_id": f"s{session}"}
                result = {"type": "tool_result", "tool_use_id": id, "content": f"Task #{number} created"}
                answer: dict[str, Any] = {"role": "user", "content": [result]}
                yield {"type": "user", "message": answer, "session_id": f"s{session}"}

    return _bridge(often(40, 6), created())


def main() -> None:

    async def run() -> Any:
        with anyio.fail_after(DEADLINE):
            return await globals()[sys.argv[1]]()

    print(json.dumps(anyio.run(run)))


if __name__ == "__main__":
    main()
