"""Replay each recorded session with a Session as the host: it sends, answers and receives what the recorded host did.

Its callbacks repeat the decisions of the recorded host, and it sends prompts and requests at the recorded places. Every
recording with a standard output is played in memory: each line of the CLI waits for the host's lines before it.
Recordings with control traffic are also played by a child process, the fake CLI of ``claude_wire.testing``: all of them
on asyncio, and those of ``ON_EVERY_LOOP`` (in the long tests, all) on the other loops. ``NOT_SENT`` lists the
intended differences.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec
import pytest

import recordings
from async_backends import ASYNCIO, BACKENDS, TRIO, Backend
from claude_wire import (
    CanUseToolRequest,
    ClaudeOptions,
    ControlRequest,
    Decoder,
    ElicitationRequest,
    HookCallbackRequest,
    HookMatcher,
    InvalidLine,
    MessageStream,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    RequestRefusedError,
    ResultMessage,
    Session,
    TurnError,
    UnfinishedTurnError,
    UserMessage,
    decode,
    open_session,
)
from claude_wire.messages import (
    ControlRequestProgressMessage,
    InitializeRequest,
    InterruptRequest,
    McpMessageRequest,
    UnknownRequest,
)
from claude_wire.testing import Recording, Replay, Step
from each import each
from long_tests import LONG
from same_json import differences

# Recorded sessions as scripts, and a host that repeats with a Session what the recorded host did. These parts differ by
# design, and the comparison allows for them:
#
# * the ids that a host chooses for its requests and its hooks (``callback_id``): the comparison translates them;
# * ``toolUseID``: a Session adds it to each permission, as the TypeScript SDK does;
# * ``NOT_SENT``: lines that a Session never sends; the scripts leave them out;
# * ``NAMED_BY_A_FLAG`` and ``BAD_ANSWER``.


#: Recording -> the reasons why a Session does not send certain lines of the recorded host, in their order.
NO_JSON = "is no JSON object"
NO_PROMPT = "is neither prompt nor request nor answer"
NO_ID = "is a request without an id"
NO_REQUEST = "is no request that a host has"
NO_QUESTION = "answers what was not asked"
NOT_SENT = {
    "08_control": [
        *[NO_REQUEST] * 2,  # set_permission_mode without a mode, no_such_subtype
        NO_REQUEST,  # list_directory
        *[NO_REQUEST] * 4,  # subtypes "", null and 5, and none at all
        NO_QUESTION,
        *[NO_PROMPT] * 3,  # a withdrawal of what was not asked, keep_alive, update_environment_variables
    ],
    "14_bad_assistant_in": [NO_PROMPT],
    "14_bad_blank": [NO_JSON] * 2,
    "14_bad_ctl_noid": [NO_ID],
    "14_bad_ctl_old": [NO_PROMPT],
    "14_bad_deep": [NO_JSON],
    "14_bad_keep_alive": [NO_PROMPT],
    "14_bad_midsession": [NO_JSON],
    "14_bad_num_content": [NO_PROMPT],
    "14_bad_partial_eof": [NO_JSON],
    "14_bad_permission_old": [NO_PROMPT],
    "14_bad_result_in": [NO_PROMPT],
    "14_bad_spaces": [NO_JSON],
    "14_bad_string": [NO_JSON],
    "14_bad_system_in": [NO_PROMPT],
    "14_bad_true": [NO_JSON],
    "14_bad_unknown_type": [NO_PROMPT],
}
#: The recorded host named its MCP server with ``--mcp-config``. A Session names it in ``initialize``.
NAMED_BY_A_FLAG = {"07_mcp", "16_mcp_elicit", "17_sdk_client_full"}
#: The recorded host answered ``{"behavior": "perhaps"}``. A Session rejects this answer of a callback with an error.
BAD_ANSWER = "05_perm_badresp"

NAMES = [name for name in recordings.names() if recordings.load(name).stdout]
WITH_CONTROL = [
    name
    for name in NAMES
    if b'"control_re' in recordings.load(name).stdout or b'"control_re' in recordings.load(name).stdin
]


# --- what was recorded ------------------------------------------------------------------------------------------------


class Action(NamedTuple):
    """A prompt or a request that the host sent on its own initiative."""

    line: dict[str, Any]
    #: The number of messages, without control messages, and of requests that the CLI had written before.
    messages_before: int
    questions_before: int


class Question(NamedTuple):
    """A request of the CLI."""

    request: ControlRequest
    #: The host's answer (None if it did not answer), and the number of host actions before the answer.
    answer: dict[str, Any] | None
    actions_before: int
    withdrawn: bool


class Script(NamedTuple):
    """A recording, without the lines that a Session never sends."""

    name: str
    steps: list[Step]
    actions: list[Action]
    questions: list[Question]
    #: Request id -> the CLI's answer to the host.
    answers: dict[str, dict[str, Any]]
    #: The messages that iterating over the session must yield.
    messages: list[Any]
    #: The reasons why lines were left out.
    left_out: list[str]

    @property
    def initialize(self) -> InitializeRequest | None:
        """The host's ``initialize`` request; None if the first action is another one."""
        first = self.actions[0].line if self.actions else {}
        if first.get("request", {}).get("subtype") != "initialize":
            return None
        request = request_in(first).request
        assert isinstance(request, InitializeRequest)
        return request


def object_in(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def message_in(line: dict[str, Any]) -> Any:
    return decode(json.dumps(line).encode())


def request_in(line: dict[str, Any]) -> ControlRequest:
    message = message_in(line)
    assert isinstance(message, ControlRequest)
    return message


def why_not_sent(line: dict[str, Any] | None, asked: set[str]) -> str | None:
    """Return why a Session does not send this line of a host; None if it does."""
    if line is None:
        return NO_JSON
    match line.get("type"):
        case "user":
            return None if isinstance(message_in(line), UserMessage) else NO_PROMPT
        case "control_request":
            if "request_id" not in line:
                return NO_ID
            return NO_REQUEST if isinstance(request_in(line).request, UnknownRequest) else None
        case "control_response":
            return None if line["response"]["request_id"] in asked else NO_QUESTION
    return NO_PROMPT


def is_for_the_consumer(line: dict[str, Any] | None) -> bool:
    if line is None:
        return True
    if line.get("subtype") == "session_state_changed" and line.get("sdk_host_only"):
        return False
    kind = line.get("type")
    return kind != "keep_alive" and not (isinstance(kind, str) and kind.startswith("control_"))


@functools.cache
def script(name: str) -> Script:
    recorded = recordings.load(name)
    found = Script(name, [], [], [], {}, [], [])
    asked: dict[str, ControlRequest] = {}
    answered: dict[str, tuple[dict[str, Any], int]] = {}
    withdrawn: set[str] = set()
    count = 0
    for step in Recording.from_files(recorded.files, name).steps:
        line = object_in(step.data)
        if step.direction == "in":
            reason = why_not_sent(line, set(asked))
            if reason is not None:
                found.left_out.append(reason)
                continue
            assert line is not None
            if line["type"] == "control_response":
                answered[line["response"]["request_id"]] = line, len(found.actions)
            else:
                found.actions.append(Action(line, count, len(asked)))
        elif line is not None and line.get("type") == "control_request":
            asked[line["request_id"]] = request_in(line)
        elif line is not None and line.get("type") == "control_cancel_request":
            withdrawn.add(line["request_id"])
        elif line is not None and line.get("type") == "control_response":
            found.answers[str(line["response"].get("request_id"))] = line["response"]
        elif step.data.strip() and is_for_the_consumer(line):
            count += 1
        found.steps.append(step)
    for request_id, request in asked.items():
        answer, actions_before = answered.get(request_id, (None, 0))
        found.questions.append(Question(request, answer, actions_before, request_id in withdrawn))
    lines = [object_in(line) for line in recorded.stdout.split(b"\n") if line.strip()]
    decoder = Decoder()
    messages = decoder.feed(recorded.stdout) + decoder.close()
    for line, message in zip(lines, messages, strict=True):
        if is_for_the_consumer(line):
            found.messages.append(message)
    assert len(found.messages) == count
    return found


def callback_ids(recorded: InitializeRequest | None, sent: dict[str, Any]) -> dict[str, str]:
    """Map the recorded hook ids to the ids that a Session chose."""
    found: dict[str, str] = {}
    for event, matchers in ((recorded and recorded.hooks) or {}).items():
        for old, new in zip(matchers, sent["request"]["hooks"][event], strict=True):
            found.update(zip(old.hookCallbackIds, new["hookCallbackIds"], strict=True))
    return found


def with_callback_ids(data: bytes, ids: dict[str, str]) -> bytes:
    """Replace the recorded hook id in an output line with the Session's id."""
    line = object_in(data) if ids and b'"callback_id"' in data else None
    if line is None:
        return data
    old = line["request"]["callback_id"]
    return data.replace(b'"callback_id":"%b"' % old.encode(), b'"callback_id":"%b"' % ids[old].encode(), 1)


# --- the host ---------------------------------------------------------------------------------------------------------


class Server:
    """An MCP server that gives the recorded answers."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self.closed = 0

    def connect(self, send: Callable[[dict[str, Any]], Any]) -> None:
        self.send = send

    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        request = McpMessageRequest(server_name=self._name, message=message)
        payload = await self._host.decision(request)
        response: dict[str, Any] = payload["mcp_response"]
        return response if "method" in message and "id" in message else None

    async def aclose(self) -> None:
        self.closed += 1


class Host:
    """A host that does with a Session what the recorded host did, and keeps the results.

    Args:
        away: perform all actions of the recorded host before iterating over the session.
    """

    def __init__(self, script: Script, away: bool = False) -> None:
        self.script = script
        self._away = away
        self._changed = anyio.Event()
        #: The lines that the Session sent: prompts and requests here, answers in ``answered``.
        self.sent: list[dict[str, Any]] = []
        self.answered: list[dict[str, Any]] = []
        self.received: list[Any] = []
        #: The exception that the iteration raised.
        self.failure: ProcessError | TurnError | None = None
        #: Request id -> the outcome: the typed answer, or the error.
        self.outcomes: dict[str, Any] = {}
        self.asked: set[int] = set()
        self.cancelled: set[int] = set()
        bodies = [question.request.request for question in script.questions]
        named = {body.server_name for body in bodies if isinstance(body, McpMessageRequest)}
        self.servers = {name: Server(self, name) for name in sorted(named)}

    @property
    def callbacks(self) -> dict[str, Any]:
        """The callbacks and MCP servers for the Session."""
        kinds = {type(question.request.request) for question in self.script.questions}
        found: dict[str, Any] = {"mcp_servers": self.servers}
        if CanUseToolRequest in kinds:
            found["can_use_tool"] = self.can_use_tool
        if ElicitationRequest in kinds:
            found["on_elicitation"] = self.elicit
        recorded = self.script.initialize
        if recorded is not None and recorded.hooks:
            found["hooks"] = {
                event: [
                    HookMatcher(
                        *[functools.partial(self.hook, id) for id in matcher.hookCallbackIds],
                        matcher=matcher.matcher,
                        timeout=matcher.timeout,
                        on_failure=matcher.onFailure,
                    )
                    for matcher in matchers
                ]
                for event, matchers in recorded.hooks.items()
            }
        return found

    @property
    def opening(self) -> InitializeRequest:
        """The recorded ``initialize`` request without its callbacks."""
        return msgspec.structs.replace(self.script.initialize or InitializeRequest(), hooks=None, sdkMcpServers=None)

    def changed(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._changed.wait()

    def see_sent(self, line: bytes) -> None:
        message = json.loads(line)
        (self.answered if message["type"] == "control_response" else self.sent).append(message)
        self.changed()

    # --- callbacks

    async def decision(self, request: Any) -> dict[str, Any]:
        """Return the payload of the recorded answer to this request."""
        number = next(
            number
            for number, question in enumerate(self.script.questions)
            if question.request.request == request and number not in self.asked
        )
        self.asked.add(number)
        self.changed()
        question = self.script.questions[number]
        while question.answer is None:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled.add(number)
        await self.until(functools.partial(self.has_sent, question.actions_before))
        response: dict[str, Any] = question.answer["response"]
        payload: dict[str, Any] = response["response"]
        return payload

    async def can_use_tool(self, request: CanUseToolRequest) -> Any:
        payload = await self.decision(request)
        result = CanUseToolRequest.parse_answer(payload)
        if isinstance(result, PermissionResultAllow):
            return request.allow() if result.updatedInput == request.input else request.allow(result.updatedInput)
        if isinstance(result, PermissionResultDeny):
            return request.deny(result.message, interrupt=result.interrupt)
        return payload

    async def hook(self, recorded_id: str, request: HookCallbackRequest) -> Any:
        payload = await self.decision(msgspec.structs.replace(request, callback_id=recorded_id))
        return HookCallbackRequest.parse_answer(payload) if payload else None

    async def elicit(self, request: ElicitationRequest) -> Any:
        return ElicitationRequest.parse_answer(await self.decision(request))

    # --- prompts, requests and messages

    async def run(self, session: Session, *, is_open: bool = False) -> None:
        """Perform all actions, and iterate to the end of the output.

        Args:
            is_open: whether ``initialize``, the first action, was already sent.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._act, session, group, is_open)
            if self._away:
                await self.until(lambda: self.finished)
            try:
                async for message in session:
                    self.received.append(message)
                    self.changed()
            except (ProcessError, TurnError) as error:
                self.failure = error
            group.cancel_scope.cancel()

    @property
    def finished(self) -> bool:
        """Whether everything that the recorded host sent was sent, and all its requests were answered."""
        requests = sum(action.line["type"] == "control_request" for action in self.script.actions)
        answers = sum(question.answer is not None for question in self.script.questions)
        return (
            len(self.sent) == len(self.script.actions)
            and len(self.outcomes) == requests
            and len(self.answered) == answers
            and len(self.asked) == len(self.script.questions)
        )

    def has_sent(self, count: int) -> bool:
        return len(self.sent) >= count

    def has_answered(self, request_id: str) -> bool:
        return any(line["response"]["request_id"] == request_id for line in self.answered)

    def _is_time_for(self, action: Action) -> bool:
        has_come = self._away or len(self.received) >= action.messages_before
        return has_come and len(self.asked) >= action.questions_before

    async def _act(self, session: Session, group: Any, is_open: bool) -> None:
        for number, action in enumerate(self.script.actions):
            if number == 0 and is_open:
                self.outcomes[action.line["request_id"]] = session.info
                self.changed()
                continue
            await self.until(functools.partial(self._is_time_for, action))
            if action.line["type"] == "user":
                await session.query(message_in(action.line))
            else:
                group.start_soon(self._request, session, action.line)
            await self.until(functools.partial(self.has_sent, number + 1))
        await self.until(lambda: self.finished)
        with contextlib.suppress(TypeError):  # raised if the session has no process whose input could end
            await session.end_input()

    async def _request(self, session: Session, line: dict[str, Any]) -> None:
        request: Any = request_in(line).request
        outcome: Any
        try:
            if isinstance(request, McpMessageRequest) and request.server_name in self.servers:
                outcome = await self.servers[request.server_name].send(request.message)
            elif isinstance(request, InitializeRequest) and line is self.script.actions[0].line:
                outcome = await session.initialize(self.opening)
            elif request == InterruptRequest():
                outcome = await session.interrupt()
            else:
                outcome = await session.request(request)
        except RequestRefusedError as error:
            outcome = error
        self.outcomes[line["request_id"]] = outcome
        self.changed()


def check(host: Host) -> None:
    """Compare the host's results with the recording."""
    check_messages(host)
    check_actions(host)
    check_answers(host)
    assert [server.closed for server in host.servers.values()] == [1] * len(host.servers)


def check_messages(host: Host) -> None:
    """Check that exactly the recorded messages arrived, in order."""
    assert len(host.received) == len(host.script.messages)
    recorded_ids = [action.line.get("request_id") for action in host.script.actions]
    own = {recorded: line.get("request_id") for recorded, line in zip(recorded_ids, host.sent, strict=True)}
    for received, recorded in zip(host.received, host.script.messages, strict=True):
        if isinstance(recorded, InvalidLine):
            # Its byte offset differs if earlier ids are longer than the recorded ones.
            assert isinstance(received, InvalidLine)
            assert received.raw == recorded.raw
        elif isinstance(recorded, ControlRequestProgressMessage):
            assert received == msgspec.structs.replace(recorded, request_id=own[recorded.request_id])
        else:
            assert type(received) is type(recorded)
            assert received == recorded


def check_actions(host: Host) -> None:
    """Check that prompts and requests were sent as recorded, in order, and that the answers are the recorded ones."""
    ids = callback_ids(host.script.initialize, host.sent[0]) if host.sent else {}
    found: list[str] = []
    for action, sent in zip(host.script.actions, host.sent, strict=True):
        recorded = json.loads(json.dumps(action.line))
        if "request_id" in recorded:
            recorded["request_id"] = sent["request_id"]
        for matchers in (recorded.get("request", {}).get("hooks") or {}).values():
            for matcher in matchers:
                matcher["hookCallbackIds"] = [ids[id] for id in matcher["hookCallbackIds"]]
        if host.script.name in NAMED_BY_A_FLAG and recorded.get("request", {}).get("subtype") == "initialize":
            recorded["request"]["sdkMcpServers"] = list(host.servers)
        found += differences(message_in(sent), recorded, sent)
    assert found == []
    requests = [action.line for action in host.script.actions if action.line["type"] == "control_request"]
    assert len({line["request_id"] for line in host.sent if "request_id" in line}) == len(requests)
    for line in requests:
        request: Any = request_in(line).request
        outcome, answer = host.outcomes[line["request_id"]], host.script.answers[line["request_id"]]
        if answer["subtype"] == "error":
            assert isinstance(outcome, RequestRefusedError)
            assert (outcome.subtype, outcome.error) == (line["request"]["subtype"], answer["error"])
            assert outcome.error_code == answer.get("error_code")
        elif isinstance(request, McpMessageRequest) and request.server_name in host.servers:
            assert outcome is None
        else:
            typed = type(request).parse_answer(answer.get("response") or {})
            assert type(outcome) is type(typed)
            assert outcome == typed


def check_answers(host: Host) -> None:
    """Check that each request of the CLI got the recorded answer once, and none if the recorded host gave none."""
    by_id = {line["response"]["request_id"]: line for line in host.answered}
    assert len(by_id) == len(host.answered)
    assert set(by_id) == {q.request.request_id for q in host.script.questions if q.answer is not None}
    assert host.cancelled == {n for n, question in enumerate(host.script.questions) if question.answer is None}
    for question in host.script.questions:
        if question.answer is None:
            continue
        sent, recorded = by_id[question.request.request_id], question.answer
        if host.script.name == BAD_ANSWER:
            assert sent["response"]["subtype"] == "error"
            assert "can_use_tool returned dict" in sent["response"]["error"]
            continue
        if isinstance(question.request.request, CanUseToolRequest):
            assert sent["response"]["response"].pop("toolUseID") == question.request.request.tool_use_id
        assert differences(message_in(sent), recorded, sent) == []


# --- in memory --------------------------------------------------------------------------------------------------------


async def play(host: Host, output: Any, together: bool) -> None:
    """Play the CLI: write the recorded output, wait for the host at the recorded places, and end.

    With ``together``, write all lines up to the next wait in one chunk.
    """
    chunk = b""
    own: dict[str, str] = {}
    actions = 0
    for step in host.script.steps:
        if step.direction == "in":
            if chunk:
                await output.send(chunk)
                chunk = b""
            line = json.loads(step.data)
            if line["type"] == "control_response":
                identity = line["response"]["request_id"]
                await host.until(functools.partial(host.has_answered, identity))
            else:
                await host.until(functools.partial(host.has_sent, actions + 1))
                if "request_id" in line:
                    own[line["request_id"]] = host.sent[actions]["request_id"]
                actions += 1
            continue
        data = step.data
        if host.sent:
            data = with_callback_ids(data, callback_ids(host.script.initialize, host.sent[0]))
        if b'"request_id"' in data:
            line = object_in(data) or {}
            identity = str(line.get("response", line).get("request_id"))
            data = data.replace(json.dumps(identity).encode(), json.dumps(own.get(identity, identity)).encode(), 1)
        chunk += data
        if chunk and not together:
            await output.send(chunk)
            chunk = b""
    if chunk:
        await output.send(chunk)
    await output.aclose()


async def in_memory(name: str, together: bool, away: bool) -> None:
    host = Host(script(name), away)
    output, source = anyio.create_memory_object_stream[bytes](0 if not away else 1_000)

    async def send(line: bytes) -> None:
        host.see_sent(line)

    session = Session(MessageStream(source), send, **host.callbacks)
    with output, source:
        async with session, anyio.create_task_group() as group:
            group.start_soon(play, host, output, together)
            await host.run(session)
    assert host.failure is None
    check(host)


every_loop = pytest.mark.parametrize("backend", [ASYNCIO, TRIO], ids=["asyncio", "trio"])
with_control = pytest.mark.parametrize("name", WITH_CONTROL)


@every_loop
@with_control
def test_a_session_in_memory_does_as_the_recorded_host_did(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, False, False)


@each("name", [name for name in NAMES if name not in WITH_CONTROL], str)
def test_prompts_and_messages_go_as_recorded_without_control_traffic(name: str) -> None:
    ASYNCIO.run(in_memory, name, False, False)


@every_loop
@with_control
def test_lines_that_come_in_one_chunk_are_taken_one_after_another(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, True, False)


@every_loop
@with_control
def test_what_is_asked_while_nobody_iterates_is_answered_as_recorded(name: str, backend: Backend) -> None:
    backend.run(in_memory, name, True, True)


# --- with a child process ---------------------------------------------------------------------------------------------


def callback_ids_to_come(recorded: Script) -> dict[str, str]:
    """The callback ids that a Session gives to the recorded hooks in ``initialize``."""

    class Said(Exception):
        pass

    async def main() -> dict[str, str]:
        async def send(line: bytes) -> None:
            raise Said(line)

        host = Host(recorded)
        output, source = anyio.create_memory_object_stream[bytes]()
        with output, source:
            async with Session(MessageStream(source), send, **host.callbacks) as session:
                with pytest.raises(Said) as said:
                    await session.initialize(host.opening)
        return callback_ids(recorded.initialize, json.loads(said.value.args[0]))

    return ASYNCIO.run(main)


def as_played(name: str) -> Recording:
    """The recording for the fake CLI: with the ids of the Session's hooks, and without lines a Session never sends."""
    recorded = script(name)
    ids = callback_ids_to_come(recorded)
    steps = [
        step._replace(data=with_callback_ids(step.data, ids)) if step.direction == "out" else step
        for step in recorded.steps
    ]
    order = [json.dumps([step.seconds, step.direction, len(step.data.removesuffix(b"\n"))]) for step in steps]
    files = {
        "stdout.ndjson": b"".join(step.data for step in steps if step.direction == "out"),
        "stdin.ndjson": b"".join(step.data for step in steps if step.direction == "in"),
        "order.jsonl": "\n".join(order).encode(),
    }
    kept = {file: data for file, data in recordings.load(name).files.items() if file in ("cmd.json", "exit.json")}
    return Recording.from_files({**kept, **files}, name)


async def by_a_child(name: str, path: str, away: bool) -> None:
    host = Host(script(name), away)
    recording = as_played_cached(name)
    stand_in = Replay(recording, writes="blocks" if away else "lines").script(path)
    opening: dict[str, Any] = {"initialize": host.opening} if host.script.initialize is not None else {}
    async with open_session(
        ClaudeOptions(cli_path=stand_in), **opening, **host.callbacks, on_sent=host.see_sent
    ) as session:
        await host.run(session, is_open=True)
    check(host)
    # If the last result is an error, a failing exit code adds nothing, and the session raises no error for it.
    last = recording.stdout[-1:]
    results = [message for message in host.received if isinstance(message, ResultMessage)]
    if last != b"\n":
        assert isinstance(host.failure, UnfinishedTurnError)
    elif recording.exit_code == 0:
        assert host.failure is None
    elif results and results[-1].is_error:
        assert isinstance(host.failure, TurnError)
        assert host.failure.result == results[-1]
    else:
        assert type(host.failure) is ProcessError
        assert host.failure.returncode == recording.exit_code


as_played_cached = functools.cache(as_played)


INITIALIZED = [name for name in WITH_CONTROL if script(name).initialize is not None]
#: Recordings to play on every loop: permission questions, hooks, an MCP server, and many requests. The short tests play
#: the other recordings on asyncio only, because these four cover what depends on the loop.
ON_EVERY_LOOP = ["05_perm_cancel", "06_hooks_events", "07_mcp_viainit", "08_control"]


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a script")
@pytest.mark.parametrize("away", [False, True], ids=["iterating", "away"])
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, id=f"{name}-{backend.id}")
        for name in INITIALIZED
        for backend in BACKENDS
        if backend is ASYNCIO or name in ON_EVERY_LOOP or LONG
    ],
)
def test_a_session_with_a_child_does_as_the_recorded_host_did(
    name: str, away: bool, backend: Backend, tmp_path: Path
) -> None:
    as_played_cached(name)  # fill the cache first, because this runs its own event loop
    backend.run(by_a_child, name, str(tmp_path / "claude"), away)


# --- recorded lines that are not compared -----------------------------------------------------------------------------


def test_what_no_session_sends_is_what_is_listed() -> None:
    left_out = {name: script(name).left_out for name in NAMES}
    assert {name: reasons for name, reasons in left_out.items() if reasons} == NOT_SENT


def test_the_recordings_have_control_traffic_of_every_kind() -> None:
    """Otherwise the replays would cover less than they claim."""
    questions = [question for name in NAMES for question in script(name).questions]
    kinds = {type(question.request.request) for question in questions}
    assert kinds == {CanUseToolRequest, HookCallbackRequest, McpMessageRequest, ElicitationRequest}
    assert sum(question.answer is not None for question in questions) > 60
    assert sum(question.withdrawn for question in questions) == 1
    assert sum(question.answer is None for question in questions) == 2
    requests = [request_in(a.line).request for name in NAMES for a in script(name).actions if "request" in a.line]
    assert len({type(request) for request in requests}) > 40
