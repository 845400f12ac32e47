"""What passes between a host and its child: the lines that are sent, the messages that come, and how the output ended.

Knows a child and whether a turn is open; not what messages mean beyond that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from claude_wire.errors import HandleError, ProcessError, UnfinishedTurnError
from claude_wire.errors.base import describe_end
from claude_wire.messages import CommandLifecycleMessage, InitMessage, ResultMessage
from claude_wire.native.block import split_lines
from claude_wire.process.child import Child, Settings
from claude_wire.protocol.run import ENDING, OPENING, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

M = TypeVar("M", ResultMessage, CommandLifecycleMessage)

__all__ = ["Exchange", "NotStarted", "prompts_of"]


class _Sent(msgspec.Struct):
    """The fields of a sent line that are looked at."""

    type: Any = None
    uuid: Any = None
    # A prompt in JSON-RPC has these.
    method: Any = None
    id: Any = None


_decode_sent = msgspec.json.Decoder(_Sent).decode


#: The types of the messages that may begin or end a turn.
_LOOKED_AT = ENDING | OPENING


def prompts_of(lines: bytes) -> Iterator[str | None]:
    """The uuids of the prompts among lines for an agent; None for a prompt without one."""
    for line in split_lines(lines):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the process answers such a line
            sent = _decode_sent(line)
            if sent.type == "user" or sent.method == "run":
                uuid = sent.uuid if sent.type == "user" else sent.id
                yield uuid if isinstance(uuid, str) and uuid else None


class Exchange:
    """Lines to a child, and what its messages and its exit code say of a turn.

    Args:
        settings: of the child, which :meth:`start` spawns.
        sees_results: whether results are among the messages that are decoded.
    """

    def __init__(self, settings: Settings, *, sees_results: bool) -> None:
        self._settings = settings
        self._sees_results = sees_results
        #: The child, once it was started.
        self.child: Child | None = None
        #: The prompts that were written, and the turns in what was decoded so far.
        self.run: Run = Run()
        #: The last result that was decoded: typed, or a dict, as the decoder gives it.
        self.last_result: Any = None
        # Whether a step has said how the output ended.
        self._told = False

    @property
    def settings(self) -> Settings:
        """The arguments of the process."""
        return self._settings

    def start(self) -> Child:
        """Spawn the child."""
        self.child = Child(self._settings)
        return self.child

    def started(self) -> Child:
        """The child.

        Raises:
            HandleError: it was not started, or this is its copy in a forked process.
        """
        if self.child is None:
            raise not_started()
        if self.child.foreign:
            raise HandleError("this process was started before a fork: only the parent may use it")
        return self.child

    async def write(self, lines: bytes, begun: Callable[[], object] | None = None, *, is_answer: bool = False) -> None:
        """Write lines. ``begun`` is called with the first byte that was written: they are as good as sent then.

        An answer to a control request is no prompt, and its task, new as it is, need not let others go first.
        """

        def first() -> None:
            for uuid in prompts_of(lines):
                self.run.ask(uuid, 0.0)
            if begun is not None:
                begun()

        await self.started().stdin.write(lines, begun if is_answer else first, is_answer)

    def write_in_turn(self, line: bytes) -> bool:
        """Write a line if a turn is under way or asked for, by what was sent and decoded. This never waits.

        Returns whether the line was written. An input that is ended, full, or in use by a sender takes none.
        """
        child = self.child
        return (
            bool(self.run.unfinished_turn()) and child is not None and not child.foreign and child.stdin.write_now(line)
        )

    async def close(self) -> None:
        """End the child, if there is one."""
        if self.child is not None and not self.child.foreign:
            await self.child.close(self._settings.grace)

    def saw(self, batch: list[Any]) -> None:
        """As :class:`~claude_wire.io.receiver.Observer`."""
        # Most batches lie within a turn and end nothing. Their types tell that.
        types = set(map(type, batch))
        is_plain = any(issubclass(cls, dict) for cls in types)
        if not is_plain and types.isdisjoint(ENDING if self.run.turn else _LOOKED_AT):
            return
        for message in batch:
            if type(message) in _LOOKED_AT:
                self.run.see(message)
                if isinstance(message, ResultMessage):
                    self.last_result = message
            elif isinstance(message, dict):
                self._saw_dict(cast("dict[str, Any]", message))

    def _saw_dict(self, message: dict[str, Any]) -> None:
        """Look at a message of a decoder that gives dicts: only at what begins or ends a turn."""
        kind = message.get("type")
        if kind == "result":
            self.last_result = message
            self.run.see(_of_dict(ResultMessage, message, "user_message_uuids", "user_message_uuid"))
        elif kind == "command_lifecycle":
            self.run.see(_of_dict(CommandLifecycleMessage, message, "command_uuid", "state"))
        elif message.get("parent_tool_use_id") is None and not message.get("isReplay") and _begins_turn(message):
            self.run.see(InitMessage())

    async def ended(self, *, cut: bool) -> None:
        """As :class:`~claude_wire.io.receiver.Observer`: wait for the exit code, and say once how the output ended."""
        child = self.started()
        if self._told or child.closed:
            return
        await child.wait(self._settings.grace)
        await child.read_stderr()
        if child.closed:  # in the meantime, by another task: how it ended is its own doing
            return
        self._told = True
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
    """A typed message with a few of the fields of a dict; without those whose values do not fit."""
    try:
        return msgspec.convert({name: message[name] for name in names if name in message}, cls)
    except msgspec.ValidationError:
        return cls()


class NotStarted:
    """The chunks of a process that was not started."""

    final: tuple[type[Exception], ...] = ()

    async def receive(self) -> bytes:
        raise not_started()

    async def aclose(self) -> None:
        pass
