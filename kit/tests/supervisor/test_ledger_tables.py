"""Random scripts compare a ledger with the tables of docs/supervisor.md, with a crash between any two steps.

The scripts use no processes and no clock. They write the lines of the CLI and the clients to a journal and to a
ledger, as a supervisor does. Only the journal survives a crash. ``CLAUDE_WIRE_LONG=1`` runs more scripts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import recordings
from claude_wire.codec.decoder import Decoder, decode
from claude_wire.messages import ControlResponse, ResultMessage
from claude_wire.protocol.questions import TRANSITIONS, State
from claude_wire_kit.supervisor import ledger as ledger_module
from claude_wire_kit.supervisor.disk.journal import Journal
from claude_wire_kit.supervisor.disk.review import prompts_of, review
from claude_wire_kit.supervisor.frames import INITIALIZE_ID, Life, Serves
from claude_wire_kit.supervisor.ledger import MARKS, Ledger, Verdict
from folders import ROOT
from long_tests import LONG

PAGE = (ROOT / "docs" / "supervisor.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table in a section, without the header."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = section[section.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines[2:]]


def one_of(cell: str, meanings: dict[str, str]) -> str | None:
    """Return the meaning of the only pattern that matches a cell; None for an empty cell."""
    if not cell:
        return None
    (found,) = (meaning for pattern, meaning in meanings.items() if re.match(pattern, cell))
    return found


def _lives() -> dict[str, set[str]]:
    rows = table("A session's life")
    return {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[2])) for row in rows}


def _questions() -> dict[str, dict[str, str | None]]:
    meanings = {
        r"(.*: )?answered$": "answered",
        r"withdrawn$": "withdrawn",
        r"died\b": "died",
        r"it is acknowledged, and not written$": "not written",
    }
    events = ("answer", "withdraw", "end")
    return {
        state: {event: one_of(cell, meanings) for event, cell in zip(events, cells, strict=True)}
        for states, *cells in table("A question")
        for state in states.partition(":")[0].split(", ")
    }


def _drivers() -> dict[bool, dict[str, str | None]]:
    meanings = {
        r"it drives$": "driver",
        r"it drives\. The old driver gets `supervisor_driver` and is a viewer$": "replaces",
        r"it is refused: error `driver`$": "refused",
        r"nobody drives, and viewers get `supervisor_driver`$": "nobody",
    }
    events = ("ask", "take", "leave")
    return {
        who == "somebody drives": {event: one_of(cell, meanings) for event, cell in zip(events, cells, strict=True)}
        for who, *cells in table("The driver")
    }


#: ``life`` of a session -> its possible next values.
LIVES = _lives()
#: State of a question and event -> its next state; None if nothing changes, ``"not written"`` if the answer comes too
#: late.
QUESTIONS = _questions()
#: Whether the session has a driver, and an event -> the outcome for the client that asks: ``driver``, ``refused``,
#: ``replaces``, or ``nobody`` if the session has no driver afterwards.
DRIVERS = _drivers()


#: The handshake results that the session's creator declared for the MCP server "declared".
DECLARED = {"declared": {"initialize": {"name": "declared"}, "tools/list": {"tools": []}}}
#: The methods of the MCP handshake that expect an answer.
HANDSHAKE = ("initialize", "tools/list", "prompts/list", "resources/list", "resources/templates/list")

ids = st.sampled_from(["q1", "q2", "q3", "q4"])
#: Indexes of prompts: 0 creates a new prompt, -1 is the latest one.
prompts = st.sampled_from([0, 0, -1, -2, -3])
#: Name of a background task -> its type and the name of its parent task.
TASKS = {"agent": ("local_agent", None), "flow": ("local_workflow", None), "child": ("local_agent", "agent")}
TASKS |= {"shell": ("local_bash", None), "nested": ("local_bash", "agent")}
tasks = st.sampled_from(sorted(TASKS))
clients = st.sampled_from(["a", "b"])
#: The sender of a line: the current driver, or a client by name.
senders = st.sampled_from(["driver", "driver", "driver", "a", "b"])
servers = st.sampled_from(["one", "two", "declared"])
calls = st.tuples(servers, st.sampled_from([*HANDSHAKE[:2], "notifications/initialized", "tools/call"]))
bodies: st.SearchStrategy[Any] = st.sampled_from(["can_use_tool", "hook_callback"]) | calls


class Mcp(NamedTuple):
    """An MCP message that waits for an answer."""

    server: str
    message: dict[str, Any]


class Oracle:
    """The model: the rules of docs/supervisor.md for one session."""

    def __init__(self) -> None:
        #: The uuids of all prompts in the journal.
        self.prompts: set[str] = set()
        self.crashed()

    def crashed(self) -> None:
        """The supervisor and all its clients are gone."""
        self.clients: dict[str, Serves | None] = {}
        self.driver: str | None = None
        self.was_driven = False
        self.results: dict[tuple[str, Any], Any] = {
            (server, method): result for server, by_method in DECLARED.items() for method, result in by_method.items()
        }
        self.handshakes: dict[str, list[Any]] = {}
        self.ended("lost")

    def ended(self, how: str) -> None:
        """Forget the state of the process, because it ended or another one started."""
        self.process = how
        self.states: dict[str, str] = {}
        self.asked: dict[str, Mcp | None] = {}
        #: Uuid of each prompt without an answer -> its state in the CLI, in the order in which they were sent.
        self.waiting: dict[str, str] = {}
        self.is_open = False
        #: The names of the running background tasks.
        self.tasks: set[str] = set()
        #: Whether the end of a task is sure to start a turn.
        self.is_due = False

    @property
    def subagents(self) -> set[str]:
        """The background tasks that a run waits for. Shell commands may never end, so a run does not wait for them."""
        return {name for name in self.tasks if TASKS[name][0] != "local_bash"}

    @property
    def owed(self) -> list[str]:
        """The prompts without a result, except those that a result without prompt uuids may have answered."""
        return [uuid for uuid, where in self.waiting.items() if where in ("sent", "queued", "started")]

    def prompt_is(self, uuid: str, state: str) -> None:
        """The CLI reports the state of a prompt. A prompt that the CLI merges into another turn is "folded"."""
        where = self.waiting.get(uuid)
        if where is None or (where == "folded" and state != "queued"):
            return
        if state == "completed" and where in ("queued", "started"):
            state = "folded"
        elif state == "cancelled" and where == "started":
            state = "folded"  # the result of its turn still follows
        if state in ("completed", "cancelled"):
            del self.waiting[uuid]
        else:
            self.waiting[uuid] = state

    def result(self, named: list[str]) -> None:
        """A result answers the prompts that it names, or else the oldest prompt, and all folded prompts."""
        oldest = [uuid for uuid, where in self.waiting.items() if where != "folded"][:1]
        for uuid, where in list(self.waiting.items()):
            if where == "folded" or uuid in (named or oldest):
                del self.waiting[uuid]
            elif not named and where == "sent":
                self.waiting[uuid] = "perhaps answered"

    @property
    def runs(self) -> bool:
        """Whether a run is open."""
        return self.is_open or bool(self.owed) or bool(self.subagents) or self.is_due

    def task_ended(self, name: str, how: str) -> None:
        """Remove a task. Unless it was stopped or has a parent, and if no turn is open, its end starts a turn."""
        if name in self.tasks:
            self.tasks.remove(name)
            self.is_due |= how in ("completed", "failed") and TASKS[name][1] is None and not self.is_open

    @property
    def open(self) -> list[str]:
        """The ids of the open questions, oldest first."""
        return [id for id in self.asked if self.states[id] == "open"]

    @property
    def life(self) -> str:
        """The state of the session, as in the middle column of the first table."""
        if self.process != "idle":
            return self.process
        if self.open:
            return "asking"
        return "running" if self.runs else "idle"

    def happens(self, id: str, event: str) -> str | None:
        """Apply an event to a question. Return the cell of the table: its new state or an action."""
        become = QUESTIONS[self.states.get(id, "answered")][event]
        if become in QUESTIONS:
            self.states[id] = become
        return become

    def reply(self, id: str) -> dict[str, Any] | None:
        """Return the MCP answer that the supervisor gives itself, or None if it leaves the question open."""
        call = self.asked[id]
        serves = None if self.driver is None else self.clients[self.driver]
        if call is None or (serves is not None and call.server in serves.mcp):
            return None
        known = self.results.get((call.server, call.message["method"]))
        if not self.was_driven and known is None:
            return None
        answer = {"jsonrpc": "2.0", "id": call.message.get("id")}
        if "id" not in call.message:
            return {"jsonrpc": "2.0", "result": {}}
        if known is not None:
            return {**answer, "result": known}
        return {**answer, "error": {"code": -32001, "message": f"no client serves {call.server}"}}


#: Lines of a driver that the ledger does not understand, but that the CLI may accept.
NOT_UNDERSTOOD = (
    b'{"type":"user","uuid":"p1","message":5}\n',
    b'{"type":"user","uuid":7,"message":{"role":"user","content":"x"}}\n',
    b'{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":5}\n',
    b'{"type":"user","uuid":"%s","message":{"role":"user","content":"x"}}\n' % (b"u" * 129),
    b'{"type":"user","uuid":"p8","uuid":"p9","message":{"role":"user","content":"x"}}\n',
    b'{"type":"control_response","uuid":7,"response":{"subtype":"success","request_id":"q1","response":{}}}\n',
    b'{"type":"control_response","response":{"subtype":"success","request_id":"q0","request_id":"q1"}}\n',
    b'{"type":"control_response","response":5}\n',
    b'{"type":"control_response","response":%s}\n' % (b'{"a":' * 2000 + b"1" + b"}" * 2000),
    b'{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":5}}\n',
    b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt","subtype":"initialize"}}\n',
    b'{"type":"control_request","request_id":"i","request":[]}\n',
    b'{"type":"supervisor_of_tomorrow"}\n',
    b'{"type":5}\n',
    b"{}\n",
)


class CrashError(Exception):
    """Raised between two steps to simulate that the supervisor was killed there."""


def killable(step: Callable[..., None]) -> Callable[..., None]:
    """Decorate a rule in which the supervisor may be killed."""

    @wraps(step)
    def run(self: Ledgers, *args: Any, **kwargs: Any) -> None:
        try:
            step(self, *args, **kwargs)
        except CrashError:
            self.crash()

    return run


class Ledgers(RuleBasedStateMachine):
    """A ledger, its journal and the model. After each crash a new ledger replaces the old one."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.oracle = Oracle()
        self.ledger = Ledger(DECLARED)
        self.journal = Journal(self.folder)
        self.runs = False
        self.life = "ended"
        self.oracle.process = "ended"
        #: Steps until the supervisor is killed.
        self.fuse: int | None = None
        self.count = 0
        self.uuids: list[str] = ["p0"]

    def teardown(self) -> None:
        self.journal.close()
        shutil.rmtree(self.folder)

    # --- steps

    def step(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise CrashError

    def crash(self) -> None:
        """Kill the supervisor. Check that the review of its journal reports what was open."""
        self.fuse = None
        oracle = self.oracle
        self.journal.close()
        self.journal = Journal(self.folder)
        if self.runs:
            self.journal.last.end_process(None)
            found, _ = review(self.journal, self.journal.process_line)
            assert found.died == oracle.open
            assert found.owed == oracle.owed
            assert bool(found.unfinished) == oracle.runs
            self.runs = False
            oracle.crashed()
        else:
            ended = oracle.process
            oracle.crashed()
            oracle.process = ended
        self.ledger = Ledger(DECLARED)
        if self.journal.number:
            self.ledger.remember_prompts(prompts_of(self.journal))

    def cli_says(self, **message: Any) -> Any:
        """Write a line of the CLI in two pieces, so that a crash may cut it. Return the decoded message."""
        line = json.dumps(message).encode() + b"\n"
        self.step()
        self.journal.add_output(line[:20])
        self.step()
        self.journal.add_output(line[20:])
        return decode(line)

    def written(self, line: bytes, counts: Callable[[], object]) -> None:
        """Write a line to the CLI. Call ``counts`` once the line is in the journal."""
        self.step()
        self.journal.add_input(line)
        counts()
        self.step()

    def uuid(self, number: int) -> str:
        """Return the uuid of a prompt by its index; 0 creates a new one."""
        if number == 0:
            self.uuids.append(f"p{len(self.uuids)}")
        return self.uuids[max(number or -1, -len(self.uuids))]

    # --- the process

    @initialize(mcp=st.sets(servers), steps=st.sampled_from([0, 1, 2, 3, 3]))
    def begin(self, mcp: set[str], steps: int) -> None:
        """Start the process, initialize it and attach a driver, or only the first of these steps."""
        for step in (self.start, self.initialized, lambda: self.drive(client="a", take=False, mcp=mcp))[:steps]:
            step()
            self.is_what_the_page_says()

    @precondition(lambda self: not self.runs)
    @rule()
    @killable
    def start(self) -> None:
        self.journal.begin(["cli"], began=self.count)
        self.count += 1
        self.runs = True
        self.oracle.ended("starting")  # a new process starts without open questions and prompts
        self.ledger.process_started()

    @precondition(lambda self: self.runs)
    @rule()
    @killable
    def initialized(self) -> None:
        response = {"subtype": "success", "request_id": INITIALIZE_ID, "response": {}}
        message = self.cli_says(type="control_response", response=response)
        self.oracle.process = "idle"
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(id=ids, body=bodies)
    @killable
    def ask(self, id: str, body: Any) -> None:
        oracle, call = self.oracle, None
        if isinstance(body, tuple):
            self.count += 1
            server, method = body
            message = {"jsonrpc": "2.0", "method": method}
            if method != "notifications/initialized":
                message["id"] = self.count
            call = Mcp(server, message)
            request = {"subtype": "mcp_message", "server_name": server, "message": message}
        elif body == "can_use_tool":
            request = {"subtype": body, "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
        else:
            request = {"subtype": body, "callback_id": "h", "input": {}}
        received = self.cli_says(type="control_request", request_id=id, request=request)
        if id in oracle.states:
            assert self.ledger.received(received) is None
            return
        oracle.states[id], oracle.asked[id] = "open", call
        if call is not None and call.message["method"] in ("initialize", "notifications/initialized"):
            before = [] if call.message["method"] == "initialize" else oracle.handshakes.get(call.server, [])
            oracle.handshakes[call.server] = [*before, call.message]
        expected = oracle.reply(id)
        reply = self.ledger.received(received)
        assert (reply is None) == (expected is None)
        if reply is not None:
            self.replied(id, reply, expected)

    def replied(self, id: str, reply: bytes, expected: Any) -> None:
        """Check and write the supervisor's answer for an MCP server that no driver serves."""
        response = json.loads(reply)["response"]
        assert response == {"subtype": "success", "request_id": id, "response": {"mcp_response": expected}}
        self.written(reply, lambda: self.oracle.happens(id, "answer"))

    @precondition(lambda self: self.runs)
    @rule(id=ids)
    @killable
    def withdraw(self, id: str) -> None:
        message = self.cli_says(type="control_cancel_request", request_id=id)
        self.oracle.happens(id, "withdraw")
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule()
    @killable
    def turn_begins(self) -> None:
        message = self.cli_says(type="system", subtype="init", session_id="s", cwd="/", tools=[], model="x")
        self.oracle.is_open = True
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(numbers=st.lists(prompts, max_size=2))
    @killable
    def turn_ends(self, numbers: list[int]) -> None:
        named = [self.uuid(number) for number in numbers]
        said = {"is_error": False, "result": "ok", "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1}
        names = {"user_message_uuids": named} if named else {}
        message = self.cli_says(type="result", subtype="success", session_id="s", **said, **names)
        self.oracle.is_open = self.oracle.is_due = False
        self.oracle.result(named)
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(number=prompts, state=st.sampled_from(["queued", "started", "completed", "cancelled"]))
    @killable
    def prompt_is(self, number: int, state: str) -> None:
        uuid = self.uuid(number)
        message = self.cli_says(type="command_lifecycle", command_uuid=uuid, state=state, uuid="u", session_id="s")
        self.oracle.prompt_is(uuid, state)
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(name=tasks, is_backgrounded=st.sampled_from([True, True, None, False]))
    @killable
    def task_begins(self, name: str, is_backgrounded: bool | None) -> None:
        kind, owner = TASKS[name]
        about = {"task_id": name, "task_type": kind, "description": "d"}
        about |= {} if is_backgrounded is None else {"is_backgrounded": is_backgrounded}
        message = self.cli_says(type="system", subtype="task_started", parent_task_id=owner, **about)
        if is_backgrounded is not False:  # a task in the foreground is part of its turn
            self.oracle.tasks.add(name)
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(
        name=tasks, how=st.sampled_from(["completed", "completed", "failed", "stopped", "running"]), patch=st.booleans()
    )
    @killable
    def task_ends(self, name: str, how: str, patch: bool) -> None:
        """End a task by ``task_updated`` or ``task_notification``. If ``how`` is "running", it only changes."""
        if patch or how == "running":
            told = {"subtype": "task_updated", "patch": {"status": "killed" if how == "stopped" else how}}
        else:
            told = {"subtype": "task_notification", "status": how, "output_file": "", "summary": ""}
        message = self.cli_says(type="system", task_id=name, **told)
        if how != "running":
            self.oracle.task_ended(name, how)
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(names=st.sets(tasks))
    @killable
    def tasks_are(self, names: set[str]) -> None:
        """Send the list of all background tasks. The list does not say how the removed tasks ended."""
        listed = [
            {"task_id": name, "task_type": TASKS[name][0], "parent_task_id": TASKS[name][1], "description": "d"}
            for name in sorted(names)
        ]
        message = self.cli_says(type="system", subtype="background_tasks_changed", tasks=listed)
        self.oracle.tasks = set(names)
        assert self.ledger.received(message) is None

    @precondition(lambda self: self.runs)
    @rule(does=st.sampled_from([True, False, False]))
    @killable
    def end(self, does: bool) -> None:
        if not does:
            return
        self.step()
        self.journal.last.end_process(0)
        oracle = self.oracle
        assert self.ledger.owed == oracle.owed
        assert bool(self.ledger.unfinished()) == oracle.runs
        died = self.ledger.process_ended().died
        assert died == oracle.open
        assert [oracle.happens(id, "end") for id in died] == ["died"] * len(died)
        settled = dict(oracle.states)
        oracle.ended("ended")
        # The questions of the old process stay settled until a new process may reuse their ids.
        oracle.states = settled
        self.runs = False

    # --- clients

    @rule(client=clients, take=st.booleans(), mcp=st.sets(servers))
    @killable
    def drive(self, client: str, take: bool, mcp: set[str]) -> None:
        oracle = self.oracle
        if oracle.driver == client:
            return
        become = DRIVERS[oracle.driver is not None]["take" if take else "ask"]
        if become == "refused":
            return
        assert become in ("driver", "replaces")
        oracle.clients[client] = Serves(mcp=sorted(mcp))
        oracle.driver, oracle.was_driven = client, True
        self.serve(oracle.clients[client])

    @rule(client=clients)
    def view(self, client: str) -> None:
        if client != self.oracle.driver:
            self.oracle.clients[client] = None

    @rule(client=clients)
    @killable
    def leave(self, client: str) -> None:
        """The client detaches, is killed, or loses its connection."""
        oracle = self.oracle
        oracle.clients.pop(client, None)
        if client == oracle.driver:
            assert DRIVERS[True]["leave"] == "nobody"
            oracle.driver = None
            self.serve(None)

    def drives(self, client: str) -> bool:
        """Whether the session has a driver."""
        return self.oracle.driver is not None and client in ("driver", self.oracle.driver)

    def serve(self, serves: Serves | None) -> None:
        oracle = self.oracle
        expected = [(id, reply) for id in oracle.open if (reply := oracle.reply(id)) is not None]
        for line in self.ledger.drive(serves):
            self.replied(*self.next_of(expected, line))
        assert expected == []

    def next_of(self, expected: list[tuple[str, Any]], line: bytes) -> tuple[str, bytes, Any]:
        id, reply = expected.pop(0)
        return id, line, reply

    @rule(client=senders, id=ids, result=st.integers(), fails=st.booleans())
    @killable
    def answer(self, client: str, id: str, result: int, fails: bool) -> None:
        oracle, drives = self.oracle, self.drives(client)
        call = oracle.asked.get(id)
        payload: Any = {"behavior": "allow", "updatedInput": {}}
        if call is not None:
            payload = {"mcp_response": {"jsonrpc": "2.0", "id": call.message.get("id"), "result": {"n": result}}}
        response = {"subtype": "success", "request_id": id, "response": payload}
        if fails:
            response = {"subtype": "error", "request_id": id, "error": "no"}
        line = json.dumps({"type": "control_response", "response": response}).encode() + b"\n"
        taken = self.ledger.look_at(line, is_driver=drives)
        if not drives:
            assert taken.verdict is Verdict.REFUSE
            return
        state = oracle.states.get(id, "answered")
        late = QUESTIONS[state]["answer"] == "not written"
        assert taken.verdict is (Verdict.KNOWN if late else Verdict.WRITE)
        if late:
            return

        def counts() -> None:
            oracle.happens(id, "answer")
            if call is not None and call.message["method"] in HANDSHAKE and not fails:
                oracle.results[call.server, call.message["method"]] = {"n": result}

        self.written(line, counts)
        self.ledger.written(taken.message)

    @rule(client=senders, number=prompts | st.none())
    @killable
    def prompt(self, client: str, number: int | None) -> None:
        oracle, drives = self.oracle, self.drives(client)
        uuid = None if number is None else self.uuid(number)
        named = {} if uuid is None else {"uuid": uuid}
        line = json.dumps({"type": "user", "message": {"role": "user", "content": "x"}, **named}).encode() + b"\n"
        taken = self.ledger.look_at(line, is_driver=drives)
        if not drives or uuid is None:
            assert taken.verdict is Verdict.REFUSE
        elif uuid in oracle.prompts:
            assert taken.verdict is Verdict.KNOWN
        else:
            assert taken.verdict is Verdict.WRITE
            if self.runs:
                self.written(line, lambda: (oracle.prompts.add(uuid), oracle.waiting.update({uuid: "sent"})))
                self.ledger.written(taken.message)

    @rule(client=senders)
    def say_what_is_no_answer(self, client: str) -> None:
        drives = self.drives(client)
        for line, verdict in (
            (b'{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}\n', Verdict.REFUSE),
            (b'{"type":"control_request","request_id":"i","request":{"subtype":"interrupt"}}\n', Verdict.WRITE),
            (b'{"type":"control_response","response":{"subtype":"success","request_id":null}}\n', Verdict.REFUSE),
            (b'{"type":"supervisor_end_input"}\n', Verdict.END_INPUT),
            (b"{\n", Verdict.REFUSE),
            *((line, Verdict.REFUSE) for line in NOT_UNDERSTOOD),
        ):
            taken = self.ledger.look_at(line, is_driver=drives)
            assert taken.verdict is (verdict if drives else Verdict.REFUSE)

    # --- the supervisor

    @rule(steps=st.integers(0, 30))
    def is_killed_soon(self, steps: int) -> None:
        self.fuse = steps

    @invariant()
    def is_what_the_page_says(self) -> None:
        ledger, oracle = self.ledger, self.oracle
        assert [question.request_id for question in ledger.open] == oracle.open
        assert ledger.owed == oracle.owed
        assert set(ledger.protocol.run.background.subagents.strings()) == oracle.subagents
        assert bool(ledger.unfinished()) == oracle.runs
        assert ledger.handshakes == oracle.handshakes
        assert ledger.protocol.questions.settled.strings() == [
            id for id in ledger.protocol.questions.settled.strings() if oracle.states[id] != "open"
        ]
        assert {id for id, state in oracle.states.items() if state != "open"} == set(
            ledger.protocol.questions.settled.strings()
        )
        life = oracle.life
        if self.runs:
            assert ledger.life.value == life
        if life != self.life:
            assert life in LIVES[self.life], (self.life, life)
            self.life = life


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    assert {
        state: {event: become for event, become in row.items() if become in QUESTIONS}
        for state, row in QUESTIONS.items()
    } == {
        state.value: {event.value: become.value for event, become in row.items()} for state, row in TRANSITIONS.items()
    }
    assert QUESTIONS.keys() == {question.value for question in State}
    assert LIVES.keys() == {life.value for life in Life}


def test_a_ledger_does_what_the_tables_of_the_page_say_with_a_crash_between_any_two_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the test simulates no loss of power
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Ledgers,
        settings=settings(
            max_examples=3_000 if LONG else 80, stateful_step_count=60, deadline=None, derandomize=not LONG
        ),
    )


#: State of a session -> the steps that lead to it.
REACHED: dict[str, list[str]] = {
    "starting": ["start"],
    "idle": ["start", "initialized"],
    "running": ["start", "initialized", "turn_begins"],
    "asking": ["start", "initialized", "ask"],
    "ended": [],
    "lost": ["start", "crash"],
}
#: From one state to another -> the steps in between.
LEADS: dict[tuple[str, str], list[str]] = {
    ("starting", "idle"): ["initialized"],
    ("starting", "running"): ["prompt", "initialized"],
    ("starting", "asking"): ["ask", "initialized"],
    ("idle", "running"): ["prompt"],
    ("idle", "asking"): ["ask"],
    ("running", "asking"): ["ask"],
    ("running", "idle"): ["turn_ends"],
    ("asking", "running"): ["turn_begins", "answer"],
    ("asking", "idle"): ["withdraw"],
    **{(life, "ended"): ["end"] for life in ("starting", "idle", "running", "asking")},
    **{(life, "lost"): ["crash"] for life in ("starting", "idle", "running", "asking")},
    **{(life, "starting"): ["start"] for life in ("ended", "lost")},
}


@pytest.mark.parametrize(("life", "then"), [(life, then) for life, can in LIVES.items() for then in sorted(can)])
def test_what_can_happen_next_by_the_page_does_happen(life: str, then: str) -> None:
    machine = Ledgers()
    steps: dict[str, Callable[[], None]] = {
        "ask": lambda: machine.ask(id="q1", body="can_use_tool"),
        "withdraw": lambda: machine.withdraw(id="q1"),
        "answer": lambda: machine.answer(client="a", id="q1", result=1, fails=False),
        "prompt": lambda: machine.prompt(client="a", number=0),
        "end": lambda: machine.end(does=True),
        "turn_ends": lambda: machine.turn_ends(numbers=[]),
    }
    try:
        for step in [*REACHED[life], "drive", *LEADS[life, then]]:
            before = machine.oracle.life
            if step == "drive":
                assert before == life
                machine.drive(client="a", take=False, mcp=set())
            else:
                steps.get(step, getattr(machine, step))()
            machine.is_what_the_page_says()
        assert machine.oracle.life == then
    finally:
        machine.teardown()


#: A run that a subagent makes longer than its first turn: by step, whether the run is open after the step.
RUN: list[tuple[str, bool]] = [
    ("prompt", True),
    ("turn_begins", True),
    ("task_begins", True),
    ("turn_ends", True),
    ("task_ends", True),
    ("turn_begins", True),
    ("turn_ends", False),
]


@pytest.mark.parametrize("count", range(len(RUN) + 1))
@pytest.mark.parametrize("crashes", [True, False])
def test_a_run_is_open_until_its_subagent_is_done_and_is_reported_if_it_is_cut(count: int, crashes: bool) -> None:
    machine = Ledgers()
    steps: dict[str, Callable[[], None]] = {
        "prompt": lambda: machine.prompt(client="a", number=0),
        "turn_ends": lambda: machine.turn_ends(numbers=[]),
        "task_begins": lambda: machine.task_begins(name="agent", is_backgrounded=True),
        "task_ends": lambda: machine.task_ends(name="agent", how="completed", patch=False),
    }
    try:
        machine.begin(mcp=set(), steps=3)
        for step, is_open in RUN[:count]:
            steps.get(step, getattr(machine, step))()
            machine.is_what_the_page_says()
            assert machine.oracle.life == ("running" if is_open else "idle")
        (machine.crash if crashes else lambda: machine.end(does=True))()
        machine.is_what_the_page_says()
        machine.start()
        machine.is_what_the_page_says()
        machine.initialized()
        assert machine.ledger.life is Life.IDLE, "what an earlier process has begun goes on no more"
    finally:
        machine.teardown()


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["task_begins"], "while a subagent worked in the background"),
        (["task_begins", "task_ends"], "before the turn that the end of a background task brings"),
        (["task_begins", "turn_begins"], "in the middle of a turn"),
        (["task_begins", "task_ends", "turn_begins", "turn_ends"], ""),
    ],
)
def test_a_supervisor_that_was_killed_finds_in_the_journal_where_a_run_was_cut(steps: list[str], words: str) -> None:
    machine = Ledgers()
    try:
        machine.begin(mcp=set(), steps=3)
        for step in steps:
            arguments: dict[str, Any] = {
                "task_begins": {"name": "agent", "is_backgrounded": True},
                "task_ends": {"name": "agent", "how": "completed", "patch": True},
                "turn_ends": {"numbers": []},
            }.get(step, {})
            getattr(machine, step)(**arguments)
        assert machine.ledger.unfinished() == words
        assert review(machine.journal, machine.journal.process_line)[0].unfinished == words
    finally:
        machine.teardown()


def test_a_prompt_behind_a_result_that_names_no_prompt_is_reported_as_owed() -> None:
    """The journal records that the prompt came after the result, so the result cannot have answered it."""
    machine = Ledgers()
    try:
        machine.begin(mcp=set(), steps=3)
        machine.turn_ends(numbers=[])
        machine.prompt(client="a", number=0)
        assert machine.oracle.owed == ["p1"]
        machine.crash()
    finally:
        machine.teardown()


def test_a_prompt_of_a_process_that_has_written_nothing_is_known_after_a_crash() -> None:
    machine = Ledgers()
    try:
        machine.begin(mcp=set(), steps=1)
        machine.drive(client="a", take=False, mcp=set())
        machine.prompt(client="a", number=0)
        machine.end(does=True)
        machine.start()
        machine.crash()
        machine.drive(client="a", take=False, mcp=set())
        machine.prompt(client="a", number=-1)
    finally:
        machine.teardown()


def test_a_prompt_that_the_cli_puts_back_into_its_queue_is_owed_again() -> None:
    machine = Ledgers()
    try:
        machine.begin(mcp=set(), steps=3)
        for _ in range(3):
            machine.prompt(client="a", number=0)
        owed = [machine.oracle.owed]
        for number, state in ((-3, "started"), (-3, "completed"), (-3, "queued"), (-2, "queued")):
            machine.prompt_is(number=number, state=state)
            machine.is_what_the_page_says()
            owed.append(machine.oracle.owed)
        machine.turn_ends(numbers=[])
        machine.is_what_the_page_says()
        assert owed == [["p1", "p2", "p3"]] * 2 + [["p2", "p3"]] + [["p1", "p2", "p3"]] * 2
        assert machine.oracle.owed == ["p2"], "its turn is still to come, and p3 may have been in the one that is over"
        machine.crash()
    finally:
        machine.teardown()


def test_calls_of_a_driver_that_leaves_are_answered_and_its_handshake_is_remembered() -> None:
    """Run a sequence that random scripts seldom produce. The machine compares each step with the tables."""
    machine = Ledgers()
    try:
        machine.begin(mcp={"one"}, steps=3)
        machine.ask(id="q1", body=("one", "tools/list"))
        machine.answer(client="a", id="q1", result=7, fails=False)
        machine.ask(id="q2", body=("one", "tools/call"))
        machine.ask(id="q3", body="hook_callback")
        machine.ask(id="q4", body=("one", "tools/list"))
        assert machine.oracle.open == ["q2", "q3", "q4"]
        machine.leave(client="a")
        machine.is_what_the_page_says()
        assert machine.oracle.open == ["q3"]
        lines = b"".join(block for is_input, block in machine.journal.in_order(1) if is_input).splitlines()
        replies = [json.loads(line)["response"]["response"]["mcp_response"] for line in lines]
        assert [reply.get("result") for reply in replies] == [{"n": 7}, None, {"n": 7}]
        assert replies[1]["error"]["message"] == "no client serves one"
    finally:
        machine.teardown()


def test_a_question_that_comes_again_after_its_answer_did_not_die() -> None:
    machine = Ledgers()
    try:
        machine.begin(mcp=set(), steps=3)
        for id in ("q1", "q2"):
            machine.ask(id=id, body="can_use_tool")
        machine.answer(client="a", id="q1", result=0, fails=False)
        machine.ask(id="q1", body="can_use_tool")
        assert machine.oracle.open == ["q2"]
        machine.crash()
    finally:
        machine.teardown()


@pytest.mark.parametrize("line", NOT_UNDERSTOOD, ids=lambda line: line[:60].decode())
def test_a_line_of_a_driver_that_is_not_understood_is_refused(line: bytes) -> None:
    taken = Ledger().look_at(line, is_driver=True)
    assert taken.verdict is Verdict.REFUSE
    assert taken.reason


@pytest.mark.parametrize(
    "asked", [b"5", b'{"subtype":"can_use_tool","input":%s}' % (b'{"a":' * 2000 + b"1" + b"}" * 2000)]
)
def test_an_answer_to_a_question_that_was_not_understood_is_refused(asked: bytes) -> None:
    ledger = Ledger()
    decoder = Decoder(only=MARKS, on_invalid="return")
    for message in decoder.feed(b'{"type":"control_request","request_id":"q1","request":%s}\n' % asked):
        assert ledger.received(message) is None
    answer = b'{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{}}}\n'
    assert ledger.look_at(answer, is_driver=True).verdict is Verdict.REFUSE
    ledger.process_started()
    assert ledger.look_at(answer, is_driver=True).verdict is Verdict.KNOWN, "it may be one of an earlier process"


@pytest.mark.parametrize("subtype", ["can_use_tool", "hook_callback"])
def test_a_question_that_is_too_long_is_not_kept_and_no_tool_runs_for_it(
    monkeypatch: pytest.MonkeyPatch, subtype: str
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_QUESTION_BYTES", 1000)
    ledger = Ledger()
    text = "x" * 1000
    request = {"subtype": subtype, "tool_name": "T", "input": {"a": text}, "tool_use_id": "t", "callback_id": "h"}
    line = json.dumps({"type": "control_request", "request_id": "q1", "request": request}).encode()
    answer = ledger.received(decode(line))
    assert ledger.open == []
    assert (answer is None) == (subtype == "hook_callback"), "an error of a hook would let the tool run"
    if answer is not None:
        assert json.loads(answer)["response"]["subtype"] == "error"
    late = b'{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{}}}\n'
    assert "too long" in ledger.look_at(late, is_driver=True).reason


def test_an_answer_to_initialize_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "MAX_INITIALIZED_BYTES", 1000)
    ledger = Ledger()
    ledger.received(ControlResponse.success(INITIALIZE_ID, {"a": "x" * 1000}))
    assert ledger.initialized is not None
    assert len(ledger.initialized) < 500
    assert ledger.life is Life.IDLE


def test_a_session_is_idle_when_its_run_is_over_and_not_when_its_first_turn_is() -> None:
    """The subagent continues after the first result, and its end starts another turn."""
    ledger = Ledger()
    ledger.received(ControlResponse.success(INITIALIZE_ID, {}))
    lives: list[Life] = []
    results: list[int] = []
    for message in Decoder(only=MARKS).feed(recordings.load("15_subagent_background").stdout):
        ledger.received(message)
        lives.append(ledger.life)
        if isinstance(message, ResultMessage):
            results.append(len(lives) - 1)
    first, last = results
    assert set(lives[first:last]) == {Life.RUNNING}
    assert lives[last:] == [Life.IDLE] * len(lives[last:])


def test_a_command_in_the_background_may_run_for_ever_and_leaves_its_session_idle() -> None:
    ledger = Ledger()
    ledger.received(ControlResponse.success(INITIALIZE_ID, {}))
    task = {"type": "system", "subtype": "task_started", "task_id": "t", "description": "", "is_backgrounded": True}
    for kind, life in ("local_bash", Life.IDLE), ("local_agent", Life.RUNNING):
        ledger.received(decode(json.dumps({**task, "task_type": kind, "task_id": kind}).encode()))
        assert ledger.life is life
    ledger.process_ended()
    ledger.received(ControlResponse.success(INITIALIZE_ID, {}))
    assert ledger.life is Life.IDLE, "the process after it has no subagents"
