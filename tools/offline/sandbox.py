"""Run the real CLI in a network namespace that has only a loopback interface.

There the CLI cannot reach an API, an account or a telemetry server, whatever it does. `run_inside` makes such a
namespace, and `require` raises an error outside of one. This needs Linux, and ``unshare`` of util-linux.
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
    """Return a command prefix that runs the rest of the command line in a new network namespace.

    Raises:
        RuntimeError: the system has no namespaces, or does not allow a new one.
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
    """Run a command in a new namespace, with an empty home and a minimal environment. Return its exit code.

    The command must call `bring_loopback_up`. ``variables`` are added to its environment.

    Raises:
        RuntimeError: the system has no namespaces, or does not allow a new one.
    """
    start = namespace()
    with tempfile.TemporaryDirectory(prefix="claude-wire-") as home:
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        environment = {"HOME": home, "LANG": "C.UTF-8", "PATH": path, "TMPDIR": home, **(variables or {})}
        return subprocess.run([*start, *command], env=environment, check=False).returncode


def _flags(probe: socket.socket, flags: int | None = None) -> int:
    """Return the flags of the loopback interface; with ``flags``, set them first."""
    import fcntl  # Windows imports this module, but has no fcntl

    request = struct.pack("16sh14x", b"lo", flags or 0)
    answer = fcntl.ioctl(probe, SIOCGIFFLAGS if flags is None else SIOCSIFFLAGS, request)
    return int(struct.unpack("16sh14x", answer)[1])


def bring_loopback_up() -> None:
    """Enable the loopback interface, which is down in a new namespace.

    Raises:
        OSError: the process is not allowed to enable it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        _flags(probe, _flags(probe) | IFF_UP)


def why_not() -> str | None:
    """Return why this process must not start the CLI; None if it may."""
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        return f"this process sees the network interfaces {', '.join(names) or '(none)'}, and only lo is allowed"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        if not _flags(probe) & IFF_UP:
            return "the loopback interface is down"
    return None


def require() -> None:
    """Raise RuntimeError unless the loopback interface is up and is the only network interface."""
    reason = why_not()
    if reason is not None:
        raise RuntimeError(f"The real CLI is not started: {reason}")


def environment(home: Path, base_url: str) -> dict[str, str]:
    """Return the environment for a CLI: a home, a fake key, the URL of the fake API, and no telemetry or updates."""
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
