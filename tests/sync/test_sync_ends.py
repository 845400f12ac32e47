"""A sync session leaves nothing behind if its program is interrupted, ends or forks. Each test runs a new program."""

from __future__ import annotations

import json
import signal

import pytest
from test_sync import AGENT

from children import Host, exists, linux_only, python

pytestmark = linux_only

#: Code that all host programs share: it opens a session and reports the start of a turn and the open resources.
HOST = r"""
import contextlib, gc, threading
from claude_wire import ClaudeWireError, HandleError, sync

def told(data):
    if b'"init"' in data:
        say(begun=True)

def opened(**arguments):
    return sync.open_session(json.loads(sys.argv[1]), on_received=told, **arguments)

def wait(session, how):
    "Wait forever for a result."
    if how == "ask":
        session.ask("hold")
    session.query("hold")
    for message in session.receive_response():
        pass

def say_what_is_held():
    gc.collect()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        children = True
    except ChildProcessError:
        children = False
    say(threads=[thread.name for thread in threading.enumerate()], children=children)
"""
NOTHING = {"threads": ["MainThread"], "children": False}


def host(code: str, *arguments: object) -> Host:
    return Host(HOST + code, json.dumps(python(AGENT)), *arguments)


@pytest.mark.parametrize("how", ["ask", "iteration"])
def test_ctrl_c_in_a_wait_ends_the_session(how: str) -> None:
    code = """
try:
    with opened() as session:
        wait(session, sys.argv[2])
except KeyboardInterrupt:
    say_what_is_held()
"""
    with host(code, how) as program:
        assert program.says() == {"begun": True}
        program.interrupt()
        assert program.says() == NOTHING
        assert program.ends() == 0
    assert program.errors == b""


@pytest.mark.parametrize("how", ["ask", "iteration"])
def test_ctrl_c_that_does_not_wake_the_main_thread_ends_the_session(how: str) -> None:
    """The session's thread receives the signal. A signal that arrives just before the wait has the same effect."""
    code = """
import signal
def told(data):
    if b'"init"' in data:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
try:
    with opened() as session:
        wait(session, sys.argv[2])
except KeyboardInterrupt:
    say_what_is_held()
"""
    with host(code, how) as program:
        assert program.says() == NOTHING
        assert program.ends() == 0
    assert program.errors == b""


@pytest.mark.parametrize("how", ["ask", "iteration"])
def test_ctrl_c_that_is_caught_in_the_block_leaves_a_session_that_works(how: str) -> None:
    code = """
with opened() as session:
    try:
        wait(session, sys.argv[2])
    except KeyboardInterrupt:
        session.interrupt()
        for message in session.receive_response():
            pass
        say(cancelled=message.cancelled, result=session.ask("again").result)
say_what_is_held()
"""
    with host(code, how) as program:
        assert program.says() == {"begun": True}
        program.interrupt()
        assert program.says() == {"begun": True}
        assert program.says() == {"cancelled": True, "result": "again"}
        assert program.says() == NOTHING
        assert program.ends() == 0
    assert program.errors == b""


@pytest.mark.parametrize("how", ["receive_response", "batches"])
def test_ctrl_c_in_an_iteration_loses_no_message(how: str) -> None:
    """Each interrupt comes right after the session has read bytes, while a message is on its way to the caller."""
    code = """
import itertools, signal
from claude_wire import ResultMessage, UserMessage

chunks, interrupted = itertools.count(), 0
def interrupts(data):
    if next(chunks) in range(3, 23):
        before = interrupted
        while interrupted == before:  # the caller is in __next__ at the latest when it has all earlier messages
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.001)

def interrupt(number, frame):
    global interrupted
    while frame is not None and frame.f_code.co_name != "__next__":
        frame = frame.f_back
    if frame is not None:  # outside __next__, the loop below would lose the message
        interrupted += 1
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
with sync.open_session(json.loads(sys.argv[1]), on_received=interrupts) as session:
    session.query("many20000")
    texts, ended = [], False
    while not ended:
        try:
            for given in getattr(session, sys.argv[2])():
                for message in given if isinstance(given, list) else [given]:
                    texts += [message.text] if isinstance(message, UserMessage) else []
                    ended |= isinstance(message, ResultMessage)
                if ended:
                    break
        except KeyboardInterrupt:
            pass
say(whole=texts == [str(number) for number in range(20000)], interrupted=interrupted)
"""
    with host(code, how) as program:
        assert program.says() == {"whole": True, "interrupted": 20}
        assert program.ends() == 0
    assert program.errors == b""


def test_ctrl_c_while_the_session_begins_ends_it() -> None:
    code = """
silent = [sys.executable, "-S", "-c", "import os; os.write(2, b'begun\\\\n'); os.read(0, 1 << 20); os.read(0, 1)"]
try:
    with sync.open_session(silent, stderr=lambda line: say(begun=True)):
        pass
except KeyboardInterrupt:
    say_what_is_held()
"""
    with host(code) as program:
        assert program.says() == {"begun": True}
        program.interrupt()
        assert program.says() == NOTHING
        assert program.ends() == 0
    assert program.errors == b""


@pytest.mark.parametrize(
    ("end", "returncode"),
    [("", 0), ("sys.exit(3)", 3), ("iterating.start()", 0), ("session.ask('hold')", -signal.SIGINT)],
)
def test_a_program_may_end_without_leaving_the_block(end: str, returncode: int) -> None:
    """The session closes when the program ends, even if a thread waits for a message, and the CLI ends."""
    code = f"""
session = opened()
session.__enter__()
def iterate():
    with contextlib.suppress(ClaudeWireError):  # the iteration may raise because the session is closed
        for message in session:
            pass
iterating = threading.Thread(target=iterate, daemon=True)
say(pid=session.session.process.pid)
{end}
"""
    with host(code) as program:
        pid = program.says()["pid"]
        if "ask" in end:
            assert program.says() == {"begun": True}
            program.interrupt()
        assert program.ends() == returncode
        assert not exists(pid)
    if returncode != -signal.SIGINT:  # after SIGINT, Python prints a traceback
        assert program.errors.decode() == ""


def test_a_forked_child_is_told_so_and_leaves_the_session_alone() -> None:
    code = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks where threads run
with opened() as session:
    child = os.fork()
    if not child:
        try:
            session.ask("hello")
        except HandleError as error:
            say(error=str(error))
    else:
        os.waitpid(child, 0)
        say(result=session.ask("hello").result)
if not child:
    say(session=repr(session)[:5])
    sys.exit(0)
say_what_is_held()
"""
    with host(code) as program:
        assert program.says() == {
            "error": "a session belongs to the process that opened it, and this is a forked child"
        }
        assert program.says() == {"session": "<sync"}
        assert program.says() == {"begun": True}
        assert program.says() == {"result": "hello"}
        assert program.says() == NOTHING
        assert program.ends() == 0
    assert program.errors == b""
