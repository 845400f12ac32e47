"""The subagents that have not ended: each ends once, however often and by whatever message its end is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from claude_wire.bridge.events import Operation, SubagentProgress, SubagentStatus
from claude_wire.bridge.operations import Operations, Place, joined
from claude_wire.foundation.ids import Ids, short_id

__all__ = ["MOST_SUBAGENTS", "Subagents", "find_mentions", "status_of"]

#: At most this many subagents are followed. One more stops the oldest one. They take 8 MB at most.
MOST_SUBAGENTS = 1024

#: Statuses of tasks that are final, and what they are here.
_FINAL: dict[str | None, SubagentStatus] = {
    "completed": "completed",
    "failed": "failed",
    "killed": "stopped",
    "stopped": "stopped",
}

#: A mention is looked for in this many characters before and behind the name of a subagent.
LOOKED_AT = 24

_AGENT = re.compile(r"(?<![\w-])sub-?agent [\"'`“]?(?P<name>[A-Za-z][\w-]{0,39})(?P<quote>[\"'`”])?", re.IGNORECASE)
_BEGINS = re.compile(r"(?:launch|start|spawn)(?:ing|ed) (?:the |a )?$", re.IGNORECASE)
_SAYS = re.compile(r" (?:has |is )?(started|running|completed|finished|done|failed)\b", re.IGNORECASE)
#: What a text says of a subagent, and its status; any other word of ``_SAYS`` is ``completed``.
_SAID: dict[str, SubagentStatus] = {"started": "started", "running": "running", "failed": "failed"}


def status_of(status: str | None) -> SubagentStatus:
    """The status of a subagent whose task has this one. The statuses of tasks are an open set."""
    return _FINAL.get(status, "running")


@dataclass(slots=True)
class _Subagent:
    event: SubagentProgress
    #: The id of its task, if one is known.
    task: str | None = None
    #: Whether it goes on after the result of the call that started it.
    background: bool = False


class Subagents:
    """Running subagents by conversation and agent id, in the order in which they began.

    The open operations of a subagent end with it.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._running: dict[Place, _Subagent] = {}
        self._by_task: dict[Place, str] = {}
        self._ended = Ids()

    def __len__(self) -> int:
        return len(self._running)

    def is_running(self, place: Place) -> bool:
        """Whether a subagent has begun and not ended."""
        return place in self._running

    def place_of(self, conversation: str | None, task: str, call: str | None = None) -> Place:
        """The place of a task, which a tool call may have begun."""
        known = self._by_task.get((conversation, short_id(task)))
        return conversation, known or short_id(call or task)

    def begin(self, event: SubagentProgress) -> Iterator[SubagentProgress | Operation]:
        """Take a subagent, and give what there is to tell. One that is known, or has ended, is passed over."""
        place = event.conversationId, event.agentId
        if place not in self._running and joined(place) not in self._ended:
            if len(self._running) >= MOST_SUBAGENTS:
                yield from self.update(next(iter(self._running)), status="stopped")
            self._running[place] = _Subagent(event)
            yield event

    def set_task(self, place: Place, task: str | None, background: bool | None) -> None:
        """Remember the task that a running subagent is, and whether it goes on after the result of its call."""
        agent = self._running.get(place)
        if agent is not None:
            if task is not None and agent.task is None:
                agent.task = short_id(task)
                self._by_task[place[0], agent.task] = place[1]
            agent.background = agent.background if background is None else background

    def update(
        self, place: Place, *, status: SubagentStatus = "running", tool: str | None = None, summary: str | None = None
    ) -> Iterator[SubagentProgress | Operation]:
        """Take what a subagent does now. Nothing is told if that is what it did before, or if it has ended."""
        agent = self._running.get(place)
        if agent is None:
            return
        before = agent.event
        agent.event = msgspec.structs.replace(
            before, status=status, lastTool=tool or before.lastTool, summary=summary or before.summary
        )
        if status != "running":
            del self._running[place]
            self._ended.add(joined(place))
            if agent.task is not None:
                self._by_task.pop((place[0], agent.task), None)
            yield from self._operations.end_all(place[0], lambda agent: agent == place[1])
        if agent.event != before:
            yield agent.event

    def end_call(self, place: Place, status: SubagentStatus) -> Iterator[SubagentProgress | Operation]:
        """The call that started a subagent has its result: the subagent has ended, unless it is in the background."""
        agent = self._running.get(place)
        if agent is not None and not agent.background:
            yield from self.update(place, status=status)

    def end_all(
        self, conversation: str | None, status: SubagentStatus, *, background: bool
    ) -> Iterator[SubagentProgress | Operation]:
        """End the subagents of a conversation, with or without those in the background."""
        over = [
            place
            for place, agent in self._running.items()
            if place[0] == conversation and (background or not agent.background)
        ]
        for place in over:
            yield from self.update(place, status=status)


def find_mentions(text: str) -> Iterator[tuple[str, SubagentStatus]]:
    """Find the subagents that a text names, and what it says of them.

    This is for agents whose messages do not tell of subagents. A name stands in quotation marks, or has a capital
    letter, a digit, a hyphen or an underscore. Takes time in proportion to the length of the text.
    """
    for match in _AGENT.finditer(text) if "gent" in text else ():
        name = match["name"]
        if not match["quote"] and name.isalpha() and name.islower():
            continue
        says = _SAYS.match(text, match.end(), match.end() + LOOKED_AT)
        if says is not None:
            yield name, _SAID.get(says[1].lower(), "completed")
        elif _BEGINS.search(text, max(0, match.start() - LOOKED_AT), match.start()):
            yield name, "started"
