"""Sessions that outlive their clients. A supervisor is a daemon that starts the CLIs of one user on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.support import later

#: Public name -> the module that defines it. A module is imported when one of its names is first used, so the daemon
#: does not import the client's modules.
_LATER = {
    "Attach": "frames",
    "Attached": "frames",
    "AttachedSession": "session",
    "Attachment": "attachment",
    "Create": "frames",
    "Cursor": "frames",
    "DetachedError": "errors",
    "Ended": "frames",
    "Supervisor": "attach",
    "SupervisorError": "errors",
    "Life": "frames",
    "Listed": "frames",
    "Resume": "frames",
    "Serves": "frames",
    "SessionInfo": "frames",
    "Spec": "frames",
    "Started": "frames",
    "connect": "attach",
    "spec_of": "attach",
}

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from claude_wire_kit.supervisor.attach import Supervisor as Supervisor
    from claude_wire_kit.supervisor.attach import connect as connect
    from claude_wire_kit.supervisor.attach import spec_of as spec_of
    from claude_wire_kit.supervisor.attachment import Attachment as Attachment
    from claude_wire_kit.supervisor.errors import DetachedError as DetachedError
    from claude_wire_kit.supervisor.errors import SupervisorError as SupervisorError
    from claude_wire_kit.supervisor.frames import Attach as Attach
    from claude_wire_kit.supervisor.frames import Attached as Attached
    from claude_wire_kit.supervisor.frames import Create as Create
    from claude_wire_kit.supervisor.frames import Cursor as Cursor
    from claude_wire_kit.supervisor.frames import Ended as Ended
    from claude_wire_kit.supervisor.frames import Life as Life
    from claude_wire_kit.supervisor.frames import Listed as Listed
    from claude_wire_kit.supervisor.frames import Resume as Resume
    from claude_wire_kit.supervisor.frames import Serves as Serves
    from claude_wire_kit.supervisor.frames import SessionInfo as SessionInfo
    from claude_wire_kit.supervisor.frames import Spec as Spec
    from claude_wire_kit.supervisor.frames import Started as Started
    from claude_wire_kit.supervisor.session import AttachedSession as AttachedSession
else:
    __all__ = sorted(_LATER)

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = later(__name__, _LATER)
