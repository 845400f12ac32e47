"""Search all sessions' prompts and answers for some text. Reads the sessions' journals, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from claude_wire.codec import decode
from claude_wire.messages import AssistantMessage, UserMessage
from claude_wire_kit.supervisor.errors import SupervisorError
from claude_wire_kit.supervisor.frames import Attach
from claude_wire_kit.web.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from claude_wire_kit.supervisor.attach import Supervisor
    from claude_wire_kit.supervisor.frames import SessionInfo

#: One search reads about this many bytes of journals, and then stops.
MAX_BYTES = 64 * 1024 * 1024
#: Maximum number of excerpts from one session.
MAX_EXCERPTS = 3
#: An excerpt has this many characters before and after the match.
AROUND = 60


class Found(msgspec.Struct, frozen=True):
    """A session that contains the text: in ``excerpts``, or in its name or folder."""

    id: str
    excerpts: list[str]


class Search:
    """Searches sessions for some text.

    Args:
        supervisor: the supervisor.
        sought: the text to find, ignoring case.
    """

    def __init__(self, supervisor: Supervisor, sought: str) -> None:
        self._supervisor = supervisor
        self._sought = sought.casefold()
        self._left = MAX_BYTES
        #: The sessions that contain the text. :meth:`run` fills this list.
        self.found: list[Found] = []
        #: True if the search stopped at :data:`MAX_BYTES` before reading all journals.
        self.is_cut: bool = False

    async def run(self, sessions: Iterable[SessionInfo]) -> None:
        """Search these sessions, newest first. Raises SupervisorError."""
        for info in sorted(sessions, key=lambda one: -one.began):
            excerpts = await self._excerpts(info)
            if excerpts or self._sought in f"{info.name or ''}\n{info.cwd}".casefold():
                self.found.append(Found(info.id, excerpts))

    async def _excerpts(self, info: SessionInfo) -> list[str]:
        excerpts: list[str] = []
        try:
            async with Lines(self._supervisor, Attach(attach=info.id)) as lines:
                number, last = lines.answer.after, lines.answer.line
                while number < last and len(excerpts) < MAX_EXCERPTS:
                    if self._left <= 0:
                        self.is_cut = True
                        break
                    received = await lines.receive()
                    if not received:
                        break
                    for one in received:
                        if isinstance(one, tuple):
                            number = one[0]
                            self._left -= len(one[1])
                            excerpts += self._look(one[1])
        except SupervisorError as error:
            if error.error not in ("unknown", "gone", "system"):
                raise
        return excerpts[:MAX_EXCERPTS]

    def _look(self, line: bytes) -> list[str]:
        if b'"assistant"' not in line and b'"user"' not in line:
            return []
        message = decode(line)
        if not isinstance(message, (AssistantMessage, UserMessage)):
            return []
        text = message.text
        at = text.casefold().find(self._sought)
        if at < 0:
            return []
        return [" ".join(text[max(0, at - AROUND) : at + len(self._sought) + AROUND].split())]
