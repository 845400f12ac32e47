"""Keep track of one managed session's open questions, prompts and driver, without I/O.

The session passes two things to its :class:`Ledger`: the CLI's messages whose kind is in :data:`MARKS`, and each line
that a client sends. The ledger decides which of the clients' lines go to the CLI.

The ledger's :class:`~claude_wire.protocol.HostProtocol` keeps the questions, prompts and turns. A question stays open
while no client is attached, and each new driver gets it. Once the journal has an answer, the question is settled.

A session has at most one driver, the only client that may send lines. All other clients are viewers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, cast

import msgspec

from claude_wire.codec import decode, encode
from claude_wire.codec.kind_names import KindName
from claude_wire.errors import InvalidLineError
from claude_wire.messages import (
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    HookCallbackRequest,
    InvalidLine,
    McpMessageRequest,
    McpMessageResponse,
    UnknownMessage,
    UserMessage,
)
from claude_wire.protocol import CallbackWanted, HostProtocol, Question
from claude_wire.protocol.background import TASK_KINDS
from claude_wire.support import LONGEST_ID, Ids, plain_object, short_id
from claude_wire_kit.supervisor.frames import END_INPUT, INITIALIZE_ID, Ended, Life, Serves

#: With this many bytes of open questions, or this many questions, the supervisor stops reading from the CLI.
MAX_OPEN_BYTES = 64 * 1024 * 1024
MAX_OPEN = 4096
#: ``supervisor_attached`` lists the ids of at most this many of the newest settled questions.
MAX_SETTLED = 1024
#: Maximum size in bytes of one question. A larger one gets an error answer, because ``supervisor_attached`` must have
#: room for all open questions.
MAX_QUESTION_BYTES = 16 * 1024 * 1024
#: Maximum size in bytes of the CLI's answer to ``initialize``, for the same reason.
MAX_INITIALIZED_BYTES = 8 * 1024 * 1024
#: Maximum size in bytes of all MCP handshake messages kept for one session.
MAX_HANDSHAKE_BYTES = 1024 * 1024
#: The ledger keeps the results of these MCP methods, because the CLI calls each of them once. The servers of later
#: drivers would return the same results.
HANDSHAKE = frozenset(("initialize", "tools/list", "prompts/list", "resources/list", "resources/templates/list"))
#: The kinds of lines that a ledger decodes. All other lines stay bytes.
MARKS: tuple[KindName, ...] = (
    "control_request",
    "control_response",
    "control_cancel_request",
    "result",
    "system/init",
    "system/status",
    "command_lifecycle",
    *TASK_KINDS,
)
#: Types of client lines that change the ledger. The ledger refuses such a line if it cannot decode the line, because
#: the CLI might still understand the line, for example as a prompt that the ledger does not know.
RULED: dict[str, type[Any]] = {
    "user": UserMessage,
    "control_request": ControlRequest,
    "control_response": ControlResponse,
}
#: JSON-RPC's code for an error in the server itself.
_NO_SERVER = -32001


class Verdict(Enum):
    """What happens to a client's line."""

    #: The line goes into the journal, and to the CLI.
    WRITE = "write"
    #: The line is a prompt whose uuid was sent before, or an answer to a settled question. The client gets
    #: ``Accepted``, but the CLI does not get the line.
    KNOWN = "known"
    #: The client gets ``Refused``: it is a viewer, or its line cannot be decoded, or the line is a prompt without a
    #: uuid, an ``initialize``, or an answer to a question that was too large to keep.
    REFUSE = "refuse"
    #: The line is :data:`END_INPUT`: close the CLI's input.
    END_INPUT = "end input"


class Taken(NamedTuple):
    """The verdict on a client's line, the reason for a refusal, and the decoded message."""

    verdict: Verdict
    reason: str = ""
    message: Any = None


class Ledger:
    """One session's open and settled questions and prompts.

    Args:
        declared: MCP server -> method of its handshake -> the result to send while no client serves it.
    """

    def __init__(self, declared: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.protocol: HostProtocol = HostProtocol()
        #: The CLI's answer to ``initialize`` as JSON, typically 17 KB. As a decoded message it would take 42 KB.
        self.initialized: bytes | None = None
        # Ids of questions that were too large to keep.
        self._not_kept = Ids()
        # True after the CLI wrote a line that could not be decoded and may be a question.
        self._has_missed = False
        self._prompts = Ids()
        self._serves: Serves | None = None
        self._was_driven = False
        # Server -> the CLI's own messages of the MCP handshake.
        self.handshakes: dict[str, list[dict[str, Any]]] = {}
        # (Server, method) -> the result of the handshake's request.
        self._answers: dict[tuple[str, Any], Any] = {
            (server, method): result
            for server, results in (declared or {}).items()
            for method, result in results.items()
        }
        # Size in bytes of the kept messages and results: in total, and by (server, method). The CLI's own messages
        # count under the method None. Declared results do not count.
        self._handshake_bytes = 0
        self._handshake_sizes: dict[tuple[str, Any], int] = {}

    # --- state

    @property
    def life(self) -> Life:
        """The session's state while its process is running."""
        if self.initialized is None:
            return Life.STARTING
        if self.protocol.questions:
            return Life.ASKING
        return Life.RUNNING if self.works() else Life.IDLE

    @property
    def open(self) -> list[ControlRequest]:
        """The open questions, oldest first."""
        return [ControlRequest(question.id, question.body) for question in self.protocol.questions.open]

    @property
    def last_settled(self) -> list[str]:
        """Ids of the newest questions that no longer need an answer."""
        return self.protocol.questions.settled.strings()[-MAX_SETTLED:]

    def works(self) -> bool:
        """Return True while a turn is under way, a prompt is waiting, or a subagent is working in the background."""
        return bool(self.unfinished())

    def unfinished(self) -> str:
        """Describe the interruption if the output ended now, such as "in the middle of a turn". Empty between runs."""
        return self.protocol.run.unfinished()

    @property
    def is_full(self) -> bool:
        """Return True if so many questions are open that the supervisor must not read from the CLI."""
        questions = self.protocol.questions
        return len(questions) >= MAX_OPEN or questions.open_bytes >= MAX_OPEN_BYTES

    @property
    def owed(self) -> list[str]:
        """The uuids of prompts without a result."""
        return self.protocol.run.owed

    # --- messages from the CLI

    def received(self, message: Any) -> bytes | None:
        """Handle a message from the CLI. If the supervisor itself answers it, return the answer as a line."""
        if isinstance(message, ControlResponse):
            if message.request_id == INITIALIZE_ID:
                line = encode(message)[:-1]
                if len(line) > MAX_INITIALIZED_BYTES:
                    what = f"the answer to initialize has {len(line):,} bytes; {MAX_INITIALIZED_BYTES:,} are kept"
                    line = encode(ControlResponse.failure(INITIALIZE_ID, what))[:-1]
                self.initialized = line
            return None  # the requests listed in this answer arrived earlier, as lines
        if is_missed(message):
            self._has_missed = True
            return None
        if isinstance(message, ControlRequest) and not isinstance(message.request_id, (str, int, float)):
            return None  # a request without an id cannot be answered
        for event in self.protocol.receive(message):
            if isinstance(event, CallbackWanted):
                return self._asked(event.question)
        return None

    def _asked(self, question: Question) -> bytes | None:
        if question.problem or question.size > MAX_QUESTION_BYTES:
            self.protocol.send_answer(question)
            self._not_kept.add(question.id)
            if isinstance(question.body, HookCallbackRequest):
                return None  # after an error answer the CLI would run the tool; without an answer it refuses the tool
            what = f"the request has {question.size:,} bytes; a supervisor keeps {MAX_QUESTION_BYTES:,}"
            return encode(ControlResponse.failure(question.id, question.problem or what))
        if isinstance(question.body, McpMessageRequest):
            self._remember_handshake(question.body)
            return self._answer_for_nobody(question)
        return None

    def _answer_for_nobody(self, question: Question) -> bytes | None:
        """Return the answer to an MCP request for a server that no driver runs, and mark the request as answered. None
        if a driver must answer.
        """
        body = question.body
        if not isinstance(body, McpMessageRequest) or self._is_served(body.server_name):
            return None
        method, rpc_id = body.message.get("method"), body.message.get("id")
        known = isinstance(method, str) and (body.server_name, method) in self._answers
        if not self._was_driven and not known:
            return None  # the request waits for the first driver
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": rpc_id}
        if rpc_id is None:
            response = {"jsonrpc": "2.0", "result": {}}
        elif known:
            response["result"] = self._answers[body.server_name, method]
        else:
            response["error"] = {"code": _NO_SERVER, "message": f"no client serves {body.server_name}"}
        self.protocol.send_answer(question)
        return encode(ControlResponse.success(question.id, McpMessageResponse(mcp_response=response)))

    def _is_served(self, server_name: str) -> bool:
        return self._serves is not None and server_name in self._serves.mcp

    def process_started(self) -> None:
        """Handle the start of a new CLI. Its questions may reuse the ids of the previous CLI's questions."""
        self.protocol.questions.settled = Ids()
        self._not_kept, self._has_missed = Ids(), False

    def process_ended(self, exit_code: int | None = None) -> Ended:
        """Handle the CLI's exit. Return what the exit left unfinished, except the tool calls."""
        self.initialized = None
        unfinished, owed = self.unfinished(), self.owed
        died = [short_id(str(question.id)) for question in self.protocol.end()]
        return Ended(exit_code=exit_code, unfinished=unfinished, owed=owed, died=died)

    # --- lines from clients

    def look_at(self, line: bytes, *, is_driver: bool) -> Taken:
        """Decide what happens to a client's line. Changes no state; call :meth:`written` after writing it."""
        if not is_driver:
            return Taken(Verdict.REFUSE, "a viewer sends nothing: attach with role driver")
        try:
            message: Any = decode(line)
            fields = plain_object(line)
        except InvalidLineError as error:
            return Taken(Verdict.REFUSE, f"the line is not a message: {error.line.reason}")
        except (ValueError, RecursionError) as error:
            return Taken(Verdict.REFUSE, f"the line is not a message: {error}")
        kind = fields.get("type")
        if kind == END_INPUT:
            return Taken(Verdict.END_INPUT)
        if not isinstance(kind, str) or kind.startswith("supervisor_"):
            return Taken(Verdict.REFUSE, "the line is not a message: it has no type that a CLI knows")
        if kind in RULED and not isinstance(message, RULED[kind]):
            reason = getattr(message, "reason", "") or "it is not understood"
            return Taken(Verdict.REFUSE, f"the line is not a valid {kind}: {reason}")
        if isinstance(message, UserMessage):
            if not message.uuid or not isinstance(message.uuid, str):
                return Taken(
                    Verdict.REFUSE, "a prompt needs a uuid, so that it can be sent again after a lost connection"
                )
            if len(message.uuid) > LONGEST_ID:
                return Taken(Verdict.REFUSE, f"the uuid of a prompt has at most {LONGEST_ID} characters")
            if message.uuid in self._prompts:
                return Taken(Verdict.KNOWN)
        elif isinstance(message, ControlResponse):
            if not isinstance(message.request_id, (str, int, float)):
                return Taken(Verdict.REFUSE, "an answer needs the request_id of its question")
            if self.protocol.questions.find(message.request_id) is None:
                if message.request_id in self._not_kept:
                    return Taken(Verdict.REFUSE, "the question was too long, and was not kept")
                if self._has_missed and message.request_id not in self.protocol.questions.settled:
                    return Taken(Verdict.REFUSE, "no question has this request_id; one of the CLI was not understood")
                return Taken(Verdict.KNOWN)
        elif isinstance(message, ControlRequest) and _is_initialize(fields):
            return Taken(Verdict.REFUSE, "the supervisor has sent initialize; its answer is in that to attach")
        return Taken(Verdict.WRITE, message=message)

    def written(self, message: Any) -> None:
        """Handle a line to the CLI after the journal has it: a prompt waits for a result, an answer settles a question.

        Args:
            message: the decoded line.
        """
        if isinstance(message, UserMessage):
            self.remember_prompts([message.uuid] if message.uuid else [])
            self.protocol.send_prompt(message.uuid, 0.0)
        elif isinstance(message, ControlResponse):
            question = self.protocol.questions.find(message.request_id)
            if question is not None:  # unless the supervisor answered the question itself
                self._remember_answer(question, message)
                self.protocol.send_answer(question)

    def remember_prompts(self, uuids: Iterable[str]) -> None:
        """Remember the uuids of prompts in the journal. If a client sends one again, :meth:`look_at` returns KNOWN."""
        for uuid in uuids:
            self._prompts.add(uuid)

    # --- the driver

    def drive(self, serves: Serves | None) -> Iterator[bytes]:
        """Replace the driver. Yields answers to the open MCP requests for servers that the new driver does not run.

        Args:
            serves: the new driver's hooks and MCP servers; None for no driver.
        """
        self._serves = serves
        self._was_driven |= serves is not None
        for question in self.protocol.questions.open:
            line = self._answer_for_nobody(question)
            if line is not None:
                yield line

    def _remember_handshake(self, request: McpMessageRequest) -> None:
        method = request.message.get("method")
        if method in ("initialize", "notifications/initialized"):
            begins = method == "initialize"
            if self._has_room((request.server_name, None), request.message, replaces=begins):
                begun = [] if begins else self.handshakes.get(request.server_name, [])
                self.handshakes[request.server_name] = [*begun, request.message]

    def _remember_answer(self, question: Question, answer: ControlResponse) -> None:
        body = question.body
        if not isinstance(body, McpMessageRequest) or not isinstance(answer.response, ControlSuccess):
            return
        method = body.message.get("method")
        response = (answer.response.response or {}).get("mcp_response")
        if (
            isinstance(method, str)
            and method in HANDSHAKE
            and isinstance(response, dict)
            and "result" in response
            and self._has_room((body.server_name, method), response, replaces=True)
        ):
            self._answers[body.server_name, method] = response["result"]

    def _has_room(self, key: tuple[str, Any], value: Any, *, replaces: bool) -> bool:
        """Reserve room for a value, below :data:`MAX_HANDSHAKE_BYTES`. Return False if there is no room.

        Args:
            replaces: free the room that the key's earlier values take.
        """
        before = self._handshake_sizes.get(key, 0)
        size = len(msgspec.json.encode((key, value))) + (0 if replaces else before)
        if self._handshake_bytes - before + size > MAX_HANDSHAKE_BYTES:
            return False
        self._handshake_bytes += size - before
        self._handshake_sizes[key] = size
        return True


def is_missed(message: Any) -> bool:
    """Return True if a message may be a question from the CLI that could not be decoded."""
    return isinstance(message, InvalidLine) or (
        isinstance(message, UnknownMessage) and message.type == "control_request"
    )


def _is_initialize(fields: Mapping[str, Any]) -> bool:
    request = fields.get("request")
    return isinstance(request, dict) and cast("dict[str, Any]", request).get("subtype") == "initialize"
