"""Keep the running subagents, and find mentions of subagents in text.

Several messages may report the end of a subagent; the first one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from claude_wire.support import Ids, short_id
from claude_wire_kit.events.events import Operation, SubagentProgress, SubagentStatus
from claude_wire_kit.events.operations import Operations, Place, joined

#: Maximum number of running subagents, which take at most 8 MB. The next one stops the oldest.
MAX_SUBAGENTS = 1024

#: A task's final status -> its subagent's status.
_FINAL: dict[str | None, SubagentStatus] = {
    "completed": "completed",
    "failed": "failed",
    "killed": "stopped",
    "stopped": "stopped",
}

#: A mention must lie within this many characters before and after the word "agent".
LOOKED_AT = 64
#: The largest number accepted in text such as "launching 3 subagents".
MAX_AT_ONCE = 16

_AGENT = re.compile(r"(?<![\w-])(?P<sub>sub-?)?agent(?P<several>s)?(?![\w-])", re.IGNORECASE)
#: A name after the word "agent", such as in "Agent 2", and a name before it, such as in "the Explore agent".
_AFTER = re.compile(r" (?P<open>[\"'`\u201c])?(?P<name>[A-Za-z][\w-]{0,39}|\d{1,2}(?![\w%]|[.,]\d))[\"'`\u201d]?")
_BEFORE = re.compile(r"(?:^|(?<=[\s(]))(?P<open>[\"'`\u201c])?(?P<name>[A-Za-z][\w-]{0,39})[\"'`\u201d]? $")
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_COUNT = re.compile(rf"\b(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)}) (?:(?:more|parallel|new) )?$", re.IGNORECASE)
#: The CLI's own subagents, and names that end like a profession, such as "code-reviewer". Another word with a hyphen
#: may be an adjective, as in "third-party agent".
_DOES = re.compile(r"general-purpose|Explore|Plan|[\w-]+-\w+(?:er|or|ist)")
_ADJECTIVE = re.compile(r"[\w-]+-(?:border|layer|order|tier|user|vendor|power|paper|over|under|after)", re.IGNORECASE)
#: The words before a subagent's name if a sentence says that the subagent starts, such as "Launching the".
_BEGINS = re.compile(
    r"(?:(?:^|[.!?:;,*>\n-] *|\b(?:i['\u2019]m|i am|now) (?:now )?)"
    r"(?:us|launch|start|spawn|runn|invok|dispatch|call|delegat)ing(?P<doing>)"
    r"|\b(?:launch|start|spawn|dispatch)ed"
    r"|\b(?:(?:i|we)['\u2019]ll|(?:i|we) will|let me|let['\u2019]s|going to) (?:(?:now|first|also|then) )?"
    r"(?:use|launch|start|spawn|run|invoke|dispatch|call|ask|delegate))"
    r"(?: to)? (?:(?:the|a|an|my|our) )?$",
    re.IGNORECASE,
)
#: "Using the code-reviewer agent is better" does not start a subagent.
_IS_SUBJECT = re.compile(r" (?:is|was|takes|would|can|could|may|will|has|helps|makes|costs|requires|needs|should)\b")
_SAYS = re.compile(
    r" (?:(?:has|is) )?(?:(?:now|just|already|successfully) )?"
    r"(?P<said>started|running|working|complete|completed|finished|done|failed)\b"
    r"|: (?:(?:\d{1,3}% )?(?P<state>complete|completed|finished|done|failed)\b|(?=[a-z]{2,20}ing\b))",
    re.IGNORECASE,
)
#: Conditions and negations: the rest of their clause does not report what happened.
_SUPPOSED = re.compile(
    r"\b(?:if|once|when|until|after|unless|whether|before|would|could|should|can|may|might|not|never|no|without|avoid"
    r"|\w{2,6}n['\u2019]t)\b[^.!?:\n]*$",
    re.IGNORECASE,
)
#: Words of ``_SAYS`` that mean a status other than ``completed``.
_SAID: dict[str, SubagentStatus] = {
    "started": "started",
    "running": "running",
    "working": "running",
    "failed": "failed",
}


def status_of(status: str | None) -> SubagentStatus:
    """Return a subagent's status for its task's status. An unknown status counts as running."""
    return _FINAL.get(status, "running")


@dataclass(slots=True)
class _Subagent:
    event: SubagentProgress
    #: The id of the subagent's task, if it is known.
    task: str | None = None
    #: True if the subagent keeps working after the call that started it has a result.
    background: bool = False


class Subagents:
    """The running subagents of all conversations, in the order in which they started.

    When a subagent ends, its open operations also end.
    """

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._running: dict[Place, _Subagent] = {}
        self._by_task: dict[Place, str] = {}
        self._ended = Ids()

    def __len__(self) -> int:
        return len(self._running)

    def is_running(self, place: Place) -> bool:
        return place in self._running

    def count(self, conversation: str | None) -> int:
        return sum(place[0] == conversation for place in self._running)

    def place_of(self, conversation: str | None, task: str, call: str | None = None) -> Place:
        """Return the place of a task's subagent. ``call`` is the tool call that started the task, if there is one."""
        known = self._by_task.get((conversation, short_id(task)))
        return conversation, known or short_id(call or task)

    def begin(self, event: SubagentProgress) -> Iterator[SubagentProgress | Operation]:
        """Add a subagent, and yield its event. Yields nothing if the subagent is running or has ended."""
        place = event.conversationId, event.agentId
        if place not in self._running and joined(place) not in self._ended:
            if len(self._running) >= MAX_SUBAGENTS:
                yield from self.update(next(iter(self._running)), status="stopped")
            self._running[place] = _Subagent(event)
            yield event

    def set_task(self, place: Place, task: str | None, background: bool | None) -> None:
        """Set the task of a running subagent, and whether it works in the background. None changes nothing."""
        agent = self._running.get(place)
        if agent is not None:
            if task is not None and agent.task is None:
                agent.task = short_id(task)
                self._by_task[place[0], agent.task] = place[1]
            agent.background = agent.background if background is None else background

    def update(
        self, place: Place, *, status: SubagentStatus = "running", tool: str | None = None, summary: str | None = None
    ) -> Iterator[SubagentProgress | Operation]:
        """Update a running subagent, and yield its event if anything changed. A final status ends it."""
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
        """End a subagent, because its call has a result. A background subagent keeps running."""
        agent = self._running.get(place)
        if agent is not None and not agent.background:
            yield from self.update(place, status=status)

    def end_all(
        self, conversation: str | None, status: SubagentStatus, *, background: bool
    ) -> Iterator[SubagentProgress | Operation]:
        """End the subagents of a conversation; background subagents only with ``background=True``."""
        over = [
            place
            for place, agent in self._running.items()
            if place[0] == conversation and (background or not agent.background)
        ]
        for place in over:
            yield from self.update(place, status=status)


def find_mentions(text: str) -> Iterator[tuple[str, SubagentStatus]]:
    """Find the subagents that the text names, and their status according to the text.

    Used for agents whose messages do not report subagents. A name after "subagent" must be in quotation marks, be a
    number, or contain a capital letter, a digit, a hyphen or an underscore. A name before "agent" must be in quotation
    marks or end like a profession, such as ``code-reviewer``. The time is proportional to the length of the text.
    """
    for match in _AGENT.finditer(text) if "gent" in text or "GENT" in text else ():
        before = text[max(0, match.start() - LOOKED_AT) : match.start()]
        if match["several"]:
            count = _COUNT.search(before) if match["sub"] else None
            if count is not None and _begins(before[: count.start()], text, match.end()):
                number = _COUNTS.get(count["count"].lower()) or int(count["count"])
                for one in range(1, min(number, MAX_AT_ONCE) + 1):
                    yield f"subagent {one}", "started"
            continue
        name, begins, end = "", False, match.end()
        after = _AFTER.match(text, end, end + LOOKED_AT)
        if after is not None and _is_name_after(after, match):
            name, end = after["name"], after.end()
            begins = bool(match["sub"]) and _begins(before, text, end)
        else:
            found = _BEFORE.search(before)
            if found is not None and _is_name_before(found, bool(match["sub"])):
                name, before = found["name"], before[: found.start()]
                begins = _begins(before, text, end)
        says = _SAYS.match(text, end, end + LOOKED_AT) if name else None
        name = f"subagent {name}" if name.isdigit() else name
        if says is not None and not _SUPPOSED.search(before):
            yield name, _status_said(says)
        elif begins:
            yield name, "started"


def _begins(before: str, text: str, end: int) -> bool:
    """Return True if the text around a subagent's name says that this subagent starts."""
    found = _BEGINS.search(before)
    return (
        found is not None
        and not _SUPPOSED.search(before)
        and (found["doing"] is None or not _IS_SUBJECT.match(text, end, end + LOOKED_AT))
    )


def _status_said(says: re.Match[str]) -> SubagentStatus:
    if says["said"]:
        return _SAID.get(says["said"].lower(), "completed")
    if not says["state"] or "%" in says[0]:  # "50% done"
        return "completed" if says[0].startswith(": 100%") else "running"
    return "failed" if says["state"].lower() == "failed" else "completed"


def _is_name_after(after: re.Match[str], agent: re.Match[str]) -> bool:
    name = after["name"]
    if after["open"] or name.isdigit():
        return bool(agent["sub"]) or agent[0] == "Agent"
    return not (name.isalpha() and name.islower()) if agent["sub"] else agent[0] == "Agent" and "-" in name


def _is_name_before(found: re.Match[str], sub: bool) -> bool:
    name = found["name"]
    if found["open"]:
        return True
    if sub and not name.isalpha():
        return True
    return _DOES.fullmatch(name) is not None and _ADJECTIVE.fullmatch(name) is None
