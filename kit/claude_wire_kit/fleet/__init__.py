"""Sessions on a Ray cluster, with a supervisor on each node and clients on any node. Requires the extra ``ray``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from claude_wire.support import install_extra

if TYPE_CHECKING:
    from claude_wire_kit.fleet.client import Fleet as Fleet
    from claude_wire_kit.fleet.client import NodeLostError as NodeLostError

__all__ = ["Fleet", "NodeLostError"]


def __getattr__(name: str) -> Any:
    """Import the client at its first use, because the program that runs on each node does not need Ray."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from claude_wire_kit.fleet import client
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        advice = f"{__name__} needs Ray: {install_extra('ray', distribution='claude-wire-kit', folder='./kit')}"
        raise ImportError(advice, name="ray") from error
    value = globals()[name] = getattr(client, name)
    return value
