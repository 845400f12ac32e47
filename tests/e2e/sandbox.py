"""Where the real CLI may run: in a network namespace that holds nothing but a loopback interface.

So no test can reach an API, an account or a telemetry server, whatever the CLI decides to do. `require` refuses to go
on elsewhere; ``run.py`` makes such a place.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import tempfile
from pathlib import Path

__all__ = ["bring_loopback_up", "environment", "require", "why_not"]

# linux/sockios.h and linux/if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def _flags(probe: socket.socket, flags: int | None = None) -> int:
    """The flags of the loopback interface, read, or written and returned."""
    request = struct.pack("16sh14x", b"lo", flags or 0)
    answer = fcntl.ioctl(probe, SIOCGIFFLAGS if flags is None else SIOCSIFFLAGS, request)
    return int(struct.unpack("16sh14x", answer)[1])


def bring_loopback_up() -> None:
    """Set the loopback interface up; a new namespace has it down. Raises OSError where that is not allowed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        _flags(probe, _flags(probe) | IFF_UP)


def why_not() -> str | None:
    """Say why the CLI must not be started by this process, or None if it may."""
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        return f"this process sees the network interfaces {', '.join(names) or '(none)'}, and only lo is allowed"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if not _flags(probe) & IFF_UP:
            return "the loopback interface is down"
    return None


def require() -> None:
    """Raise RuntimeError unless this process has a loopback interface and no other."""
    reason = why_not()
    if reason is not None:
        raise RuntimeError(f"The real CLI is not started: {reason}. Use: make e2e")


def environment(home: Path, base_url: str) -> dict[str, str]:
    """The whole environment of one CLI: an empty home, a key that is none, the fake API, nothing that calls out."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": tempfile.gettempdir(),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "ANTHROPIC_API_KEY": "sk-ant-test-0000",
        "ANTHROPIC_BASE_URL": base_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "IS_SANDBOX": "1",
    }
