"""Where the real CLI may run: in a network namespace that holds nothing but a loopback interface.

So it can reach no API, no account and no telemetry server, whatever it decides to do. `run_inside` makes such a place;
`require` refuses to go on elsewhere. It needs Linux, and ``unshare`` of util-linux.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["bring_loopback_up", "environment", "namespace", "require", "run_inside", "why_not"]

# linux/sockios.h and linux/if.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def namespace() -> list[str]:
    """The command that gives the command behind it a network of its own.

    Raises:
        RuntimeError: this system has none, or refuses one.
    """
    program = shutil.which("unshare")
    if program is None or sys.platform != "linux":
        raise RuntimeError("the CLI needs a network namespace, and there is no unshare (util-linux) on the PATH")
    reasons: list[str] = []
    for flags in (["--net"], ["--user", "--map-root-user", "--net"]):
        tried = subprocess.run([program, *flags, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return [program, *flags]
        reasons.append(f"  unshare {' '.join(flags)}: {tried.stderr.strip()}")
    raise RuntimeError("\n".join(["the CLI needs a network namespace, and this system refuses one:", *reasons]))


def run_inside(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
    """Run a command in a namespace of its own, with an empty home and hardly any environment; return its exit code.

    The command has to call `bring_loopback_up`. ``variables`` are added to its environment.

    Raises:
        RuntimeError: this system has no such namespace, or refuses one.
    """
    start = namespace()
    with tempfile.TemporaryDirectory(prefix="claude-wire-") as home:
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        environment = {"HOME": home, "LANG": "C.UTF-8", "PATH": path, "TMPDIR": home, **(variables or {})}
        return subprocess.run([*start, *command], env=environment, check=False).returncode


def _flags(probe: socket.socket, flags: int | None = None) -> int:
    """The flags of the loopback interface, read, or written and returned."""
    import fcntl  # not everywhere, and this module is imported everywhere

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
        raise RuntimeError(f"The real CLI is not started: {reason}")


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
