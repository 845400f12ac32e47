"""An SSH server for one test. Each connection starts its own server and talks to it over pipes, without a port.

The keys are generated for the test. The server and the client ignore the user's configuration.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from folders import ROOT

__all__ = ["SSHD", "ssh_command"]

UNPACKED = ROOT / "target" / "sshd"


def _found() -> str | None:
    """Return the path of an SSH server: an installed one, or the one that `make sshd` has unpacked."""
    for path in ("/usr/sbin/sshd", os.fspath(UNPACKED / "usr" / "sbin" / "sshd")):
        if os.access(path, os.X_OK) and shutil.which("ssh") and shutil.which("ssh-keygen") and _can_hide():
            return path
    return None


def _can_hide() -> bool:
    """Return whether this process can replace system files for a server that runs as root."""
    return os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], stderr=-3, check=False).returncode == 0


SSHD: str | None = _found()


def ssh_command(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Return an ssh command line. Append the remote command to it; the command gets these variables."""
    assert SSHD is not None
    for name in ("server", "client"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    variables = " ".join(f'"{name}={value}"' for name, value in environment.items())
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/server\nAuthorizedKeysFile {folder}/client.pub\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel QUIET\nSetEnv {variables}\n"
    )
    user = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "known").write_text("test " + (folder / "server.pub").read_text())
    (folder / "connect").write_text(_connecting(folder))
    options = {
        "ProxyCommand": f"sh {shlex.quote(os.fspath(folder / 'connect'))}",
        "UserKnownHostsFile": folder / "known",
        "IdentityFile": folder / "client",
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "LogLevel": "ERROR",
    }
    return ["ssh", "-F", "none", "-T", *(f"-o{name}={value}" for name, value in options.items()), f"{user}@test"]


def _connecting(folder: Path) -> str:
    """Return the shell command that serves a connection.

    As root, sshd needs a user "sshd", so only this server sees a modified /etc/passwd.
    """
    libraries = ":".join(os.fspath(UNPACKED / part / "lib" / "x86_64-linux-gnu") for part in (".", "usr"))
    serve = f"exec env LD_LIBRARY_PATH={shlex.quote(libraries)} {SSHD} -i -e -f {shlex.quote(str(folder))}/sshd_config"
    if os.geteuid() != 0:
        return f"{serve}\n"
    users = Path("/etc/passwd").read_text()
    if "\nsshd:" not in users:
        users += "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
    (folder / "passwd").write_text(users)
    hidden = f"mount --bind {shlex.quote(str(folder))}/passwd /etc/passwd; mount -t tmpfs tmpfs /run; mkdir /run/sshd"
    return f"exec unshare --mount sh -c {shlex.quote(f'set -e; {hidden}; {serve}')}\n"
