"""Serve a supervisor's sessions over HTTP to programs and browsers. Requires the extra ``serve``.

``claude-wire serve`` runs the service. To run it in your own ASGI server, use :func:`create_app`.
"""

from claude_wire_kit.web.app import create_app
from claude_wire_kit.web.config import Config, Profile, load_config

__all__ = ["Config", "Profile", "create_app", "load_config"]
