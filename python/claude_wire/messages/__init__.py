"""The protocol as msgspec Structs: one class for each message, block, event, request and hook.

Field names are the wire's.

- ``conversation``: what the user and the model say, where that comes from, results, and what the Messages API defines
- ``blocks``: the parts of a message's content
- ``system``: what the CLI tells of itself
- ``control``: requests of either side, their envelopes and answers, and what these speak of
- ``hooks``: what hooks are told, and what they return
- ``notices``: the other messages; ``dialects``: those of compatible agents
- ``union``: the one type of all messages; ``base`` and ``tolerant``: what all classes stand on
- ``unknown`` and ``invalid``: what fits no class
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from claude_wire.messages.blocks.content import *
from claude_wire.messages.blocks.media import *
from claude_wire.messages.blocks.server_tools import *
from claude_wire.messages.blocks.text import *
from claude_wire.messages.control.catalog import *
from claude_wire.messages.control.cli_requests import *
from claude_wire.messages.control.context_usage import *
from claude_wire.messages.control.envelopes import *
from claude_wire.messages.control.host_requests import *
from claude_wire.messages.control.mcp import *
from claude_wire.messages.control.permissions import *
from claude_wire.messages.control.request_body import *
from claude_wire.messages.control.undeclared_requests import *
from claude_wire.messages.conversation.api import *
from claude_wire.messages.conversation.events import *
from claude_wire.messages.conversation.messages import *
from claude_wire.messages.conversation.origins import *
from claude_wire.messages.conversation.results import *
from claude_wire.messages.conversation.usage import *
from claude_wire.messages.dialects import *
from claude_wire.messages.hooks.inputs import *
from claude_wire.messages.hooks.outputs import *
from claude_wire.messages.hooks.tool_inputs import *
from claude_wire.messages.invalid import *
from claude_wire.messages.notices import *
from claude_wire.messages.system.base import *
from claude_wire.messages.system.compaction import *
from claude_wire.messages.system.hooks import *
from claude_wire.messages.system.init import *
from claude_wire.messages.system.retries import *
from claude_wire.messages.system.session import *
from claude_wire.messages.system.status import *
from claude_wire.messages.system.tasks import *
from claude_wire.messages.union import *
from claude_wire.messages.unknown import *

if not TYPE_CHECKING:
    # The names above in capitals: those of the modules.
    __all__ = [name for name in globals() if name[0].isupper() and name != "TYPE_CHECKING"]
