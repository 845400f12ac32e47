"""The protocol as msgspec Structs: one class for each message, block, event, request and hook.

A class has the tag, the side that sends it and, for a request, the class of the answer. ``make generate`` writes
everything else from the classes: the union of all messages, the names of all kinds and the public names in
``registry``, and the table of the protocol in the reference.

Field names are those on the wire.

- ``conversation``: what the user and the model say, where a prompt comes from, results, objects of the Messages API
- ``blocks``: the parts of a message's content
- ``system``: what the CLI reports about itself
- ``control``: the requests of both sides, their envelopes and answers, and the parts of these
- ``hooks``: what a hook receives, and what it returns
- ``notices``: the other messages; ``dialects``: messages of compatible agents only
- ``unknown`` and ``invalid``: what fits no class
- ``base``: the base classes; ``union`` and ``vocabulary``: which class a line has; ``tolerant``: how a line with
  unknown parts becomes a message
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
