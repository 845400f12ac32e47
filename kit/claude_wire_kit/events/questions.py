"""A callback for a session's ``can_use_tool`` that asks a person through a front end, and waits for the answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import anyio

from claude_wire.messages import CanUseToolRequest, PermissionResultAllow, PermissionResultDeny
from claude_wire.support import cancel_scope, closing_coroutine, require_function, type_of
from claude_wire_kit.events.bridge import Bridge
from claude_wire_kit.events.events import UiEvent

#: Time limit in seconds for sending the event that a question was withdrawn.
SEND_SECONDS = 5.0


class Questions:
    """Asks a front end for permission, and waits for its answer::

        ui = Bridge()
        questions = Questions(ui, send)
        async with open_session(..., can_use_tool=questions.ask) as session:
            ...

    ``send`` gets a :class:`~claude_wire_kit.events.PermissionRequest`. When the front end has the answer, call
    ``ui.answer()`` in the session's event loop, and ignore its result. If the CLI withdraws the question, ``send`` gets
    a :class:`~claude_wire_kit.events.PermissionCancelled`. If ``send`` raises, the question is withdrawn, and the CLI
    refuses the tool.

    Args:
        ui: the bridge that gets the session's messages.
        send: called with each event. May be a plain or an async function.
    """

    def __init__(self, ui: Bridge, send: Callable[[UiEvent], Awaitable[object] | object]) -> None:
        if not isinstance(ui, Bridge):
            raise TypeError(f"Questions takes a Bridge, not {type_of(ui)}")
        require_function("send", send, "the event")
        self._ui = ui
        self._send = send

    async def ask(self, request: CanUseToolRequest) -> PermissionResultAllow | PermissionResultDeny:
        """Ask whether a tool may be used, and return the answer. Pass this method to a session as ``can_use_tool``."""
        answered = anyio.Event()
        answers: list[PermissionResultAllow | PermissionResultDeny] = []

        def settled(answer: PermissionResultAllow | PermissionResultDeny | None) -> None:
            answers.append(request.deny("The question was withdrawn.") if answer is None else answer)
            answered.set()

        id, events = self._ui.ask(request, settled)
        try:
            await self._send_all(events)
            await answered.wait()
        finally:
            events = self._ui.withdraw(id)  # empty if it was already answered
            if events and not closing_coroutine():
                # This fails if the front end disconnected. The callback must still end with its own result or error.
                with suppress(Exception), cancel_scope(shield=True) as scope:
                    scope.deadline = anyio.current_time() + SEND_SECONDS
                    await self._send_all(events)
        return answers[0]

    async def _send_all(self, events: Iterable[UiEvent]) -> None:
        for event in events:
            sent: Any = self._send(event)
            if inspect.isawaitable(sent):
                await sent
