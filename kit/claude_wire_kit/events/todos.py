"""Find progress in the agent's task list: calls of ``TodoWrite``, ``TaskCreate`` and ``TaskUpdate``."""

from __future__ import annotations

import re

from claude_wire.support import fields_of, items_of, one_line, prose, short_id
from claude_wire_kit.events.progress import NAME_CHARS, Step
from claude_wire_kit.events.tools import text_in

#: Maximum number of ``TaskCreate`` tasks in a conversation. More tasks are ignored.
MAX_TODOS = 100
#: The id of a new task must be within this many characters at the beginning of the result.
LOOKED_AT = 200

_CREATED = re.compile(r"\bTask #([\w-]{1,40})")


class Todos:
    """The tasks that ``TaskCreate`` created in one conversation. ``TodoWrite`` sends its whole list in each call."""

    __slots__ = ("_creating", "_tasks")

    def __init__(self) -> None:
        # Task id -> (status, name).
        self._tasks: dict[str, tuple[str, str]] = {}
        # Id of a ``TaskCreate`` call without a result -> name of the task.
        self._creating: dict[str, str] = {}

    def call(self, id: str, tool: str, input: object) -> Step | None:
        """Process a tool call. Returns the progress if the call changed the task list."""
        if tool == "TodoWrite":
            items = items_of(fields_of(input).get("todos"))
            return _step([(text_in(item, "status") or "", _name(item)) for item in items])
        if tool == "TaskCreate" and len(self._tasks) + len(self._creating) < MAX_TODOS:
            self._creating[id] = _name(input)
        elif tool == "TaskUpdate":
            task = short_id(text_in(input, "taskId") or "")
            status, name = self._tasks.get(task, ("", ""))
            if status:
                self._tasks[task] = text_in(input, "status") or status, _name(input) or name
                return _step(list(self._tasks.values()))
        return None

    def result(self, id: str, content: str, structured: object) -> Step | None:
        """Process a tool result. If it has the id of a task that ``TaskCreate`` created, return the progress."""
        name = self._creating.pop(id, None)
        if name is None:
            return None
        found = _CREATED.search(content[:LOOKED_AT])
        number = text_in(fields_of(structured).get("task"), "id") or (found[1] if found else None)
        if number is None:
            return None
        self._tasks[short_id(number)] = "pending", name
        return _step(list(self._tasks.values()))


def _name(item: object) -> str:
    return one_line(text_in(item, "activeForm", "content", "subject") or "", NAME_CHARS, prose)


def _step(items: list[tuple[str, str]]) -> Step | None:
    """Return the progress for a list of (status, name).

    The step has the name of the first task in progress, or else of the first task that is not completed.
    """
    items = [(status, name) for status, name in items if status != "deleted"]
    completed = sum(status == "completed" for status, _ in items)
    under_way = [name for status, name in items if status == "in_progress"]
    waiting = [name for status, name in items if status != "completed"]
    name = next((name for name in [*under_way, *waiting] if name), "Done" if completed == len(items) else "Working")
    return Step(0, name, completed, len(items)) if items else None
