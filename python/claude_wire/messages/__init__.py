"""The protocol as msgspec Structs: one class for each message, block, event, request and hook.

Field names are the wire's. Which module holds what: ``conversation``, ``results``, ``system``, ``tasks`` and
``notices`` the messages; ``content``, ``text``, ``media`` and ``server_tools`` the content blocks; ``api``, ``events``
and ``usage`` what the Messages API defines; ``control``, ``cli_requests``, ``host_requests``, ``host_answers``,
``context_usage`` and ``undeclared_requests`` the control protocol; ``hooks`` and ``hook_outputs``, ``permissions``,
``mcp`` and ``catalog`` what it speaks of; ``dialects`` the frames of compatible agents; ``unknown`` and ``invalid``
what fits none of them.
"""

from claude_wire.messages import (
    api,
    catalog,
    cli_requests,
    content,
    context_usage,
    control,
    conversation,
    dialects,
    events,
    hook_outputs,
    hooks,
    host_answers,
    host_requests,
    invalid,
    mcp,
    media,
    message,
    notices,
    permissions,
    request_body,
    results,
    server_tools,
    session_notices,
    system,
    tasks,
    text,
    tool_hooks,
    undeclared_requests,
    unknown,
    usage,
)
from claude_wire.messages.api import *
from claude_wire.messages.catalog import *
from claude_wire.messages.cli_requests import *
from claude_wire.messages.content import *
from claude_wire.messages.context_usage import *
from claude_wire.messages.control import *
from claude_wire.messages.conversation import *
from claude_wire.messages.dialects import *
from claude_wire.messages.events import *
from claude_wire.messages.hook_outputs import *
from claude_wire.messages.hooks import *
from claude_wire.messages.host_answers import *
from claude_wire.messages.host_requests import *
from claude_wire.messages.invalid import *
from claude_wire.messages.mcp import *
from claude_wire.messages.media import *
from claude_wire.messages.message import *
from claude_wire.messages.notices import *
from claude_wire.messages.permissions import *
from claude_wire.messages.request_body import *
from claude_wire.messages.results import *
from claude_wire.messages.server_tools import *
from claude_wire.messages.session_notices import *
from claude_wire.messages.system import *
from claude_wire.messages.tasks import *
from claude_wire.messages.text import *
from claude_wire.messages.tool_hooks import *
from claude_wire.messages.undeclared_requests import *
from claude_wire.messages.unknown import *
from claude_wire.messages.usage import *

__all__: list[str] = []
__all__ += api.__all__
__all__ += catalog.__all__
__all__ += cli_requests.__all__
__all__ += content.__all__
__all__ += context_usage.__all__
__all__ += control.__all__
__all__ += conversation.__all__
__all__ += dialects.__all__
__all__ += events.__all__
__all__ += hook_outputs.__all__
__all__ += hooks.__all__
__all__ += host_answers.__all__
__all__ += host_requests.__all__
__all__ += invalid.__all__
__all__ += mcp.__all__
__all__ += media.__all__
__all__ += message.__all__
__all__ += notices.__all__
__all__ += permissions.__all__
__all__ += request_body.__all__
__all__ += results.__all__
__all__ += server_tools.__all__
__all__ += session_notices.__all__
__all__ += system.__all__
__all__ += tasks.__all__
__all__ += text.__all__
__all__ += tool_hooks.__all__
__all__ += undeclared_requests.__all__
__all__ += unknown.__all__
__all__ += usage.__all__
