"""A session, process or stream leaves nothing behind when its event loop stops or its last reference is dropped.

A separate host process plays each way in which a loop can end. Afterwards it counts its children, descriptors, threads
and unfinished tasks, and the test checks its standard error.
"""

from __future__ import annotations

import importlib.util
import re

import pytest

from async_backends import DEADLINE
from children import Host, linux_only

pytestmark = linux_only

#: A fake CLI that answers ``initialize``, asks for permission after a prompt, and exits at the end of its input.
PEER = r"""
import json, os, sys, time
def say(**message):
    os.write(1, json.dumps(message).encode() + b"\n")
os.write(2, b"begun\nunfinished")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request" and message["request"]["subtype"] == "initialize":
        answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        say(type="control_response", response=answer)
    elif message["type"] == "user":
        if "hold" in line[:200]:
            time.sleep(60)
        ask = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
        say(type="control_request", request_id="asked", request=ask)
"""

HOST = r"""
import asyncio, contextlib, gc, logging, socket, threading, unittest, warnings, weakref
warnings.simplefilter("always", ResourceWarning)
import anyio
import claude_wire
from claude_wire import MessageStream, Session, open_process, open_session
from claude_wire.messages import McpStatusRequest

backends, way, peer, seconds = sys.argv[1].split(","), sys.argv[2], sys.argv[3], float(sys.argv[4])
ARGV = [sys.executable, "-S", "-c", peer, "--permission-prompt-tool", "stdio"]


def new_loop():
    if backend == "uvloop":
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def held():
    children = 0
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
            children += int(stat.read().rpartition(")")[2].split()[1]) == os.getpid()
    tasks = sum(isinstance(found, asyncio.Task) and not found.done() for found in gc.get_objects())
    descriptors = sorted(os.readlink(f"/proc/self/fd/{number}").partition(":")[0]
                         for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}"))
    return dict(children=children, descriptors=descriptors, threads=len(os.listdir("/proc/self/task")), tasks=tasks)


# --- what there is, and what waits in it ------------------------------------------------------------------------------


class Held:
    '''Something that is entered, and then waited in.'''

    def __init__(self, name):
        self.name = name
        self.theirs = None
        self.ready = anyio.Event()
        self.grace = 0.3 if "full" in name else 30

    def make(self):
        async def allow(request):
            self.ready.set()
            await anyio.sleep_forever()

        if "process" in self.name:
            return open_process(ARGV, stderr=self.line if "stderr" in self.name else None, grace=self.grace)
        if "stream" in self.name:
            self.close()
            ours, self.theirs = socket.socketpair()
            stream = MessageStream(ours)
            ours.close()
            if "session" not in self.name:
                return stream

            async def send(line):
                pass

            return Session(stream, send)
        servers = {"calc": server()} if "MCP" in self.name else None
        return open_session(ARGV, can_use_tool=allow, stderr=self.line if "stderr" in self.name else None,
                            mcp_servers=servers, grace=self.grace)

    def line(self, line):
        pass

    async def wait(self, made):
        '''Wait in it, for ever, and say when that is so.'''
        if "callback" not in self.name:
            asyncio.get_running_loop().call_later(0.05, self.ready.set)
        if "request" in self.name:
            await made.request(McpStatusRequest())
        elif "full" in self.name:
            await made.query("hold" + "x" * 1_000_000)
        elif "ask" in self.name:
            await made.ask("do it")
        elif "run" in self.name:
            await made.query("do it")
            async for _ in made.receive_run():
                pass
        elif "callback" in self.name:
            await made.query("do it")
            await anyio.sleep_forever()
        else:
            async for _ in made:
                pass

    def close(self):
        if self.theirs is not None:
            self.theirs.close()


_server = None


def server():
    '''One for all sessions, as a test suite has it.'''
    global _server
    if _server is None or way.__name__ in ("cells", "in_pieces", "suite"):  # where it is taken before it is free
        from mcp.server.lowlevel import Server

        from claude_wire.integrations.mcp import InProcessMcpServer

        _server = InProcessMcpServer(Server("calc"))
    return _server


async def enter(held):
    made = held.make()
    await made.__aenter__()
    return made


async def in_block(held):
    async with held.make() as made:
        await held.wait(made)


async def begun(held):
    '''A task in the block of it, which waits there.'''
    task = asyncio.get_running_loop().create_task(in_block(held), name="theirs")
    ready = asyncio.ensure_future(held.ready.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    assert not task.done(), task
    return task


# --- ways in which a loop goes ----------------------------------------------------------------------------------------


def closed(held):
    '''Entered by hand, and the loop is closed.'''
    loop = new_loop()
    made = loop.run_until_complete(enter(held))
    loop.close()
    if "process" in held.name or "session" in held.name and "stream" not in held.name:
        assert os.path.exists(f"/proc/{getattr(made, 'process', made).pid}")


def closed_and_kept(held, loops=[]):
    '''As old code does it: the thread keeps its last loop, and so may others.'''
    loops.append(new_loop())
    asyncio.set_event_loop(loops[-1])
    made = loops[-1].run_until_complete(enter(held))
    loops[-1].close()


def in_pieces(held, loops={}):
    '''Dropped between two pieces of a loop that is never closed.'''
    loop = loops.get(backend)
    if loop is None:
        loop = loops[backend] = new_loop()
    made = loop.run_until_complete(enter(held))
    loop.run_until_complete(asyncio.sleep(0.03))


def stopped(held):
    '''The loop is stopped, and dropped as it is.'''
    loop = new_loop()
    loop.set_exception_handler(lambda loop, context: print(context["message"], file=sys.stderr))
    loop.run_until_complete(enter(held))
    loop.call_soon(loop.stop)
    loop.run_forever()


def stopped_and_run_again(held):
    '''Dropped in a loop that is stopped, and that is run again when all its timers are due.'''
    loop = new_loop()
    loop.set_exception_handler(lambda loop, context: print(context["message"], file=sys.stderr))
    loop.run_until_complete(enter(held))
    loop.time = lambda: time.monotonic() + 3600
    loop.call_soon(loop.stop)
    loop.run_forever()


def stopped_in_block(held):
    '''A task waits in the block when the loop is stopped, and dropped as it is.'''
    loop = new_loop()
    loop.run_until_complete(begun(held))


def closed_in_block(held):
    '''A task waits in the block when the loop is stopped and closed.'''
    loop = new_loop()
    loop.run_until_complete(begun(held))
    loop.close()


def closed_in_block_and_collected_in_another(held):
    '''And the task is collected while another loop runs.'''
    loop = new_loop()
    loop.run_until_complete(begun(held))
    loop.close()
    del loop

    async def collect():
        with anyio.CancelScope() as scope:
            gc.collect()
            await asyncio.sleep(0.01)
        assert not scope.cancelled_caught

    other = new_loop()
    other.run_until_complete(collect())
    other.close()


def closed_coroutine(held):
    '''The coroutine of the block is closed by hand.'''
    loop = new_loop()
    task = loop.run_until_complete(begun(held))
    task._log_destroy_pending = False
    with contextlib.suppress(ValueError):
        task.get_coro().close()
    loop.close()


def dropped(held):
    '''Entered by hand and dropped, while the loop runs.'''

    async def main():
        made = await enter(held)
        await anyio.sleep(0.03)
        del made
        gc.collect()
        await until_nothing()

    run(main)


def cells(held):
    '''As in a notebook: one loop that always runs, and whose cells bind the same name again.'''
    names = {}

    async def cell():
        names["session"] = await enter(held)

    async def main():
        for _ in range(3):
            await asyncio.create_task(cell())
        names.clear()
        if "stream" not in held.name:
            task = await begun(held)
            task.cancel()  # by its interrupt
            await asyncio.wait([task])
            del task
        await until_nothing()

    run(main)


def run_ends(held, kept=[]):
    '''The loop ends as it should, with something that was entered by hand, which is dropped later.'''

    async def main():
        kept.append(await enter(held))
        await anyio.sleep(0.03)

    run(main)
    kept.clear()


def run_ends_in_block(held):
    '''asyncio.run cancels what is left.'''

    async def main():
        await begun(held)

    run(main)


def thread_ends(held):
    '''A thread ends with its loop, which nobody closes.'''

    def work():
        new = new_loop()
        asyncio.set_event_loop(new)
        made = new.run_until_complete(enter(held))
        new.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def thread_ends_in_block(held):
    '''A thread stops its loop, which runs for ever, and ends.'''
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    task = asyncio.run_coroutine_threadsafe(begun(held), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def dropped_in_another_thread(held):
    '''The loop runs in a thread, and what was entered there is dropped in another.'''
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = asyncio.run_coroutine_threadsafe(enter(held), loop).result()
    del made
    gc.collect()
    wait_until_nothing(1)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def suite(held):
    '''A test suite with a loop for each test, that does not close what it opens.'''

    class Suite(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self):
            self.made = await enter(held)

        async def test_one(self):
            await asyncio.sleep(0.03)

        async def test_two(self):
            if "stream" not in held.name:
                await begun(held)

    logging.getLogger("asyncio").setLevel(logging.ERROR)  # such a loop tells what takes long
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Suite)
    suite.run(result)
    assert not result.errors + result.failures, result.errors + result.failures


def run(main):
    options = {} if backend == "trio" else {"use_uvloop": backend == "uvloop"}
    anyio.run(main, backend="trio" if backend == "trio" else "asyncio", backend_options=options)


# --- what is left -----------------------------------------------------------------------------------------------------


def is_nothing(own):
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return len(os.listdir("/proc/self/task")) <= before["threads"] + own
    return False


async def until_nothing():
    until = time.monotonic() + seconds
    while not is_nothing(0) and time.monotonic() < until:
        await anyio.sleep(0.005)
    assert is_nothing(0), held()


def wait_until_nothing(own):
    until = time.monotonic() + seconds
    while not is_nothing(own) and time.monotonic() < until:
        time.sleep(0.005)


def once(name):
    it = Held(name)
    way(it)
    it.close()
    del it
    collect()
    wait_until_nothing(0)
    collect()  # what only a thread kept until then


def collect():
    while gc.collect():  # a loop that was not closed is closed by the first, and gone by a later one
        pass


way = globals()[way]
if "MCP" in sys.argv[5]:
    import mcp.server.lowlevel
for backend in backends:
    run(lambda: anyio.sleep(0))  # for what a backend makes once
gc.collect()
gc.freeze()  # collections look at what is made from here on, not at all modules
for backend in backends:
    before = dict(threads=len(os.listdir("/proc/self/task")))
    for name in sys.argv[5].split(","):
        once(name)  # for what is made once
        before = held()
        once(name)
        say(name=name, before=before, after=held())
"""


IDLE = ["process", "process stderr", "session", "session stderr", "session MCP", "session over stream", "stream"]
#: Names of the calls that are waiting inside the block when the loop ends.
WAITING = [
    "process step",
    "session step",
    "session request",
    "session ask",
    "session run",
    "session callback",
    "session full",
    "session over stream step",
    "session over stream request",
    "stream step",
]

BY_HAND = [
    "closed",
    "closed_and_kept",
    "in_pieces",
    "dropped",
    "cells",
    "run_ends",
    "thread_ends",
    "dropped_in_another_thread",
    "suite",
]
IN_BLOCK = [
    "closed_in_block",
    "closed_in_block_and_collected_in_another",
    "closed_coroutine",
    "run_ends_in_block",
    "thread_ends_in_block",
]
CASES = [
    *((way, ["asyncio", "uvloop"], IDLE) for way in BY_HAND),
    # asyncio only, because uvloop keeps the descriptors of a loop that is not closed
    *((way, ["asyncio"], IDLE) for way in ("stopped", "stopped_and_run_again")),
    ("stopped_in_block", ["asyncio"], WAITING),
    *((way, ["asyncio", "uvloop"], WAITING) for way in IN_BLOCK),
    *((way, ["trio"], [name for name in IDLE if "MCP" not in name]) for way in ("dropped", "run_ends")),
]

#: asyncio's own warnings about an unfinished task of the host and about an event loop that was not closed.
THEIRS = re.compile(
    r"Task was destroyed but it is pending!\ntask: <Task pending name='theirs'.*\n"
    r"|.*ResourceWarning: unclosed event loop.*\n(?:  .*\n|ResourceWarning: Enable tracemalloc.*\n)*"
)


@pytest.mark.parametrize(
    ("way", "backends", "names"), CASES, ids=[f"{way}-{'-'.join(backends)}" for way, backends, _ in CASES]
)
def test_nothing_is_left_when_a_loop_goes(way: str, backends: list[str], names: list[str]) -> None:
    """The host has no more children, descriptors, threads and tasks than before, and its standard error is empty."""
    there = [backend for backend in backends if importlib.util.find_spec(backend) is not None]
    if not there:
        pytest.skip(f"without {backends}")
    left = {}
    with Host(HOST, ",".join(there), way, PEER, DEADLINE, ",".join(names)) as host:
        for backend in there:
            for name in names:
                said = host.says()
                assert said["name"] == name
                if said["after"] != said["before"]:
                    left[backend, name] = said["before"], said["after"]
        assert host.ends() == 0
    assert left == {}
    assert THEIRS.sub("", host.errors.decode()) == ""
