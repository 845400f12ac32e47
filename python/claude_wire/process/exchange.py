"""Write a host's lines to its child, and track turns in the input and the output.

If the output ends in the middle of a turn, :class:`Exchange` raises :class:`UnfinishedTurnError`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from claude_wire.errors import HandleError, ProcessError, UnfinishedTurnError
from claude_wire.messages import CommandLifecycleMessage, InitMessage, ResultMessage
from claude_wire.process.child import Child, Settings
from claude_wire.protocol.run import ENDING, OPENING, Run
from claude_wire.support.errors import describe_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

M = TypeVar("M", ResultMessage, CommandLifecycleMessage)


class _Sent(msgspec.Struct):
    """The fields of a sent line that show whether it is a prompt."""

    type: Any = None
    uuid: Any = None
    # In the dialect JSON_RPC, a prompt has these fields instead.
    method: Any = None
    id: Any = None


_decode_sent = msgspec.json.Decoder(_Sent).decode


#: Types of messages that may begin or end a turn.
_TURN_TYPES = ENDING | OPENING


def prompts_of(lines: bytes) -> Iterator[str | None]:
    """Yield the uuid of each prompt among an agent's input lines, or None for a prompt without a uuid."""
    for line in lines.split(b"\n"):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # not a prompt; sent unchanged
            sent = _decode_sent(line)
            if sent.type == "user" or sent.method == "run":
                uuid = sent.uuid if sent.type == "user" else sent.id
                yield uuid if isinstance(uuid, str) and uuid else None


class Exchange:
    """Writes lines to a child, and tracks its turns. Raises an error if the output ends in the middle of a turn.

    Args:
        settings: the arguments for the child, which :meth:`start` spawns.
        sees_results: True if the decoder returns results.
    """

    def __init__(self, settings: Settings, *, sees_results: bool) -> None:
        self.settings: Settings = settings
        self._sees_results = sees_results
        #: The spawned child; None before :meth:`start`.
        self.child: Child | None = None
        #: The state of all written prompts and of the turns in the output so far.
        self.run: Run = Run()
        #: The last result that was decoded: typed or a dict, depending on the decoder. None before the first.
        self.last_result: Any = None
        # True once ended() has checked how the process exited, so that a second call does not raise.
        self._checked_end = False

    def start(self) -> Child:
        self.child = Child(self.settings)
        return self.child

    def started(self) -> Child:
        """Return the child.

        Raises:
            HandleError: the child was not started, or this is a forked process.
        """
        if self.child is None:
            raise not_started()
        if self.child.foreign:
            raise HandleError("this process was started before a fork: only the parent may use it")
        return self.child

    async def write(self, lines: bytes, begun: Callable[[], object] | None = None, *, is_answer: bool = False) -> None:
        """Write lines. Call ``begun`` after the first byte is written. From then on, cancellation cannot cut a line.

        Args:
            is_answer: True if the lines answer a control request. Answers are not searched for prompts, and are written
                before other tasks run.
        """

        def first() -> None:
            for uuid in prompts_of(lines):
                self.run.ask(uuid, 0.0)
            if begun is not None:
                begun()

        await self.started().stdin.write(lines, begun if is_answer else first, is_answer)

    def write_in_turn(self, line: bytes) -> bool:
        """Write a line if a turn is running or a prompt is waiting for its turn. This never waits.

        Returns False if the line was not written, for example because the input is closed, full, or in use by a sender.
        """
        child = self.child
        return (
            bool(self.run.unfinished_turn()) and child is not None and not child.foreign and child.stdin.write_now(line)
        )

    async def close(self) -> None:
        """Terminate the child, if it was started."""
        if self.child is not None and not self.child.foreign:
            await self.child.close(self.settings.grace)

    def saw(self, batch: list[Any]) -> None:
        """See :class:`~claude_wire.streams.receiver.Observer`."""
        # Most batches neither begin nor end a turn, as the types of their messages show.
        types = set(map(type, batch))
        is_plain = any(issubclass(cls, dict) for cls in types)
        if not is_plain and types.isdisjoint(ENDING if self.run.turn else _TURN_TYPES):
            return
        for message in batch:
            if type(message) in _TURN_TYPES:
                self.run.see(message)
                if isinstance(message, ResultMessage):
                    self.last_result = message
            elif isinstance(message, dict):
                self._saw_dict(cast("dict[str, Any]", message))

    def _saw_dict(self, message: dict[str, Any]) -> None:
        """Update the run with a dict, for a decoder that returns dicts."""
        kind = message.get("type")
        if kind == "result":
            self.last_result = message
            self.run.see(_of_dict(ResultMessage, message, "user_message_uuids", "user_message_uuid"))
        elif kind == "command_lifecycle":
            self.run.see(_of_dict(CommandLifecycleMessage, message, "command_uuid", "state"))
        elif message.get("parent_tool_use_id") is None and not message.get("isReplay") and _begins_turn(message):
            self.run.see(InitMessage())

    async def ended(self, *, cut: bool) -> None:
        """Wait for the exit code. If it or the output shows a failure, raise an error, but only in the first call.

        See :class:`~claude_wire.streams.receiver.Observer`.

        Raises:
            UnfinishedTurnError: the output ended in the middle of a line or a turn.
            ProcessError: the exit code is not 0.
        """
        child = self.started()
        if self._checked_end or child.closed:
            return
        await child.wait(self.settings.grace)
        await child.read_stderr()
        if child.closed:  # another task closed the process during the wait, so its exit is not an error
            return
        self._checked_end = True
        code = child.popen.returncode
        details = code, child.stderr_tail(), self.last_result
        where = "in the middle of a line" if cut else self.run.unfinished_turn() if self._sees_results else ""
        if where:
            end = describe_end(code, details[1])
            raise UnfinishedTurnError(*details, message=f"the output ended {where}; the process {end}")
        if code:
            raise ProcessError(*details)


def not_started() -> HandleError:
    return HandleError("this process is not started: use it as `async with open_process(...) as process`")


def _begins_turn(message: dict[str, Any]) -> bool:
    kind = message.get("type")
    return kind in ("assistant", "stream_event", "user") or (kind == "system" and message.get("subtype") == "init")


def _of_dict(cls: type[M], message: dict[str, Any], *names: str) -> M:
    """Convert some of a dict's fields to a typed message, or to an empty message if a value does not fit its field."""
    try:
        return msgspec.convert({name: message[name] for name in names if name in message}, cls)
    except msgspec.ValidationError:
        return cls()


class NotStarted:
    """The chunks of a process that is not started yet. Reading them raises HandleError."""

    final: tuple[type[Exception], ...] = ()

    async def receive(self) -> bytes:
        raise not_started()

    async def aclose(self) -> None:
        pass
