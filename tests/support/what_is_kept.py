"""Drives a session, a decoder, a drain or an accumulator over its bounds, and says how much memory stays.

Each function is run in a process of its own, by :func:`drive`, and returns numbers. Memory is what Python has allocated
since the function called :func:`mark`, by tracemalloc, in bytes. Each goes well beyond its bound, and the long tests go
further.
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
#: Long enough for any machine; what is waited for is an event.
DEADLINE = 120


def drive(name: str) -> dict[str, Any]:
    """What the function of that name returns in a process of its own."""
    run = subprocess.run(
        [sys.executable, __file__, name], stdout=subprocess.PIPE, check=True, text=True, timeout=3 * DEADLINE
    )
    numbers: dict[str, Any] = json.loads(run.stdout)
    return numbers


def often(long: int, short: int) -> int:
    """How often something is done: so many times in the long tests, else fewer."""
    return long if LONG else short


def mark() -> None:
    """From now on memory counts."""
    gc.collect()
    tracemalloc.start()


def kept() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _answered(peer: Peer, count: int) -> None:
    await peer.until(lambda: len(peer.lines) >= count)
    peer.lines.clear()


async def long_request_ids() -> dict[str, Any]:
    """30 ids of 1 MB, each answered with its whole id, and the last one delivered again."""
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
    """5,000 ids, each answered; then the oldest and the newest delivered again."""
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
    """30 tasks with ids of 1 MB, and 5,000 with short ones; the last of each is known."""
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
    """100 questions with 1 MB each, of which none is answered until no more are read; then all are."""
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
    """100 questions that are answered at once with the 1 MB that they bring, by a peer that takes no answer."""
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
    """10,000 questions that one answer of the peer lists as open."""

    async def wait(_: CanUseToolRequest) -> PermissionResult:
        return await never()

    async with opened(can_use_tool=wait) as (peer, session):
        listed = [Peer.permission(f"{number}") for number in range(often(20_000, 10_000))]
        peer.answer("nobody asked", {}, pending_permission_requests=listed)
        await anyio.wait_all_tasks_blocked()
        return {"open": len(session._control.protocol.questions), "tasks": len(session._tasks)}


async def control_messages_ahead() -> dict[str, Any]:
    """300 questions of 100 kB, answered while nobody takes the messages; then all lines are taken."""
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
    """20,100 chunks of one byte that are read while nobody takes the messages."""
    async with opened(request_timeout=10 * DEADLINE) as (peer, session):
        text = line({"type": "user", "message": {"role": "user", "content": "x" * 280}}) * often(200, 60)
        mark()
        before = queued_bytes()

        async def ask() -> None:
            with anyio.move_on_after(DEADLINE):
                await session.interrupt()

        async with anyio.create_task_group() as group:
            group.start_soon(ask)  # who waits for an answer has the session read ahead
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
    """40 lines of types of 1 MB that no table knows, decoded and looked at."""
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
    """A message of 200 MB in deltas of 100 kB, which never ends."""
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
    """With room for 125,000 characters: pieces, blocks, unknown events and ids of sessions that hold little text."""
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
    """4,500 notifications and 4,500 withdrawn requests, for a server whose lifespan never begins."""
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
    """Results, each of a session of its own with 50 models, whose names and numbers are long."""
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
    """Give a bridge these messages, and say what stays: in bytes, and at most in megabytes."""
    mark()
    ui, sent = Bridge(partial=True, prompts=True), 0
    for message in messages:
        encoded = json.dumps(message, ensure_ascii=False).encode()
        sent += len(encoded)
        ui.add(decode(encoded))
    return {"kept": kept(), "most": most, "sent": sent, "bridge": repr(ui)}


#: Four bytes a character in Python, and on the wire.
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
            task = {
                "task_id": f"{number:0128}",
                "tool_use_id": f"t{number}" + WIDE * 5000,
                "task_type": "local_agent",
            }
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
