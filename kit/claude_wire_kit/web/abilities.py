"""Collect a CLI's slash commands, models, permission mode and queued prompts from its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from claude_wire.messages import CommandLifecycleMessage, ControlResponse, InitMessage, StatusMessage
from claude_wire.support import fields_of, items_of, short_id
from claude_wire_kit.supervisor.frames import INITIALIZE_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Maximum number of commands or models, of characters in a name, and of characters in other text.
MAX_ITEMS = 500
MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 400
#: Maximum number of prompts in the queue.
MAX_QUEUED = 100


class Ability(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slash command, or a model.

    Attributes:
        value: the name of the command without its slash, or the id of the model.
        name: the name to show.
        description: one or two sentences.
        hint: for a command, its arguments, such as ``[file]``.
    """

    value: str
    name: str
    description: str = ""
    hint: str = ""


class Abilities:
    """One CLI's commands, models, settings and queue, updated by each message."""

    def __init__(self) -> None:
        #: The model and the permission mode; None until one of the CLI's messages names them.
        self.model: str | None = None
        self.mode: str | None = None
        self.commands: list[Ability] = []
        self.models: list[Ability] = []
        #: How many times the commands or the models changed.
        self.changes: int = 0
        #: The ids of prompts that are waiting for the current turn to end.
        self.queued: dict[str, None] = {}

    def add(self, message: object) -> bool:
        """Process the next message. Returns True if the model, the mode, the lists or the queue changed."""
        before = self.model, self.mode, self.changes, list(self.queued)
        match message:
            case InitMessage():
                self.model, self.mode = message.model or self.model, message.permissionMode or self.mode
                # The answer to initialize usually has all names, but a CLI may find a skill or an MCP prompt later.
                known = {one.name for one in self.commands}
                names = dict.fromkeys([*(message.slash_commands or ()), *(message.skills or ())])
                new = [one for name in names if (one := _command({"name": name})).name not in known]
                new = new[: MAX_ITEMS - len(self.commands)]
                self.commands = [*self.commands, *new]
                self.changes += bool(new)
            case StatusMessage():
                self.mode = message.permissionMode or self.mode
            case CommandLifecycleMessage(command_uuid=str(id), state=state):
                self._queue(short_id(id), state)
            case ControlResponse():
                self._response(message)
            case _:
                return False
        return before != (self.model, self.mode, self.changes, list(self.queued))

    def _queue(self, id: str, state: str | None) -> None:
        if state != "queued":
            self.queued.pop(id, None)
        elif len(self.queued) < MAX_QUEUED:
            self.queued[id] = None

    def _response(self, message: ControlResponse) -> None:
        payload = message.payload
        if message.request_id == INITIALIZE_ID:  # a new CLI resumes the session
            self.queued.clear()
            self.changes += 1
            self.commands = [_command(one) for one in _named(payload.get("commands"), "name")]
            self.models = [_model(one) for one in _named(payload.get("models"), "value")]
            self.mode = _text(payload, "current_permission_mode") or self.mode
        elif payload.keys() == {"model"}:  # the answer to set_model
            self.model = _text(payload, "model") or self.model


def _named(given: object, name: str) -> Iterable[dict[str, Any]]:
    return [fields_of(one) for one in items_of(given)[:MAX_ITEMS] if _text(fields_of(one), name)]


def _command(given: dict[str, Any]) -> Ability:
    name = _text(given, "name", MAX_NAME_CHARS)
    hint = _text(given, "argumentHint", MAX_NAME_CHARS)
    return Ability(value=name, name=name, description=_text(given, "description"), hint=hint)


def _model(given: dict[str, Any]) -> Ability:
    value = _text(given, "value", MAX_NAME_CHARS)
    name = _text(given, "displayName", MAX_NAME_CHARS)
    return Ability(value=value, name=name or value, description=_text(given, "description"))


def _text(given: dict[str, Any], name: str, most: int = MAX_TEXT_CHARS) -> str:
    value = given.get(name)
    return value[:most] if isinstance(value, str) else ""
