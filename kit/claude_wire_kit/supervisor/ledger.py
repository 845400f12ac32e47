"""Follow the open questions, the prompts and the driver of one managed session. Does no I/O.

:class:`Ledger` sees each message of the CLI whose type is in :data:`MARKS`, and each line of a client before the line
is written. Knows control messages and prompts, in both directions; not journals, processes or sockets.

Each question of the CLI (a ``control_request``) is in one state, and :data:`QUESTION` is its whole table:

==========  =================================================================================================
OPEN        The CLI waits for an answer. Each new driver gets the question. Without a client, the question stays open.
ANSWERED    The journal has an answer, which goes to the CLI. The supervisor drops any other answer.
WITHDRAWN   The CLI no longer wants an answer. The supervisor drops an answer that still comes.
DIED        The process ended without an answer.
==========  =================================================================================================

A session has at most one driver, the client that may send lines. All other clients are viewers. :data:`DRIVER` is the
table of that role: whether there is a driver, and which role a client gets that asks to drive.

:class:`~claude_wire_kit.supervisor.frames.Life` is the state of a session in lists, derived from all this.
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
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    ControlSuccess,
    HookCallbackRequest,
    InvalidLine,
    McpMessageRequest,
    McpMessageResponse,
    ResultMessage,
    UnknownMessage,
    UserMessage,
)
from claude_wire.process.turn import Turn
from claude_wire.protocol.background import TASK_KINDS, TASK_MARKS, Background
from claude_wire.support import LONGEST_ID, Ids, Key, key_of, plain_object
from claude_wire_kit.supervisor.frames import END_INPUT, INITIALIZE_ID, Life, Serves

__all__ = [
    "DRIVER",
    "MARKS",
    "QUESTION",
    "Become",
    "DriverEvent",
    "Ledger",
    "Question",
    "QuestionEvent",
    "Verdict",
    "is_missed",
]

#: Bytes of open questions above which nothing more is read from the CLI, and their most.
MAX_OPEN_BYTES = 64 * 1024 * 1024
MAX_OPEN = 4096
#: Ids of settled questions in an answer to attach: the last ones.
MAX_SETTLED = 1024
#: Bytes of one question. A longer one is not kept: the answer to ``supervisor_attached`` has all that are open.
MAX_QUESTION_BYTES = 16 * 1024 * 1024
#: Bytes of the answer to ``initialize`` that are kept, for the same reason.
MAX_INITIALIZED_BYTES = 8 * 1024 * 1024
#: Bytes of what is remembered of the handshakes of all MCP servers of a session.
MAX_HANDSHAKE_BYTES = 1024 * 1024
#: MCP requests whose answers are remembered: they are the same each time, and the CLI asks once.
HANDSHAKE = frozenset(("initialize", "tools/list", "prompts/list", "resources/list", "resources/templates/list"))
#: Kinds of lines that a ledger looks at. All other lines stay bytes.
MARKS: tuple[KindName, ...] = (
    "control_request",
    "control_response",
    "control_cancel_request",
    "result",
    "system/init",
    "command_lifecycle",
    *TASK_KINDS,
)
#: Types of lines that the rules of the ledger are about. A line of such a type that is not understood is refused: it
#: may be more to the CLI than it is to us.
RULED: dict[str, type[Any]] = {
    "user": UserMessage,
    "control_request": ControlRequest,
    "control_response": ControlResponse,
}
#: JSON-RPC's code for an error of the server's own.
_NO_SERVER = -32001


class Question(Enum):
    """The state of a question of the CLI; see the module's table."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    DIED = "died"


class QuestionEvent(Enum):
    """What happens to a question."""

    ANSWER = "answer"
    WITHDRAW = "withdraw"
    END = "end"


#: By state, what each event makes of a question. An event that is not listed changes nothing.
QUESTION: dict[Question, dict[QuestionEvent, Question]] = {
    Question.OPEN: {
        QuestionEvent.ANSWER: Question.ANSWERED,
        QuestionEvent.WITHDRAW: Question.WITHDRAWN,
        QuestionEvent.END: Question.DIED,
    },
    Question.ANSWERED: {},
    Question.WITHDRAWN: {},
    Question.DIED: {},
}


class DriverEvent(Enum):
    """What happens to the role of the driver."""

    ASK = "ask"
    TAKE = "take"
    LEAVE = "leave"


class Become(Enum):
    """What becomes of the client that asks for the role, and of the driver that is there."""

    DRIVER = "driver"
    REFUSED = "refused"
    REPLACES = "replaces"
    NOBODY = "nobody"


#: By whether there is a driver, what each event leads to. LEAVE is told of the driver alone.
DRIVER: dict[bool, dict[DriverEvent, Become]] = {
    False: {DriverEvent.ASK: Become.DRIVER, DriverEvent.TAKE: Become.DRIVER},
    True: {DriverEvent.ASK: Become.REFUSED, DriverEvent.TAKE: Become.REPLACES, DriverEvent.LEAVE: Become.NOBODY},
}


class Verdict(Enum):
    """What is done with a line of a client."""

    #: It goes into the journal, and to the CLI.
    WRITE = "write"
    #: It was taken before (a prompt with this uuid), or is no longer wanted (an answer to a settled question). It is
    #: acknowledged and not written.
    KNOWN = "known"
    #: It is refused: from a viewer, a prompt without uuid, ``initialize``, an answer without a question, or a line that
    #: is not understood.
    REFUSE = "refuse"
    #: The input of the CLI ends.
    END_INPUT = "end input"


class Taken(NamedTuple):
    """What is to be done with a line of a client, the reason if it is refused, and the message that it is."""

    verdict: Verdict
    reason: str = ""
    message: Any = None


class _Open(NamedTuple):
    message: ControlRequest
    size: int


class Ledger:
    """What is open in one session, and what was settled.

    Args:
        declared: by MCP server and method of its handshake, the result that is given while nobody serves it.
    """

    __slots__ = (
        "_answers",
        "_handshake_bytes",
        "_handshake_sizes",
        "_handshakes",
        "_has_missed",
        "_not_kept",
        "_open",
        "_open_bytes",
        "_prompts",
        "_serves",
        "_was_driven",
        "background",
        "initialized",
        "settled",
        "turn",
    )

    def __init__(self, declared: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.turn: Turn = Turn()
        self.background: Background = Background()
        #: The answer of the CLI to ``initialize``, once it has come, in JSON: of its 17 KB the message makes 42.
        self.initialized: bytes | None = None
        self._open: dict[Key, _Open] = {}
        self._open_bytes = 0
        self.settled: Ids = Ids()
        # Questions that were too long to keep; and whether the process has asked a question that we did not understand.
        self._not_kept = Ids()
        self._has_missed = False
        self._prompts = Ids()
        self._serves: Serves | None = None
        self._was_driven = False
        # By server: the CLI's own messages, and the answers to them by method.
        self._handshakes: dict[str, list[dict[str, Any]]] = {}
        self._answers: dict[tuple[str, Any], Any] = {
            (server, method): result
            for server, results in (declared or {}).items()
            for method, result in results.items()
        }
        # Bytes of both, without what was declared; and how many of them by server and method (None: its handshake).
        self._handshake_bytes = 0
        self._handshake_sizes: dict[tuple[str, Any], int] = {}

    # --- what there is

    @property
    def life(self) -> Life:
        """What a session does whose process runs."""
        if self.initialized is None:
            return Life.STARTING
        if self._open:
            return Life.ASKING
        return Life.RUNNING if self.works() else Life.IDLE

    @property
    def open(self) -> list[ControlRequest]:
        """The questions that are open, the oldest first."""
        return [question.message for question in self._open.values()]

    @property
    def last_settled(self) -> list[str]:
        """Ids of the newest questions that no longer need an answer."""
        return self.settled.strings()[-MAX_SETTLED:]

    def works(self) -> bool:
        """Whether a run goes on: a turn is under way or due, or a subagent works in the background."""
        return bool(self.unfinished())

    def unfinished(self) -> str:
        """Where the run would end if the output ended now, in words; nothing if that is between runs."""
        return self.turn.unfinished() or self.background.unfinished()

    @property
    def is_full(self) -> bool:
        """Whether so many questions are open that nothing more is read from the CLI."""
        return len(self._open) >= MAX_OPEN or self._open_bytes >= MAX_OPEN_BYTES

    @property
    def owed(self) -> list[str]:
        """The uuids of the prompts without a result."""
        return self.turn.asked

    # --- what the CLI says

    def received(self, message: Any) -> bytes | None:
        """Note a message of the CLI. Returns the line that answers it, if no client has to."""
        if isinstance(message, ControlRequest):
            return self._asked(message)
        if isinstance(message, ControlCancelRequest):
            self._close(message.request_id, QuestionEvent.WITHDRAW)
        elif isinstance(message, ControlResponse):
            if message.request_id == INITIALIZE_ID:
                line = encode(message)[:-1]
                if len(line) > MAX_INITIALIZED_BYTES:
                    what = f"the answer to initialize has {len(line):,} bytes; {MAX_INITIALIZED_BYTES:,} are kept"
                    line = encode(ControlResponse.failure(INITIALIZE_ID, what))[:-1]
                self.initialized = line
        elif is_missed(message):
            self._has_missed = True
        elif isinstance(message, TASK_MARKS):
            self.background.see(message, in_turn=self.turn.open)
        else:
            self.turn.see((message,))
            if isinstance(message, ResultMessage):
                self.background.turn_ended(takes_one_up=False)
        return None

    def _asked(self, request: ControlRequest) -> bytes | None:
        id = request.request_id
        if not isinstance(id, (str, int, float)) or key_of(id) in self._open or id in self.settled:
            return None  # without an id nobody could answer it; or it came before
        line = encode(request)
        if len(line) > MAX_QUESTION_BYTES:
            self._not_kept.add(id)
            if isinstance(request.request, HookCallbackRequest):
                return None  # an error would let the tool run; without an answer the CLI refuses it in the end
            what = f"the request has {len(line):,} bytes; a supervisor keeps {MAX_QUESTION_BYTES:,}"
            return encode(ControlResponse.failure(id, what))
        self._open[key_of(id)] = _Open(request, len(line))
        self._open_bytes += len(line)
        if isinstance(request.request, McpMessageRequest):
            self._remember_handshake(request.request)
            return self._answer_for_nobody(request)
        return None

    def _answer_for_nobody(self, request: ControlRequest) -> bytes | None:
        """The answer to an MCP request of a server that no driver serves. It is settled by that."""
        body = request.request
        if not isinstance(body, McpMessageRequest) or self._is_served(body.server_name):
            return None
        method, rpc_id = body.message.get("method"), body.message.get("id")
        known = isinstance(method, str) and (body.server_name, method) in self._answers
        if not self._was_driven and not known:
            return None  # it waits for the first driver
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": rpc_id}
        if rpc_id is None:
            response = {"jsonrpc": "2.0", "result": {}}
        elif known:
            response["result"] = self._answers[body.server_name, method]
        else:
            response["error"] = {"code": _NO_SERVER, "message": f"no client serves {body.server_name}"}
        self._close(request.request_id, QuestionEvent.ANSWER)
        return encode(ControlResponse.success(request.request_id, McpMessageResponse(mcp_response=response)))

    def _is_served(self, server_name: str) -> bool:
        return self._serves is not None and server_name in self._serves.mcp

    def process_started(self) -> None:
        """Another process has begun, whose questions may have the ids of earlier ones."""
        self.settled, self._not_kept, self._has_missed = Ids(), Ids(), False

    def process_ended(self) -> list[ControlRequest]:
        """The process has ended. Returns the questions that died with it."""
        died = self.open
        for request in died:
            self._close(request.request_id, QuestionEvent.END)
        self.initialized = None
        self.turn, self.background = Turn(), Background()
        return died

    def _close(self, id: Any, event: QuestionEvent) -> bool:
        """Whether the question was open, and is settled now."""
        question = self._question_of(id)
        if question is None:
            return False
        del self._open[key_of(id)]
        assert event in QUESTION[Question.OPEN]
        self._open_bytes -= question.size
        self.settled.add(id)
        return True

    # --- what a client says

    def look_at(self, line: bytes, *, is_driver: bool) -> Taken:
        """What is to be done with a line of a client. Changes nothing: :meth:`written` does, if that is to write it."""
        if not is_driver:
            return Taken(Verdict.REFUSE, "a viewer sends nothing: attach with role driver")
        try:
            message: Any = decode(line)
            fields = plain_object(line)
        except InvalidLineError as error:
            return Taken(Verdict.REFUSE, f"the line is no message: {error.line.reason}")
        except (ValueError, RecursionError) as error:
            return Taken(Verdict.REFUSE, f"the line is no message: {error}")
        kind = fields.get("type")
        if kind == END_INPUT:
            return Taken(Verdict.END_INPUT)
        if not isinstance(kind, str) or kind.startswith("supervisor_"):
            return Taken(Verdict.REFUSE, "the line is no message: it has no type that a CLI knows")
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
            if self._question_of(message.request_id) is None:
                if message.request_id in self._not_kept:
                    return Taken(Verdict.REFUSE, "the question was too long, and was not kept")
                if self._has_missed and message.request_id not in self.settled:
                    return Taken(Verdict.REFUSE, "no question has this request_id; one of the CLI was not understood")
                return Taken(Verdict.KNOWN)
        elif isinstance(message, ControlRequest) and _is_initialize(fields):
            return Taken(Verdict.REFUSE, "the supervisor has sent initialize; its answer is in that to attach")
        return Taken(Verdict.WRITE, message=message)

    def written(self, taken: Taken, line: bytes) -> None:
        """A line is complete in the journal: a prompt is owed its result, and an answer settles its question."""
        message = taken.message
        if isinstance(message, UserMessage):
            assert message.uuid
            self._prompts.add(message.uuid)
            self.turn.sent(line)
        elif isinstance(message, ControlResponse):
            question = self._question_of(message.request_id)
            assert question is not None
            self._remember_answer(question.message, message)
            self._close(message.request_id, QuestionEvent.ANSWER)

    def remember_prompts(self, uuids: Iterable[str]) -> None:
        """These prompts are in the journal already."""
        for uuid in uuids:
            self._prompts.add(uuid)

    def _question_of(self, id: Any) -> _Open | None:
        return self._open.get(key_of(id)) if isinstance(id, (str, int, float)) else None

    # --- the driver

    def drive(self, serves: Serves | None) -> Iterator[bytes]:
        """Another driver serves from now on, or none. Gives the lines for calls that nobody serves any more."""
        self._serves = serves
        self._was_driven |= serves is not None
        for question in list(self._open.values()):
            line = self._answer_for_nobody(question.message)
            if line is not None:
                yield line

    @property
    def handshakes(self) -> dict[str, list[dict[str, Any]]]:
        """By MCP server, the messages by which the CLI has opened the conversation with it: for another driver's."""
        return self._handshakes

    def _remember_handshake(self, request: McpMessageRequest) -> None:
        method = request.message.get("method")
        if method in ("initialize", "notifications/initialized"):
            begins = method == "initialize"
            if self._has_room((request.server_name, None), request.message, replaces=begins):
                begun = [] if begins else self._handshakes.get(request.server_name, [])
                self._handshakes[request.server_name] = [*begun, request.message]

    def _remember_answer(self, question: ControlRequest, answer: ControlResponse) -> None:
        body = question.request
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
        """Whether there is room for a value, in place of those of the same key or beside them. If so, it is counted."""
        before = self._handshake_sizes.get(key, 0)
        size = len(msgspec.json.encode((key, value))) + (0 if replaces else before)
        if self._handshake_bytes - before + size > MAX_HANDSHAKE_BYTES:
            return False
        self._handshake_bytes += size - before
        self._handshake_sizes[key] = size
        return True


def is_missed(message: Any) -> bool:
    """Whether a line of the CLI may be a question, and was not understood."""
    return isinstance(message, InvalidLine) or (
        isinstance(message, UnknownMessage) and message.type == "control_request"
    )


def _is_initialize(fields: Mapping[str, Any]) -> bool:
    request = fields.get("request")
    return isinstance(request, dict) and cast("dict[str, Any]", request).get("subtype") == "initialize"
