"""Sessions of a supervisor over HTTP, for programs and for a browser: the extra ``serve``.

Knows HTTP, who may do what, and the events of the bridge; not how a CLI runs.
"""

from claude_wire_kit.web.app import create_app
from claude_wire_kit.web.config import Config, Profile, load_config

__all__ = ["Config", "Profile", "create_app", "load_config"]
