"""The protocol as msgspec Structs: one class for each message, block, event, request and hook.

A class defines its tag, its sender and, for a request, the class of the answer. Fields have the names on the wire.
``make generate`` writes ``registry`` from the classes: the union of all messages, the names of all kinds, and the
public names.

- ``conversation``: user and assistant messages, results, and objects of the Messages API
- ``blocks``: content blocks
- ``system``: the CLI's reports about itself
- ``control``: requests of both sides and their answers
- ``hooks``: inputs and outputs of hooks
- ``notices``: all other messages of the CLI
- ``dialects``: messages of other agents
- ``unknown``, ``invalid``: objects and lines without a class
- ``base``: the base classes
- ``union``, ``vocabulary``: find the class of a line
- ``tolerant``: builds a message from a line with unknown parts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.messages import registry
from claude_wire.messages.base import Wire as Wire
from claude_wire.messages.base import wire_fields as wire_fields
from claude_wire.messages.registry import *
from claude_wire.messages.tolerant import from_dict as from_dict

if not TYPE_CHECKING:
    __all__ = [*registry.__all__, "Wire", "from_dict", "wire_fields"]
