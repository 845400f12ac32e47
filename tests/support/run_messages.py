"""Messages of the CLI about prompts, turns and background tasks. They decide when a run is over."""

from __future__ import annotations

from typing import Any

from session_peer import RESULT

__all__ = ["BACKGROUND", "IDLE", "RUNNING", "ended", "lifecycle", "listed", "result", "started", "state"]

#: The extra field in the result of a turn that a background task started.
BACKGROUND: dict[str, Any] = {"origin": {"kind": "task-notification"}}


def state(name: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "session_state_changed", "state": name, "sdk_host_only": True}


def lifecycle(uuid: str, name: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": name}


def result(*names: str, text: str = "done", **fields: Any) -> dict[str, Any]:
    """Return a result with these prompt names, or without the fields of names if there are none."""
    named = {"user_message_uuids": list(names), "user_message_uuid": names[-1]} if names else {}
    return {**RESULT, "result": text, **named, **fields}


def started(task: str, kind: str = "local_agent", **more: Any) -> dict[str, Any]:
    about = {"task_id": task, "description": "d", "task_type": kind, "is_backgrounded": True}
    return {"type": "system", "subtype": "task_started", **about, **more}


def ended(task: str, status: str = "completed") -> dict[str, Any]:
    about = {"task_id": task, "status": status, "output_file": "", "summary": ""}
    return {"type": "system", "subtype": "task_notification", **about}


def listed(**kinds: str) -> dict[str, Any]:
    tasks = [{"task_id": task, "task_type": kind, "description": "d"} for task, kind in kinds.items()]
    return {"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}


RUNNING, IDLE = state("running"), state("idle")
