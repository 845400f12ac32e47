"""The protocol as msgspec Structs: one class for each message, block, event, request and hook.

A class defines the tag, the side that sends the message and, for a request, the class of the answer. From the classes,
``make generate`` writes ``registry`` (the union of all messages, the names of all kinds, the public names) and the
table of the protocol in the reference. Field names are those on the wire.

- ``conversation``: messages of the user and the model, origins of prompts, results, objects of the Messages API
- ``blocks``: the parts of a message's content
- ``system``: what the CLI reports about itself
- ``control``: the requests of both sides, their envelopes and answers, and the parts of these
- ``hooks``: the input of a hook, and its output
- ``notices``: all other messages of the CLI; ``dialects``: messages that only other agents send
- ``unknown`` and ``invalid``: objects and lines without a class
- ``base``: the base classes; ``union`` and ``vocabulary``: find the class of a line; ``tolerant``: builds a message
from
  a line with unknown parts
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
