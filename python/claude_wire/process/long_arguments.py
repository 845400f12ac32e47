"""If an argument is too long for the system, pass it as a file, provided that the CLI accepts a file for its flag.

Linux limits each argument to less than 128 KiB (``MAX_ARG_STRLEN``), and the arguments and environment together to a
quarter of the stack limit (``ARG_MAX``, usually 2 MiB). The system's error does not name the limit or the argument.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

#: The longest argument that Linux accepts, in bytes.
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
#: Flag that takes text -> flag that takes the path of a file containing this text.
_BY_FILE = {
    "--agents": "--agents",
    "--append-system-prompt": "--append-system-prompt-file",
    "--mcp-config": "--mcp-config",
    "--settings": "--settings",
    "--system-prompt": "--system-prompt-file",
}
_RULES = "put the rules into ClaudeOptions(settings={'permissions': {'allow': [...], 'deny': [...]}})"
#: Flag that does not accept a file -> what to do instead, for the error message.
_REMEDIES = {
    "--allowedTools": _RULES,
    "--disallowedTools": _RULES,
    "--json-schema": "pass it as open_session(..., initialize=InitializeRequest(jsonSchema=...))",
}


class ArgumentFiles:
    """Private temporary files for one process's long arguments.

    Args:
        argv: the arguments.
        user: the user that the process runs as. None: the same user as this process.

    Attributes:
        argv: the arguments, with file paths in place of long texts.

    Raises:
        OSError: an argument is too long and its flag does not accept a file (``E2BIG``), or a file cannot be written.
    """

    def __init__(self, argv: Sequence[str], user: str | int | None = None) -> None:
        self.argv: list[str] = list(argv)
        self._user = user
        self._folder: str | None = None
        self._owner = os.getpid()
        if sys.platform != "linux":
            return
        try:
            for index, flag, text in find_long_arguments(argv):
                self._replace(index, flag, text)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the files. A second call, or a call in a forked process, does nothing."""
        if self._folder is not None and os.getpid() == self._owner:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _replace(self, index: int, flag: str, text: str) -> None:
        by_file = _BY_FILE.get(flag)
        if by_file is None:
            name = f"the argument of {flag}" if flag else "an argument"
            remedy = f"; {_REMEDIES[flag]}" if flag in _REMEDIES else ""
            size = len(os.fsencode(text))
            raise OSError(
                errno.E2BIG,
                f"{name} has {size:,} bytes, and Linux takes at most {MAX_ARGUMENT_BYTES:,}{remedy}",
            )
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="claude-wire-arguments-")  # only this user may read it
        path = os.path.join(self._folder, f"{index}{flag}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.fsencode(text))
        if self._user is not None:
            for created in self._folder, path:
                shutil.chown(created, self._user)
        if self.argv[index] == text:
            self.argv[index - 1 : index + 1] = [by_file, path]
        else:
            self.argv[index] = f"{by_file}={path}"


def find_long_arguments(argv: Sequence[str]) -> Iterable[tuple[int, str, str]]:
    """Yield the index, flag and text of each argument that is too long. Without a flag, the flag is empty."""
    for index, argument in enumerate(argv):
        if len(argument) <= MAX_ARGUMENT_BYTES // 4 or len(os.fsencode(argument)) <= MAX_ARGUMENT_BYTES:
            continue
        flag, equals, text = argument.partition("=")
        if argument.startswith("--") and equals and "\n" not in flag:
            yield index, flag, text
        else:
            before = argv[index - 1] if index else ""
            yield index, before if before.startswith("--") else "", argument


def arguments_too_long(argv: Sequence[str], env: Mapping[str, str] | None) -> OSError:
    """Return the error for arguments that, together with the environment, are too long."""
    sizes = [len(os.fsencode(argument)) + 1 for argument in argv]
    longest = sizes.index(max(sizes))
    flag = argv[longest - 1] if longest and argv[longest - 1].startswith("--") else argv[longest].partition("=")[0][:40]
    whole = os.environ if env is None else env
    environment = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in whole.items())
    most = ""
    with suppress(ValueError, OSError, AttributeError):
        most = f", and the system accepts {os.sysconf('SC_ARG_MAX'):,} together"
    return OSError(
        errno.E2BIG,
        f"the arguments have {sum(sizes):,} bytes (the longest is that of {flag}) and the environment has "
        f"{environment:,}{most}; pass files to the flags that accept files",
    )
